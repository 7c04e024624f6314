"""The commands that run a framework's tests: all of them, one file's, or chosen ones."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from pawl.verify.catalog import Framework

_DEFAULTS: Mapping[str, str] = {"python": "python3"}


def all_tests(framework: Framework, *, python: str = _DEFAULTS["python"]) -> tuple[str, ...]:
    return _filled(framework.all_tests, {"python": (python,)})


def one_file(framework: Framework, path: str, *, python: str = _DEFAULTS["python"]) -> tuple[str, ...]:
    """The tests of one file, or the smallest group around it that the framework can run."""
    folder, name = posixpath.split(path)
    values = {"python": (python,), "file": (path,), "folder": (folder,), "stem": (name.rpartition(".")[0],)}
    return _filled(framework.one_file, values)


def some_tests(framework: Framework, tests: Sequence[str], *, python: str = _DEFAULTS["python"]) -> tuple[str, ...]:
    """The tests with these ids, as reports name them."""
    selection = framework.selection
    if selection.each:
        chosen = tuple(word.replace("{test}", test) for test in tests for word in selection.each)
        files: tuple[str, ...] = ()
    else:
        parts = [test.split(selection.separator) if selection.separator else [test] for test in tests]
        files = tuple(dict.fromkeys(part[0] for part in parts if len(part) > 1))
        titles = (" ".join(part[1:] if len(part) > 1 else part) for part in parts)
        chosen = (selection.pattern.replace("{tests}", _alternatives(titles, framework)),)
    return _filled(framework.some_tests, {"python": (python,), "tests": chosen, "files": files})


def with_machine_report(framework: Framework, argv: Sequence[str]) -> tuple[str, ...]:
    """The same command with a report for programs, where the framework has one built in."""
    return (*argv, *framework.machine_arguments)


def _alternatives(titles: Iterable[str], framework: Framework) -> str:
    selection = framework.selection
    names = (title.split(selection.first_part)[0] if selection.first_part else title for title in titles)
    return selection.join.join(_quoted(name) for name in dict.fromkeys(names))


def _quoted(text: str) -> str:
    """Escaped for the regular expressions of JavaScript, Ruby and Go alike."""
    return re.sub(r"([\\^$.|?*+()\[\]{}/])", r"\\\1", text)


def _filled(words: Sequence[str], values: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A word that is one placeholder becomes as many arguments as it has values."""
    filled: list[str] = []
    for word in words:
        whole = re.fullmatch(r"\{(\w+)\}", word)
        if whole:
            filled += values[whole[1]]
        else:
            filled.append(re.sub(r"\{(\w+)\}", lambda match: " ".join(values[match[1]]), word))
    return tuple(filled)
