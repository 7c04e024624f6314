"""Writes the events of a session into the stream, without secrets; words that come in pieces are joined."""

from __future__ import annotations

import threading
import time
from dataclasses import field, replace
from pathlib import Path

from pawl.agent.inbox import Event
from pawl.core.diagnostic import CheckResult
from pawl.core.dialogue import TextDelta, ThoughtDelta
from pawl.core.errors import StoreError
from pawl.core.events import RunBegun, RunEnded
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted, redacted_body
from pawl.core.typed import plain
from pawl.store.run_stream import RunStream

PIECE_SECONDS = 0.1
"""Pieces of one text that come within this time are one event."""
MOST_TESTS = 1000
"""Tests of a check that are named one by one."""
LONGEST_WORD = 400
"""The last word of a piece waits for its end, so that half a secret is never written; one this long does not."""


@dataclass(slots=True)
class StreamWriter:
    """Belongs to the thread of the session; events of other threads wait for its next one."""

    state: Path
    workspace: str
    run: str = ""
    _stream: RunStream | None = None
    _broken: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _kind: str = ""
    """Of the pieces."""
    _since: float = 0.0
    _thread: int = field(default_factory=threading.get_ident)

    def hear(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, TextDelta | ThoughtDelta):
                self._piece(type(event).__name__, event.text)
            else:
                self._flush_pieces(whole=True)
                self._waiting.append((type(event).__name__, _body(event)))
            if not self._waiting or self._broken or threading.get_ident() != self._thread:
                return
            events, self._waiting = self._waiting, []
        if isinstance(event, RunBegun):
            self.run = event.run
        self._write(events)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _piece(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self._flush_pieces(whole=True)
            self._kind = kind
        if not self._pieces:
            self._since = time.monotonic()
        self._pieces.append(text)
        if time.monotonic() - self._since >= PIECE_SECONDS:
            self._flush_pieces(whole=False)

    def _flush_pieces(self, *, whole: bool) -> None:
        text, rest = "".join(self._pieces), ""
        if not whole:
            cut = max(text.rfind(mark) for mark in " \n\t") + 1
            if len(text) - cut <= LONGEST_WORD:
                text, rest = text[:cut], text[cut:]
        self._pieces = [rest] if rest else []
        self._since = time.monotonic()
        if text:
            self._waiting.append((self._kind, {"text": redacted(text)}))

    def _write(self, events: list[tuple[str, dict[str, object]]]) -> None:
        try:
            if self._stream is None:
                self._stream = RunStream.open(self.state)
                self._stream.prune()
            self._stream.append(self.workspace, self.run, events)
        except StoreError:
            # The run goes on without whoever looks on.
            self._broken = True
            self.close()


def _body(event: Event) -> dict[str, object]:
    match event:
        case RunEnded():
            # The report is composed from the record by whoever reads.
            return {}
        case CheckResult(ran=ran) if len(ran) > MOST_TESTS:
            event = replace(event, ran=ran[:MOST_TESTS])
    return redacted_body(plain(event))
