"""Candidates: a source with a few byte spans replaced, and how much is thought against each."""

from __future__ import annotations

import ast
import heapq
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The bytes from `start` to `end` of a file become `text`."""

    start: int
    end: int
    text: str


class Reach(Enum):
    """What has to be made anew for a candidate to act."""

    FUNCTION = "function"
    IMPORT = "import"
    MODULE = "module"


@dataclass(frozen=True, slots=True)
class Candidate:
    cost: float
    template: str
    path: str
    edits: tuple[Edit, ...]
    function: int
    """The index of the function it lies in, or -1."""
    line: int
    reach: Reach = Reach.FUNCTION

    @property
    def key(self) -> tuple[str, tuple[Edit, ...]]:
        return (self.path, self.edits)

    @property
    def size(self) -> int:
        return sum(len(edit.text) + edit.end - edit.start for edit in self.edits)


class Source:
    """One file as bytes, tree and the places of its lines."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.tree = ast.parse(data, path)
        self.newline = "\r\n" if b"\r\n" in data else "\n"
        self.starts = [0]
        for position, byte in enumerate(data):
            if byte == 10:
                self.starts.append(position + 1)
        link_parents(self.tree)

    @cached_property
    def futures(self) -> int:
        """The compiler flags of its `from __future__` imports."""
        import __future__

        flags = 0
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for alias in node.names:
                    flags |= getattr(__future__, alias.name).compiler_flag
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
        low, high = 0, len(self.starts)
        while low + 1 < high:
            middle = (low + high) // 2
            if self.starts[middle] <= position:
                low = middle
            else:
                high = middle
        return low + 1

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
        head = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        text = new[head : len(new) - tail]
        # A cut inside a character of several bytes is no text: then the whole edit stands.
        try:
            return edit.start + head, edit.end - tail, text.decode()
        except UnicodeDecodeError:
            return edit.start, edit.end, new.decode()


def link_parents(tree: ast.AST) -> None:
    """Gives each node its `parent` and the field of it that it stands in."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    child.parent = node  # type: ignore[attr-defined]
                    child.field = field  # type: ignore[attr-defined]


def parent_of(node: ast.AST) -> ast.AST:
    return node.parent  # type: ignore[attr-defined, no-any-return]


def field_of(node: ast.AST) -> str:
    return node.field  # type: ignore[attr-defined, no-any-return]


def statement_of(node: ast.AST) -> ast.stmt:
    while not isinstance(node, ast.stmt):
        node = parent_of(node)
    return node


MOST_REMEMBERED = 6000
Portion = tuple[float, Callable[[], list[Candidate]]]


class Frontier:
    """A heap of candidates and of promises to make more; nothing comes out twice."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Candidate | Callable[[], list[Candidate]], float]] = []
        self.serial = itertools.count()
        self.least: dict[tuple[str, tuple[Edit, ...]], float] = {}
        """By what is edited: the cheapest cost so far, or less than any once it came out."""
        self.given: list[Candidate] = []
        """What came out, cheapest first."""

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
