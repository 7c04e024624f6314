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

from reflex_inside.edits import Source, parent_of

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


NUMBERS = frozenset({"int", "float", "bool", "Fraction", "Decimal", "complex"})
SEQUENCES = frozenset({"list", "str", "tuple", "bytes"})
SIZED = frozenset({"list", "str", "tuple", "dict", "set", "deque", "bytes", "frozenset", "Counter", "defaultdict"})
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
SIMPLE_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise)
LONGEST_INGREDIENT = 60
RESULT_TYPES = {
    "len": "int", "sum": "int", "int": "int", "str": "str", "list": "list", "sorted": "list", "set": "set",
    "abs": "int", "ord": "int", "round": "int", "chr": "str", "float": "float", "bool": "bool", "tuple": "tuple",
    "dict": "dict", "repr": "str",
}  # fmt: skip


@dataclass(slots=True)
class Facts:
    source: Source
    function: Function
    types: dict[str, frozenset[str]] = field(default_factory=dict)
    attributes: dict[str, list[str]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    """Strings that the failing tests mention."""
    others: list[Source] = field(default_factory=list)
    """The other files of the program."""
    names: list[str] = field(default_factory=list)
    inner_names: frozenset[str] = frozenset()
    """Names that only comprehensions bind."""
    callees: dict[str, int] = field(default_factory=dict)
    module_attributes: list[str] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ingredients: dict[str, ast.expr] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)

    def type_of(self, name: str) -> frozenset[str]:
        return self.types.get(name, frozenset())

    def guess(self, node: ast.expr) -> frozenset[str]:
        """The types an expression seems to have; empty when nothing is known."""
        match node:
            case ast.Name():
                return self.type_of(node.id)
            case ast.Constant():
                return frozenset({type(node.value).__name__})
            case ast.Compare():
                return frozenset({"bool"})
            case ast.List() | ast.ListComp():
                return frozenset({"list"})
            case ast.Call(func=ast.Name(id=name)) if name in RESULT_TYPES:
                return frozenset({RESULT_TYPES[name]})
            case ast.Attribute(value=ast.Name(id=owner)):
                return self.type_of(f"{owner}.{node.attr}")
            case ast.BinOp():
                left, right = self.guess(node.left), self.guess(node.right)
                return (left & right) or (left if left <= NUMBERS and right <= NUMBERS else frozenset())
            case ast.Subscript(slice=ast.Slice()):
                return self.guess(node.value)
        return frozenset()

    def numeric(self, node: ast.expr) -> bool:
        """Whether the expression may be a number."""
        types = self.guess(node)
        return not types or bool(types & NUMBERS)

    def distance(self, first: str, second: str) -> float:
        """How unlikely it is that one name stands where the other should."""
        one, other = self.type_of(first), self.type_of(second)
        if not one or not other:
            return 0.7
        if one & other:
            return 0.0
        return 0.6 if one | other <= NUMBERS or one | other <= SEQUENCES else 2.5

    def scope(self, node: ast.AST) -> list[str]:
        """The variables that can be read at the node."""
        names = [name for name in self.names if name not in self.inner_names]
        while node is not self.function.node and hasattr(node, "parent"):
            node = parent_of(node)
            if isinstance(node, COMPREHENSIONS):
                for generator in node.generators:
                    names += [n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)]
        return list(dict.fromkeys(names))

    def outer_scope(self) -> list[str]:
        return [name for name in self.names if name not in self.inner_names]


def gather_facts(facts: Facts) -> Facts:
    """Fills in what the text of the function and its module says."""
    node, tree = facts.function.node, facts.source.tree
    facts.names = _bound_names(node) + _own_attributes(facts)
    facts.inner_names = frozenset(
        name.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.comprehension)
        for name in ast.walk(inner.target)
        if isinstance(name, ast.Name)
    )
    facts.callees = {
        call.func.id: len(call.args)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    facts.module_attributes = sorted({each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)})
    constants = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    document = ast.get_docstring(node, clean=False)
    facts.integers = sorted({value for value in constants if type(value) is int})
    facts.texts = sorted({v for v in constants if isinstance(v, str) and len(v) < 60 and v != document})
    facts.strings = [text for text in facts.strings if text not in facts.texts][:40]
    _gather_pieces(facts)
    return facts


def _bound_names(node: ast.AST) -> list[str]:
    names: dict[str, None] = {}
    for inner in ast.walk(node):
        match inner:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                names[name] = None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if inner is not node:
                    names[name] = None
    return list(names)


def _own_attributes(facts: Facts) -> list[str]:
    """`self.x` for the attributes of data that the class is seen to use."""
    if not facts.function.owners or not facts.function.node.args.args:
        return []
    own = facts.function.node.args.args[0].arg
    used = {
        f"{own}.{each.attr}"
        for each in ast.walk(facts.source.tree)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == own
    }
    return sorted(name for name in used if name in facts.types)[:10]


def _gather_pieces(facts: Facts) -> None:
    conditions: dict[str, None] = {}
    statements: dict[str, ast.stmt] = {}
    for node in ast.walk(facts.function.node):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            conditions[ast.unparse(node.test)] = None
        if isinstance(node, ast.Compare):
            conditions[ast.unparse(node)] = None
        if isinstance(node, ast.expr) and _reusable(node):
            text = ast.unparse(node)
            if len(text) < LONGEST_INGREDIENT:
                facts.ingredients.setdefault(text, node)
        if isinstance(node, SIMPLE_STATEMENTS) and not is_document(node) and (node.end_lineno or 0) - node.lineno < 3:
            statements.setdefault(ast.unparse(node), node)
    facts.conditions = list(conditions)
    facts.statements = list(statements.values())[:25]


def _reusable(node: ast.expr) -> bool:
    if isinstance(node, (ast.Constant, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.Slice)):
        return False
    return not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


def is_document(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
