"""The sources that may be edited, their functions, and the live code objects behind them."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from reflex_inside.edits import Source

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)
FOREIGN_FOLDERS = frozenset(
    {"site-packages", "dist-packages", ".venv", "venv", "env", ".tox", ".nox", ".git", "node_modules", "__pycache__"}
)
TEST_FOLDERS = frozenset({"tests", "test", "testing"})
TEST_FILES = frozenset({"conftest.py", "setup.py", "noxfile.py"})


@dataclass(slots=True)
class Function:
    """An outermost function or method; functions inside it are part of it."""

    index: int
    path: str
    name: str
    owners: tuple[str, ...]
    node: FunctionNode
    live: dict[tuple[str, ...], list[FunctionType]] = field(default_factory=dict)
    """By the names from the function inwards: itself, and what is alive of the functions inside it."""

    @property
    def first_line(self) -> int:
        return self.node.decorator_list[0].lineno if self.node.decorator_list else self.node.lineno

    @property
    def last_line(self) -> int:
        return self.node.end_lineno or self.node.lineno

    @property
    def main(self) -> Any:
        """The function itself; not typed as one, because a checker would bind it like a method."""
        return self.live[(self.node.name,)][0]

    @property
    def namespace(self) -> dict[str, Any]:
        """The names of its module."""
        names: dict[str, Any] = self.main.__globals__
        return names


class Program:
    """All sources of a workspace that its tests have imported."""

    def __init__(self, root: str, paths: list[str]) -> None:
        self.root = root
        self.sources: dict[str, Source] = {}
        self.functions: list[Function] = []
        for path in paths:
            with contextlib.suppress(OSError, SyntaxError, ValueError), open(path, "rb") as stream:
                data = stream.read()
                data.decode("utf-8")
                self.sources[path] = Source(path, data)
        self.modules: dict[str, ModuleType] = {
            path: module for module in list(sys.modules.values()) if (path := _module_path(module)) in self.sources
        }
        live = self._live_functions()
        for source in self.sources.values():
            for node, owners in outermost_functions(source.tree.body, ()):
                self._add_function(source, node, owners, live)

    def _live_functions(self) -> dict[tuple[str, str, int], list[FunctionType]]:
        live: dict[tuple[str, str, int], list[FunctionType]] = {}
        for thing in gc.get_objects():
            if type(thing) is FunctionType and thing.__code__.co_filename in self.sources:
                code = thing.__code__
                live.setdefault((code.co_filename, code.co_name, code.co_firstlineno), []).append(thing)
        return live

    def _add_function(
        self,
        source: Source,
        node: FunctionNode,
        owners: tuple[str, ...],
        live: dict[tuple[str, str, int], list[FunctionType]],
    ) -> None:
        found: dict[tuple[str, ...], list[FunctionType]] = {}
        for inner, names in nested_functions(node, ()):
            first = inner.decorator_list[0].lineno if inner.decorator_list else inner.lineno
            alive = live.get((source.path, inner.name, first))
            if alive:
                found[names] = alive
        name = ".".join((*owners, node.name))
        if (node.name,) in found:
            self.functions.append(Function(len(self.functions), source.path, name, owners, node, found))

    def function_at(self, path: str, line: int) -> Function | None:
        for function in self.functions:
            if function.path == path and function.first_line <= line <= function.last_line:
                return function
        return None


def outermost_functions(
    body: list[ast.stmt], owners: tuple[str, ...]
) -> Iterator[tuple[FunctionNode, tuple[str, ...]]]:
    for node in body:
        if isinstance(node, FUNCTION_NODES):
            yield node, owners
        elif isinstance(node, ast.ClassDef):
            yield from outermost_functions(node.body, (*owners, node.name))
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                yield from outermost_functions(getattr(node, name, []), owners)
            for handler in getattr(node, "handlers", []):
                yield from outermost_functions(handler.body, owners)


def nested_functions(node: FunctionNode, outer: tuple[str, ...]) -> Iterator[tuple[FunctionNode, tuple[str, ...]]]:
    """The function and every function inside it, with the names that lead there."""
    names = (*outer, node.name)
    yield node, names
    pending: list[ast.AST] = list(node.body)
    while pending:
        inner = pending.pop()
        if isinstance(inner, FUNCTION_NODES):
            yield from nested_functions(inner, names)
        elif not isinstance(inner, (ast.ClassDef, ast.expr)):
            pending.extend(ast.iter_child_nodes(inner))


def definitions(body: list[ast.stmt], owners: tuple[str, ...]) -> Iterator[tuple[list[ast.stmt], int, tuple[str, ...]]]:
    """Assignments of modules and classes: their block, their place in it, and the classes they stand in."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef):
            yield from definitions(statement.body, (*owners, statement.name))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            yield body, place, owners


def _module_path(module: object) -> str:
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) else ""


def is_test_file(path: str, root: str) -> bool:
    """Whether the file belongs to the tests by its name or its folder."""
    *folders, name = os.path.relpath(path, root).split(os.sep)
    stem = name.removesuffix(".py")
    if name in TEST_FILES or stem.startswith("test_") or stem.endswith(("_test", "_tests")) or stem in TEST_FOLDERS:
        return True
    return any(folder in TEST_FOLDERS for folder in folders)


def editable_paths(root: str, tested: set[str]) -> list[str]:
    """Sources of the workspace that are imported now and are no tests.

    What lies in a folder of tests belongs to them, unless everything lies there.
    """
    found: list[str] = []
    for module in list(sys.modules.values()):
        path = _module_path(module)
        if is_own(path, root) and path not in tested and path not in found:
            found.append(path)
    folders = {os.path.dirname(path) for path in tested if _is_named_for_tests(os.path.dirname(path))} - {root}
    return [path for path in found if os.path.dirname(path) not in folders] or found


def _is_named_for_tests(folder: str) -> bool:
    words = re.split(r"[^a-z]+", os.path.basename(folder).lower())
    return any(word.startswith("test") for word in words)


def is_own(path: str, root: str) -> bool:
    """Whether the file is a source of the workspace and no test."""
    if not path.endswith(".py") or not path.startswith(root + os.sep):
        return False
    folders = os.path.relpath(path, root).split(os.sep)
    return not FOREIGN_FOLDERS.intersection(folders) and not is_test_file(path, root)
