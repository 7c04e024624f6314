"""Statements that stand elsewhere in the program, fitted to the names of another place."""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reflex_inside.edits import Edit, Source
from reflex_inside.program import (
    FUNCTION_NODES,
    SIMPLE_STATEMENTS,
    Facts,
    FunctionNode,
    is_document,
    outermost_functions,
)
from reflex_inside.templates.operators import COMMON_STRINGS
from reflex_inside.templates.site import Proposal, Proposals, text_of

MOST_UNKNOWN = 2
NAMES_TRIED = 3
MOST_SAMPLES = 500


@dataclass(frozen=True, slots=True)
class Sample:
    """A simple statement and the function it stands in."""

    source: Source
    node: ast.stmt
    function: FunctionNode
    owners: tuple[str, ...]

    @property
    def parameters(self) -> list[str]:
        return parameters_of(self.function)


def parameters_of(function: FunctionNode) -> list[str]:
    arguments = function.args
    return [each.arg for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]


@lru_cache(maxsize=64)
def samples_of(source: Source) -> tuple[Sample, ...]:
    """The simple statements of all functions of a file, each text once a function."""
    found: list[Sample] = []
    for function, owners in outermost_functions(source.tree.body, ()):
        seen: set[str] = set()
        for node in ast.walk(function):
            simple = isinstance(node, (*SIMPLE_STATEMENTS, ast.Delete)) and not is_document(node)
            if simple and (text := ast.unparse(node)) not in seen:
                seen.add(text)
                found.append(Sample(source, node, function, owners))  # type: ignore[arg-type]
    return tuple(found)


@lru_cache(maxsize=4096)
def local_names(function: FunctionNode) -> frozenset[str]:
    names = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    names |= {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return frozenset(names)


def near_samples(facts: Facts) -> list[tuple[float, Sample]]:
    """Samples with how far away they are: functions of the same name first, then the class, the file, the others."""
    own = facts.function
    found: list[tuple[float, Sample]] = []
    for source in [facts.source, *(each for each in facts.others if each is not facts.source)]:
        for sample in samples_of(source):
            if sample.function is own.node:
                continue
            far = 0.9 if source is not facts.source else 0.3 if sample.owners == own.owners and own.owners else 0.5
            if sample.function.name == own.node.name:
                far = 0.0
            else:
                far += 0.3 * (1 - difflib.SequenceMatcher(None, sample.function.name, own.node.name).quick_ratio())
            found.append((far, sample))
    found.sort(key=lambda each: each[0])
    return found[:MOST_SAMPLES]


class Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def renamed(node: ast.stmt, names: dict[str, str]) -> ast.stmt:
    made = Renamed(names).visit(bare(node))
    assert isinstance(made, ast.stmt)
    return made


def bare(node: ast.stmt) -> ast.stmt:
    """A copy of the statement without links to what is around it."""
    return ast.parse(ast.unparse(node)).body[0]


def fitted(sample: Sample, facts: Facts) -> Iterator[tuple[float, str]]:
    """Texts of the statement with its variables exchanged for those known here, each with what it costs."""
    known = set(facts.outer_scope()) | {name.partition(".")[0] for name in facts.outer_scope()}
    local = local_names(sample.function)
    used = [each.id for each in ast.walk(sample.node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    bound_inside = {
        each.id
        for inner in ast.walk(sample.node)
        if isinstance(inner, ast.comprehension)
        for each in ast.walk(inner.target)
        if isinstance(each, ast.Name)
    }
    bound_inside |= {each.arg for each in ast.walk(sample.node) if isinstance(each, ast.arg)}
    unknown = [name for name in dict.fromkeys(used) if name in local - bound_inside and name not in known]
    if not unknown:
        yield 0.0, text_of(sample.source, sample.node)
        return
    if len(unknown) > MOST_UNKNOWN:
        return
    mine = parameters_of(facts.function.node)
    choices: list[list[str]] = []
    for name in unknown:
        others = sorted(
            (each for each in facts.outer_scope() if "." not in each and each not in {"self", "cls"}),
            key=lambda each: -difflib.SequenceMatcher(None, name, each).ratio(),
        )[:NAMES_TRIED]
        place = sample.parameters.index(name) if name in sample.parameters else -1
        counterpart = (
            [mine[place]] if sample.function.name == facts.function.node.name and 0 <= place < len(mine) else []
        )
        choices.append(list(dict.fromkeys(counterpart + others)))
    for rank, chosen in enumerate(itertools.product(*choices)):
        if len(set(chosen)) == len(chosen):
            names = dict(zip(unknown, chosen, strict=True))
            yield 0.2 * len(unknown) + 0.1 * rank, ast.unparse(renamed(sample.node, names))


def same_named(facts: Facts) -> Iterator[str]:
    """The bodies of functions that have this one's name, with their parameters called as here."""
    own = facts.function.node
    mine = parameters_of(own)
    for source in [facts.source, *(each for each in facts.others if each is not facts.source)]:
        for function, _ in outermost_functions(source.tree.body, ()):
            if function is own or function.name != own.name or not isinstance(function, FUNCTION_NODES):
                continue
            theirs = parameters_of(function)
            names = dict(zip(theirs, mine, strict=False))
            body = [each for each in function.body if not is_document(each)]
            if len(theirs) <= len(mine) and len(body) <= 6 and not all(isinstance(each, ast.Pass) for each in body):
                yield "\n".join(ast.unparse(renamed(each, names)) for each in body)


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
