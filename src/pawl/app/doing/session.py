"""The one way into runs for every interface: start one, resume one, answer what it asks. Commands in, events out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from pawl.app.asking.asking import configured
from pawl.app.asking.model_config import model_of
from pawl.app.doing.errands import Runner
from pawl.app.doing.record import RunRecord
from pawl.app.doing.reporting import composed
from pawl.app.doing.talking import Permit, Talker
from pawl.app.doing.verifying import Verifier
from pawl.app.doing.works import BenchWorks, chosen_hunks
from pawl.app.running import bench_places
from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.errors import (
    BudgetExceeded,
    Cancelled,
    ConfigError,
    ModelError,
    PawlError,
    SandboxUnavailable,
    SchemaUnmet,
    StoreError,
    UnknownEntry,
    UnknownModel,
    UsageError,
)
from pawl.core.finding import Verdict
from pawl.core.ports import Cancel
from pawl.core.run import Mode, Reasoning, RoleName, Stage
from pawl.core.run_event import RunEvent
from pawl.core.runs import Approved, Order, Place, Report, RunState, Trouble
from pawl.policy.table import standard_policy
from pawl.workflow import planning
from pawl.workflow.graph import Engine, next_place, wait_for_answer
from pawl.workflow.routing import Node, Outcome, moved
from pawl.workflow.workbench import Workbench
from pawl.workspace.bench import sweep

RESUMABLE = (ModelError, BudgetExceeded, Cancelled, StoreError, SandboxUnavailable, ConfigError)
"""What stops a run where it stands, so that it can go on when the cause is gone."""
IN_GRAPH = frozenset({Node.APPROVE})
"""Nodes that need the engine, because they may wait."""


@dataclass(frozen=True, slots=True)
class NodeEntered:
    """The run has come to a node of the graph."""

    place: Place


Event = RunEvent | NodeEntered | Verdict | object
"""What an interface may be told: of the run, of a talk, of a check, of the reflex."""


@dataclass(slots=True)
class Session:
    """Runs of one workspace. `listen` is told of everything that happens, as it happens."""

    shop: Workshop
    listen: Callable[[Event], object] = lambda event: None
    cancel: Cancel | None = None
    permit: Permit | None = None
    """The permission rules of the workspace when None."""
    instructions: tuple[str, ...] = ()

    def do(self, order: Order) -> Report:
        """Carries a request as far as it goes without the user."""
        if not order.text.strip():
            raise UsageError("there is no request", advice="pawl do 'add a --verbose option'")
        place = Place(self.shop.run_id, Node.INTENT.value)
        self.shop.store.runs.begin(self.shop.workspace, place, order)
        self.shop.note("run", {"request": order.text, "mode": order.mode, "approval": order.approval})
        return self._go(place, order)

    def resume(self, run: str) -> Report:
        """Goes on with a run that was interrupted; one that waits or has ended is only reported."""
        row = self.shop.store.runs.get(self.shop.workspace, run)
        if row.state is not RunState.WORKING:
            return composed(self.shop, run)
        self.shop.run_id = run
        self.shop.store.runs.put(run, "trouble", None)
        return self._go(row.place, row.order)

    def answer(self, run: str, given: Approved) -> Report:
        """Answers what the run waits for. An answer to something else than what is there now is refused."""
        row = self.shop.store.runs.get(self.shop.workspace, run)
        if row.state is not RunState.WAITING:
            raise UsageError(f"the run {run} does not wait for an answer", advice=f"it is {row.state}")
        # A slip of the pen must not end the run.
        chosen_hunks(self.shop, self.shown(run), given.hunks)
        self.shop.run_id = run
        self.shop.store.runs.put(run, "stale", None)
        return self._go(row.place, row.order, {**asdict(given), "answer": str(given.answer)})

    def waiting(self, run: str | None = None) -> Report:
        """The run that waits for the user: that one, or the newest."""
        runs = self.shop.store.runs
        if run is not None:
            return composed(self.shop, runs.get(self.shop.workspace, run).id)
        found = runs.list(self.shop.workspace, state=RunState.WAITING, limit=1)
        if not found:
            raise UnknownEntry("no run waits for an answer", advice="'pawl do' starts one")
        return composed(self.shop, found[0].id)

    def shown(self, run: str) -> ChangeSet:
        """The change set that the user is asked about."""
        return self.shop.store.runs.work(run, "shown") or ChangeSet()

    def offered(self, model: str = "") -> tuple[str, tuple[str, ...]]:
        """The model that a run would ask, empty without one, and the tools that it would be given."""
        policy = standard_policy()
        tools = policy.decide(Stage.ACT, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF).tools
        try:
            return model_of(configured(self.shop, model), policy.role(RoleName.ARTISAN)), tools
        except UnknownModel:
            return "", tools

    def interrupted(self) -> str | None:
        """The newest run that can be resumed."""
        found = self.shop.store.runs.list(self.shop.workspace, state=RunState.WORKING, limit=1)
        return found[0].id if found else None

    def _go(self, place: Place, order: Order, answer: Mapping[str, object] | None = None) -> Report:
        started = time.monotonic()
        for folder in bench_places(self.shop.config):
            sweep(folder)
        record = RunRecord(self.shop, order, place.run)
        verifier = Verifier(
            shop=self.shop,
            test_command=order.test_command,
            commands=planning.verification_of(order.text),
            cancel=self.cancel,
            listen=self._hear_verdict,
        )
        works = BenchWorks(self.shop, record, verifier, self.cancel)
        talker = Talker(
            self.shop,
            record,
            works,
            self._conversation(record),
            self.listen,
            self.cancel,
            self.permit,
            self.instructions,
        )
        try:
            place = self._walk(place, self._bench(record, talker, works, verifier), answer)
            if place.at == Node.END:
                self.shop.store.runs.end(place)
            else:
                self.shop.store.runs.stand(place, RunState.WAITING)
        except RESUMABLE:
            # It stands where it stopped; the record says why.
            pass
        finally:
            talker.close()
            works.close()
        return composed(self.shop, place.run, seconds=time.monotonic() - started)

    def _walk(self, place: Place, bench: Workbench, answer: Mapping[str, object] | None) -> Place:
        """Node by node while the engine is loaded, then in the engine: it makes each step durable and can wait."""
        engine = Engine(self.shop.config.state)

        def step(at: Place) -> Place:
            return self._step(bench, at)

        begun = answer is not None or bench.record.value("in graph") is not None
        while not begun and not engine.is_loaded and place.at not in IN_GRAPH and place.at != Node.END:
            place = step(place)
        if place.at == Node.END:
            return place
        if not begun:
            bench.record.put("in graph", True)
        return engine.go(place, step, answer)

    def _step(self, bench: Workbench, place: Place) -> Place:
        self.shop.store.runs.stand(place, RunState.WORKING)
        self.listen(NodeEntered(place))
        self.shop.note("node", {"node": place.at, "task": place.task, "attempt": place.attempt})
        try:
            following = next_place(bench, place)
        except PawlError as error:
            self._trouble(bench, error)
            if isinstance(error, RESUMABLE) and not isinstance(error, SchemaUnmet):
                raise
            following = moved(place, Outcome.FAILED)
        self.shop.store.runs.stand(following, RunState.WORKING)
        return following

    def _trouble(self, bench: Workbench, error: PawlError) -> None:
        trouble = Trouble(code=error.code, message=error.message, advice=error.advice, exit_code=error.exit_code)
        bench.record.put("trouble", asdict(trouble))
        bench.record.note("trouble", {"error": error.code, "message": error.message})

    def _bench(self, record: RunRecord, talker: Talker, works: BenchWorks, verifier: Verifier) -> Workbench:
        settings = self.shop.config.settings
        return Workbench(
            record=record,
            talks=talker,
            works=works,
            errands=Runner(
                shop=self.shop,
                record=record,
                verifier=verifier,
                listen=self.listen,
                listen_to_reflex=self._hear_reflex,
                cancel=self.cancel,
            ),
            ask_user=wait_for_answer,
            review=settings.review,
            evaluator=settings.evaluator,
        )

    def _conversation(self, record: RunRecord) -> str:
        """The one to go on with, or a new one; the same when the run is resumed."""
        known = record.value("conversation")
        if not isinstance(known, str):
            known = record.order.conversation or f"c{secrets.token_hex(4)}"
            record.put("conversation", known)
        return known

    def _hear_verdict(self, verdict: Verdict) -> None:
        self.listen(verdict)

    def _hear_reflex(self, event: object) -> None:
        self.listen(event)
