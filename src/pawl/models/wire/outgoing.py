"""What all encoders share: a request as bytes, names and ids that every server takes, schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pawl.core.dialogue import Request
from pawl.models.endpoint import Endpoint, SchemaCarrier

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
NO_OUTPUT = "(empty)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request ready to be sent, as often as it takes. The headers hold the key and are not shown."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def outgoing(endpoint: Endpoint, url: str, key_header: Mapping[str, str], body: Mapping[str, object]) -> Outgoing:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "cache-control": "no-store",
        **(key_header if endpoint.key else {}),
        **endpoint.quirks.headers,
    }
    return Outgoing(url=url, headers=headers, body=json_text(body).encode("utf-8", "replace"))


def json_text(value: object) -> str:
    """JSON whose bytes depend on the value alone, so that the provider's prompt cache holds."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def arguments_of(arguments: Mapping[str, object] | None) -> Mapping[str, object]:
    """What goes back as a call's input; that of a broken call is empty, because providers check it."""
    return {} if arguments is None else dict(arguments)


def safe_name(name: str) -> str:
    """A tool's name in the letters that every server takes; models invent others."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unknown"


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


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
