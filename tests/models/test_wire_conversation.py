"""The same conversation through each wire format gives the same events, the same answer and the same usage."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from models.provider_socket import PATIENCE, provider, streamed, whole
from models.wire_scripts import ASK, SCRIPTS, Said, answer_of, asking, events_of

from pawl.core.dialogue import (
    Answered,
    Sampling,
    StopReason,
    TextDelta,
    Thought,
    ThoughtDelta,
    ToolAnswer,
    ToolCall,
    Usage,
    assistant,
    tool_answers,
    user,
)
from pawl.models.providers import Quirks, SchemaCarrier, Wire

pytestmark = pytest.mark.spec("E9")

FIRST = Said(
    text=("Let me ", "look."),
    thoughts=("hm", "m"),
    calls=(("p1", "read", '{"path": "a.py"}'), ("p2", "read", '{"path": "b.py"}')),
    stop="calls",
)
SECOND = Said(text=("Both are ", "empty ✓."))
USAGE = Usage(input=100, output=20, cached=40, reasoning=5)


@pytest.mark.parametrize("wire", Wire)
def test_a_conversation_is_the_same_in_every_format(wire: Wire):
    script = SCRIPTS[wire]
    with (
        provider(streamed(*script(FIRST)), streamed(*script(SECOND, answer_id="other"))) as server,
        asking(server, wire) as model,
    ):
        first = events_of(model)
        answer = first[-1].answer
        answers = tool_answers(*(ToolAnswer(call=call.id, name="read", text="") for call in answer.calls))
        second = events_of(model, replace(ASK, messages=(*ASK.messages, answer.message, answers)))

    assert first[:-1] == [ThoughtDelta("hm"), ThoughtDelta("m"), TextDelta("Let me "), TextDelta("look.")]
    plain = [replace(call, raw="", signature="") for call in answer.calls]
    assert plain == [
        ToolCall(id="call_1", name="read", arguments={"path": "a.py"}, provider_id="p1"),
        ToolCall(id="call_2", name="read", arguments={"path": "b.py"}, provider_id="p2"),
    ]
    assert [thought.text for thought in answer.thoughts] == ["hmm"]
    counted = USAGE if wire is not Wire.ANTHROPIC else replace(USAGE, reasoning=0)
    assert (answer.text, answer.stop, answer.usage) == ("Let me look.", StopReason.CALLS, counted)
    assert (answer.model, answer.served_by, answer.cost, answer.attempts) == ("test/m", "served", None, 1)
    assert answer.first_token_seconds is not None and 0 <= answer.first_token_seconds <= answer.seconds
    assert second[:-1] == [TextDelta("Both are "), TextDelta("empty ✓.")]
    assert isinstance(second[-1], Answered)
    assert second[-1].answer.stop is StopReason.END
    assert server.connections == 1, "the connection is kept for the next request"


@pytest.mark.parametrize("wire", Wire)
def test_calls_of_later_turns_have_ids_of_their_own(wire: Wire):
    history = (
        user("hi"),
        assistant("", ToolCall(id="call_7", name="read", arguments={})),
        tool_answers(ToolAnswer(call="call_7", name="read", text="x")),
    )
    script = streamed(*SCRIPTS[wire](Said(calls=(("p", "read", "{}"),), stop="calls")))
    with provider(script, script) as server, asking(server, wire) as model:
        request = replace(ASK, messages=history)
        assert [call.id for call in answer_of(model, request).calls] == ["call_8"]
        assert [call.id for call in answer_of(model, request).calls] == ["call_8"]


SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("wire", "quirks", "said"),
    [
        (Wire.OPENAI, Quirks(), Said(text=('{"ok"', ":true}"))),
        (Wire.OPENAI, Quirks(schema=SchemaCarrier.TOOL), Said(calls=(("p", "answer", '{"ok":true}'),), stop="calls")),
        (Wire.ANTHROPIC, Quirks(), Said(calls=(("p", "answer", '{"ok":true}'),), stop="calls")),
        (Wire.GEMINI, Quirks(), Said(text=('{"ok"', ":true}"))),
        (Wire.GEMINI, Quirks(schema=SchemaCarrier.RESPONSE_SCHEMA), Said(text=('{"ok"', ":true}"))),
    ],
)
def test_an_answer_by_a_schema_is_the_text_in_every_format(wire: Wire, quirks: Quirks, said: Said):
    request = replace(ASK, tools=(), answer_schema=SCHEMA)
    with provider(streamed(*SCRIPTS[wire](said))) as server, asking(server, wire, quirks=quirks) as model:
        events = events_of(model, request)
    answer = events[-1].answer
    assert (answer.text, answer.calls, answer.stop) == ('{"ok":true}', (), StopReason.END)
    assert "".join(event.text for event in events[:-1] if isinstance(event, TextDelta)) == answer.text


@pytest.mark.parametrize(
    ("wire", "reason", "stop"),
    [
        (Wire.ANTHROPIC, "stop_sequence", StopReason.SEQUENCE),
        (Wire.ANTHROPIC, "refusal", StopReason.REFUSED),
        (Wire.ANTHROPIC, "something new", StopReason.END),
    ],
)
def test_a_reason_to_stop_has_one_name(wire: Wire, reason: str, stop: StopReason):
    events = [event.replace(b'"end_turn"', f'"{reason}"'.encode()) for event in SCRIPTS[wire](SECOND)]
    with provider(streamed(*events)) as server, asking(server, wire) as model:
        assert answer_of(model).stop is stop


def test_anthropic_thoughts_come_with_what_they_are_sent_back_with():
    with provider(streamed(*SCRIPTS[Wire.ANTHROPIC](FIRST))) as server, asking(server, Wire.ANTHROPIC) as model:
        assert answer_of(model).thoughts == (Thought(text="hmm", signature="anthropic:sig"),)


def test_a_gemini_signature_stays_with_its_call():
    part = b'{"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "c2ln"}'
    body = b'data: {"candidates": [{"content": {"parts": [%s]}, "finishReason": "STOP"}]}\n\n' % part
    with provider(streamed(body)) as server, asking(server, Wire.GEMINI) as model:
        assert answer_of(model).calls[0].signature == "gemini:c2ln"


def test_two_threads_ask_one_model_at_the_same_time():
    both = threading.Barrier(2)
    first, *others = (SCRIPTS[Wire.OPENAI](Said(text=(text,)), answer_id=text) for text in ("one", "two", "three"))
    heard: list[str] = []

    def ask(number: int) -> None:
        heard.append(answer_of(model, replace(ASK, messages=(user(f"question {number}"),))).text)

    scripts = [[lambda _: both.wait(PATIENCE), *streamed(*events)] for events in others]
    with provider(streamed(*first), *scripts) as server, asking(server) as model:
        assert answer_of(model).text == "one"
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(heard) == ["three", "two"]


def test_a_server_that_does_not_stream_is_asked_so():
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'
    with provider([whole(body)]) as server, asking(server, quirks=Quirks(stream=False)) as model:
        assert answer_of(model, replace(ASK, sampling=Sampling(max_output=7))).text == "hi"
    assert "stream" not in server.requests[0].json


@pytest.mark.spec("E9")
def test_the_http_library_is_loaded_with_the_first_request_only():
    code = "import sys, pawl.models.router; print('httpx2' in sys.modules, 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
