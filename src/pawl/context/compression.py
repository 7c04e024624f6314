"""Making a long dialogue short: its older part becomes one structured summary, the last turns stay as they are.

Pure: the same dialogue and state give the same result. Every call keeps its one answer, the user's request and the
rules stay word for word, and nothing is compressed twice while nothing new came of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pawl.context.summary import STANDING, WORKSHEET, paths_of, summarized
from pawl.core.dialogue import Message, Speaker, ToolAnswer, ToolCall, user
from pawl.core.dialogue_size import characters_of, dialogue_tokens
from pawl.core.packs import CHARACTERS_PER_TOKEN
from pawl.core.worksheet import Worksheet

_MOST_SEEN = 1_000
_CUT = "\n[… {count} more lines; call the tool again to see them]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionLimits:
    messages: int = 40
    tokens: int = 60_000
    """Above one of these a dialogue is compressed."""
    tail_messages: int = 8
    tail_tokens: int = 12_000
    """What stays as it is, at most; the last exchange always does."""
    summary_characters: int = 8_000
    output_characters: int = 2_000
    """What stays of each tool output of the last turns when the model could not read it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionState:
    """What was compressed, and when; goes on from one compression to the next."""

    times: int = 0
    length: int = 0
    """How many messages the last result had."""
    seen: tuple[str, ...] = ()
    """Digests of all that tools and the user had said by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is told again word for word."""

    request: int
    """The place of the user's last request among the messages."""
    rules: tuple[str, ...] = ()
    worksheet: Worksheet = field(default_factory=Worksheet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    messages: tuple[Message, ...]
    state: CompressionState
    before_tokens: int
    after_tokens: int
    why_not: str = ""
    """Why the messages are those that were given; empty when they are not."""


def is_due(messages: Sequence[Message], limits: CompressionLimits) -> bool:
    return len(messages) > limits.messages or dialogue_tokens(messages) > limits.tokens


def compress(
    messages: Sequence[Message],
    kept: Kept,
    state: CompressionState,
    *,
    limits: CompressionLimits | None = None,
    too_long: bool = False,
) -> Compressed:
    """The dialogue with its older part as a summary, where that is due or the model could not read it all."""
    bounds = limits or CompressionLimits()
    before = dialogue_tokens(messages)

    def unchanged(why: str) -> Compressed:
        return Compressed(messages=tuple(messages), state=state, before_tokens=before, after_tokens=before, why_not=why)

    if not too_long and not is_due(messages, bounds):
        return unchanged("it is not long")
    if state.times and not _has_progressed(messages, state):
        return unchanged("nothing new was said or found since the last time")
    made = _shorter(messages, kept, replace(bounds, tail_messages=4) if too_long else bounds, cut=too_long)
    after = dialogue_tokens(made)
    if after >= before:
        return unchanged("it would not become shorter")
    seen = tuple(dict.fromkeys((*state.seen, *_said(messages))))[-_MOST_SEEN:]
    following = CompressionState(times=state.times + 1, length=len(made), seen=seen)
    return Compressed(messages=made, state=following, before_tokens=before, after_tokens=after)


def _has_progressed(messages: Sequence[Message], state: CompressionState) -> bool:
    """Whether the user or a tool has said something that was not known: to read a file again is no progress."""
    since = messages[state.length :] if len(messages) >= state.length else messages
    return bool(set(_said(since)) - set(state.seen))


def _said(messages: Iterable[Message]) -> list[str]:
    return [
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        for message in messages
        for text in (
            [message.text] * (message.speaker is Speaker.USER)
            + [f"{answer.name}\n{answer.text}" for answer in message.answers if not answer.failed]
        )
    ]


def _shorter(messages: Sequence[Message], kept: Kept, limits: CompressionLimits, *, cut: bool) -> tuple[Message, ...]:
    start = _tail_start(messages, limits)
    request = messages[kept.request]
    is_old = kept.request < start
    head = [message for place, message in enumerate(messages[:start]) if place != kept.request]
    tail = [
        replace(message, thoughts=()) if message.thoughts and place < kept.request else message
        for place, message in enumerate(messages[start:], start)
    ]
    if cut or sum(map(characters_of, tail)) > limits.tail_tokens * CHARACTERS_PER_TOKEN:
        tail = [_cut_answers(message, limits.output_characters) for message in tail]
    opening = [user(_told(head, kept, limits))] if head else []
    return (*opening, *([request] if is_old else []), *tail)


def _tail_start(messages: Sequence[Message], limits: CompressionLimits) -> int:
    """Where the turns begin that stay: never between a call and its answer, and the last exchange always stays."""
    start = len(messages)
    room = limits.tail_tokens * CHARACTERS_PER_TOKEN
    for place in range(len(messages) - 1, -1, -1):
        room -= characters_of(messages[place])
        if room < 0 or len(messages) - place > limits.tail_messages:
            break
        start = place
    while start < len(messages) and messages[start].speaker is Speaker.TOOL:
        start += 1
    last = len(messages) - 1
    while last > 0 and messages[last].speaker is Speaker.TOOL:
        last -= 1
    return min(start, last)


def _cut_answers(message: Message, most: int) -> Message:
    if not any(len(answer.text) > most for answer in message.answers):
        return message
    return replace(message, answers=tuple(_cut_answer(answer, most) for answer in message.answers))


def _cut_answer(answer: ToolAnswer, most: int) -> ToolAnswer:
    """The first lines, whole; a line that is too long by itself is cut, because it is data."""
    if len(answer.text) <= most:
        return answer
    end = answer.text.rfind("\n", 0, most)
    end = end if end > 0 else most
    return replace(answer, text=answer.text[:end] + _CUT.format(count=answer.text.count("\n", end) or 1))


def _told(head: Sequence[Message], kept: Kept, limits: CompressionLimits) -> str:
    parts = [summarized(head).within(limits.summary_characters).text]
    if kept.rules:
        parts += [f"## {STANDING}", *kept.rules]
    if kept.worksheet.text:
        parts += [f"## {WORKSHEET}", kept.worksheet.text]
    return "\n".join(parts)


def noted(worksheet: Worksheet, call: ToolCall, answer: ToolAnswer) -> Worksheet:
    """The worksheet after a call: what was read, and what was changed or run."""
    if answer.failed:
        return worksheet
    paths = paths_of(call.arguments or {})
    match call.name:
        case "file_read" | "outline":
            return worksheet.with_read(*paths)
        case "file_search" | "locate":
            return worksheet
    command = (call.arguments or {}).get("command", "")
    return worksheet.with_done(f"{call.name} {', '.join(paths) or command}")


class Compressor:
    """Compresses the dialogue of one talk after another, and remembers when it did."""

    def __init__(
        self,
        *,
        limits: CompressionLimits | None = None,
        rules: tuple[str, ...] = (),
        worksheet: Callable[[], Worksheet] = Worksheet,
        state: CompressionState | None = None,
    ) -> None:
        self._limits = limits
        self._rules = rules
        self._worksheet = worksheet
        self.state = state or CompressionState()

    def __call__(self, messages: Sequence[Message], *, request: int, too_long: bool) -> Sequence[Message]:
        """The messages to go on with; the same ones when there is nothing to gain."""
        kept = Kept(request=request, rules=self._rules, worksheet=self._worksheet())
        made = compress(messages, kept, self.state, limits=self._limits, too_long=too_long)
        self.state = made.state
        return messages if made.why_not else made.messages
