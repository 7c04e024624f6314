"""One slip repeated: the same constant, the same letter case or the same two names wrong in several places."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reflex_inside.edits import Edit
from reflex_inside.facts import Facts, is_document
from reflex_inside.templates.constants import COMMON_STRINGS
from reflex_inside.templates.site import Proposal, Proposals

CASES: tuple[Callable[[str], str], ...] = (str.capitalize, str.upper, str.lower, str.title, str.strip, str.swapcase)
MOST_NAMES = 8


def everywhere(facts: Facts) -> Proposals:
    constants = [node for node in _nodes(facts) if isinstance(node, ast.Constant)]
    yield from _repeated(facts, constants)
    yield from _exchanged(facts, constants)
    yield from _cases(facts, constants)
    yield from _swapped_names(facts)


def _nodes(facts: Facts) -> Iterator[ast.AST]:
    pending: list[ast.AST] = list(facts.function.node.body)
    while pending:
        node = pending.pop()
        if is_document(node) or isinstance(node, ast.JoinedStr):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _edits(facts: Facts, pairs: Sequence[tuple[ast.AST, str]]) -> tuple[Edit, ...]:
    return tuple(sorted(Edit(*facts.source.span(node), text) for node, text in pairs))


def _by_value(constants: list[ast.Constant]) -> dict[tuple[type, Any], list[ast.Constant]]:
    found: dict[tuple[type, Any], list[ast.Constant]] = {}
    for node in constants:
        found.setdefault((type(node.value), node.value), []).append(node)
    return found


def _repeated(facts: Facts, constants: list[ast.Constant]) -> Proposals:
    """All uses of one constant become another."""
    for (kind, value), nodes in _by_value(constants).items():
        if len(nodes) < 2:
            continue
        others: list[Any] = []
        if kind is int:
            others = [value + 1, value - 1, 0, 1, 2]
        elif kind is str:
            others = [*facts.texts, *COMMON_STRINGS, value.strip(), value.lower(), value.upper(), *facts.strings]
        elif kind is bool:
            others = [not value]
        for other in dict.fromkeys(others):
            if other != value:
                edits = _edits(facts, [(node, repr(other)) for node in nodes])
                yield Proposal(3.2, "repeated constant", edits, nodes[0].lineno)


def _exchanged(facts: Facts, constants: list[ast.Constant]) -> Proposals:
    """Two constants change places wherever they stand, or in what is returned."""
    returned = [node for node in constants if isinstance(getattr(node, "parent", None), (ast.Return, ast.IfExp))]
    for pool, cost in ((returned, 2.2), (constants, 3.2)):
        groups = list(_by_value(pool).items())
        for (first, one), (second, other) in itertools.combinations(groups[:8], 2):
            if first[0] is second[0]:
                pairs = [(node, repr(second[1])) for node in one] + [(node, repr(first[1])) for node in other]
                yield Proposal(cost, "exchanged constants", _edits(facts, pairs), one[0].lineno)


def _cases(facts: Facts, constants: list[ast.Constant]) -> Proposals:
    """Strings that are returned or assigned all change their case alike."""
    strings = [
        node
        for node in constants
        if isinstance(node.value, str)
        and isinstance(getattr(node, "parent", None), (ast.Return, ast.IfExp, ast.Assign))
    ]
    for change in CASES:
        pairs = [(node, repr(change(node.value))) for node in strings if change(node.value) != node.value]  # type: ignore[arg-type]
        if len(pairs) > 1:
            yield Proposal(3.0, "letter case", _edits(facts, pairs), strings[0].lineno)
    for node in strings:
        text = str(node.value)
        both = text + "".join(letter for letter in text.swapcase() if letter not in text)
        if both != text and text.isalpha():
            yield Proposal(3.2, "letter case", _edits(facts, [(node, repr(both))]), node.lineno)


def _swapped_names(facts: Facts) -> Proposals:
    """Two variables that are bound together change places in every such binding, or all over the function."""
    tuples = [node for node in _nodes(facts) if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store)]
    bound = {name.id for node in tuples for name in node.elts if isinstance(name, ast.Name)}
    uses = [node for node in _nodes(facts) if isinstance(node, ast.Name) and node.id in bound]
    for first, second in itertools.combinations(sorted(bound)[:MOST_NAMES], 2):
        other = {first: second, second: first}
        stored = [(node, other[node.id]) for node in uses if node.id in other and isinstance(node.ctx, ast.Store)]
        read = [(node, other[node.id]) for node in uses if node.id in other and isinstance(node.ctx, ast.Load)]
        for pairs in (stored, read):
            if len(pairs) > 1:
                yield Proposal(3.2, "exchanged names", _edits(facts, list(pairs)), pairs[0][0].lineno)
        for statement in (node for node in _nodes(facts) if isinstance(node, ast.Assign)):
            inner = [(n, other[n.id]) for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id in other]
            if len(inner) > 1:
                yield Proposal(3.4, "exchanged names", _edits(facts, list(inner)), statement.lineno)
