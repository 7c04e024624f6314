"""How long a dialogue is, roughly: four characters a token, which is near for code and English."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pawl.core.dialogue import Message, ToolCall
from pawl.core.packs import CHARACTERS_PER_TOKEN


def dialogue_tokens(messages: Iterable[Message]) -> int:
    """A rough count of what is sent."""
    return sum(map(characters_of, messages)) // CHARACTERS_PER_TOKEN


def characters_of(message: Message) -> int:
    return (
        len(message.text)
        + sum(len(thought.text) for thought in message.thoughts)
        + sum(map(_call, message.calls))
        + sum(len(answer.text) for answer in message.answers)
    )


def _call(call: ToolCall) -> int:
    return len(call.name) + len(call.raw or json.dumps(call.arguments or {}, default=str))
