"""The whole way from a red suite to a verified patch and its rivals."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import math
import os
import statistics
import sys
import textwrap
import time
from dataclasses import replace
from typing import Any

from reflex_inside.generator import Generator
from reflex_inside.holes import CandidateStream, Nursery
from reflex_inside.hosts import machinery, run_host
from reflex_inside.import_edits import Definitions, Zygote, mendable, outside_candidates
from reflex_inside.patch_choice import Choice
from reflex_inside.patch_search import Judge, JudgingPlan, PatchSearch, Pool, pairs, partial_fixes
from reflex_inside.processes import Catch, forked, silence
from reflex_inside.program import Facts, Frontier, Program, editable_paths, gather_facts, is_own
from reflex_inside.suite import EngineRequest, EventPipe, Suite, SuiteBaseline, take_baseline
from reflex_inside.trace import LineSuspicion, Observed, clusters, files_run, suspect, trace_suite

TRACE_SHARE = 0.15
MOST_FUNCTIONS = 60
MANY_SOURCES = 12
CHEAP = 3.0
"""Up to this cost, edits inside functions go first; then come definitions, which take longer to judge."""
AT_IMPORT = 1.0
"""How much more an edit may cost, in the first round, whose only flaw is that it acts at import."""
GROUP_SHARE = 0.5
"""Of the time, for the largest of several groups of failing tests."""
EARLY_SHARE, LATE_SHARE = 0.25, 0.2
"""Of the time, for definitions before and after all other edits inside functions."""


class Engine:
    """Carries one request to its end, inside the test framework's own loop."""

    def __init__(self, request: EngineRequest, wire: EventPipe, zygotes: list[Zygote]) -> None:
        self.request = request
        self.wire = wire
        self.zygotes = zygotes
        self.started = time.monotonic()
        self.done = False
        self.stages: dict[str, float] = {}
        """When each began."""

    @property
    def deadline(self) -> float:
        return self.started + self.request.seconds

    @property
    def left(self) -> float:
        return self.request.seconds - (time.monotonic() - self.started)

    def stage(self, name: str, **values: Any) -> None:
        self.stages[name] = time.monotonic()
        self.wire.send("stage", name=name, **values)

    def spent(self) -> str:
        """The stages so far and how long each took, the longest first."""
        ends = [*list(self.stages.values())[1:], time.monotonic()]
        took = {name: end - begun for (name, begun), end in zip(self.stages.items(), ends, strict=True)}
        longest = sorted(took.items(), key=lambda pair: -pair[1])[:3]
        return ", ".join(f"{name} {seconds:.0f} s" for name, seconds in longest if seconds >= 1)

    def finish(self, status: str, **values: Any) -> None:
        self.done = True
        seconds = round(time.monotonic() - self.started, 3)
        self.wire.send("done", status=status, seconds=seconds, **values)

    def work(self, suite: Suite) -> None:
        """Called by the host once everything is collected."""
        if suite.problems:
            self._send_problems(suite)
        if not suite.cases:
            self._collect_again(suite, SuiteBaseline({}, [], []))
            return
        self.stage("baseline", tests=len(suite.cases))
        baseline = take_baseline(suite, self.request.seconds)
        if baseline is None:
            self.finish("suite died")
            return
        self._send_baseline(suite, baseline)
        # Several bugs are mended one after the other: only the failures asked about count, if they are known.
        wanted = [index for index in baseline.failing if suite.cases[index].name in self.request.mend]
        baseline.failing = wanted or baseline.failing
        if not baseline.failing:
            self._collect_again(suite, baseline)
            return
        program = Program(self.request.root, self._targets(suite, baseline))
        if not program.functions and not mendable(program, suite.problems):
            self.finish("no sources")
            return
        self._repair(suite, baseline, program)

    def _collect_again(self, suite: Suite, baseline: SuiteBaseline) -> None:
        """No test fails that runs; what keeps others from being collected may lie in the program."""
        program = Program(self.request.root, self._targets(suite, baseline) if suite.problems else [])
        if mendable(program, suite.problems):
            plan = JudgingPlan([], {}, {}, 1.0, steady=frozenset(baseline.passing))
            self._mend_definitions(suite, program, baseline, LineSuspicion({}), plan)
        elif not suite.cases:
            self.finish("not collected" if suite.problems else "no tests")
        else:
            self.finish("flaky only" if baseline.flaky else "nothing fails")

    def _targets(self, suite: Suite, baseline: SuiteBaseline) -> list[str]:
        """The sources to look at; of many, only those that failing tests enter."""
        if self.request.targets:
            return [os.path.join(self.request.root, target) for target in self.request.targets]
        # What broke while tests were collected is no longer imported, and no test that runs enters it.
        root, pattern = self.request.root, self.request.test_paths
        broken = {path for problem in suite.problems for path, _ in problem.frames if is_own(path, root, pattern)}
        paths = editable_paths(root, pattern, {case.path for case in suite.cases} | machinery(suite))
        paths += sorted(broken.difference(paths))
        if len(paths) > MANY_SOURCES:
            tests = sorted(baseline.failing, key=lambda index: baseline.outcomes[index].timed_out)
            entered = forked(lambda: files_run(suite, tests, 5.0), 30.0) or set()
            paths = [path for path in paths if path in entered or path in broken] or paths
        return paths

    def _repair(self, suite: Suite, baseline: SuiteBaseline, program: Program) -> None:
        self.stage("trace")
        gc.collect()
        gc.freeze()
        observed = self._trace(suite, program, baseline)
        groups = clusters(program, baseline, observed)
        if len(groups) > 1:
            self.stage("largest group", tests=len(groups[0]))
            # The other groups are searched for later, and need their share.
            self.request = replace(self.request, seconds=self.request.seconds * GROUP_SHARE)
            baseline.failing, baseline.elsewhere = groups[0], [index for group in groups[1:] for index in group]
        suspicion = suspect(program, baseline, observed)
        self._send_suspicion(suspicion)
        plan = make_plan(program, suite, baseline, observed, suspicion)
        if not suspicion.functions or mendable(program, suite.problems):
            self._mend_definitions(suite, program, baseline, suspicion, plan)
            return
        strings = strings_of(suite, baseline.failing)
        words = (*self.request.words, *words_of(suite, baseline))
        generators = [
            Generator(self._facts(program, index, observed, strings), suspicion.functions[index], words)
            for index in suspicion.ordered_functions()[:MOST_FUNCTIONS]
        ]
        frontier = Frontier()
        for generator in generators:
            frontier.promise(generator.portions())
        frontier.promise([(1.5, lambda: outside_candidates(program, suspicion))])
        self.stage("search")
        nursery = Nursery(program, suite, generators)
        stream = CandidateStream(nursery, baseline, plan.passing, self.request.memory_bytes)
        pool = Pool(Judge(program, suite, plan), self.request.workers, self.request.memory_bytes)
        search = PatchSearch(
            frontier=frontier,
            pool=pool,
            deadline=self.started + self.request.seconds * (0.65 if len(plan.failing) > 1 else 0.8),
            limit=plan.limit,
            failing=len(plan.failing),
            stuck=baseline.outcomes[plan.failing[0]].timed_out,
            report=self._send_progress,
            arrived=stream.arrived,
            more=lambda: stream.open,
        )
        definitions = Definitions(self, suite, program, suspicion, plan)
        search_by_cost(search, definitions, stream)
        if not search.plausible and len(plan.failing) > 1 and not plan.isolated:
            self._search_pairs(search)
        pool.stop()
        Choice(self, suite, program, baseline, definitions).finish(search)

    def _mend_definitions(
        self, suite: Suite, program: Program, baseline: SuiteBaseline, suspicion: LineSuspicion, plan: JudgingPlan
    ) -> None:
        """The failing tests run nothing that can be swapped: what they show was made while all was imported."""
        pool = Pool(Judge(program, suite, plan), self.request.workers, self.request.memory_bytes)
        search = PatchSearch(
            frontier=Frontier(),
            pool=pool,
            deadline=self.deadline,
            limit=plan.limit,
            failing=0,
            report=self._send_progress,
        )
        definitions = Definitions(self, suite, program, suspicion, plan)
        definitions.search(search, math.inf, 0.8)
        pool.stop()
        if search.plausible or (definitions.any and suite.cases):
            Choice(self, suite, program, baseline, definitions).finish(search)
        else:
            self.finish("nothing to edit" if suite.cases else "not collected")

    def _search_pairs(self, search: PatchSearch) -> None:
        """Looks for two edits, when no single one will do."""
        self.stage("pairs")
        search.deadline = self.started + self.request.seconds * 0.9
        left = max(0.0, search.deadline - time.monotonic())
        given, judge = search.frontier.given, search.pool.judge
        firsts = forked(lambda: partial_fixes(judge, given, left * 0.4), left * 0.5 + 1)
        if firsts:
            search.frontier = Frontier()
            search.frontier.add(pairs(firsts, given))
            search.more = lambda: False
            search.arrived = lambda seconds: ()
            cut = search.cut
            search.run()
            search.cut = cut

    def _trace(self, suite: Suite, program: Program, baseline: SuiteBaseline) -> Observed:
        near = {suite.cases[index].path for index in baseline.failing}
        passing = [
            index for index in baseline.passing if suite.cases[index].path in near or not baseline.outcomes[index].waits
        ]
        passing.sort(key=lambda index: (baseline.outcomes[index].waits, suite.cases[index].path not in near))
        share = max(3.0, self.request.seconds * TRACE_SHARE)
        traced = forked(lambda: trace_suite(suite, program, baseline, passing, share), share * 3 + 20)
        return traced if isinstance(traced, Observed) else Observed()

    def _facts(self, program: Program, index: int, observed: Observed, strings: list[str]) -> Facts:
        function = program.functions[index]
        types = {name: frozenset(kinds - {"NoneType"}) for name, kinds in observed.types.get(index, {}).items()}
        attributes = observed.attributes.get(index, {})
        return gather_facts(
            Facts(
                program.sources[function.path],
                function,
                types,
                attributes,
                list(strings),
                list(program.sources.values()),
            )
        )

    def _send_problems(self, suite: Suite) -> None:
        for problem in suite.problems[:20]:
            self.wire.send("problem", place=problem.place, kind=problem.kind, message=problem.message)

    def _send_baseline(self, suite: Suite, baseline: SuiteBaseline) -> None:
        def named(indices: list[int]) -> list[str]:
            return [suite.cases[index].name for index in indices[:200]]

        self.wire.send(
            "baseline",
            failing=named(baseline.failing),
            said=[f"{one.kind}: {one.message}" for one in map(baseline.outcomes.__getitem__, baseline.failing[:200])],
            ending=named(baseline.ending),
            passed=len(baseline.passing),
            flaky=named(baseline.flaky),
            ordered=named(baseline.ordered),
            hanging=named([index for index in baseline.failing if baseline.outcomes[index].timed_out]),
        )

    def _send_suspicion(self, suspicion: LineSuspicion) -> None:
        lines = [
            {"path": os.path.relpath(path, self.request.root), "line": line, "score": round(score, 3)}
            for (path, line), score in suspicion.top(10)
        ]
        self.wire.send("suspicious", lines=lines)

    def _send_progress(self, search: PatchSearch) -> None:
        self.wire.send(
            "progress",
            tried=search.pool.tried,
            cpu=round(search.pool.cpu, 3),
            plausible=len(search.plausible),
            left=round(max(0.0, self.left), 1),
        )


def search_by_cost(search: PatchSearch, definitions: Definitions, stream: CandidateStream) -> None:
    """Cheap edits inside functions, then definitions, then all other edits, then the rest of the definitions."""
    search.stop_cost = CHEAP
    search.run()
    if not search.plausible:
        definitions.search(search, CHEAP + AT_IMPORT, EARLY_SHARE)
    if not search.plausible:
        search.stop_cost = math.inf
        search.run()
    stream.close()
    if not search.plausible:
        definitions.search(search, math.inf, LATE_SHARE)


def main(arguments: list[str]) -> int:
    """Runs one request; the exit code is 0 even when nothing was found: the events say what happened."""
    request = EngineRequest.parse(arguments[0])
    wire = EventPipe(os.dup(1))
    silence()
    root = os.path.realpath(request.root)
    os.chdir(root)
    sys.dont_write_bytecode = True
    sys.path.insert(0, root)
    request = replace(request, root=root)
    if request.framework == "pytest":
        # Imported before the forks, so that each has it.
        with Catch():
            importlib.import_module("pytest")
    zygotes = [Zygote(request) for _ in range(max(1, request.workers))]
    engine = Engine(request, wire, zygotes)
    with Catch() as caught:
        suite = run_host(request, engine.work)
        if not engine.done:
            engine._send_problems(suite)
            engine.finish("not collected" if suite.problems else "no tests")
    for zygote in zygotes:
        zygote.close()
    if caught.error is not None and not engine.done:
        engine.finish("engine failed", error=f"{type(caught.error).__name__}: {caught.error}")
    return 0


SHORTEST_LIMIT = 0.03


def make_plan(
    program: Program, suite: Suite, baseline: SuiteBaseline, observed: Observed, suspicion: LineSuspicion
) -> JudgingPlan:
    seconds = {index: outcome.seconds for index, outcome in baseline.outcomes.items()}
    failing = sorted(baseline.failing, key=lambda index: (baseline.outcomes[index].timed_out, seconds[index]))
    passing: dict[int, list[int]] = {}
    # A test that depends on what ran before it cannot judge out of turn. Where it stands far from all that fail, the
    # whole suite hears it at the end; near them, every judgement runs the suite in its own order.
    near = {suite.cases[index].path for index in baseline.failing}
    isolated = any(suite.cases[index].path in near for index in baseline.ordered)
    steady = [index for index in baseline.passing if isolated or index not in baseline.ordered]
    lines_of = {index: observed.covered.get(index, frozenset()) for index in steady}
    for function in (program.functions[index] for index in suspicion.functions):
        places = {(function.path, line) for line in range(function.node.body[0].lineno, function.last_line + 1)}
        running = [index for index, lines in lines_of.items() if not places.isdisjoint(lines)]
        passing[function.index] = sorted(running, key=lambda index: baseline.outcomes[index].wall)
    passing[-1] = sorted(steady, key=lambda index: baseline.outcomes[index].wall)
    usual = statistics.median([seconds[index] for index in baseline.passing] or [0.0])
    limit = max(SHORTEST_LIMIT, min(5 * usual, 2.0))
    return JudgingPlan(failing, passing, seconds, limit, isolated=isolated, steady=frozenset(baseline.passing))


def words_of(suite: Suite, baseline: SuiteBaseline) -> list[str]:
    """The names of the failing tests and the prose in the messages of their assertions."""
    found = []
    for index in baseline.failing[:20]:
        found.append(suite.cases[index].name.rpartition("::")[2].partition("[")[0])
        said = baseline.outcomes[index].message.splitlines()[:1]
        found += [line for line in said if not line.startswith("assert ")]
    return found


def strings_of(suite: Suite, failing: list[int]) -> list[str]:
    """Short strings that the failing tests mention."""
    found: dict[str, None] = {}
    for index in failing[:20]:
        function = suite.cases[index].function
        with Catch():
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 30:
                    found[node.value] = None
    return list(found)
