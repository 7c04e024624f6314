"""Messages as JSON values, so that a dialogue can be stored and taken up again. What is empty is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pawl.core.dialogue import Message, Speaker, Thought, ToolAnswer, ToolCall

_Value = TypeVar("_Value")


def to_json(message: Message) -> dict[str, Any]:
    """The message as values that `json.dumps` takes."""
    return _without_empty(
        {
            "speaker": message.speaker.value,
            "text": message.text,
            "thoughts": [
                _without_empty({"text": thought.text, "signature": thought.signature}) for thought in message.thoughts
            ],
            "calls": [_call_to_json(call) for call in message.calls],
            "answers": [
                _without_empty({"call": answer.call, "name": answer.name, "text": answer.text, "failed": answer.failed})
                for answer in message.answers
            ],
        }
    )


def from_json(value: object) -> Message:
    """The message of such values; `ValueError` names what is not as it must be. Unknown names are passed over."""
    body = _mapping(value, "a message")
    speaker = _text(body, "speaker")
    if speaker not in tuple(Speaker):
        raise ValueError(f"the speaker {speaker!r} is not known")
    return Message(
        speaker=Speaker(speaker),
        text=_text(body, "text"),
        thoughts=tuple(
            Thought(text=_text(one, "text"), signature=_text(one, "signature")) for one in _list(body, "thoughts")
        ),
        calls=tuple(_call_from_json(one) for one in _list(body, "calls")),
        answers=tuple(
            ToolAnswer(
                call=_text(one, "call"),
                name=_text(one, "name"),
                text=_text(one, "text"),
                failed=one.get("failed") is True,
            )
            for one in _list(body, "answers")
        ),
    )


def _call_to_json(call: ToolCall) -> dict[str, Any]:
    return {
        "arguments": None if call.arguments is None else _plain(call.arguments),
        **_without_empty(
            {
                "id": call.id,
                "name": call.name,
                "raw": call.raw,
                "mistake": call.mistake,
                "provider_id": call.provider_id,
                "signature": call.signature,
            }
        ),
    }


def _call_from_json(body: Mapping[str, object]) -> ToolCall:
    arguments = body.get("arguments")
    return ToolCall(
        id=_text(body, "id"),
        name=_text(body, "name"),
        arguments=None if arguments is None else dict(_mapping(arguments, "the arguments of a call")),
        raw=_text(body, "raw"),
        mistake=_text(body, "mistake"),
        provider_id=_text(body, "provider_id"),
        signature=_text(body, "signature"),
    )


def _plain(value: object) -> object:
    """Mappings as dictionaries, sequences as lists."""
    match value:
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return value


def _without_empty(body: Mapping[str, _Value]) -> dict[str, _Value]:
    return {name: value for name, value in body.items() if value}


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is an object, not {type(value).__name__}")
    return value


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is a text, not {type(value).__name__}")
    return value


def _list(body: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = body.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"{name!r} is a list, not {type(value).__name__}")
    return [_mapping(one, f"each of {name!r}") for one in value]
