"""The user's choices for the session, its status line, and the keys in words."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, Mode, RunRequest
from pawl.settings.session_settings import PARTS
from pawl.ui.screen.renderer import Meter
from pawl.ui.screen.screen import cells, cut, money, short_model
from pawl.ui.terminal.commands import SessionCommand

PLAN = (
    "Plan only; nothing can be changed now. Read what you need, then answer with a numbered plan: which files change"
    " and how, in which order, how each step is verified, what is risky, and what you need to know from the user."
)
CARRY_OUT = "Carry out the plan: "
"""Before the request, when the user has agreed to its plan."""


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

    def next_mode(self) -> None:
        """From agent to plan to chat and back."""
        word = self.mode_word
        self.planning = word == "agent"
        self.mode = Mode.CHAT if word == "plan" else Mode.AGENT

    def order(self, text: str, *, context: tuple[str, ...] = (), command: SessionCommand | None = None) -> RunRequest:
        return RunRequest(
            text=text,
            context=(*context, PLAN) if self.planning else context,
            mode=Mode.CHAT if self.planning else self.mode,
            approval=self.approval,
            model=(command.model if command else "") or self.model,
            reasoning=self.reasoning,
            conversation=self.conversation,
            allowed_tools=command.tools if command else (),
        )


KEYS = (
    ("Enter", "send a request, or a message to the current run (read at its next step)"),
    ("Tab", "complete a /command or @file; while a run works: queue the input as the next request"),
    ("!COMMAND", "run a command on a bench, and choose whether its changes are promoted"),
    ("#TEXT", "remember a sentence about this workspace"),
    ("@FILE, @FILE:10-20", "attach a file, or some of its lines"),
    ("Shift-Tab", "the next mode: agent, plan, chat"),
    ("Ctrl-R", "search earlier inputs"),
    ("Esc, Ctrl-C", "stop the current run; Ctrl-C twice leaves"),
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
KEYS_TO = {
    "working": "Enter steer, Tab queue, Esc stop",
    "running": "Enter queue, Esc stop",
    "asked": "answer, or Esc for later",
    "idle": "/help",
}


def status_line(
    wishes: SessionChoices, meter: Meter, *, model: str | None, doing: str, width: int, parts: Sequence[str] = PARTS
) -> str:
    """The parts in their order; where they do not fit the lowest rank goes first. `doing`: see KEYS_TO."""
    ranked = {
        "model": (6, "no model" if model == "" else short_model(model or "")),
        "mode": (5, wishes.mode_word),
        "approval": (2, ASKS[wishes.approval]),
        "cost": (4, money(meter.cost) if meter.by_model else "$0.00"),
        "context": (3, f"context {meter.fill}%" if meter.fill is not None else ""),
        "keys": (7 if doing != "idle" else 1, KEYS_TO[doing]),
    }
    shown = [ranked[part] for part in parts if ranked[part][1]]
    while len(shown) > 1 and cells(SEPARATOR.join(text for _, text in shown)) > width:
        shown.remove(min(shown))
    return cut(SEPARATOR.join(text for _, text in shown), width)
