"""Tests of a source file: which there are, what a new one is called, one made of examples or recorded calls (E7)."""

from __future__ import annotations

import ast
import doctest
import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

_SOURCES = ("src/", "lib/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How tests are called in a language."""

    known: tuple[str, ...]
    made: str
    folder: str
    command: tuple[str, ...]
    asserts: tuple[re.Pattern[str], ...]


@functools.cache
def namings() -> Mapping[str, Naming]:
    text = (resources.files("pawl.workflow.climbing") / "test_files.toml").read_text("utf-8")
    return MappingProxyType(
        {
            ending: Naming(
                known=tuple(row["known"]),
                made=row["made"],
                folder=row["folder"],
                command=tuple(row["command"]),
                asserts=tuple(re.compile(one, re.MULTILINE) for one in row["asserts"]),
            )
            for ending, row in tomllib.loads(text).items()
        }
    )


def naming_of(target: str) -> Naming | None:
    """None for a language in which no test is made."""
    return namings().get(target.rpartition(".")[2]) if "." in target else None


def known_tests(target: str, paths: Iterable[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The tests of the target: by their names, and in Python by what they import."""
    naming = naming_of(target)
    if naming is None:
        return ()
    stem = _stem(target)
    names = {name.format(stem=stem) for name in naming.known}
    found = [path for path in paths if path.rpartition("/")[2] in names]
    if target.endswith(".py"):
        words = re.compile(rf"^\s*(?:from|import)\s+(?:[\w.]+\.)?{re.escape(stem)}\b", re.MULTILINE)
        of_names = re.compile(rf"^\s*from\s+[\w.]*\s+import\s+.*\b{re.escape(stem)}\b", re.MULTILINE)
        found += [path for path, text in texts.items() if words.search(text) or of_names.search(text)]
    return tuple(dict.fromkeys(found))


def is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or any(mark in name for mark in ("_test.", ".test.", ".spec.", "_spec."))


def new_test(target: str, paths: Iterable[str]) -> str:
    """The path of a test to be made: in the folder of tests where there is one, else beside the target."""
    naming = naming_of(target)
    assert naming is not None
    name = naming.made.format(stem=_stem(target))
    if naming.folder and any(path.startswith(f"{naming.folder}/") for path in paths):
        return f"{naming.folder}/{name}"
    folder = target.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def scoped_command(target: str, path: str) -> tuple[str, ...]:
    naming = naming_of(target)
    assert naming is not None
    return tuple(word.format(path=path) for word in naming.command)


def asserts_something(target: str, text: str) -> bool:
    naming = naming_of(target)
    return naming is not None and any(pattern.search(text) for pattern in naming.asserts)


def module_of(target: str) -> str:
    """The name under which a Python file is imported, as far as its path tells."""
    path = target.removesuffix(".py").removesuffix("/__init__")
    for folder in _SOURCES:
        path = path.removeprefix(folder)
    return path.replace("/", ".")


def from_examples(target: str, source: str) -> str:
    """A test for each docstring of a Python file that shows examples; empty where none does."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    tests = [made for name, text in _docstrings(tree) if (made := _test(name, text))]
    if not tests:
        return ""
    raises = ["import pytest"] if any("pytest.raises" in test for test in tests) else []
    head = [f'"""The examples in the docstrings of {target}, as tests."""', "", *raises]
    return "\n".join((*head, f"from {module_of(target)} import *", "", "", "\n\n\n".join(tests), ""))


@functools.cache
def _behaviour() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = tomllib.loads((resources.files("pawl.workflow.climbing") / "behaviour.toml").read_text("utf-8"))
    joined = ("|".join(f"(?:{one})" for one in table[name]) for name in ("patterns", "others"))
    keeps, others = (re.compile(one, re.IGNORECASE) for one in joined)
    return keeps, others


def keeps_behaviour(objective: str) -> bool:
    """Whether what a file does today is to stay, by the words of the objective."""
    keeps, others = _behaviour()
    return keeps.search(objective.strip()) is not None and others.search(objective) is None


def from_calls(target: str, calls: Iterable[Mapping[str, str]]) -> str:
    """A test for each function or class whose calls were recorded with their values; empty where none was."""
    by_root: dict[str, list[str]] = {}
    for one in calls:
        by_root.setdefault(one["root"], []).append(f"    assert {one['call']} == {one['value']}")
    if not by_root:
        return ""
    head = [f'"""What {target} gives today, in calls that tests and examples make."""', ""]
    head += [f"from {module_of(target)} import {', '.join(sorted(by_root))}"]
    tests = ["\n".join((f"def test_calls_of_{root.lower()}():", *lines)) for root, lines in by_root.items()]
    return "\n\n\n".join(("\n".join(head), *tests)) + "\n"


def _docstrings(tree: ast.Module) -> Iterable[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ast.get_docstring(node) or ""


def _test(name: str, text: str) -> str:
    """The examples of one docstring in their order; an example that shows no result is only carried out."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return ""
    lines: list[str] = []
    for example in examples:
        code, want = example.source.strip("\n"), example.want.strip("\n")
        if example.exc_msg is not None:
            kind = example.exc_msg.partition(":")[0].strip().rpartition(".")[2]
            lines += [f"with pytest.raises({kind}):", *(f"    {line}" for line in code.splitlines())]
        elif want and "\n" not in want and _is_expression(code):
            lines.append(f"assert repr({code}) == {want!r}")
        elif not want:
            lines += code.splitlines()
        else:
            return ""
    if not any(line.startswith(("assert ", "with ")) for line in lines):
        return ""
    return "\n".join((f"def test_examples_of_{name.lower()}():", *(f"    {line}" for line in lines)))


def _is_expression(code: str) -> bool:
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]
