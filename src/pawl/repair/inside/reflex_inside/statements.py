"""Statements deleted, moved, guarded or turned into another kind; statements of elsewhere, fitted to another place."""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reflex_inside.expressions import NEAR_OPERATORS, OPERATORS, tests_of
from reflex_inside.program import (
    NUMBERS,
    SEQUENCES,
    SIMPLE_STATEMENTS,
    Edit,
    Facts,
    FunctionNode,
    Source,
    field_of,
    is_document,
    outermost_functions,
    parent_of,
)
from reflex_inside.site import (
    RULES,
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
            target, new = ast.unparse(statement.targets[0]), ast.unparse(statement.value)
            yield from lines.forms("assigned", target=target, value=new)
        case ast.Expr(value=ast.Call()):
            yield from _called(statement.value, lines)
        case ast.Expr(value=ast.Yield(value=ast.expr() as value)):
            yield from lines.forms("yield", value=ast.unparse(value))
        case ast.Return(value=ast.expr() as value):
            yield from lines.forms("return", value=ast.unparse(value))
        case ast.Break():
            yield from lines.forms("break")
        case ast.Continue():
            yield from lines.forms("continue")


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
    old = OPERATORS[type(statement.op).__name__]
    target, value = ast.unparse(statement.target), ast.unparse(statement.value)
    for new in OPERATORS.values():
        if new not in {old, "@"}:
            cost = 1.8 if new in NEAR_OPERATORS[old] else 3.0
            yield from lines.become(cost, "arithmetic operator", f"{lines.indent}{target} {new}= {value}")
    yield from lines.forms("augmented", target=target, value=value, sign=old)


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


WRAPPERS: dict[str, float] = RULES["wrappers"]
FOR_COLLECTIONS = frozenset(RULES["wrappers of collections"])
FOR_NUMBERS = frozenset(RULES["wrappers of numbers"])


def wide(site: Site, node: ast.expr) -> Proposals:
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
    for wrapper, cost in WRAPPERS.items():
        if wrapper == around or (types and types <= NUMBERS and wrapper in FOR_COLLECTIONS):
            continue
        if types and not types & NUMBERS and wrapper in FOR_NUMBERS:
            continue
        yield from site.replace(cost + extra, "wrapped in a call", f"{wrapper}({text})")
    own = [name for name, count in site.facts.callees.items() if name not in WRAPPERS and count == 1]
    yield from site.each(4.4 + extra, "wrapped in a call", (f"{function}({text})" for function in own))
    if not types or types & SEQUENCES or isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        mappings = [f"{name}.get" for name in site.scope if "dict" in site.facts.type_of(name)]
        yield from site.each(4.4 + extra, "ordering key", (f"sorted({text}, key={key})" for key in ("len", *mappings)))
        yield from site.replace(4.2 + extra, "ordering key", f"sorted({text}, reverse=True)")
    if not types or "str" in types:
        yield from site.forms("text", extra, whole=enclosed(node))


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
            yield from _numeric(site, whole, name, extra)
        if not constant:
            yield from site.forms("sum", extra, name=name, whole=whole)
    yield from site.replace(4.6 + extra, "wrapped in a list", f"[{text}]")


def _numeric(site: Site, whole: str, name: str, extra: float) -> Proposals:
    if name != "2":
        yield from site.forms("bound", extra, name=name)
    if name != "0":
        yield from site.forms("operand", extra, name=name, whole=whole)
    if name not in {"0", "1", "2"}:
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


CASES: tuple[Callable[[str], str], ...] = (str.capitalize, str.upper, str.lower, str.title, str.strip, str.swapcase)


def everywhere(facts: Facts) -> Proposals:
    constants = [node for node in _nodes(facts) if isinstance(node, ast.Constant)]
    yield from _exchanged_constants(facts, constants)
    yield from _cases(facts, constants)


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


def _exchanged_constants(facts: Facts, constants: list[ast.Constant]) -> Proposals:
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
