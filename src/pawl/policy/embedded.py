"""The JSON object in what a model wrote around it."""

from __future__ import annotations

import json
import re

from pawl.policy.splitting import split

_FENCED = re.compile(r"^ {0,3}```[a-zA-Z]*[ \t]*\n(?P<body>.*?)^ {0,3}```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_BRACES = 50


def json_object(text: str) -> str:
    """The JSON object of an answer: without a reasoning block, out of a fence or out of prose.

    Text that holds none comes back as it is, so that a parser says where it goes wrong.
    """
    visible = split(text).visible
    fenced = [body for match in _FENCED.finditer(visible) if (body := match["body"].strip()).startswith("{")]
    if fenced and not visible.startswith("{"):
        return fenced[-1]
    first, last = visible.find("{"), visible.rfind("}")
    if first < 0 or last < first:
        return visible
    whole = visible[first : last + 1]
    return whole if decoded(whole) is not None else _object_at_the_end(visible, first, last) or whole


def decoded(text: str) -> dict[str, object] | None:
    """The object that the text is; None when it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _object_at_the_end(text: str, first: int, last: int) -> str:
    """The first object that reaches to the last brace, where braces of the prose stand before it.

    One that ends before is part of a broken whole, and to read it alone would blame the wrong thing.
    """
    decoder = json.JSONDecoder()
    place = text.find("{", first + 1)
    for _ in range(_MOST_BRACES):
        if place < 0:
            break
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = -1
        if end == last + 1:
            return text[place:end]
        place = text.find("{", place + 1)
    return ""
