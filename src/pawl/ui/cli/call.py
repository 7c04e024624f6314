"""One use of the command line: its words, where it writes, and what may interrupt it."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from pawl.core.diagnostic import Verdict
from pawl.core.errors import PathRefused, Refused, UnknownEntry, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.settings import files as bounded
from pawl.ui.cli.encoder import as_json
from pawl.ui.screen.renderer import Meter
from pawl.ui.screen.screen import LiveLine, Screen, money

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

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a person is asked, a signal ends Pawl: nothing works that could be stopped."""
        held, self._cancel = self._cancel, None
        try:
            yield
        finally:
            self._cancel = held

    @property
    def heard(self) -> Interrupted | None:
        """The signal that stopped the command."""
        return None if self._heard is None else Interrupted(self._heard)


def leave() -> None:
    """From now on a signal ends the process at once: it is about to end."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


_LONGEST_NUMBER = 18
"""Digits that any store can hold."""


def number_of(text: str, thing: str, listing: str) -> int:
    """The number of an entry or a memory, as a person types it."""
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{text!r} is not {thing} number", advice=f"'{listing}' lists them")
    if len(text) > _LONGEST_NUMBER:
        raise UnknownEntry(f"there is no {thing.partition(' ')[2]} {text}", advice=f"'{listing}' lists them")
    return int(text)


def amount_of(option: str, text: str | None) -> Decimal | None:
    """US dollars, as a person types them."""
    if text is None:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise UsageError(f"{option} {text!r} is not an amount", advice="give US dollars, such as 0.50")
    return amount


def refuse_unverified(verdict: Verdict | None, why: Sequence[str]) -> None:
    """Refuse to promote what only a person may accept."""
    if verdict not in (Verdict.VERIFIED, Verdict.NOTHING_TO_PROVE):
        told = "; ".join((f"it is {verdict or 'not verified'}", *why))
        raise Refused(f"{told}; nothing was promoted", advice="look at it, and promote it without --verified")


def check_range(option: str, value: float, low: int, high: int, advice: str) -> None:
    if not low <= value <= high:
        raise UsageError(f"{option} {value:g} is not between {low} and {high}", advice=advice)


def given_bytes(name: str | None, most: int, what: str) -> bytes:
    """The bytes of a file, or of stdin without a name or for `-`."""
    try:
        data = sys.stdin.buffer.read(most + 1) if name in (None, "-") else bounded.read_bytes(name or "", most)
    except OSError as error:
        raise UsageError(f"{what} {name!r} cannot be read: {error.strerror}", advice="check the path") from error
    if len(data) > most:
        raise UsageError(f"{what} has more than {most >> 20} MB", advice="split it")
    return data


@dataclass(slots=True)
class Call:
    """Fits `screen.Face`."""

    options: argparse.Namespace
    out: Screen
    """Where the answer to the command goes."""
    aside: Screen
    """Where Pawl says everything else."""
    interruptions: Interruptions = field(default_factory=Interruptions)
    asks: bool = True
    """Whether the user may be asked on stdin."""
    environment: Mapping[str, str] = field(default_factory=dict)
    meter: Meter = field(default_factory=Meter)
    started: float = field(default_factory=time.monotonic)
    """When the user called, by the monotonic clock: his time counts from there."""
    _line: LiveLine = field(init=False)
    _doing: str = ""

    def __post_init__(self) -> None:
        self._line = LiveLine(self.out)

    @property
    def can_ask(self) -> bool:
        return self.asks and not self.options.json and sys.stdin.isatty() and self.aside.is_terminal

    @property
    def live(self) -> bool:
        return self.out.draws

    def activity(self, text: str) -> None:
        self._doing = text

    def preview(self, text: str) -> None:
        fill = self.meter.fill
        parts = (self._doing, money(self.meter.cost), "" if fill is None else f"context {fill}%")
        doing = " · ".join(part for part in parts if part) if self._doing else ""
        coming = text.rpartition("\n")[2]
        self._line.show(coming or doing, tail=bool(coming))

    def make_room(self) -> None:
        self._line.clear()

    def line(self, question: str, over: Callable[[], bool] | None = None) -> str | None:
        with self.interruptions.asking():
            return self.aside.ask_line(question)

    def secret(self, question: str) -> str | None:
        import getpass

        with self.interruptions.asking():
            return getpass.getpass(question)

    def edited(self, text: str, suffix: str) -> str:
        from pawl.ui.screen.approval import edited

        return edited(text, suffix, self.environment)

    def emit(self, body: object, code: int = 0) -> int:
        """Writes one JSON object to stdout; gives the exit code back."""
        self.out.put(f"{as_json(body)}\n")
        return code

    def answer(self, body: object, text: str, code: int = 0) -> int:
        """Says one thing: the object to a program, the text to a person; gives the exit code back."""
        if self.options.json:
            return self.emit(body, code)
        self.out.lines(text)
        return code

    def time_limit(self, usual: str, above: CancelToken | None = None) -> CancelToken | None:
        """Ends what waits for it when `--seconds` are over; the one above it without the option."""
        from pawl.sandbox.cancel import CancelToken

        seconds = self.options.seconds
        if seconds is None:
            return above
        check_range("--seconds", seconds, 1, 86_400, usual)
        return CancelToken(above=above, seconds=seconds, since=self.started)

    def refuse_others(self, takes: Mapping[str, str], shown: Mapping[str, str]) -> None:
        """Refuse what only other actions take: here it would count for nothing."""
        options, taken = self.options, takes.get(self.options.action, "").split()
        for action, name in ((action, name) for action, names in takes.items() for name in names.split()):
            if name not in taken and (given := getattr(options, name)) not in (None, False, [], "never"):
                what = repr(given[0]) if name == "words" else f"--{shown.get(name, name).replace('_', '-')}"
                command = f"'pawl {options.command}"
                raise UsageError(f"{command} {options.action}' takes no {what}", advice=f"{command} {action}' takes it")

    @property
    def test_command(self) -> tuple[str, ...]:
        """The words of `--test`; empty without it."""
        text = self.options.test
        if text is None:
            return ()
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"--test {text!r} cannot be read: {error}", advice="close the quotes") from error
        if not words:
            raise UsageError("--test names no command", advice="give one such as --test 'pytest tests/unit'")
        return words

    def entry_number(self) -> int | None:
        return None if self.options.id is None else number_of(self.options.id, "an entry", "pawl history")

    def inside(self, workspace: str, name: str) -> str:
        """A path as a person names it, seen from where they are, as the workspace calls it."""
        from pawl.sandbox.visibility import real_path

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
