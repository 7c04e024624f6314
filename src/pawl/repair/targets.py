"""Which failing tests can have to do with the sources that may be edited: by tracebacks, and by what files import."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import UsageError
from pawl.core.formats import Unreadable, read_python
from pawl.repair.recoveries.source import module_of


def reaching(findings: Sequence[Diagnostic], targets: Sequence[str], sources: Mapping[str, str]) -> list[Diagnostic]:
    """The failing tests whose traceback or file leads to one of the targets; all where none does, or none is given."""
    reached: dict[str, bool] = {}
    imports = Imports(sources)

    def leads(finding: Diagnostic) -> bool:
        if any(place.path in targets for place in finding.frames) or finding.path in targets:
            return True
        file = test_file(finding, sources)
        if file not in reached:
            conftests = [str(folder / "conftest.py") for folder in PurePosixPath(file).parents]
            near = (file, *(name for name in conftests if name in sources))
            reached[file] = not file or not imports.within(near).isdisjoint(targets)
        return reached[file]

    return [finding for finding in findings if not targets or leads(finding)] or list(findings)


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


class Imports:
    """Which files of a workspace import which; a name that ends like a module of it is taken for that module."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._found: dict[str, set[str]] = {}
        self._ends: dict[str, set[str]] = {}
        for path in sources:
            parts = module_of(path).split(".")
            for start in range(len(parts)):
                self._ends.setdefault(".".join(parts[start:]), set()).add(path)

    def within(self, paths: Iterable[str]) -> set[str]:
        """These files and all that they import, directly or not."""
        seen: set[str] = set()
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                waiting += self._of(path)
        return seen

    def _of(self, path: str) -> set[str]:
        if path not in self._found:
            try:
                tree = read_python(self._sources.get(path, ""))
            except Unreadable:
                tree = ast.Module(body=[], type_ignores=[])
            named = (name for node in ast.walk(tree) for name in _imported(node))
            self._found[path] = {file for name in named for file in self._ends.get(name, ())}
        return self._found[path]


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules that a statement may import, with the packages around them."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        start = f"{node.module}." if node.module else ""
        names = [f"{start}{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.replace(".", "_").isidentifier():
        # Modules are also loaded by name: `importlib.import_module("shop.cart")`.
        names = [node.value]
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:length]) for length in range(len(parts), 0, -1))


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


def _belongs(finding: Diagnostic, target: str) -> bool:
    """By the test's id; unittest names a module instead of its file, so there the traceback tells."""
    if finding.test == target or finding.test.startswith((f"{target}::", f"{target}[", f"{target}/")):
        return True
    if _PARTS in finding.test or _PARTS in target:
        return False
    outermost = finding.frames[0].path if finding.frames else finding.path
    return outermost == target or outermost.startswith(f"{target}/")
