"""What the user points at: sources that may be edited, and tests that are to pass."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Sequence
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


def aim_at(targets: Sequence[str], files: Iterable[str], read: Callable[[str], bytes]) -> Aim:
    """The targets as sources and tests; `UsageError` for one that is neither, or names a test that is not there."""
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
            _check_name(target, read)
            tests.append(target)
    return Aim(tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(tests)))


def _check_name(target: str, read: Callable[[str], bytes]) -> None:
    """Refuses a test's id that names nothing in its file; what a file or a class may get from elsewhere is let pass."""
    path, *names = target.partition("[")[0].split(_PARTS)
    try:
        body: list[ast.stmt] = ast.parse(read(path)).body if names else []
    except (SyntaxError, ValueError, RecursionError):
        return
    for name in names:
        nodes = [node for statement in body for node in ast.walk(statement)]
        named = [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
        found = next((node for node in named if node.name == name), None)
        if found is None:
            imported = any(
                alias.name == "*" or (alias.asname or alias.name) == name
                for node in nodes
                if isinstance(node, ast.ImportFrom | ast.Import)
                for alias in node.names
            )
            if imported:
                return
            close = difflib.get_close_matches(name, [node.name for node in named], n=1)
            advice = f"did you mean {close[0]!r}?" if close else "name a test as the list of failing ones does"
            raise UsageError(f"there is no test {name!r} in {path!r}", advice=advice)
        if isinstance(found, ast.ClassDef) and found.bases:
            return
        body = list(found.body)


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
