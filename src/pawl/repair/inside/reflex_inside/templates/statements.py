"""Statements deleted, moved, turned into another kind, or guarded."""

from __future__ import annotations

import ast

from reflex_inside.edits import Edit, field_of, parent_of
from reflex_inside.program import NUMBERS, SEQUENCES, Facts, is_document
from reflex_inside.templates.operators import BINARY, NEAR_BINARY, tests_of
from reflex_inside.templates.site import (
    Lines,
    Proposal,
    Proposals,
    Site,
    alone,
    atomic,
    enclosed,
    indentation,
    last_line,
    text_of,
)

LIKELY_EXCESS = (ast.Expr, ast.AugAssign, ast.Break, ast.Continue, ast.If)
PLAIN = (ast.Return, ast.Assign, ast.Expr, ast.AugAssign)


def changed_statements(facts: Facts, block: list[ast.stmt], place: int) -> Proposals:
    """Edits of one statement as a whole."""
    statement, source = block[place], facts.source
    if not alone(source, statement) or is_document(statement):
        return
    lines = Lines(source, statement)
    excess = 3.0 if isinstance(statement, LIKELY_EXCESS) else 3.8
    yield from lines.become(excess, "deleted statement", f"{lines.indent}pass")
    yield from _branches(facts, statement, lines)
    yield from _moves(facts, block, place, lines)
    match statement:
        case ast.AugAssign():
            yield from _augmented(statement, lines)
        case ast.Assign(targets=[ast.Name() | ast.Subscript() | ast.Attribute()]):
            yield from _assigned(statement, lines)
        case ast.Expr(value=ast.Call()):
            yield from _called(statement.value, lines)
        case ast.Expr(value=ast.Yield(value=ast.expr() as value)):
            yield from lines.become(2.6, "yield from", f"{lines.indent}yield from {ast.unparse(value)}")
            yield from lines.become(3.0, "return for yield", f"{lines.indent}return {ast.unparse(value)}")
        case ast.Return(value=ast.expr() as value):
            yield from lines.become(4.0, "yield for return", f"{lines.indent}yield {ast.unparse(value)}")
        case ast.Break():
            yield from lines.become(2.4, "continue for break", f"{lines.indent}continue")
        case ast.Continue():
            yield from lines.become(2.4, "break for continue", f"{lines.indent}break")


def _branches(facts: Facts, statement: ast.stmt, lines: Lines) -> Proposals:
    source, indent = facts.source, lines.indent
    start = source.offset(statement.lineno, statement.col_offset)

    def word(old: str, new: str, cost: float, template: str) -> Proposals:
        if source.data[start : start + len(old)] == old.encode():
            yield Proposal(cost, template, (Edit(start, start + len(old), new),), statement.lineno)

    if isinstance(statement, ast.While) and not statement.orelse:
        yield from word("while", "if", 3.6, "if for while")
    if not isinstance(statement, ast.If):
        return
    body = "\n".join(text_of(source, inner, indent) for inner in statement.body)
    yield from lines.become(3.8 if statement.orelse else 3.2, "dropped condition", body)
    if not statement.orelse:
        yield from word("if", "while", 3.6, "while for if")
        return
    first = statement.orelse[0]
    if len(statement.orelse) == 1 and isinstance(first, ast.If):
        at = source.offset(first.lineno, first.col_offset)
        if source.data[at : at + 4] == b"elif":
            yield Proposal(3.2, "if for elif", (Edit(at, at + 4, "if"),), first.lineno)
        return
    other = "\n".join(text_of(source, inner, indent) for inner in statement.orelse)
    yield from lines.become(3.8, "other branch", other)


def _moves(facts: Facts, block: list[ast.stmt], place: int, lines: Lines) -> Proposals:
    source, statement, indent = facts.source, block[place], lines.indent
    rest = block[place + 1 : place + 3]
    if rest and alone(source, rest[0]):
        texts = [text_of(source, each, indent) for each in (rest[0], statement)]
        yield from lines.become(2.8, "swapped statements", "\n".join(texts), rest[0])
    if len(rest) == 2 and all(alone(source, each) for each in rest):
        for order in ((rest[0], rest[1], statement), (rest[1], statement, rest[0])):
            texts = [text_of(source, each, indent) for each in order]
            yield from lines.become(3.6, "moved statement", "\n".join(texts), rest[1])
    outer = parent_of(statement)
    nested = isinstance(outer, (ast.For, ast.While, ast.If, ast.With)) and field_of(statement) == "body"
    if nested and len(block) > 1 and place == len(block) - 1 and not getattr(outer, "orelse", None):
        assert isinstance(outer, ast.stmt)
        if last_line(outer) == last_line(statement):
            yield from lines.become(
                2.6, "moved out of the block", text_of(source, statement, indentation(source, outer))
            )
    if isinstance(statement, (ast.For, ast.While, ast.If)) and not statement.orelse and rest and alone(source, rest[0]):
        inner = indentation(source, statement.body[-1])
        yield from Lines(source, rest[0]).become(2.8, "moved into the block", text_of(source, rest[0], inner))


def _augmented(statement: ast.AugAssign, lines: Lines) -> Proposals:
    old = BINARY[type(statement.op)]
    target, value = ast.unparse(statement.target), ast.unparse(statement.value)
    for new in BINARY.values():
        if new not in {old, "@"}:
            cost = 1.8 if new in NEAR_BINARY[old] else 3.0
            yield from lines.become(cost, "arithmetic operator", f"{lines.indent}{target} {new}= {value}")
    yield from lines.become(2.8, "plain assignment", f"{lines.indent}{target} = {value}")
    yield from lines.become(3.0, "swapped operands", f"{lines.indent}{target} = {value} {old} {target}")
    for bound in ("max", "min"):
        yield from lines.become(3.2, "bounded number", f"{lines.indent}{target} = {bound}({target}, {value})")


def _assigned(statement: ast.Assign, lines: Lines) -> Proposals:
    target, value, indent = ast.unparse(statement.targets[0]), ast.unparse(statement.value), lines.indent
    for sign in "+-*":
        yield from lines.become(3.0, "accumulated", f"{indent}{target} {sign}= {value}")
    for bound in ("max", "min"):
        yield from lines.become(3.3, "bounded number", f"{indent}{target} = {bound}({target}, {value})")
    for sign in "+-":
        yield from lines.become(3.4, "accumulated", f"{indent}{target} = {value} {sign} {target}")
    yield from lines.become(4.2, "appended", f"{indent}{target}.append({value})")


def _called(call: ast.expr, lines: Lines) -> Proposals:
    assert isinstance(call, ast.Call)
    text, indent = ast.unparse(call), lines.indent
    yield from lines.become(2.4, "missing return", f"{indent}return {text}")
    if not isinstance(call.func, ast.Attribute):
        return
    owner = call.func.value
    if len(call.args) == 1 and isinstance(owner, (ast.Name, ast.Subscript, ast.Attribute)):
        yield from lines.become(3.6, "assigned", f"{indent}{ast.unparse(owner)} = {ast.unparse(call.args[0])}")
    if isinstance(owner, ast.Name):
        yield from lines.become(3.4, "dropped result", f"{indent}{owner.id} = {text}")


def exchanged_statements(facts: Facts, block: list[ast.stmt], place: int) -> Proposals:
    """Another statement of the function in this one's place, or this one under a condition."""
    statement, source = block[place], facts.source
    if not isinstance(statement, PLAIN) or is_document(statement) or not alone(source, statement):
        return
    lines = Lines(source, statement)
    for other in facts.statements:
        if other is not statement and isinstance(other, PLAIN):
            yield from lines.become(4.4, "other statement", text_of(source, other, lines.indent))
    body = text_of(source, statement, lines.indent + "    ")
    for cost, test in tests_of(facts, facts.outer_scope()):
        yield from lines.become(4.6 + cost, "added condition", f"{lines.indent}if {test}:\n{body}")


WRAPPERS = (
    "abs", "len", "sorted", "list", "set", "int", "str", "sum", "max", "min", "tuple", "round", "reversed", "bool",
    "float", "any", "all", "ord", "chr",
)  # fmt: skip
RARE_WRAPPERS = frozenset({"max", "min", "bool", "float", "any", "all", "ord", "chr"})
FOR_COLLECTIONS = frozenset({"len", "sorted", "list", "set", "tuple", "reversed", "sum", "any", "all", "max", "min"})
FOR_NUMBERS = frozenset({"abs", "round", "chr", "float"})
TEXT_METHODS = ("lower()", "upper()", "strip()", "split()")


def wide(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.expr)
    if isinstance(node, (ast.Starred, ast.JoinedStr, ast.Slice)):
        return
    if isinstance(site.parent, ast.Call) and site.parent.func is node:
        return
    if isinstance(site.parent, ast.Attribute) and isinstance(node, ast.Name) and node.id == "self":
        return
    extra = 0.15 * min(6.0, len(ast.unparse(node)) / 12) + (0.6 if isinstance(node, ast.Constant) else 0.0)
    yield from _wrapped(site, node, extra)
    yield from _operated(site, node, extra)
    yield from _exchanged(site, node)


def _wrapped(site: Site, node: ast.expr, extra: float) -> Proposals:
    text, types = ast.unparse(node), site.facts.guess(node)
    around = site.parent.func.id if isinstance(site.parent, ast.Call) and isinstance(site.parent.func, ast.Name) else ""
    for wrapper in WRAPPERS:
        if wrapper == around or (types and types <= NUMBERS and wrapper in FOR_COLLECTIONS):
            continue
        if types and not types & NUMBERS and wrapper in FOR_NUMBERS:
            continue
        yield from site.replace(
            3.6 + extra + 0.5 * (wrapper in RARE_WRAPPERS), "wrapped in a call", f"{wrapper}({text})"
        )
    for function, count in site.facts.callees.items():
        if function not in WRAPPERS and count == 1:
            yield from site.replace(4.4 + extra, "wrapped in a call", f"{function}({text})")
    if not types or types & SEQUENCES or isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        mappings = [f"{name}.get" for name in site.scope if "dict" in site.facts.type_of(name)]
        for key in ("len", *mappings):
            yield from site.replace(4.4 + extra, "ordering key", f"sorted({text}, key={key})")
        yield from site.replace(4.2 + extra, "ordering key", f"sorted({text}, reverse=True)")
    if not types or "str" in types:
        for method in TEXT_METHODS:
            yield from site.replace(4.4 + extra, "wrapped in a call", f"{enclosed(node)}.{method}")


def _operated(site: Site, node: ast.expr, extra: float) -> Proposals:
    facts, types = site.facts, site.facts.guess(node)
    if isinstance(node, ast.Compare) or (types and types <= {"bool"}):
        return
    text = ast.unparse(node)
    whole = text if atomic(node) else f"({text})"
    numeric = facts.numeric(node)
    if numeric and not isinstance(node, ast.Constant):
        yield from site.replace(4.0 + extra, "squared", f"{whole} ** 2")
    for name in [*site.scope, "0", "1", "2"]:
        other = facts.type_of(name)
        constant = name in {"0", "1", "2"}
        if name == text or (types and other and not types & other and not types | other <= NUMBERS):
            continue
        if numeric:
            yield from _numeric(site, (text, whole, name), extra)
        if not constant:
            yield from site.replace(4.5 + extra, "added operand", f"{name} + {whole}")
            yield from site.replace(4.5 + extra, "added operand", f"{whole} + {name}")
    yield from site.replace(4.6 + extra, "wrapped in a list", f"[{text}]")


def _numeric(site: Site, words: tuple[str, str, str], extra: float) -> Proposals:
    text, whole, name = words
    for bound in ("max", "min"):
        if name != "2":
            yield from site.replace(4.1 + extra, "bounded number", f"{bound}({name}, {text})")
    if name == "0":
        return
    for sign in ("-", "*", "%", "/"):
        yield from site.replace(4.9 + extra, "added operand", f"{whole} {sign} {name}")
    for sign in ("//", "**"):
        yield from site.replace(5.2 + extra, "added operand", f"{whole} {sign} {name}")
    if name not in {"1", "2"}:
        yield from site.replace(5.2 + extra, "added operand", f"{name} - {whole}")


def _exchanged(site: Site, node: ast.expr) -> Proposals:
    facts, types, text = site.facts, site.facts.guess(node), ast.unparse(node)
    if isinstance(node, (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.IfExp, ast.ListComp)):
        for name in site.scope:
            other = facts.type_of(name)
            cost = 0.0 if other & types else 0.4 if not types or not other else 1.6
            yield from site.replace(3.3 + cost, "variable for an expression", name)
    for other_text, ingredient in facts.ingredients.items():
        if other_text == text or len(other_text) > 50 or isinstance(ingredient, ast.Name):
            continue
        other = facts.guess(ingredient)
        apart = bool(types and other and not types & other and not types | other <= NUMBERS)
        cost = 3.3 + 0.02 * len(other_text) + 0.7 * (type(ingredient) is not type(node)) + 1.5 * apart
        yield from site.replace(cost + 0.5 * isinstance(node, ast.Constant), "other expression", other_text)
