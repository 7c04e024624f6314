"""Requests to models and their answers, as values that no provider's wire format shows through."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Reasoning
from pawl.core.text import CHARACTERS_PER_TOKEN
from pawl.core.typed import AtLeast, AtMost, plain, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """A tool as a model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that a model asked for. `id` is Pawl's own; providers repeat theirs or leave them out."""

    id: str
    name: str
    arguments: Mapping[str, object] | None
    """None when what was sent is not a JSON object: such a call is answered with `mistake`, never executed."""
    raw: str = ""
    """The arguments as they were sent."""
    mistake: str = ""
    provider_id: str = ""
    signature: str = ""
    """Opaque; the provider wants it back with the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The result of a call, for the model."""

    call: str
    name: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A piece of a provider's own reasoning. The signature is opaque and goes back unchanged with the text."""

    text: str
    signature: str = ""


class Speaker(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


PDF = "application/pdf"
STANDS_FOR = "\n\n# What this command stands for\n\n"
ATTACHMENT_TOKENS = 1_500
"""A rough count for one picture, or a page or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A picture or a PDF that goes with the user's words. It is sent, and never stored: the file is read again."""

    name: str
    media_type: str
    data: str
    """In base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn. An assistant's carries calls, a tool's carries answers; every call has exactly one answer."""

    speaker: Speaker
    text: str = ""
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()
    files: tuple[Attachment, ...] = ()
    automatic: bool = False
    """Written by Pawl, though a provider takes it for the user's: a correction, a task of a request."""

    @property
    def is_users(self) -> bool:
        return self.speaker is Speaker.USER and not self.automatic


def typed_words(text: str) -> str:
    """The user's words: of a command that stands for a longer request the line that was typed."""
    return text.partition(STANDS_FOR)[0]


def user(text: str, files: tuple[Attachment, ...] = (), *, automatic: bool = False) -> Message:
    return Message(speaker=Speaker.USER, text=text, files=files, automatic=automatic)


def assistant(text: str, *calls: ToolCall) -> Message:
    return Message(speaker=Speaker.ASSISTANT, text=text, calls=calls)


def tool_answers(*answers: ToolAnswer) -> Message:
    return Message(speaker=Speaker.TOOL, answers=answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How an answer is drawn (A10)."""

    temperature: Annotated[float, AtMost(2)] = 0.1
    top_p: Annotated[float, AtMost(1)] = 0.95
    max_output: Annotated[int, AtLeast(1)] = 4096
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a model. `system` comes stable parts first, so that a provider's prompt cache holds."""

    model: str
    """`provider/name`, `scripted:FILE` or `local:FILE`."""
    system: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...] = ()
    answer_schema: Mapping[str, object] | None = None
    """A JSON schema that the answer's text must fit."""
    sampling: Sampling = field(default_factory=Sampling)
    reasoning: Reasoning = Reasoning.OFF


class StopReason(StrEnum):
    """Why an answer ended."""

    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    SEQUENCE = "sequence"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one request. `input` counts all of the prompt, the cached and the newly cached part with it."""

    input: int = 0
    output: int = 0
    """With the reasoning."""
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    estimated: bool = False
    """The provider said nothing usable, so that these are Pawl's own figures."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_written=self.cache_written + other.cache_written,
            reasoning=self.reasoning + other.reasoning,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """A whole answer that ended properly; only from such a one are calls executed."""

    text: str
    stop: StopReason
    usage: Usage
    model: str
    """The model that answered, as `provider/name`."""
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    cost: Decimal | None = None
    """In US dollars; None when the price is unknown."""
    seconds: float = 0.0
    first_token_seconds: float | None = None
    attempts: int = 1
    served_by: str = ""
    """The model that answered by the provider's own word, where it says so."""

    @property
    def message(self) -> Message:
        return Message(speaker=Speaker.ASSISTANT, text=self.text, thoughts=self.thoughts, calls=self.calls)


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """The attempt failed and is thrown away whole: what it had streamed does not count."""

    why: str
    wait_seconds: float
    attempt: int
    """The one that failed, from 1."""
    begun: bool = False
    """The model had begun to answer, shown or not, so that the attempt is paid for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack:
    """The user listed another model for this case, and it takes over; what the first had streamed does not count."""

    model: str
    to: str
    why: str


@dataclass(frozen=True, slots=True)
class Answered:
    answer: ModelResponse


ModelEvent = TextDelta | ThoughtDelta | Retrying | FellBack | Answered


def to_json(message: Message) -> dict[str, Any]:
    """The message as values that `json.dumps` takes."""
    return plain(replace(message, files=()), sparse=True)  # type: ignore[no-any-return]


def from_json(value: object) -> Message:
    """The message of such values; `ValueError` names what is not as it must be. Unknown names are passed over."""
    return typed(Message, value)


def dialogue_tokens(messages: Iterable[Message]) -> int:
    """A rough count of what is sent."""
    return sum(map(characters_of, messages)) // CHARACTERS_PER_TOKEN


def characters_of(message: Message) -> int:
    return (
        len(message.text)
        + sum(len(thought.text) for thought in message.thoughts)
        + sum(len(call.name) + len(call.raw or json.dumps(call.arguments or {}, default=str)) for call in message.calls)
        + sum(len(answer.text) for answer in message.answers)
        + len(message.files) * ATTACHMENT_TOKENS * CHARACTERS_PER_TOKEN
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    """One message of a conversation."""

    number: int
    time: str
    run: str
    message: Message
    reasoning: str = ""
    """The full text of the reasoning behind the message: kept and shown, never sent again."""
    sent_again: bool = True
    """False for what is only shown, such as an answer that was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The head of a conversation."""

    id: str
    started: str
    last: str
    """When something was said in it last."""
    title: str
    """The first words of the user."""
    turns: int
    """How often the user spoke."""
