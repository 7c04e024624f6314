"""Walks a run over the routing table, node by node. Each step is durable, so that a run goes on after any stop."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING

from pawl.agent import nodes, opening_nodes, review
from pawl.agent.briefing import configured, run_budget
from pawl.agent.context import LoopEnd, TurnInput
from pawl.agent.inbox import Event, Inbox
from pawl.agent.intents import verification_of
from pawl.agent.nodes import Workbench
from pawl.agent.record import RunRecord, SaidMeanwhile, composed
from pawl.agent.replay import ReplayLog
from pawl.agent.routes import NodeOutcome, RunNode, moved
from pawl.agent.run_hooks import Hooking
from pawl.agent.talker import Talker
from pawl.agent.tools.toolbox import Others
from pawl.agent.works import BenchWorks, is_there
from pawl.agent.workspace_memory import learnt
from pawl.core.dialogue import assistant, user
from pawl.core.errors import (
    BudgetExceeded,
    Cancelled,
    ConfigError,
    ModelError,
    NotAuthorized,
    OutOfTime,
    PawlError,
    SandboxUnavailable,
    SchemaUnmet,
    StoreError,
    UnknownModel,
)
from pawl.core.events import ApprovalAsked, NodeEntered, QueueChanged, RunBegun, RunEnded, Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Report, RunCursor, RunRequest, RunState, trouble_of
from pawl.sandbox.cancel import CancelToken
from pawl.settings.permissions import Permit
from pawl.settings.trust import unread
from pawl.workspace.paths import bench_places
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.checks.verifier import Verifier


RESUMABLE = (ModelError, BudgetExceeded, Cancelled, StoreError, SandboxUnavailable, ConfigError)
"""Errors that pause a run; it resumes when the cause is gone."""
NODES: Mapping[RunNode, Callable[[Workbench, RunCursor], NodeOutcome]] = MappingProxyType(
    {
        RunNode.INTENT: opening_nodes.intent,
        RunNode.READ: opening_nodes.read,
        RunNode.RUN: opening_nodes.run,
        RunNode.UNDO: opening_nodes.undo,
        RunNode.PROFILE: opening_nodes.profile,
        RunNode.MEND: opening_nodes.mend,
        RunNode.PLAN: opening_nodes.plan,
        RunNode.PROVE: nodes.prove,
        RunNode.ACT: nodes.act,
        RunNode.VERIFY: nodes.verify,
        RunNode.CLIMB: nodes.climb,
        RunNode.DELIVER: nodes.deliver,
        RunNode.APPROVE: nodes.approve,
        RunNode.APPLY: nodes.apply,
        RunNode.KEEP: nodes.keep,
        RunNode.QA: review.qa,
        RunNode.EVALUATE: review.evaluate,
        RunNode.REPORT: nodes.report,
    }
)
"""The work of each node; the end has none."""
AT_HOME = frozenset(
    {RunNode.RUN, RunNode.UNDO, RunNode.DELIVER, RunNode.APPROVE, RunNode.APPLY, RunNode.KEEP, RunNode.REPORT}
)
"""Nodes that touch the workspace, its history or its user; a run on a copy of it on another machine stops before."""


@dataclass(slots=True, kw_only=True)
class RunExecutor:
    """Walks one run over the routing table. The run's record holds where it stands and what it waits for, so that any
    process can go on with it."""

    shop: Project
    tell: Callable[[Event], object]
    inbox: Inbox
    record: RunRecord
    place: RunCursor
    cancel: CancelToken | None = None
    permit: Permit | None = None
    opening: str = ""
    """How the session starts, for its hooks; empty when it has started already."""
    error: PawlError | None = None
    """The error that stopped the run or ended it early."""
    _lands: bool = False

    def go(self, *, resumed: bool = False, since: float | None = None) -> Report:
        """Walk to the end of the run, to where it waits for the user, or to where it is stopped."""
        if resumed:
            self._recall()
        self._begin(resumed=resumed and self.place.at != RunNode.INTENT)
        # A run that is stopped stands where it was; the record says why.
        with self._workbench(since=since) as bench, suppress(*RESUMABLE), ExitStack() as landing:
            while self.place.at != RunNode.END:
                if self.shop.away and self.place.at in AT_HOME:
                    break
                self._land(landing, bench.cancel)
                if not self._step(bench):
                    break
        return self._finish()

    def _land(self, landing: ExitStack, cancel: CancelToken | None) -> None:
        """Jobs of the queue that finish at the same time deliver one by one, each over what the one before promoted."""
        if self.shop.lease is not None and self.place.at == RunNode.DELIVER and not self._lands:
            assert cancel is not None
            landing.enter_context(self.shop.landing(cancel))
            self._lands = True
        elif self.place.at == RunNode.EVALUATE:
            landing.close()

    def go_one_node(self) -> RunCursor:
        """Do the work of one node, for an engine that walks the table itself. What stops a run is raised."""
        if self.place.at == RunNode.INTENT:
            self._begin(resumed=False)
        goes_on = self.place.at != RunNode.END
        if goes_on:
            with self._workbench(spent=self.record.data.seconds) as bench:
                goes_on = self._step(bench)
        if not goes_on or self.place.at == RunNode.END:
            self._finish()
        return self.place

    def _begin(self, *, resumed: bool) -> None:
        if any(any(folder.glob("*")) for folder in bench_places(self.shop.config)):
            # Something was left behind, or another run is at work.
            from pawl.workspace.bench import sweep

            for folder in bench_places(self.shop.config):
                sweep(folder)
        order, conversation = self.record.order, self._conversation()
        self._hear(RunBegun(run=self.place.run, conversation=conversation, order=order, resumed=resumed))
        if notice := unread(self.shop.config, self.shop.workspace):
            self._hear(Warned(notice))

    def _finish(self) -> Report:
        """Close a run at its end, and report."""
        if self.place.at == RunNode.END:
            self._end()
        report = composed(self.shop, self.place.run)
        if report.question is not None:
            self._hear(ApprovalAsked(run=self.place.run, question=report.question))
            self.hooking(report.conversation).waits(report.question)
        self._hear(RunEnded(report))
        return report

    def hooking(self, conversation: str) -> Hooking:
        return Hooking(
            shop=self.shop,
            order=self.record.order,
            run=self.record.run,
            conversation=conversation,
            tell=self._hear,
            cancel=self.shop.stop or self.cancel,
        )

    def _open(self, hooking: Hooking, place: RunCursor) -> None:
        """The hooks of the session and of the request, once; what they tell the model is frozen for the run."""
        source, self.opening = self.opening, ""
        context: tuple[str, ...] = ()
        if source and hooking.exist:
            context = hooking.begin(source, model=configured(self.shop, self.record.order.model).routes.default)
        if place.at == RunNode.INTENT and hooking.exist and self.record.data.hook_context is None:
            context = (*context, *hooking.submit(self.record.order.text))
            self.record.keep(replace(self.record.data, hook_context=context))

    def _end(self) -> None:
        left = self.inbox.take_words()
        if left:
            # Nobody was there any more to take these words: they are the next request.
            self.inbox.put_first(as_order(text, self.record.order) for text in left)
        learnt(self.shop, self.record)
        with self.shop.store.together():
            self._keep_said()
            self.shop.store.runs.end(self.place)

    def _step(self, bench: Workbench) -> bool:
        """Do the work of the node where the run stands, and move on; False where the run waits for the user."""
        place, runs = self.place, self.shop.store.runs
        self._hear(NodeEntered(place))
        self.shop.note("node", {"node": place.at, "task": place.task, "attempt": place.attempt})
        try:
            self._open(bench.hooking, place)
            data = self.record.data
            if place.at == RunNode.APPROVE and data.question is not None and data.response is None:
                runs.stand(place, RunState.WAITING)
                return False
            outcome = NODES[RunNode(place.at)](bench, place)
        except PawlError as error:
            self.error = error
            self.record.keep(replace(self.record.data, trouble=trouble_of(error)))
            self.record.note("trouble", {"error": error.code, "message": error.message})
            # A model that cannot be asked leaves no run behind where nothing is planned yet.
            unasked = (UnknownModel, NotAuthorized) if place.at in (RunNode.PLAN, RunNode.READ) else ()
            if isinstance(error, RESUMABLE) and not isinstance(error, (SchemaUnmet, OutOfTime, *unasked)):
                raise
            outcome = NodeOutcome.FAILED
        self.place = moved(place, outcome)
        runs.stand(self.place, RunState.WORKING)
        return True

    @contextmanager
    def _workbench(self, spent: float = 0.0, since: float | None = None) -> Iterator[Workbench]:
        """Open what the nodes work with; `spent` is how much of the run's time is gone, which counts from `since`."""
        conversation = self._conversation()
        started = time.monotonic() if since is None else since
        cancel = self.shop.stop = CancelToken(above=self.cancel, seconds=self._seconds(spent), since=started)
        hooking = self.hooking(conversation)
        works = BenchWorks(self.shop, self.record, self._verifier)
        talker = Talker(
            shop=self.shop,
            record=self.record,
            works=works,
            conversation=conversation,
            listen=self._hear,
            inbox=self.inbox,
            hooking=hooking,
            others=_others,
            cancel=cancel,
            permit=self.permit,
        )
        try:
            yield Workbench(
                record=self.record,
                talks=talker,
                works=works,
                hooking=hooking,
                listen=self._hear,
                cancel=cancel,
            )
        finally:
            talker.close()
            works.close()
            self.shop.stop = None
            cancel.close()
            # A run that waits is walked by several processes; its seconds are those of all of them.
            seconds = self.record.data.seconds + time.monotonic() - started
            self.record.keep(replace(self.record.data, seconds=seconds, notices=talker.notices))

    def _verifier(self) -> Verifier:
        # The checks take longer to load than all the rest of a question.
        from pawl.agent.demands import demanded
        from pawl.agent.request_scope import scope_of
        from pawl.checks.packages import PackagePolicy
        from pawl.checks.verifier import Verifier

        text = self.record.order.text
        return Verifier(
            shop=self.shop,
            test_command=self.record.order.test_command,
            words=text,
            mends=demanded(text).fixes,
            commands=verification_of(text),
            scope=scope_of(text, self.shop.workspace, partial(is_there, self.shop)),
            packages=PackagePolicy(install=self.record.order.install),
            listen=self._hear,
        )

    def _seconds(self, spent: float) -> float:
        """The time that is left to the run. A climb without a limit of its own limits each attempt."""
        order, settings = self.record.order, self.shop.config.tables.budget
        if order.loop.get("ladder") and "seconds" not in {*order.budget, *settings}:
            return inf
        return run_budget(self.shop, order).seconds - spent - self.record.data.climb_seconds

    def _conversation(self) -> str:
        """The one to go on with, or a new one; the same when the run is resumed."""
        data = self.record.data
        if not data.conversation:
            chosen = self.record.order.conversation or new_conversation_id()
            said_before = self.shop.store.transcripts.last(chosen)
            self.record.keep(replace(data, conversation=chosen, said_before=said_before))
        return self.record.data.conversation

    def _keep_said(self) -> None:
        """Of a run without a talk the transcript has the request and what came of it, for whoever goes on."""
        transcripts, run = self.shop.store.transcripts, self.record.run
        conversation = self._conversation()
        if self.record.data.ended == LoopEnd.EMPTY or any(one.run == run for one in transcripts.messages(conversation)):
            return
        answer = self.record.data.answer or "Nothing came of it."
        for message in (user(self.record.order.text), assistant(answer)):
            transcripts.append(self.shop.workspace, conversation, message, run=run)

    def _hear(self, event: Event) -> None:
        """Tells the event. What the user has said by now is made durable first, so that nothing is said in vain."""
        changed = self.inbox.changed()
        if changed is not None:
            words, orders = changed
            self.record.keep(replace(self.record.data, said=SaidMeanwhile(words=words, orders=orders)))
            self.tell(QueueChanged(orders))
        self.tell(event)

    def _recall(self) -> None:
        said = self.record.data.said
        if said.words or said.orders:
            self.inbox.restore(said.words, said.orders)


def _others(talker: Talker, line: TurnInput, tape: ReplayLog) -> Others:
    # Loaded where somebody may be sent.
    from pawl.agent.delegation import Delegations

    return Delegations(talker, line, tape)


def new_conversation_id() -> str:
    return f"c{secrets.token_hex(4)}"


def as_order(text: str, like: RunRequest) -> RunRequest:
    """The words as a request on the terms of the one before."""
    return RunRequest(
        text=text,
        mode=like.mode,
        intent=like.intent,
        approval=like.approval,
        model=like.model,
        test_command=like.test_command,
        install=like.install,
        attended=like.attended,
        reasoning=like.reasoning,
        budget=like.budget,
        loop=like.loop if "escalate" in like.loop else {},
    )
