"""Says which test framework a project uses: by the command, by what it leads to, by the files, by the output."""

from __future__ import annotations

import fnmatch
import itertools
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pawl.verify.catalog import Framework, frameworks
from pawl.verify.output import cleaned
from pawl.verify.parsers import registry
from pawl.verify.places import Origin
from pawl.verify.project import Folder, dependencies, leads_to, text
from pawl.verify.report import TestReport

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
    paths = list(files.walk())
    found: dict[str, Framework] = {}
    for framework, _ in _by_files(files):
        if test_files(framework, paths) or framework.language == "rust":
            found.setdefault(framework.language, framework)
    return tuple(found.values())


def by_output(output: str) -> Framework | None:
    """The framework whose marks the output shows; of several the one with the most."""
    lines = cleaned(output).text
    scores = [(sum(bool(sign.search(lines)) for sign in known.signs.output), known) for known in frameworks()]
    best = max(score for score, _ in scores)
    return next((known for score, known in scores if score == best), None) if best else None


def read(output: str, detection: Detection, origin: Origin | None = None) -> TestReport:
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
    return any(sign.search(lines) for sign in framework.signs.output)


def _by_command(files: Folder, command: str) -> Detection | None:
    """The first framework that the command names, or what it leads to through Makefiles, scripts and tools."""
    way = [command]
    for depth in range(_DEEPEST):
        found = _first_named(way[-1])
        if found:
            through = "" if depth == 0 else f" leads to {way[-1].strip().splitlines()[0][:80]!r}"
            return Detection(framework=found, reason=f"the command {command!r}{through}", certain=True)
        following = "\n".join(filter(None, (leads_to(files, line) for line in way[-1].splitlines())))
        if not following or following in way:
            return None
        way.append(following)
    return None


def _first_named(command: str) -> Framework | None:
    found = [
        (match.start(), known)
        for known in frameworks()
        for sign in known.signs.command
        if (match := sign.search(command))
    ]
    return min(found, key=lambda hit: hit[0])[1] if found else None


def _by_files(files: Folder) -> list[tuple[Framework, list[str]]]:
    """Each framework with some evidence, the strongest first."""
    needed = dependencies(files)
    paths = [path for path in files.walk() if _SKIPPED_FOLDERS.isdisjoint(path.split("/")[:-1])]
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
    signs = framework.signs
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
    named = (path for path in paths if any(_is_named(path, pattern) for pattern in framework.signs.tests))
    return list(itertools.islice(named, _MOST_TEST_FILES))


def _is_named(path: str, pattern: str) -> bool:
    return fnmatch.fnmatch(path if "/" in pattern else posixpath.basename(path), pattern)
