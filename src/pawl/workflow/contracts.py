"""Answers in JSON: the schema to ask for, the object in what a model wrote, and every mistake in it at once.

A schema holds only what every provider and every grammar of a local model understands; bounds and agreements between
fields are checked here. The types import pydantic, which is paid for only where an answer in JSON is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from pawl.core.errors import SchemaUnmet, UsageError
from pawl.policy.corrections import FIELD
from pawl.policy.embedded import json_object

if TYPE_CHECKING:
    from pydantic import ValidationError

    from pawl.workflow.contract_models import Contract

_KEPT = ("type", "properties", "required", "additionalProperties", "items", "enum", "description")
_SHOWN_MISTAKES = 30


@functools.cache
def contract(name: str, *, reasoning: bool = False) -> type[Contract]:
    """The type of the contract of that name; with reasoning, it has a field for it."""
    from pydantic import create_model

    from pawl.workflow.contract_models import CONTRACTS, Reasons

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
    from pawl.workflow.contract_models import Disagreements

    for one in error.errors(include_url=False):
        place = _place(one["loc"])
        cause = one.get("ctx", {}).get("error")
        match one["type"]:
            case "value_error" if isinstance(cause, Disagreements):
                yield from (f"{place}: {wrong}" if place else wrong for wrong in cause.wrong)
            case "value_error":
                yield f"{place}: {cause}, not {_shown(one['input'])}"
            case "missing":
                yield f"{place}: missing"
            case "extra_forbidden":
                yield f"{place}: no such field"
            case "json_invalid":
                yield f"it is not JSON: {cause}"
            case _:
                yield f"{place or 'answer'}: {one['msg'][:1].lower()}{one['msg'][1:]}, not {_shown(one['input'])}"


def _place(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


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
