"""The record of one run over the store: what the nodes put there is durable, without secrets, and read back alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pawl.agent import planning
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import counts_of
from pawl.core.run import (
    ApprovalRequest,
    DeliveryState,
    Intent,
    Report,
    Review,
    RunRequest,
    RunState,
    Trouble,
)
from pawl.core.tiers import EscalationState, climb_from, ladder_from
from pawl.workspace.project import Project

QUESTION, RESPONSE = "question", "response"
"""The names under which the record keeps what the run waits for, and the user's answer to it."""
SHARED = frozenset({"scripts", "hook context", "denials"})
"""Names that all attempts of a run have in common."""


@dataclass(slots=True)
class RunRecord:
    """The record of one run; what is put is durable when it returns."""

    shop: Project
    order: RunRequest
    run: str
    prefix: str = ""
    """Of the names in the part of the record that belongs to one attempt."""
    _known: dict[str, object] = field(default_factory=dict)

    def value(self, name: str) -> object:
        name = self._named(name)
        if name not in self._known:
            self._known[name] = self.shop.store.runs.value(self.run, name)
        return self._known[name]

    def put(self, name: str, body: object) -> None:
        name = self._named(name)
        self.shop.store.runs.put(self.run, name, body)
        self._known.pop(name, None)

    def _named(self, name: str) -> str:
        return f"{self.prefix} {name}" if self.prefix and name not in SHARED else name

    def ask(self, question: Mapping[str, object]) -> None:
        """Record what the run waits for; an answer to an earlier question is gone."""
        with self.shop.store.together():
            self.put(QUESTION, question)
            self.put(RESPONSE, None)

    @property
    def is_unanswered(self) -> bool:
        return self.value(QUESTION) is not None and self.value(RESPONSE) is None

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        self.shop.note(kind, body)

    def deliver(self, state: DeliveryState) -> DeliveryState:
        return self.shop.store.runs.deliver(self.run, state)

    @property
    def delivery(self) -> DeliveryState | None:
        return self.shop.store.runs.get(self.shop.workspace, self.run).delivery

    def work(self, name: str) -> ChangeSet | None:
        return self.shop.store.runs.work(self.run, self._named(name))

    def keep_work(self, name: str, changes: ChangeSet) -> None:
        self.shop.store.runs.keep_work(self.run, self._named(name), changes)

    def evaluate(self, score: int, *, reason: str, judge: str) -> None:
        self.shop.store.runs.evaluate(self.shop.workspace, self.run, score, reason=reason, judge=judge)


SECONDS = "seconds"
"""What a run has taken, without the time in which it waited for the user."""


def composed(shop: Project, run: str) -> Report:
    runs = shop.store.runs
    row = runs.get(shop.workspace, run)

    def value(name: str) -> Any:
        return runs.value(run, name)

    errand = value("errand") or {}
    intent = value("intent")
    before = value("before counts") or (value("before") or {}).get("counts")
    records = shop.store.requests.records(shop.workspace, run=run)
    costs = [record.cost for record in records]
    return Report(
        run=run,
        request=row.order.text,
        intent=Intent(intent["intent"]) if intent else None,
        state=row.state,
        delivery=row.delivery,
        answer=value("answer") or "",
        before=counts_of(before),
        after=counts_of(value("after") or errand.get("after")),
        verdicts=tuple((one[0], one[1], one[2]) for one in value("verdicts") or errand.get("verdicts") or ()),
        refused=tuple(value("refused") or ()),
        notes=tuple(value("notes") or ()),
        tasks=tuple(task.what for task in planning.from_json(value("plan"))),
        work="shown" if runs.work(run, "shown") else "",
        entry=value("entry") or errand.get("entry"),
        kept=value("kept") or errand.get("kept"),
        commit=value("commit") or "",
        question=ApprovalRequest.of(value(QUESTION)) if row.state is RunState.WAITING and value(QUESTION) else None,
        stale=value("stale") or "" if row.state is RunState.WAITING else "",
        denials=tuple(value("denials") or ()),
        rejected=value("rejected"),
        review=_review(value("review")),
        structured=value("structured"),
        score=value("score"),
        trouble=_trouble(value("trouble")),
        ended=value("ended") or errand.get("ended", ""),
        exit_code=errand.get("exit_code"),
        requests=len(records),
        input_tokens=sum(record.input_tokens for record in records),
        output_tokens=sum(record.output_tokens for record in records),
        cached_tokens=sum(record.cached_tokens for record in records),
        cost=None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        model=records[-1].model if records else "",
        conversation=errand.get("conversation") or value("conversation") or "",
        seconds=value(SECONDS) or 0.0,
        climb=_climb(value("climb ladder"), value("climb")),
    )


def _climb(ladder: Any, body: Any) -> EscalationState | None:
    return climb_from(ladder_from(ladder), body) if ladder and body else None


def _review(body: Any) -> Review | None:
    if not body:
        return None
    return Review(
        summary=body["summary"],
        findings=tuple(body["findings"]),
        missing_tests=tuple(body["missing_tests"]),
        confidence=body["confidence"],
    )


def _trouble(body: Any) -> Trouble | None:
    return Trouble(**body) if body else None
