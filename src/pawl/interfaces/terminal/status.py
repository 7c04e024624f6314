"""The line below the input: what the next request would be, what was spent, what can be pressed; as much as fits."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.interfaces.screen.screen import cells
from pawl.interfaces.screen.talk import money
from pawl.interfaces.terminal.wishes import Meter, Wishes

SEPARATOR = " · "
ASKS = {"each": "asks before each edit", "final": "asks at the end", "never": "asks above limits only"}
KEYS_WORKING = "Enter steer, Tab queue, Esc stop"
KEYS_ASKED = "answer, or Enter for later"
KEYS_IDLE = "/help"


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of the line; the higher its rank, the later it is left out."""

    text: str
    rank: int


def status_line(wishes: Wishes, meter: Meter, *, model: str, doing: str, width: int) -> str:
    """The parts in their order, without those that do not fit; `doing` is idle, working or asked."""
    keys = {"working": KEYS_WORKING, "asked": KEYS_ASKED}.get(doing, KEYS_IDLE)
    spent = money(meter.cost) if meter.by_model else "$0.00"
    parts = [
        Part(_short(model) or "no model", 6),
        Part(wishes.mode_word, 5),
        Part(ASKS[wishes.approval], 2),
        Part(spent, 4),
        Part(f"context {meter.fill}%" if meter.fill is not None else "", 3),
        Part(keys, 7 if doing != "idle" else 1),
    ]
    return fitted([part for part in parts if part.text], width)


def fitted(parts: list[Part], width: int) -> str:
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
