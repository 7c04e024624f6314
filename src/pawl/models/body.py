"""The body of an answer as it comes: a stream of events or one JSON value, whichever was asked for, within limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from pawl.models.decoding import Corrupt, Draft
from pawl.models.sse import EventDecoder, EventTooLarge, ServerEvent

MOST_BODY = 32 * 1024 * 1024
MOST_EVENT = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class Decoder(Protocol):
    """What reads one wire format into a draft."""

    draft: Draft

    def event(self, event: ServerEvent) -> None:
        """One event of a stream."""
        ...

    def whole(self, payload: Mapping[str, object]) -> None:
        """An answer that came in one piece."""
        ...

    def close(self) -> None:
        """The body ended cleanly."""
        ...


class NoAnswer(Exception):
    """The body is none of a model's answer."""


class BodyReader:
    """Feeds a decoder. Goes by what the body starts with, because content types are often wrong."""

    def __init__(self, decoder: Decoder, *, content_type: str) -> None:
        self._decoder = decoder
        self._content_type = content_type.partition(";")[0].strip().lower()
        self._size = 0
        self._pieces: list[bytes] = []
        self._events: EventDecoder | None = None
        self._is_whole = False
        self._has_events = False

    def feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > MOST_BODY:
            raise NoAnswer(f"it is larger than {MOST_BODY // 1024**2} MiB")
        if self._events is not None:
            self._feed_events(chunk)
            return
        self._pieces.append(chunk)
        if not self._is_whole:
            self._look()

    def close(self) -> None:
        """The body ended cleanly."""
        if self._events is not None:
            self._feed_events(b"", final=True)
            if not self._has_events and self._content_type != "text/event-stream":
                raise NoAnswer(f"its type is {self._content_type or 'not given'}")
        elif self._is_whole:
            self._feed_whole()
        self._decoder.close()

    def _look(self) -> None:
        start = b"".join(self._pieces)
        if _BOM.startswith(start[:3]) and len(start) < len(_BOM):
            return
        first = start.removeprefix(_BOM).lstrip(b" \t\r\n")[:1]
        if not first:
            return
        if first == b"<":
            raise NoAnswer("it is a web page")
        if first in b"{[":
            self._is_whole = True
            return
        self._events = EventDecoder(most=MOST_EVENT)
        self._pieces.clear()
        self._feed_events(start)

    def _feed_events(self, chunk: bytes, *, final: bool = False) -> None:
        if self._events is None:
            return
        try:
            for event in self._events.feed(chunk, final=final):
                self._has_events = True
                if not self._decoder.draft.is_ended:
                    self._decoder.event(event)
        except EventTooLarge:
            raise NoAnswer(f"one event is larger than {MOST_EVENT // 1024**2} MiB") from None

    def _feed_whole(self) -> None:
        try:
            value = json.loads(b"".join(self._pieces).decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            raise Corrupt("it is not whole JSON") from None
        for payload in value if isinstance(value, list) else [value]:
            if not isinstance(payload, dict):
                raise NoAnswer("it is JSON of another kind")
            self._decoder.whole(payload)
