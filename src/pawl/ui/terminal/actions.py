"""What the commands of a session do that are not commands of the command line: its settings, its conversations."""

from __future__ import annotations

from collections.abc import Callable

from pawl.core.errors import UsageError
from pawl.core.run import Approval, Mode
from pawl.ui.screen.screen import one_line
from pawl.ui.screen.talk import money
from pawl.ui.terminal.commands import SessionCommand
from pawl.ui.terminal.keys_help import ASKS, KEYS
from pawl.ui.terminal.session import TerminalSession

GROUPS = {
    "session": "session",
    "conversation": "conversation",
    "work": "work",
    "history": "history",
    "memory": "knowledge",
    "yours": "yours",
}


class Actions:
    """Those that touch nothing but the session itself, at any time, in the thread of the input."""

    def __init__(self, sitting: TerminalSession) -> None:
        self._sitting = sitting
        self._wishes = sitting.wishes

    @property
    def by_name(self) -> dict[str, Callable[[str], None]]:
        return {
            "help": self.help,
            "status": self.status,
            "mode": self.mode,
            "plan": self.plan,
            "approval": self.approval,
            "reasoning": self.reasoning,
            "cost": self.cost,
            "queue": self.queue,
            "quit": self.quit,
        }

    def help(self, words: str) -> None:
        out = self._sitting.face.out
        commands = self._sitting.shared.commands
        if words:
            one = commands.find(words.lstrip("/").lower())
            out.say(one.usage, "bold")
            out.say(f"  {one.help}")
            if one.others:
                out.say(f"  also: {', '.join(f'/{name}' for name in one.others)}")
            if one.source:
                out.hint(f"  from {one.source}")
            return
        for group, title in GROUPS.items():
            rows = [one for one in commands.every if one.group == group]
            if rows:
                out.say(title, "bold")
                _rows(self._sitting, [(_name(one), one.help) for one in rows])
        out.say("keys", "bold")
        _rows(self._sitting, list(KEYS))

    def status(self, words: str) -> None:
        from pawl.core.version import __version__

        sitting, wishes = self._sitting, self._wishes
        rows = [
            ("pawl", __version__),
            ("workspace", str(sitting.opening.workspace)),
            ("model", sitting.shared.model or "none: set PAWL_MODEL or /model NAME"),
            ("mode", f"{wishes.mode_word}, {ASKS[wishes.approval]}"),
            ("conversation", wishes.conversation or "new"),
            ("spent", money(sitting.meter.cost)),
        ]
        if sitting.meter.fill is not None:
            rows.append(("context", f"{sitting.meter.context_tokens:,} of {sitting.meter.context_window:,} tokens"))
        if sitting.shared.waits:
            rows.append(("waits", f"run {sitting.shared.waits} for your answer: /approve"))
        if sitting.shared.trust:
            rows.append(("trust", sitting.shared.trust))
        _rows(sitting, rows)

    def mode(self, words: str) -> None:
        if words:
            self._wishes.mode = Mode(_one_of(words, tuple(map(str, Mode)), "/mode"))
            self._wishes.planning = False
        self._say(f"mode: {self._wishes.mode_word}")

    def plan(self, words: str) -> None:
        if words.lower() in ("", "on", "off"):
            self._wishes.planning = words.lower() != "off"
            how = "planning: nothing can be changed until /plan off" if self._wishes.planning else "planning is over"
            self._say(f"{how}; mode: {self._wishes.mode_word}")
            return
        self._wishes.planning = True
        self._say("planning: nothing can be changed until /plan off")
        self._sitting.take(words)

    def approval(self, words: str) -> None:
        if words:
            self._wishes.approval = Approval(_one_of(words, tuple(map(str, Approval)), "/approval"))
        self._say(f"approval: {self._wishes.approval}; {ASKS[self._wishes.approval]}")

    def reasoning(self, words: str) -> None:
        if words:
            self._wishes.reasoning = _one_of(words, ("on", "off"), "/reasoning")
        self._say(f"reasoning: {self._wishes.reasoning or 'as the settings say'}")

    def cost(self, words: str) -> None:
        sitting = self._sitting
        if not sitting.meter.by_model:
            self._say("no model was asked in this session: $0.00")
            return
        rows = [
            (model, str(one.requests), f"{one.input:,}", f"{one.cached:,}", f"{one.output:,}", money(one.cost))
            for model, one in sitting.meter.by_model.items()
        ]
        sitting.face.out.table(("model", "requests", "in", "cached", "out", "cost"), rows, flexible=0)
        self._say(f"this session: {money(sitting.meter.cost)}")

    def queue(self, words: str) -> None:
        session = self._sitting.session
        if words.lower() == "clear":
            self._say(f"taken back: {len(session.unqueue())}")
        elif words:
            self._sitting.follow(words)
        else:
            waiting = session.queued
            for number, order in enumerate(waiting, start=1):
                self._say(f"{number}. {one_line(order.text)}")
            if not waiting:
                self._say("nothing is queued")

    def quit(self, words: str) -> None:
        self._sitting.face.leave()

    def _say(self, text: str) -> None:
        self._sitting.face.out.say(f"  {text}")


def _name(command: SessionCommand) -> str:
    return command.usage


def _rows(sitting: TerminalSession, rows: list[tuple[str, str]]) -> None:
    """Two columns; the second is folded below itself, and below the first where there is no room beside it."""
    import textwrap

    out = sitting.face.out
    width = min(max((len(name) for name, _ in rows), default=0), 30)
    room = out.width - width - 5
    for name, text in rows:
        if room < 20:
            out.say(f"  {name}", "bold")
            for line in textwrap.wrap(one_line(text), max(10, out.width - 5)):
                out.say(f"    {line}")
            continue
        lines = textwrap.wrap(one_line(text), room) or [""]
        if len(name) > width:
            out.say(f"  {name}")
            name = ""
            out.say(f"  {'':<{width}}  {lines[0]}")
        else:
            out.say(f"  {name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            out.say(f"  {'':<{width}}  {line}")


def _one_of(word: str, allowed: tuple[str, ...], what: str) -> str:
    if word.lower() not in allowed:
        raise UsageError(f"{what} takes {' or '.join(allowed)}, not {word!r}", advice=f"such as {what} {allowed[0]}")
    return word.lower()
