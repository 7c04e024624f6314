"""The record of one run over the store: typed, durable when it is kept, without secrets, and read back alike.

Each field of `RunData` is a value of its own in the state file, so that keeping one does not write the others again.
A file of an earlier version is read by `migrated`, and written in the present form when something is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, get_type_hints

from pawl.agent.intents import IntentGuess
from pawl.checks.verdict import Evidence
from pawl.core.change import ChangeSet, Entry
from pawl.core.diagnostic import CheckResult, TestCounts, Verdict
from pawl.core.dialogue import Message, StopReason
from pawl.core.errors import StoreCorrupt
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import (
    ApprovalAnswer,
    ApprovalRequest,
    Citation,
    DeliveryState,
    Report,
    Review,
    RunRequest,
    RunState,
    Task,
    TaskOutcome,
    TaskState,
    Trouble,
)
from pawl.core.tiers import EscalationState, Iteration
from pawl.core.typed import plain, typed
from pawl.settings.guardrails import Decision
from pawl.workspace.project import Project

VERSION = 2
"""Of the form of `RunData`. Version 1 had no number: its names were free words, and its values had no types."""


class WorkName(StrEnum):
    """The change sets that the record keeps."""

    BENCH = "bench"
    """The state of the bench, held back or not."""
    SPARE = "spare"
    """The part of it that is held back."""
    SHOWN = "shown"
    """Shown for approval, then promoted or kept."""
    EDITED = "edited"
    """The user's own version of it."""
    MENDED = "mended"
    """Found by the reflex."""
    GROUND = "climb ground"
    """The start of the next attempt of an escalation."""
    WON = "climb won"
    """Accepted by the checks in an escalation."""


Rows = dict[str, Any]
"""Values of a run by their names, as JSON has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """The user's answer to a question of the run, bound to the digest of what was shown."""

    answer: ApprovalAnswer
    digest: str = ""
    reason: str = ""
    hunks: tuple[int, ...] = ()
    edited: bool = False
    """The user gave back another patch, which the record keeps as work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRuling:
    """How rules and hooks judged a call that the user is asked about; hooks are not run again for it."""

    ruling: Decision
    reason: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflexResult:
    found: bool
    reason: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidMeanwhile:
    """The user's words that the run has not reached."""

    words: tuple[str, ...] = ()
    orders: tuple[RunRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTest:
    """The test that was made for a loop; empty where none was."""

    path: str = ""
    command: tuple[str, ...] = ()
    guessed: bool = False
    """A model wrote what it expects; nothing of the user's says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fulfilment:
    """The result of the delivery check."""

    digest: str
    """Of the change set that was shown to it."""
    fulfilled: bool | None = None
    """None where the check could not be made."""
    evidence: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    several: bool = False
    """The request has several parts."""
    done: int = 0
    """Parts of which nothing remains."""
    error: str = ""
    """Why it could not be made."""

    @property
    def nothing_fulfilled(self) -> bool:
        return self.fulfilled is False and not (self.several and (self.evidence or self.done))

    @property
    def open_parts(self) -> tuple[str, ...]:
        """The parts of the request that are not shown to be fulfilled."""
        if self.fulfilled is None and self.several:
            return (f"whether every part is done could not be checked ({self.error})",)
        return tuple(f"not fulfilled: {one}" for one in self.remaining)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """The state of a run, or of one attempt of its escalation. None stands for what is not known yet."""

    version: int = VERSION
    # The session
    conversation: str = ""
    said_before: int = 0
    """How much of the conversation stood there before the run."""
    said: SaidMeanwhile = field(default_factory=SaidMeanwhile)
    hook_context: tuple[str, ...] | None = None
    """Context from hooks."""
    seconds: float = 0.0
    """The run's time, without the time in which it waited for the user."""
    scripts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The turns of scripted models that are used up."""
    # The request
    intent: IntentGuess | None = None
    plan: tuple[Task, ...] = ()
    task_ends: tuple[TaskOutcome, ...] = ()
    """Of the tasks that have ended, or of the parts that the delivery check knows."""
    fulfilment: Fulfilment | None = None
    # What the models are told, and may do
    told: tuple[str, ...] | None = None
    told_planner: tuple[str, ...] | None = None
    told_onlooker: tuple[str, ...] | None = None
    granted: tuple[str, ...] = ()
    """Files that the user let be read."""
    denials: tuple[Mapping[str, object], ...] = ()
    rulings: Mapping[str, KeptRuling] = field(default_factory=dict)
    """By call."""
    permits: Mapping[str, GivenAnswer] = field(default_factory=dict)
    """By the digest of the call."""
    last_talk: Mapping[str, str] = field(default_factory=dict)
    """By the number of the task."""
    pack: str | None = None
    """The files that the librarian chose."""
    reported: tuple[tuple[str, str], ...] = ()
    """Who was sent, and the answer of each."""
    # The work and its checks
    mend: ReflexResult | None = None
    alternatives: tuple[tuple[int, str], ...] = ()
    """Patches of the reflex that pass and disagree: the entry of each, and what it does where."""
    baseline: CheckResult | None = None
    baseline_told: bool = False
    """The model was told what of it fails."""
    before: TestCounts | None = None
    after: TestCounts | None = None
    verdict: Verdict | None = None
    witnessed: bool = False
    own_only: bool = False
    """Only tests of the run speak for its change."""
    """A test speaks for the change that was verified last."""
    verdicts: tuple[tuple[str, str, str], ...] = ()
    """Step, standing, reason."""
    evidence: Evidence | None = None
    """Of the version before; now each verified change set has its own."""
    verified: str = ""
    """The digest of the change set that was verified last."""
    ground: str = ""
    """A digest of the workspace's files as they stood then."""
    refused: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()
    """Changed files that no import links to the others, and for which no reason was given."""
    held: tuple[tuple[str, str], ...] = ()
    """Paths that are held back, with the reason."""
    rechecks: int = 0
    # The delivery
    question: ApprovalRequest | None = None
    response: GivenAnswer | None = None
    decision: GivenAnswer | None = None
    stale: str = ""
    entry: int | None = None
    kept: int | None = None
    base: str | None = None
    """HEAD when a commit was first tried."""
    commit: str = ""
    rejected: str | None = None
    # The end
    answer: str = ""
    ended: str = ""
    """How the last talk with a model ended."""
    exit_code: int | None = None
    """Of what was done without a change; None before it was."""
    asked_model: str = ""
    cached: str = ""
    """When the answer to the question was first given, if it was given before."""
    citations: tuple[Citation, ...] = ()
    fell_back: tuple[tuple[str, str, str], ...] = ()
    """Model, the one that took over, why."""
    notices: tuple[str, ...] = ()
    review: Review | None = None
    reviewed: str = ""
    """The digest of the change set that the review is about."""
    amends: bool = False
    """The artisan has one more attempt because of the review."""
    structured: object = None
    score: int | None = None
    trouble: Trouble | None = None
    learnt: bool = False
    # The climb
    climb: EscalationState | None = None
    climb_baseline: CheckResult | None = None
    climb_seconds: float = 0.0
    climb_under_way: Iteration | None = None
    generated: GeneratedTest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkData:
    """The record of one agent loop beside its replay log."""

    dialogue: tuple[Message, ...] | None = None
    """The whole, when the talk has ended."""
    read: tuple[str, ...] | None = None
    """Files that were read before the model was asked."""
    afresh: str = ""
    """Sent in place of a history that is too long."""
    refused: str = ""
    """The findings of the checks on the work of the loop."""


@dataclass(slots=True)
class RunRecord:
    """The record of one run, or with a prefix the part that belongs to one attempt of its climb."""

    shop: Project
    order: RunRequest
    run: str
    prefix: str = ""
    base: RunRecord | None = None
    """Of an attempt the record of its run."""
    _data: RunData | None = None
    _stored: Rows = field(default_factory=dict)
    _old: Rows = field(default_factory=dict)
    """Values of an earlier version in the present form, to be written with the next."""

    @property
    def root(self) -> RunRecord:
        """Shared by all attempts of a run."""
        return self.base or self

    @property
    def data(self) -> RunData:
        if self._data is None:
            runs = self.shop.store.runs
            self._stored = runs.values(self.run, self._named(""))
            if "version" not in self._stored:
                self._old = migrated(runs.values(self.run, self._named(""), every=True))
                self._stored = dict(self._old)
            self._data = RunData(**self._fields(self._stored))
        return self._data

    def keep(self, data: RunData) -> None:
        """Writes what is new, as one; what is kept is read back, for secrets are taken out of it.

        Make it of the present `data`: an event that is told in between may have kept something too.
        """
        before = self.data
        names = [name for name in _DEFAULTS if getattr(data, name) != getattr(before, name)]
        made = {name: plain(getattr(data, name)) for name in names}
        if "version" not in self._stored or self._old:
            made = {**self._old, "version": VERSION, **made}
        if not made:
            return
        stored = self.shop.store.runs.put_all(self.run, made, self._named(""))
        self._old = {}
        self._stored.update(stored)
        self._data = replace(before, **self._fields(stored))

    def talk(self, name: str) -> TalkData:
        key = f"talk {name}"
        self.data  # noqa: B018  # An earlier version is read as a whole.
        body = self._old.get(key) or self.shop.store.runs.value(self.run, self._named(key))
        return self._decoded(TalkData, key, body) if body else TalkData()

    def keep_talk(self, name: str, talk: TalkData) -> None:
        self.shop.store.runs.put_all(self.run, {**self._old, f"talk {name}": plain(talk)}, self._named(""))
        self._old = {}

    def evidence(self, digest: str) -> object:
        """The evidence of the verdict on a change set; None where it was not verified."""
        return self.shop.store.runs.value(self.run, f"evidence {digest}")

    def keep_evidence(self, evidence: Evidence) -> None:
        """Keep it until the run has ended: its entries have it then."""
        self.shop.store.runs.put(self.run, f"evidence {evidence.checked.digest}", plain(evidence))

    def doubt(self, why: str) -> None:
        """Call the change unverified for a reason that no check has, in its evidence too."""
        kept = self.evidence(self.data.verified)
        if kept is not None:
            self.keep_evidence(replace(typed(Evidence, kept), verdict=Verdict.UNVERIFIED, reasons=(why,)))
        self.keep(replace(self.data, verdict=Verdict.UNVERIFIED, unproved=(why,)))

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        self.shop.note(kind, body)

    def deliver(self, state: DeliveryState) -> DeliveryState:
        return self.shop.store.runs.deliver(self.run, state)

    @property
    def delivery(self) -> DeliveryState | None:
        return self.shop.store.runs.get(self.shop.workspace, self.run).delivery

    def work(self, name: WorkName) -> ChangeSet | None:
        return self.shop.store.runs.work(self.run, self._named(name))

    def keep_work(self, name: WorkName, changes: ChangeSet) -> None:
        self.shop.store.runs.keep_work(self.run, self._named(name), changes)

    def _named(self, name: str) -> str:
        return f"{self.prefix} {name}" if self.prefix else name

    def _fields(self, rows: Rows) -> Rows:
        """The fields that the values stand for; one that was cleared has its default."""
        return {
            name: _DEFAULTS[name] if rows[name] is None else self._decoded(_KINDS[name], name, rows[name])
            for name in _KINDS
            if name in rows
        }

    def _decoded(self, kind: Any, name: str, body: object) -> Any:
        try:
            return typed(kind, body)
        except ValueError as error:
            what = f"{name!r} of the run {self.run!r} cannot be read: {error}"
            raise StoreCorrupt(what, advice="start the request again") from error


_KINDS = get_type_hints(RunData)
_DEFAULTS: Rows = {name: getattr(RunData(), name) for name in _KINDS}

_RENAMED = {
    "said before": "said_before",
    "hook context": "hook_context",
    "said meanwhile": "said",
    "told the planner": "told_planner",
    "told who looks on": "told_onlooker",
    "last talk": "last_talk",
    "before counts": "before",
    "climb baseline": "climb_baseline",
    "climb seconds": "climb_seconds",
    "climb generated": "generated",
}
_OF_TALKS = ("dialogue", "read", "afresh", "refused")


def migrated(rows: Mapping[str, Any]) -> Rows:
    """The values of version 1 in the form of version 2. Pure; names that nobody reads any more are left out."""
    if "version" in rows or not rows:
        return dict(rows)
    made: Rows = {"version": VERSION, "rulings": {}, "permits": {}}
    for name, body in rows.items():
        kind, _, rest = name.partition(" ")
        if name in _RENAMED:
            made[_RENAMED[name]] = body
        elif rest and kind in _OF_TALKS:
            made.setdefault(f"talk {rest}", {})[kind] = body
        elif rest and kind in ("ruling", "permit"):
            made[f"{kind}s"][rest] = body
        elif name in _KINDS and name not in ("before", "plan", "climb"):
            made[name] = body
    made["plan"] = [{"number": number, **task} for number, task in enumerate(rows.get("plan") or (), 1)]
    errand = rows.get("errand") or {}
    made |= {name: body for name, body in errand.items() if name in _KINDS and body is not None and not made.get(name)}
    if rows.get("climb ladder"):
        failing = [one["test"] for one in (rows.get("climb baseline") or {}).get("findings", ()) if one.get("test")]
        made["climb"] = {"failing": failing, **(rows.get("climb") or {}), "ladder": rows["climb ladder"]}
    if at := rows.get("climb under way"):
        made["climb_under_way"] = {"tier": at[0], "number": at[1]}
    if rows.get("steered"):
        said = made.get("said") or {}
        made["said"] = {**said, "words": [*rows["steered"], *said.get("words", ())]}
    return made


def task_states(data: RunData, delivery: DeliveryState | None) -> tuple[TaskOutcome, ...]:
    """The state of every task; one that nothing is known of has not begun."""
    ends = {one.number: one for one in data.task_ends}
    if len(ends) > len(data.plan) or delivery is not DeliveryState.DONE:
        plan = [TaskOutcome(number=task.number, what=task.what.partition("\n\n")[0]) for task in data.plan]
        rest = [one for one in plan if one.number not in ends and len(ends) <= len(data.plan)]
        return tuple(sorted((*ends.values(), *rest), key=lambda one: one.number))
    return tuple(
        replace(
            ends.get(task.number, TaskOutcome(number=task.number, what=task.what.partition("\n\n")[0])),
            state=TaskState.DONE,
        )
        for task in data.plan
    )


def evidence_of(shop: Project, entry: Entry) -> Evidence | None:
    """The evidence that an entry keeps, or that its run kept for it in the version before."""
    kept = shop.store.journal.evidence(entry.id)
    if kept is not None:
        return typed(Evidence, kept)
    rows = [row for row in shop.store.runs.list(shop.workspace) if row.id == entry.run]
    data = RunRecord(shop, rows[0].order, entry.run).data if rows else RunData()
    return data.evidence if data.entry == entry.id else None


_STOPS = frozenset(StopReason)


def composed(shop: Project, run: str) -> Report:
    """Compose the report of a run from its record."""
    row = shop.store.runs.get(shop.workspace, run)
    data, waits = RunRecord(shop, row.order, run).data, row.state is RunState.WAITING
    records = shop.store.requests.records(shop.workspace, run=run)
    costs = [record.cost for record in records]
    # A question tells what its answer took; what failed on the way to it is in the cost alone.
    answered = [record for record in records if not data.asked_model or record.ended in _STOPS]
    return Report(
        run=run,
        request=row.order.text,
        intent=data.intent.intent if data.intent is not None else None,
        state=row.state,
        delivery=row.delivery,
        answer=data.answer,
        before=data.before or (data.baseline.counts if data.baseline is not None else None),
        after=data.after,
        verdict=data.verdict,
        verdicts=data.verdicts,
        refused=(*data.refused, *(data.fulfilment.open_parts if data.fulfilment is not None else ())),
        unproved=data.unproved,
        notes=(*data.notes, *(f"held back: {path} ({reason})" for path, reason in data.held)),
        tasks=tuple(task.what for task in data.plan),
        task_states=task_states(data, row.delivery),
        entry=data.entry,
        kept=data.kept,
        alternatives=data.alternatives if data.entry is None else (),
        commit=data.commit,
        question=data.question if waits else None,
        stale=data.stale if waits else "",
        denials=data.denials,
        rejected=data.rejected,
        review=data.review,
        structured=data.structured,
        score=data.score,
        trouble=data.trouble,
        ended=data.ended,
        exit_code=data.exit_code,
        requests=len(answered),
        input_tokens=sum(record.input_tokens for record in answered),
        output_tokens=sum(record.output_tokens for record in answered),
        cached_tokens=sum(record.cached_tokens for record in answered),
        estimated=any(record.estimated for record in answered),
        cost=None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        model=records[-1].model if records else data.asked_model,
        asked_model=data.asked_model,
        cached=data.cached,
        citations=data.citations,
        fell_back=data.fell_back,
        notices=data.notices,
        conversation=data.conversation,
        seconds=data.seconds,
        climb=data.climb,
    )
