"""The last lines of the terminal, drawn again and again: the output that draws them, and how they are erased."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output


class FrameOutput(Vt100_Output):
    """Holds what is drawn until the frame is whole, so that nobody sees half of one.

    It never asks the terminal where its cursor is: an answer that comes late would be taken for typing.
    """

    def __init__(self, stream: TextIO, *, color: bool) -> None:
        depth = ColorDepth.DEPTH_4_BIT if color else ColorDepth.DEPTH_1_BIT
        super().__init__(stream, lambda: window(stream), default_color_depth=depth, enable_cpr=False, enable_bell=False)
        self._holding = 0

    @contextmanager
    def frame(self) -> Iterator[None]:
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
            self.flush()

    def erase_down(self) -> None:
        # tmux keeps what is erased from the first column of the first row in its history.
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def flush(self) -> None:
        if not self._holding:
            # A terminal that has gone shows nothing; what works is still put away, and a signal says the rest.
            with suppress(OSError):
                super().flush()


def window(stream: TextIO) -> Size:
    """How large the terminal is now; a terminal that does not know is taken for an ordinary one."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except OSError:
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)


def folds_lines(environment: Mapping[str, str]) -> bool:
    """Whether the terminal folds lines that no longer fit; xterm and a few others cut them off."""
    term = environment.get("TERM", "")
    cuts = term.startswith(("linux", "rxvt", "st-")) or (term.startswith("screen") and "TMUX" not in environment)
    return not cuts and "XTERM_VERSION" not in environment


class LiveRegion(Application[None]):
    """Erases its own lines after the window became narrower, too.

    Where lines are folded, the cursor is further below the first of them than it was when they were drawn.
    """

    def __init__(self, *, folds: bool, **options: Any) -> None:
        super().__init__(**options)
        self._folds = folds

    def _on_resize(self) -> None:
        renderer, columns = self.renderer, max(1, self.output.get_size().columns)
        screen, cursor = renderer._last_screen, renderer._cursor_pos
        if self._folds and screen is not None:
            rows = (screen.data_buffer[y] for y in range(cursor.y))
            widths = (max((x + 1 for x, one in row.items() if one.char.strip()), default=1) for row in rows)
            more = sum((width - 1) // columns for width in widths) + cursor.x // columns
            renderer._cursor_pos = Point(x=cursor.x % columns, y=cursor.y + more)
        super()._on_resize()
