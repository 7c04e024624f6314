"""Signals that end Pawl. What is under way is stopped and put away first; the exit code says which signal it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pawl.app.cancelling import CancelToken

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
        from pawl.app.cancelling import CancelToken

        self._cancel = CancelToken()
        try:
            yield self._cancel
        finally:
            self._cancel = None

    @property
    def heard(self) -> Interrupted | None:
        """The signal that stopped the command."""
        return None if self._heard is None else Interrupted(self._heard)
