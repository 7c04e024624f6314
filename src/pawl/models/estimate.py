"""Tokens of a request before a provider has counted them: a likely figure, and one that is not likely to be passed.

The likely figure is four bytes a token, which is near for code and English with every tokenizer in use. The other one
is two bytes a token, and is what a budget holds back: text of nothing but digits can pass it, ordinary work does not.
Both cost far less than writing the request down as JSON, so that nothing is kept between turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pawl.core.dialogue import Message, Request, ToolCall, ToolOffer, Usage

_LIKELY_BYTES = 4
_LEAST_BYTES = 2
_MESSAGE_TOKENS = 8
"""What a provider puts around a turn, a call or a tool."""
_REQUEST_TOKENS = 64


def likely_input(request: Request) -> int:
    """About as many tokens as the provider will count."""
    size, parts = _measured(request)
    return -(-size // _LIKELY_BYTES) + parts * (_MESSAGE_TOKENS // 2)


def most_input(request: Request) -> int:
    """More tokens than the provider will count."""
    size, parts = _measured(request)
    return -(-size // _LEAST_BYTES) + parts * _MESSAGE_TOKENS + _REQUEST_TOKENS


def likely_tokens(text: str) -> int:
    return -(-_bytes(text) // _LIKELY_BYTES)


def estimated_usage(request: Request, said: str, calls: Iterable[ToolCall] = ()) -> Usage:
    """What a request came to whose usage nobody told; never more than was held back for it."""
    output = likely_tokens(said) + sum(-(-_call(call) // _LIKELY_BYTES) + _MESSAGE_TOKENS for call in calls)
    return Usage(input=likely_input(request), output=min(output, request.sampling.max_output), estimated=True)


def _measured(request: Request) -> tuple[int, int]:
    """Bytes, and parts that something is put around."""
    size = sum(map(_bytes, request.system)) + sum(map(_message, request.messages)) + sum(map(_offer, request.tools))
    if request.answer_schema is not None:
        size += len(json.dumps(request.answer_schema))
    turns = sum(1 + len(message.calls) + len(message.answers) for message in request.messages)
    return size, turns + len(request.tools) + len(request.system)


def _message(message: Message) -> int:
    return (
        _bytes(message.text)
        + sum(_bytes(thought.text) + len(thought.signature) for thought in message.thoughts)
        + sum(map(_call, message.calls))
        + sum(_bytes(answer.text) + len(answer.name) for answer in message.answers)
    )


def _call(call: ToolCall) -> int:
    sent = call.raw or json.dumps(call.arguments or {})
    return len(call.name) + _bytes(sent) + len(call.signature)


def _offer(offer: ToolOffer) -> int:
    return len(offer.name) + _bytes(offer.description) + len(json.dumps(offer.input_schema))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
