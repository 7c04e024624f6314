"""What a person watches while the reflex works: the stage, how many candidates, the best so far, the time left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pawl.app.fixing import (
    BaselineTaken,
    ClockStarted,
    LinesSuspected,
    Mended,
    ProblemFound,
    Progressed,
    StageBegun,
)
from pawl.core.display import safe_text
from pawl.core.finding import Verdict
from pawl.interfaces.screen.screen import Screen, brief

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

STAGES = {
    "install": "installing what the lock file says",
    "suite": "running the suite",
    "recover": "trying known recoveries",
    "collect": "collecting the tests",
    "baseline": "running the tests by themselves",
    "trace": "watching the failing tests",
    "largest group": "watching the failing tests",
    "search": "searching for a patch",
    "definitions": "searching outside of functions",
    "pairs": "searching for two edits",
    "compare": "comparing patches by behaviour",
    "verify": "verifying",
}
MILESTONES = ("install", "suite", "recover", "search", "verify")
"""The stages that are told where the output is piped, each once in a row."""
MOST_MENDED = 5


class Progress:
    """A few lines in a terminal that change in place; a line a milestone where it is piped; nothing when quiet."""

    def __init__(self, screen: Screen, *, quiet: bool) -> None:
        self._screen = screen
        self._quiet = quiet
        self._started = time.monotonic()
        self._deadline: float | None = None
        self._live: Live | None = None
        self._stage = "starting"
        self._detail = ""
        self._suspect = ""
        self._mended: list[str] = []
        self._told = ""

    def __enter__(self) -> Progress:
        if not self._quiet and self._screen.is_terminal:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._screen.stream, highlight=False)
            if not console.is_dumb_terminal:
                self._live = Live(console=console, transient=True, refresh_per_second=8, get_renderable=self._drawn)
                self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, event: object) -> None:
        match event:
            case StageBegun(name=name):
                self._stage, self._detail = STAGES.get(name, name), ""
                if name in MILESTONES:
                    self._tell(self._stage)
            case ClockStarted():
                self._deadline = time.monotonic() + event.seconds
                if event.failing:
                    self._tell(f"{event.failing} failing")
            case LinesSuspected(lines=lines) if lines:
                self._suspect = f"suspect {lines[0].path}:{lines[0].line}"
            case Mended(repair=repair):
                left = f"{event.failing} still fail" if event.failing else "nothing fails any more"
                self._mended.append(f"{repair.path}:{repair.line}  {in_words(repair.what)}  ({left})")
                self._suspect = ""
                self._tell(f"mended {self._mended[-1]}")
            case _:
                self._detail = _detail(event) or self._detail

    def _tell(self, line: str) -> None:
        """A line where the output is piped."""
        if self._live is None and not self._quiet and line != self._told:
            self._told = line
            self._screen.say(line)

    def _drawn(self) -> Table:
        """The stage with the time beside it, what it is at, and what was mended so far."""
        from rich.table import Table
        from rich.text import Text

        width = self._screen.width - 1
        if self._live is not None:
            # The terminal's own width, also after it has changed, and not what a shell once wrote down.
            self._live.console.width = width + 1
        clock = f"{time.monotonic() - self._started:.0f} s"
        if self._deadline is not None and self._stage != STAGES["verify"]:
            clock += f", {max(0.0, self._deadline - time.monotonic()):.0f} s left"
        grid = Table.grid(expand=False)
        grid.width = width
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        grid.add_column(no_wrap=True, justify="right")
        grid.add_row(Text(f"{self._spinner()} {self._stage}", "bold"), Text(clock, "dim"))
        for line in filter(None, (self._detail, self._suspect)):
            grid.add_row(Text(f"  {_safe(line, width)}", "dim"), "")
        for line in self._mended[-MOST_MENDED:]:
            grid.add_row(Text(f"✓ {_safe(line, width)}", "green"), "")
        return grid

    def _spinner(self) -> str:
        return "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int((time.monotonic() - self._started) * 8) % 10]


def in_words(what: str) -> str:
    """A template, or an entry of the recovery map without its language."""
    return what if " " in what else what.rpartition(".")[2].replace("-", " ")


def _detail(event: object) -> str:
    match event:
        case BaselineTaken():
            return f"{len(event.failing)} failing, {event.passed} passing"
        case Progressed():
            found = f", {event.plausible} would do" if event.plausible else ""
            thing = "candidate" if event.tried == 1 else "candidates"
            return f"{event.tried:,} {thing}, {event.rate:,.0f} a CPU second{found}"
        case ProblemFound():
            return f"{event.place}: {event.kind}"
        case Verdict():
            return f"{event.step}: {event.standing}"
        case _:
            return ""


def _safe(line: str, width: int) -> str:
    return brief(safe_text(line).text, width - 2)
