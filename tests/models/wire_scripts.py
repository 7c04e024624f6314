"""The same answer in each of the three wire formats, and a model that talks to a provider on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest
from models.provider_socket import ProviderSocket

from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request, ToolOffer, user
from pawl.core.errors import PawlError
from pawl.core.run import Reasoning
from pawl.models.exchange import Transport, WireModel
from pawl.models.failures import Retries
from pawl.models.providers import Endpoint, Quirks, Timeouts, Wire

KEY = "sk-canary-0123456789abcdefghij"
READ = ToolOffer(
    name="read",
    description="Reads a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
ASK = Request(model="test/m", system=("Be brief.",), messages=(user("hi"),), tools=(READ,), reasoning=Reasoning.ON)


@dataclass(frozen=True)
class Said:
    """An answer as a script writes it. `calls` are (provider's id, name, arguments as text)."""

    text: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, str], ...] = ()
    stop: str = "end"
    usage: dict[str, int] | None = field(
        default_factory=lambda: {"input": 100, "output": 20, "cached": 40, "reasoning": 5}
    )


def sse(payload: object, name: str = "") -> bytes:
    prefix = f"event: {name}\n" if name else ""
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    if not data.isprintable():
        # Half characters can only be sent as escapes.
        data = json.dumps(payload)
    return f"{prefix}data: {data}\n\n".encode()


def openai(said: Said, *, is_done: bool = True, answer_id: str = "chatcmpl-1") -> list[bytes]:
    def delta(content: dict, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": content, "finish_reason": finish}
        return sse({"id": answer_id, "created": 1, "model": "served", "choices": [choice]})

    events = [delta({"role": "assistant", "content": ""})]
    events += [delta({"reasoning_content": piece}) for piece in said.thoughts]
    events += [delta({"content": piece}) for piece in said.text]
    for index, (call_id, name, arguments) in enumerate(said.calls):
        half = len(arguments) // 2
        first = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments[:half]}}
        events.append(delta({"tool_calls": [first]}))
        events.append(delta({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}))
    reasons = {"end": "stop", "calls": "tool_calls", "length": "length", "refused": "content_filter"}
    events.append(delta({}, reasons[said.stop]))
    if said.usage is not None:
        usage = {
            "prompt_tokens": said.usage["input"],
            "completion_tokens": said.usage["output"],
            "prompt_tokens_details": {"cached_tokens": said.usage["cached"]},
            "completion_tokens_details": {"reasoning_tokens": said.usage["reasoning"]},
        }
        events.append(sse({"id": answer_id, "choices": [], "usage": usage}))
    return [*events, sse("[DONE]")] if is_done else events


def anthropic(said: Said, *, is_done: bool = True, answer_id: str = "msg_1") -> list[bytes]:
    events: list[bytes] = []

    def event(kind: str, **fields: object) -> None:
        events.append(sse({"type": kind, **fields}, kind))

    def block(index: int, start: dict, deltas: Iterable[dict]) -> None:
        event("content_block_start", index=index, content_block=start)
        for one in deltas:
            event("content_block_delta", index=index, delta=one)
        event("content_block_stop", index=index)

    usage = said.usage
    prompt = {}
    if usage is not None:
        cached = usage["cached"]
        prompt = {"input_tokens": usage["input"] - cached, "cache_read_input_tokens": cached, "output_tokens": 1}
    event("message_start", message={"id": answer_id, "model": "served", "content": [], "usage": prompt})
    index = 0
    if said.thoughts:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in said.thoughts]
        block(index, {"type": "thinking", "thinking": ""}, [*deltas, {"type": "signature_delta", "signature": "sig"}])
        index += 1
    if said.text:
        block(index, {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in said.text])
        index += 1
    for call_id, name, arguments in said.calls:
        half = len(arguments) // 2
        pieces = [{"type": "input_json_delta", "partial_json": one} for one in (arguments[:half], arguments[half:])]
        block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, pieces)
        index += 1
    reasons = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refused": "refusal"}
    final = {} if usage is None else {"output_tokens": usage["output"]}
    event("message_delta", delta={"stop_reason": reasons[said.stop]}, usage=final)
    if is_done:
        event("message_stop")
    return events


def gemini(said: Said, *, is_done: bool = True, answer_id: str = "resp-1") -> list[bytes]:
    def response(parts: list[dict], **fields: object) -> bytes:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **fields}
        return sse({"responseId": answer_id, "modelVersion": "served", "candidates": [candidate]})

    events = [response([{"text": piece, "thought": True}]) for piece in said.thoughts]
    events += [response([{"text": piece}]) for piece in said.text]
    for call_id, name, arguments in said.calls:
        events.append(response([{"functionCall": {"id": call_id, "name": name, "args": json.loads(arguments)}}]))
    reasons = {"end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}
    if is_done:
        events.append(response([], finishReason=reasons[said.stop]))
    if said.usage is not None:
        usage = {
            "promptTokenCount": said.usage["input"],
            "cachedContentTokenCount": said.usage["cached"],
            "candidatesTokenCount": said.usage["output"] - said.usage["reasoning"],
            "thoughtsTokenCount": said.usage["reasoning"],
        }
        events.append(sse({"usageMetadata": usage}))
    return events


SCRIPTS: dict[Wire, Callable[..., list[bytes]]] = {
    Wire.OPENAI: openai,
    Wire.ANTHROPIC: anthropic,
    Wire.GEMINI: gemini,
}


class Waits:
    """Waits that take no time and are remembered."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def patient(waits: Waits | None = None, **fields: object) -> Retries:
    return replace(Retries(wait=waits or Waits(), random=lambda: 1.0), **fields)


ONCE = patient(tries=1)


@contextmanager
def asking(
    source: ProviderSocket | str,
    wire: Wire = Wire.OPENAI,
    *,
    quirks: Quirks | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
) -> Iterator[WireModel]:
    """A model at the provider; retries wait no time unless told."""
    url = source if isinstance(source, str) else source.url
    endpoint = Endpoint(wire=wire, base_url=url, key=KEY, name="m", provider="test", quirks=quirks or Quirks())
    with Transport() as transport:
        yield WireModel(endpoint, transport, timeouts=timeouts, retries=retries or patient())


def events_of(model: WireModel, request: Request = ASK, **fields: object) -> list[ModelEvent]:
    return list(model.stream(request, **fields))


def answer_of(model: WireModel, request: Request = ASK, **fields: object) -> ModelResponse:
    last = events_of(model, request, **fields)[-1]
    assert isinstance(last, Answered)
    return last.answer


def failure_of(model: WireModel, request: Request = ASK, **fields: object) -> PawlError:
    """The error that the request ends with."""
    with pytest.raises(PawlError) as raised:
        events_of(model, request, **fields)
    return raised.value
