"""The face of a session where nothing can be drawn in place: through pipes, in an editor's shell, in a dumb terminal.

Lines are read one after the other, and each is carried out before the next; a signal stops what works.
"""

from __future__ import annotations

import sys

from pawl.ui.screen.approving import edited
from pawl.ui.screen.screen import Screen
from pawl.ui.terminal.commands import command
from pawl.ui.terminal.session import TerminalSession

PROMPT = "> "


class Plain:
    """Fits `face.Face`. Everything happens in one thread."""

    def __init__(self, sitting: TerminalSession) -> None:
        self._sitting = sitting
        self._left = False
        self._asks = sys.stdin.isatty()

    @property
    def out(self) -> Screen:
        return self._sitting.opening.out

    @property
    def aside(self) -> Screen:
        return self._sitting.opening.aside

    def run(self) -> int:
        """Until the input ends or the user leaves."""
        sitting = self._sitting
        with sitting.here(self):
            while not self._left:
                line = self._read(PROMPT)
                if line is None:
                    break
                if line.strip():
                    with sitting.opening.stopping() as cancel:
                        sitting.session.cancel = cancel
                        sitting.entered(line.strip(), echo=not self._asks)
                        sitting.work()
                        sitting.session.cancel = None
        return 0

    def command(self, words: str) -> str:
        return command(words)

    def line(self, question: str) -> str | None:
        return self._read(question)

    def edited(self, text: str, suffix: str) -> str:
        return edited(text, suffix, self._sitting.opening.config.environment)

    def activity(self, text: str) -> None:
        """There is no place for it."""

    def preview(self, text: str) -> None:
        """Nor for this: what is said is shown when it is whole."""

    def clear(self) -> None:
        """What was printed stays."""

    def leave(self) -> None:
        self._left = True

    def _read(self, prompt: str) -> str | None:
        if self._asks:
            self.out.put(prompt)
        line = sys.stdin.readline()
        if not line:
            return None
        return line.rstrip("\n")
