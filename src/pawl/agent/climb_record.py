"""The record of a climb, durable step by step, what the checks make of an attempt, and the audit.

The audit is written as well as it can be: what the disk does not take is warned about once, and the run goes on.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pawl.agent.briefing import findings_of, messages_of
from pawl.agent.escalation import is_progress
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.workplace import Assignment
from pawl.agent.works import shortened
from pawl.checks.verdict import Verification, decide, failing
from pawl.checks.verifier import Verifier
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import CheckResult, Status, Verdict
from pawl.core.errors import NoTests, StoreError, UnknownEntry
from pawl.core.events import EscalationWarned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.patch import unified
from pawl.core.tiers import (
    Attempt,
    AttemptEnd,
    Escalation,
    EscalationState,
    Iteration,
)
from pawl.core.typed import typed
from pawl.store.audit import FILE_NAME, Audit
from pawl.workspace.project import Project

MOST_DIFF_LINES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An attempt with what only the climb itself needs."""

    attempt: Attempt
    changes: ChangeSet = EMPTY
    checked: Verification | None = None
    notes: tuple[str, ...] = ()
    unproved: bool = False
    """Nothing speaks against it, and nothing proves it."""


def judged_attempt(
    begun: Attempt, changes: ChangeSet, verifier: Verifier, task: Assignment, patience: float | None = None
) -> Tried:
    """The attempt with its changes and what the checks say about them, each within these seconds."""
    checked = verifier.evidence(changes, task.before, task.ground, patience)
    judgement, gate = decide(checked, task.wanted), verifier.shop.read_gate()
    # The suite that the climb is about may be that of a nested project.
    suite = next((one for one in checked.suites if one.step == task.before.step), checked.tests)
    made = replace(
        with_change(verifier.shop, begun, changes),
        end=AttemptEnd.VERIFIED if judgement.accepted else AttemptEnd.REFUSED,
        failing=failing(findings_of(suite)),
        messages=messages_of(gate.told(one for each in checked.verdicts for one in findings_of(each))),
        refused=(*judgement.refused, *judgement.unproved),
        verdicts=tuple((one.step, str(one.standing), one.reason) for one in checked.verdicts),
    )
    # Nothing may be worse, whatever the request wants.
    least = decide(checked, task.wanted.least)
    better = not judgement.accepted and least.accepted and is_progress(made, task.climb.best)
    return Tried(
        attempt=replace(made, better=better),
        changes=changes,
        checked=checked,
        notes=judgement.notes,
        unproved=judgement.verdict is Verdict.UNVERIFIED,
    )


def with_change(shop: Project, begun: Attempt, changes: ChangeSet) -> Attempt:
    """The attempt with the paths of its changes, and the first of their lines for whoever tries next."""
    lines = unified(shop.read_gate().shown(changes), shop.store.blobs, 0).splitlines()
    signed = (line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---")) and line[1:].strip())
    diff = tuple(itertools.islice(signed, MOST_DIFF_LINES))
    return replace(begun, paths=tuple(sorted(changes.paths)), digest=changes.digest, diff=diff)


@dataclass(slots=True)
class ClimbRecord:
    base: RunRecord
    _started: float = field(default_factory=time.monotonic)
    _before: float = 0.0
    """Seconds that the climb had taken when it was interrupted."""

    def __post_init__(self) -> None:
        self._before = self.base.data.climb_seconds

    @property
    def seconds(self) -> float:
        return round(self._before + time.monotonic() - self._started, 1)

    @property
    def ladder(self) -> Escalation:
        """As the order has it, or as the climb began with it: what could be used then is used to the end."""
        if self.base.data.climb is not None:
            return self.base.data.climb.ladder
        loop = self.base.order.loop
        return typed(Escalation, loop.get("ladder") or loop["escalate"])

    @property
    def is_begun(self) -> bool:
        return self.base.data.climb is not None

    @property
    def target(self) -> str:
        return str(self.base.order.loop.get("target", ""))

    @property
    def objective(self) -> str:
        """The user's wish beside passing tests."""
        return self.base.order.text if self._is_escalated else str(self.base.order.loop.get("objective", ""))

    @property
    def told(self) -> str:
        """The objective as attempts are told it; after an ordinary request with what the checks said to it."""
        if not self._is_escalated:
            return self.base.order.text
        refused = "; ".join(self.base.data.refused)
        return f"{self.base.order.text}\n\nEarlier work on this was refused: {refused}"

    @property
    def _is_escalated(self) -> bool:
        return "escalate" in self.base.order.loop

    @property
    def ground(self) -> ChangeSet:
        """The changes that the next attempt starts from."""
        return self.base.work(WorkName.GROUND) or EMPTY

    @property
    def won(self) -> ChangeSet | None:
        return self.base.work(WorkName.WON)

    def baseline(self, verifier: Verifier) -> CheckResult:
        """The tests before the first attempt; run once."""
        known = self.base.data.climb_baseline
        if known is None:
            known = verifier.failing_tests(self.ground)
            if known.standing is Status.SKIPPED and not verifier.commands and not self._is_escalated:
                raise NoTests(
                    f"no test decides: {known.reason}",
                    advice="write one, or name the command that runs tests with --test; for a TARGET one is made",
                )
            self.base.keep(replace(self.base.data, climb_baseline=shortened(known)))
        return known

    def begun(self, ladder: Escalation, before: CheckResult) -> EscalationState:
        """The climb as it was left, or a new one."""
        known = self.base.data.climb
        if known is None:
            known = EscalationState(ladder=ladder, failing=failing(before.findings))
            self.base.keep(replace(self.base.data, climb=known))
        return known

    def keep(self, climb: EscalationState, tried: Tried | None = None) -> None:
        """All that the next step needs becomes durable as one."""
        with self.base.shop.store.together():
            self.base.keep(replace(self.base.data, climb=climb, climb_seconds=self.seconds))
            if tried is not None and tried.attempt.better:
                self.base.keep_work(WorkName.GROUND, tried.changes)
            if tried is not None and tried.attempt.end is AttemptEnd.VERIFIED and self.won is None:
                self.base.keep_work(WorkName.WON, tried.changes)

    def begin(self, at: Iteration) -> None:
        self.base.keep(replace(self.base.data, climb_under_way=at))

    def finish(self) -> None:
        self.base.keep(replace(self.base.data, climb_under_way=None))

    def under_way(self, tier: int) -> Iteration | None:
        """The iteration that an interruption left unfinished."""
        known = self.base.data.climb_under_way
        return known if known is not None and known.tier == tier else None


class AuditTrail:
    """The audit of one run."""

    def __init__(self, state: Path, run: str, listen: Callable[[EscalationWarned], object]) -> None:
        self._state = state
        self._run = run
        self._listen = listen
        self._audit: Audit | None = None
        self._silent = False

    def begun(self, workspace: str, objective: str, climb: EscalationState) -> None:
        self._write(lambda audit: audit.begun(workspace, self._run, objective, climb.ladder, len(climb.failing)))

    def tried(self, climb: EscalationState) -> None:
        """The last attempt of the climb."""
        self._write(lambda audit: audit.tried(self._run, len(climb.attempts), climb.attempts[-1]))

    def left(self, tier: int, reason: str) -> None:
        self._write(lambda audit: audit.left(self._run, tier, reason))

    def ended(self, why: str, reason: str) -> None:
        self._write(lambda audit: audit.ended(self._run, why, reason))

    def close(self) -> None:
        if self._audit is not None:
            self._audit.close()
            self._audit = None

    def _write(self, write: Callable[[Audit], None]) -> None:
        try:
            if self._audit is None:
                self._audit = Audit.open(self._state)
            write(self._audit)
        except (StoreError, OSError) as error:
            if not self._silent:
                self._silent = True
                said = error.message if isinstance(error, StoreError) else f"{error.strerror or error}"
                self._listen(EscalationWarned(f"the audit cannot be written, the run continues: {said}"))


WIDTH = 24
"""Characters of the longest bar."""
MOST_REASON = 72
MOST_MODEL = 20
"""Characters, so that a row has room on a terminal; the values have the whole."""

Row = Mapping[str, Any]


def audited_runs(shop: Project) -> Sequence[Row]:
    """Newest first; nothing where no ladder was climbed yet."""
    if not (shop.config.state / FILE_NAME).exists():
        return ()
    with Audit.open(shop.config.state) as audit:
        return audit.runs(shop.workspace)


def audited(shop: Project, run: str | None) -> dict[str, Any]:
    """One run with its tiers and attempts; the newest where none is named."""
    runs = audited_runs(shop)
    chosen = next((one for one in runs if run in (None, one["run"])), None)
    if chosen is None:
        known = ", ".join(str(one["run"]) for one in runs[:3])
        raise UnknownEntry(
            f"there is no audit of the run {run!r}" if run else "no loop has run in this workspace yet",
            advice=f"the latest are {known}" if known else "start one with 'pawl loop'",
        )
    with Audit.open(shop.config.state) as audit:
        return {**chosen, "tiers": audit.tiers(str(chosen["run"])), "attempts": audit.attempts(str(chosen["run"]))}


def as_markdown(found: Row) -> str:
    """The report of one run: what it was for, its tiers, its attempts, and how cost and failures went."""
    ended = f"{found['why']}: {found['reason']}" if found["ended"] else "running, or interrupted"
    lines = [
        f"# Run {found['run']}",
        "",
        str(found["objective"]),
        "",
        f"{str(found['began'])[:19].replace('T', ' ')} UTC; {found['failing']} failing at first",
        ended,
        "",
        "| tier | mode | attempts | cost | left because |",
        "| --- | --- | --- | --- | --- |",
    ]
    attempts = found["attempts"]
    for tier in found["tiers"]:
        made = [one for one in attempts if one["tier"] == tier["tier"]]
        lines.append(_row(tier["name"], tier["mode"], len(made), _money(_total(made)), tier["left_because"] or "–"))
    lines += ["", "| # | tier | iteration | model | ended | failing | cost | seconds |", "| --- " * 8 + "|"]
    names = {tier["tier"]: tier["name"] for tier in found["tiers"]}
    for one in attempts:
        row = _row(
            one["number"],
            names.get(one["tier"], one["tier"]),
            f"{one['iteration']}.{one['sample']}",
            _short(one["model"]) or "–",
            one["ended"],
            "–" if one["failing"] is None else one["failing"],
            _money(one["cost"]),
            f"{one['seconds']:.1f}",
        )
        lines.append(row)
    refused = [(one["number"], "; ".join(one["refused"])) for one in attempts if one["ended"] != "verified"]
    lines += ["", *(f"- {number}: {' '.join(why.split())[:MOST_REASON]}" for number, why in refused if why)]
    return "\n".join((*lines, "", "```text", *plot(found["failing"], attempts), "```", ""))


def plot(first: int, attempts: Sequence[Row]) -> list[str]:
    """A bar for the failing tests and one for the cost so far, line by line."""
    known = [one["failing"] for one in attempts if one["failing"] is not None]
    most_failing = max((first, *known), default=0)
    whole = _total(attempts)
    lines = [f"{'#':>3}  {'failing':<{WIDTH + 6}}cost so far", _line("0", first, most_failing, Decimal(0), whole)]
    failing, spent = first, Decimal(0)
    for one in attempts:
        failing = failing if one["failing"] is None else one["failing"]
        spent += one["cost"] or Decimal(0)
        lines.append(_line(str(one["number"]), failing, most_failing, spent, whole))
    return lines


def _line(number: str, failing: int, most: int, spent: Decimal, whole: Decimal) -> str:
    left = f"{_bar(failing, most)} {failing}".strip()
    right = f"{_bar(spent, whole)} {_money(spent)}".strip()
    return f"{number:>3}  {left:<{WIDTH + 6}}{right}"


def _short(model: str) -> str:
    """The end of a name tells more than its beginning."""
    name = model.rpartition("/")[2]
    return name if len(name) <= MOST_MODEL else f"…{name[1 - MOST_MODEL :]}"


def _bar(value: int | Decimal, most: int | Decimal) -> str:
    return "█" * max(1, round(WIDTH * value / most)) if value and most else ""


def _total(attempts: Sequence[Row]) -> Decimal:
    return sum((one["cost"] for one in attempts if one["cost"] is not None), Decimal(0))


def _money(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"${amount:.4f}"


def _row(*cells: object) -> str:
    return "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in cells) + " |"
