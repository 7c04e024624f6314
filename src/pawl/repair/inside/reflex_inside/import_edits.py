"""The search among edits that take effect only when the program is imported anew."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import math
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from reflex_inside.expressions import negations
from reflex_inside.generator import NARROW, Generator, own_expressions
from reflex_inside.hosts import run_host, run_pytest
from reflex_inside.patch_search import PROGRESS_SECONDS, JudgingPlan, PatchSearch
from reflex_inside.processes import Catch, Child, end_child, forked, limit_memory, receive, send, silence, tracing
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
    outermost_functions,
)
from reflex_inside.site import Site
from reflex_inside.statements import changed_statements
from reflex_inside.suite import EngineRequest, Problem, Suite
from reflex_inside.trace import LineSuspicion

if TYPE_CHECKING:
    from reflex_inside.engine import Engine


SECONDS_PER_TEST = 3.0


@dataclass(frozen=True, slots=True)
class TrialTask:
    """Asks a fork whether tests pass with a file replaced."""

    path: str
    data: bytes
    names: tuple[str, ...] = ()
    """The tests that have to pass, in this order."""
    seconds: float = 60.0
    only: tuple[str, ...] = ()
    """Places to collect; empty means everything."""
    excused: frozenset[str] = frozenset()
    """Places that could not be collected for reasons of their own, and tests that need not pass."""
    whole: bool = False
    """Whether all tests have to pass that are collected, not only the named ones."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Work that every fork would do again: imports of the standard library, compiling sources and tests."""

    modules: tuple[str, ...]
    sources: tuple[str, ...]
    tests: tuple[str, ...]


class Warm(Child):
    """Answers tasks with True or False, or with None where it cannot tell."""

    def __init__(self, request: EngineRequest, *, early: bool = False) -> None:
        super().__init__(lambda inbox, outbox: _Forks(request, (inbox, outbox), early=early).run())

    def answer(self, task: TrialTask | Preparation) -> Any:
        with Catch():
            self.send(task)
            return self.receive()
        return None


class _Forks:
    """Inside pytest's own run: stops before collection, or before any conftest, and goes on only in forks."""

    def __init__(self, request: EngineRequest, pipes: tuple[int, int], *, early: bool) -> None:
        self.request = request
        self.inbox, self.outbox = pipes
        self.early = early
        self.task: TrialTask | None = None
        self.reply = -1

    def run(self) -> None:
        run_pytest(self.request, self._judge, (self.before_conftests, self.before_collection))
        if self.task is not None:
            # The fork did not get as far as its tests.
            self._say(answer=False)

    def before_conftests(self, session: Any) -> None:
        if self.early:
            self._wait(None)

    def before_collection(self, session: Any) -> None:
        if not self.early:
            self._wait(session.config)
        if self.task is not None and self.task.only:
            session.config.args = list(self.task.only)

    def _wait(self, config: Any) -> None:
        """Returns only in a fork, which then goes on."""
        while (task := receive(self.inbox)) is not None:
            if isinstance(task, Preparation):
                with Catch():
                    prepare(task, config)
                send(self.outbox, True)
                continue
            if any(getattr(module, "__file__", None) == task.path for module in list(sys.modules.values())):
                # Something, such as a conftest, has imported it before any test was looked for.
                send(self.outbox, None)
                continue
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(read)
                self.task, self.reply = task, write
                serve_instead(task.path, task.data)
                return
            os.close(write)
            ready, _, _ = select.select([read], [], [], task.seconds)
            answer = receive(read) if ready else None
            os.close(read)
            end_child(child)
            send(self.outbox, bool(answer))
        os._exit(0)

    def _judge(self, suite: Suite) -> None:
        assert self.task is not None
        self._say(answer=passes(self.task, suite))

    def _say(self, *, answer: bool) -> None:
        send(self.reply, answer)
        os._exit(0)


def passes(task: TrialTask, suite: Suite) -> bool:
    """Whether the tests pass that the task asks for, and everything could be collected."""
    if any(problem.place not in task.excused for problem in suite.problems):
        return False
    places = {case.name: index for index, case in enumerate(suite.cases)}
    if not places or any(name not in places for name in task.names):
        return False
    order = [places[name] for name in task.names]
    if task.whole:
        known = {*task.names, *task.excused}
        order += [index for name, index in places.items() if name not in known]
    return all(suite.run(index, SECONDS_PER_TEST).passed for index in order)


def serve_instead(path: str, data: bytes) -> None:
    """Makes every import of the file see other content."""
    loader = importlib.machinery.SourceFileLoader
    read = loader.get_data

    def get_data(self: Any, wanted: str) -> bytes:
        if wanted == path:
            return data
        if wanted == importlib.util.cache_from_source(path):
            raise OSError(f"{wanted!r} is older than its source")
        return read(self, wanted)

    loader.get_data = get_data  # type: ignore[method-assign, assignment]


def prepare(preparation: Preparation, config: Any) -> None:
    """Does in this process what its forks then find done; what cannot be done is left to them."""
    for name in preparation.modules:
        with Catch():
            importlib.import_module(name)
    compiled: dict[str, tuple[bytes, CodeType]] = {}
    for path in preparation.sources:
        with Catch():
            data = Path(path).read_bytes()
            compiled[path] = (data, compile(data, path, "exec", dont_inherit=True))
    remember_compiled(compiled)
    with Catch():
        remember_rewritten(preparation.tests, config)


def remember_compiled(compiled: dict[str, tuple[bytes, CodeType]]) -> None:
    loader: Any = importlib.machinery.SourceFileLoader
    translate = loader.source_to_code

    def source_to_code(self: Any, data: bytes, path: str, **options: Any) -> Any:
        known = compiled.get(path)
        return known[1] if known is not None and known[0] == data else translate(self, data, path, **options)

    loader.source_to_code = source_to_code


def remember_rewritten(tests: tuple[str, ...], config: Any) -> None:
    """Keeps tests as pytest compiles them, with its own kind of assertions."""
    from _pytest.assertion import rewrite

    module: Any = rewrite
    translate = module._rewrite_test
    known: dict[str, Any] = {}
    for path in tests:
        with Catch():
            known[path] = translate(Path(path), config)

    def rewritten(path: Path, used: Any) -> Any:
        return known.get(str(path)) or translate(path, used)

    module._rewrite_test = rewritten


MOST_PLAUSIBLE = 3
RIVAL_SECONDS = 3.0
LONGEST_TRIAL = 60.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Asks which lines of files below a folder run while the tests are collected."""

    folder: str
    seconds: float


class Zygote(Child):
    def __init__(self, request: EngineRequest) -> None:
        self.request = request
        super().__init__(self._serve)

    def _serve(self, inbox: int, outbox: int) -> None:
        silence()
        limit_memory(self.request.memory_bytes)
        warm = Warm(self.request) if self.request.framework == "pytest" else None
        early, preparation = False, None
        while (task := receive(inbox)) is not None:
            if isinstance(task, Watch):
                send(outbox, forked(lambda: self._watch(task.folder), task.seconds))
                continue
            answer = warm.answer(task) if warm is not None else None
            if isinstance(task, Preparation):
                preparation = task
            elif answer is None and warm is not None and not early:
                # A conftest has imported the program: forks have to begin before that.
                warm.close()
                warm, early = Warm(self.request, early=True), True
                if preparation is not None:
                    warm.answer(preparation)
                answer = warm.answer(task)
            if answer is None and isinstance(task, TrialTask):
                answer = bool(forked(lambda: self._passes(task), task.seconds))
            send(outbox, answer)

    def _passes(self, task: TrialTask) -> bool:
        serve_instead(task.path, task.data)
        passed: list[bool] = []
        request = self.request
        # Options may belong to the words between them: then all of them stay.
        if task.only and request.framework == "pytest" and not any(word.startswith("-") for word in request.tests):
            request = replace(request, tests=task.only)
        run_host(request, lambda suite: passed.append(passes(task, suite)))
        return passed == [True]

    def _watch(self, folder: str) -> set[tuple[str, int]]:
        ran: set[tuple[str, int]] = set()
        inside = folder + os.sep

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                ran.add((frame.f_code.co_filename, frame.f_lineno))
            return step

        def enter(frame: FrameType, event: str, argument: Any) -> Any:
            return step if frame.f_code.co_filename.startswith(inside) else None

        def stop(suite: Suite) -> None:
            sys.settrace(None)

        with tracing(enter):
            run_host(self.request, stop)
        return ran

    def result(self) -> bool:
        return bool(self.receive())

    def passes(self, task: TrialTask) -> bool:
        self.send(task)
        return self.result()

    def lines_at_import(self, folder: str, seconds: float) -> frozenset[tuple[str, int]]:
        """The lines that run while the tests are collected; empty where that cannot be told."""
        self.send(Watch(folder, seconds))
        return frozenset(self.receive() or ())


@dataclass(slots=True)
class Trials:
    """Judges candidates, several at a time: by a few tests first, then by all."""

    zygotes: list[Zygote]
    first: Callable[[Candidate], TrialTask]
    last: Callable[[Candidate], TrialTask]
    tried: int = 0

    def search(
        self, take: Callable[[], Candidate | None], deadline: float, report: Callable[[], None]
    ) -> list[Candidate]:
        """The first candidates that pass, from those that can be taken before the deadline."""
        plausible: list[Candidate] = []
        busy: dict[int, tuple[Zygote, Candidate, bool]] = {}
        while True:
            for zygote in self.zygotes:
                left = deadline - time.monotonic()
                if zygote.inbox in busy or left <= 0 or len(plausible) >= MOST_PLAUSIBLE:
                    continue
                if (candidate := take()) is None:
                    break
                zygote.send(replace(self.first(candidate), seconds=min(left + 1, LONGEST_TRIAL)))
                busy[zygote.inbox] = (zygote, candidate, False)
            if not busy:
                return plausible
            ready, _, _ = select.select(list(busy), [], [])
            for inbox in ready:
                zygote, candidate, last = busy.pop(inbox)
                passed = zygote.result()
                if passed and not last:
                    left = max(1.0, deadline - time.monotonic())
                    zygote.send(replace(self.last(candidate), seconds=min(left + 1, LONGEST_TRIAL)))
                    busy[inbox] = (zygote, candidate, True)
                    continue
                self.tried += 1
                report()
                if passed:
                    plausible.append(candidate)
                    deadline = min(deadline, time.monotonic() + RIVAL_SECONDS)


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
        engine.stage("definitions")
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
            if path in program.sources:
                scores[path, line] = max(score, scores.get((path, line), 0.0))
                score *= OUTWARDS
    return scores
