"""Mending the turns of a conversation, so that every provider accepts them: each call is answered exactly once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pawl.core.dialogue import Message, Speaker, ToolAnswer, ToolCall, user

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 40
NOT_EXECUTED = "The call was not executed."
CONTINUE = "Continue."


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
                turns.append(_only_text(message))
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


def _only_text(message: Message) -> Message:
    return replace(message, calls=(), answers=(), thoughts=()) if message.calls or message.answers else message


def _exchange(message: Message, tools: Sequence[Message], ids: set[str]) -> list[Message]:
    """An assistant's turn and the answers to its calls."""
    if message.answers:
        message = replace(message, answers=())
    if not message.calls:
        return [message] if message.text.strip() else []
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
        calls.append(call if own == call.id else replace(call, id=own))
        answers.append(answer if own == answer.call else replace(answer, call=own))
    said = message if _same(calls, message.calls) else replace(message, calls=tuple(calls))
    if len(tools) == 1 and _same(answers, tools[0].answers) and not tools[0].text:
        return [said, tools[0]]
    return [said, Message(speaker=Speaker.TOOL, answers=tuple(answers))]


def _same(new: Iterable[object], old: Sequence[object]) -> bool:
    items = list(new)
    return len(items) == len(old) and all(one is other for one, other in zip(items, old, strict=True))


def _unused(wanted: str, ids: set[str]) -> str:
    base = own = _NOT_IN_IDS.sub("_", wanted)[-_LONGEST_ID:] or "call"
    number = 2
    while own in ids:
        own = f"{base}_{number}"
        number += 1
    return own
