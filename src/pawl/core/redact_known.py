"""The forms in which a known secret may stand in a text: as it is, escaped, or encoded."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from pawl.core.redact_values import is_placeholder

_SHORTEST = 8
_SHORTEST_MIXED = 6
_SURELY_LONG = 16
_SHORTEST_ENCODED = 10


def forms_of(value: str) -> frozenset[str]:
    """Every form to look for; none when the value is too common a word to be hidden wherever it stands.

    Servers on one's own machine take any key, so that people write `ollama`, `none` or `not-needed`.
    """
    value = value.strip()
    if is_placeholder(value) or (len(value) < _SURELY_LONG and not _is_sure(value)):
        return frozenset()
    # Of several lines each may stand alone, as a file with a key in it is shown.
    lines = [line.strip() for line in value.splitlines() if not line.startswith("-----")] if "\n" in value else []
    parts = (value, *(line for line in lines if len(line) >= _SURELY_LONG))
    return frozenset(form for part in parts for form in _forms(part))


def _is_sure(value: str) -> bool:
    """Whether a short value stands in no ordinary text: eight characters that are no plain word, or six mixed ones."""
    if len(value) >= _SHORTEST:
        return not (value.replace("-", "").replace("_", "").isalpha() and value.islower())
    return len(value) >= _SHORTEST_MIXED and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from _escaped(value)
    yield from _encoded(value.encode("utf-8", "surrogatepass"))


def _escaped(value: str) -> Iterator[str]:
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]):
        yield text
        yield text.replace("/", "\\/")
    safe = value.encode("utf-8", "surrogatepass")
    for text in (quote(safe, safe=""), quote(safe), quote_plus(safe)):
        yield text
        yield _small_escapes(text)


def _small_escapes(text: str) -> str:
    """`%2F` as `%2f`."""
    head, *rest = text.split("%")
    return "%".join((head, *(part[:2].lower() + part[2:] for part in rest)))


def _encoded(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        # What stands before the value decides how its bits fall; only the characters that it alone decides are kept.
        text = base64.b64encode(b"\0" * before + data).decode("ascii").rstrip("=")
        inner = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(inner) >= _SHORTEST_ENCODED:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
