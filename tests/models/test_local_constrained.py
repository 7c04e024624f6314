"""Tool calls by schema, over a model that is played by hand."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.dialogue import (
    Answered,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    Sampling,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolAnswer,
    ToolCall,
    ToolOffer,
    Usage,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import AnswerUnusable
from pawl.models.local_form import ConstrainedTools, Saying
from pawl.sandbox.cancel import CancelToken

pytestmark = pytest.mark.spec("F10")

READ = ToolOffer(
    name="read_file",
    description="Reads a file.",
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "the file"}, "first": {"type": "integer"}},
        "required": ["path"],
        "additionalProperties": False,
    },
)
SEARCH = ToolOffer(
    name="search",
    description="Finds a text.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"$ref": "#/$defs/query"},
            "how": {"enum": ["word", "line"]},
            "in": {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}}}},
        },
        "required": ["query"],
        "$defs": {"query": {"type": "string"}},
    },
)
SCHEMA = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


class Played:
    """Answers with given pieces, and keeps what it was asked."""

    def __init__(self, *pieces: str, stop: StopReason = StopReason.END, before: Sequence[ModelEvent] = ()) -> None:
        self.pieces = pieces
        self.stop = stop
        self.before = before
        self.requests: list[Request] = []
        self.is_closed = False

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        self.requests.append(request)
        try:
            yield from self.before
            yield from map(TextDelta, self.pieces)
            yield Answered(
                ModelResponse(
                    text="".join(self.pieces), stop=self.stop, usage=Usage(input=9, output=3), model="local:tiny"
                )
            )
        finally:
            self.is_closed = True


def request(*messages, tools=(READ, SEARCH), **changes) -> Request:
    return Request(
        model="local:tiny", system=("You are Pawl.",), messages=messages or (user("hi"),), tools=tools, **changes
    )


def events_of(model: Played, asked: Request) -> tuple[list[str], ModelResponse]:
    *before, last = ConstrainedTools(model).stream(asked)
    assert isinstance(last, Answered)
    return [event.text for event in before if isinstance(event, TextDelta)], last.answer


def test_a_request_without_tools_goes_through_as_it_is():
    model = Played("plain ", "text")
    asked = request(tools=(), answer_schema=SCHEMA)
    assert events_of(model, asked) == (
        ["plain ", "text"],
        ModelResponse(text="plain text", stop=StopReason.END, usage=Usage(input=9, output=3), model="local:tiny"),
    )
    assert model.requests == [asked]


def test_a_call_comes_with_its_arguments_and_pawl_s_own_id():
    texts, answer = events_of(Played('{"call": {"tool": "read_file", ', '"arguments": {"path":  "a.py"}}}'), request())
    assert texts == []
    assert (answer.text, answer.stop) == ("", StopReason.CALLS)
    assert answer.calls == (
        ToolCall(id="call_1", name="read_file", arguments={"path": "a.py"}, raw='{"path":  "a.py"}'),
    )


def test_a_last_word_is_streamed_as_the_text_that_it_is():
    texts, answer = events_of(
        Played('{"say', '": "It is \\', 'n\\"x', "\\u00e9", "\\ud83d", '\\ude00!"', "}"), request()
    )
    assert texts == ["It is ", '\n"x', "é", "😀!"]
    assert (answer.text, answer.stop, answer.calls) == ('It is \n"xé😀!', StopReason.END, ())


def test_a_model_that_does_not_stream_is_shown_all_the_same():
    class Mute(Played):
        def stream(self, request, *, cancel=None):
            yield from (event for event in super().stream(request, cancel=cancel) if isinstance(event, Answered))

    assert events_of(Mute('{"say": "yes"}'), request()) == (["yes"], events_of(Played('{"say": "yes"}'), request())[1])


def test_an_answer_by_schema_is_the_value_that_was_asked_for():
    model = Played('{"answer": {"done": true}}')
    texts, answer = events_of(model, request(answer_schema=SCHEMA))
    assert (texts, answer.text, answer.stop) == (['{"done": true}'], '{"done": true}', StopReason.END)
    assert model.requests[0].answer_schema["anyOf"][1]["properties"] == {"answer": SCHEMA}


@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.SEQUENCE, StopReason.REFUSED])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"call": {"tool": "read_file", "arguments": {"path": "a', ""),
        ('{"call": {"tool": "read_file", "arguments": {"path": "a"}}}', ""),
        ('{"say": "It is so \\u00', "It is so "),
    ],
)
def test_nothing_is_called_from_an_answer_that_did_not_end_properly(stop, text, said):
    texts, answer = events_of(Played(text, stop=stop), request())
    assert (answer.stop, answer.calls, answer.text, "".join(texts)) == (stop, (), said, said)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[1]",
        "{}",
        '{"say": 1}',
        '{"answer": 1}',
        '{"call": null}',
        '{"call": {"tool": "rm", "arguments": {}}}',
        '{"call": {"tool": "search", "arguments": "x"}}',
        '{"call": {"tool": ["search"], "arguments": {}}}',
        '{"say": "half',
    ],
)
def test_what_fits_neither_form_is_unusable(text):
    with pytest.raises(AnswerUnusable, match="neither a call of an offered tool nor a last word"):
        events_of(Played(text), request())


def test_half_characters_do_not_get_through():
    call = '{"call": {"tool": "search", "arguments": {"query": "a\\ud800b"}}}'
    _, answer = events_of(Played(call), request())
    assert answer.calls[0].arguments == {"query": "a\ufffdb"}
    texts, answer = events_of(Played('{"say": "a\\ud800', 'b"}'), request())
    assert "".join(texts) == answer.text == "a\ufffdb"


def test_stop_sequences_cut_what_is_said_and_not_the_json():
    model = Played('{"say": "one \\"two\\" END', ' three"}')
    texts, answer = events_of(model, request(sampling=Sampling(stop=("END", '"'), seed=7)))
    assert ("".join(texts), answer.text, answer.stop) == ("one ", "one ", StopReason.SEQUENCE)
    assert model.requests[0].sampling == Sampling(seed=7)


def test_a_new_attempt_starts_the_text_anew():
    before = (TextDelta('{"say": "never mi'), Retrying(why="it died", wait_seconds=0.0, attempt=1), ThoughtDelta("hm"))
    *events, last = ConstrainedTools(Played('{"say": "yes"}', before=before)).stream(request())
    assert events == [TextDelta("never mi"), before[1], before[2], TextDelta("yes")]
    assert last.answer.text == "yes"


def test_closing_closes_the_model():
    model = Played('{"say": "a', 'b"}')
    events = ConstrainedTools(model).stream(request())
    next(events)
    events.close()
    assert model.is_closed


def test_tools_are_described_in_the_system_text_after_what_is_there():
    model = Played('{"say": ""}')
    events_of(model, request())
    first, tools = model.requests[0].system
    assert first == "You are Pawl."
    assert "- read_file(path: string (the file), first?: integer): Reads a file." in tools
    assert '- search(query: string, how?: "word"|"line", in?: [{path?: string}]): Finds a text.' in tools
    assert model.requests[0].tools == ()


def test_the_schema_has_every_tool_and_references_still_lead_somewhere():
    model = Played('{"say": ""}')
    events_of(model, request())
    schema = model.requests[0].answer_schema
    read, search = schema["anyOf"][0]["properties"]["call"]["anyOf"]
    assert read["properties"] == {"tool": {"const": "read_file"}, "arguments": READ.input_schema}
    assert search["properties"]["arguments"] == {"$ref": "#/$defs/tool_2"}
    moved = schema["$defs"]["tool_2"]
    assert moved["properties"]["query"] == {"$ref": "#/$defs/tool_2/$defs/query"}
    assert moved["$defs"] == SEARCH.input_schema["$defs"]
    assert schema["anyOf"][1]["required"] == ["say"]


def test_earlier_turns_have_the_form_that_is_asked_for():
    model = Played('{"say": ""}')
    raw = '{"path":  "a.py"}'
    calls = (
        ToolCall(id="call_1", name="read_file", arguments={"path": "a.py"}, raw=raw),
        ToolCall(id="call_2", name="search", arguments=None, raw="{", mistake="no JSON"),
    )
    answers = (
        ToolAnswer(call="call_1", name="read_file", text="1: x = 1"),
        ToolAnswer(call="call_2", name="search", text="no JSON", failed=True),
    )
    events_of(
        model,
        request(
            user("What is x?"),
            assistant("", *calls),
            tool_answers(*answers),
            user("Well?"),
            assistant('It is "1".'),
            user("Thanks"),
        ),
    )
    reminder = 'If the request is done or can be answered now, reply {"say": "..."}. If not, call the next tool.'
    assert model.requests[0].messages == (
        user("What is x?"),
        assistant('{"call": {"tool": "read_file", "arguments": {"path":  "a.py"}}}'),
        user(f"Result of read_file:\n1: x = 1\n\n{reminder}"),
        assistant('{"call": {"tool": "search", "arguments": {}}}'),
        user(f"Result of search (failed):\nno JSON\n\n{reminder}\n\nWell?"),
        assistant('{"say": "It is \\"1\\"."}'),
        user("Thanks"),
    )


def test_an_answer_from_files_that_were_read_names_its_places_though_no_tool_is_offered():
    model = Played('{"say": "It is one.", "places": [{"file": "a.py", "line": 1}]}')
    call = ToolCall(id="call_1", name="file_read", arguments={"path": "a.py"}, raw='{"path": "a.py"}')
    read = tool_answers(ToolAnswer(call="call_1", name="file_read", text="1: x = 1"))
    _, answer = events_of(model, request(user("What is x?"), assistant("", call), read, tools=()))
    assert answer.text == "It is one. (a.py:1)"
    last = model.requests[0].messages[-1].text
    assert "1: x = 1" in last and last.index("1: x = 1") < last.index("What is x?"), "the question is said last"


def test_an_answer_without_tools_copies_its_lines_and_their_numbers_are_told_from_what_was_read():
    places = [{"file": "a.py", "text": "[null]\n\n", "line": 2}, {"file": "a.py", "text": "none", "line": 1}]
    model = Played(json.dumps({"say": "It is null.", "places": places}))
    call = ToolCall(id="call_1", name="file_read", arguments={"path": "a.py"}, raw='{"path": "a.py"}')
    lines = "     1 | x\n     2 | y\n     3 |   return [null]"
    read = tool_answers(ToolAnswer(call="call_1", name="file_read", text=lines))
    pieces, answer = events_of(model, request(user("What is it?"), assistant("", call), read, tools=()))
    assert answer.text == "".join(pieces) == "It is null. (a.py:3, a.py:1)"


def test_a_line_that_was_copied_from_another_file_than_was_said_is_told_from_that_one():
    calls = [ToolCall(id=name, name="file_read", arguments={"path": name}, raw="{}") for name in ("a.go", "b.md")]
    answers = (("a.go", "     1 | package a\n     2 | }"), ("b.md", "     1 | Run `go test ./...`."))
    read = tool_answers(*(ToolAnswer(call=name, name="file_read", text=text) for name, text in answers))
    for quote, place in (("Run `go test", "b.md:1"), ("Run", "a.go:2"), ("no such line", "a.go:2")):
        model = Played(json.dumps({"say": "So.", "places": [{"file": "a.go", "text": quote, "line": 2}]}))
        _, answer = events_of(model, request(user("How?"), assistant("", *calls), read, tools=()))
        assert answer.text == f"So. ({place})"


def test_words_next_to_a_call_are_kept():
    model = Played('{"answer": {}}')
    turns = (user("a"), assistant("Let me see", ToolCall(id="c", name="search", arguments={"query": "é"})))
    events_of(model, request(*turns, assistant('{"done": true}'), user("b"), answer_schema=SCHEMA))
    assert [message.text for message in model.requests[0].messages if message.speaker == "assistant"] == [
        '{"say": "Let me see", "call": {"tool": "search", "arguments": {"query": "é"}}}',
        '{"answer": {"done": true}}',
    ]


def test_the_next_call_has_the_next_number():
    call = ToolCall(id="call_1", name="search", arguments={"query": "x"})
    turns = (user("a"), assistant("", call), tool_answers(ToolAnswer(call="call_1", name="search", text="none")))
    _, answer = events_of(Played('{"call": {"tool": "search", "arguments": {"query": "y"}}}'), request(*turns))
    assert answer.calls[0].id == "call_2"


@given(text=st.text(max_size=40), cuts=st.lists(st.integers(1, 7), max_size=20), ascii_only=st.booleans())
def test_pieces_of_any_size_say_the_same(text, cuts, ascii_only):
    text = text.encode("utf-8", "replace").decode()
    whole = json.dumps({"say": text}, ensure_ascii=ascii_only)
    saying, shown = Saying(), ""
    for size in [*cuts, len(whole)]:
        shown += saying.piece(whole[:size])
        whole = whole[size:]
    assert shown == saying.text == text
