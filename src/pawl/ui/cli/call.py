"""One use of the command line: its words, where it writes, and what may interrupt it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from pawl.core.errors import PathRefused, UnknownEntry, UsageError
from pawl.sandbox.environment import real_path
from pawl.ui.cli.shapes import as_json
from pawl.ui.screen.screen import Screen

if TYPE_CHECKING:
    from pawl.sandbox.cancel import CancelToken


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WORDS = {signal.SIGINT: "interrupted", signal.SIGPIPE: "nobody reads the output"}


class Interrupted(BaseException):
    """Raised wherever Pawl is when the signal comes, so that everything open is closed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    @property
    def word(self) -> str:
        return _WORDS.get(signal.Signals(self.number), "terminated")


class Interruptions:
    """Hears the signals. While a command runs, the first one asks for its end; every other one raises."""

    def __init__(self) -> None:
        self._cancel: CancelToken | None = None
        self._heard: int | None = None

    def listen(self) -> None:
        for number in ENDING:
            # What the caller has switched off stays off, as with nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrived)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        if self._cancel is None or self._cancel.requested:
            raise Interrupted(number)
        self.stop(number)

    def stop(self, number: int) -> None:
        """Asks the command for its end."""
        self._heard = self._heard or number
        if self._cancel is not None:
            self._cancel.request()

    @contextmanager
    def stopping(self) -> Iterator[CancelToken]:
        """While this lasts, a signal stops the command instead of Pawl."""
        from pawl.sandbox.cancel import CancelToken

        self._cancel = CancelToken()
        try:
            yield self._cancel
        finally:
            self._cancel = None

    @property
    def heard(self) -> Interrupted | None:
        """The signal that stopped the command."""
        return None if self._heard is None else Interrupted(self._heard)


_LONGEST_NUMBER = 18
"""Digits that any store can hold."""


@dataclass(slots=True)
class Call:
    options: argparse.Namespace
    out: Screen
    """What was asked for."""
    aside: Screen
    """What Pawl says beside it."""
    interruptions: Interruptions = field(default_factory=Interruptions)
    asks: bool = True
    """Whether the user may be asked on stdin."""

    @property
    def can_ask(self) -> bool:
        return self.asks and not self.options.json and sys.stdin.isatty() and self.aside.is_terminal

    def command(self, words: str) -> str:
        return f"pawl {words}"

    def emit(self, body: object) -> None:
        """One JSON object on stdout, which every reader of JSON takes."""
        self.out.put(f"{as_json(body)}\n")

    def entry_number(self) -> int | None:
        """The entry as a person names it."""
        text = self.options.id
        if text is None:
            return None
        if not text.isascii() or not text.isdigit():
            raise UsageError(f"{text!r} is not an entry number", advice="'pawl history' lists them")
        if len(text) > _LONGEST_NUMBER:
            raise UnknownEntry(f"there is no entry {text}", advice="'pawl history' lists them")
        return int(text)

    def inside(self, workspace: str, name: str) -> str:
        """A path as a person names it, seen from where they are, as the workspace calls it."""
        here = workspace if self.options.workspace is not None else os.getcwd()
        path = os.path.normpath(os.path.join(here, name))
        # The last name is not followed: a link is changed or taken back like any file.
        real = os.path.join(real_path(os.path.dirname(path)), os.path.basename(path))
        if not name or not real.startswith(f"{workspace}/"):
            raise PathRefused(
                f"{name!r} is not inside the workspace {workspace!r}", advice="name a file or folder in it"
            )
        return os.path.relpath(real, workspace)

    def files(self, workspace: str) -> tuple[str, ...]:
        return tuple(self.inside(workspace, name) for name in self.options.file)

    def directory(self, workspace: str) -> str:
        """Where in the workspace the user is; empty for its root."""
        here, root = Path.cwd(), Path(workspace)
        if self.options.workspace is not None or here == root or not here.is_relative_to(root):
            return ""
        return str(here.relative_to(root))
