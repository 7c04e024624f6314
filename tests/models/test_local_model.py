"""A real model file with the real library: `PAWL_TEST_MODEL=FILE.gguf pytest -m local_model tests/models`."""

from __future__ import annotations

import importlib.util
import json
import os
import select
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from models.local_registry import LocalModels
from models.local_schemas import closed, mistakes, requests

from pawl.core.dialogue import (
    Answered,
    ModelResponse,
    Request,
    Sampling,
    StopReason,
    TextDelta,
    ToolAnswer,
    ToolOffer,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import Cancelled, ContextTooLong, RequestRejected, UnknownModel
from pawl.models.providers import LocalSettings
from pawl.sandbox.cancel import CancelToken

# Read when the module is loaded: no test sees the developer's own variables.
FILE = os.getenv("PAWL_TEST_MODEL", "")

pytestmark = [
    pytest.mark.spec("F10"),
    pytest.mark.local_model,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not FILE, reason="PAWL_TEST_MODEL names no model file"),
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the extra `local` is not installed"),
]

SHORT = Sampling(max_output=120, seed=1)
TOOLS = (
    ToolOffer(
        name="search",
        description="Finds a text or a name in all files. Use it when you do not know which file something is in.",
        input_schema=closed(query={"type": "string", "description": "what to look for"}),
    ),
    ToolOffer(
        name="read_file", description="Reads a file, with line numbers.", input_schema=closed(path={"type": "string"})
    ),
    ToolOffer(
        name="list_files", description="Lists the files of a folder.", input_schema=closed(folder={"type": "string"})
    ),
    ToolOffer(name="run_tests", description="Runs the tests and shows what fails.", input_schema=closed()),
)
ROLE = (
    "You are Pawl, a coding assistant for the user's workspace. "
    "You do not know the files; look before you answer about them.",
)


@pytest.fixture(scope="module")
def models() -> Iterator[LocalModels]:
    with LocalModels() as models:
        yield models


@pytest.fixture(scope="module")
def model(models):
    return models.open(FILE, LocalSettings(context=2048))


def asked(model, *messages, **changes) -> ModelResponse:
    request = replace(Request(model=f"local:{FILE}", system=ROLE, messages=messages, sampling=SHORT), **changes)
    *_, last = model.stream(request)
    assert isinstance(last, Answered)
    return last.answer


def test_an_answer_is_streamed(model):
    request = Request(model=f"local:{FILE}", system=(), messages=(user("Count from 1 to 10."),), sampling=SHORT)
    *deltas, last = model.stream(request)
    assert len(deltas) > 5
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == last.answer.text
    assert last.answer.stop is StopReason.END and "7" in last.answer.text
    assert last.answer.usage.input > 0 and not last.answer.usage.estimated


def test_the_same_seed_says_the_same(model):
    sampling = Sampling(temperature=1.0, max_output=20, seed=42)
    # A prompt that is kept is calculated in other steps than a new one, which can round another way.
    _, first, second = (asked(model, user("Tell me a story."), sampling=sampling).text for _ in range(3))
    assert first == second
    assert asked(model, user("Tell me a story."), sampling=replace(sampling, seed=43)).text != first


def test_a_second_turn_reads_only_what_is_new(model):
    question = user("Remember these words: " + " ".join(f"word{number}" for number in range(100)))
    first = asked(model, question)
    second = asked(model, question, first.message, user("Which was the first?"))
    assert second.usage.cached >= first.usage.input
    assert second.usage.input - second.usage.cached < 40


def test_two_conversations_that_take_turns_keep_their_prompts(model):
    def turn(word: str) -> ModelResponse:
        return asked(
            model, user(f"{word} " * 200 + "\nSay hello."), system=(f"About {word}.",), sampling=Sampling(max_output=4)
        )

    turn("cats")
    turn("dogs")
    assert turn("cats").usage.cached > 150


def test_a_second_turn_with_tools_reads_only_what_is_new(model):
    question = user("Show me what is in src/app.py.")
    first = asked(model, question, tools=TOOLS)
    (call,) = first.calls
    answers = tool_answers(ToolAnswer(call=call.id, name=call.name, text="1: print('hello')"))
    second = asked(model, question, first.message, answers, tools=TOOLS)
    assert second.usage.cached >= first.usage.input


def test_answers_by_schema_always_fit(model):
    for question, schema in requests()[::7]:
        answer = asked(model, user(question), answer_schema=schema, sampling=Sampling(max_output=400, seed=1))
        assert answer.stop is StopReason.END
        assert mistakes(json.loads(answer.text), schema) == []


def test_an_answer_by_schema_that_is_cut_says_so(model):
    schema = closed(essay={"type": "string", "minLength": 400})
    answer = asked(model, user("Write."), answer_schema=schema, sampling=Sampling(max_output=10, seed=1))
    assert answer.stop is StopReason.LENGTH
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.text)


def test_a_schema_that_cannot_be_kept_is_refused(model):
    with pytest.raises(RequestRejected):
        asked(model, user("Go."), answer_schema={"$ref": "#/nowhere"})


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("Which file defines the function parse_date?", "search"),
        ("Show me what is in src/app.py.", "read_file"),
        ("What files are in the folder docs?", "list_files"),
        ("Do the tests pass?", "run_tests"),
    ],
)
def test_the_right_tool_is_called(model, question, tool):
    answer = asked(model, user(question), tools=TOOLS)
    assert answer.stop is StopReason.CALLS
    assert [call.name for call in answer.calls] == [tool]
    (offer,) = (offer for offer in TOOLS if offer.name == tool)
    assert mistakes(answer.calls[0].arguments, described_only(offer.input_schema)) == []


def test_a_tool_that_answered_is_followed_by_the_last_word(model):
    call = asked(model, user("Which file defines the function parse_date?"), tools=TOOLS).calls[0]
    found = tool_answers(ToolAnswer(call=call.id, name=call.name, text="src/dates.py:12: def parse_date(text):"))
    answer = asked(model, user("Which file defines the function parse_date?"), assistant("", call), found, tools=TOOLS)
    assert (answer.stop, answer.calls) == (StopReason.END, ())
    assert "src/dates.py" in answer.text


def test_a_call_that_is_cut_is_not_called(model):
    answer = asked(model, user("Show me what is in src/app.py."), tools=TOOLS, sampling=Sampling(max_output=8, seed=1))
    assert (answer.stop, answer.calls) == (StopReason.LENGTH, ())


def test_more_than_it_reads_is_too_long(model):
    with pytest.raises(ContextTooLong, match="loaded to read 2048 tokens"):
        asked(model, user("word " * 5000))


def test_a_cancelled_answer_leaves_the_model_ready(model):
    cancel = CancelToken()
    request = Request(model="local", system=(), messages=(user("Count to 10000."),), sampling=Sampling(max_output=1500))
    events = model.stream(request, cancel=cancel)
    next(events)
    cancel.request()
    with pytest.raises(Cancelled):
        list(events)
    assert asked(model, user("Say hi."), sampling=Sampling(max_output=3)).attempts == 1


def test_an_idle_model_gives_its_memory_back():
    with LocalModels() as models:
        model = models.open(FILE, LocalSettings(context=512, idle_seconds=0.5))
        asked(model, user("Say hi."), sampling=Sampling(max_output=2))
        (process,) = models.running().values()
        descriptor = os.pidfd_open(process)
        assert select.select([descriptor], [], [], 60)[0]
        os.close(descriptor)
        assert asked(model, user("Say hi."), sampling=Sampling(max_output=2)).attempts == 1


def test_a_model_that_is_cut_off_cannot_be_loaded(tmp_path):
    part = tmp_path / "part.gguf"
    with Path(FILE).open("rb") as whole:
        part.write_bytes(whole.read(50_000_000))
    with LocalModels() as models, pytest.raises(UnknownModel, match="not within the file bounds"):
        asked(models.open(part), user("Say hi."))


def described_only(schema):
    """The schema without what only people and models read."""
    if isinstance(schema, dict):
        return {key: described_only(inner) for key, inner in schema.items() if key != "description"}
    return schema
