"""Which failing tests can have to do with the sources that may be edited: by tracebacks, and by what files import."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from pawl.core.finding import Finding
from pawl.verify.recoveries.symbols import module_of


def reaching(findings: Sequence[Finding], targets: Sequence[str], sources: Mapping[str, str]) -> list[Finding]:
    """The failing tests whose traceback or file leads to one of the targets; all where none does, or none is given."""
    reached: dict[str, bool] = {}
    imports = Imports(sources)

    def leads(finding: Finding) -> bool:
        if any(place.path in targets for place in finding.frames) or finding.path in targets:
            return True
        file = test_file(finding, sources)
        if file not in reached:
            reached[file] = not file or not imports.within((file, *_conftests(file, sources))).isdisjoint(targets)
        return reached[file]

    return [finding for finding in findings if not targets or leads(finding)] or list(findings)


def test_file(finding: Finding, sources: Mapping[str, str]) -> str:
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


def _conftests(path: str, sources: Mapping[str, str]) -> list[str]:
    folders = PurePosixPath(path).parents
    return [name for folder in folders if (name := str(folder / "conftest.py")) in sources]


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
                tree = ast.parse(self._sources.get(path, ""))
            except (SyntaxError, ValueError, RecursionError):
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
