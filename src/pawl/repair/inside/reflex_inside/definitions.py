"""Edits that take effect only when the program is imported anew: outside functions, and in those that run then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reflex_inside.edits import Candidate
from reflex_inside.judge import Plan
from reflex_inside.program import Program
from reflex_inside.reimport import import_time_candidates, outside_candidates, search_outside, works_at_import
from reflex_inside.search import Search
from reflex_inside.suite import Suite
from reflex_inside.suspicion import Suspicion

if TYPE_CHECKING:
    from reflex_inside.engine import Engine

WATCH_SECONDS = 20.0


class Definitions:
    """The candidates of this kind, cheapest first; each is judged once."""

    def __init__(self, engine: Engine, suite: Suite, program: Program, suspicion: Suspicion, plan: Plan) -> None:
        self.engine = engine
        self.suite = suite
        self.program = program
        self.suspicion = suspicion
        self.plan = plan
        self.left: list[Candidate] | None = None
        self.any = False

    def search(self, search: Search, most_cost: float, share: float) -> None:
        """Judges those up to a cost, within a share of the request's time."""
        if self.left is None:
            self.left = self._candidates()
            self.any = bool(self.left)
        chosen = [candidate for candidate in self.left if candidate.cost <= most_cost]
        if not chosen:
            return
        self.left = self.left[len(chosen) :]
        engine = self.engine
        engine.wire.send("stage", name="definitions", tests=len(chosen))
        latest = engine.started + engine.request.seconds * 0.95
        deadline = min(latest, time.monotonic() + engine.request.seconds * share)
        search.plausible += search_outside(engine.zygotes, self.program, chosen, self._names(), deadline)

    def _candidates(self) -> list[Candidate]:
        ran = self.engine.zygotes[0].run_at_import(WATCH_SECONDS)
        functions = [
            function
            for function in self.program.functions
            if (function.path, function.first_line) in ran and function.index not in self.suspicion.functions
        ] or works_at_import(self.program, self.suspicion)
        found = outside_candidates(self.program, self.suspicion) + import_time_candidates(self.program, functions)
        return sorted(found, key=lambda candidate: candidate.cost)

    def _names(self) -> list[str]:
        """The failing tests, then those that always passed, quick ones first."""
        plan, cases = self.plan, self.suite.cases
        passing = sorted(plan.seconds, key=lambda index: plan.seconds[index])
        others = [index for index in passing if index not in plan.failing and index in plan.steady]
        return [cases[index].name for index in (*plan.failing, *others)]
