"""Carries a run from node to node: the workbench of the graph wired to the workspace, the models and the store."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from pawl.agent import planning
from pawl.agent.errands import Runner
from pawl.agent.events import Event
from pawl.agent.evidence import Requirements
from pawl.agent.extensions import own_evaluator, own_phrases_of
from pawl.agent.graph import GraphEngine, next_place, wait_for_answer
from pawl.agent.inbox import Inbox
from pawl.agent.learning import learnt
from pawl.agent.record import SECONDS, RunRecord, composed
from pawl.agent.routing import NodeOutcome, RunNode, moved
from pawl.agent.run_hooks import Hooking
from pawl.agent.talking import Talker
from pawl.agent.workbench import Climbed, Climber, Workbench
from pawl.agent.works import BenchWorks
from pawl.checks.verifier import Verifier
from pawl.core.dialogue import assistant, user
from pawl.core.errors import (
    BudgetExceeded,
    Cancelled,
    ConfigError,
    ModelError,
    PawlError,
    SandboxUnavailable,
    SchemaUnmet,
    StoreError,
)
from pawl.core.events import ApprovalAsked, NodeEntered, QueueChanged, RunBegun, RunEnded, Warned
from pawl.core.ports import Cancel
from pawl.core.run import Approval, Report, RunCursor, RunRequest, RunState, Trouble, order_body, order_from
from pawl.settings.permissions import Permit
from pawl.workspace.bench_folder import sweep
from pawl.workspace.commands import bench_places
from pawl.workspace.project import Project

RESUMABLE = (ModelError, BudgetExceeded, Cancelled, StoreError, SandboxUnavailable, ConfigError)
"""What stops a run where it stands, so that it can go on when the cause is gone."""
IN_GRAPH = frozenset({RunNode.APPROVE})
"""Nodes that need the engine, because they may wait."""
SAID = "said meanwhile"
"""The name under which the record keeps what the user has said and the run has not come to."""


@dataclass(slots=True, kw_only=True)
class RunExecutor:
    """Carries one run as far as it goes without the user."""

    shop: Project
    tell: Callable[[Event], object]
    inbox: Inbox
    record: RunRecord
    place: RunCursor
    cancel: Cancel | None = None
    permit: Permit | None = None
    opening: str = ""
    """How the session starts, for its hooks; empty when it has started already."""

    def go(self, answer: Mapping[str, object] | None = None, *, resumed: bool = False) -> Report:
        started = time.monotonic()
        place, order = self.place, self.record.order
        for folder in bench_places(self.shop.config):
            sweep(folder)
        conversation = self._conversation()
        if resumed:
            self._recall()
        self._hear(RunBegun(run=place.run, conversation=conversation, order=order, resumed=resumed))
        hooking = self.hooking(conversation)
        verifier = Verifier(
            shop=self.shop,
            test_command=order.test_command,
            commands=planning.verification_of(order.text),
            cancel=self.cancel,
            listen=self._hear,
        )
        works = BenchWorks(self.shop, self.record, verifier, self.cancel)
        talker = Talker(
            shop=self.shop,
            record=self.record,
            works=works,
            conversation=conversation,
            listen=self._hear,
            inbox=self.inbox,
            hooking=hooking,
            cancel=self.cancel,
            permit=self.permit,
        )
        try:
            self._carry(self._bench(talker, verifier, hooking), hooking, answer)
        finally:
            talker.close()
            works.close()
            self._spend(time.monotonic() - started)
        report = composed(self.shop, place.run)
        if report.question is not None:
            self._hear(ApprovalAsked(run=place.run, question=report.question))
            hooking.waits(report.question)
        self._hear(RunEnded(report))
        return report

    def _spend(self, seconds: float) -> None:
        """A run that waits for an answer is carried by several processes; its seconds are those of all of them."""
        before = self.record.value(SECONDS)
        self.record.put(SECONDS, seconds + (before if isinstance(before, float) else 0.0))

    def hooking(self, conversation: str) -> Hooking:
        return Hooking(
            shop=self.shop,
            order=self.record.order,
            run=self.record.run,
            conversation=conversation,
            tell=self._hear,
            cancel=self.cancel,
        )

    def _open(self, hooking: Hooking, place: RunCursor) -> None:
        """The hooks of the session and of the request, once; what they tell the model is frozen for the run."""
        source, self.opening = self.opening, ""
        context = hooking.begin(source) if source else ()
        if place.at == RunNode.INTENT and hooking.exist and self.record.value("hook context") is None:
            self.record.put("hook context", [*context, *hooking.submit(self.record.order.text)])

    def _carry(self, bench: Workbench, hooking: Hooking, answer: Mapping[str, object] | None) -> None:
        try:
            place = self._walk(bench, hooking, answer)
        except RESUMABLE:
            # It stands where it stopped; the record says why.
            return
        if place.at != RunNode.END:
            self.shop.store.runs.stand(place, RunState.WAITING)
            return
        left = self.inbox.take_words()
        if left:
            # Nobody was there any more to take these words: they are the next request.
            self.inbox.put_first(as_order(text, self.record.order) for text in left)
        learnt(self.shop, self.record)
        with self.shop.store.together():
            self._keep_said()
            self.shop.store.runs.end(place)

    def _walk(self, bench: Workbench, hooking: Hooking, answer: Mapping[str, object] | None) -> RunCursor:
        """Node by node while the engine is loaded, then in the engine: it makes each step durable and can wait."""
        engine = GraphEngine(self.shop.config.state)
        place = self.place

        def step(at: RunCursor) -> RunCursor:
            return self._step(bench, hooking, at)

        begun = answer is not None or bench.record.value("in graph") is not None
        while not begun and not engine.is_loaded and place.at not in IN_GRAPH and place.at != RunNode.END:
            if place.at == RunNode.VERIFY and bench.record.order.approval is not Approval.NEVER:
                # The user is about to be asked. The checks run in processes of their own, so that there is time.
                engine.load()
            place = step(place)
        if place.at == RunNode.END:
            return place
        if not begun:
            bench.record.put("in graph", True)
        return engine.go(place, step, answer)

    def _step(self, bench: Workbench, hooking: Hooking, place: RunCursor) -> RunCursor:
        self.shop.store.runs.stand(place, RunState.WORKING)
        self._hear(NodeEntered(place))
        self.shop.note("node", {"node": place.at, "task": place.task, "attempt": place.attempt})
        try:
            self._open(hooking, place)
            following = next_place(bench, place)
        except PawlError as error:
            self._trouble(error)
            if isinstance(error, RESUMABLE) and not isinstance(error, SchemaUnmet):
                raise
            following = moved(place, NodeOutcome.FAILED)
        self.shop.store.runs.stand(following, RunState.WORKING)
        return following

    def _trouble(self, error: PawlError) -> None:
        trouble = Trouble(code=error.code, message=error.message, advice=error.advice, exit_code=error.exit_code)
        self.record.put("trouble", asdict(trouble))
        self.record.note("trouble", {"error": error.code, "message": error.message})

    def _bench(self, talker: Talker, verifier: Verifier, hooking: Hooking) -> Workbench:
        settings = self.shop.config.settings
        return Workbench(
            record=self.record,
            talks=talker,
            works=talker.works,
            errands=Runner(
                shop=self.shop,
                record=self.record,
                verifier=verifier,
                conversation=hooking.conversation,
                inbox=self.inbox,
                hooking=hooking,
                listen=self._hear,
                cancel=self.cancel,
            ),
            ask_user=wait_for_answer,
            review=settings.review,
            evaluator=settings.evaluator,
            judge=self._judge(),
            phrases=lambda: own_phrases_of(self.shop.config, self.shop.workspace),
            climber=self._climber(talker, verifier),
        )

    def _judge(self) -> Callable[[], tuple[int, str]] | None:
        judge = own_evaluator(self.shop.config)
        return None if judge is None else lambda: self._scored(judge)

    def _scored(self, judge: Callable[[Report], tuple[int, str]]) -> tuple[int, str]:
        """A score is never in the way: the user is told of an evaluator that fails, and the rules score instead."""
        try:
            return judge(composed(self.shop, self.record.run))
        except ConfigError as error:
            self._hear(Warned(f"{error.message}; {error.advice}"))
            raise

    def _climber(self, talker: Talker, verifier: Verifier) -> Climber | None:
        if not any(self.record.order.loop.get(name) for name in ("ladder", "escalate")):
            return None

        def made() -> Climber:
            from pawl.agent.climber import climber

            return climber(talker, verifier, listen=self._hear)

        return LateClimber(made)

    def _conversation(self) -> str:
        """The one to go on with, or a new one; the same when the run is resumed."""
        known = self.record.value("conversation")
        if not isinstance(known, str):
            known = self.record.order.conversation or new_conversation_id()
            with self.shop.store.together():
                self.record.put("conversation", known)
                self.record.put("said before", self.shop.store.transcripts.last(known))
        return known

    def _keep_said(self) -> None:
        """Of a run without a talk the transcript has the request and what came of it, for whoever goes on."""
        transcripts, run = self.shop.store.transcripts, self.record.run
        conversation = self._conversation()
        if any(one.run == run for one in transcripts.messages(conversation)):
            return
        answer = str(self.record.value("answer") or "")
        for message in (user(self.record.order.text), assistant(answer or "Nothing came of it.")):
            transcripts.append(self.shop.workspace, conversation, message, run=run)

    def _hear(self, event: Event) -> None:
        """Tells the event. What the user has said by now is made durable first, so that nothing is said in vain."""
        changed = self.inbox.changed()
        if changed is not None:
            words, orders = changed
            self.record.put(SAID, {"words": list(words), "orders": [order_body(one) for one in orders]})
            self.tell(QueueChanged(orders))
        self.tell(event)

    def _recall(self) -> None:
        known = self.record.value(SAID)
        if isinstance(known, dict):
            self.inbox.restore(map(str, known["words"]), map(order_from, known["orders"]))


@dataclass(frozen=True, slots=True)
class LateClimber:
    """Fits `workbench.Climber`; it is loaded when something is climbed."""

    made: Callable[[], Climber]

    def climb(self, wanted: Requirements) -> Climbed:
        return self.made().climb(wanted)


def new_conversation_id() -> str:
    return f"c{secrets.token_hex(4)}"


def as_order(text: str, like: RunRequest) -> RunRequest:
    """The words as a request on the terms of the one before."""
    return RunRequest(
        text=text,
        mode=like.mode,
        approval=like.approval,
        model=like.model,
        test_command=like.test_command,
        reasoning=like.reasoning,
        budget=like.budget,
        loop=like.loop if "escalate" in like.loop else {},
    )
