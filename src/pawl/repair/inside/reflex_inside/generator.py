"""All template proposals of a function, in lazy portions: cheap edits of suspicious lines before dear ones."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from reflex_inside import expressions, missing_statements, statements
from reflex_inside.program import FUNCTION_NODES, Candidate, Facts, Portion, blocks_in
from reflex_inside.site import RULES, Proposal, Proposals, Site, Template

SUSPICION_WEIGHT = 1.2
LEAST_SUSPICION = 0.05

NARROW: dict[type[ast.AST], Template] = {
    ast.Name: expressions.names,
    ast.Attribute: expressions.attributes,
    ast.Constant: expressions.constants,
    ast.Compare: expressions.comparisons,
    ast.BinOp: expressions.arithmetic,
    ast.BoolOp: expressions.logic,
    ast.UnaryOp: expressions.signs,
    ast.IfExp: expressions.choices,
    ast.Call: expressions.calls,
    ast.Subscript: expressions.subscripts,
    ast.ListComp: expressions.comprehensions,
    ast.SetComp: expressions.comprehensions,
    ast.GeneratorExp: expressions.comprehensions,
    ast.Tuple: expressions.displays,
    ast.List: expressions.displays,
}


def own_expressions(statement: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a statement that belong to no statement inside it."""
    for _, value in ast.iter_fields(statement):
        for child in value if isinstance(value, list) else (value,):
            if not isinstance(child, ast.AST) or isinstance(child, (ast.stmt, ast.excepthandler)):
                continue
            if isinstance(child, ast.expr):
                yield child
            if not isinstance(child, ast.JoinedStr):
                yield from own_expressions(child)


def blocks_of(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int]]:
    """Each statement with the block it stands in, outermost first."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef):
            continue
        if not isinstance(statement, FUNCTION_NODES):
            yield body, place
        for block in blocks_in(statement):
            yield from blocks_of(block)


def header_lines(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    end = body[0].lineno if body else (statement.end_lineno or statement.lineno) + 1
    return range(statement.lineno, max(end, statement.lineno + 1))


class Generator:
    """Makes portions of candidates for one suspicious function."""

    def __init__(self, facts: Facts, suspicion: dict[int, float]) -> None:
        self.facts = facts
        self.suspicion = suspicion
        self.undefined = missing_statements.undefined_names(facts)

    def price(self, score: float) -> float:
        return -SUSPICION_WEIGHT * math.log(max(score, LEAST_SUSPICION))

    def candidates(self, proposals: Proposals, score: float) -> list[Candidate]:
        return [self.candidate(proposal, score) for proposal in proposals]

    def candidate(self, proposal: Proposal, score: float) -> Candidate:
        lines = self.facts.source.line_of(proposal.edits[0].start), self.facts.source.line_of(proposal.edits[-1].end)
        own = max((self.suspicion.get(line, 0.0) for line in range(lines[0], lines[1] + 1)), default=0.0)
        cost = proposal.cost + self.price(max(own, score * 0.999))
        path, function = self.facts.source.path, self.facts.function.index
        return Candidate(cost, proposal.template, path, proposal.edits, function, proposal.line)

    def portions(self) -> Iterator[Portion]:
        best = max(self.suspicion.values())
        yield 0.3 + self.price(best), lambda: self.candidates(self._about_function(), best)
        for block, place in blocks_of(self.facts.function.node.body):
            statement = block[place]
            own = max((self.suspicion.get(line, 0.0) for line in header_lines(statement)), default=0.0)
            inside = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            score = max((self.suspicion.get(line, 0.0) for line in inside), default=0.0)
            if own > 0:
                yield from self._expression_portions(statement, own)
            if score > 0:
                yield from self._statement_portions(block, place, score)

    def _about_function(self) -> Proposals:
        yield from missing_statements.mutable_defaults(self.facts)
        yield from statements.everywhere(self.facts)
        arguments = self.facts.function.node.args
        for default in [each for each in [*arguments.defaults, *arguments.kw_defaults] if each is not None]:
            site = Site(self.facts, default)
            site.scope = []
            if isinstance(default, ast.Constant):
                yield from expressions.constants(site, default)
            yield from site.each(3.4, "default value", RULES["for defaults"])

    def _expression_portions(self, statement: ast.stmt, score: float) -> Iterator[Portion]:
        price = self.price(score)
        parts = [each for each in own_expressions(statement) if not isinstance(each, (ast.JoinedStr, ast.Slice))]

        def narrow() -> Proposals:
            for expression in parts:
                site = Site(self.facts, expression)
                if isinstance(getattr(expression, "ctx", None), (ast.Store, ast.Del)):
                    yield from expressions.targets(site, expression)
                elif (template := NARROW.get(type(expression))) is not None:
                    yield from template(site, expression)
                    yield from expressions.negations(site, expression)

        def broad(template: Template) -> Proposals:
            for expression in parts:
                if not isinstance(getattr(expression, "ctx", None), (ast.Store, ast.Del)):
                    yield from template(Site(self.facts, expression), expression)

        yield 1.2 + price, lambda: self.candidates(narrow(), score)
        yield 3.3 + price, lambda: self.candidates(broad(statements.wide), score)
        yield 3.4 + price, lambda: self.candidates(broad(expressions.joined), score)

    def _statement_portions(self, block: list[ast.stmt], place: int, score: float) -> Iterator[Portion]:
        facts, price = self.facts, self.price(score)
        yield 1.8 + price, lambda: self.candidates(statements.changed_statements(facts, block, place), score)
        yield 4.4 + price, lambda: self.candidates(statements.exchanged_statements(facts, block, place), score)
        less = missing_statements.HOLE_BONUS if missing_statements.is_hole(block, place) else 0.0
        yield (
            2.6 - less + price,
            lambda: self.candidates(missing_statements.inserted_statements(facts, block, place), score),
        )
        yield 4.4 - less + price, lambda: self.candidates(missing_statements.guards(facts, block, place), score)
        # With no name left open and no hole, only statements from elsewhere come, and those are dear.
        least = 2.0 - less if less or self.undefined else 4.6
        yield least + price, lambda: self.candidates(missing_statements.missing_statements(facts, block, place), score)
