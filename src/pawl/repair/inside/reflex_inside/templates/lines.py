"""Whole statements as text: their lines, indentation, and edits that replace or insert them."""

from __future__ import annotations

import ast

from reflex_inside.edits import Edit, Source
from reflex_inside.templates.site import Proposal, Proposals


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

    def before(self, cost: float, template: str, code: str) -> Proposals:
        start = self.source.starts[first_line(self.statement) - 1]
        yield Proposal(cost, template, (Edit(start, start, indented(code, self.indent) + "\n"),), self.statement.lineno)

    def after(self, cost: float, template: str, code: str) -> Proposals:
        end = self.source.line_end(last_line(self.statement))
        yield Proposal(cost, template, (Edit(end, end, "\n" + indented(code, self.indent)),), last_line(self.statement))
