"""Making a dialogue shorter when a model cannot read it all: old outputs of tools go first, words of the user never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pawl.core.dialogue import Message, Speaker, ToolAnswer

KEPT_TURNS = 4
HEAD_CHARACTERS = 400
_LEFT_OUT = "\n[… {count:,} characters left out; call the tool again to see them]"


def shortened(messages: Sequence[Message], *, keep: int = KEPT_TURNS) -> tuple[Message, ...]:
    """The same turns with the outputs of tools cut to their head, but for the last few turns."""
    border = len(messages) - keep
    return tuple(_cut(message) if place < border else message for place, message in enumerate(messages))


def cut(messages: Sequence[Message], *, request: int, too_long: bool) -> Sequence[Message]:
    """What is done where nobody compresses: nothing before the model says that it is too long."""
    return shortened(messages) if too_long else messages


def flattened(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same dialogue with calls and their answers as plain words, for a provider that rejects the turns."""
    flat: list[Message] = []
    for message in shortened(messages):
        speaker = Speaker.ASSISTANT if message.speaker is Speaker.ASSISTANT else Speaker.USER
        said = [message.text] if message.text else []
        said += [f"[called {call.name} {call.raw}]" for call in message.calls]
        said += [f"[{answer.name} answered]\n{answer.text}" for answer in message.answers]
        if said:
            flat.append(Message(speaker=speaker, text="\n".join(said)))
    return tuple(flat)


def _cut(message: Message) -> Message:
    if not any(len(answer.text) > HEAD_CHARACTERS for answer in message.answers):
        return message
    return replace(message, answers=tuple(_cut_answer(answer) for answer in message.answers))


def _cut_answer(answer: ToolAnswer) -> ToolAnswer:
    over = len(answer.text) - HEAD_CHARACTERS
    if over <= 0:
        return answer
    return replace(answer, text=answer.text[:HEAD_CHARACTERS] + _LEFT_OUT.format(count=over))
