"""A result by a schema of the user's: how it is asked for, and whether what came fits; the usual words of a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pawl.policy.embedded import json_object

MOST_TRIES = 3
_DEEPEST = 40
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
}


def asked(schema: Mapping[str, object], request: str, answer: str) -> str:
    return (
        f"The request was:\n{request}\n\nWhat came of it:\n{answer}\n\n"
        f"Give this result as one JSON value that fits the schema, and nothing else:\n{json.dumps(schema)}"
    )


def again(schema: Mapping[str, object], said: str, mistakes: tuple[str, ...]) -> str:
    listed = "\n".join(f"- {mistake}" for mistake in mistakes)
    return f"You said:\n{said}\n\nIt does not fit:\n{listed}\n\nGive one JSON value that fits:\n{json.dumps(schema)}"


def fitted(text: str, schema: Mapping[str, object]) -> tuple[object, tuple[str, ...]]:
    """The value in the text, and every way in which it does not fit."""
    body = json_object(text) if schema.get("type", "object") == "object" else text.strip()
    try:
        value = json.loads(body)
    except ValueError as error:
        return None, (f"it is not JSON: {error}",)
    return value, tuple(_mistakes(value, schema, "result", 0))


def _mistakes(value: object, schema: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"{place}: it is nested too deep"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: must be one of {schema['enum']}, not {value!r}"
    if "const" in schema and value != schema["const"]:
        yield f"{place}: must be {schema['const']!r}, not {value!r}"
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{place}: must be of type {kinds}, not {type(value).__name__}"
        return
    match value:
        case dict():
            yield from _of_object(value, schema, place, depth)
        case list():
            yield from _of_array(value, schema, place, depth)
        case str():
            yield from _of_text(value, schema, place)
        case int() | float():
            yield from _bounds(value, schema, ("minimum", "maximum"), place)


def _of_array(value: list[object], schema: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    yield from _bounds(len(value), schema, ("minItems", "maxItems"), f"{place}: the number of items")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for number, item in enumerate(value):
            yield from _mistakes(item, items, f"{place}[{number}]", depth + 1)


def _of_text(value: str, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    yield from _bounds(len(value), schema, ("minLength", "maxLength"), f"{place}: its length")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{place}: must match {schema['pattern']!r}"


def _of_object(value: Mapping[str, object], schema: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    fields = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}.{name}: missing"
    for name, inner in value.items():
        if name in fields:
            yield from _mistakes(inner, fields[name], f"{place}.{name}", depth + 1)
        elif schema.get("additionalProperties") is False:
            yield f"{place}.{name}: no such field"


def _bounds(number: float, schema: Mapping[str, Any], names: tuple[str, str], what: str) -> Iterator[str]:
    least, most = (schema.get(name) for name in names)
    if least is not None and number < least:
        yield f"{what} must be at least {least}, not {number}"
    if most is not None and number > most:
        yield f"{what} must be at most {most}, not {number}"


def _is(value: object, kind: str) -> bool:
    if kind in ("number", "integer"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (isinstance(value, float) and (kind == "number" or value.is_integer()))
    return isinstance(value, _TYPES.get(kind, (object,)))
