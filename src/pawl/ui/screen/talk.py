"""What a person sees while a model works: its words on stdout as they come, everything else aside."""

from __future__ import annotations

import re
from decimal import Decimal

from pawl.core.dialogue import FellBack, Retrying, TextDelta, ThoughtDelta, ToolCall
from pawl.core.display import SafeWords
from pawl.core.events import (
    Corrected,
    Metered,
    RequestAnswered,
    RequestSent,
    RunEvent,
    Shortened,
    ToolEnded,
    ToolStarted,
    Warned,
)
from pawl.core.run import RoleName, Stage
from pawl.ui.screen.markdown import Blocks, drawn
from pawl.ui.screen.screen import LiveLine, Screen, brief

_WHAT = ("path", "query", "command", "what")
"""Arguments that say best what a call is about."""
_UNSEEN = frozenset({Stage.INTENT, Stage.PLAN, Stage.QA, Stage.EVALUATE, Stage.STUDY})
"""Stages whose answers are for Pawl: what comes of them is told in other words."""
_AT_WORK = {
    RoleName.LIBRARIAN: "the librarian chooses the files that matter",
    RoleName.CRITIC: "the critic reads the change",
    RoleName.CHAOS: "chaos looks for inputs that break it",
    RoleName.PLANNER: "the planner plans",
    RoleName.WORKER: "a worker works",
    RoleName.FIXER: "the fixer mends",
}
"""Roles of a ladder that answer by their contract, and what a person is told instead."""
_CODE = re.compile(r"\A[a-z_]+: ")
_GAP = "\n"
_SAID_BEFORE = "It said:\n"
"""What stands before the failure of a call that is not carried out again."""


class EventRenderer:
    """Renders the events of a talk. Nothing that a model says is obeyed by the terminal."""

    def __init__(self, out: Screen, aside: Screen, *, quiet: bool = False, show_thoughts: bool = False) -> None:
        self._out = out
        self._aside = aside
        self._quiet = quiet
        self._show_thoughts = show_thoughts
        self._safe = SafeWords()
        self._blocks = Blocks()
        self._live = LiveLine(out)
        self._status = StatusLine()
        self._unseen = False
        self._said = False
        """The last thing shown was a block of the answer."""
        self._line = ""
        """The line of the answer that has begun, where it goes into a pipe: secrets are known in whole lines only."""
        self._thought = ""
        """The line of the reasoning that has begun."""

    def take(self, event: RunEvent) -> None:
        if self._quiet:
            return
        self._status.hear(event)
        if isinstance(event, RequestSent):
            self._unseen = is_for_pawl(event)
        if isinstance(event, ThoughtDelta):
            self._think(event.text)
        else:
            self._end_thought()
            if isinstance(event, TextDelta):
                self._write("" if self._unseen else event.text)
            elif note := self._noted(event):
                self.note(note)
        if coming := self._blocks.rest.rpartition("\n")[2]:
            self._live.show(coming, tail=True)
        else:
            self._live.show(self._status.text)

    def _noted(self, event: RunEvent) -> str:
        match event:
            case RequestSent():
                return at_work(event)
            case ToolStarted(call=call):
                return f"· {call.name} {about(call)}".rstrip()
            case ToolEnded(answer=answer) if answer.failed:
                return f"  ✗ {brief(reason_of(answer.text), 100)}"
            case Retrying(why=why, wait_seconds=seconds, begun=begun):
                lost = "; what was said so far does not count" if begun else ""
                return f"! {brief(why, 100)}; trying again in {seconds:.1f} s{lost}"
            case FellBack(model=model, to=other, why=why):
                return f"! {model} could not answer ({brief(why, 80)}); {other} takes over, as you configured"
            case Corrected(name=name):
                return f"! sent back: {name.replace('_', ' ')}"
            case Warned(text=text):
                return f"! {brief(text, 200)}"
            case Shortened(before_tokens=before, after_tokens=after):
                return f"! the dialogue was long: its older part was shortened, {before:,} → {after:,} tokens"
        return ""

    def close(self) -> None:
        """Shows what is left, and ends the last line."""
        if self._quiet:
            return
        self._end_thought()
        self._finish_blocks()
        self._live.clear()
        self._said = False
        self._end_line(self._safe.close())

    def _think(self, text: str) -> None:
        """Shows whole lines: reasoning comes in pieces of a word."""
        if self._show_thoughts:
            *lines, self._thought = f"{self._thought}{text}".split("\n")
            for line in lines:
                if line.strip():
                    self.note(f"… {line}")

    def _end_thought(self) -> None:
        line, self._thought = self._thought, ""
        if line.strip():
            self.note(f"… {line}")

    def _write(self, text: str) -> None:
        """As it comes into a pipe; block by block in a terminal."""
        if self._out.is_terminal:
            for block in self._blocks.feed(self._safe.feed(text)):
                self._show(block)
            return
        whole, found, self._line = (self._line + self._safe.feed(text)).rpartition("\n")
        self._out.put(whole + found)

    def _show(self, block: str) -> None:
        self._live.clear()
        out = self._out
        out.draw(f"{_GAP if self._said else ''}{drawn(block, out.width - 1, color=out.color)}\n")
        self._said = True

    def _finish_blocks(self) -> None:
        if self._out.is_terminal:
            for block in (*self._blocks.feed(self._safe.close()), *self._blocks.close()):
                self._show(block)

    def _end_line(self, last: str = "") -> None:
        line, self._line = self._line + last, ""
        if line and not self._out.is_terminal:
            self._out.put(f"{line}\n")

    def note(self, text: str) -> None:
        """A line beside the answer, which ends what had begun of it."""
        if self._quiet:
            return
        self._finish_blocks()
        self._live.clear()
        self._said = False
        self._end_line()
        self._aside.say(text, "dim")


class StatusLine:
    """What is going on, in a few words."""

    def __init__(self) -> None:
        self._doing = ""
        self._model = ""
        self._spent: Decimal | None = Decimal(0)
        self._context = ""

    @property
    def text(self) -> str:
        parts = (self._doing, self._model, money(self._spent) if self._model else "", self._context)
        return " · ".join(part for part in parts if part)

    def hear(self, event: RunEvent) -> None:
        match event:
            case RequestSent(model=model):
                self._doing, self._model = "waiting for an answer", model.rpartition("/")[2]
            case TextDelta():
                self._doing = "answering"
            case ThoughtDelta():
                self._doing = "thinking"
            case ToolStarted(call=call):
                self._doing = f"{call.name} {about(call)}".rstrip()
            case RequestAnswered(cost=cost):
                self._spent = None if self._spent is None or cost is None else self._spent + cost
            case Metered(context_tokens=tokens, context_window=window) if window:
                self._context = f"context {round(100 * tokens / window)}%"


def is_for_pawl(sent: RequestSent) -> bool:
    """Whether the answer is a value by a contract, which is not for a person's eyes."""
    return sent.stage in _UNSEEN or sent.role in _AT_WORK


def at_work(sent: RequestSent) -> str:
    """A line that tells who begins to work on a ladder; empty for whoever speaks for himself."""
    said = _AT_WORK.get(sent.role, "") if sent.number == 1 and sent.stage is not Stage.PLAN else ""
    return f"· {said}" if said else ""


def money(cost: Decimal | None) -> str:
    if cost is None:
        return "price unknown"
    return f"${cost:.2f}" if cost == 0 or cost >= Decimal("0.1") else f"${cost:.4f}"


def about(call: ToolCall) -> str:
    arguments = call.arguments or {}
    said = [str(arguments[name]) for name in _WHAT if arguments.get(name)]
    return brief(" ".join(said), 80)


def reason_of(text: str) -> str:
    """What went wrong, without the words that are for the model: the code before it and the advice after it."""
    message = text.partition(_SAID_BEFORE)[2] or text
    return _CODE.sub("", message.partition("\nnext: ")[0], count=1)
