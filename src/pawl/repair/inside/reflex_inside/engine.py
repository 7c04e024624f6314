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
from typing import Any

from reflex_inside.amplify import Comparison, compare
from reflex_inside.baseline import Baseline, take_baseline
from reflex_inside.caught import Caught, forked, silence
from reflex_inside.clusters import clusters
from reflex_inside.definitions import Definitions
from reflex_inside.edits import Candidate, Reach
from reflex_inside.facts import Facts, gather_facts
from reflex_inside.frontier import Frontier
from reflex_inside.generate import Generator
from reflex_inside.hosts import run_host
from reflex_inside.judge import Judge, Plan
from reflex_inside.pairs import pairs, partial_fixes
from reflex_inside.program import Program, editable_paths
from reflex_inside.protocol import Request, Wire
from reflex_inside.rank import rank
from reflex_inside.reimport import IMPORT_TIME_COST, Zygote, outside_candidates
from reflex_inside.search import Search
from reflex_inside.suite import Suite
from reflex_inside.suspicion import Suspicion, suspect
from reflex_inside.swap import install
from reflex_inside.synthesis.nursery import Nursery, Stream
from reflex_inside.templates.diagnostics import Diagnosis
from reflex_inside.trace import Observed, files_run, trace_suite
from reflex_inside.workers import Pool

TRACE_SHARE = 0.15
SHORTEST_LIMIT = 0.03
MOST_FUNCTIONS = 60
MANY_SOURCES = 12
MOST_COMPARED = 30
MOST_OFFERED = 8
MOST_WHOLE = 12
LEAST_WHOLE = 2
WHOLE_SHARE = 0.08
"""Of the time: for running the whole suite with each of the best candidates, beyond the first few."""
CHEAP = 3.0
"""Up to this cost, edits inside functions go first; then come definitions, which take longer to judge."""
EARLY_SHARE, LATE_SHARE = 0.25, 0.2
"""Of the time, for definitions before and after all other edits inside functions."""


class Engine:
    """Carries one request to its end, inside the test framework's own loop."""

    def __init__(self, request: Request, wire: Wire, zygotes: list[Zygote]) -> None:
        self.request = request
        self.wire = wire
        self.zygotes = zygotes
        self.started = time.monotonic()
        self.done = False
        self.verified: set[Candidate] = set()

    @property
    def deadline(self) -> float:
        return self.started + self.request.seconds

    @property
    def left(self) -> float:
        return self.request.seconds - (time.monotonic() - self.started)

    def finish(self, status: str, **values: Any) -> None:
        self.done = True
        seconds = round(time.monotonic() - self.started, 3)
        self.wire.send("done", status=status, seconds=seconds, **values)

    def work(self, suite: Suite) -> None:
        """Called by the host once everything is collected."""
        if suite.problems:
            self._send_problems(suite)
        if not suite.cases:
            self.finish("not collected" if suite.problems else "no tests")
            return
        self.wire.send("stage", name="baseline", tests=len(suite.cases))
        baseline = take_baseline(suite, self.request.seconds)
        if baseline is None:
            self.finish("suite died")
            return
        self._send_baseline(suite, baseline)
        self._narrow(suite, baseline)
        if not baseline.failing:
            self.finish("flaky only" if baseline.flaky else "nothing fails")
            return
        program = Program(self.request.root, self._targets(suite, baseline))
        if not program.functions:
            self.finish("no sources")
            return
        self._repair(suite, baseline, program)

    def _narrow(self, suite: Suite, baseline: Baseline) -> None:
        """Several bugs are mended one after the other: only the failures asked about count, if they are known."""
        wanted = set(self.request.mend)
        chosen = [index for index in baseline.failing if suite.cases[index].name in wanted]
        baseline.failing = chosen or baseline.failing

    def _targets(self, suite: Suite, baseline: Baseline) -> list[str]:
        """The sources to look at; of many, only those that failing tests enter."""
        if self.request.targets:
            return [os.path.join(self.request.root, target) for target in self.request.targets]
        paths = editable_paths(self.request.root, {case.path for case in suite.cases})
        if len(paths) > MANY_SOURCES:
            tests = sorted(baseline.failing, key=lambda index: baseline.outcomes[index].timed_out)
            entered = forked(lambda: files_run(suite, tests, 5.0), 30.0) or set()
            # What broke while tests were collected is suspicious too, though no test that runs enters it.
            entered |= {path for problem in suite.problems for path, _ in problem.frames}
            paths = [path for path in paths if path in entered] or paths
        return paths

    def _repair(self, suite: Suite, baseline: Baseline, program: Program) -> None:
        self.wire.send("stage", name="trace")
        gc.collect()
        gc.freeze()
        observed = self._trace(suite, program, baseline)
        groups = clusters(program, baseline, observed)
        if len(groups) > 1:
            self.wire.send("stage", name="largest group", tests=len(groups[0]))
            baseline.failing = groups[0]
        suspicion = suspect(program, baseline, observed)
        self._send_suspicion(suspicion)
        plan = make_plan(program, baseline, observed, suspicion)
        if not suspicion.functions:
            self._mend_definitions(suite, program, baseline, suspicion, plan)
            return
        frontier = Frontier()
        diagnoses = diagnoses_of(baseline)
        strings = strings_of(suite, baseline.failing)
        generators = [
            Generator(self._facts(program, index, observed, strings), suspicion.functions[index])
            for index in suspicion.ordered_functions()[:MOST_FUNCTIONS]
        ]
        for generator in generators:
            frontier.promise(generator.portions(diagnoses))
        frontier.promise([(1.5, lambda: outside_candidates(program, suspicion))])
        self.wire.send("stage", name="search")
        nursery = Nursery(program, suite, generators)
        stream = Stream(nursery, baseline, plan.passing, self.request.memory)
        pool = Pool(Judge(program, suite, plan), self.request.workers, self.request.memory)
        search = Search(
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
        search.stop_cost = CHEAP
        search.run()
        if not search.plausible:
            definitions.search(search, CHEAP + IMPORT_TIME_COST, EARLY_SHARE)
        if not search.plausible:
            search.stop_cost = math.inf
            search.run()
        stream.close()
        if not search.plausible:
            definitions.search(search, math.inf, LATE_SHARE)
        if not search.plausible and len(plan.failing) > 1 and not plan.isolated:
            self._search_pairs(search)
        pool.stop()
        self._finish_search(suite, program, baseline, search)

    def _mend_definitions(
        self, suite: Suite, program: Program, baseline: Baseline, suspicion: Suspicion, plan: Plan
    ) -> None:
        """The failing tests run nothing that can be swapped: what they show was made while all was imported."""
        pool = Pool(Judge(program, suite, plan), self.request.workers, self.request.memory)
        search = Search(frontier=Frontier(), pool=pool, deadline=self.deadline, limit=plan.limit, failing=0)
        definitions = Definitions(self, suite, program, suspicion, plan)
        definitions.search(search, math.inf, 0.8)
        pool.stop()
        if not definitions.any and not search.plausible:
            self.finish("nothing to edit")
        else:
            self._finish_search(suite, program, baseline, search)

    def _search_pairs(self, search: Search) -> None:
        """Looks for two edits, when no single one will do."""
        self.wire.send("stage", name="pairs")
        search.deadline = self.started + self.request.seconds * 0.9
        left = max(0.0, search.deadline - time.monotonic())
        given, judge = search.frontier.given, search.pool.judge
        firsts = forked(lambda: partial_fixes(judge, given, left * 0.4), left * 0.5 + 1)
        if firsts:
            search.frontier = Frontier()
            search.frontier.add(pairs(firsts, given))
            search.more = lambda: False
            search.arrived = lambda seconds: ()
            search.run()

    def _trace(self, suite: Suite, program: Program, baseline: Baseline) -> Observed:
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
        return gather_facts(Facts(program.sources[function.path], function, types, attributes, list(strings)))

    def _send_problems(self, suite: Suite) -> None:
        for problem in suite.problems[:20]:
            self.wire.send("problem", place=problem.place, kind=problem.kind, message=problem.message)

    def _send_baseline(self, suite: Suite, baseline: Baseline) -> None:
        def named(indices: list[int]) -> list[str]:
            return [suite.cases[index].name for index in indices[:200]]

        self.wire.send(
            "baseline",
            failing=named(baseline.failing),
            passed=len(baseline.passing),
            flaky=named(baseline.flaky),
            ordered=named(baseline.ordered),
            hanging=named([index for index in baseline.failing if baseline.outcomes[index].timed_out]),
            complete=baseline.complete,
            seconds=round(baseline.seconds, 3),
        )

    def _send_suspicion(self, suspicion: Suspicion) -> None:
        lines = [
            {"path": os.path.relpath(path, self.request.root), "line": line, "score": round(score, 3)}
            for (path, line), score in suspicion.top(10)
        ]
        self.wire.send("suspicious", lines=lines)

    def _send_progress(self, search: Search) -> None:
        self.wire.send(
            "progress",
            tried=search.pool.tried,
            cpu=round(search.pool.cpu, 3),
            plausible=len(search.plausible),
            left=round(max(0.0, self.left), 1),
        )

    def _finish_search(self, suite: Suite, program: Program, baseline: Baseline, search: Search) -> None:
        values: dict[str, Any] = {"tried": search.pool.tried, "cpu": round(search.pool.cpu, 3)}
        values["tests"] = [suite.cases[index].name for index in baseline.failing]
        if not search.plausible:
            self.finish("out of time" if self.left < self.request.seconds * 0.1 else "no patch", **values)
            return
        candidates = sorted(search.plausible, key=lambda candidate: candidate.cost)[:MOST_COMPARED]
        candidates = self._kept_whole(suite, program, baseline, candidates)
        if not candidates:
            self.finish("no patch", **values)
            return
        self.wire.send("stage", name="compare")
        tests = baseline.failing[:10] + baseline.passing[:30]
        seconds = max(1.0, min(4.0, self.request.seconds * 0.08))
        compared = forked(
            lambda: compare(program, suite, candidates, tests, seconds, self.request.seed), seconds * 8 + 20
        )
        ranking = rank(candidates, compared if isinstance(compared, Comparison) else None)
        ordered = ranking.ordered()[:MOST_OFFERED]
        patches = [{**self._patch(program, candidate), "group": group} for group, candidate in ordered]
        margin = round(min(ranking.margin, 99.0), 3)
        self.finish(
            "repaired", patches=patches, agreement=ranking.agreement, reason=ranking.reason, margin=margin, **values
        )

    def _kept_whole(
        self, suite: Suite, program: Program, baseline: Baseline, candidates: list[Candidate]
    ) -> list[Candidate]:
        """Without the candidates that break a passing test which no trace connected with them."""
        order = sorted(baseline.failing + baseline.passing)
        seconds = max(5.0, 4 * baseline.seconds) + 5
        kept: list[Candidate] = []
        until = time.monotonic() + WHOLE_SHARE * self.request.seconds
        for candidate in candidates:
            if len(kept) >= LEAST_WHOLE and time.monotonic() > until:
                kept.append(candidate)
                continue
            if self.left > 0 and len(kept) < MOST_WHOLE and candidate.reach is Reach.MODULE:
                names = [suite.cases[index].name for index in order]
                data = program.sources[candidate.path].edited(candidate.edits)
                if not self.zygotes[0].passes(candidate.path, data, names, seconds * 2):
                    continue
                self.verified.add(candidate)
            elif self.left > 0 and len(kept) < MOST_WHOLE:
                limits = {index: 4 * baseline.outcomes[index].seconds + 1.0 for index in order}
                passed = forked(lambda: whole(suite, program, candidate, limits), seconds)  # noqa: B023
                if passed is False:
                    continue
                if passed and baseline.complete:
                    self.verified.add(candidate)
            kept.append(candidate)
        return kept

    def _patch(self, program: Program, candidate: Candidate) -> dict[str, Any]:
        function = program.functions[candidate.function].name if candidate.function >= 0 else ""
        return {
            "path": os.path.relpath(candidate.path, self.request.root),
            "edits": [program.sources[candidate.path].trimmed(edit) for edit in sorted(candidate.edits)],
            "template": candidate.template,
            "function": function,
            "line": candidate.line,
            "cost": round(candidate.cost, 2),
            "verified": candidate in self.verified,
        }


def whole(suite: Suite, program: Program, candidate: Candidate, limits: dict[int, float]) -> bool:
    """Whether all tests pass in their own order."""
    return install(program, candidate) is not None and all(suite.run(i, limit).passed for i, limit in limits.items())


def make_plan(program: Program, baseline: Baseline, observed: Observed, suspicion: Suspicion) -> Plan:
    seconds = {index: outcome.seconds for index, outcome in baseline.outcomes.items()}
    failing = sorted(baseline.failing, key=lambda index: (baseline.outcomes[index].timed_out, seconds[index]))
    passing: dict[int, list[int]] = {}
    lines_of = {index: observed.covered.get(index, frozenset()) for index in baseline.passing}
    for function in (program.functions[index] for index in suspicion.functions):
        places = {(function.path, line) for line in range(function.node.body[0].lineno, function.last_line + 1)}
        running = [index for index, lines in lines_of.items() if not places.isdisjoint(lines)]
        passing[function.index] = sorted(running, key=lambda index: baseline.outcomes[index].wall)
    passing[-1] = sorted(baseline.passing, key=lambda index: baseline.outcomes[index].wall)
    usual = statistics.median([seconds[index] for index in baseline.passing] or [0.0])
    limit = max(SHORTEST_LIMIT, min(5 * usual, 2.0))
    return Plan(failing, passing, seconds, limit, isolated=bool(baseline.ordered), steady=frozenset(baseline.passing))


def diagnoses_of(baseline: Baseline) -> list[Diagnosis]:
    found = [Diagnosis(baseline.outcomes[index].kind, baseline.outcomes[index].message) for index in baseline.failing]
    return list(dict.fromkeys(found))


def strings_of(suite: Suite, failing: list[int]) -> list[str]:
    """Short strings that the failing tests mention."""
    found: dict[str, None] = {}
    for index in failing[:20]:
        function = suite.cases[index].function
        with Caught():
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 30:
                    found[node.value] = None
    return list(found)


def preload(request: Request) -> None:
    """Imports the framework before the fork, so that each fork has it."""
    if request.framework == "pytest":
        with Caught():
            importlib.import_module("pytest")


def main(arguments: list[str]) -> int:
    """Runs one request; the exit code is 0 even when nothing was found: the events say what happened."""
    request = Request.parse(arguments[0])
    wire = Wire(os.dup(1))
    silence()
    root = os.path.realpath(request.root)
    os.chdir(root)
    sys.dont_write_bytecode = True
    sys.path[:0] = [os.path.join(root, path) for path in request.paths] + [root]
    request = Request(**{**request.__dict__, "root": root})
    preload(request)
    zygotes = [Zygote(request) for _ in range(max(1, request.workers))]
    engine = Engine(request, wire, zygotes)
    with Caught() as caught:
        suite = run_host(request, engine.work)
        if not engine.done:
            engine._send_problems(suite)
            engine.finish("not collected" if suite.problems else "no tests")
    for zygote in zygotes:
        zygote.close()
    if caught.error is not None and not engine.done:
        engine.finish("engine failed", error=f"{type(caught.error).__name__}: {caught.error}")
    return 0
