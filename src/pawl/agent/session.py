"""The one way into runs for every interface and program: start, steer, answer, resume. Commands in, events out.

A session belongs to the thread that opened it. `steer`, `queue`, `unqueue`, `queued` and `interrupt` may be called from
any other while it works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from decimal import Decimal
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from pawl.agent.briefing import configured
from pawl.agent.escalation import with_escalation
from pawl.agent.executor import RunExecutor, as_order, new_conversation_id
from pawl.agent.inbox import Event, Inbox
from pawl.agent.opening_nodes import intended
from pawl.agent.policy import model_of, policy_of, request_from, templates
from pawl.agent.record import GivenAnswer, RunRecord, WorkName, composed
from pawl.agent.routes import RunNode
from pawl.agent.stream_writer import StreamWriter
from pawl.agent.works import chosen_hunks
from pawl.checks.known_commands import TestCommand
from pawl.core.change import ChangeSet
from pawl.core.dialogue import Conversation, TranscriptLine
from pawl.core.errors import NotAuthorized, PawlError, UnknownEntry, UnknownModel, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.patch import Hunk, git_patch, hunks
from pawl.core.run import (
    ApprovalAnswer,
    ApprovalResponse,
    Intent,
    Mode,
    Reasoning,
    Report,
    RoleName,
    RunCursor,
    RunRequest,
    RunRow,
    RunState,
    Stage,
)
from pawl.models.providers import ModelName, endpoint_for
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import load
from pawl.settings.permissions import Permit
from pawl.settings.trust import has_unread_keys
from pawl.workspace.paths import find_workspace
from pawl.workspace.project import Project, new_run_id

if TYPE_CHECKING:
    from pawl.code.librarian import IndexThread


TAKEN_UP_SECONDS = 5.0
"""In which a run that was answered is carried on."""
LOOK_SECONDS = 0.3


@dataclass(slots=True)
class Session:
    """Runs of one workspace. `listen` is told of everything that happens, as it happens."""

    shop: Project
    listen: Callable[[Event], object] = lambda event: None
    cancel: CancelToken | None = None
    """Stops what is under way; the session has one of its own when None."""
    permit: Permit | None = None
    """The permission rules of the workspace when None."""
    agreed: set[tuple[str, ...]] = field(default_factory=set)
    """Kinds of calls that the user has said yes to beforehand, as whoever asks them writes them."""
    named: str = ""
    """The id of a conversation that begins with the next request, where it had to be told before."""
    _inbox: Inbox = field(default_factory=Inbox)
    _stop: CancelToken | None = None
    _order: RunRequest | None = None
    """The latest one, whose terms follow-ups are on."""
    _conversation: str = ""
    _indexing: IndexThread | None = None
    """Keeps the index up to date, where the session stays open for more than one request."""
    _still: bool = True
    """The latest run has ended."""
    _carrier: RunExecutor | None = None
    """Of the latest run, for the hooks at the end of the session."""
    _stream: StreamWriter | None = None
    """Tells other processes what happens here."""

    @classmethod
    def open(
        cls,
        workspace: str | Path = ".",
        *,
        listen: Callable[[Event], object] = lambda event: None,
        environment: Mapping[str, str] | None = None,
    ) -> Session:
        """Opens a folder with the user's settings; close it, or use it in `with`."""
        config = load(environment)
        session = cls(Project.open(config, find_workspace(Path(workspace), config, exact=True)), listen)
        from pawl.code.librarian import prepare_index

        session._indexing = prepare_index(session.shop)
        return session

    @property
    def error(self) -> PawlError | None:
        """The error that stopped the latest run or ended it early."""
        return None if self._carrier is None else self._carrier.error

    def end(self, reason: str = "other") -> None:
        """Calls the hooks for the end of a session, if there was a run in it; whoever opened the shop closes it."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.hooking(self._conversation).end(reason)
        if self._stream is not None:
            self._stream.close()

    def close(self) -> None:
        if self._indexing is not None:
            self._indexing.close()
        try:
            self.end()
        finally:
            self.shop.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def do(self, order: RunRequest | str, *, since: float | None = None) -> Report:
        """Carries a request as far as it goes without the user; its time counts from `since` (monotonic)."""
        since = time.monotonic() if since is None else since
        made = self.checked(order)
        if not made.model and intended(self.shop, made).intent in (Intent.READ, Intent.EDIT):
            # Raises where there is none, before there is a run.
            model_of(configured(self.shop, ""), policy_of(self.shop.config, self.shop.workspace).role(RoleName.ARTISAN))
        return self._go(self._recorded(made), made, since=since)

    def begin(self, order: RunRequest | str) -> str:
        """Record a request as a run that `resume` or `step` carries out; returns its id."""
        return self._recorded(self.checked(order)).run

    def step(self, run: str) -> RunCursor:
        """Carry the run through one node, for engines that walk the graph themselves; returns where it stands then.

        What stops a run is raised. A run that waits goes on after `accept`.
        """
        with self.shop.carrying(run):
            row = self.shop.store.runs.get(self.shop.workspace, run)
            if row.state is not RunState.WORKING:
                return row.place
            self.shop.run_id = run
            self._carrier = self._executor(row.place, row.order, "startup" if row.place.at == RunNode.INTENT else "")
            return self._carrier.go_one_node()

    def resume(self, run: str, *, money: Decimal | None = None) -> Report:
        """Goes on with a run that was interrupted; one that waits or has ended is only reported. `money` is what it may
        spend from now on, where that is less than its own budget leaves."""
        row = self.shop.store.runs.get(self.shop.workspace, run)
        order = row.order
        if money is not None:
            records = self.shop.store.requests.records(self.shop.workspace, run=run)
            limits = [money + sum((one.cost or Decimal(0) for one in records), Decimal(0))]
            limits += [Decimal(str(order.budget["money"]))] if "money" in order.budget else []
            order = replace(order, budget={**order.budget, "money": str(min(limits))})
        return self._go(row.place, order, resumed=True)

    def answer(self, run: str, given: ApprovalResponse) -> Report:
        """Answers what the run waits for, and goes on with it."""
        row = self.accept(run, given)
        return self._go(row.place, row.order, resumed=True)

    def accept(self, run: str, given: ApprovalResponse) -> RunRow:
        """Record the answer to what the run waits for. A run that is stopped before it acts on it still has it."""
        row = self._waiting(run)
        # A slip of the pen must not end the run. Who names every hunk takes the change as it is.
        chosen = chosen_hunks(self.shop, self.shown(run), given.hunks)
        patch = self._edit(given) if given.patch else None
        answer = GivenAnswer(
            answer=ApprovalAnswer(given.answer),
            digest=given.digest,
            reason=given.reason,
            hunks=given.hunks if len(set(chosen)) < len(self.hunks(run)) else (),
            edited=bool(given.patch),
        )
        with self.shop.store.together():
            # Another process may have answered since: the first answer counts.
            self._waiting(run)
            record = RunRecord(self.shop, row.order, run)
            if patch is not None:
                self.shop.store.runs.keep_work(run, WorkName.EDITED, patch)
            record.keep(replace(record.data, stale="", response=answer))
            self.shop.store.runs.stand(row.place, RunState.WORKING)
        return row

    def _waiting(self, run: str) -> RunRow:
        row = self.shop.store.runs.get(self.shop.workspace, run)
        if row.state is not RunState.WAITING:
            raise UsageError(f"the run {run} does not wait for an answer", advice=f"it is {row.state}")
        return row

    def followed(self, run: str) -> Report:
        """The report of a run that somebody else has answered and carries, when it stands still; sooner where
        `interrupt` is called."""
        with self.stoppable() as stop:
            late = time.monotonic() + TAKEN_UP_SECONDS
            while (report := self.report(run)).state is RunState.WORKING and time.monotonic() < late:
                if self.shop.is_carried(run):
                    late = time.monotonic() + TAKEN_UP_SECONDS
                if stop.wait(LOOK_SECONDS):
                    break
        self._conversation, self._still = report.conversation, report.state is RunState.ENDED
        return report

    def steer(self, text: str) -> None:
        """Says something to the run that works: taken at its next step, or the next request if it ends before."""
        self._inbox.say(text)

    def queue(self, order: RunRequest | str) -> None:
        """Adds a request that `go_on` carries out after the present one, in the same conversation."""
        self._inbox.add(self._follow_up(order))

    @property
    def is_spoken_to(self) -> bool:
        """Whether something was said after the last step of a run that is at its end."""
        return self._still and bool(self._inbox.words)

    @property
    def unread(self) -> tuple[str, ...]:
        """Words said to a run that no step has taken yet; the next one takes them, of this run or of another."""
        return self._inbox.words

    @property
    def queued(self) -> tuple[RunRequest, ...]:
        return self._inbox.waiting

    def unqueue(self) -> tuple[RunRequest, ...]:
        """Takes every follow-up back."""
        return self._inbox.take_orders()

    def go_on(self, begins: Callable[[str], tuple[str, ...]] = lambda text: ()) -> Report | None:
        """Carries out the next follow-up, whose words `begins` is told and adds context to; None when there is none, or
        while the present request is not at its end."""
        # What the user does before the next run is no part of the last one.
        self.shop.run_id = new_run_id()
        if not self._still:
            return None
        # Said after the last step of the run: nobody takes these words but the next request.
        self._inbox.put_first([self._follow_up(text) for text in self._inbox.take_words()])
        order = self._inbox.take_order()
        if order is None:
            return None
        if not order.conversation and self._conversation:
            order = replace(order, conversation=self._conversation)
        return self.do(replace(order, context=(*order.context, *begins(order.text))))

    @contextmanager
    def stoppable(self) -> Iterator[CancelToken]:
        """For work beside a run that `interrupt` stops too."""
        self._stop = CancelToken()
        try:
            yield self.cancel or self._stop
        finally:
            self._stop = None

    def command_request(self, text: str, words: str, like: RunRequest, asks: Callable[[str, str], bool]) -> RunRequest:
        """The request that the text of a command stands for; commands in it are run as the rules say."""
        from pawl.agent.own_commands import CommandReader

        with self.stoppable() as cancel:
            return CommandReader(self.shop, cancel, asks).request(text, words, like)

    def interrupt(self) -> None:
        """Stops what is under way; the run can be resumed from there."""
        stop = self.cancel or self._stop
        if stop is not None:
            stop.request()

    def waiting(self, run: str | None = None) -> Report:
        """The run that waits for the user: that one, or the newest."""
        runs = self.shop.store.runs
        if run is not None:
            return composed(self.shop, runs.get(self.shop.workspace, run).id)
        found = runs.list(self.shop.workspace, state=RunState.WAITING, limit=1)
        if not found:
            raise UnknownEntry("no run waits for an answer", advice="'pawl do' starts one")
        return composed(self.shop, found[0].id)

    def report(self, run: str) -> Report:
        return composed(self.shop, self.shop.store.runs.get(self.shop.workspace, run).id)

    def shown(self, run: str) -> ChangeSet:
        """The change set that the user is asked about."""
        return self.shop.store.runs.work(run, WorkName.SHOWN) or ChangeSet()

    def hunks(self, run: str) -> tuple[Hunk, ...]:
        """Its hunks; `Approved.hunks` counts them from 1."""
        return tuple(hunk for change in self.shown(run) for hunk in hunks(change, self.shop.store.blobs))

    def patch(self, run: str) -> str:
        """The same as a patch of git's, to be edited and given back as `Approved.patch`."""
        return git_patch(self.shown(run), self.shop.store.blobs).decode("utf-8", "surrogateescape")

    def runs(self, *, state: RunState | None = None, limit: int | None = None) -> Sequence[RunRow]:
        """Newest first."""
        return self.shop.store.runs.list(self.shop.workspace, state=state, limit=limit)

    def interrupted(self) -> str | None:
        """The newest run that can be resumed."""
        found = self.runs(state=RunState.WORKING, limit=50)
        return next((one.id for one in found if not self.shop.is_carried(one.id)), None)

    def stopped(self) -> RunRow | None:
        """The newest run, where it was interrupted."""
        newest = next(iter(self.runs(limit=1)), None)
        still = newest is not None and newest.state is RunState.WORKING and not self.shop.is_carried(newest.id)
        return newest if still else None

    def left_queued(self, run: RunRow) -> tuple[RunRequest, ...]:
        """Requests that follow the run once it is resumed."""
        return RunRecord(self.shop, run.order, run.id).data.said.orders

    def conversations(self, *, limit: int | None = None) -> Sequence[Conversation]:
        """The one in which something was said last comes first."""
        return self.shop.store.transcripts.conversations(self.shop.workspace, limit=limit)

    def transcript(self, conversation: str) -> Sequence[TranscriptLine]:
        self._known(conversation)
        return self.shop.store.transcripts.messages(conversation)

    def fork(self, conversation: str, *, before: int | None = None) -> str:
        """A new conversation in which the same was said, `before` that message; the first one is unchanged."""
        self._known(conversation)
        other = new_conversation_id()
        with self.shop.store.together():
            self.shop.store.transcripts.fork(conversation, other, before=before)
            self.shop.store.snapshots.fork(self.shop.workspace, conversation, other)
        return other

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the forms that a request can be put into."""
        return templates(self.shop.config, self.shop.workspace)

    def request(self, template: str, text: str) -> str:
        """The request in the form of that name."""
        return request_from(self.shop.config, self.shop.workspace, template, text)

    def offered(self, model: str = "") -> tuple[str, tuple[str, ...]]:
        """The model that a run would ask, empty without one, and the tools that it would be given."""
        policy = policy_of(self.shop.config, self.shop.workspace)
        tools = policy.decide(Stage.ACT, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF).tools
        try:
            return model_of(configured(self.shop, model), policy.role(RoleName.ARTISAN)), tools
        except UnknownModel:
            return "", tools

    def checked(self, order: RunRequest | str) -> RunRequest:
        """The request, complete; an error for what is wrong with it before there is a run."""
        made = RunRequest(text=order) if isinstance(order, str) else order
        if not made.text.strip():
            raise UsageError("there is no request", advice="pawl do 'add a --verbose option'")
        made = with_escalation(made, self.shop.config.settings.escalate, self.shop.config.tables.budget)
        if made.conversation:
            self._known(made.conversation)
        if made.model:
            self._check_model(made.model)
        if made.test_command and self._lacks(made.test_command):
            raise UsageError(
                f"{TestCommand.of(made.test_command).words[0]!r}, which runs the tests, is not installed",
                advice="name an installed command with --test 'CMD'",
            )
        return made

    def _check_model(self, model: str) -> None:
        """A wrong name or a missing key is told before there is a run."""
        config = configured(self.shop, model)
        name = ModelName.parse(model, config.providers)
        if not name.is_file and not config.routes.fallbacks.get(model):
            try:
                endpoint_for(name, config.providers, config.environment, config.rules)
            except NotAuthorized as error:
                if has_unread_keys(self.shop.config, self.shop.workspace):
                    error.advice = f"'pawl trust' lets the keys in .env be read; or {error.advice}"
                raise

    def _lacks(self, test_command: tuple[str, ...]) -> bool:
        if which(TestCommand.of(test_command).words[0], path=self.shop.config.search_path):
            return False
        # Only a bench can tell of the rest.
        from pawl.checks.verifier import Verifier

        verifier = Verifier(shop=self.shop, test_command=test_command)
        return bool(verifier.missing_programs(TestCommand.of(verifier.test_command).words[:1]))

    def _recorded(self, order: RunRequest) -> RunCursor:
        if self._order is not None:
            self.shop.run_id = new_run_id()
        place = RunCursor(self.shop.run_id, RunNode.INTENT.value)
        self.shop.store.runs.begin(self.shop.workspace, place, order)
        self.shop.note("run", {"request": order.text, "mode": order.mode, "approval": order.approval})
        return place

    def _go(self, place: RunCursor, order: RunRequest, *, resumed: bool = False, since: float | None = None) -> Report:
        with self.shop.carrying(place.run):
            now = self.shop.store.runs.get(self.shop.workspace, place.run)
            if now.state is not RunState.WORKING:
                return composed(self.shop, place.run)
            self.shop.run_id = place.run
            self._order, self._still = order, False
            self._stop = None if self.cancel is not None else CancelToken()
            try:
                # A run that stands at its beginning was made and not yet carried.
                begun = resumed and now.place.at != RunNode.INTENT
                opening = "" if self._carrier is not None else "resume" if begun else "startup"
                self._carrier = self._executor(now.place, order, opening)
                report = self._carrier.go(resumed=resumed, since=since)
            finally:
                self._stop = None
        self._conversation, self._still = report.conversation, report.state is RunState.ENDED
        if report.entry is None:
            return report
        # The checks are loaded where something was promoted.
        from pawl.checks.whole_suite import begin_whole_suite

        told = begin_whole_suite(self.shop, report.entry)
        return replace(report, notes=(*report.notes, told)) if told else report

    def _executor(self, place: RunCursor, order: RunRequest, opening: str) -> RunExecutor:
        record = RunRecord(self.shop, order, place.run)
        # What stopped it before is looked for anew.
        record.keep(replace(record.data, trouble=None))
        return RunExecutor(
            shop=self.shop,
            tell=self._tell,
            inbox=self._inbox,
            record=record,
            place=place,
            cancel=self.cancel or self._stop,
            permit=self.permit,
            opening=opening,
        )

    def _tell(self, event: Event) -> None:
        if self._stream is None:
            self._stream = StreamWriter(self.shop.config.state, self.shop.workspace)
        self._stream.hear(event)
        self.listen(event)

    def _follow_up(self, order: RunRequest | str) -> RunRequest:
        if isinstance(order, RunRequest):
            return order
        return RunRequest(text=order) if self._order is None else as_order(order, self._order)

    def _edit(self, given: ApprovalResponse) -> ChangeSet:
        if given.answer is not ApprovalAnswer.APPROVE or given.hunks:
            raise UsageError(
                "an edited patch approves all of it", advice="leave out the hunks, or reject it with a reason"
            )
        from pawl.agent.edited_change import edited

        return edited(self.shop, given.patch)

    def _known(self, conversation: str) -> None:
        if conversation not in {self.named, *(one.id for one in self.conversations())} - {""}:
            raise UnknownEntry(
                f"there is no conversation {conversation!r} in this workspace",
                advice="/resume in a session lists them; -c continues the last one",
            )
