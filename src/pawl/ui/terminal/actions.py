"""The commands of a session that only a terminal carries out; the others are in work_actions.py."""

from __future__ import annotations

import sys

from pawl.core.errors import UsageError
from pawl.core.run import RunState
from pawl.ui.screen.renderer import shown_call
from pawl.ui.terminal.terminal_session import NO_MODEL_ADVICE, TerminalSession
from pawl.ui.terminal.work_actions import WorkActions


class Actions(WorkActions):
    """Those that need nothing but the session run in the thread of the input."""

    _sitting: TerminalSession

    def __init__(self, sitting: TerminalSession) -> None:
        super().__init__(sitting)
        self._shown_call: tuple[object, int] = (None, 0)
        """The newest call when one was shown whole last, and how far back that one was."""

    def quit(self, words: str) -> None:
        self._sitting.face.leave()

    def model(self, words: str) -> None:
        """Chosen for this session, once it has answered; without a name, from what is configured and found."""
        from pawl.ui.cli.setup import accept

        sitting = self._sitting
        if not words and sys.stdin.isatty():
            self._say(f"now: {sitting.shared.model or 'no model'}")
            words, _ = self._chosen()
        elif not words:
            sitting.run_line("models", "--offline")
        if words and not sitting.session.offered(words)[0]:
            raise UsageError(f"there is no model {words!r}", advice="/model lists what is configured and found")
        if words and accept(sitting.session.shop, sitting.face, words, save=False):
            self._wishes.model = words
            sitting.look_around()
        self._say(f"the next request goes to {sitting.shared.model or 'no model'}")

    def setup(self, words: str) -> None:
        from pawl.ui.cli.setup import accept

        sitting = self._sitting
        chosen, any_found = self._chosen()
        if chosen and accept(sitting.session.shop, sitting.face, chosen):
            sitting.see_settings()
        if sitting.shared.model and sitting.shared.model != chosen:
            self._say(f"the next request goes to {sitting.shared.model}")
        elif any_found and not sitting.shared.model:
            self._out.hint(f"  {NO_MODEL_ADVICE}")

    def _chosen(self) -> tuple[str, bool]:
        """The user's choice among what is found here, and whether anything was."""
        from pawl.ui.cli.setup import choose, found_here

        shop, face = self._sitting.session.shop, self._sitting.face
        face.activity("looking for models")
        found = found_here(shop)
        face.activity("")
        return choose(shop, face, found), bool(found)

    def new(self, words: str) -> None:
        self._wishes.conversation = ""
        self._sitting.meter.context_tokens = 0
        self._say("a new conversation begins; the last one is kept: /resume")

    def clear(self, words: str) -> None:
        self._sitting.face.clear()
        self.new(words)

    def approve(self, words: str) -> None:
        report = self._sitting.session.waiting(words or None)
        if report.state is not RunState.WAITING:
            raise UsageError(f"the run {report.run} does not wait for an answer", advice=f"it is {report.state}")
        self._sitting.carry(lambda: report)

    def output(self, words: str) -> None:
        """A call of the latest ones, whole; asked again without a new call, the one before it."""
        calls = list(self._sitting.renderer.calls)
        if not calls:
            self._say("no tool was called yet")
            return
        newest, back = self._shown_call
        back = int(words) if words.isdecimal() else back + 1 if newest is calls[-1] else 0
        if back >= len(calls):
            self._say(f"there is no earlier call; the latest {len(calls)} are kept")
            back = -1
        self._shown_call = (calls[-1], back)
        if back >= 0:
            for line in shown_call(calls[-1 - back]):
                self._out.say(line)
