"""What is put on the wire in each format: turns, tools, schemas, reasoning, sampling, cache marks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from models.wire_scripts import ASK, KEY, READ

from pawl.core.dialogue import (
    Message,
    Request,
    Sampling,
    Speaker,
    Thought,
    ToolAnswer,
    ToolCall,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import ConfigError, NotAuthorized
from pawl.core.run import Reasoning
from pawl.models.providers import Endpoint, Quirks, ReasoningSwitch, SchemaCarrier, Wire, quirks_of
from pawl.models.wire import anthropic, gemini, openai

ENCODE = {Wire.OPENAI: openai.encode, Wire.ANTHROPIC: anthropic.encode, Wire.GEMINI: gemini.encode}
BASES = {
    Wire.OPENAI: "https://api.test/v1",
    Wire.ANTHROPIC: "https://api.test",
    Wire.GEMINI: "https://api.test",
}
SAMPLING = Sampling(temperature=0.1, top_p=0.95, max_output=64, stop=("END",), seed=7)
TALK = Request(
    model="test/m",
    system=("You are Pawl.", "", "Be brief."),
    messages=(
        user("read a"),
        Message(
            speaker=Speaker.ASSISTANT,
            text="Reading.",
            thoughts=(Thought(text="hm", signature="anthropic:s1"), Thought(text="", signature="gemini:s2")),
            calls=(
                ToolCall(id="call_1", name="read", arguments={"path": "a"}, provider_id="p1", signature="gemini:s3"),
                ToolCall(id="call_2", name="re ad", arguments=None, raw="{", mistake="not JSON"),
            ),
        ),
        tool_answers(
            ToolAnswer(call="call_1", name="read", text="A"),
            ToolAnswer(call="call_2", name="re ad", text="not JSON", failed=True),
        ),
        user("go on"),
    ),
    tools=(READ,),
    sampling=SAMPLING,
    reasoning=Reasoning.OFF,
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def sent(wire: Wire, request: Request, **quirks: object) -> dict:
    return json.loads(bytes_of(wire, request, **quirks))


def bytes_of(wire: Wire, request: Request, **quirks: object) -> bytes:
    endpoint = Endpoint(wire=wire, base_url=BASES[wire], key=KEY, name="m", provider="test", quirks=Quirks(**quirks))
    return ENCODE[wire](request, endpoint).body


@pytest.mark.spec("E9")
def test_openai_gets_the_whole_request():
    assert sent(Wire.OPENAI, TALK) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You are Pawl.\n\nBe brief."},
            {"role": "user", "content": "read a"},
            {
                "role": "assistant",
                "content": "Reading.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "re_ad", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "A"},
            {"role": "tool", "tool_call_id": "call_2", "content": "not JSON"},
            {"role": "user", "content": "go on"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads a file.", "parameters": READ.input_schema},
            }
        ],
        "max_tokens": 64,
        "temperature": 0.1,
        "top_p": 0.95,
        "stop": ["END"],
        "seed": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.spec("E9")
def test_anthropic_gets_the_whole_request_with_its_cache_marks():
    mark = {"type": "ephemeral"}
    assert sent(Wire.ANTHROPIC, TALK) == {
        "model": "m",
        "max_tokens": 64,
        "tools": [
            {
                "name": "read",
                "description": "Reads a file.",
                "input_schema": READ.input_schema,
                "cache_control": mark,
            }
        ],
        "system": [
            {"type": "text", "text": "You are Pawl."},
            {"type": "text", "text": "Be brief.", "cache_control": mark},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "read a", "cache_control": mark}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "call_2", "name": "re_ad", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "A"},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": "not JSON", "is_error": True},
                    {"type": "text", "text": "go on", "cache_control": mark},
                ],
            },
        ],
        "temperature": 0.1,
        "top_p": 0.95,
        "stop_sequences": ["END"],
        "stream": True,
    }


@pytest.mark.spec("E9")
def test_gemini_gets_the_whole_request():
    assert sent(Wire.GEMINI, TALK) == {
        "systemInstruction": {"parts": [{"text": "You are Pawl."}, {"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Reads a file.", "parametersJsonSchema": READ.input_schema}
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "read a"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Reading.", "thoughtSignature": "s2"},
                    {
                        "functionCall": {"id": "p1", "name": "read", "args": {"path": "a"}},
                        "thoughtSignature": "s3",
                    },
                    {"functionCall": {"name": "re_ad", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "p1", "name": "read", "response": {"output": "A"}}},
                    {"functionResponse": {"name": "re_ad", "response": {"error": "not JSON"}}},
                    {"text": "go on"},
                ],
            },
        ],
        "generationConfig": {
            "maxOutputTokens": 64,
            "temperature": 0.1,
            "topP": 0.95,
            "stopSequences": ["END"],
            "seed": 7,
            "thinkingConfig": {"thinkingBudget": 0},
        },
    }


@pytest.mark.spec("E9")
@pytest.mark.parametrize(
    ("wire", "base", "url", "header"),
    [
        (Wire.OPENAI, "https://h/v1/", "https://h/v1/chat/completions", "authorization"),
        (Wire.ANTHROPIC, "https://h", "https://h/v1/messages", "x-api-key"),
        (Wire.ANTHROPIC, "https://h/v1", "https://h/v1/messages", "x-api-key"),
        (Wire.GEMINI, "https://h", "https://h/v1beta/models/m%2Fx:streamGenerateContent?alt=sse", "x-goog-api-key"),
        (Wire.GEMINI, "https://h/v1", "https://h/v1/models/m%2Fx:streamGenerateContent?alt=sse", "x-goog-api-key"),
    ],
)
def test_the_address_and_the_key_are_where_the_format_wants_them(wire: Wire, base: str, url: str, header: str):
    endpoint = Endpoint(wire=wire, base_url=base, key=KEY, name="m/x", provider="p")
    request = ENCODE[wire](ASK, endpoint)
    assert request.url == url
    assert request.headers[header].endswith(KEY)
    assert KEY not in repr(request) + repr(endpoint)
    assert header not in ENCODE[wire](ASK, replace(endpoint, key="")).headers


@pytest.mark.spec("E9")
@pytest.mark.parametrize("wire", Wire)
def test_a_longer_conversation_starts_with_the_same_bytes(wire: Wire):
    longer = replace(TALK, messages=(*TALK.messages, assistant("Done."), user("thanks")))
    marks = {"cache_marks": False}
    turns = "contents" if wire is Wire.GEMINI else "messages"
    short = [json.dumps(turn) for turn in sent(wire, TALK, **marks)[turns]]
    assert [json.dumps(turn) for turn in sent(wire, longer, **marks)[turns]][: len(short)] == short
    start = bytes_of(wire, TALK, **marks).index(b"go on")
    assert bytes_of(wire, longer, **marks)[:start] == bytes_of(wire, TALK, **marks)[:start]
    assert bytes_of(wire, TALK) == bytes_of(wire, TALK)


@pytest.mark.spec("E9")
def test_anthropic_marks_the_last_two_user_turns_and_no_more_than_it_may():
    turns = tuple(turn for number in range(5) for turn in (user(f"u{number}"), assistant("a")))
    body = sent(Wire.ANTHROPIC, replace(TALK, messages=turns))
    marked = [turn["content"][0]["text"] for turn in body["messages"] if "cache_control" in turn["content"][-1]]
    assert marked == ["u3", "u4"]
    assert json.dumps(body).count("cache_control") == 4


@pytest.mark.spec("E9")
@pytest.mark.parametrize(
    ("wire", "quirks", "on", "off"),
    [
        (Wire.OPENAI, {}, {}, {}),
        (Wire.OPENAI, {"reasoning": ReasoningSwitch.EFFORT}, {"reasoning_effort": "medium"}, {}),
        (
            Wire.OPENAI,
            {"reasoning": ReasoningSwitch.EFFORT, "reasoning_on": "high", "reasoning_off": "none"},
            {"reasoning_effort": "high"},
            {"reasoning_effort": "none"},
        ),
        (
            Wire.OPENAI,
            {"reasoning": ReasoningSwitch.OBJECT},
            {"reasoning": {"enabled": True}},
            {"reasoning": {"enabled": False}},
        ),
        (
            Wire.OPENAI,
            {"reasoning": ReasoningSwitch.TEMPLATE},
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        (
            Wire.ANTHROPIC,
            {"reasoning_budget": 1000},
            {"thinking": {"type": "enabled", "budget_tokens": 1000}, "max_tokens": 5096},
            {"max_tokens": 4096, "temperature": 0.1, "top_p": 0.95},
        ),
        (
            Wire.ANTHROPIC,
            {"reasoning": ReasoningSwitch.ADAPTIVE},
            {"thinking": {"type": "adaptive"}},
            {"max_tokens": 4096, "temperature": 0.1, "top_p": 0.95},
        ),
        (Wire.ANTHROPIC, {"reasoning": ReasoningSwitch.NONE}, {"max_tokens": 4096}, {"max_tokens": 4096}),
    ],
)
def test_reasoning_is_switched_as_the_server_wants_it(wire: Wire, quirks: dict, on: dict, off: dict):
    switched = {"reasoning_effort", "reasoning", "chat_template_kwargs", "thinking"}
    for reasoning, expected in ((Reasoning.ON, on), (Reasoning.OFF, off)):
        body = sent(wire, replace(ASK, reasoning=reasoning), **quirks)
        assert {name: body[name] for name in expected} == expected
        assert not (switched & set(body)) - set(expected)


@pytest.mark.spec("E9")
def test_gemini_thinks_or_not():
    on = sent(Wire.GEMINI, ASK)["generationConfig"]
    assert on["thinkingConfig"] == {"thinkingBudget": 4096, "includeThoughts": True}
    assert on["maxOutputTokens"] == 8192
    low = sent(Wire.GEMINI, TALK, reasoning_off="low")["generationConfig"]
    assert low["thinkingConfig"] == {"thinkingLevel": "low"}
    little = sent(Wire.GEMINI, TALK, reasoning_off="128")["generationConfig"]
    assert little["thinkingConfig"] == {"thinkingBudget": 128}
    assert "thinkingConfig" not in sent(Wire.GEMINI, ASK, reasoning=ReasoningSwitch.NONE)["generationConfig"]


@pytest.mark.spec("E9")
def test_thoughts_go_back_to_the_format_that_signed_them_only():
    looping = replace(TALK, messages=TALK.messages[:3], reasoning=Reasoning.ON)
    body = sent(Wire.ANTHROPIC, looping)
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "s1"}
    assert b"s2" not in bytes_of(Wire.ANTHROPIC, looping)
    assert b"s1" not in bytes_of(Wire.GEMINI, looping) + bytes_of(Wire.OPENAI, looping)
    assert b"hm" not in bytes_of(Wire.GEMINI, looping) + bytes_of(Wire.OPENAI, looping, thought_field="reasoning")


@pytest.mark.spec("E9")
def test_anthropic_does_not_think_between_calls_that_came_without_thoughts():
    bare = replace(TALK.messages[1], thoughts=())
    body = sent(Wire.ANTHROPIC, replace(TALK, messages=(user("a"), bare, TALK.messages[2]), reasoning=Reasoning.ON))
    assert "thinking" not in body


@pytest.mark.spec("E9")
def test_redacted_thoughts_go_back_as_they_came():
    hidden = replace(TALK.messages[1], thoughts=(Thought(text="", signature="anthropic:redacted:xyz"),))
    body = sent(Wire.ANTHROPIC, replace(TALK, messages=(user("a"), hidden, TALK.messages[2]), reasoning=Reasoning.ON))
    assert body["messages"][1]["content"][0] == {"type": "redacted_thinking", "data": "xyz"}


@pytest.mark.spec("E9")
def test_reasoning_goes_back_where_the_server_wants_it():
    said = Message(speaker=Speaker.ASSISTANT, text="a", thoughts=(Thought(text="hm"),))
    request = replace(ASK, messages=(user("x"), said, user("y")))
    assert sent(Wire.OPENAI, request, thought_field="reasoning_content")["messages"][2]["reasoning_content"] == "hm"
    assert b"hm" not in bytes_of(Wire.OPENAI, request)


@pytest.mark.spec("E9")
@pytest.mark.parametrize(
    ("wire", "carrier", "field", "value"),
    [
        (
            Wire.OPENAI,
            SchemaCarrier.NATIVE,
            "response_format",
            {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
        ),
        (Wire.OPENAI, SchemaCarrier.JSON_OBJECT, "response_format", {"type": "json_object"}),
        (
            Wire.OPENAI,
            SchemaCarrier.TOOL,
            "tool_choice",
            {"type": "function", "function": {"name": "answer"}},
        ),
        (Wire.ANTHROPIC, SchemaCarrier.NATIVE, "tool_choice", {"type": "tool", "name": "answer"}),
    ],
)
def test_a_schema_goes_where_the_server_reads_it(wire: Wire, carrier: SchemaCarrier, field: str, value: object):
    request = replace(TALK, tools=(), answer_schema=SCHEMA)
    body = sent(wire, request, schema=carrier)
    assert body[field] == value
    assert (b"fits this JSON schema" in bytes_of(wire, request, schema=carrier)) == (
        carrier is SchemaCarrier.JSON_OBJECT
    )


@pytest.mark.spec("E9")
def test_with_other_tools_the_answer_is_one_of_them():
    request = replace(TALK, answer_schema=SCHEMA)
    body = sent(Wire.ANTHROPIC, request)
    assert [tool["name"] for tool in body["tools"]] == ["read", "answer"]
    assert body["tool_choice"] == {"type": "any"}
    assert sent(Wire.OPENAI, request, schema=SchemaCarrier.TOOL)["tool_choice"] == "required"


@pytest.mark.spec("E9")
def test_a_schema_that_is_not_closed_is_not_called_strict():
    open_schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    body = sent(Wire.OPENAI, replace(ASK, answer_schema=open_schema))
    assert body["response_format"]["json_schema"]["strict"] is False


@pytest.mark.spec("E9")
def test_gemini_gets_the_subset_of_schemas_that_it_reads():
    request = replace(TALK, answer_schema={"$schema": "x", **SCHEMA})
    config = sent(Wire.GEMINI, request)["generationConfig"]
    assert config["responseJsonSchema"] == request.answer_schema
    body = sent(Wire.GEMINI, request, schema=SchemaCarrier.RESPONSE_SCHEMA)
    assert body["generationConfig"]["responseSchema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    }
    assert body["generationConfig"]["responseMimeType"] == "application/json"
    assert "parameters" in body["tools"][0]["functionDeclarations"][0]


@pytest.mark.spec("A10")
def test_what_a_server_does_not_take_is_left_out():
    body = sent(
        Wire.OPENAI,
        TALK,
        max_tokens_field="max_completion_tokens",
        temperature=False,
        top_p=False,
        seed=False,
        stop=False,
        stream_options=False,
    )
    assert body["max_completion_tokens"] == 64
    assert not {"max_tokens", "temperature", "top_p", "seed", "stop", "stream_options"} & set(body)
    assert sent(Wire.OPENAI, TALK, seed_field="random_seed")["random_seed"] == 7


@pytest.mark.fault("P10")
@pytest.mark.parametrize("wire", Wire)
def test_p10_half_characters_in_our_own_text_do_not_stop_a_request(wire: Wire):
    assert b"a?b" in bytes_of(wire, replace(ASK, messages=(user("a\ud800b"),)))


@pytest.mark.spec("E9")
def test_quirks_come_from_a_table():
    table = {"max_tokens_field": "max_completion_tokens", "reasoning": "effort", "schema": "tool", "seed": False}
    assert quirks_of(table) == Quirks(
        max_tokens_field="max_completion_tokens",
        reasoning=ReasoningSwitch.EFFORT,
        schema=SchemaCarrier.TOOL,
        seed=False,
    )
    with pytest.raises(ConfigError) as caught:
        quirks_of({"reasonin": "effort", "seed": "no"})
    assert all(part in caught.value.message for part in ("quirks.seed", "quirks.reasonin "))


@pytest.mark.spec("E9")
@pytest.mark.parametrize("key", ["sk-abc\n", "sk-äbc", "sk abc"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str):
    with pytest.raises(NotAuthorized) as refused:
        Endpoint(wire=Wire.OPENAI, base_url="http://x", name="m", provider="p", key=key)
    assert "abc" not in str(refused.value) + refused.value.advice
