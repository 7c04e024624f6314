"""All template proposals of a function, in lazy portions: cheap edits of suspicious lines before dear ones.

Among them the statements that are missing: copies of others of the program, guards, assignments, returns.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import math
from collections.abc import Iterator

from reflex_inside import expressions, statements
from reflex_inside.clues import PRIORS, Clues, weigh
from reflex_inside.expressions import likeness, tests_of
from reflex_inside.program import (
    FUNCTION_NODES,
    NUMBERS,
    Candidate,
    Facts,
    Portion,
    blocks_in,
    is_document,
    outermost_functions,
    parent_of,
)
from reflex_inside.site import RULES, Lines, Proposal, Proposals, Site, Template, alone, indented, text_of
from reflex_inside.statements import fitted, near_samples, parameters_of

CONSTANTS: list[str] = RULES["returned constants"]
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

    def forms(self, rule: str, **parts: str) -> Proposals:
        """The forms of a rule, filled with these parts."""
        for cost, template, form in RULES["insertions"][rule]:
            yield from self.insert(cost, template, form.format(**parts))


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
            yield from spot.forms("loop")
        for constant in CONSTANTS:
            yield from spot.insert(4.2, "added return", f"return {constant}")


def _about_name(spot: Spot, name: str, scope: list[str]) -> Proposals:
    types = spot.facts.type_of(name)
    yield from spot.insert(2.6 if spot.at_end else 4.4, "added return", f"return {name}")
    if not types or types & {"int", "float"}:
        yield from spot.forms("step", name=name)
    for other in scope:
        if other != name:
            yield from _about_pair(spot, name, other)
    if "list" in types:
        yield from spot.forms("list", name=name)
    yield from spot.forms("reset", name=name)


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


PLAIN_VALUES: list[str] = RULES["first values"]
CALLED: list[str] = RULES["called on names"]
Codes = Iterator[tuple[float, str, str]]
"""Costs, templates and texts."""


def missing_statements(facts: Facts, block: list[ast.stmt], place: int) -> Proposals:
    """Statements that could stand before one, or in the place of a `pass` that nobody needs."""
    for spot in spots(facts, block, place):
        for cost, template, code in _codes(facts, spot):
            yield from spot.insert(cost, template, code)


def _codes(facts: Facts, spot: Spot) -> Codes:
    unknown = undefined_names(facts)
    for name in unknown:
        yield from _bindings(facts, name)
    yield from _copies(facts, spot)
    if spot.hole:
        yield from _own_attributes(facts)


def undefined_names(facts: Facts) -> list[str]:
    """Names that the function reads though neither it nor its module binds them."""
    bound = {name for name in facts.names if "." not in name} | set(dir(builtins))
    own_lines = facts.function.node.lineno, facts.function.last_line
    for node in ast.walk(facts.source.tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
            case ast.Name(ctx=ast.Store()) if not own_lines[0] <= node.lineno <= own_lines[1]:
                bound.add(node.id)
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return []
    own = [node for node in ast.walk(facts.function.node) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(node.id for node in own if isinstance(node.ctx, ast.Load) and node.id not in bound))


def _bindings(facts: Facts, name: str) -> Codes:
    """`name = …` for a name that nobody binds."""
    for far, sample in near_samples(facts):
        target = sample.node.targets[0] if isinstance(sample.node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == name:
            for cost, text in fitted(sample, facts):
                yield 2.0 + far + cost, "missing assignment", text
    for value in PLAIN_VALUES:
        yield 2.6, "missing assignment", f"{name} = {value}"
    for cost, text in _expressions(facts):
        yield 2.4 + cost - 0.8 * (likeness(name, text) > 0.7), "missing assignment", f"{name} = {text}"
    for other in facts.outer_scope():
        if "dict" in facts.type_of(other):
            for method in ("pop", "get"):
                for value in ("None", "False", "True"):
                    yield 2.8, "missing assignment", f"{name} = {other}.{method}({name!r}, {value})"


def _expressions(facts: Facts) -> Iterator[tuple[float, str]]:
    """Short expressions of the names in scope: parts, attributes, and calls of what the module calls."""
    scope = free_names(facts)
    for name in scope:
        yield 0.3, name
        for function in CALLED:
            yield 0.6, f"{function}({name})"
        for attribute in facts.attributes.get(name, ()):
            yield 0.9, f"{name}.{attribute}"
    for text, rank in _calls_of_functions(facts):
        yield 0.5 + rank, text


def _calls_of_functions(facts: Facts) -> Iterator[tuple[str, float]]:
    """Calls of the module's functions and the class's methods, with arguments of the same names or in turn."""
    scope = free_names(facts)
    for callee, wanted in _callables(facts):
        if all(name in scope for name in wanted):
            yield f"{callee}({', '.join(wanted)})", 0.0
        if len(wanted) == 1:
            yield from ((f"{callee}({name})", 0.4) for name in scope)
        elif len(wanted) == 2:
            for pair in itertools.permutations(scope[:6], 2):
                yield f"{callee}({', '.join(pair)})", 0.8
    for callee, count in facts.callees.items():
        if count == 1 and callee not in CALLED:
            yield from ((f"{callee}({name})", 0.7) for name in scope)


def _callables(facts: Facts) -> Iterator[tuple[str, list[str]]]:
    """Functions that can be called here, and the parameters that need a value; of those that need none, the first."""
    own = facts.function
    for function, owners in outermost_functions(facts.source.tree.body, ()):
        if function is own.node or (owners and owners != own.owners):
            continue
        wanted = parameters_of(function)
        callee = function.name
        if owners:
            if not wanted or not parameters_of(own.node):
                continue
            callee, wanted = f"{parameters_of(own.node)[0]}.{function.name}", wanted[1:]
        needed = wanted[: len(wanted) - len(function.args.defaults)]
        yield callee, needed or wanted[:1]
        if not needed and wanted:
            yield callee, []


def free_names(facts: Facts) -> list[str]:
    return [name for name in facts.outer_scope() if name not in {"self", "cls"}]


def _own_attributes(facts: Facts) -> Codes:
    """`self.x = …` for attributes that the class reads and this function does not set."""
    function = facts.function
    if not function.owners or not function.node.args.args:
        return
    own = function.node.args.args[0].arg
    used: dict[str, int] = {}
    for node in ast.walk(facts.source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            stored = isinstance(node.ctx, ast.Store) and function.node.lineno <= node.lineno <= function.last_line
            used[node.attr] = used.get(node.attr, 0) + (1000 if stored else 1)
    attributes = [name for name, count in used.items() if count < 1000]
    scope = [name for name in facts.outer_scope() if name not in {own}]
    for attribute in attributes:
        for name in scope:
            alike = likeness(attribute, name.rpartition(".")[2])
            yield 3.8 - 1.4 * alike, "missing attribute", f"{own}.{attribute} = {name}"
        for place, value in enumerate(PLAIN_VALUES):
            yield 3.4 + 0.05 * place, "missing attribute", f"{own}.{attribute} = {value}"
    for attribute in attributes[:30]:
        for text, rank in _calls_of_functions(facts):
            yield 4.2 + rank, "missing attribute", f"{own}.{attribute} = {text}"


def _copies(facts: Facts, spot: Spot) -> Codes:
    """Statements of other functions; those of this one are another template's."""
    base = 3.7 if spot.hole else 4.6
    for far, sample in near_samples(facts):
        if not spot.hole and far > 0.6:
            break
        for cost, text in fitted(sample, facts):
            yield base + far + cost, "statement from elsewhere", text


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

    def __init__(self, facts: Facts, suspicion: dict[int, float], words: tuple[str, ...] = ()) -> None:
        self.facts = facts
        self.suspicion = suspicion
        self.undefined = undefined_names(facts)
        self.clues = Clues(facts, words)

    def price(self, score: float) -> float:
        return -SUSPICION_WEIGHT * math.log(max(score, LEAST_SUSPICION))

    def candidates(self, proposals: Proposals, score: float) -> list[Candidate]:
        return [self.candidate(proposal, score) for proposal in proposals]

    def candidate(self, proposal: Proposal, score: float) -> Candidate:
        lines = self.facts.source.line_of(proposal.edits[0].start), self.facts.source.line_of(proposal.edits[-1].end)
        own = max((self.suspicion.get(line, 0.0) for line in range(lines[0], lines[1] + 1)), default=0.0)
        seen = self.clues.of_edits(proposal.edits)
        clues = weigh(seen)
        cost = proposal.cost + PRIORS.get(proposal.template, 0.0) + clues + self.price(max(own, score * 0.999))
        path, function = self.facts.source.path, self.facts.function.index
        return Candidate(cost, proposal.template, path, proposal.edits, function, proposal.line, tuple(seen), clues)

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
        yield from mutable_defaults(self.facts)
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
        less = HOLE_BONUS if is_hole(block, place) else 0.0
        yield (
            2.6 - less + price,
            lambda: self.candidates(inserted_statements(facts, block, place), score),
        )
        yield 4.4 - less + price, lambda: self.candidates(guards(facts, block, place), score)
        # With no name left open and no hole, only statements from elsewhere come, and those are dear.
        least = 2.0 - less if less or self.undefined else 4.6
        yield least + price, lambda: self.candidates(missing_statements(facts, block, place), score)
