"""A message comes back from JSON as it was, whatever letters it holds."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.dialogue import Message, Speaker, Thought, ToolAnswer, ToolCall, from_json, to_json, user

# Surrogates are letters of half a character: names of files and broken answers have them.
texts = st.text(st.characters(exclude_categories=()), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
calls = st.builds(
    ToolCall,
    id=texts,
    name=texts,
    arguments=st.none() | st.dictionaries(texts, values, max_size=3),
    raw=texts,
    mistake=texts,
    provider_id=texts,
    signature=texts,
)
messages = st.builds(
    Message,
    speaker=st.sampled_from(Speaker),
    text=texts,
    thoughts=st.lists(st.builds(Thought, text=texts, signature=texts), max_size=3).map(tuple),
    calls=st.lists(calls, max_size=3).map(tuple),
    answers=st.lists(
        st.builds(ToolAnswer, call=texts, name=texts, text=texts, failed=st.booleans()), max_size=3
    ).map(tuple),
)  # fmt: skip


@given(messages)
def test_a_message_comes_back_from_json_as_it_was(message: Message) -> None:
    assert from_json(json.loads(json.dumps(to_json(message)))) == message


def test_what_is_empty_is_left_out() -> None:
    assert to_json(user("Hello.")) == {"speaker": "user", "text": "Hello."}


def test_a_call_without_arguments_is_not_a_call_with_broken_ones() -> None:
    for arguments in (None, {}):
        message = Message(speaker=Speaker.ASSISTANT, calls=(ToolCall(id="1", name="t", arguments=arguments),))
        assert from_json(to_json(message)).calls[0].arguments == arguments


def test_arguments_may_be_any_mapping() -> None:
    call = ToolCall(id="1", name="t", arguments=MappingProxyType({"a": (1, MappingProxyType({"b": 2}))}))
    shown = to_json(Message(speaker=Speaker.ASSISTANT, calls=(call,)))
    assert json.loads(json.dumps(shown))["calls"][0]["arguments"] == {"a": [1, {"b": 2}]}


def test_names_of_a_later_version_are_passed_over() -> None:
    assert from_json({"speaker": "user", "text": "Hello.", "mood": "good"}) == user("Hello.")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None"),
        ({"text": "a"}, "speaker"),
        ({"speaker": "system"}, "'system'"),
        ({"speaker": "user", "text": 1}, "text"),
        ({"speaker": "user", "calls": {}}, "calls"),
        ({"speaker": "user", "answers": ["a"]}, "answers"),
        ({"speaker": "user", "calls": [{"arguments": []}]}, "arguments"),
    ],
)
def test_what_is_no_message_is_named(value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        from_json(value)
