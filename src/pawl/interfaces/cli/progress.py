"""What a person watches while the reflex works: the stage, how many candidates, the best so far, the time left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pawl.app.fixing import BaselineTaken, LinesSuspected, ProblemFound, Progressed, RepairEnded, StageBegun
from pawl.core.display import safe_text
from pawl.core.finding import Verdict
from pawl.interfaces.cli.screen import Screen

if TYPE_CHECKING:
    from rich.live import Live

STAGES = {
    "suite": "running the suite",
    "recover": "trying known recoveries",
    "collect": "collecting the tests",
    "baseline": "taking the baseline",
    "trace": "watching the failing tests",
    "search": "searching for a patch",
    "pairs": "searching for two edits",
    "compare": "comparing patches by behaviour",
    "verify": "verifying",
}


class Progress:
    """One line in a terminal that changes in place; a line a stage where it is piped; nothing when quiet."""

    def __init__(self, screen: Screen, seconds: float, *, quiet: bool) -> None:
        self._screen = screen
        self._quiet = quiet
        self._deadline = time.monotonic() + seconds
        self._live: Live | None = None
        self._stage = "starting"
        self._detail = ""
        self._suspect = ""

    def __enter__(self) -> Progress:
        if not self._quiet and self._screen.is_terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=self._screen.stream, highlight=False), transient=True, refresh_per_second=8
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, event: object) -> None:
        match event:
            case StageBegun(name=name):
                self._stage, self._detail = STAGES.get(name, name), ""
                self._line()
            case BaselineTaken():
                self._detail = f"{len(event.failing)} failing, {event.passed} passing"
            case LinesSuspected(lines=lines) if lines:
                self._suspect = f"{lines[0].path}:{lines[0].line}"
            case Progressed():
                found = f", {event.plausible} plausible" if event.plausible else ""
                self._detail = f"{event.tried:,} candidates, {event.rate:,.0f} a CPU second{found}"
            case ProblemFound():
                self._detail = f"{event.place}: {event.kind}"
            case Verdict():
                self._stage, self._detail = f"verified {event.step}", str(event.standing)
                self._line()
            case RepairEnded():
                self._detail = str(event.status)
        self._refresh()

    def _refresh(self) -> None:
        if self._live is not None:
            from rich.text import Text

            left = max(0.0, self._deadline - time.monotonic())
            parts = [self._stage, self._detail, self._suspect and f"suspect {self._suspect}", f"{left:.0f} s left"]
            self._live.update(
                Text(safe_text("  ".join(part for part in parts if part)).text, no_wrap=True, overflow="ellipsis")
            )

    def _line(self) -> None:
        if self._live is None and not self._quiet:
            self._screen.say(f"{self._stage} {self._detail}".rstrip())
