"""Turns that a provider would refuse are mended; a conversation that is right stays as it is."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.wire_scripts import ASK

from pawl.core.dialogue import Message, Speaker, Thought, ToolAnswer, ToolCall, assistant, tool_answers, user
from pawl.models.providers import Endpoint, Wire
from pawl.models.wire import CONTINUE, NOT_EXECUTED, anthropic, gemini, mended, openai, without_thoughts

pytestmark = pytest.mark.fault("P21")


def call(own: str, name: str = "read") -> ToolCall:
    return ToolCall(id=own, name=name, arguments={})


def answered(own: str, text: str = "x") -> ToolAnswer:
    return ToolAnswer(call=own, name="read", text=text)


def lost(own: str) -> ToolAnswer:
    return ToolAnswer(call=own, name="read", text=NOT_EXECUTED, failed=True)


CORPUS = {
    "a call without an answer": (
        (user("a"), assistant("", call("c1")), user("b")),
        (user("a"), assistant("", call("c1")), tool_answers(lost("c1")), user("b")),
    ),
    "one of two calls without an answer": (
        (user("a"), assistant("", call("c1"), call("c2")), tool_answers(answered("c2"))),
        (user("a"), assistant("", call("c1"), call("c2")), tool_answers(lost("c1"), answered("c2"))),
    ),
    "an answer without a call": ((user("a"), tool_answers(answered("c1"))), (user("a"),)),
    "an answer to a call of another turn": (
        (user("a"), assistant("", call("c1")), user("b"), tool_answers(answered("c1"))),
        (user("a"), assistant("", call("c1")), tool_answers(lost("c1")), user("b")),
    ),
    "two answers to one call": (
        (user("a"), assistant("", call("c1")), tool_answers(answered("c1", "1"), answered("c1", "2"))),
        (user("a"), assistant("", call("c1")), tool_answers(answered("c1", "1"))),
    ),
    "answers over several turns and in another order": (
        (
            user("a"),
            assistant("", call("c1"), call("c2")),
            tool_answers(answered("c2")),
            tool_answers(answered("c1")),
        ),
        (user("a"), assistant("", call("c1"), call("c2")), tool_answers(answered("c1"), answered("c2"))),
    ),
    "two calls with one id": (
        (user("a"), assistant("", call("c"), call("c")), tool_answers(answered("c", "1"), answered("c", "2"))),
        (user("a"), assistant("", call("c"), call("c_2")), tool_answers(answered("c", "1"), answered("c_2", "2"))),
    ),
    "an id that repeats in a later turn": (
        (
            user("a"),
            assistant("", call("c")),
            tool_answers(answered("c", "1")),
            assistant("", call("c")),
            tool_answers(answered("c", "2")),
        ),
        (
            user("a"),
            assistant("", call("c")),
            tool_answers(answered("c", "1")),
            assistant("", call("c_2")),
            tool_answers(answered("c_2", "2")),
        ),
    ),
    "a call without an id": (
        (user("a"), assistant("", call("")), tool_answers(answered(""))),
        (user("a"), assistant("", call("call")), tool_answers(answered("call"))),
    ),
    "ids that differ only in what no server takes": (
        (user("a"), assistant("", call("c:1"), call("c_1")), tool_answers(answered("c_1", "2"), answered("c:1", "1"))),
        (
            user("a"),
            assistant("", call("c_1"), call("c_1_2")),
            tool_answers(answered("c_1", "1"), answered("c_1_2", "2")),
        ),
    ),
    "an assistant that says nothing": ((user("a"), assistant(" \n"), user("b")), (user("a"), user("b"))),
    "an assistant that only thinks": (
        (user("a"), Message(speaker=Speaker.ASSISTANT, thoughts=(Thought(text="t", signature="s"),))),
        (user("a"),),
    ),
    "a user who says nothing": ((user("a"), user(" ")), (user("a"),)),
    "an assistant that speaks first": ((assistant("hello"),), (user(CONTINUE), assistant("hello"))),
    "nothing at all": ((), (user(CONTINUE),)),
}


@pytest.mark.parametrize(("broken", "whole"), CORPUS.values(), ids=CORPUS)
def test_p21_a_broken_history_is_mended(broken: tuple[Message, ...], whole: tuple[Message, ...]):
    assert mended(broken) == whole


def test_p21_turns_that_are_right_stay_as_they_are():
    turns = (user("a"), assistant("b", call("c1")), tool_answers(answered("c1")), assistant("c"), user("d"))
    assert mended(turns) == turns


IDS = st.sampled_from(["", "c1", "c2", "c:3"])
TURNS = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from(["", "hi"])),
        st.builds(lambda text, ids: assistant(text, *map(call, ids)), st.sampled_from(["", "ok"]), st.lists(IDS)),
        st.builds(lambda ids: tool_answers(*map(answered, ids)), st.lists(IDS)),
    ),
    max_size=8,
).map(tuple)


def is_right(turns: tuple[Message, ...]) -> bool:
    asked: list[str] = []
    for turn in turns:
        if turn.speaker is Speaker.TOOL:
            if [one.call for one in turn.answers] != asked or not asked:
                return False
            asked = []
        elif asked:
            return False
        else:
            asked = [one.id for one in turn.calls]
    ids = [one.id for turn in turns for one in turn.calls]
    return not asked and turns[0].speaker is Speaker.USER and len(ids) == len(set(ids)) and all(ids)


@given(TURNS)
def test_p21_whatever_the_history_it_is_right_afterwards(turns: tuple[Message, ...]):
    whole = mended(turns)
    assert is_right(whole)
    assert mended(whole) == whole


@given(TURNS)
def test_p21_every_format_accepts_whatever_the_history(turns: tuple[Message, ...]):
    request = replace(ASK, messages=turns)
    for wire, encode in ((Wire.ANTHROPIC, anthropic.encode), (Wire.GEMINI, gemini.encode)):
        body = json.loads(encode(request, Endpoint(wire=wire, base_url="http://x", name="m", provider="p")).body)
        roles = [turn["role"] for turn in body.get("messages") or body["contents"]]
        assert roles[0] == "user"
        assert all(one != other for one, other in itertools.pairwise(roles)), "speakers take turns"
        assert all(turn.get("content") or turn.get("parts") for turn in body.get("messages") or body["contents"])
    body = json.loads(
        openai.encode(request, Endpoint(wire=Wire.OPENAI, base_url="http://x", name="m", provider="p")).body
    )
    asked: list[str] = []
    for turn in body["messages"]:
        if turn["role"] == "tool":
            assert turn["tool_call_id"] == asked.pop(0)
        else:
            assert not asked
            asked = [one["id"] for one in turn.get("tool_calls", ())]
    assert not asked


def test_p21_thoughts_can_be_left_out():
    said = Message(speaker=Speaker.ASSISTANT, text="a", thoughts=(Thought(text="t", signature="s"),))
    assert without_thoughts((user("x"), said)) == (user("x"), assistant("a"))
