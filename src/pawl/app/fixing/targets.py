"""What the user points at: sources that may be edited, and tests that are to pass."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pawl.core.errors import UsageError
from pawl.core.finding import Finding

_PARTS = "::"
"""Stands between a test file and a test in it."""


@dataclass(frozen=True, slots=True)
class Aim:
    sources: tuple[str, ...] = ()
    """Files that may be edited; empty for all."""
    tests: tuple[str, ...] = ()
    """Files, folders or ids of tests that are to pass; empty for all."""

    def wants(self, finding: Finding) -> bool:
        return not self.tests or any(_belongs(finding, test) for test in self.tests)


def aim_at(targets: Sequence[str], files: Iterable[str]) -> Aim:
    """The targets as sources and tests; `UsageError` for one that is neither."""
    known = tuple(files) if targets else ()
    sources: list[str] = []
    tests: list[str] = []
    for target in targets:
        path = target.partition(_PARTS)[0]
        inside = [name for name in known if name == path or name.startswith(f"{path}/")]
        if not inside:
            raise UsageError(f"there is no {path!r} in the workspace", advice=_similar(path, known))
        python = [name for name in inside if name.endswith(".py")]
        if not python:
            raise UsageError(f"{path!r} holds no Python", advice="name sources that may be edited, or tests")
        editable = [name for name in python if not is_test(name)]
        if editable and _PARTS not in target:
            sources += editable
        else:
            tests.append(target)
    return Aim(tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(tests)))


def _similar(path: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(path, known, n=1) or [
        name for name in known if PurePosixPath(name).name == PurePosixPath(path).name
    ]
    return (
        f"did you mean {close[0]!r}?" if close else "name a file or folder that is there and that git does not ignore"
    )


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests, which are never edited."""
    name = PurePosixPath(path).name
    folders = PurePosixPath(path).parts[:-1]
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or "tests" in folders
        or "test" in folders
    )


def _belongs(finding: Finding, target: str) -> bool:
    """By the test's id; unittest names a module instead of its file, so there the traceback tells."""
    if finding.test == target or finding.test.startswith((f"{target}::", f"{target}[", f"{target}/")):
        return True
    if _PARTS in finding.test or _PARTS in target:
        return False
    outermost = finding.frames[0].path if finding.frames else finding.path
    return outermost == target or outermost.startswith(f"{target}/")
