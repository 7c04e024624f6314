"""Taking secrets out of what is said to a model and by it, before it is sent and before it is stored.

A message is looked at once: the messages of a long dialogue are the same values in every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from pawl.core import redact
from pawl.core.dialogue import Message, Request, Thought, ToolAnswer, ToolCall, ToolOffer
from pawl.core.redact import MARK, redacted
from pawl.core.redact_names import is_secret_argument

_Value = TypeVar("_Value")

_LARGEST = 4096
_DEEPEST = 64


class _Once:
    """What came of a value, remembered by identity: messages hold mappings and have no hash.

    The value is kept with its result, so that no other can get its identity meanwhile; the oldest go first.
    """

    def __init__(self) -> None:
        self._done: dict[tuple[int, str], tuple[object, object]] = {}
        self._known = (redact.PROCESS, 0)

    def of(self, value: _Value, purpose: str, make: Callable[[_Value], _Value]) -> _Value:
        known = (redact.PROCESS, redact.PROCESS.generation)
        if known != self._known:
            self._done.clear()
            self._known = known
        key = (id(value), purpose)
        found = self._done.get(key)
        if found is not None and found[0] is value:
            return found[1]  # type: ignore[return-value]
        result = make(value)
        if len(self._done) >= _LARGEST:
            for old in list(self._done)[: _LARGEST // 2]:
                self._done.pop(old, None)
        self._done[key] = (value, result)
        return result


_once = _Once()


def redacted_message(message: Message) -> Message:
    """The message as it may be stored and shown; the same value when there is nothing to hide."""
    return _once.of(message, "stored", _message)


def redacted_request(request: Request) -> Request:
    """The request as it may be sent; the same value when there is nothing to hide.

    What a provider signed goes back to it unchanged, or not at all when it holds a secret that is known.
    """
    system = tuple(_text(part) for part in request.system)
    messages = tuple(_once.of(message, "sent", _sent) for message in request.messages)
    tools = tuple(_once.of(offer, "offer", _offer) for offer in request.tools)
    if _same(system, request.system) and _same(messages, request.messages) and _same(tools, request.tools):
        return request
    return replace(request, system=system, messages=messages, tools=tools)


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))


def _text(text: str) -> str:
    return _once.of(text, "text", _redacted_text)


def _redacted_text(text: str) -> str:
    shown = redacted(text)
    return text if shown == text else shown


def _message(message: Message) -> Message:
    shown = replace(
        message,
        text=redacted(message.text),
        thoughts=tuple(_thought(thought) for thought in message.thoughts),
        calls=tuple(_call(call) for call in message.calls),
        answers=tuple(_answer(answer) for answer in message.answers),
    )
    return message if shown == message else shown


def _sent(message: Message) -> Message:
    shown = redacted_message(message)
    if not any(thought.signature for thought in message.thoughts):
        return shown
    thoughts = tuple(kept for thought in message.thoughts if (kept := _sent_thought(thought)))
    return message if shown is message and thoughts == message.thoughts else replace(shown, thoughts=thoughts)


def _thought(thought: Thought) -> Thought:
    """A signature holds for the text as it was."""
    shown = redacted(thought.text)
    return thought if shown == thought.text else Thought(text=shown)


def _sent_thought(thought: Thought) -> Thought | None:
    """A provider refuses its own thought when one letter of it is another."""
    if not thought.signature:
        return _thought(thought)
    return None if redact.PROCESS.knows(thought.text) or redact.PROCESS.knows(thought.signature) else thought


def _answer(answer: ToolAnswer) -> ToolAnswer:
    return replace(answer, name=redacted(answer.name), text=redacted(answer.text))


def _call(call: ToolCall) -> ToolCall:
    """The raw text follows the arguments, so that it stays JSON."""
    arguments = call.arguments
    shown = None if arguments is None else redacted_arguments(arguments)
    raw = redacted(call.raw)
    if shown is not None and call.raw and (shown != arguments or raw != call.raw):
        raw = json.dumps(shown)
    return replace(call, name=redacted(call.name), arguments=shown, raw=raw, mistake=redacted(call.mistake))


def redacted_arguments(arguments: Mapping[str, object], depth: int = 0) -> dict[str, object]:
    """The arguments of a call: texts are looked into, and a name decides as it does in a text."""
    return {redacted(name): _argument(name, value, depth) for name, value in arguments.items()}


def _argument(name: str, value: object, depth: int) -> object:
    if depth > _DEEPEST:
        return MARK
    match value:
        case str():
            return MARK if is_secret_argument(name, value) else redacted(value)
        case Mapping():
            return redacted_arguments(value, depth + 1)
        case list() | tuple():
            return [_argument(name, inner, depth + 1) for inner in value]
    return value


def _offer(offer: ToolOffer) -> ToolOffer:
    shown = redacted(offer.description)
    return offer if shown == offer.description else replace(offer, description=shown)
