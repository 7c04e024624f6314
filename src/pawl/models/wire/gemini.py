"""The format of Gemini's generateContent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from urllib.parse import quote

from pawl.core.dialogue import Message, Request, Speaker, StopReason, ToolCall, ToolOffer
from pawl.core.run import Reasoning
from pawl.models import wire
from pawl.models.answer_stream import WireDecoder, own_signature, signed, string, table, tables, total
from pawl.models.providers import Endpoint, ReasoningSwitch, SchemaCarrier, Wire

# The subset of OpenAPI that `responseSchema` and `parameters` take.
_PLAIN_SCHEMA = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "example", "default", "anyOf", "pattern"),
        *("items", "maxItems", "minItems", "properties", "required", "propertyOrdering", "minProperties"),
        *("maxProperties", "minLength", "maxLength", "minimum", "maximum"),
    )
)


def encode(request: Request, endpoint: Endpoint) -> wire.Outgoing:
    body: dict[str, object] = {}
    if system := wire.system_parts(request, endpoint):
        body["systemInstruction"] = {"parts": [{"text": part} for part in system]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(offer, endpoint) for offer in request.tools]}]
    body["contents"] = _contents(wire.mended(request.messages))
    body["generationConfig"] = _generation(request, endpoint)
    method = "streamGenerateContent?alt=sse" if endpoint.quirks.stream else "generateContent"
    return wire.outgoing(endpoint, f"models/{quote(endpoint.name.removeprefix('models/'), safe='')}:{method}", body)


def _declaration(offer: ToolOffer, endpoint: Endpoint) -> dict[str, object]:
    declaration: dict[str, object] = {"name": offer.name, "description": offer.description}
    if endpoint.schema is SchemaCarrier.RESPONSE_SCHEMA:
        declaration["parameters"] = _plain_schema(offer.input_schema)
    else:
        declaration["parametersJsonSchema"] = offer.input_schema
    return declaration


def _plain_schema(schema: object) -> object:
    if isinstance(schema, list):
        return [_plain_schema(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, object] = {}
    for name, value in schema.items():
        if name == "properties" and isinstance(value, Mapping):
            plain[name] = {field: _plain_schema(inner) for field, inner in value.items()}
        elif name in _PLAIN_SCHEMA:
            plain[name] = _plain_schema(value)
    return plain


def _generation(request: Request, endpoint: Endpoint) -> dict[str, object]:
    config: dict[str, object] = {"maxOutputTokens": request.sampling.max_output}
    config.update(wire.sampling_fields(request, endpoint, top_p="topP", stop="stopSequences"))
    if request.answer_schema is not None:
        if endpoint.schema in (SchemaCarrier.RESPONSE_SCHEMA, SchemaCarrier.RESPONSE_JSON_SCHEMA):
            config["responseMimeType"] = "application/json"
        if endpoint.schema is SchemaCarrier.RESPONSE_SCHEMA:
            config["responseSchema"] = _plain_schema(request.answer_schema)
        elif endpoint.schema is SchemaCarrier.RESPONSE_JSON_SCHEMA:
            config["responseJsonSchema"] = request.answer_schema
    if endpoint.reasoning is ReasoningSwitch.CONFIG:
        _add_thinking(config, request, endpoint)
    return config


def _add_thinking(config: dict[str, object], request: Request, endpoint: Endpoint) -> None:
    quirks = endpoint.quirks
    if request.reasoning is Reasoning.ON:
        config["thinkingConfig"] = {"thinkingBudget": quirks.reasoning_budget, "includeThoughts": True}
        # Thoughts count as output, so that the budget comes on top of the answer's own length.
        config["maxOutputTokens"] = request.sampling.max_output + quirks.reasoning_budget
    elif quirks.reasoning_off and not quirks.reasoning_off.isdecimal():
        config["thinkingConfig"] = {"thinkingLevel": quirks.reasoning_off}
    else:
        # Some models always think, and refuse a budget of nothing.
        config["thinkingConfig"] = {"thinkingBudget": int(quirks.reasoning_off or 0)}


def _contents(messages: Sequence[Message]) -> list[dict[str, object]]:
    """User and model in turn; the answers of tools are the user's."""
    ids = {call.id: call.provider_id for message in messages for call in message.calls}
    contents: list[dict[str, object]] = []
    for is_model, group in groupby(messages, lambda message: message.speaker is Speaker.ASSISTANT):
        parts = [part for message in group for part in _parts(message, ids)]
        contents.append({"role": "model" if is_model else "user", "parts": parts})
    return contents


def _parts(message: Message, ids: Mapping[str, str]) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = []
    signatures = [own for thought in message.thoughts if (own := own_signature(Wire.GEMINI, thought.signature))]
    parts.extend({"inlineData": {"mimeType": one.media_type, "data": one.data}} for one in message.files)
    if message.text.strip():
        part: dict[str, object] = {"text": message.text}
        if signatures:
            part["thoughtSignature"] = signatures[-1]
        parts.append(part)
    parts.extend(_call_part(call) for call in message.calls)
    for answer in message.answers:
        content = {"error": answer.text} if answer.failed else {"output": answer.text or wire.NO_OUTPUT}
        response: dict[str, object] = {"name": wire.safe_name(answer.name), "response": content}
        if provider_id := ids.get(answer.call):
            response = {"id": provider_id, **response}
        parts.append({"functionResponse": response})
    return parts


def _call_part(call: ToolCall) -> dict[str, object]:
    function: dict[str, object] = {
        "name": wire.safe_name(call.name),
        "args": wire.arguments_of(call.arguments),
    }
    if call.provider_id:
        function = {"id": call.provider_id, **function}
    part: dict[str, object] = {"functionCall": function}
    if signature := own_signature(Wire.GEMINI, call.signature):
        part["thoughtSignature"] = signature
    return part


class GeminiDecoder(WireDecoder):
    """Reads responses one after another; a whole answer is one of them."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._counts: dict[str, object] = {}

    def read_whole(self, payload: Mapping[str, object]) -> None:
        self.read(payload)
        self.close()

    def close(self) -> None:
        """With a finish reason, the end of the body is the end of an answer."""
        self.draft.is_ended = self.draft.stop is not None

    def read(self, payload: Mapping[str, object], name: str = "") -> None:
        self.draft.served_by = string(payload.get("modelVersion")) or self.draft.served_by
        if answer_id := string(payload.get("responseId")):
            self.draft.identity = (answer_id, string(payload.get("createTime")))
        if table(payload.get("promptFeedback")).get("blockReason"):
            self.draft.end(StopReason.REFUSED)
        for candidate in tables(payload.get("candidates")):
            if candidate.get("index") in (0, None):
                self._candidate(candidate)
        self._usage(table(payload.get("usageMetadata")))

    def _candidate(self, candidate: Mapping[str, object]) -> None:
        for part in tables(table(candidate.get("content")).get("parts")):
            self._part(part)
        reason = candidate.get("finishReason")
        if not isinstance(reason, str) or reason in ("", "FINISH_REASON_UNSPECIFIED"):
            return
        self.draft.end_for(reason)

    def _part(self, part: Mapping[str, object]) -> None:
        signature = string(part.get("thoughtSignature"))
        function = table(part.get("functionCall"))
        if function:
            arguments = function.get("args")
            piece = wire.json_text(arguments) if arguments is not None else ""
            call = self.draft.calls.begin(object(), string(function.get("name")), string(function.get("id")))
            call.signature = signed(Wire.GEMINI, signature)
            call.pieces.append(piece)
            self.draft.call_piece(call, piece)
            return
        if part.get("thought") is True:
            self.draft.thought(part.get("text"))
        else:
            self.draft.text(part.get("text"))
        if signature:
            self.draft.thought("", starts=True)
            self.draft.sign(signature)

    def _usage(self, usage: Mapping[str, object]) -> None:
        """Thoughts are counted beside the answer, and what tools read beside the prompt."""
        self._counts.update({name: value for name, value in usage.items() if value is not None})
        if "promptTokenCount" not in self._counts:
            return
        thoughts = self._counts.get("thoughtsTokenCount", 0)
        self.draft.count(
            input=total((self._counts["promptTokenCount"], self._counts.get("toolUsePromptTokenCount", 0))),
            cached=self._counts.get("cachedContentTokenCount"),
            reasoning=thoughts,
        )
        if "candidatesTokenCount" in self._counts:
            self.draft.count(output=total((self._counts["candidatesTokenCount"], thoughts)))
