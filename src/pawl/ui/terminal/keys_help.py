"""What the keys do, in words; known without loading what reads them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pawl.ui.screen.screen import cells
from pawl.ui.screen.talk import money
from pawl.ui.terminal.face import Meter, SessionChoices

KEYS = (
    ("Enter", "say it: a request, or words for the run that works (taken at its next step)"),
    ("Tab", "complete a /command or @file; while a run works, queue what is typed for afterwards"),
    ("Esc, Ctrl-C", "stop the run that works; Ctrl-C twice leaves"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Up, Down", "earlier inputs of this workspace"),
    ("Ctrl-L", "an empty screen"),
    ("Ctrl-Z", "put Pawl into the background"),
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


@dataclass(frozen=True, slots=True)
class StatusPart:
    """One piece of the line; the higher its rank, the later it is left out."""

    text: str
    rank: int


def status_line(wishes: SessionChoices, meter: Meter, *, model: str, doing: str, width: int) -> str:
    """The parts in their order, without those that do not fit; `doing` is idle, working or asked."""
    keys = {"working": KEYS_WORKING, "asked": KEYS_ASKED}.get(doing, KEYS_IDLE)
    spent = money(meter.cost) if meter.by_model else "$0.00"
    parts = [
        StatusPart(_short(model) or "no model", 6),
        StatusPart(wishes.mode_word, 5),
        StatusPart(ASKS[wishes.approval], 2),
        StatusPart(spent, 4),
        StatusPart(f"context {meter.fill}%" if meter.fill is not None else "", 3),
        StatusPart(keys, 7 if doing != "idle" else 1),
    ]
    return fitted([part for part in parts if part.text], width)


def fitted(parts: list[StatusPart], width: int) -> str:
    while len(parts) > 1 and cells(SEPARATOR.join(part.text for part in parts)) > width:
        parts.remove(min(parts, key=lambda part: part.rank))
    line = SEPARATOR.join(part.text for part in parts)
    return line if cells(line) <= width else cut(line, width)


def cut(text: str, width: int) -> str:
    """The start of the text, in so many cells."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def _short(model: str) -> str:
    """A file by its name, and nothing longer than a name should be."""
    kind, found, path = model.partition(":")
    name = f"{kind}:{path.rpartition('/')[2]}" if found and "/" in path else model
    return cut(name, 28)
