"""Statements that may be missing: returns, steps, copies of others, guards."""

from __future__ import annotations

import ast

from reflex_inside.edits import parent_of
from reflex_inside.facts import NUMBERS, Facts, is_document
from reflex_inside.templates.conditions import tests_of
from reflex_inside.templates.lines import Lines, alone, indented, text_of
from reflex_inside.templates.site import Proposal, Proposals

CONSTANTS = ("None", "True", "False", "0", "1", "-1", "[]", "''")
HOLE_BONUS = 1.4
"""How much likelier a statement is missing where a `pass` stands that nobody needs."""
ENDINGS = (ast.Return, ast.Break, ast.Continue, ast.Raise)


def in_loop(facts: Facts, statement: ast.stmt) -> bool:
    node: ast.AST = statement
    while node is not facts.function.node:
        node = parent_of(node)
        if isinstance(node, (ast.For, ast.While)):
            return True
    return False


def is_hole(block: list[ast.stmt], place: int) -> bool:
    """Whether a `pass` stands where something else seems to be missing: nobody needs it there."""
    return isinstance(block[place], ast.Pass) and (
        len(block) > 1 or not isinstance(parent_of(block[place]), ast.ClassDef)
    )


class Spot:
    """Before a statement, after the last one of a block, or instead of a `pass`."""

    def __init__(self, facts: Facts, block: list[ast.stmt], place: int, *, after: bool) -> None:
        self.facts = facts
        self.statement = block[place]
        self.lines = Lines(facts.source, self.statement)
        self.hole = is_hole(block, place)
        self.behind = after
        self.at_end = (after or (self.hole and place == len(block) - 1)) and block is facts.function.node.body
        self.at_top = place <= 1 and block is facts.function.node.body
        self.looping = in_loop(facts, self.statement)

    def insert(self, cost: float, template: str, code: str) -> Proposals:
        if self.hole:
            return self.lines.become(cost - HOLE_BONUS, template, indented(code, self.lines.indent))
        return self.lines.after(cost, template, code) if self.behind else self.lines.before(cost, template, code)


def spots(facts: Facts, block: list[ast.stmt], place: int) -> list[Spot]:
    statement = block[place]
    if not alone(facts.source, statement):
        return []
    found = [] if is_document(statement) else [Spot(facts, block, place, after=False)]
    if is_hole(block, place):
        return found
    if place == len(block) - 1 and not isinstance(statement, ENDINGS):
        found.append(Spot(facts, block, place, after=True))
    return found


def inserted_statements(facts: Facts, block: list[ast.stmt], place: int) -> Proposals:
    for spot in spots(facts, block, place):
        scope = facts.outer_scope()
        for name in scope:
            yield from _about_name(spot, name, scope)
        for other in facts.statements:
            cost = 4.4 if other is spot.statement else 4.0
            yield from spot.insert(cost, "copied statement", text_of(facts.source, other))
        if spot.looping:
            yield from spot.insert(3.8, "added break", "break")
            yield from spot.insert(3.8, "added continue", "continue")
        for constant in CONSTANTS:
            yield from spot.insert(4.2, "added return", f"return {constant}")


def _about_name(spot: Spot, name: str, scope: list[str]) -> Proposals:
    types = spot.facts.type_of(name)
    yield from spot.insert(2.6 if spot.at_end else 4.4, "added return", f"return {name}")
    if not types or types & {"int", "float"}:
        yield from spot.insert(4.0, "added step", f"{name} += 1")
        yield from spot.insert(4.2, "added step", f"{name} -= 1")
    for other in scope:
        if other != name:
            yield from _about_pair(spot, name, other)
    if "list" in types:
        for code in (f"{name}.sort()", f"{name}.pop()", f"{name}.reverse()"):
            yield from spot.insert(4.5, "added call", code)
    for constant in ("0", "1", "[]", "''", "None", "True", "False"):
        yield from spot.insert(4.8, "added reset", f"{name} = {constant}")


def _about_pair(spot: Spot, name: str, other: str) -> Proposals:
    types, distance = spot.facts.type_of(name), spot.facts.distance(name, other)
    if distance < 2:
        yield from spot.insert(4.1 + distance * 0.5, "added assignment", f"{name} = {other}")
    if distance < 1 and (not types or not types <= {"bool"}):
        yield from spot.insert(4.6 + distance, "added step", f"{name} += {other}")
        if types & NUMBERS:
            yield from spot.insert(4.8 + distance, "added step", f"{name} -= {other}")
    if types & {"list", "deque"}:
        yield from spot.insert(3.9, "added append", f"{name}.append({other})")
    if "set" in types:
        yield from spot.insert(3.9, "added append", f"{name}.add({other})")


def guards(facts: Facts, block: list[ast.stmt], place: int) -> Proposals:
    """`if condition: leave` before a statement."""
    for spot in spots(facts, block, place):
        scope = facts.outer_scope()
        actions = [f"return {constant}" for constant in CONSTANTS] + [f"return {name}" for name in scope]
        actions += ["continue", "break"] if spot.looping else []
        actions += [ast.unparse(each) for each in facts.statements if isinstance(each, (ast.Return, ast.Raise))]
        base = 4.4 if spot.at_top else 4.9
        for cost, test in tests_of(facts, scope):
            for rank, action in enumerate(dict.fromkeys(actions)):
                yield from spot.insert(base + cost + 0.03 * rank, "added guard", f"if {test}:\n    {action}")
        for name in scope:
            yield from spot.insert(4.6, "added guard", f"if {name} is None:\n    {name} = []")


def mutable_defaults(facts: Facts) -> Proposals:
    """A list or dictionary as a default is shared between calls; the fix makes a new one in each."""
    node, source = facts.function.node, facts.source
    arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
    body = [statement for statement in node.body if not is_document(statement)]
    if not body or not alone(source, body[0]):
        return
    lines = Lines(source, body[0])
    for argument, default in zip(arguments, node.args.defaults, strict=True):
        if isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call)):
            start, end = source.span(default)
            code = f"if {argument.arg} is None:\n    {argument.arg} = {ast.unparse(default)}"
            for guard in lines.before(2.4, "shared default", code):
                edits = (type(guard.edits[0])(start, end, "None"), *guard.edits)
                yield Proposal(2.4, "shared default", edits, node.lineno)
