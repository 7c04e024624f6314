"""Sources that may be edited, their functions and the live code behind them; candidates, which are edits of them."""

from __future__ import annotations
import __future__

import ast
import bisect
import contextlib
import gc
import heapq
import itertools
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The bytes from `start` to `end` of a file become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    cost: float
    template: str
    path: str
    edits: tuple[Edit, ...]
    function: int
    """The index of the function that has to be made anew for it to act; -1 for a whole module."""
    line: int
    seen: tuple[str, ...] = ()
    """The kinds of clues that its text holds."""
    clues: float = 0.0
    """The part of its cost that comes from them."""

    @property
    def at_import(self) -> bool:
        return self.function < 0

    @property
    def key(self) -> tuple[str, tuple[Edit, ...]]:
        return (self.path, self.edits)


class Source:
    """One file as bytes, tree and the places of its lines."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.tree = ast.parse(data, path)
        self.newline = "\r\n" if b"\r\n" in data else "\n"
        self.starts = [0, *(newline.end() for newline in re.finditer(b"\n", data))]
        link_parents(self.tree)

    @cached_property
    def futures(self) -> int:
        """The compiler flags of its `from __future__` imports."""
        names = [
            alias.name
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
            for alias in node.names
        ]
        flags: int = sum(getattr(__future__, name).compiler_flag for name in dict.fromkeys(names))
        return flags

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def line_end(self, line: int) -> int:
        """Where the line's newline stands, or the end of the file."""
        if line >= len(self.starts):
            return len(self.data)
        end = self.starts[line] - 1
        return end - 1 if end and self.data[end - 1] == 13 and self.newline == "\r\n" else end

    def span(self, node: ast.AST) -> tuple[int, int]:
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.offset(line, column), self.offset(end_line, end_column)

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode("utf-8", "replace")

    def line_of(self, position: int) -> int:
        return bisect.bisect_right(self.starts, position)

    def edited(self, edits: tuple[Edit, ...], start: int = 0, end: int | None = None) -> bytes:
        """The part from `start` to `end` with the edits made."""
        stop = len(self.data) if end is None else end
        parts: list[bytes] = []
        position = start
        for edit in sorted(edits):
            parts.append(self.data[position : edit.start])
            parts.append(edit.text.replace("\n", self.newline).encode())
            position = edit.end
        parts.append(self.data[position:stop])
        return b"".join(parts)

    def trimmed(self, edit: Edit) -> tuple[int, int, str]:
        """The edit without the bytes that it only repeats, in the file's own newlines."""
        old, new = self.data[edit.start : edit.end], edit.text.replace("\n", self.newline).encode()
        head = _alike(old, new)
        tail = _alike(old[head:][::-1], new[head:][::-1])
        text = new[head : len(new) - tail]
        # A cut inside a character of several bytes is no text: then the whole edit stands.
        try:
            return edit.start + head, edit.end - tail, text.decode()
        except UnicodeDecodeError:
            return edit.start, edit.end, new.decode()


def _alike(first: bytes, second: bytes) -> int:
    """How many bytes at their starts are the same."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def link_parents(tree: ast.AST) -> None:
    """Gives each node its `parent` and the field of it that it stands in."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    child.parent = node  # type: ignore[attr-defined]
                    child.field = name  # type: ignore[attr-defined]


def parent_of(node: ast.AST) -> ast.AST:
    return node.parent  # type: ignore[attr-defined, no-any-return]


def field_of(node: ast.AST) -> str:
    return node.field  # type: ignore[attr-defined, no-any-return]


MOST_REMEMBERED = 6000
Portion = tuple[float, Callable[[], list[Candidate]]]
"""A lower bound of the costs, and what makes the candidates."""


class Frontier:
    """A heap of candidates and of promises to make more; nothing comes out twice."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Candidate | Callable[[], list[Candidate]], float]] = []
        self.serial = itertools.count()
        self.least: dict[tuple[str, tuple[Edit, ...]], float] = {}
        """By what is edited: the cheapest cost so far, or less than any once it came out."""
        self.given: list[Candidate] = []
        """Those that came out, cheapest first."""

    def promise(self, portions: Iterable[Portion]) -> None:
        for bound, make in portions:
            heapq.heappush(self.heap, (bound, next(self.serial), make, 0.0))

    def add(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if candidate.cost < self.least.get(candidate.key, math.inf):
                self.least[candidate.key] = candidate.cost
                heapq.heappush(self.heap, (candidate.cost, next(self.serial), candidate, 0.0))

    def retry(self, candidate: Candidate, penalty: float, limit: float) -> None:
        """Puts a candidate back that deserves a longer limit."""
        heapq.heappush(self.heap, (candidate.cost + penalty, next(self.serial), candidate, limit))

    def next(self) -> tuple[Candidate, float] | None:
        """The cheapest candidate and the limit it asks for (0 for the usual one)."""
        while self.heap:
            _, _, item, limit = heapq.heappop(self.heap)
            if isinstance(item, Candidate):
                if not limit and item.cost > self.least[item.key]:
                    continue
                self.least[item.key] = -math.inf
                if not limit and len(self.given) < MOST_REMEMBERED:
                    self.given.append(item)
                return item, limit
            self.add(item())
        return None

    @property
    def bound(self) -> float:
        return self.heap[0][0] if self.heap else float("inf")


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)
FOREIGN_FOLDERS = frozenset(
    {"site-packages", "dist-packages", ".venv", "venv", "env", ".tox", ".nox", ".git", "node_modules", "__pycache__"}
)
TOOL_FILES = frozenset({"setup.py", "noxfile.py"})


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


def blocks_in(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks that a statement holds."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for name in ("handlers", "cases"):
        yield from (part.body for part in getattr(statement, name, []))


def outermost_functions(
    body: list[ast.stmt], owners: tuple[str, ...]
) -> Iterator[tuple[FunctionNode, tuple[str, ...]]]:
    for node in body:
        if isinstance(node, FUNCTION_NODES):
            yield node, owners
        elif isinstance(node, ast.ClassDef):
            yield from outermost_functions(node.body, (*owners, node.name))
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for block in blocks_in(node):
                yield from outermost_functions(block, owners)


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


def editable_paths(root: str, pattern: str, tested: set[str]) -> list[str]:
    """Sources of the workspace that are imported now and are no tests.

    What lies in a folder of tests belongs to them, unless everything lies there.
    """
    found: list[str] = []
    for module in list(sys.modules.values()):
        path = _module_path(module)
        if is_own(path, root, pattern) and path not in tested and path not in found:
            found.append(path)
    folders = {os.path.dirname(path) for path in tested if _is_named_for_tests(os.path.dirname(path))} - {root}
    return [path for path in found if os.path.dirname(path) not in folders] or found


def _is_named_for_tests(folder: str) -> bool:
    words = re.split(r"[^a-z]+", os.path.basename(folder).lower())
    return any(word.startswith("test") for word in words)


def is_own(path: str, root: str, pattern: str) -> bool:
    """Whether the file is a source of the workspace and no test, which the pattern matches."""
    if not path.endswith(".py") or not path.startswith(root + os.sep):
        return False
    parts = os.path.relpath(path, root).split(os.sep)
    if FOREIGN_FOLDERS.intersection(parts) or parts[-1] in TOOL_FILES:
        return False
    return re.match(pattern, "/".join(parts)) is None


NUMBERS = frozenset({"int", "float", "bool", "Fraction", "Decimal", "complex"})
SEQUENCES = frozenset({"list", "str", "tuple", "bytes"})
SIZED = frozenset({"list", "str", "tuple", "dict", "set", "deque", "bytes", "frozenset", "Counter", "defaultdict"})
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
SIMPLE_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise)
LONGEST_INGREDIENT = 60
UNUSABLE = (ast.Constant, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.Slice)
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
    """Functions that the file calls, and how many arguments they are given."""
    uncalled: dict[str, int] = field(default_factory=dict)
    """Functions that it has and never calls, and how many they need."""
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
    facts.uncalled = {
        each.name: len(each.args.args) - len(each.args.defaults)
        for each in (*tree.body, *ast.walk(node))
        if isinstance(each, ast.FunctionDef) and each is not node and each.name not in facts.callees
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
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if isinstance(node, ast.expr) and loaded and not isinstance(node, UNUSABLE):
            text = ast.unparse(node)
            if len(text) < LONGEST_INGREDIENT:
                facts.ingredients.setdefault(text, node)
        if isinstance(node, SIMPLE_STATEMENTS) and not is_document(node) and (node.end_lineno or 0) - node.lineno < 3:
            statements.setdefault(ast.unparse(node), node)
    facts.conditions = list(conditions)
    facts.statements = list(statements.values())[:25]


def is_document(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
