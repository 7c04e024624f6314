"""JSON as small models write it. What is mended is mended in one way only; a value is never guessed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

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


_MOST_CHARACTERS = 400_000
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)

Parsed = tuple[object, str]
"""A value and an empty text, or None and what is wrong."""


def parsed(text: str) -> Parsed:
    """The value of a JSON text.

    Line breaks inside of strings, commas before a closing bracket and Python's way of writing the same value are read.
    A text that is cut off, has a name twice or anything after the value is not.
    """
    if len(text) > _MOST_CHARACTERS:
        return None, f"the JSON has more than {_MOST_CHARACTERS} characters"
    try:
        return scrubbed_value(_loads(text)), ""
    except json.JSONDecodeError as error:
        mistake = f"this is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        return None, f"this is not JSON that can be read: {error}"
    try:
        return scrubbed_value(_loads(_STRING_OR_COMMA.sub(_without_comma, text))), ""
    except (ValueError, RecursionError):
        pass
    value = _python(text)
    return (None, mistake) if value is None else (scrubbed_value(value), "")


def objects(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost JSON objects of a text begin and end; what stands around them is passed over."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    while at != -1:
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield at, end
        at = text.find("{", end)


def _loads(text: str) -> object:
    return json.loads(text, strict=False, object_pairs_hook=_once, parse_constant=_refused)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def _refused(name: str) -> object:
    raise ValueError(f"{name} is no value of JSON")


def _without_comma(match: re.Match[str]) -> str:
    return "" if match[0] == "," else match[0]


def _python(text: str) -> object | None:
    """A dict or list as Python writes it: other quotes, None, True and False, the same values."""
    try:
        value = ast.literal_eval(text.strip())
        # What JSON has no word for, or a name that is no text, is not the same value.
        said = json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict | list) and json.loads(said) == value else None
