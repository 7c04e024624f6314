"""A terminal with Pawl in it, as a person sees it: what is on the screen, and what has scrolled out of it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pyte
from nursery import PATIENCE, started


class Emulator:
    def __init__(self, words: Sequence[str], cwd: Path, *, columns: int = 80, rows: int = 30) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.01)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.process = started(words, cwd, (slave, slave, slave), leads=True)
        os.close(slave)

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    @property
    def lines(self) -> list[str]:
        """Every line, from the first that scrolled out to the last of the screen."""
        above = ["".join(row[at].data for at in range(self.screen.columns)) for row in self.screen.history.top]
        return [line.rstrip() for line in (*above, *self.screen.display)]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    @property
    def bottom(self) -> list[str]:
        """The lines of the screen that hold something."""
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def expect(self, text: str, times: int = 1) -> None:
        """Waits until the text is to be seen so many times."""
        deadline = time.monotonic() + PATIENCE
        while self.text.count(text) < times:
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.text}"
            assert self.more(deadline), f"{text!r} did not come:\n{self.text}"

    def expect_status(self, text: str) -> None:
        """Waits until the last line says it."""
        deadline = time.monotonic() + PATIENCE
        while not self.bottom or text not in self.bottom[-1]:
            assert time.monotonic() < deadline and self.more(deadline), f"{text!r} did not come:\n{self.text}"

    def expect_idle(self) -> None:
        """Waits until the input stands, and the last line offers no key that stops or answers something."""
        deadline = time.monotonic() + PATIENCE
        while not self.screen.display[self.screen.cursor.y].startswith("›") or "Esc " in self.bottom[-1]:
            assert time.monotonic() < deadline and self.more(deadline), f"something still works:\n{self.text}"

    def enter(self, line: str) -> None:
        """Types a line when nothing works, and waits until it has been taken: what is idle afterwards has ended."""
        self.expect_idle()
        taken = f"\n› {line[:20]}"
        times = self._above.count(taken) + 1
        self.type(f"{line}\r")
        deadline = time.monotonic() + PATIENCE
        while self._above.count(taken) < times:
            assert time.monotonic() < deadline and self.more(deadline), f"{line!r} is not taken:\n{self.text}"

    def leave(self) -> None:
        """Leaves when nothing works."""
        self.expect_idle()
        self.type("\x04")
        assert self.finish() == 0

    @property
    def _above(self) -> str:
        """What is above the input."""
        return "\n".join(self.lines[: len(self.screen.history.top) + self.screen.cursor.y])

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int = 30) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def finish(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.more(deadline):
            assert time.monotonic() < deadline, self.text
        return self.process.wait(PATIENCE)

    def more(self, deadline: float) -> bool:
        """Whether something more was drawn before the deadline; a frame is seen when it is whole."""
        data = self._read(deadline)
        while data and self.screen.cursor.hidden:  # a terminal may hand a frame on in pieces
            data = self._read(deadline)
        return bool(data)

    def _read(self, deadline: float) -> bytes:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b""
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a terminal says that nobody has it open any more
            return b""
        self.raw += data
        self._stream.feed(data)
        return data
