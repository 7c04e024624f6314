"""A talk whose dialogue grows: its older part becomes a summary, what was said stays whole for the transcript."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agent.talking import Reply, room

from pawl.agent.agent_loop import converse
from pawl.agent.compression import CompressionLimits, Compressor, is_summary
from pawl.core.dialogue import Message, Request, dialogue_tokens, user
from pawl.core.errors import ContextTooLong
from pawl.core.events import Shortened
from pawl.core.run import Budget

pytestmark = pytest.mark.spec("C13")


def reading(path: str) -> str:
    return f'[[turn]]\nanswer = {{ calls = [{{ name = "file_read", arguments = {{ path = "{path}" }} }}] }}\n'


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "script.toml"
        path.write_text(text)
        return path

    return write


def test_a_long_talk_goes_on_with_a_summary_and_says_so(script):
    turns = "".join(reading(f"{number}.py") for number in range(30)) + '[[turn]]\nanswer = "Done, see 1.py:1."\n'
    at = room(script(turns), tools={"file_read": lambda path: Reply(f"{path}: {'x' * 900}")}, limits=Budget(turns=100))
    sent: list[tuple[Message, ...]] = []

    def clean(request: Request) -> Request:
        sent.append(request.messages)
        return request

    small = Compressor(limits=CompressionLimits(tokens=5_000, tail_tokens=1_000))
    spoken = converse(replace(at.seat, compress=small, clean=clean), (), "Never touch tax.py. Go.")
    assert spoken.text == "Done, see 1.py:1."
    (event,) = at.heard(Shortened)
    assert event.after_tokens < event.before_tokens
    assert max(map(dialogue_tokens, sent)) <= 5_000
    assert is_summary(sent[-1][0]) and sent[-1][1] == user("Never touch tax.py. Go.")
    assert "- read 0.py" in sent[-1][0].text
    assert len(spoken.said) == 62 and spoken.said[0] == user("Never touch tax.py. Go.")
    assert len(spoken.messages) < len(spoken.said)


@pytest.mark.fault("P20")
def test_a_model_that_cannot_read_it_all_gets_it_compressed_and_the_talk_goes_on(script):
    turns = "".join(reading(f"{number}.py") for number in range(6))
    turns += '[[turn]]\nfault = "context_too_long"\n[[turn]]\nanswer = "Done, see 1.py:1."\n'
    at = room(script(turns), tools={"file_read": lambda path: Reply(f"{path}\n" * 2000)})
    assert converse(replace(at.seat, compress=Compressor()), (), "Go.").text == "Done, see 1.py:1."
    assert [event.after_tokens < event.before_tokens // 4 for event in at.heard(Shortened)] == [True]


@pytest.mark.fault("P20")
def test_where_nothing_can_be_gained_the_same_is_not_sent_again(script):
    at = room(script('[[turn]]\ntimes = 0\nfault = "context_too_long"'))
    with pytest.raises(ContextTooLong):
        converse(replace(at.seat, compress=Compressor(limits=CompressionLimits())), (), "go")
    assert len(at.records) == 1


def test_what_a_seat_is_told_comes_after_its_prompts(script):
    at = room(script('[[turn]]\nanswer = "Yes."'))
    sent: list[Request] = []

    def clean(request: Request) -> Request:
        sent.append(request)
        return request

    converse(replace(at.seat, context=("# Remembered\n- one",), clean=clean), (), "go")
    assert sent[0].system[-1] == "# Remembered\n- one" and len(sent[0].system) > 1
