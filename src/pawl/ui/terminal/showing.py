"""What happens in a run, as a person watches it: each thing printed once, what is under way in the live lines."""

from __future__ import annotations

from pawl.agent.events import Event
from pawl.core.diagnostic import CheckResult, Status
from pawl.core.dialogue import FellBack, Retrying, TextDelta, ThoughtDelta, ToolCall
from pawl.core.display import SafeWords
from pawl.core.events import (
    ClimbEvent,
    Corrected,
    NodeEntered,
    RequestSent,
    RunEnded,
    Shortened,
    Steered,
    ToolEnded,
    ToolStarted,
    Warned,
)
from pawl.ui.screen.markdown import Blocks, drawn
from pawl.ui.screen.report import lines_of
from pawl.ui.screen.screen import brief, one_line
from pawl.ui.screen.talk import about, at_work, is_for_pawl, reason_of
from pawl.ui.terminal.face import Meter, SessionScreen
from pawl.ui.terminal.keys_help import cut

AT = {
    "intent": "understanding",
    "read": "reading",
    "run": "running",
    "undo": "taking it back",
    "mend": "the reflex looks for a patch, with no model",
    "plan": "planning",
    "prove": "running the tests as they stand",
    "act": "working",
    "verify": "verifying on a fresh bench",
    "apply": "promoting",
    "qa": "reviewing",
}
TOLD = frozenset({"mend", "plan", "prove", "verify", "apply"})
"""Nodes that are worth a line of their own."""
MARKS = {Status.PASS: ("✓", "green"), Status.FAIL: ("✗", "red")}
LONGEST = 110


class Showing:
    """Hears the events of runs, in the thread in which they work."""

    def __init__(self, face: SessionScreen, meter: Meter) -> None:
        self._face = face
        self._meter = meter
        self._safe = SafeWords()
        self._blocks = Blocks()
        self._said = False
        """The last thing printed was a block of an answer."""
        self._unseen = False

    def hear(self, event: Event) -> None:
        self._meter.hear(event)
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ThoughtDelta():
                self._face.activity("thinking")
            case RequestSent(model=model):
                self.finish()
                self._unseen = is_for_pawl(event)
                if told := at_work(event):
                    self.note(told)
                self._face.activity(f"asking {model.rpartition('/')[2]}")
            case ToolStarted(call=call):
                self.finish()
                self._face.activity(_called(call))
            case ToolEnded():
                self._tool(event)
            case NodeEntered(place=place):
                self._node(place.at, place.attempt)
            case CheckResult():
                self._verdict(event)
            case RunEnded():
                self.finish()
                self._face.activity("")
            case _:
                self._other(event)

    def finish(self) -> None:
        """What was being said is as whole as it gets."""
        for block in (*self._blocks.feed(self._safe.close()), *self._blocks.close()):
            self._print(block)
        self._face.preview("")

    def note(self, text: str, style: str = "bright_black") -> None:
        """A line beside the answer."""
        self.finish()
        if self._said:
            self._face.out.say()
        self._said = False
        out = self._face.out
        out.say(cut(text, out.width - 1) if out.is_terminal else text, style)

    def _say(self, text: str) -> None:
        if self._unseen:
            return
        for block in self._blocks.feed(self._safe.feed(text)):
            self._print(block)
        self._face.preview(self._blocks.rest)
        self._face.activity("answering")

    def _print(self, block: str) -> None:
        out = self._face.out
        gap = "\n" if self._said else ""
        out.draw(f"{gap}{drawn(block, out.width - 1, color=out.color)}\n")
        self._said = True

    def _tool(self, ended: ToolEnded) -> None:
        call = one_line(_called(ended.call))
        if ended.answer.failed:
            self.note(brief(f"✗ {call}: {one_line(reason_of(ended.answer.text))}", LONGEST), "red")
            return
        lines = ended.answer.text.strip().split("\n")
        came = f"{len(lines)} lines" if len(lines) > 1 else one_line(brief(lines[0], 40))
        seconds = f", {ended.seconds:.1f} s" if ended.seconds >= 0.1 else ""
        self.note(brief(f"· {call}{f' → {came}' if came else ''}{seconds}", LONGEST))

    def _node(self, name: str, attempt: int) -> None:
        said = AT.get(name, "")
        again = f" (attempt {attempt})" if attempt > 1 else ""
        if said and name in TOLD:
            self.note(f"· {said}{again}")
        self._face.activity(f"{said}{again}")

    def _verdict(self, verdict: CheckResult) -> None:
        mark, style = MARKS.get(verdict.standing, ("–", "bright_black"))
        reason = one_line(brief(verdict.reason, LONGEST - 20)) or verdict.standing
        self.note(f"  {mark} {verdict.step}: {reason}", style)

    def _other(self, event: Event) -> None:
        match event:
            case Retrying(why=reason, wait_seconds=seconds):
                when = f"; trying again in {seconds:.1f} s"
                room = min(80, self._face.out.width - len(when) - 3)
                self.note(f"! {one_line(brief(reason, room))}{when}", "yellow")
            case FellBack(model=model, to=other, why=reason):
                self.note(f"! {model} could not answer ({one_line(brief(reason, 60))}); {other} takes over", "yellow")
            case Corrected(name=name):
                self.note(f"! sent back: {name.replace('_', ' ')}", "yellow")
            case Shortened(before_tokens=before, after_tokens=after):
                self.note(f"! the dialogue was shortened: {before:,} → {after:,} tokens", "yellow")
            case Warned(text=text):
                self.note(f"! {one_line(brief(text, LONGEST))}", "yellow")
            case Steered():
                self.note("· your words were taken")
            case _ if isinstance(event, ClimbEvent):
                self._ladder(event)
            case _:
                self._reflex(event)

    def _ladder(self, event: ClimbEvent) -> None:
        """Which tier works, at which attempt, and what came of it."""
        for line in lines_of(event):
            self.note(one_line(line), "yellow" if line.startswith("!") else "bright_black")

    def _reflex(self, event: Event) -> None:
        """The steps of the reflex are many; the live line is enough for them."""
        name = getattr(event, "name", "")
        if isinstance(name, str) and name:
            self._face.activity(f"the reflex: {one_line(brief(name, 40))}")


def _called(call: ToolCall) -> str:
    return f"{call.name} {about(call)}".rstrip()
