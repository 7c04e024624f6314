"""What is written to the terminal of a session: whole frames in one piece, and lines above the input."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from prompt_toolkit.data_structures import Size
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


class LineStream:
    """A stream for screens whose whole lines appear above the input, from whatever thread they come."""

    def __init__(self, show: Callable[[str], None], like: TextIO) -> None:
        self._show = show
        self._like = like
        self._line = ""
        self.encoding = like.encoding

    def write(self, text: str) -> int:
        whole, found, rest = (self._line + text).rpartition("\n")
        self._line = rest
        if found:
            self._show(f"{whole}\n")
        return len(text)

    def flush(self) -> None:
        """Whole lines are shown at once; what is left waits for its end."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._like.fileno()
