"""Text from outside made fit to store and show: half characters become the replacement character."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def scrubbed(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrubbed_value(value: object) -> object:
    """The same for every text in a JSON value."""
    match value:
        case str():
            return scrubbed(value)
        case list():
            return [scrubbed_value(inner) for inner in value]
        case dict():
            return {scrubbed(str(key)): scrubbed_value(inner) for key, inner in value.items()}
    return value


class Scrubber:
    """Scrubs a text that comes in pieces: a pair that two pieces share is one character."""

    def __init__(self) -> None:
        self._half = ""

    def piece(self, text: str) -> str:
        if not self._half and text.isascii():
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return scrubbed(text)

    def rest(self) -> str:
        """What is left when nothing follows."""
        half, self._half = self._half, ""
        return scrubbed(half)
