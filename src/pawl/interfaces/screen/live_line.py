"""One line at the bottom that changes in place while something works, and is gone when it has ended."""

from __future__ import annotations

from pawl.core.display import ERASE_LINE
from pawl.interfaces.screen.screen import Screen, cells, one_line


class LiveLine:
    """Of a terminal that can do it; elsewhere it shows nothing."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = ""

    def show(self, text: str, *, tail: bool = False) -> None:
        """The line from now on; of a `tail` that is too long its end is shown, because what came last tells most."""
        if not self._screen.draws:
            return
        line = self._cut(one_line(text), tail=tail)
        if line != self._shown:
            self._screen.draw(f"{ERASE_LINE if self._shown else ''}{line}")
            self._shown = line

    def clear(self) -> None:
        """Makes room for what stays."""
        if self._shown:
            self._screen.draw(ERASE_LINE)
            self._shown = ""

    def _cut(self, line: str, *, tail: bool) -> str:
        width = self._screen.width - 1
        if cells(line) <= width:
            return line
        while cells(line) > width - 1:
            line = line[1:] if tail else line[:-1]
        return f"…{line}" if tail else f"{line}…"
