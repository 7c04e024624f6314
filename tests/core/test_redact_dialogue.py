"""Secrets do not reach a model, and an old message costs nothing in the next request."""

from __future__ import annotations

import json

import pytest

from pawl.core import redact
from pawl.core.dialogue import Message, Request, Speaker, Thought, ToolAnswer, ToolCall, ToolOffer, assistant, user
from pawl.core.redact import MARK, Redactor, redacted_arguments, redacted_message, redacted_request

pytestmark = pytest.mark.spec("B13")

CANARY = "Zq8vT3xLm2RpW9ydKc5B"
KNOWN = "correct horse battery staple"


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    own = Redactor([KNOWN])
    monkeypatch.setattr(redact, "PROCESS", own)
    return own


def request_of(*messages: Message, **others: object) -> Request:
    return Request(model="p/m", system=("Be brief.",), messages=messages, **others)


def a_full_message(secret: str) -> Message:
    arguments = {"path": "a", "new": f'token = "{secret}"', "deep": [{"password": secret}], "n": 1}
    return Message(
        speaker=Speaker.ASSISTANT,
        text=f"PASSWORD={secret}",
        thoughts=(Thought(text=f"api_key: {secret}"),),
        calls=(
            ToolCall(
                id="1", name="edit", arguments=arguments, raw=json.dumps(arguments), provider_id="p", signature="s"
            ),
            ToolCall(id="2", name="edit", arguments=None, raw=f'{{"token": "{secret}"', mistake=f"token={secret}"),
        ),
        answers=(ToolAnswer(call="1", name="edit", text=f"Bearer {secret}", failed=True),),
    )


def test_every_text_of_a_message_is_looked_into() -> None:
    shown = redacted_message(a_full_message(CANARY))
    assert CANARY not in repr(shown)
    first, second = shown.calls
    assert first.arguments == {"path": "a", "new": f'token = "{MARK}"', "deep": [{"password": MARK}], "n": 1}
    assert json.loads(first.raw) == first.arguments
    assert (first.id, first.provider_id, first.signature, second.raw) == ("1", "p", "s", f'{{"token": "{MARK}"')
    assert redacted_message(shown) == shown


def test_a_message_with_nothing_to_hide_is_the_same_value() -> None:
    arguments = {"path": "src/token.py", "old": "token = next(tokens)", "many": ["a", {"b": None}]}
    call = ToolCall(id="1", name="edit", arguments=arguments, raw='{"path":  "src/token.py"}')
    message = assistant("The token is read here.", call)
    request = request_of(message, tools=(ToolOffer(name="t", description="Reads.", input_schema={}),))
    assert redacted_message(message) is message
    assert redacted_request(request) is request


def test_a_request_is_redacted_whole() -> None:
    request = Request(
        model="p/m",
        system=("Be brief.", f"Use API_KEY={CANARY}."),
        messages=(user(f"my password is {CANARY}"), a_full_message(CANARY), a_full_message(KNOWN)),
        tools=(ToolOffer(name="t", description=f"Needs token={CANARY}", input_schema={}),),
    )
    shown = redacted_request(request)
    assert CANARY not in repr(shown)
    assert KNOWN not in repr(shown)
    assert shown.system[0] is request.system[0]


def test_what_a_provider_signed_goes_back_to_it_unchanged_and_is_stored_without_secrets() -> None:
    signed = Thought(text=f"token = '{CANARY}'", signature="opaque")
    message = Message(speaker=Speaker.ASSISTANT, thoughts=(signed, Thought(text=f"token = '{CANARY}'")))
    sent = redacted_request(request_of(message)).messages[0]
    assert [thought.text for thought in sent.thoughts] == [signed.text, f"token = '{MARK}'"]
    assert CANARY not in repr(redacted_message(message))


def test_a_signed_thought_with_a_known_secret_does_not_go_back() -> None:
    message = Message(
        speaker=Speaker.ASSISTANT, text="yes", thoughts=(Thought(text=f"so it is {KNOWN}", signature="opaque"),)
    )
    assert redacted_request(request_of(message)).messages[0] == assistant("yes")


def test_an_old_message_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counting(text: str) -> str:
        looked.append(text)
        return redact.PROCESS.redacted(text)

    monkeypatch.setattr(redact, "redacted", counting)
    messages: tuple[Message, ...] = ()
    for turn in range(200):
        messages = (*messages, user(f"turn {turn}"), assistant(f"answer {turn}: token={CANARY}"))
        looked.clear()
        shown = redacted_request(Request(model="p/m", system=("Be brief.",), messages=messages))
        assert len(looked) <= 3
        assert len(shown.messages) == len(messages)
        assert CANARY not in shown.messages[-1].text


def test_a_value_registered_later_is_hidden_in_old_messages_as_well(process: Redactor) -> None:
    message = user("the words are troubadour and elephant")
    assert redacted_message(message) is message
    process.register("troubadour and elephant")
    assert redacted_message(message) == user(f"the words are {MARK}")


def test_more_messages_than_are_remembered_are_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_LARGEST", 8)
    messages = tuple(user(f"number {n}: token={CANARY}") for n in range(50))
    for _ in range(2):
        assert CANARY not in repr(redacted_request(request_of(*messages)))


def test_arguments_that_are_too_deep_are_cut() -> None:
    deep: object = f"token={CANARY}"
    for _ in range(5000):
        deep = [deep]
    shown = redacted_arguments({"a": deep})
    depth = 0
    inner: object = shown["a"]
    while isinstance(inner, list):
        inner, depth = inner[0], depth + 1
    assert (inner, depth) == (MARK, 65)
