"""Which failing tests can have to do with the sources that may be edited: by tracebacks, and by what files import."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from pawl.code.import_map import Resolver, python_imports
from pawl.code.languages import is_test
from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import UsageError
from pawl.core.formats import Unreadable, read_python
from pawl.core.lazy_dataclass import dataclass
from pawl.repair.recoveries.source import module_of


def reaching(findings: Sequence[Diagnostic], targets: Sequence[str], sources: Mapping[str, str]) -> list[Diagnostic]:
    """The failing tests whose traceback or file leads to one of the targets; all where none does, or none is given."""
    if not targets:
        return list(findings)
    resolver = Resolver(sources)

    def beside(path: str, name: str) -> list[str]:
        """The files of this name in the folders above."""
        return [one for folder in PurePosixPath(path).parents if (one := str(folder / name)) in sources]

    @functools.cache
    def imported(path: str) -> list[str]:
        named = python_imports(sources.get(path, ""))
        found = [target for module, names in named for target in resolver.targets(path, module, names)]
        return [*found, *(package for target in found for package in beside(target, "__init__.py"))]

    @functools.cache
    def leads(file: str) -> bool:
        return not file or not set(targets).isdisjoint(reached((file, *beside(file, "conftest.py")), imported))

    def concerned(finding: Diagnostic) -> bool:
        named = {finding.path, *(place.path for place in finding.frames)}
        return not named.isdisjoint(targets) or leads(test_file(finding, sources))

    return list(filter(concerned, findings)) or list(findings)


def reached(starts: Iterable[str], imported: Callable[[str], Iterable[str]]) -> list[str]:
    """These files and all that they import, directly or not, the nearest first."""
    seen = dict.fromkeys(starts)
    waiting = list(seen)
    while waiting:
        for target in imported(waiting.pop(0)):
            if target not in seen:
                seen[target] = None
                waiting.append(target)
    return list(seen)


def test_file(finding: Diagnostic, sources: Mapping[str, str]) -> str:
    """The file of a failing test; unittest names its module instead. Empty when it cannot be told."""
    path = finding.test.split("::")[0]
    if path in sources:
        return path
    modules = {module_of(source): source for source in sources}
    parts = finding.test.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in modules:
            return modules[".".join(parts[:length])]
    return finding.frames[0].path if finding.frames else ""


_PARTS = "::"
"""Stands between a test file and a test in it."""


@dataclass(frozen=True, slots=True)
class FixTarget:
    sources: tuple[str, ...] = ()
    """Files that may be edited; empty for all."""
    tests: tuple[str, ...] = ()
    """Files, folders or ids of tests that are to pass; empty for all."""

    def wants(self, finding: Diagnostic) -> bool:
        return not self.tests or any(_belongs(finding, test) for test in self.tests)


def aim_at(targets: Sequence[str], files: Iterable[str], read: Callable[[str], bytes]) -> FixTarget:
    """The targets as sources and tests; `UsageError` for one that is neither, or names a test that is not there."""
    known = tuple(files) if targets else ()
    sources: list[str] = []
    tests: list[str] = []
    for target in targets:
        path = target.partition(_PARTS)[0]
        python = [name for name in files_of(path, known) if name.endswith(".py")]
        if not python:
            raise UsageError(f"{path!r} holds no Python", advice="name sources that may be edited, or tests")
        editable = [name for name in python if not is_test(name)]
        if editable and _PARTS not in target:
            sources += editable
        else:
            _check_name(target, read)
            tests.append(target)
    return FixTarget(tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(tests)))


def files_of(path: str, known: Sequence[str]) -> list[str]:
    """The file itself or those of the folder; `UsageError` where there is none."""
    inside = [name for name in known if name == path or name.startswith(f"{path}/")]
    if not inside:
        raise UsageError(f"there is no {path!r} in the workspace", advice=_similar(path, known))
    return inside


def _check_name(target: str, read: Callable[[str], bytes]) -> None:
    """Refuses a test's id that names nothing in its file; what a file or a class may get from elsewhere is let pass."""
    path, *names = target.partition("[")[0].split(_PARTS)
    try:
        body: list[ast.stmt] = read_python(read(path)).body if names else []
    except Unreadable:
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


def _belongs(finding: Diagnostic, target: str) -> bool:
    """By the test's id; unittest names a module instead of its file, so there the traceback tells."""
    if finding.test == target or finding.test.startswith((f"{target}::", f"{target}[", f"{target}/")):
        return True
    if _PARTS in finding.test or _PARTS in target:
        return False
    outermost = finding.frames[0].path if finding.frames else finding.path
    return outermost == target or outermost.startswith(f"{target}/")
