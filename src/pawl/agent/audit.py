"""Writes the audit as well as it can: what the disk does not take is warned about once, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pawl.core.errors import StoreError, UnknownEntry
from pawl.core.events import EscalationWarned
from pawl.core.tiers import EscalationState
from pawl.store.audit import FILE_NAME, Audit
from pawl.workspace.project import Project


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
                self._listen(EscalationWarned(f"the audit cannot be written, the run goes on: {said}"))


WIDTH = 24
"""Characters of the longest bar."""
MOST_REASON = 72
MOST_MODEL = 20
"""Characters, so that a row has room on a terminal; the values have the whole."""

Row = Mapping[str, Any]


def audited_runs(shop: Project, limit: int = -1) -> Sequence[Row]:
    """Newest first; nothing where no ladder was climbed yet."""
    if not (shop.config.state / FILE_NAME).exists():
        return ()
    with Audit.open(shop.config.state) as audit:
        return audit.runs(shop.workspace, limit=limit)


def audited(shop: Project, run: str | None) -> dict[str, Any]:
    """One run with its tiers and attempts; the newest where none is named."""
    runs = audited_runs(shop)
    chosen = next((one for one in runs if run in (None, one["run"])), None)
    if chosen is None:
        known = ", ".join(str(one["run"]) for one in runs[:3])
        raise UnknownEntry(
            f"there is no audit of the run {run!r}" if run else "no ladder was climbed in this workspace yet",
            advice=f"the latest are {known}" if known else "start one with 'pawl loop'",
        )
    with Audit.open(shop.config.state) as audit:
        return {**chosen, "tiers": audit.tiers(str(chosen["run"])), "attempts": audit.attempts(str(chosen["run"]))}


def as_markdown(found: Row) -> str:
    """The report of one run: what it was for, its tiers, its attempts, and how cost and failures went."""
    ended = f"{found['why']}: {found['reason']}" if found["ended"] else "under way, or interrupted"
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
