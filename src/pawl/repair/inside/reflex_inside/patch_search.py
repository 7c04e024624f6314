"""The search: candidates by cost, judged in forked workers, until a patch and its rivals are known or time is up."""

from __future__ import annotations

import ast
import contextlib
import gc
import itertools
import math
import mmap
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from types import CodeType
from typing import Any

from reflex_inside.processes import Catch, Child, end_child, limit_memory, receive, send, silence
from reflex_inside.program import FUNCTION_NODES, Candidate, Frontier, Function, FunctionNode, Program, definitions
from reflex_inside.suite import Suite

Undo = Callable[[], None]
Defaults = tuple[tuple[Any, ...] | None, dict[str, Any] | None]


def install(program: Program, candidate: Candidate) -> Undo | None:
    """Makes the candidate act in this process; None when it does not compile or does not fit."""
    with Catch():
        make = _install_definition if candidate.at_import else _install_code
        return make(program, candidate)
    return None


def _install_definition(program: Program, candidate: Candidate) -> Undo | None:
    """Binds a name of a module or class anew, wherever the old value is known by that name."""
    source, module = program.sources[candidate.path], program.modules[candidate.path]
    before = [block[place] for block, place, _ in definitions(source.tree.body, ())]
    after = list(definitions(ast.parse(source.edited(candidate.edits)).body, ()))
    position = next(at for at, each in enumerate(before) if each.lineno <= candidate.line <= (each.end_lineno or 0))
    if len(after) != len(before):
        return None
    block, place, owners = after[position]
    statement = block[place]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name = statement.targets[0].id
    value = eval(compile(ast.Expression(statement.value), candidate.path, "eval"), module.__dict__)
    holder: Any = module
    for owner in owners:
        holder = getattr(holder, owner)
    old = vars(holder)[name]
    holders = [holder]
    if not owners:
        holders += [each for each in list(sys.modules.values()) if each is not module and _holds(each, name, old)]
    for each in holders:
        setattr(each, name, value)

    def undo() -> None:
        for each in holders:
            setattr(each, name, old)

    return undo


def _holds(module: Any, name: str, value: Any) -> bool:
    names = getattr(module, "__dict__", None)
    return isinstance(names, dict) and names.get(name) is value


def _install_code(program: Program, candidate: Candidate) -> Undo | None:
    function = program.functions[candidate.function]
    text = function_text(program, function, candidate)
    code = compile(text, function.path, "exec", program.sources[function.path].futures, dont_inherit=True)
    made = _codes_by_names(_inside_owners(code, function.owners))
    if (function.node.name,) not in made:
        return None
    pairs = [(live, made[names]) for names, functions in function.live.items() if names in made for live in functions]
    if any(live.__code__.co_freevars != code.co_freevars for live, code in pairs):
        return None
    defaults = _new_defaults(program, function, candidate, text)
    before = [(live, live.__code__, live.__defaults__, live.__kwdefaults__) for live, _ in pairs]
    for live, code in pairs:
        live.__code__ = code
    if defaults is not None:
        for live in function.live[(function.node.name,)]:
            live.__defaults__, live.__kwdefaults__ = defaults

    def undo() -> None:
        for live, code, positional, keyword in before:
            live.__code__, live.__defaults__, live.__kwdefaults__ = code, positional, keyword

    return undo


def function_text(program: Program, function: Function, candidate: Candidate) -> str:
    """The function alone with the edits made, under empty classes of the right names."""
    source = program.sources[function.path]
    start = source.starts[function.node.lineno - 1]
    end = source.offset(function.last_line, function.node.end_col_offset or 0)
    body = source.edited(candidate.edits, start, end).decode()
    if function.node.col_offset == 0:
        return body
    headers = [" " * depth + f"class {name}:\n" for depth, name in enumerate(function.owners)] or ["if 1:\n"]
    return "".join(headers) + body


def _inside_owners(code: CodeType, owners: tuple[str, ...]) -> CodeType:
    for owner in owners:
        inner = next((c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == owner), None)
        if inner is None:
            return code
        code = inner
    return code


def _codes_by_names(code: CodeType) -> dict[tuple[str, ...], CodeType]:
    found: dict[tuple[str, ...], CodeType] = {}
    pending: list[tuple[tuple[str, ...], CodeType]] = [((), code)]
    while pending:
        names, outer = pending.pop()
        for inner in outer.co_consts:
            if isinstance(inner, CodeType) and not inner.co_name.startswith("<"):
                found.setdefault((*names, inner.co_name), inner)
                pending.append(((*names, inner.co_name), inner))
    return found


def _new_defaults(program: Program, function: Function, candidate: Candidate, text: str) -> Defaults | None:
    """The default values, evaluated again when the signature was edited."""
    source = program.sources[function.path]
    body_start = source.offset(function.node.body[0].lineno, 0)
    if all(edit.start >= body_start for edit in candidate.edits):
        return None
    node = _first_function(ast.parse(text), function.node.name)
    if node is None:
        return None
    names = dict(function.namespace)

    def value(expression: ast.expr) -> Any:
        return eval(compile(ast.Expression(expression), function.path, "eval"), names)

    positional = tuple(value(default) for default in node.args.defaults)
    keyword = {
        argument.arg: value(default)
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if default is not None
    }
    return positional or None, keyword or None


def _first_function(tree: ast.AST, name: str) -> FunctionNode | None:
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION_NODES) and node.name == name:
            return node
    return None


class PatchVerdict(Enum):
    PLAUSIBLE = "plausible"
    FAILED = "failed"
    SLOW = "slow"
    BROKEN = "broken"
    """It does not compile."""


@dataclass(slots=True)
class JudgingPlan:
    """Which tests judge a candidate, in which order and within which limits."""

    failing: list[int]
    passing: dict[int, list[int]]
    """By function: the passing tests that run it, quick ones first."""
    seconds: dict[int, float]
    limit: float
    isolated: bool = False
    """Tests depend on their order: every candidate gets a fresh process and the suite's own order."""
    steady: frozenset[int] = frozenset()
    """The tests that passed every time."""

    def limit_of(self, index: int, wanted: float) -> float:
        return max(wanted or self.limit, 4 * self.seconds.get(index, 0.0) + 0.1)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: PatchVerdict
    fixed: int = 0
    """How many failing tests passed before the first that did not."""


class Judge:
    def __init__(self, program: Program, suite: Suite, plan: JudgingPlan) -> None:
        self.program = program
        self.suite = suite
        self.plan = plan

    def judge(self, candidate: Candidate, limit: float = 0.0) -> Judgement:
        undo = install(self.program, candidate)
        if undo is None:
            return Judgement(PatchVerdict.BROKEN)
        try:
            if self.plan.isolated:
                return self._in_fork(limit)
            return self._here(candidate, limit)
        finally:
            undo()

    def _here(self, candidate: Candidate, limit: float) -> Judgement:
        plan, fixed = self.plan, 0
        for index in plan.failing:
            outcome = self.suite.run(index, limit or plan.limit)
            if not outcome.passed:
                return Judgement(PatchVerdict.SLOW if outcome.timed_out else PatchVerdict.FAILED, fixed)
            fixed += 1
        for index in plan.passing.get(candidate.function, ()):
            outcome = self.suite.run(index, plan.limit_of(index, limit))
            if not outcome.passed:
                return Judgement(PatchVerdict.SLOW if outcome.timed_out else PatchVerdict.FAILED)
        return Judgement(PatchVerdict.PLAUSIBLE, fixed)

    def count_fixed(self, candidate: Candidate) -> int:
        """How many failing tests it fixes, all of them tried; 0 when it breaks a passing one."""
        undo = install(self.program, candidate)
        if undo is None:
            return 0
        try:
            ended = [self.suite.run(index, self.plan.limit).passed for index in self.plan.failing]
            if not any(ended):
                return 0
            passing = self.plan.passing.get(candidate.function, ())
            kept = all(self.suite.run(index, self.plan.limit_of(index, 0.0)).passed for index in passing)
            return sum(ended) if kept else 0
        finally:
            undo()

    def _in_fork(self, limit: float) -> Judgement:
        process = os.fork()
        if process == 0:
            with Catch():
                os._exit(self._ordered(limit))
            os._exit(1)
        return {0: Judgement(PatchVerdict.PLAUSIBLE, len(self.plan.failing)), 2: Judgement(PatchVerdict.SLOW)}.get(
            self._wait(process, max(8.0, limit * 20)), Judgement(PatchVerdict.FAILED)
        )

    def _ordered(self, limit: float) -> int:
        for index in sorted({*self.plan.failing, *self.plan.steady}):
            outcome = self.suite.run(index, self.plan.limit_of(index, limit))
            if not outcome.passed:
                return 2 if outcome.timed_out else 1
        return 0

    @staticmethod
    def _wait(process: int, seconds: float) -> int:
        """The exit code, or 2 for a process that had to be ended."""

        def late(number: int, frame: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        started = time.monotonic()
        _, status = os.waitpid(process, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        return 2 if time.monotonic() - started >= seconds else os.waitstatus_to_exitcode(status)


SLOT = struct.Struct("<q")
BATCH_SECONDS = 0.04
LARGEST_BATCH = 64
HUNG_SECONDS = 25.0
COLLECT_EVERY = 400

Task = tuple[int, Candidate, float]


@dataclass(slots=True)
class Worker:
    number: int
    child: Child
    tasks: dict[int, tuple[Candidate, float]] = field(default_factory=dict)
    seen: int = -1
    since: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    candidate: Candidate
    limit: float
    judgement: Judgement


class Pool:
    """Keeps some workers busy with batches of candidates."""

    def __init__(self, judge: Judge, count: int, memory: int) -> None:
        self.judge = judge
        self.count = max(1, count)
        self.memory = memory
        self.slots = mmap.mmap(-1, SLOT.size * self.count)
        self.workers: dict[int, Worker] = {}
        self.tried = 0
        self.ended_cpu = 0.0
        self.pace = 0.002
        self.serial = 0

    @property
    def cpu(self) -> float:
        return self.ended_cpu + sum(worker.cpu for worker in self.workers.values())

    def judged(self, take: Callable[[], tuple[Candidate, float] | None], deadline: float) -> Iterator[Result]:
        """Results as they come, until nothing is left to take or the deadline has passed."""
        while time.monotonic() < deadline:
            for number in range(self.count):
                self._feed(number, take)
            busy = [worker for worker in self.workers.values() if worker.tasks]
            if not busy:
                return
            ready, _, _ = select.select([worker.child.inbox for worker in busy], [], [], 0.1)
            for worker in busy:
                if worker.child.inbox in ready:
                    yield from self._collect(worker)
                else:
                    self._watch(worker)

    def _feed(self, number: int, take: Callable[[], tuple[Candidate, float] | None]) -> None:
        worker = self.workers.get(number)
        if worker is not None and worker.tasks:
            return
        batch: list[Task] = []
        size = max(1, min(LARGEST_BATCH, int(BATCH_SECONDS / self.pace)))
        while len(batch) < size and (taken := take()) is not None:
            self.serial += 1
            batch.append((self.serial, *taken))
            if taken[1]:
                break
        if not batch:
            return
        if worker is None:
            worker = self._spawn(number)
        worker.tasks = {serial: (candidate, limit) for serial, candidate, limit in batch}
        worker.since = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            worker.child.send(batch)

    def _spawn(self, number: int) -> Worker:
        worker = Worker(number, Child(lambda inbox, outbox: self._work(number, inbox, outbox)))
        self.workers[number] = worker
        return worker

    def _work(self, number: int, inbox: int, outbox: int) -> None:
        silence()
        gc.disable()
        limit_memory(self.memory)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))
        done = 0
        while (batch := receive(inbox)) is not None:
            for serial, candidate, limit in batch:
                SLOT.pack_into(self.slots, SLOT.size * number, serial)
                judgement = self.judge.judge(candidate, limit)
                send(outbox, (serial, judgement, time.process_time()))
                done += 1
                if done % COLLECT_EVERY == 0:
                    gc.collect()

    def _collect(self, worker: Worker) -> Iterator[Result]:
        received = worker.child.receive()
        if received is None:
            yield from self._replace(worker)
            return
        serial, judgement, cpu = received
        candidate, limit = worker.tasks.pop(serial)
        self.pace = 0.9 * self.pace + 0.1 * max(0.0002, cpu - worker.cpu)
        worker.cpu = cpu
        worker.since = time.monotonic()
        self.tried += 1
        yield Result(candidate, limit, judgement)

    def _watch(self, worker: Worker) -> None:
        (current,) = SLOT.unpack_from(self.slots, SLOT.size * worker.number)
        if current != worker.seen:
            worker.seen, worker.since = current, time.monotonic()
        longest = max((limit for _, limit in worker.tasks.values()), default=0.0)
        if time.monotonic() - worker.since > HUNG_SECONDS + 10 * longest:
            end_child(worker.child.process)

    def _replace(self, worker: Worker) -> Iterator[Result]:
        """The worker is gone: the candidate it was at is given up, the others are judged by its successor."""
        (current,) = SLOT.unpack_from(self.slots, SLOT.size * worker.number)
        left = {serial: task for serial, task in worker.tasks.items() if serial != current}
        guilty = worker.tasks.get(current)
        self._end(worker)
        if guilty is not None:
            yield Result(*guilty, Judgement(PatchVerdict.FAILED))
        if left:
            successor = self._spawn(worker.number)
            successor.tasks = left
            successor.since = time.monotonic()
            successor.child.send([(serial, *task) for serial, task in left.items()])

    def _end(self, worker: Worker) -> None:
        worker.child.close()
        self.ended_cpu += worker.cpu
        del self.workers[worker.number]

    def stop(self) -> None:
        for worker in list(self.workers.values()):
            self._end(worker)


RIVAL_COST = 2.2
"""How much dearer than the first plausible patch a rival may be."""
RIVAL_CPU = 2.0
ENOUGH = 60
LONGEST_LIMIT = 8.0
RETRY_LIMITS = (0.3, 1.5, LONGEST_LIMIT)
PROGRESS_SECONDS = 0.5
WAIT_SECONDS = 0.5


@dataclass(slots=True)
class PatchSearch:
    """State of one search over a frontier."""

    frontier: Frontier
    pool: Pool
    deadline: float
    limit: float
    failing: int
    stuck: bool = False
    """The first test hung before any change too, so that a candidate which hangs there has told nothing new."""
    report: Callable[[PatchSearch], None] = lambda search: None
    arrived: Callable[[float], Iterable[Candidate]] = lambda seconds: ()
    """Candidates that come from elsewhere, waited for as long as this."""
    more: Callable[[], bool] = lambda: False
    """Whether more can still come from elsewhere."""
    plausible: list[Candidate] = field(default_factory=list)
    stop_cpu: float = float("inf")
    stop_cost: float = float("inf")
    cut: bool = False
    """Whether the time was up while candidates were left."""

    def run(self) -> None:
        while time.monotonic() < self.deadline and not self._enough():
            self._judge_all()
            if not self.more() or self.frontier.bound > self.stop_cost:
                break
            self.frontier.add(self.arrived(WAIT_SECONDS))
        self.cut = time.monotonic() >= self.deadline and (self.frontier.bound < math.inf or self.more())
        self.report(self)

    def _judge_all(self) -> None:
        reported = 0.0
        for result in self.pool.judged(self._take, self.deadline):
            self._note(result)
            now = time.monotonic()
            if now - reported > PROGRESS_SECONDS:
                reported = now
                self.report(self)
            if self._enough():
                break

    def _enough(self) -> bool:
        return self.pool.cpu > self.stop_cpu or len(self.plausible) >= ENOUGH

    def _take(self) -> tuple[Candidate, float] | None:
        self.frontier.add(self.arrived(0.0))
        if self.frontier.bound > self.stop_cost:
            return None
        return self.frontier.next()

    def _note(self, result: Result) -> None:
        candidate, judgement = result.candidate, result.judgement
        if judgement.verdict is PatchVerdict.PLAUSIBLE:
            self.plausible.append(candidate)
            if len(self.plausible) == 1:
                self.stop_cpu = self.pool.cpu + RIVAL_CPU * self.pool.count
                self.stop_cost = candidate.cost + RIVAL_COST
        elif judgement.verdict is PatchVerdict.SLOW:
            self._retry(result)

    def _retry(self, result: Result) -> None:
        """Slow right programs exist; one that has fixed nearly everything is looked at again at once."""
        used = result.limit or self.limit
        if used >= LONGEST_LIMIT or self.plausible:
            return
        nearly = result.judgement.fixed >= max(1, self.failing - 1)
        steps = sum(used >= step for step in RETRY_LIMITS)
        some = 1.0 if result.judgement.fixed else 6.0 if self.stuck else 3.0
        penalty = (0.3 if nearly and result.judgement.fixed else some) + 1.0 * steps
        limit = next((step for step in RETRY_LIMITS if step > used * 2), LONGEST_LIMIT)
        self.frontier.retry(result.candidate, penalty, limit)


MOST_FIRST = 8
FIRST_TRIED = 4000
SECOND_TRIED = 2500


def partial_fixes(judge: Judge, candidates: list[Candidate], seconds: float) -> list[tuple[int, Candidate]]:
    """The candidates that fix most of the failing tests while keeping the passing ones, best first."""
    deadline = time.monotonic() + seconds
    found: list[tuple[int, Candidate]] = []
    for candidate in candidates[:FIRST_TRIED]:
        if time.monotonic() > deadline:
            break
        fixed = judge.count_fixed(candidate)
        if fixed:
            found.append((fixed, candidate))
    found.sort(key=lambda pair: (-pair[0], pair[1].cost))
    return found[: MOST_FIRST * 3]


def pairs(firsts: list[tuple[int, Candidate]], candidates: list[Candidate]) -> Iterator[Candidate]:
    """Each promising first edit with every cheap second one that does not overlap it."""
    lines: dict[tuple[str, int], int] = {}
    for _, first in firsts:
        place = (first.path, first.line)
        lines[place] = lines.get(place, 0) + 1
        # Many first edits of one line are variants of one idea.
        if lines[place] > 3 or first.at_import:
            continue
        for second in itertools.islice(candidates, SECOND_TRIED):
            if second.function == first.function and apart(first, second):
                yield replace(
                    first,
                    cost=first.cost + second.cost,
                    template=f"{first.template} and {second.template}",
                    edits=tuple(sorted(first.edits + second.edits)),
                )


def apart(first: Candidate, second: Candidate) -> bool:
    every = itertools.product(first.edits, second.edits)
    return not second.at_import and all(one.end < other.start or other.end < one.start for one, other in every)
