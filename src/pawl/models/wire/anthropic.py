"""The format of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pawl.core.dialogue import PDF, Message, Request, Speaker, Thought
from pawl.core.run import Reasoning
from pawl.models import wire
from pawl.models.answer_stream import (
    ANSWER_TOOL,
    Corrupt,
    WireDecoder,
    as_sent,
    own_signature,
    string,
    table,
    tables,
    total,
)
from pawl.models.calls import CallDraft
from pawl.models.providers import Endpoint, ReasoningSwitch, SchemaCarrier, Wire

_MARK = {"type": "ephemeral"}
_MARKED_TURNS = 2
_REDACTED = "redacted:"
_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def encode(request: Request, endpoint: Endpoint) -> wire.Outgoing:
    messages = wire.mended(request.messages)
    thinks = _thinks(request, messages, endpoint)
    body: dict[str, object] = {"model": endpoint.name, "max_tokens": request.sampling.max_output}
    tools: list[dict[str, object]] = [
        {
            "name": offer.name,
            "description": offer.description,
            "input_schema": wire.without_closing(offer.input_schema),
        }
        for offer in request.tools
    ]
    if request.answer_schema is not None and endpoint.schema is SchemaCarrier.TOOL:
        tools.append({"name": ANSWER_TOOL, "description": "Gives the answer.", "input_schema": request.answer_schema})
        # While it thinks, it may not be forced.
        forced = {"type": "any"} if request.tools else {"type": "tool", "name": ANSWER_TOOL}
        body["tool_choice"] = {"type": "auto"} if thinks else forced
    system: list[dict[str, object]] = [{"type": "text", "text": part} for part in wire.system_parts(request, endpoint)]
    turns = _turns(messages, thinks=thinks)
    if endpoint.quirks.cache_marks:
        _mark(tools, system, turns)
    if tools:
        body["tools"] = tools
    if system:
        body["system"] = system
    body["messages"] = turns
    body.update(_sampling(request, endpoint, thinks=thinks))
    if endpoint.quirks.stream:
        body["stream"] = True
    return wire.outgoing(endpoint, "messages", body)


def _thinks(request: Request, messages: Sequence[Message], endpoint: Endpoint) -> bool:
    """Whether it is asked to think. In the middle of calls it only may if those came with thoughts of its own."""
    if request.reasoning is Reasoning.OFF or endpoint.reasoning is ReasoningSwitch.NONE:
        return False
    for message in reversed(messages):
        if message.speaker is Speaker.USER:
            return True
        if message.calls:
            return any(own_signature(Wire.ANTHROPIC, thought.signature) for thought in message.thoughts)
    return True


def _sampling(request: Request, endpoint: Endpoint, *, thinks: bool) -> dict[str, object]:
    budget = endpoint.quirks.reasoning_budget
    # It takes no seed and no blank stop sequence.
    sampling = replace(request.sampling, seed=None, stop=tuple(one for one in request.sampling.stop if one.strip()))
    fields = wire.sampling_fields(replace(request, sampling=sampling), endpoint, stop="stop_sequences")
    if thinks:
        # The budget comes on top, so that the answer keeps its own length; sampling cannot be set while it thinks.
        fields.pop("temperature", None)
        fields.pop("top_p", None)
        fields["max_tokens"] = sampling.max_output + budget
        adaptive = endpoint.reasoning is ReasoningSwitch.ADAPTIVE
        fields["thinking"] = {"type": "adaptive"} if adaptive else {"type": "enabled", "budget_tokens": budget}
    return fields


def _turns(messages: Sequence[Message], *, thinks: bool) -> list[dict[str, object]]:
    """User and assistant in turn; the answers of tools are the user's."""
    turns: list[dict[str, object]] = []
    for is_assistant, group in groupby(messages, lambda message: message.speaker is Speaker.ASSISTANT):
        blocks = [block for message in group for block in _blocks(message, thinks=thinks)]
        turns.append({"role": "assistant" if is_assistant else "user", "content": blocks})
    last = turns[-1]
    if last["role"] == "assistant":
        for block in tables(last["content"])[-1:]:
            if block.get("type") == "text":
                last["content"] = [*tables(last["content"])[:-1], {**block, "text": str(block["text"]).rstrip()}]
    return turns


def _blocks(message: Message, *, thinks: bool) -> list[dict[str, object]]:
    blocks: list[dict[str, object]] = []
    if thinks:
        blocks.extend(_thought_blocks(message.thoughts))
    for one in message.files:
        source = {"type": "base64", "media_type": one.media_type, "data": one.data}
        blocks.append({"type": "document" if one.media_type == PDF else "image", "source": source})
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    for call in message.calls:
        blocks.append(
            {
                "type": "tool_use",
                "id": call.id,
                "name": wire.safe_name(call.name),
                "input": wire.arguments_of(call.arguments),
            }
        )
    for answer in message.answers:
        result = {"type": "tool_result", "tool_use_id": answer.call, "content": answer.text or wire.NO_OUTPUT}
        blocks.append({**result, "is_error": True} if answer.failed else {**result})
    return blocks


def _thought_blocks(thoughts: Sequence[Thought]) -> Iterator[dict[str, object]]:
    """Those that it signed itself."""
    for thought in thoughts:
        signature = own_signature(Wire.ANTHROPIC, thought.signature)
        if signature.startswith(_REDACTED):
            yield {"type": "redacted_thinking", "data": signature[len(_REDACTED) :]}
        elif signature:
            yield {"type": "thinking", "thinking": thought.text, "signature": signature}


def _mark(
    tools: list[dict[str, object]], system: Sequence[dict[str, object]], turns: Sequence[Mapping[str, object]]
) -> None:
    """Where the provider caches what came before: the end of the tools, of the system text, of the last user turns."""
    if tools:
        tools[-1]["cache_control"] = _MARK
    if system:
        system[-1]["cache_control"] = _MARK
    for turn in [one for one in turns if one["role"] == "user"][-_MARKED_TURNS:]:
        content = turn["content"]
        if isinstance(content, list):
            content[-1]["cache_control"] = _MARK


class AnthropicDecoder(WireDecoder):
    """Reads the events of a message, or a whole one. That the body ends is no end of a message."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._has_started = False
        self._prompt: dict[str, object] = {}

    def read(self, payload: Mapping[str, object], name: str = "") -> None:
        match payload.get("type") or name:
            case "message_start":
                self._start(table(payload.get("message")))
            case "content_block_start":
                self._block(payload.get("index"), table(payload.get("content_block")))
            case "content_block_delta":
                self._delta(payload.get("index"), table(payload.get("delta")))
            case "message_delta":
                self._end(table(payload.get("delta")), table(payload.get("usage")))
            case "message_stop":
                if self.draft.stop is None:
                    raise Corrupt("it ended without a stop reason")
                self.draft.is_ended = True

    def read_whole(self, payload: Mapping[str, object]) -> None:
        self._start(payload)
        for index, block in enumerate(tables(payload.get("content"))):
            self._block(index, block)
        self._end(payload, table(payload.get("usage")))
        self.draft.is_ended = self.draft.stop is not None

    def _start(self, message: Mapping[str, object]) -> None:
        if self._has_started:
            raise Corrupt("it starts a second time")
        self._has_started = True
        self.draft.served_by = string(message.get("model"))
        self.draft.identity = (string(message.get("id")), "")
        self._usage({**table(message.get("usage")), "output_tokens": None})

    def _block(self, index: object, block: Mapping[str, object]) -> None:
        """Its start, or all of it when the message comes whole."""
        kind = block.get("type")
        if kind == "text":
            self.draft.text(block.get("text"))
        elif kind == "thinking":
            self.draft.thought(block.get("thinking"), starts=True)
            self.draft.sign(string(block.get("signature")))
        elif kind == "redacted_thinking":
            self.draft.thought("", starts=True)
            self.draft.sign(_REDACTED + string(block.get("data")))
        elif kind == "tool_use":
            call = self.draft.calls.begin(index, string(block.get("name")), string(block.get("id")))
            if given := block.get("input"):
                self._arguments(call, wire.json_text(given))
            self.draft.call_piece(call, "")

    def _delta(self, index: object, delta: Mapping[str, object]) -> None:
        match delta.get("type"):
            case "text_delta":
                self.draft.text(delta.get("text"))
            case "thinking_delta":
                self.draft.thought(delta.get("thinking"))
            case "signature_delta":
                self.draft.sign(string(delta.get("signature")))
            case "input_json_delta":
                call = self.draft.calls.at(index)
                if call is None:
                    raise Corrupt("it gives arguments to a call that it never started")
                self._arguments(call, as_sent(delta.get("partial_json")))

    def _arguments(self, call: CallDraft, piece: str) -> None:
        if piece:
            call.pieces.append(piece)
        self.draft.call_piece(call, piece)

    def _end(self, delta: Mapping[str, object], usage: Mapping[str, object]) -> None:
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self.draft.end_for(reason)
        self._usage(usage)

    def _usage(self, usage: Mapping[str, object]) -> None:
        """The prompt is counted in parts: what was read from the cache, what was written to it, and the rest."""
        self.draft.count(output=usage.get("output_tokens"))
        self._prompt.update({name: usage[name] for name in _PROMPT if usage.get(name) is not None})
        if "input_tokens" in self._prompt:
            self.draft.count(
                input=total(self._prompt.values()),
                cached=self._prompt.get("cache_read_input_tokens"),
                cache_written=self._prompt.get("cache_creation_input_tokens"),
            )
