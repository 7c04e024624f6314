"""The format of OpenAI's chat completions, which most other servers speak too."""

from __future__ import annotations

from collections.abc import Mapping

from pawl.core.dialogue import PDF, Attachment, Message, Request, Speaker, StopReason, Thought
from pawl.core.run import Reasoning
from pawl.models import wire
from pawl.models.answer_stream import (
    ANSWER_TOOL,
    Corrupt,
    ErrorInside,
    ServerEvent,
    WireDecoder,
    as_sent,
    string,
    table,
    tables,
)
from pawl.models.providers import Endpoint, ReasoningSwitch, SchemaCarrier


def encode(request: Request, endpoint: Endpoint) -> wire.Outgoing:
    messages: list[dict[str, object]] = []
    if system := wire.system_parts(request, endpoint):
        messages.append({"role": "system", "content": "\n\n".join(system)})
    for message in wire.mended(request.messages):
        messages.extend(_message(message, endpoint))
    body: dict[str, object] = {"model": endpoint.name, "messages": messages}
    if request.tools:
        body["tools"] = [
            _tool(offer.name, offer.description, offer.input_schema, is_answer=False) for offer in request.tools
        ]
    if request.answer_schema is not None:
        _add_schema(body, request.answer_schema, endpoint)
    body[endpoint.quirks.max_tokens_field] = request.sampling.max_output
    body.update(wire.sampling_fields(request, endpoint, seed=endpoint.quirks.seed_field))
    body.update(_reasoning(request, endpoint))
    if endpoint.quirks.stream:
        body["stream"] = True
        if endpoint.quirks.stream_options:
            body["stream_options"] = {"include_usage": True}
    return wire.outgoing(endpoint, "chat/completions", body)


def _file(one: Attachment) -> dict[str, object]:
    address = f"data:{one.media_type};base64,{one.data}"
    if one.media_type == PDF:
        return {"type": "file", "file": {"filename": one.name, "file_data": address}}
    return {"type": "image_url", "image_url": {"url": address}}


def _message(message: Message, endpoint: Endpoint) -> list[dict[str, object]]:
    if message.speaker is Speaker.USER:
        words: list[dict[str, object]] = [{"type": "text", "text": message.text}]
        return [{"role": "user", "content": [*map(_file, message.files), *words] if message.files else message.text}]
    if message.speaker is Speaker.TOOL:
        return [
            {"role": "tool", "tool_call_id": answer.call, "content": answer.text or wire.NO_OUTPUT}
            for answer in message.answers
        ]
    turn: dict[str, object] = {"role": "assistant", "content": message.text or None}
    if (field := endpoint.quirks.thought_field) and (thoughts := _own_thoughts(message.thoughts)):
        turn[field] = thoughts
    if message.calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": wire.safe_name(call.name),
                    "arguments": wire.json_text(wire.arguments_of(call.arguments)),
                },
            }
            for call in message.calls
        ]
    return [turn]


def _own_thoughts(thoughts: tuple[Thought, ...]) -> str:
    """Reasoning that no other format has signed."""
    return "".join(thought.text for thought in thoughts if not thought.signature)


def _tool(name: str, description: str, schema: Mapping[str, object], *, is_answer: bool) -> dict[str, object]:
    is_strict = is_answer and wire.is_strict(schema)
    parameters = schema if is_strict else wire.without_closing(schema)
    function: dict[str, object] = {"name": name, "description": description, "parameters": parameters}
    if is_strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _add_schema(body: dict[str, object], schema: Mapping[str, object], endpoint: Endpoint) -> None:
    if endpoint.schema is SchemaCarrier.JSON_SCHEMA:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": ANSWER_TOOL, "schema": schema, "strict": wire.is_strict(schema)},
        }
    elif endpoint.schema is SchemaCarrier.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    elif endpoint.schema is SchemaCarrier.TOOL:
        others = body.get("tools")
        has_others = isinstance(others, list)
        tool = _tool(ANSWER_TOOL, "Gives the answer.", schema, is_answer=True)
        body["tools"] = [*others, tool] if isinstance(others, list) else [tool]
        chosen = {"type": "function", "function": {"name": ANSWER_TOOL}}
        body["tool_choice"] = "required" if has_others else chosen


def _reasoning(request: Request, endpoint: Endpoint) -> dict[str, object]:
    is_on = request.reasoning is Reasoning.ON
    quirks = endpoint.quirks
    match endpoint.reasoning:
        case ReasoningSwitch.EFFORT:
            effort = quirks.reasoning_on if is_on else quirks.reasoning_off
            return {"reasoning_effort": effort} if effort else {}
        case ReasoningSwitch.OBJECT:
            return {"reasoning": {"enabled": is_on}}
        case ReasoningSwitch.TEMPLATE:
            return {"chat_template_kwargs": {"enable_thinking": is_on}}
    return {}


class OpenAIDecoder(WireDecoder):
    """Reads chunks of a completion, or a whole one."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._needs_done = endpoint.quirks.done_mark
        self._has_finished = False

    def event(self, event: ServerEvent) -> None:
        if event.data.strip() == "[DONE]":
            self.draft.is_ended = self._has_finished
            if not self._has_finished:
                raise Corrupt("it says that it is done but not why")
        else:
            super().event(event)

    def read_whole(self, payload: Mapping[str, object]) -> None:
        self.read(payload)
        self.draft.is_ended = self._has_finished

    def close(self) -> None:
        if self._has_finished and not self._needs_done:
            self.draft.is_ended = True

    def read(self, payload: Mapping[str, object], name: str = "") -> None:
        self.draft.served_by = string(payload.get("model")) or self.draft.served_by
        if answer_id := string(payload.get("id")):
            self.draft.identity = (answer_id, str(payload.get("created", "")))
        for choice in tables(payload.get("choices")):
            if choice.get("index") in (0, None):
                self._choice(choice)
        self._usage(table(payload.get("usage")))

    def _choice(self, choice: Mapping[str, object]) -> None:
        whole = table(choice.get("message"))
        said = whole or table(choice.get("delta"))
        self.draft.thought(said.get("reasoning_content") or said.get("reasoning"))
        self._content(said.get("content"))
        if refusal := string(said.get("refusal")):
            self.draft.text(refusal)
            self.draft.end(StopReason.REFUSED)
        for position, call in enumerate(tables(said.get("tool_calls"))):
            self._call(call, position if whole else call.get("index"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if reason == "error":
                raise ErrorInside(choice)
            self.draft.end_for(reason)
            self._has_finished = True

    def _content(self, content: object) -> None:
        self.draft.text(content)
        # Some servers send a list of typed parts.
        for part in tables(content):
            if part.get("type") == "thinking":
                for inner in tables(part.get("thinking")):
                    self.draft.thought(inner.get("text"))
            else:
                self.draft.text(part.get("text"))

    def _call(self, call: Mapping[str, object], index: object) -> None:
        function = table(call.get("function"))
        arguments = function.get("arguments")
        piece = wire.json_text(arguments) if isinstance(arguments, dict | list) else as_sent(arguments)
        owner = self.draft.calls.piece(
            index if isinstance(index, int) else None,
            provider_id=string(call.get("id")),
            name=string(function.get("name")),
            arguments=piece,
        )
        self.draft.call_piece(owner, piece)

    def _usage(self, usage: Mapping[str, object]) -> None:
        if not usage:
            return
        read = table(usage.get("prompt_tokens_details"))
        written = table(usage.get("completion_tokens_details"))
        self.draft.count(
            input=usage.get("prompt_tokens"),
            output=usage.get("completion_tokens"),
            cached=read.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
            cache_written=read.get("cache_write_tokens"),
            reasoning=written.get("reasoning_tokens"),
        )
