"""What a model said is written down without its secrets, and plays again as the same events."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from pawl.core.dialogue import (
    Answered,
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
    Usage,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import AnswerInterrupted, ConfigError, ModelError, RateLimited
from pawl.models import Model
from pawl.models.recorder import AnswerRecorder
from pawl.models.scripted import ScriptedModel
from pawl.sandbox.cancel import CancelToken

KEY = "sk-proj-" + "A1b2C3d4" * 4


class Live:
    """A model whose events are given."""

    def __init__(self, *turns: list[ModelEvent | ModelError]) -> None:
        self._turns = iter(turns)

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        for event in next(self._turns):
            if isinstance(event, ModelError):
                raise event
            yield event


def answered(text: str, **changes: object) -> Answered:
    given = {
        "stop": StopReason.END,
        "usage": Usage(input=9, output=3, cached=1),
        "model": "openai/gpt-5",
        "seconds": 1.25,
    }
    return Answered(ModelResponse(text=text, **{**given, **changes}))  # type: ignore[arg-type]


def request(*messages: object, model: str = "openai/gpt-5", **changes: object) -> Request:
    return Request(model=model, system=("s",), messages=messages, **changes)  # type: ignore[arg-type]


def played(model: Model, requests: list[Request]) -> list[list[object]]:
    found: list[list[object]] = []
    for one in requests:
        events: list[object] = []
        found.append(events)
        try:
            events.extend(model.stream(one))
        except ModelError as error:
            events.append(
                (type(error), error.message, getattr(error, "text", ""), getattr(error, "wait_seconds", None))
            )
    return found


CALL = ToolCall(
    id="call_1",
    name="file_read",
    arguments={"path": "a.py", "limit": None},
    raw='{"path":"a.py","limit":null}',
    provider_id="toolu_1",
    signature="gemini:abc",
)
BROKEN = ToolCall(id="call_2", name="file_read", arguments=None, raw='{"path":', mistake="it was cut off")
CONVERSATION = [
    request(user("fix the bug")),
    request(
        user("fix the bug"), assistant("", CALL), tool_answers(ToolAnswer(call="call_1", name="file_read", text="x"))
    ),
    request(user("and now?"), answer_schema={"type": "object"}),
    request(user("again")),
    request(user("more")),
]


def live() -> Live:
    return Live(
        [
            ThoughtDelta("I th"),
            ThoughtDelta("ink"),
            TextDelta("Let me "),
            TextDelta("look"),
            answered(
                "Let me look",
                stop=StopReason.CALLS,
                calls=(CALL, BROKEN),
                thoughts=(Thought(text="I think", signature="anthropic:zzz"),),
                first_token_seconds=0.5,
            ),
        ],
        [
            TextDelta("lo"),
            Retrying(why="overloaded", wait_seconds=2.0, attempt=1, begun=True),
            answered("", attempts=2),
        ],
        [TextDelta('{"a":'), TextDelta(" 1}"), answered('{"a": 1}', usage=Usage(input=1, output=1, estimated=True))],
        [RateLimited("slow down", 12.5)],
        [TextDelta("half of"), AnswerInterrupted("it broke off", "half of")],
    )


def test_a_recording_plays_the_same_events_again(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    first = played(AnswerRecorder(live(), path), CONVERSATION)
    again = played(ScriptedModel(path), [replace(one, model=f"scripted:{path}") for one in CONVERSATION])
    for events in again:
        for place, event in enumerate(events):
            if isinstance(event, Answered):
                # A replay says that it is one; who had answered is still to be seen.
                assert (event.answer.model, event.answer.served_by) == (f"scripted:{path}", "openai/gpt-5")
                events[place] = Answered(replace(event.answer, model="openai/gpt-5", served_by=""))
    assert again == first


def test_a_recording_is_known_by_what_is_asked_and_not_by_its_place(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    played(AnswerRecorder(live(), path), CONVERSATION)
    replay = ScriptedModel(path)
    last = played(replay, [CONVERSATION[2]])[0][-1]
    assert isinstance(last, Answered)
    assert last.answer.text == '{"a": 1}'


@pytest.mark.spec("B13")
def test_no_secret_reaches_the_file_even_when_it_comes_in_pieces(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    call = ToolCall(
        id="call_1", name="run", arguments={"env": {"api_key": KEY}, "cmd": f"curl -H {KEY}"}, raw=f'"{KEY}"'
    )
    broken = ToolCall(id="call_2", name="run", arguments=None, raw=f"{{ {KEY}", mistake=f"{KEY} is no JSON")
    model = AnswerRecorder(
        Live(
            [
                *(TextDelta(letter) for letter in f"the key is {KEY}."),
                *(ThoughtDelta(letter) for letter in f"I see {KEY}."),
                Retrying(why=f"refused: {KEY}", wait_seconds=0, attempt=1),
                TextDelta(f"it is {KEY[:20]}"),
                ThoughtDelta("between"),
                TextDelta(KEY[20:]),
                answered(f"it is {KEY}", calls=(call, broken), thoughts=(Thought(text=f"so {KEY}"),)),
            ],
            [RateLimited(f"wrong key {KEY}")],
        ),
        path,
    )
    requests = [request(user(f"my key is {KEY}, use it")), request(user("again"))]
    played(model, requests)
    written = path.read_text()
    assert KEY not in written
    assert KEY[20:] not in written
    assert written.count("[redacted]") >= 9
    events = played(ScriptedModel(path), requests)
    assert TextDelta("the key is [redacted].") in events[0]
    assert events[1][-1] == (RateLimited, "wrong key [redacted]", "", None)


@pytest.mark.spec("B13")
def test_a_recording_is_its_owners_only(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    AnswerRecorder(live(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_recorder_goes_on_in_the_same_file(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    for word in ("one", "two"):
        played(AnswerRecorder(Live([answered(word)]), path), [request(user(word))])
    texts = [
        events[-1].answer.text for events in played(ScriptedModel(path), [request(user("one")), request(user("two"))])
    ]  # type: ignore[attr-defined]
    assert texts == ["one", "two"]


def test_an_answer_that_was_closed_half_way_is_not_recorded(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    events = AnswerRecorder(Live([TextDelta("a"), TextDelta("b"), answered("ab")]), path).stream(request(user("x")))
    assert next(events) == TextDelta("a")
    events.close()
    assert path.read_text() == '{"version": 1}\n'


def test_half_characters_do_not_spoil_the_file(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    played(AnswerRecorder(Live([TextDelta("a\ud83d"), answered("a\ud83d")]), path), [request(user("x"))])
    assert played(ScriptedModel(path), [request(user("x"))])[0][0] == TextDelta("a�")


@pytest.mark.parametrize("name", ["talk.toml", "no/such/folder/talk.jsonl"])
def test_a_file_that_cannot_be_a_recording_is_refused_at_once(tmp_path: Path, name: str):
    with pytest.raises(ConfigError):
        AnswerRecorder(live(), tmp_path / name)


def test_what_a_provider_may_choose_freely_holds_no_secret_either(tmp_path: Path):
    call = ToolCall(id="call_1", name=f"tool_{KEY}", arguments={}, raw="{}", provider_id=KEY, signature=f"gemini:{KEY}")
    thought = Thought(text="", signature=f"anthropic:{KEY}")
    live = Live([answered("hi", calls=(call,), thoughts=(thought,), served_by=KEY)], [answered("ok")])
    recorder = AnswerRecorder(live, tmp_path / "talk.jsonl")
    list(recorder.stream(request(user("x"))))
    after = tool_answers(ToolAnswer(call="call_1", name=call.name, text="done"))
    list(recorder.stream(request(user("x"), assistant("", call), after)))
    assert KEY not in (tmp_path / "talk.jsonl").read_text()


@pytest.mark.parametrize("content", ['{"my": "data"}\n', "[1, 2]\n", "not JSON"])
def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path: Path, content: str):
    path = tmp_path / "data.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match="is not a recording"):
        AnswerRecorder(Live(), path)
    assert path.read_text() == content


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(ConfigError):
        AnswerRecorder(Live(), tmp_path / "pipe.jsonl")
