"""The user's choices for the session, its status line, and the keys in words."""

from __future__ import annotations

import sys

from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, Mode, RunRequest
from pawl.ui.screen.renderer import Meter
from pawl.ui.screen.screen import cells, cut, money, short_model

PLAN = (
    "[Plan only; nothing can be changed now. Read what you need, then answer with a numbered plan: which files change"
    " and how, in which order, how each step is verified, what is risky, and what you need to know from me.]"
)


@dataclass(slots=True)
class SessionChoices:
    """Each request takes them with it when it begins; a run that works keeps those it began with."""

    model: str = ""
    """Empty for the configured one."""
    mode: Mode = Mode.AGENT
    planning: bool = False
    approval: Approval = Approval.FINAL
    reasoning: str = ""
    conversation: str = ""
    """Empty for a new one."""

    @property
    def mode_word(self) -> str:
        return "plan" if self.planning else str(self.mode)

    def order(self, text: str, *, model: str = "") -> RunRequest:
        return RunRequest(
            text=f"{text}\n\n{PLAN}" if self.planning else text,
            mode=Mode.CHAT if self.planning else self.mode,
            approval=self.approval,
            model=model or self.model,
            reasoning=self.reasoning,
            conversation=self.conversation,
        )


KEYS = (
    ("Enter", "send a request, or a message to the present run (taken at its next step)"),
    ("Tab", "complete a /command or @file; while a run works: queue the input as the next request"),
    ("Esc, Ctrl-C", "stop the present run; Ctrl-C twice leaves"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Up, Down", "earlier inputs of this workspace"),
    ("Ctrl-O", "show the latest tool call with all of its output; again: the one before it"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "suspend Pawl"),
    ("Ctrl-D", "leave"),
)


def can_draw(term: str) -> bool:
    """Both ends are a terminal that understands more than text."""
    return term not in ("", "dumb", "unknown") and sys.stdin.isatty() and sys.stdout.isatty()


SEPARATOR = " · "
ASKS = {"each": "asks before each edit", "final": "asks at the end", "never": "asks above limits only"}
KEYS_WORKING = "Enter steer, Tab queue, Esc stop"
KEYS_ASKED = "answer, or Enter for later"
KEYS_IDLE = "/help"


def status_line(wishes: SessionChoices, meter: Meter, *, model: str, doing: str, width: int) -> str:
    """The parts in their order; where they do not fit the lowest rank goes first. `doing` is idle, working or asked."""
    keys = {"working": KEYS_WORKING, "asked": KEYS_ASKED}.get(doing, KEYS_IDLE)
    spent = money(meter.cost) if meter.by_model else "$0.00"
    ranked = [
        (6, short_model(model) or "no model"),
        (5, wishes.mode_word),
        (2, ASKS[wishes.approval]),
        (4, spent),
        (3, f"context {meter.fill}%" if meter.fill is not None else ""),
        (7 if doing != "idle" else 1, keys),
    ]
    parts = [part for part in ranked if part[1]]
    while len(parts) > 1 and cells(SEPARATOR.join(text for _, text in parts)) > width:
        parts.remove(min(parts))
    return cut(SEPARATOR.join(text for _, text in parts), width)
