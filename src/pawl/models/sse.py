"""Server-sent events out of bytes as they come, cut anywhere, by the rules of the WHATWG standard."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    name: str
    data: str


class EventTooLarge(ValueError):
    """One event goes over the limit."""


class EventDecoder:
    """Feed it bytes, take whole events. Comments and fields that nobody asked for are passed over."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: list[str] = []
        self._rest_size = 0
        self._started = False
        self._after_return = False
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes, *, final: bool = False) -> Iterator[ServerEvent]:
        """The events that end in this chunk. What is not ended by a blank line is no event."""
        text = self._text.decode(chunk, final)
        if text and not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._after_return and text:
            # The line ended with the carriage return of the chunk before.
            self._after_return = False
            text = text.removeprefix("\n")
        if text.endswith("\r"):
            self._after_return = True
        for line in self._lines(text):
            if event := self._line(line):
                yield event

    def _lines(self, text: str) -> Iterator[str]:
        start = 0
        for end in _LINE_END.finditer(text):
            if self._rest:
                self._rest.append(text[start : end.start()])
                yield "".join(self._rest)
                self._rest.clear()
                self._rest_size = 0
            else:
                yield text[start : end.start()]
            start = end.end()
        if start < len(text):
            self._rest.append(text[start:])
            self._rest_size += len(text) - start
            self._check(self._rest_size)

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._ended()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._size += len(value)
            self._check(self._size)
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

    def _ended(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = "", [], 0
        return ServerEvent(name, "\n".join(data)) if data else None

    def _check(self, size: int) -> None:
        if size > self._most:
            raise EventTooLarge
