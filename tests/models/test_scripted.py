"""A file of turns answers like a model: in order, by what is asked, with faults, and again after a resume."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pawl.core.dialogue import (
    Answered,
    FellBack,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    StopReason,
    TextDelta,
    Thought,
    ThoughtDelta,
    ToolAnswer,
    ToolCall,
    ToolOffer,
    Usage,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import (
    AnswerInterrupted,
    Cancelled,
    ConfigError,
    ModelError,
    NotAuthorized,
    Overloaded,
    RateLimited,
    ScriptEnded,
    UnknownModel,
)
from pawl.models.scripted import FAULTS, ScriptedModel, parse_script
from pawl.sandbox.cancel import CancelToken

MODEL = "scripted:turns.toml"
READ = ToolOffer(name="file_read", description="Reads.", input_schema={"type": "object"})


def asked(*words: str, **changes: object) -> Request:
    messages = tuple(user(word) for word in words)
    return Request(**{"model": MODEL, "system": (), "messages": messages, **changes})  # type: ignore[arg-type]


def script(folder: Path, text: str, name: str = "turns.toml") -> ScriptedModel:
    path = folder / name
    path.write_text(text)
    return ScriptedModel(path)


def answer(events: list[ModelEvent]) -> ModelResponse:
    assert isinstance(events[-1], Answered)
    return events[-1].answer


def said(model: ScriptedModel, request: Request) -> str:
    return answer(list(model.stream(request))).text


def test_turns_are_taken_in_order_and_each_once(tmp_path: Path):
    model = script(tmp_path, '[[turn]]\nanswer = "one"\n[[turn]]\nanswer = "two"\n')
    assert [said(model, asked("a")), said(model, asked("a"))] == ["one", "two"]
    assert model.consumed == (1, 2)


def test_the_first_turn_that_is_left_and_fits_is_taken(tmp_path: Path):
    model = script(
        tmp_path,
        """
        [[turn]]
        match = "deploy"
        answer = "deploying"
        [[turn]]
        match = { user_regex = "^fix .*bug$" }
        answer = "fixing"
        [[turn]]
        times = 0
        answer = "what?"
        """,
    )
    words = ["fix the bug", "deploy it", "deploy it", "fix the bug"]
    assert [said(model, asked(word)) for word in words] == ["fixing", "deploying", "what?", "what?"]


@pytest.mark.parametrize(
    ("match", "fits", "fits_not"),
    [
        ('{ user = "last" }', asked("first", "the last one"), asked("last", "one")),
        ('{ system = "stage: plan" }', asked("x", system=("a", "stage: plan")), asked("stage: plan")),
        ('{ tools = ["file_read"] }', asked("x", tools=(READ,)), asked("x")),
        ("{ schema = true }", asked("x", answer_schema={}), asked("x")),
        ("{ schema = false }", asked("x"), asked("x", answer_schema={})),
        ("{ step = 1 }", asked("", messages=(user("x"), assistant("y"), user("z"))), asked("x")),
        (
            '{ tool = "3 passed", answered = ["run"] }',
            asked("", messages=(user("x"), tool_answers(ToolAnswer(call="call_1", name="run", text="3 passed")))),
            asked("", messages=(user("x"), tool_answers(ToolAnswer(call="call_1", name="read", text="3 passed")))),
        ),
        (
            '{ tool_regex = "\\\\d failed" }',
            asked("", messages=(user("x"), tool_answers(ToolAnswer(call="call_1", name="run", text="2 failed")))),
            asked("2 failed"),
        ),
    ],
)
def test_a_match_looks_at_the_part_of_the_request_that_it_names(
    tmp_path: Path, match: str, fits: Request, fits_not: Request
):
    model = script(tmp_path, f'[[turn]]\nmatch = {match}\nanswer = "yes"\n[[turn]]\ntimes = 0\nanswer = "no"\n')
    assert [said(model, fits_not), said(model, fits)] == ["no", "yes"]


def test_an_answer_has_all_that_an_answer_of_a_model_has(tmp_path: Path):
    model = script(
        tmp_path,
        """
        [[turn]]
        chunks = 4
        [turn.answer]
        text = "I look."
        thoughts = ["hmm"]
        usage = { input = 10, output = 5, cached = 3 }
        cost = "0.25"
        served_by = "model-2"
        [[turn.answer.calls]]
        name = "file_read"
        arguments = { path = "a.py", from = 1, ratio = 0.5 }
        [[turn.answer.calls]]
        name = "file_read"
        raw = '{"path": '
        """,
    )
    before = (user("x"), assistant("", ToolCall(id="call_6", name="file_read", arguments={})))
    events = list(model.stream(asked("", messages=before)))
    assert events[:-1] == [ThoughtDelta("hmm"), TextDelta("I lo"), TextDelta("ok.")]
    found = answer(events)
    assert found.text == "I look."
    assert found.stop is StopReason.CALLS
    assert found.usage == Usage(input=10, output=5, cached=3)
    assert str(found.cost) == "0.25"
    assert found.thoughts == (Thought(text="hmm"),)
    assert (found.model, found.served_by) == (MODEL, "model-2")
    assert found.calls[0] == ToolCall(
        id="call_7",
        name="file_read",
        arguments={"path": "a.py", "from": 1, "ratio": 0.5},
        raw='{"path": "a.py", "from": 1, "ratio": 0.5}',
    )
    assert (found.calls[1].id, found.calls[1].arguments) == ("call_8", None)
    assert "not JSON" in found.calls[1].mistake


@pytest.mark.spec("E6")
def test_usage_that_the_script_leaves_out_is_estimated_and_says_so(tmp_path: Path):
    usage = answer(list(script(tmp_path, '[[turn]]\nanswer = "four words of text"').stream(asked("x")))).usage
    assert usage.estimated
    assert usage.output == 5


def test_pieces_can_be_given_one_by_one_with_retries_between(tmp_path: Path):
    model = script(
        tmp_path,
        """
        [[turn]]
        chunks = ["lost", { retrying = "overloaded", wait_seconds = 0.5 }, { thought = "again" }, "fo", "und",
                  { fell_back_to = "b/c", model = "a/b", why = "down" }, "end"]
        """,
    )
    events = list(model.stream(asked("x")))
    assert events[:-1] == [
        TextDelta("lost"),
        Retrying(why="overloaded", wait_seconds=0.5, attempt=1),
        ThoughtDelta("again"),
        TextDelta("fo"),
        TextDelta("und"),
        FellBack(model="a/b", to="b/c", why="down"),
        TextDelta("end"),
    ]
    assert answer(events).text == "end"


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_can_be_played(tmp_path: Path, kind: str):
    model = script(tmp_path, f'[[turn]]\nanswer = "text"\nfault = "{kind}"\n')
    try:
        ended = answer(list(model.stream(asked("x")))).stop.value
    except ModelError as error:
        ended = error.code
    assert ended.removeprefix("answer_").removeprefix("model_").removeprefix("request_") == kind


def test_a_fault_comes_after_as_much_text_as_it_says(tmp_path: Path):
    model = script(
        tmp_path,
        """
        [[turn]]
        answer = "a long text"
        chunks = 4
        fault = { kind = "interrupted", after = 6 }
        [[turn]]
        answer = { text = "a long text", calls = [{ name = "file_read" }] }
        fault = { kind = "length", after = 6 }
        """,
    )
    events: list[ModelEvent] = []
    with pytest.raises(AnswerInterrupted) as caught:
        events.extend(model.stream(asked("x")))
    assert caught.value.text == "a long"
    cut = answer(list(model.stream(asked("x"))))
    assert (cut.text, cut.stop, cut.calls) == ("a long", StopReason.LENGTH, ())


def test_faults_carry_their_message_and_wait(tmp_path: Path):
    model = script(
        tmp_path,
        """
        [[turn]]
        fault = { kind = "rate_limited", wait_seconds = 7, message = "later" }
        [[turn]]
        fault = "not_authorized"
        """,
    )
    with pytest.raises(RateLimited, match="later") as caught:
        list(model.stream(asked("x")))
    assert caught.value.wait_seconds == 7
    with pytest.raises(NotAuthorized, match="scripted:"):
        list(model.stream(asked("x")))


def test_a_request_that_no_turn_fits_is_named_with_the_turns_that_are_left(tmp_path: Path):
    model = script(tmp_path, '[[turn]]\nmatch = "alpha"\nanswer = "a"\n[[turn]]\nmatch = { step = 3 }\nanswer = "b"\n')
    said(model, asked("alpha"))
    with pytest.raises(ScriptEnded) as caught:
        said(model, asked("alpha beta"))
    assert "'alpha beta'" in caught.value.message
    assert "turn 2 wants step=3" in caught.value.message
    assert "turn 1" not in caught.value.message
    assert caught.value.exit_code == 52


def test_a_resumed_run_goes_on_where_the_script_was(tmp_path: Path):
    model = script(tmp_path, '[[turn]]\ntimes = 2\nanswer = "one"\n[[turn]]\nanswer = "two"\n')
    said(model, asked("x"))
    resumed = ScriptedModel(tmp_path / "turns.toml", used=model.consumed)
    assert [said(resumed, asked("x")), said(resumed, asked("x"))] == ["one", "two"]
    assert resumed.consumed == (1, 1, 2)
    with pytest.raises(ConfigError, match="no turn 9"):
        ScriptedModel(tmp_path / "turns.toml", used=(9,))


def test_a_delay_ends_at_once_when_the_user_cancels(tmp_path: Path):
    model = script(tmp_path, '[[turn]]\ndelay_ms = 600000\nanswer = "never"\n')
    cancel = CancelToken()
    threading.Timer(0.05, cancel.request).start()
    with pytest.raises(Cancelled):
        list(model.stream(asked("x"), cancel=cancel))


def test_a_cancel_between_two_pieces_stops_the_answer(tmp_path: Path):
    model = script(tmp_path, '[[turn]]\nanswer = "two pieces"\nchunks = 5\n')
    cancel = CancelToken()
    events = model.stream(asked("x"), cancel=cancel)
    assert next(events) == TextDelta("two p")
    cancel.request()
    with pytest.raises(Cancelled):
        next(events)


def test_every_mistake_in_a_script_is_reported_at_once_with_its_place():
    with pytest.raises(ConfigError) as caught:
        parse_script(
            """
            versoin = 1
            [[turn]]
            match = { usr = "a", user_regex = "(", schema = "yes" }
            [[turn]]
            answer = { text = 1, calls = [{ arguments = {}, raw = "{}" }], stop = "endd" }
            fault = { after = -1 }
            [[turn]]
            answer = "x"
            chunks = ["a", { thoughts = "b" }]
            times = "many"
            """,
            name="turns.toml",
        )
    for part in (
        "versoin is not a field; did you mean 'version'?",
        "turn 1.match.usr is not a field; did you mean 'user'?",
        "turn 1.match.user_regex is not a regular expression",
        "turn 1.match.schema must be true or false",
        "turn 1.answer is missing, and there is no fault",
        "turn 2.answer.text must be a text, not 1",
        "turn 2.answer.calls[0].name is missing",
        "turn 2.answer.calls[0].raw is another way to give `arguments`",
        "turn 2.answer.stop must be one of",
        "turn 2.fault.kind is missing",
        "turn 2.fault.after must be at least 0",
        "turn 3.chunks[1].retrying is missing",
        "turn 3.times must be a whole number",
    ):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("text", "lines", "mistake"),
    [
        ("[[turn", False, "not TOML"),
        ("", False, "no turn in it"),
        ('{"answer": "a"}\n{"answer": \n', True, "line 2 is not JSON"),
        ('{"version": 2}\n{"answer": "a"}', True, "this Pawl reads 1"),
        ("[1]", True, "turn 1 must be a table"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(text: str, lines: bool, mistake: str):
    with pytest.raises(ConfigError, match=mistake):
        parse_script(text, name="x", lines=lines)


def test_a_script_that_is_not_there_is_an_unknown_model(tmp_path: Path):
    with pytest.raises(UnknownModel, match=r"none\.toml"):
        ScriptedModel(tmp_path / "none.toml")


def test_json_lines_have_the_same_fields(tmp_path: Path):
    lines = '{"version": 1}\n{"match": "a", "answer": {"text": "b", "calls": []}}\n\n{"fault": "overloaded"}\n'
    model = script(tmp_path, lines, "turns.jsonl")
    assert said(model, asked("a")) == "b"
    with pytest.raises(Overloaded):
        said(model, asked("a"))
