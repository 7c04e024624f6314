"""The test frameworks as values, read from their TOML files and checked when loaded."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from importlib import resources
from pathlib import Path

from pawl.checks import report_readers as registry
from pawl.checks.output import ANYWHERE, Origin, cleaned
from pawl.checks.project_facts import NESTED_MARKS, Folder, dependencies, nested_projects, table, text, toml
from pawl.checks.report import TestReport
from pawl.checks.report_readers import PARSERS
from pawl.checks.task_files import leads_to
from pawl.code.languages import language_of
from pawl.core.errors import ConfigError, why
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_toml, written
from pawl.settings import files as bounded
from pawl.settings.config import framework_folders

ORDER = ("pytest", "unittest", "vitest", "jest", "node", "mocha", "rspec", "cargo", "go")
"""With equal evidence the earlier one is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkSigns:
    """The signs of a framework."""

    command: tuple[re.Pattern[str], ...]
    config: tuple[str, ...]
    sections: tuple[tuple[str, re.Pattern[str]], ...]
    dependencies: frozenset[str]
    tests: tuple[str, ...]
    """How test files are named: a file name's pattern, or a path's when it holds a slash."""
    marks: tuple[re.Pattern[str], ...]
    """Lines in test files."""
    output: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How chosen tests become arguments: one by one, or as one pattern."""

    each: tuple[str, ...] = ()
    pattern: str = ""
    join: str = "|"
    separator: str = ""
    """Stands between file, suites and name in an id; the file goes, a blank takes the place of the rest."""
    first_part: str = ""
    """Only what stands before it in an id can be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkCommands:
    """How all tests, those of a file and chosen ones are run, with a report for programs where there is one."""

    all: tuple[str, ...]
    file: tuple[str, ...]
    """A word that names the file, its folder or its stem is repeated for each file."""
    related: tuple[str, ...] = ()
    """Finds the tests of changed files by itself."""
    some: tuple[str, ...]
    select: Selection
    own: tuple[str, ...] = ()
    """Options of the project's script that every command is given with their value: what the tests are set up by."""
    part: Mapping[str, str] = field(default_factory=dict)
    """Variables for a part of the suite, such as that its tests run in one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    name: str
    language: str
    parser: str
    detect: FrameworkSigns
    commands: FrameworkCommands


def framework(text: str, source: str) -> Framework:
    """A framework from its TOML text; `source` names it in errors."""
    try:
        data = read_toml(text)
        if isinstance(data.get("commands"), dict):
            # Files of former versions name arguments for a machine report, which are part of the commands now.
            data["commands"].pop("machine", None)
        if data.get("parser") not in PARSERS:
            raise ValueError(f"there is no parser {data.get('parser')!r}")
        return written(Framework, data)
    except ValueError as error:
        raise ConfigError(
            f"the test framework {source!r} cannot be used: {error}",
            advice="compare it with the frameworks that come with Pawl",
        ) from error


def frameworks() -> tuple[Framework, ...]:
    """Every framework, in the order of preference: the user's before Pawl's; one of a known name takes its place."""
    own = {one.name: one for folder in framework_folders for one in _of(folder)}
    return (*own.values(), *(one for one in _built_in() if one.name not in own)) if own else _built_in()


@functools.cache
def _of(folder: Path) -> tuple[Framework, ...]:
    """One in each file."""
    made = []
    for path in sorted(folder.glob("*.toml")):
        try:
            made.append(framework(bounded.read_text(path), str(path)))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{str(path)!r} cannot be read: {why(error)}", advice="correct or remove it") from error
    return tuple(made)


@functools.cache
def _built_in() -> tuple[Framework, ...]:
    folder = resources.files("pawl.checks") / "frameworks"
    return tuple(framework((folder / f"{name}.toml").read_text(encoding="utf-8"), name) for name in ORDER)


def named(name: str) -> Framework:
    for known in frameworks():
        if known.name == name:
            return known
    raise ConfigError(
        f"there is no test framework {name!r}", advice=f"known are {', '.join(known.name for known in frameworks())}"
    )


_PYTHON = "python3"


def all_tests(framework: Framework, *, python: str = _PYTHON) -> tuple[str, ...]:
    return _filled(framework.commands.all, {"python": (python,)})


def of_files(
    framework: Framework,
    paths: Sequence[str],
    files: Folder | None = None,
    *,
    changed: Sequence[str] = (),
    python: str = _PYTHON,
) -> tuple[str, ...]:
    """The tests of these files, or the smallest groups around them that the framework can run.

    Where it finds the tests of changed files by itself, these are what it is asked for.
    """
    if changed and framework.commands.related:
        return _filled(framework.commands.related, {"python": (python,), "changed": changed})
    words: list[str] = []
    for word in framework.commands.file:
        if not _OF_FILE.search(word):
            words.append(python if word == "{python}" else word)
            continue
        parts = [_parts_of(path, files) for path in paths]
        each = [_filled((word,), one)[0] for one in parts]
        # Without its name there is no choosing a package: all are tested.
        words += dict.fromkeys(each) if "{package}" not in word or all(one["package"][0] for one in parts) else ()
    return tuple(words)


_OF_FILE = re.compile(r"\{(?:file|folder|stem|package)\}")


def _parts_of(path: str, files: Folder | None) -> dict[str, tuple[str, ...]]:
    folder, name = posixpath.split(path)
    stem, package = name.rpartition(".")[0], _package_of(path, files)
    return {"file": (path,), "folder": (folder,), "stem": (stem,), "package": (package,)}


def _package_of(path: str, files: Folder | None) -> str:
    """The name of the Cargo package that holds a file; empty where there is none."""
    while path and files is not None:
        path = posixpath.dirname(path)
        if name := table(toml(files, posixpath.join(path, "Cargo.toml")), "package").get("name"):
            return str(name)
    return ""


def tests_language(framework: Framework, path: str) -> bool:
    """Whether the file is in the language of the framework's tests."""
    language = language_of(path)
    name = language.name if language else ""
    return name == framework.language or (framework.language == "javascript" and name in ("typescript", "tsx"))


def some_tests(framework: Framework, tests: Sequence[str], *, python: str = _PYTHON) -> tuple[str, ...]:
    """The tests with these ids, as reports name them."""
    selection = framework.commands.select
    if selection.each:
        chosen = tuple(word.replace("{test}", test) for test in tests for word in selection.each)
        files: tuple[str, ...] = ()
    else:
        parts = [test.split(selection.separator) if selection.separator else [test] for test in tests]
        files = tuple(dict.fromkeys(part[0] for part in parts if len(part) > 1))
        titles = [" ".join(part[1:] if len(part) > 1 else part) for part in parts]
        names = (title.split(selection.first_part)[0] if selection.first_part else title for title in titles)
        # Escaped for the regular expressions of JavaScript, Ruby and Go alike.
        quoted = (re.sub(r"([\\^$.|?*+()\[\]{}/])", r"\\\1", name) for name in dict.fromkeys(names))
        chosen = (selection.pattern.replace("{tests}", selection.join.join(quoted)),)
    return _filled(framework.commands.some, {"python": (python,), "tests": chosen, "files": files})


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


_DEEPEST = 4
_MOST_TEST_FILES = 40
_SECTION, _CONFIG, _DEPENDENCY, _MARK, _NAME = 100, 90, 60, 40, 10
_SKIPPED_FOLDERS = frozenset({"node_modules", ".venv", "venv", "target", "vendor", "dist", "build", ".tox"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The framework and why, or why none could be told."""

    framework: Framework | None
    reason: str
    certain: bool = False
    """The command itself says so; the output need not be asked."""


def detect(files: Folder, command: str | None = None) -> Detection:
    """The framework that a command runs, or that the project uses when there is no command or it does not tell."""
    if command:
        found = _by_command(files, command)
        if found:
            return found
    ranked = _by_files(files)
    if ranked:
        framework, evidence = ranked[0]
        also = f"; {command!r} does not name a framework" if command else ""
        return Detection(framework=framework, reason=", ".join(evidence) + also)
    wanted = f"{command!r} names none and " if command else ""
    return Detection(
        framework=None,
        reason=f"{wanted}no configuration, dependency or test file of a known test framework was found",
    )


def frameworks_of(files: Folder) -> tuple[Framework, ...]:
    """The likeliest framework of each language that has tests here."""
    paths = _own_paths(files)
    found: dict[str, Framework] = {}
    for framework, _ in _by_files(files):
        if test_files(framework, paths) or framework.language == "rust":
            found.setdefault(framework.language, framework)
    return tuple(found.values())


def by_output(output: str) -> Framework | None:
    """The framework whose marks the output shows; of several the one with the most."""
    lines = cleaned(output).text
    scores = [(sum(bool(sign.search(lines)) for sign in known.detect.output), known) for known in frameworks()]
    best = max(score for score, _ in scores)
    return next((known for score, known in scores if score == best), None) if best else None


def read(output: str, detection: Detection, origin: Origin = ANYWHERE) -> TestReport:
    """The report of a run. Where the detection was a guess, what the output shows counts more."""
    framework = detection.framework
    shown = by_output(output)
    if shown and not (detection.certain and framework and _reads(framework, output)):
        framework = shown
    if framework is None:
        return registry.by_traceback("test", output, origin)
    return registry.parse(framework.parser, output, origin)


def _reads(framework: Framework, output: str) -> bool:
    lines = cleaned(output).text
    return any(sign.search(lines) for sign in framework.detect.output)


def _by_command(files: Folder, command: str) -> Detection | None:
    """The first framework that the command names, or what it leads to through Makefiles, scripts and tools."""
    way = [command]
    for depth in range(_DEEPEST):
        found = first_named(way[-1])
        if found:
            through = "" if depth == 0 else f" leads to {way[-1].strip().splitlines()[0][:80]!r}"
            return Detection(framework=found, reason=f"the command {command!r}{through}", certain=True)
        following = "\n".join(filter(None, (leads_to(files, line) for line in way[-1].splitlines())))
        if not following or following in way:
            return None
        way.append(following)
    return None


def first_named(command: str) -> Framework | None:
    found = [
        (match.start(), known)
        for known in frameworks()
        for sign in known.detect.command
        if (match := sign.search(command))
    ]
    return min(found, key=lambda hit: hit[0])[1] if found else None


def _own_paths(files: Folder) -> list[str]:
    """Without what nested projects test themselves where the root is none like them; Python is tested from the root."""
    alike = any(files.exists(name) for name in NESTED_MARKS)
    nested = () if alike else tuple(f"{folder}/" for folder in nested_projects(files))
    return [path for path in files.walk() if path.endswith(".py") or not path.startswith(nested)]


def _by_files(files: Folder) -> list[tuple[Framework, list[str]]]:
    """Each framework with some evidence, the strongest first."""
    needed = dependencies(files)
    paths = [path for path in _own_paths(files) if _SKIPPED_FOLDERS.isdisjoint(path.split("/")[:-1])]
    ranked = []
    for known in frameworks():
        score, evidence = _evidence(files, known, needed, paths)
        if score:
            ranked.append((score, known, evidence))
    ranked.sort(key=lambda entry: -entry[0])
    return [(known, evidence) for _, known, evidence in ranked]


def _evidence(
    files: Folder, framework: Framework, needed: frozenset[str], paths: Sequence[str]
) -> tuple[int, list[str]]:
    signs = framework.detect
    tests = test_files(framework, paths)
    score, evidence = 0, []
    for path, section in signs.sections:
        if section.search(text(files, path)):
            score += _SECTION
            evidence.append(f"{framework.name} is configured in {path}")
    configured = [path for path in signs.config if files.exists(path)]
    if configured:
        score += _CONFIG
        evidence.append(f"{configured[0]} is there")
    depended = sorted(signs.dependencies & needed)
    if depended:
        score += _DEPENDENCY
        evidence.append(f"{depended[0]} is a dependency")
    marked = [path for path in tests if any(mark.search(text(files, path)) for mark in signs.marks)]
    if marked:
        score += _MARK + len(marked)
        evidence.append(f"{marked[0]} is written for {framework.name}")
    elif tests:
        score += _NAME
        evidence.append(f"{tests[0]} is named like a test of {framework.name}")
    return score, evidence


def test_files(framework: Framework, paths: Iterable[str]) -> list[str]:
    """The files that are named like this framework's tests; a bounded number."""
    by_name, by_path = _fitting(framework.detect.tests)
    named = (path for path in paths if by_name.match(path.rpartition("/")[2]) or by_path.match(path))
    return list(itertools.islice(named, _MOST_TEST_FILES))


@functools.cache
def _fitting(patterns: Sequence[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """For names, and for whole paths: patterns with a slash are for these."""
    kinds = ([one for one in patterns if "/" not in one], [one for one in patterns if "/" in one])
    names, paths = ("|".join(map(fnmatch.translate, kind)) or r"(?!)" for kind in kinds)
    return re.compile(names), re.compile(paths)
