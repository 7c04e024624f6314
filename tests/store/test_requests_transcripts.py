"""What was said comes back as it was, without secrets, until retention lets the whole conversation go."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from pawl.core.change import Retention
from pawl.core.dialogue import (
    Conversation,
    Message,
    Speaker,
    Thought,
    ToolAnswer,
    ToolCall,
    TranscriptLine,
    assistant,
    tool_answers,
    user,
)
from pawl.core.errors import StoreCorrupt
from pawl.core.redact import MARK

CANARY = "Zq8vT3xLm2RpW9ydKc5B"
CALL = ToolCall(id="1", name="read", arguments={"path": "odd \ud800"}, raw='{"path": "odd \\ud800"}', provider_id="p")
DIALOGUE = [
    user("What is in odd \ud800?"),
    replace(assistant("I look.", CALL), thoughts=(Thought(text="Hm.", signature="opaque"),)),
    tool_answers(ToolAnswer(call="1", name="read", text="nothing", failed=True)),
    assistant("Nothing."),
]


def test_a_conversation_comes_back_as_it_was(desk):
    transcripts = desk.store.transcripts
    numbers = [transcripts.append("/w", "c1", message, run="r1") for message in DIALOGUE]
    transcripts.append("/w", "c2", user("Something else."))
    said = transcripts.messages("c1")
    assert [one.message for one in said] == DIALOGUE
    assert [one.number for one in said] == numbers
    assert {(one.time, one.run, one.sent_again) for one in said} == {("2027-01-15T08:00:00.000+00:00", "r1", True)}
    assert transcripts.messages("c3") == []


@pytest.mark.spec("C9")
def test_the_full_reasoning_is_kept_beside_the_message(desk):
    long = "<reasoning>\n" + "All of it. \ud800\n" * 500
    number = desk.store.transcripts.append("/w", "c1", assistant("Plan: look."), reasoning=long)
    assert desk.store.transcripts.messages("c1") == [
        TranscriptLine(
            number=number,
            time="2027-01-15T08:00:00.000+00:00",
            run="",
            message=assistant("Plan: look."),
            reasoning=long,
        )
    ]


def test_what_is_only_shown_is_marked(desk):
    desk.store.transcripts.append("/w", "c1", assistant("Half an ans"), sent_again=False)
    assert [one.sent_again for one in desk.store.transcripts.messages("c1")] == [False]


def test_conversations_are_listed_with_the_newest_first(desk, clock):
    transcripts = desk.store.transcripts
    transcripts.append("/w", "c1", user("  First\nwords " + "and more " * 20))
    transcripts.append("/w", "c1", assistant("Yes."))
    clock.pass_days(1)
    transcripts.append("/w", "c2", assistant("Hello."))
    transcripts.append("/elsewhere", "c3", user("Not here."))
    clock.pass_days(1)
    transcripts.append("/w", "c1", user("Again."))
    first = Conversation(
        id="c1",
        started="2027-01-15T08:00:00.000+00:00",
        last="2027-01-17T08:00:00.000+00:00",
        title=("First words " + "and more " * 20)[:79].rstrip() + "…",
        turns=2,
    )
    second = Conversation(
        id="c2",
        started="2027-01-16T08:00:00.000+00:00",
        last="2027-01-16T08:00:00.000+00:00",
        title="",
        turns=0,
    )
    assert transcripts.conversations("/w") == [first, second]
    assert transcripts.conversations("/w", limit=1) == [first]
    assert transcripts.conversations("/nowhere") == []


@pytest.mark.spec("B13")
def test_secrets_are_not_stored(desk):
    message = Message(
        speaker=Speaker.ASSISTANT,
        text=f"PASSWORD={CANARY}",
        thoughts=(Thought(text=f"token: {CANARY}", signature="opaque"),),
        calls=(ToolCall(id="1", name="run", arguments={"command": f"login --token {CANARY}"}, raw=f"token={CANARY}"),),
    )
    desk.store.transcripts.append("/w", "c1", message, reasoning=f"api_key = '{CANARY}'")
    said = desk.store.transcripts.messages("c1")[0]
    assert CANARY not in repr(said)
    assert (said.message.text, said.reasoning) == (f"PASSWORD={MARK}", f"api_key = '{MARK}'")
    # It would not hold for the text that is left.
    assert said.message.thoughts == (Thought(text=f"token: {MARK}"),)


def test_what_was_said_cannot_be_changed(desk):
    desk.store.transcripts.append("/w", "c1", user("Hello."))
    with pytest.raises(sqlite3.IntegrityError, match="written once"):
        desk.store._database.run("UPDATE said SET body = '{}'")


def test_retention_drops_a_conversation_whole_when_nothing_was_said_in_it_since(desk, clock):
    transcripts = desk.store.transcripts
    transcripts.append("/w", "old", user("Hello."))
    transcripts.append("/w", "continued", user("Hello."))
    clock.pass_days(20)
    transcripts.append("/w", "continued", user("Again."))
    clock.pass_days(20)
    desk.store.journal.prune(Retention(days=30, backups=5))
    assert transcripts.messages("old") == []
    assert [one.message.text for one in transcripts.messages("continued")] == ["Hello.", "Again."]
    assert [one.id for one in transcripts.conversations("/w")] == ["continued"]


def test_a_message_that_cannot_be_read_is_named(desk):
    insert = "INSERT INTO said (time, workspace, conversation, run, speaker, body, reasoning, sent_again)"
    desk.store._database.run(f"{insert} VALUES ('', X'2F77', 'c1', '', 'user', '[]', '\"\"', 1)")
    with pytest.raises(StoreCorrupt, match="message 1 cannot be read"):
        desk.store.transcripts.messages("c1")
