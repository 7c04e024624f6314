"""Statements that stand elsewhere in the program, fitted to the names of another place."""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from reflex_inside.edits import Source
from reflex_inside.facts import SIMPLE_STATEMENTS, Facts, is_document
from reflex_inside.program import FUNCTION_NODES, FunctionNode, outermost_functions
from reflex_inside.templates.lines import text_of

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
