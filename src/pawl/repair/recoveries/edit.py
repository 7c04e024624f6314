"""A candidate: text edits that may make a finding go away, and why; and the source that they are made in."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pawl.core.diagnostic import Diagnostic
from pawl.core.formats import Unreadable, read_python
from pawl.repair.recoveries.symbols import Symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryEdit:
    """The characters from `start` up to `end` of a file's text give way to `new`."""

    path: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCandidate:
    """What could be done; without edits it is advice to a person."""

    why: str
    edits: tuple[RecoveryEdit, ...] = ()
    recovery: str = ""
    """The map's entry that led here."""
    is_choice: bool = False
    """Another candidate of the same kind may be meant as well, and only what verification says can tell."""

    def applied(self, sources: Mapping[str, str]) -> dict[str, str]:
        """The texts of the files that the candidate changes, changed."""
        changed: dict[str, str] = {}
        for edit in sorted(self.edits, key=lambda edit: (edit.path, -edit.start)):
            text = changed.get(edit.path, sources[edit.path])
            changed[edit.path] = text[: edit.start] + edit.new + text[edit.end :]
        return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySituation:
    """What a recovery works with: the finding, what its message names, the sources and the project's symbols."""

    finding: Diagnostic
    groups: Mapping[str, str]
    """The named groups of the pattern that were found in the message."""
    sources: Mapping[str, str]
    symbols: Symbols
    advice: str = ""
    declared: frozenset[str] = frozenset()
    """The packages that the project says it needs."""

    @property
    def source(self) -> PythonSource | None:
        """The file of the finding; None when its text is not known."""
        text = self.sources.get(self.finding.path)
        return None if text is None else PythonSource(self.finding.path, text)


class PythonSource:
    """A Python file's text, by lines, words and syntax tree."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self._offsets = [0]
        for line in self.lines:
            self._offsets.append(self._offsets[-1] + len(line))

    def line(self, number: int) -> str:
        """A line without its end, counted from 1; empty when there is none."""
        return self.lines[number - 1].rstrip("\r\n") if 0 < number <= len(self.lines) else ""

    def offset(self, number: int, column: int = 0) -> int:
        return self._offsets[min(max(number - 1, 0), len(self.lines))] + column

    def indentation(self, number: int) -> str:
        line = self.line(number)
        return line[: len(line) - len(line.lstrip())]

    def tree(self) -> ast.Module | None:
        try:
            tree: ast.Module = read_python(self.text)
            return tree
        except Unreadable:
            return None

    def edit(self, start: int, end: int, new: str) -> RecoveryEdit:
        return RecoveryEdit(path=self.path, start=start, end=end, new=new)

    def replace_line(self, number: int, new: str) -> RecoveryEdit:
        start = self.offset(number)
        return self.edit(start, start + len(self.line(number)), new)

    def words(self, word: str, first: int, last: int | None = None) -> Iterator[int]:
        """Where a word stands in these lines, outside of strings and comments."""
        skipped = self._quoted()
        start, end = self.offset(first), self.offset((last or first) + 1)
        for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", self.text[start:end]):
            position = start + match.start()
            if not any(begin <= position < finish for begin, finish in skipped):
                yield position

    def _quoted(self) -> list[tuple[int, int]]:
        """The spans of strings and comments, as far as the text can be split into tokens."""
        spans = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type in (tokenize.STRING, tokenize.COMMENT):
                    spans.append((self.offset(*token.start), self.offset(*token.end)))
        except (tokenize.TokenError, SyntaxError):
            return spans
        return spans

    def statement(self, number: int) -> tuple[int, int]:
        """The first and the last line of the smallest statement around a line."""
        tree = self.tree()
        found = (number, number)
        smallest = len(self.lines) + 1
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or node.lineno):
                length = (node.end_lineno or node.lineno) - node.lineno
                if length < smallest:
                    smallest, found = length, (node.lineno, node.end_lineno or node.lineno)
        return found

    def function_around(self, number: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function that holds the line."""
        tree = self.tree()
        around = [
            node
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.lineno <= number <= (node.end_lineno or node.lineno)
        ]
        return max(around, key=lambda node: node.lineno, default=None)


def renamed(situation: RecoverySituation, old: str, meant: Iterable[str], why: str) -> Iterator[RecoveryCandidate]:
    """The word on the finding's line, or in its statement, under each of the other names."""
    source = situation.source
    if source is None:
        return
    line = situation.finding.line
    positions = list(source.words(old, line)) or list(source.words(old, *source.statement(line)))
    for name in dict.fromkeys(meant):
        if positions and name != old:
            edits = tuple(source.edit(position, position + len(old), name) for position in positions)
            yield RecoveryCandidate(why=why.format(old=old, new=name), edits=edits)
