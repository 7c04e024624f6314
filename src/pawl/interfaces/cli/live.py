"""The output of a command while it runs: exact bytes into a pipe, harmless text in a terminal."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TextIO

from pawl.core.display import SafeStream
from pawl.core.execution import Stream
from pawl.interfaces.cli.signals import Interruptions


class Live:
    def __init__(self, interruptions: Interruptions) -> None:
        self._interruptions = interruptions
        self._streams: dict[Stream, TextIO] = {Stream.STDOUT: sys.stdout, Stream.STDERR: sys.stderr}
        self._safe = {stream: SafeStream() for stream, place in self._streams.items() if place.isatty()}
        self._broken = False
        self._line_open = False
        self._anything = False

    def show(self, stream: Stream, data: bytes) -> None:
        if self._broken:
            return
        safe = self._safe.get(stream)
        try:
            self._write(stream, data if safe is None else safe.feed(data))
        except OSError as error:
            # As in a pipe of a shell, a command whose reader has gone is stopped; what it changed is kept.
            self._broken = True
            if not isinstance(error, BrokenPipeError):
                with suppress(OSError):
                    sys.stderr.write(f"pawl: the output cannot be written: {error.strerror}\n")
            self._interruptions.stop(signal.SIGPIPE)

    def close(self) -> None:
        """Ends a colour and a line that the command left open, and sets what Pawl says apart."""
        if self._broken:
            return
        with suppress(OSError):  # The terminal has gone; what the command changed is still to be kept.
            for stream, safe in self._safe.items():
                self._write(stream, safe.close())
            if self._anything and _same_place(sys.stdout, sys.stderr):
                sys.stderr.write("\n\n" if self._line_open else "\n")

    def _write(self, stream: Stream, data: bytes | str) -> None:
        place = self._streams[stream]
        if isinstance(data, str):
            place.write(data)
            end: object = data[-1:]
        else:
            place.buffer.write(data)
            end = data[-1:]
        place.flush()
        if data:
            self._anything = True
            self._line_open = end not in ("\n", b"\n")


def _same_place(one: TextIO, other: TextIO) -> bool:
    first, second = os.fstat(one.fileno()), os.fstat(other.fileno())
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
