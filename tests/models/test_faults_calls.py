"""Tool calls that are broken, cut, doubled or too many, refusals, and usage that cannot be: all end as values."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from models.provider_socket import provider, streamed
from models.wire_scripts import ASK, SCRIPTS, Said, answer_of, asking, events_of, failure_of, sse

from pawl.core import errors
from pawl.core.dialogue import Sampling, StopReason, Usage
from pawl.models.calls import MOST_CALLS, CallBook, parsed_arguments
from pawl.models.providers import Wire

WITH_TEXT = (Wire.OPENAI, Wire.ANTHROPIC)
"""The formats that send arguments as text; Gemini sends them as JSON."""
USAGE = {"input": 100, "output": 20, "cached": 0, "reasoning": 0}


def answered(wire: Wire, said: Said, **fields: object):
    with provider(streamed(*SCRIPTS[wire](said))) as server, asking(server, wire) as model:
        return answer_of(model, replace(ASK, **fields))


@pytest.mark.fault("P13")
@pytest.mark.parametrize("wire", WITH_TEXT)
@pytest.mark.parametrize("raw", ['{"path": ', "{'path': 'a'}", '{"path": "a"}}', "path=a", '{"n": NaN}', "[" * 9_999])
def test_p13_arguments_that_are_no_json_are_a_mistake_of_that_call_alone(wire: Wire, raw: str):
    said = Said(calls=(("p1", "read", raw), ("p2", "read", '{"path": "b"}')), stop="calls")
    answer = answered(wire, said)
    broken, fine = answer.calls
    assert (broken.id, broken.arguments, broken.raw) == ("call_1", None, raw)
    assert "not JSON" in broken.mistake
    assert (fine.arguments, fine.mistake) == ({"path": "b"}, "")
    assert answer.stop is StopReason.CALLS


@pytest.mark.fault("P13")
@pytest.mark.parametrize("wire", Wire)
def test_p13_a_broken_call_goes_back_as_an_empty_one(wire: Wire):
    answer = answered(Wire.OPENAI, Said(calls=(("p", "read", "{"),), stop="calls"))
    ok = streamed(*SCRIPTS[wire](Said(text=("ok",))))
    with provider(ok) as server, asking(server, wire) as model:
        answer_of(model, replace(ASK, messages=(*ASK.messages, answer.message)))
    body = server.requests[0].body
    assert b'"arguments":"{}"' in body or b'"input":{}' in body or b'"args":{}' in body


@pytest.mark.fault("P14")
@pytest.mark.parametrize("wire", WITH_TEXT)
@pytest.mark.parametrize(("stop", "output"), [("length", 20), ("calls", 50)], ids=["said", "not said"])
def test_p14_a_call_that_the_limit_cut_off_is_no_call(wire: Wire, stop: str, output: int):
    said = Said(calls=(("p", "read", '{"path": "a'),), stop=stop, usage={**USAGE, "output": output})
    answer = answered(wire, said, sampling=Sampling(max_output=50))
    assert answer.stop is StopReason.LENGTH
    assert answer.calls[0].arguments is None
    assert "cut off" in answer.calls[0].mistake


@pytest.mark.fault("P14")
@pytest.mark.parametrize("wire", WITH_TEXT)
def test_p14_a_call_that_is_cut_off_before_its_arguments_is_no_call(wire: Wire):
    said = Said(calls=(("p1", "read", '{"path": "a"}'), ("p2", "read", "")), stop="length")
    answer = answered(wire, said)
    assert answer.stop is StopReason.LENGTH
    assert [call.arguments for call in answer.calls] == [{"path": "a"}, None]


@pytest.mark.fault("P14")
@pytest.mark.parametrize("wire", Wire)
def test_p14_text_that_the_limit_cut_off_says_so(wire: Wire):
    assert answered(wire, Said(text=("half a sen",), stop="length")).stop is StopReason.LENGTH


@pytest.mark.fault("P15")
@pytest.mark.parametrize("wire", WITH_TEXT)
@pytest.mark.parametrize(
    ("raw", "kind"), [('"a"', "a text"), ("[1]", "a list"), ("3", "a number"), ("null", "null"), ("true", "a boolean")]
)
def test_p15_arguments_of_another_kind_are_named(wire: Wire, raw: str, kind: str):
    call = answered(wire, Said(calls=(("p", "read", raw),), stop="calls")).calls[0]
    assert (call.arguments, call.mistake) == (None, f"the arguments must be a JSON object, not {kind}")


@pytest.mark.fault("P15")
@pytest.mark.parametrize("args", [[1], "a", 3])
def test_p15_gemini_arguments_of_another_kind_are_named(args: object):
    part = {"functionCall": {"name": "read", "args": args}}
    body = sse({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    with provider(streamed(body)) as server, asking(server, Wire.GEMINI) as model:
        assert "must be a JSON object" in answer_of(model).calls[0].mistake


@pytest.mark.fault("P15")
@pytest.mark.parametrize("wire", WITH_TEXT)
def test_p15_no_arguments_are_none(wire: Wire):
    assert answered(wire, Said(calls=(("p", "read", ""),), stop="calls")).calls[0].arguments == {}


@pytest.mark.fault("P16")
@pytest.mark.parametrize("wire", Wire)
@pytest.mark.parametrize("name", ["", "Read", "functions.read", "no_such_tool"])
def test_p16_a_name_is_kept_as_it_came(wire: Wire, name: str):
    assert answered(wire, Said(calls=(("p", name, "{}"),), stop="calls")).calls[0].name == name


def piece(index: object, call_id: object, name: object, arguments: object) -> dict:
    entry: dict[str, object] = {"function": {"name": name, "arguments": arguments}}
    if index != "none":
        entry["index"] = index
    if call_id != "none":
        entry["id"] = call_id
    return entry


WANTED = [("read", {"path": "a"}), ("write", {"path": "b"})]
A1, A2, B1, B2 = '{"path"', ': "a"}', '{"path"', ': "b"}'
WAYS = {
    "as documented": [
        *((0, "x", "read", ""), (0, "none", None, A1), (0, "none", None, A2)),
        *((1, "y", "write", ""), (1, "none", None, B1), (1, "none", None, B2)),
    ],
    "the id with every piece": [(0, "x", "read", A1), (0, "x", "", A2), (1, "y", "write", B1), (1, "y", "", B2)],
    "id and name with every piece": [
        *((0, "x", "read", A1), (0, "x", "read", A2)),
        *((1, "y", "write", B1), (1, "y", "write", B2), (1, "y", "write", "")),
    ],
    "one id for both": [(0, "x", "read", A1), (0, "x", "", A2), (1, "x", "write", B1), (1, "x", "", B2)],
    "empty ids": [(0, "", "read", A1), (0, "", "", A2), (1, "", "write", B1), (1, "", "", B2)],
    "null ids": [(0, None, "read", A1), (0, None, None, A2), (1, None, "write", B1), (1, None, None, B2)],
    "index always 0": [(0, "x", "read", A1), (0, "none", None, A2), (0, "y", "write", B1), (0, "none", None, B2)],
    "index always 0 and one id": [(0, "x", "read", A1 + A2), (0, "x", "write", B1 + B2)],
    "index always 0 and no ids": [(0, "", "read", A1), (0, "", "", A2), (0, "", "write", B1), (0, "", "", B2)],
    "no index": [("none", "x", "read", A1), ("none", "x", "", A2), ("none", "y", "write", B1), ("none", "y", "", B2)],
    "no index and no ids": [("none", "", "read", A1), ("none", "", "", A2), ("none", "", "write", B1 + B2)],
    "null index": [(None, "x", "read", A1 + A2), (None, "y", "write", B1 + B2)],
    "interleaved": [(0, "x", "read", A1), (1, "y", "write", B1), (1, "none", None, B2), (0, "none", None, A2)],
    "interleaved, one id": [(0, "x", "read", A1), (1, "x", "write", B1), (1, "x", None, B2), (0, "x", None, A2)],
    "a name in pieces": [
        (0, "x", "re", ""),
        (0, "none", "ad", ""),
        (0, "none", None, A1 + A2),
        (1, "y", "write", B1 + B2),
    ],
    "objects for arguments": [(0, "x", "read", {"path": "a"}), (1, "y", "write", {"path": "b"})],
}


@pytest.mark.fault("P17")
@pytest.mark.parametrize("pieces", WAYS.values(), ids=WAYS)
def test_p17_two_calls_stay_two_however_they_are_marked(pieces: list[tuple]):
    events = [sse({"choices": [{"delta": {"tool_calls": [piece(*one)]}}]}) for one in pieces]
    ending = SCRIPTS[Wire.OPENAI](Said(stop="calls"))[-3:]
    with provider(streamed(*events, *ending)) as server, asking(server) as model:
        answer = answer_of(model)
    assert [(call.name, call.arguments) for call in answer.calls] == WANTED
    assert [call.id for call in answer.calls] == ["call_1", "call_2"]


@pytest.mark.fault("P17")
def test_p17_two_calls_in_one_piece_stay_two():
    both = [piece("none", "", "read", A1 + A2), piece("none", "", "write", B1 + B2)]
    events = [sse({"choices": [{"delta": {"tool_calls": both}}]}), *SCRIPTS[Wire.OPENAI](Said(stop="calls"))[-3:]]
    with provider(streamed(*events)) as server, asking(server) as model:
        assert [(call.name, call.arguments) for call in answer_of(model).calls] == WANTED


@pytest.mark.fault("P17")
def test_p17_calls_without_arguments_are_told_apart_by_what_was_offered():
    book = CallBook(["read", "list"])
    for name in ("read", "list"):
        book.piece(0, provider_id="", name=name, arguments="")
    assert [call.name for call in book] == ["read", "list"]


@pytest.mark.fault("P17")
@pytest.mark.parametrize("wire", Wire)
def test_p17_doubled_ids_of_a_provider_are_two_calls(wire: Wire):
    said = Said(calls=(("same", "read", '{"path": "a"}'), ("same", "read", '{"path": "b"}')), stop="calls")
    calls = answered(wire, said).calls
    assert [(call.id, call.arguments) for call in calls] == [("call_1", {"path": "a"}), ("call_2", {"path": "b"})]


@pytest.mark.fault("P18")
@pytest.mark.parametrize("wire", Wire)
def test_p18_calls_above_the_limit_are_left_out_and_the_model_is_told(wire: Wire):
    said = Said(calls=tuple((f"p{number}", "read", f'{{"path": "{number}"}}') for number in range(200)), stop="calls")
    calls = answered(wire, said).calls
    assert len(calls) == MOST_CALLS
    assert [call.arguments for call in calls[:-1]] == [{"path": str(number)} for number in range(MOST_CALLS - 1)]
    assert calls[-1].arguments is None
    assert "asked for 200 calls and at most 64 are taken" in calls[-1].mistake
    assert "the 136 after it" in calls[-1].mistake


@pytest.mark.fault("P19")
@pytest.mark.parametrize("wire", Wire)
def test_p19_a_refusal_is_shown_as_such_and_asks_for_nothing(wire: Wire):
    said = Said(text=("I can",), calls=(("p", "read", "{}"),), stop="refused")
    with provider(streamed(*SCRIPTS[wire](said))) as server, asking(server, wire) as model:
        answer = answer_of(model)
    assert (answer.text, answer.calls, answer.stop) == ("I can", (), StopReason.REFUSED)
    assert len(server.requests) == 1


@pytest.mark.fault("P19")
def test_p19_the_words_of_a_refusal_are_its_text():
    refusing = sse({"choices": [{"delta": {"refusal": "I will not."}}]})
    events = [refusing, *SCRIPTS[Wire.OPENAI](Said())[-3:]]
    with provider(streamed(*events)) as server, asking(server) as model:
        answer = answer_of(model)
    assert (answer.text, answer.stop) == ("I will not.", StopReason.REFUSED)


@pytest.mark.fault("P19")
def test_p19_a_prompt_that_gemini_blocks_is_a_refusal():
    body = sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}})
    with provider(streamed(body)) as server, asking(server, Wire.GEMINI) as model:
        assert answer_of(model).stop is StopReason.REFUSED


@pytest.mark.fault("P19")
@pytest.mark.parametrize("wire", Wire)
def test_p19_an_empty_answer_is_one_and_leaves_the_history_valid(wire: Wire):
    script = SCRIPTS[wire]
    with (
        provider(streamed(*script(Said())), streamed(*script(Said(text=("ok",)), answer_id="n"))) as server,
        asking(server, wire) as model,
    ):
        answer = answer_of(model)
        assert (answer.text, answer.calls, answer.stop) == ("", (), StopReason.END)
        assert answer_of(model, replace(ASK, messages=(*ASK.messages, answer.message))).text == "ok"
    first, second = (seen.json for seen in server.requests)
    assert first == second, "a turn that says nothing is not sent"


@pytest.mark.fault("P19")
def test_p19_a_call_that_gemini_could_not_read_is_tried_again():
    broken = sse({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})
    with provider(*[streamed(broken)] * 5) as server, asking(server, Wire.GEMINI) as model:
        assert isinstance(failure_of(model), errors.AnswerInterrupted)
    assert len(server.requests) == 5


IMPOSSIBLE = [-1, 10**11, 1e300, "many", True, None, [1]]


@pytest.mark.fault("P26")
@pytest.mark.parametrize("wire", Wire)
@pytest.mark.parametrize("field", ["input", "output"])
@pytest.mark.parametrize("value", IMPOSSIBLE, ids=map(str, IMPOSSIBLE))
def test_p26_usage_that_cannot_be_is_estimated(wire: Wire, field: str, value: object):
    events = SCRIPTS[wire](Said(text=("x" * 400,), usage={"input": 11, "output": 22, "cached": 0, "reasoning": 0}))
    number = b"11" if field == "input" else b"22"
    changed = [event.replace(b": " + number, b": " + json.dumps(value).encode()) for event in events]
    with provider(streamed(*changed)) as server, asking(server, wire) as model:
        usage = answer_of(model).usage
    assert (usage.input > 0, usage.output, usage.estimated) == (True, 100, True)


@pytest.mark.fault("P26")
@pytest.mark.parametrize("wire", Wire)
def test_p26_missing_usage_is_estimated_from_everything_that_was_said(wire: Wire):
    said = Said(text=("x" * 40,), thoughts=("y" * 40,), calls=(("p", "read", '{"path":"0123456789"}'),), usage=None)
    usage = answered(wire, replace(said, stop="calls")).usage
    assert usage.estimated
    assert usage.output >= -(-(80 + len('{"path":"0123456789"}') + len("read")) // 4)


@pytest.mark.fault("P26")
def test_p26_a_cache_that_is_larger_than_the_prompt_is_cut():
    said = Said(text=("x",), usage={"input": 10, "output": 5, "cached": 99, "reasoning": 99})
    assert answered(Wire.OPENAI, said).usage == Usage(input=10, output=5, cached=10, reasoning=5)


@pytest.mark.fault("P26")
def test_p26_usage_in_every_chunk_counts_once():
    events = SCRIPTS[Wire.OPENAI](Said(text=("a", "b")))
    counting = sse({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}})
    with provider(streamed(counting, counting, *events)) as server, asking(server) as model:
        usage = events_of(model)[-1].answer.usage
    assert (usage.input, usage.output) == (100, 20)


@pytest.mark.fault("P13")
def test_p13_numbers_without_end_are_a_mistake():
    arguments, mistake = parsed_arguments('{"n": ' + "9" * 5000 + "}")
    assert arguments is None
    assert mistake
