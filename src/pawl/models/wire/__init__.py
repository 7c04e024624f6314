"""The formats that servers of models speak, each a pair of an encoder of requests and a decoder of answers.

Shared by all encoders: a request as bytes, names and ids that every server takes, turns in order, schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from pawl.core.dialogue import Message, Request, Speaker, ToolAnswer, ToolCall, tool_answers, user
from pawl.core.lazy_dataclass import dataclass
from pawl.models.providers import Endpoint, SchemaCarrier

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_LONGEST_ID = 40
NO_OUTPUT = "(empty)"
NOT_EXECUTED = "The call was not executed."
CONTINUE = "Continue."


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request ready to be sent, as often as it takes. The headers hold the key and are not shown."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def outgoing(endpoint: Endpoint, path: str, body: Mapping[str, object]) -> Outgoing:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "cache-control": "no-store",
        **own_headers(endpoint),
    }
    return Outgoing(url=address(endpoint, path), headers=headers, body=json_text(body).encode("utf-8", "replace"))


def address(endpoint: Endpoint, path: str) -> str:
    """Where a path of the format is; base URLs are written with and without the format's version."""
    base, version = endpoint.base_url.rstrip("/"), endpoint.format.version
    if version and not base.rpartition("/")[2].startswith("v1"):
        base = f"{base}/{version}"
    return f"{base}/{path}"


def own_headers(endpoint: Endpoint) -> dict[str, str]:
    """The key where the format wants it, and what the user's configuration adds."""
    form = endpoint.format
    key = {form.key_header: f"{form.key_prefix}{endpoint.key}"} if endpoint.key else {}
    return {**form.headers, **key, **endpoint.quirks.headers}


def sampling_fields(
    request: Request, endpoint: Endpoint, *, top_p: str = "top_p", stop: str = "stop", seed: str = "seed"
) -> dict[str, object]:
    """How the answer is drawn, under the names of the format, as far as the server takes it."""
    quirks, sampling = endpoint.quirks, request.sampling
    fields: dict[str, object] = {}
    if quirks.temperature:
        fields["temperature"] = sampling.temperature
    if quirks.top_p:
        fields[top_p] = sampling.top_p
    if quirks.stop and sampling.stop:
        fields[stop] = list(sampling.stop)
    if quirks.seed and sampling.seed is not None:
        fields[seed] = sampling.seed
    return fields


def json_text(value: object) -> str:
    """JSON whose bytes depend on the value alone, so that the provider's prompt cache holds."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def arguments_of(arguments: Mapping[str, object] | None) -> Mapping[str, object]:
    """The input of a call that goes back; that of a broken call is empty, because providers check it."""
    return {} if arguments is None else dict(arguments)


def safe_name(name: str) -> str:
    """A tool's name in the letters that every server takes; models invent others."""
    return _UNSAFE.sub("_", name)[:_LONGEST_NAME] or "unknown"


def system_parts(request: Request, endpoint: Endpoint) -> list[str]:
    """The system text, stable parts first; with the schema where the server has no place for it."""
    parts = [part for part in request.system if part.strip()]
    if request.answer_schema is not None and endpoint.schema in (SchemaCarrier.JSON_OBJECT, SchemaCarrier.NONE):
        schema = json_text(request.answer_schema)
        parts.append(f"Answer with one JSON value that fits this JSON schema, and nothing else:\n{schema}")
    return parts


def is_strict(schema: object) -> bool:
    """Whether a schema fits the strict mode: every object is closed and all of its fields are required."""
    if isinstance(schema, list):
        return all(is_strict(inner) for inner in schema)
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, Mapping):
        names = list(properties) if isinstance(properties, Mapping) else []
        required = schema.get("required")
        if schema.get("additionalProperties") is not False or not isinstance(required, list | tuple):
            return not names and schema.get("additionalProperties") is False
        if set(required) != set(names):
            return False
    return all(is_strict(inner) for inner in schema.values())


def without_closing(schema: Mapping[str, object]) -> dict[str, object]:
    """The schema of a tool without the words that objects are closed: decoding a call refuses unknown names."""
    return {
        key: without_closing(inner) if isinstance(inner, Mapping) else inner
        for key, inner in schema.items()
        if key != "additionalProperties" or inner is not False
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same conversation with what providers refuse put right; turns that are right are kept as they are.

    Calls without an answer get one that says so, answers without a call and second answers go, ids are made
    different and of letters that every server takes, empty turns go, and a user speaks first.
    """
    turns: list[Message] = []
    ids: set[str] = set()
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.speaker is not Speaker.ASSISTANT:
            # The answers of tools are taken together with their calls; here they belong to none.
            if message.speaker is Speaker.USER and message.text.strip():
                turns.append(user(message.text, message.files))
            continue
        following = position
        while following < len(messages) and messages[following].speaker is Speaker.TOOL:
            following += 1
        turns.extend(_exchange(message, messages[position:following], ids))
        position = following
    if not turns or turns[0].speaker is not Speaker.USER:
        turns.insert(0, user(CONTINUE))
    return tuple(turns)


def without_thoughts(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation without the provider's own reasoning, for when it does not accept its signatures."""
    return tuple(replace(message, thoughts=()) if message.thoughts else message for message in messages)


def _exchange(message: Message, tools: Sequence[Message], ids: set[str]) -> list[Message]:
    """An assistant's turn and the answers to its calls."""
    if not message.calls:
        return [replace(message, answers=())] if message.text.strip() else []
    given = [answer for turn in tools for answer in turn.answers]
    calls: list[ToolCall] = []
    answers: list[ToolAnswer] = []
    for call in message.calls:
        answer = next((one for one in given if one.call == call.id), None)
        if answer is None:
            answer = ToolAnswer(call=call.id, name=call.name, text=NOT_EXECUTED, failed=True)
        else:
            given.remove(answer)
        own = _unused(call.id, ids)
        ids.add(own)
        calls.append(replace(call, id=own))
        answers.append(replace(answer, call=own))
    return [replace(message, calls=tuple(calls), answers=()), tool_answers(*answers)]


def _unused(wanted: str, ids: set[str]) -> str:
    base = own = _UNSAFE.sub("_", wanted)[-_LONGEST_ID:] or "call"
    number = 2
    while own in ids:
        own = f"{base}_{number}"
        number += 1
    return own
