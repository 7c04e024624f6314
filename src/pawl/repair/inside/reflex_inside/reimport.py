"""Candidates that act only when the program is imported anew: outside functions, and in functions that run then."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reflex_inside.edits import Candidate, Reach
from reflex_inside.facts import Facts, gather_facts
from reflex_inside.frontier import Portion
from reflex_inside.generate import NARROW, Generator, own_expressions
from reflex_inside.program import FUNCTION_NODES, Function, Program, definitions, outermost_functions
from reflex_inside.suspicion import Suspicion
from reflex_inside.templates.conditions import negations
from reflex_inside.templates.diagnostics import Diagnosis
from reflex_inside.templates.site import Site
from reflex_inside.templates.statements import changed_statements

Line = tuple[str, int]
LEAST_SCORE = 0.05


def outside_candidates(program: Program, suspicion: Suspicion) -> list[Candidate]:
    """Edits of suspicious definitions in modules and classes, cheapest first."""
    found: list[Candidate] = []
    for path, lines in suspicion.globals.items():
        for block, place, _ in definitions(program.sources[path].tree.body, ()):
            score = lines.get(block[place].lineno, 0.0)
            if score > 0:
                found += statement_candidates(program, path, (block, place), score)
    return cheapest(found)


def broken_statements(program: Program, scores: dict[Line, float]) -> list[Candidate]:
    """Edits of statements outside functions in which the import of the program broke."""
    found: list[Candidate] = []
    for path, source in program.sources.items():
        for block, place in outer_statements(source.tree.body):
            statement = block[place]
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            score = max((scores.get((path, line), 0.0) for line in lines), default=0.0)
            if score > 0:
                found += statement_candidates(program, path, (block, place), score)
    return cheapest(found)


def outer_statements(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int]]:
    """Statements of modules and classes that contain no others."""
    for place, statement in enumerate(body):
        if isinstance(statement, FUNCTION_NODES):
            continue
        inner = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        inner += [handler.body for handler in getattr(statement, "handlers", [])]
        if not any(inner):
            yield body, place
        for block in inner:
            yield from outer_statements(block)


def statement_candidates(
    program: Program, path: str, where: tuple[list[ast.stmt], int], score: float
) -> list[Candidate]:
    block, place = where
    price = -1.2 * math.log(max(score, LEAST_SCORE))
    facts = module_facts(program, path, block[place])
    return [
        Candidate(each.cost + price, each.template, path, each.edits, -1, each.line, Reach.MODULE)
        for each in _proposals(facts, block, place)
    ]


def cheapest(found: list[Candidate]) -> list[Candidate]:
    unique = {candidate.key: candidate for candidate in sorted(found, key=lambda each: -each.cost)}
    return sorted(unique.values(), key=lambda candidate: candidate.cost)


def _proposals(facts: Facts, block: list[ast.stmt], place: int) -> Iterator[Any]:
    for expression in own_expressions(block[place]):
        template = NARROW.get(type(expression))
        if template is not None and isinstance(getattr(expression, "ctx", ast.Load()), ast.Load):
            yield from template(Site(facts, expression))
            yield from negations(Site(facts, expression))
    yield from changed_statements(facts, block, place)


def module_facts(program: Program, path: str, statement: ast.stmt) -> Facts:
    """Facts for a statement outside functions: it stands alone in a function that has no name."""
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    around = ast.FunctionDef("", arguments, [statement], [], lineno=statement.lineno, col_offset=0)
    around.end_lineno = statement.end_lineno
    return gather_facts(Facts(program.sources[path], Function(-1, path, "", (), around)))


def calls_at_import(tree: ast.AST) -> bool:
    """Whether anything is called when the file is imported: outside functions, as a decorator or for a default."""
    pending: list[ast.AST] = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) or getattr(node, "decorator_list", None):
            return True
        if isinstance(node, FUNCTION_NODES):
            pending.append(node.args)
        elif not isinstance(node, ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))
    return False


def written_functions(program: Program) -> list[Function]:
    """All functions of the sources, whether anything is alive of them or not."""
    return [
        Function(-1, path, ".".join((*owners, node.name)), owners, node)
        for path, source in program.sources.items()
        for node, owners in outermost_functions(source.tree.body, ())
    ]


def import_time_portions(
    program: Program, function: Function, scores: dict[int, float], diagnoses: list[Diagnosis]
) -> Iterator[Portion]:
    """Edits of a function that runs at import, by the scores of its lines."""
    generator = Generator(
        gather_facts(Facts(program.sources[function.path], function, others=list(program.sources.values()))), scores
    )
    for bound, make in generator.portions(diagnoses):
        yield bound, lambda make=make: [replace(each, function=-1, reach=Reach.MODULE) for each in make()]  # type: ignore[misc]
