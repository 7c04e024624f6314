"""The search among edits that take effect only when the program is imported anew."""

from __future__ import annotations

import ast
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reflex_inside.expressions import negations
from reflex_inside.generator import NARROW, Generator, own_expressions
from reflex_inside.judge import JudgingPlan
from reflex_inside.patch_search import PROGRESS_SECONDS, PatchSearch
from reflex_inside.program import (
    FUNCTION_NODES,
    Candidate,
    Facts,
    Frontier,
    Function,
    Portion,
    Program,
    blocks_in,
    definitions,
    gather_facts,
    is_test_file,
    outermost_functions,
)
from reflex_inside.site import Site
from reflex_inside.statements import changed_statements
from reflex_inside.suite import Problem, Suite
from reflex_inside.trace import LineSuspicion
from reflex_inside.zygote import Preparation, Trials, TrialTask

if TYPE_CHECKING:
    from reflex_inside.engine import Engine


Line = tuple[str, int]
LEAST_SCORE = 0.05


def outside_candidates(program: Program, suspicion: LineSuspicion) -> list[Candidate]:
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
        inner = list(blocks_in(statement))
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
        Candidate(each.cost + price, each.template, path, each.edits, -1, each.line)
        for each in _proposals(facts, block, place)
    ]


def cheapest(found: list[Candidate]) -> list[Candidate]:
    unique = {candidate.key: candidate for candidate in sorted(found, key=lambda each: -each.cost)}
    return sorted(unique.values(), key=lambda candidate: candidate.cost)


def _proposals(facts: Facts, block: list[ast.stmt], place: int) -> Iterator[Any]:
    for expression in own_expressions(block[place]):
        template = NARROW.get(type(expression))
        if template is not None and isinstance(getattr(expression, "ctx", ast.Load()), ast.Load):
            yield from template(Site(facts, expression), expression)
            yield from negations(Site(facts, expression), expression)
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


def import_time_portions(program: Program, function: Function, scores: dict[int, float]) -> Iterator[Portion]:
    """Edits of a function that runs at import, by the scores of its lines."""
    generator = Generator(
        gather_facts(Facts(program.sources[function.path], function, others=list(program.sources.values()))), scores
    )
    for bound, make in generator.portions():
        yield bound, lambda make=make: [replace(each, function=-1) for each in make()]  # type: ignore[misc]


WATCH_SECONDS = 20.0
RUN_AT_IMPORT = 0.43
"""How suspicious a line is only because it ran at import."""
BESIDE = 0.7
"""A line that ran in the function where the import broke, against the line that broke."""
OUTWARDS = 0.8
LATER_PROBLEM = 0.6


class Definitions:
    """The candidates of this kind by their cost; each is judged once."""

    def __init__(
        self, engine: Engine, suite: Suite, program: Program, suspicion: LineSuspicion, plan: JudgingPlan
    ) -> None:
        self.engine = engine
        self.suite = suite
        self.program = program
        self.suspicion = suspicion
        self.plan = plan
        self.problems = mendable(program, suite.problems)
        self.frontier: Frontier | None = None
        self.any = False

    def search(self, search: PatchSearch, most_cost: float, share: float) -> None:
        """Judges those up to a cost, within a share of the request's time."""
        if self.frontier is None:
            self.frontier = self._prepared()
        frontier, engine = self.frontier, self.engine

        def take() -> Candidate | None:
            if frontier.bound > most_cost or (taken := frontier.next()) is None or taken[0].cost > most_cost:
                return None
            self.any = True
            return taken[0]

        if frontier.bound > most_cost:
            return
        engine.wire.send("stage", name="definitions")
        latest = engine.started + engine.request.seconds * 0.95
        deadline = min(latest, time.monotonic() + engine.request.seconds * share)
        trials = Trials(engine.zygotes, self._first, self.last)
        before, reported = search.pool.tried, 0.0

        def report() -> None:
            nonlocal reported
            search.pool.tried = before + trials.tried
            if time.monotonic() - reported > PROGRESS_SECONDS:
                reported = time.monotonic()
                search.report(search)

        search.plausible += trials.search(take, deadline, report)

    def _prepared(self) -> Frontier:
        """Everything that can be promised; where that is anything, zygotes are told what to have ready."""
        program, engine = self.program, self.engine
        ran: frozenset[Line] = frozenset()
        watching = any(calls_at_import(source.tree) for source in program.sources.values())
        if watching:
            ran = engine.zygotes[0].lines_at_import(engine.request.root, max(WATCH_SECONDS, engine.left / 2))
        frontier = Frontier()
        broken = broken_lines(program, self.problems)
        frontier.add(outside_candidates(program, self.suspicion))
        frontier.add(broken_statements(program, broken))
        swappable = {
            (program.functions[index].path, program.functions[index].first_line) for index in self.suspicion.functions
        }
        for function in written_functions(program):
            if (function.path, function.first_line) in swappable and not self.problems:
                continue
            body = range(function.node.body[0].lineno, function.last_line + 1)
            inside = {line: broken[function.path, line] for line in body if (function.path, line) in broken}
            usual = max(RUN_AT_IMPORT, BESIDE * max(inside.values(), default=0.0))
            # Where nobody could watch in time, any function may have run.
            scores = {line: usual for line in body if watching and (not ran or (function.path, line) in ran)} | inside
            if scores:
                frontier.promise(import_time_portions(program, function, scores))
        if frontier.heap:
            self._prepare_zygotes()
        return frontier

    def _prepare_zygotes(self) -> None:
        engine, known = self.engine, sys.stdlib_module_names
        modules = [name for name in list(sys.modules) if name.partition(".")[0] in known and name != "__main__"]
        places = {problem.place.partition("::")[0] for problem in self.suite.problems}
        unread = {f"{engine.request.root}/{place}" for place in places if place.endswith(".py")}
        tests = tuple(sorted({case.path for case in self.suite.cases} | unread))
        for zygote in engine.zygotes:
            zygote.send(Preparation(tuple(modules), tuple(self.program.sources), tests))
        for zygote in engine.zygotes:
            zygote.result()

    def _task(self, candidate: Candidate) -> TrialTask:
        data = self.program.sources[candidate.path].edited(candidate.edits)
        spared = {problem.place for problem in self.suite.problems if problem not in self.problems}
        return TrialTask(candidate.path, data, excused=frozenset(spared))

    def _first(self, candidate: Candidate) -> TrialTask:
        """The cheapest look at a candidate: the first failing test, or the first place that broke."""
        task = self._task(candidate)
        if self.problems:
            return TrialTask(task.path, task.data, only=(self.problems[0].place,), excused=task.excused, whole=True)
        name = self.suite.cases[self.plan.failing[0]].name
        return TrialTask(task.path, task.data, names=(name,), only=(name,), excused=task.excused)

    def last(self, candidate: Candidate) -> TrialTask:
        """The failing tests, then those that always passed, quick ones first."""
        task, plan, cases = self._task(candidate), self.plan, self.suite.cases
        passing = sorted(plan.seconds, key=lambda index: plan.seconds[index])
        others = [index for index in passing if index not in plan.failing and index in plan.steady]
        names = tuple(cases[index].name for index in (*plan.failing, *others))
        unsteady = {case.name for case in cases} - set(names)
        return TrialTask(task.path, task.data, names, excused=task.excused | unsteady, whole=bool(self.problems))


def mendable(program: Program, problems: list[Problem]) -> list[Problem]:
    """The problems of collection that come from the program's own sources."""
    return [
        problem
        for problem in problems
        if any(path in program.sources for path, _ in problem.frames) and problem.kind != "ModuleNotFoundError"
    ]


def broken_lines(program: Program, problems: list[Problem]) -> dict[Line, float]:
    """The lines through which an exception went that broke the import, those nearest to its origin first."""
    scores: dict[Line, float] = {}
    for number, problem in enumerate(problems):
        score = 1.0 if number == 0 else LATER_PROBLEM
        for path, line in reversed(problem.frames):
            if path in program.sources and not is_test_file(path, program.root):
                scores[path, line] = max(score, scores.get((path, line), 0.0))
                score *= OUTWARDS
    return scores
