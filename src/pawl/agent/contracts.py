"""Answers in JSON: the schema to ask for, the object in what a model wrote, and every mistake in it at once.

A schema holds only what every provider and every grammar of a local model understands; bounds and agreements between
fields are checked here. The types import pydantic, which is paid for only where an answer in JSON is asked for.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from pawl.agent.corrections import FIELD
from pawl.agent.reasoning import json_object
from pawl.core.errors import SchemaUnmet, UsageError
from pawl.core.typed import Unreadable, read_json, shown

if TYPE_CHECKING:
    from pydantic import ValidationError

    from pawl.agent.contract_models import Contract


_KEPT = ("type", "properties", "required", "additionalProperties", "items", "enum", "description")
_SHOWN_MISTAKES = 30


@functools.cache
def contract(name: str, *, reasoning: bool = False) -> type[Contract]:
    """The type of the contract of that name; with reasoning, it has a field for it."""
    from pydantic import create_model

    from pawl.agent.contract_models import CONTRACTS, Reasons

    if name not in CONTRACTS:
        raise UsageError(f"there is no contract {name!r}", advice=f"the contracts are {', '.join(CONTRACTS)}")
    plain = CONTRACTS[name]
    if not reasoning:
        return plain
    return create_model(f"Reasoned{plain.__name__}", __base__=plain, reasoning=(Reasons, ...))


@functools.cache
def json_schema(name: str, *, reasoning: bool = False) -> Mapping[str, object]:
    """The schema to send: every field is required, no other is allowed, nothing is a reference."""
    full = contract(name, reasoning=reasoning).model_json_schema()
    return _inlined({key: value for key, value in full.items() if key != "description"}, full.get("$defs", {}))


def validated(name: str, text: str, *, reasoning: bool = False) -> Contract:
    """The value of the answer; `SchemaUnmet` lists every mistake, one to a line with its place."""
    from pydantic import ValidationError

    kind = contract(name, reasoning=reasoning)
    try:
        return kind.model_validate_json(json_object(text))
    except ValidationError as error:
        mistakes = tuple(_mistakes(error))
    shown = [f"- {mistake}" for mistake in mistakes[:_SHOWN_MISTAKES]]
    if len(mistakes) > len(shown):
        shown.append(f"- and {len(mistakes) - len(shown)} more")
    raise SchemaUnmet(
        f"the answer does not fit the contract {name!r}:\n" + "\n".join(shown),
        mistakes,
        advice="answer with one JSON object that has every field of the schema and no other",
    )


def _mistakes(error: ValidationError) -> Iterator[str]:
    from pawl.agent.contract_models import Disagreements

    for one in error.errors(include_url=False):
        place = _place(one["loc"])
        cause = one.get("ctx", {}).get("error")
        match one["type"]:
            case "value_error" if isinstance(cause, Disagreements):
                yield from (f"{place}: {wrong}" if place else wrong for wrong in cause.wrong)
            case "value_error":
                yield f"{place}: {cause}, not {shown(one['input'])}"
            case "missing":
                yield f"{place}: missing"
            case "extra_forbidden":
                yield f"{place}: no such field"
            case "json_invalid":
                yield f"it is not JSON: {cause}"
            case _:
                yield f"{place or 'answer'}: {one['msg'][:1].lower()}{one['msg'][1:]}, not {shown(one['input'])}"


def _place(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, object]:
    reference = schema.get("$ref")
    if reference is not None:
        named = definitions[reference.rpartition("/")[2]]
        schema = {key: value for key, value in named.items() if key != "description"} | dict(schema)
    kept: dict[str, object] = {key: schema[key] for key in _KEPT if key in schema}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "items" in kept:
        kept["items"] = _inlined(cast("Mapping[str, Any]", kept["items"]), definitions)
    if "properties" in kept:
        fields = cast("Mapping[str, Mapping[str, Any]]", kept["properties"])
        order = sorted(fields, key=lambda name: name != FIELD)
        kept["properties"] = {name: _inlined(fields[name], definitions) for name in order}
        kept["required"] = order
        kept["additionalProperties"] = False
    return kept


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
        value = read_json(body)
    except Unreadable as error:
        return None, (f"it is not JSON: {error}",)
    return value, tuple(schema_mistakes(value, schema, "result"))


def schema_mistakes(value: object, schema: Mapping[str, Any], place: str, depth: int = 0) -> Iterator[str]:
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
            yield from schema_mistakes(item, items, f"{place}[{number}]", depth + 1)


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
            yield from schema_mistakes(inner, fields[name], f"{place}.{name}", depth + 1)
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
