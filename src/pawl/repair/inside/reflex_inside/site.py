"""The place a template looks at, the proposals it makes there, and the edits that an exception's text asks for."""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from reflex_inside.processes import Catch
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


UNKNOWN_NAME = re.compile(r"(?:name|free variable|cannot access \w+ variable|local variable) '(\w+)'")
UNKNOWN_ATTRIBUTE = re.compile(r"(?:'[\w.]+' object|module '[\w.]+'|type object '\w+') has no attribute '(\w+)'")
UNKNOWN_KEYWORD = re.compile(r"got an unexpected keyword argument '(\w+)'")
IMPORT_TEMPLATE = "missing import"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The kind and the words of an exception."""

    kind: str
    message: str


def diagnosed(facts: Facts, diagnoses: list[Diagnosis]) -> Proposals:
    for diagnosis in diagnoses:
        name = UNKNOWN_NAME.match(diagnosis.message)
        if diagnosis.kind in {"NameError", "UnboundLocalError"} and name:
            yield from _unknown_name(facts, name.group(1))
        attribute = UNKNOWN_ATTRIBUTE.match(diagnosis.message)
        if diagnosis.kind == "AttributeError" and attribute:
            yield from _unknown_attribute(facts, attribute.group(1))
        keyword = UNKNOWN_KEYWORD.search(diagnosis.message)
        if diagnosis.kind == "TypeError" and keyword:
            yield from _unknown_keyword(facts, keyword.group(1))


def _unknown_name(facts: Facts, bad: str) -> Proposals:
    defined = [node.name for node in facts.source.tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    known = [name for name in dict.fromkeys([*facts.names, *defined, *facts.callees, *dir(builtins)]) if name != bad]
    close = difflib.get_close_matches(bad, known, 5, 0.5)
    owner = facts.function.node.args.args[0].arg if facts.function.owners and facts.function.node.args.args else ""
    found = False
    for node in ast.walk(facts.function.node):
        if isinstance(node, ast.Name) and node.id == bad and isinstance(node.ctx, ast.Load):
            found = True
            site = Site(facts, node)
            for rank, name in enumerate(close):
                yield from site.replace(0.6 + 0.2 * rank, "did you mean", name)
            if owner:
                yield from site.replace(0.7, "missing self", f"{owner}.{bad}")
    if found:
        place = import_offset(facts)
        for statement in imports_of(bad):
            yield Proposal(0.3, IMPORT_TEMPLATE, (Edit(place, place, statement + "\n"),), facts.function.node.lineno)


def _unknown_attribute(facts: Facts, bad: str) -> Proposals:
    common = {name for kind in (str, list, dict, set) for name in dir(kind) if not name.startswith("_")}
    for node in ast.walk(facts.function.node):
        if isinstance(node, ast.Attribute) and node.attr == bad:
            own = facts.attributes.get(ast.unparse(node.value), [])
            known = (set(own) | set(facts.module_attributes) | common) - {bad}
            site = Site(facts, node)
            for rank, name in enumerate(difflib.get_close_matches(bad, sorted(known), 6, 0.5)):
                yield from site.replace(0.6 + 0.2 * rank, "did you mean", f"{ast.unparse(node.value)}.{name}")


def _unknown_keyword(facts: Facts, bad: str) -> Proposals:
    known = {argument.arg for node in ast.walk(facts.source.tree) if isinstance(node, ast.arguments)
             for argument in [*node.args, *node.kwonlyargs]} - {bad}  # fmt: skip
    for node in ast.walk(facts.function.node):
        if isinstance(node, ast.keyword) and node.arg == bad:
            start, _ = facts.source.span(node)
            for rank, name in enumerate(difflib.get_close_matches(bad, sorted(known), 5, 0.4)):
                edit = Edit(start, start + len(bad.encode()), name)
                yield Proposal(0.6 + 0.2 * rank, "did you mean", (edit,), node.lineno)


def import_offset(facts: Facts) -> int:
    """Where an import can be added: behind the docstring, the future imports and, if any, the first imports."""
    line = 0
    for node in facts.source.tree.body:
        document = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not document and not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        line = node.end_lineno or node.lineno
    return facts.source.starts[line] if line < len(facts.source.starts) else len(facts.source.data)


def imports_of(name: str) -> list[str]:
    """Import statements of the standard library that would bind the name."""
    found = [f"import {name}"] if name in sys.stdlib_module_names else []
    return found + [f"from {module} import {name}" for module in _exporting().get(name, [])[:4]]


@lru_cache(maxsize=1)
def _exporting() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for module in RULES["importable"]:
        with Catch():
            loaded = importlib.import_module(module)
            names = getattr(loaded, "__all__", None) or [each for each in dir(loaded) if not each.startswith("_")]
            for name in names:
                found.setdefault(name, []).append(module)
    return found
