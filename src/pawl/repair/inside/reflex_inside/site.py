"""The place a template looks at, and the proposals it makes there."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflex_inside.program import Edit, Facts, Source, field_of, parent_of

ATOMS = (
    ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.ListComp,
    ast.SetComp, ast.DictComp,
)  # fmt: skip
TIGHT_PARENTS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Attribute, ast.IfExp, ast.Starred, ast.Await,
    ast.comprehension,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit with what speaks against it, before the suspicion of its line is counted in."""

    cost: float
    template: str
    edits: tuple[Edit, ...]
    line: int


Proposals = Iterator[Proposal]
Template = Callable[["Site", Any], Proposals]
"""Makes proposals for a node of its own type."""
RULES: dict[str, Any] = json.loads(Path(__file__).with_name("rules.json").read_text("utf-8"))
"""Things that are easily taken for each other, and forms that a piece of code may take."""


def atomic(node: ast.expr) -> bool:
    return isinstance(node, ATOMS)


def enclosed(node: ast.expr) -> str:
    """The expression's text, in parentheses unless it binds tightly."""
    text = ast.unparse(node)
    return text if atomic(node) else f"({text})"


def needs_parentheses(node: ast.AST, text: str) -> bool:
    parent = parent_of(node)
    tight = isinstance(parent, TIGHT_PARENTS) or (
        isinstance(parent, (ast.Subscript, ast.Call)) and field_of(node) in {"value", "func"}
    )
    if not tight:
        return False
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError:
        return True
    return not atomic(parsed)


class Site:
    """An expression or statement with the facts about its function."""

    def __init__(self, facts: Facts, node: ast.AST) -> None:
        self.facts = facts
        self.node = node
        self.source = facts.source
        self.parent = parent_of(node)
        self.scope = facts.scope(node)

    def replace(self, cost: float, template: str, text: str | ast.expr, node: ast.AST | None = None) -> Proposals:
        """One proposal to put `text` where the node is, if that changes anything."""
        old = self.node if node is None else node
        new = text if isinstance(text, str) else self.source.text(text)
        if new == ast.unparse(old):
            return
        if needs_parentheses(old, new):
            new = f"({new})"
        start, end = self.source.span(old)
        yield Proposal(cost, template, (Edit(start, end, new),), getattr(old, "lineno", 0))

    def each(self, cost: float, template: str, texts: Iterable[str]) -> Proposals:
        """A proposal for each of the texts."""
        for text in texts:
            yield from self.replace(cost, template, text)

    def forms(self, rule: str, extra: float = 0.0, **parts: str) -> Proposals:
        """The forms of a rule, filled with the node's own text and these parts of it."""
        for cost, template, form in RULES["forms"][rule]:
            yield from self.replace(cost + extra, template, form.format(node=ast.unparse(self.node), **parts))

    def between(
        self, cost: float, template: str, sides: tuple[ast.expr, ast.expr], words: tuple[str, str]
    ) -> Proposals:
        """Replaces an operator, which has no node with a place, between its two sides."""
        old, new = words
        start, end = self.source.span(sides[0])[1], self.source.span(sides[1])[0]
        gap = self.source.data[start:end].decode("utf-8", "replace")
        position, length = _find_words(gap, old)
        if position < 0:
            return
        if new[0].isalpha() and not gap[:position].endswith((" ", ")", "\n")):
            new = f" {new}"
        if new[-1].isalpha() and not gap[position + length :].startswith((" ", "(", "\n")):
            new = f"{new} "
        first = start + len(gap[:position].encode())
        yield Proposal(cost, template, (Edit(first, first + length, new),), sides[0].lineno)


def _find_words(gap: str, old: str) -> tuple[int, int]:
    first, *rest = old.split()
    position = gap.find(first)
    if position < 0 or not rest:
        return position, len(first)
    end = gap.find(rest[0], position + len(first))
    return (position, end + len(rest[0]) - position) if end >= 0 else (-1, 0)


def first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return int(decorators[0].lineno) if decorators else statement.lineno


def last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def indentation(source: Source, statement: ast.stmt) -> str:
    start = source.starts[statement.lineno - 1]
    line = source.data[start : source.line_end(statement.lineno)].decode("utf-8", "replace")
    return line[: len(line) - len(line.lstrip())]


def alone(source: Source, statement: ast.stmt) -> bool:
    """Whether nothing else stands on the statement's lines."""
    start = source.starts[first_line(statement) - 1]
    before = source.data[start : start + statement.col_offset]
    end = source.offset(last_line(statement), statement.end_col_offset or 0)
    after = source.data[end : source.line_end(last_line(statement))].strip()
    return not before.strip() and (not after or after.startswith(b"#"))


def text_of(source: Source, statement: ast.stmt, indent: str = "") -> str:
    """The statement's lines, moved to another indentation."""
    own = len(indentation(source, statement))
    lines = []
    for number in range(first_line(statement), last_line(statement) + 1):
        line = source.data[source.starts[number - 1] : source.line_end(number)].decode("utf-8", "replace")
        lines.append(indent + line[own:] if line.strip() else "")
    return "\n".join(lines)


def indented(code: str, indent: str) -> str:
    return "\n".join(indent + line for line in code.split("\n"))


class Lines:
    """Makes proposals that replace or insert whole lines at a statement."""

    def __init__(self, source: Source, statement: ast.stmt) -> None:
        self.source = source
        self.statement = statement
        self.indent = indentation(source, statement)

    def become(self, cost: float, template: str, code: str, until: ast.stmt | None = None) -> Proposals:
        """The statement's lines, through those of `until`, become this code (already indented)."""
        start = self.source.starts[first_line(self.statement) - 1]
        end = self.source.line_end(last_line(until or self.statement))
        if self.source.data[start:end].decode("utf-8", "replace") != code:
            yield Proposal(cost, template, (Edit(start, end, code),), self.statement.lineno)

    def forms(self, rule: str, **parts: str) -> Proposals:
        """The forms of a rule in the place of the statement, filled with these parts of it."""
        for cost, template, form in RULES["statements"][rule]:
            yield from self.become(cost, template, self.indent + form.format(**parts))

    def before(self, cost: float, template: str, code: str) -> Proposals:
        start = self.source.starts[first_line(self.statement) - 1]
        yield Proposal(cost, template, (Edit(start, start, indented(code, self.indent) + "\n"),), self.statement.lineno)

    def after(self, cost: float, template: str, code: str) -> Proposals:
        end = self.source.line_end(last_line(self.statement))
        yield Proposal(cost, template, (Edit(end, end, "\n" + indented(code, self.indent)),), last_line(self.statement))
