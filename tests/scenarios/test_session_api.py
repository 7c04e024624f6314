"""The session as programs use it: steered, queued, interrupted, edited, forked, and metered while it works."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from scenarios.story import Story, call, patch, say

import pawl
from pawl.agent.session import Session
from pawl.core.change import ChangeSet
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.events import (
    ApprovalAsked,
    Metered,
    QueueChanged,
    RequestSent,
    RunBegun,
    RunEnded,
    RunEvent,
    SessionEvent,
    Steered,
    ToolEnded,
    ToolStarted,
)
from pawl.core.run import Approval, ApprovalAnswer, ApprovalResponse, DeliveryState, RunRequest, RunState

LEAP = "return year % 4 == 0"
RIGHT = "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
FIX = (call("file_read", path="dates.py"), patch("dates.py", LEAP, RIGHT), say("Centuries are leap years only by 400."))


def test_importing_pawl_loads_no_more_than_its_version():
    code = "import pawl, sys; print([name for name in sys.modules if name.startswith('pawl')]); pawl.Session"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['pawl.core', 'pawl']\n"


def test_every_name_of_the_api_is_there_and_no_other():
    assert all(getattr(pawl, name) is not None for name in pawl.__all__)
    assert set(pawl.__all__) <= set(dir(pawl))
    with pytest.raises(AttributeError, match="has no attribute 'Sessions'"):
        _ = pawl.Sessions


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
ANSWERS = """
[[turn]]
answer = { calls = [{ name = "file_read", arguments = { path = "total.py" } }] }
[[turn]]
[turn.answer]
calls = [{ name = "strict_patch", arguments = { path = "total.py", old = "sum(p)", new = "round(sum(p), 2)" } }]
[[turn]]
answer = "It is rounded."
"""


def played(number: int, folder: Path) -> list[str]:
    """What the example of that number on the page prints."""
    (folder / "shop").mkdir()
    (folder / "shop" / "total.py").write_text("def total(p):\n    return sum(p)\n")
    (folder / "answers.toml").write_text(ANSWERS)
    example = re.findall(r"(?<=^```python\n).*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)[number]
    done = subprocess.run([sys.executable, "-c", example], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.whole
def test_the_example_of_the_page_does_what_it_says(story: Story, tmp_path: Path):
    lines = played(0, tmp_path)
    assert lines[0] == "RunBegun" and lines[-2] == "RunEnded" and "+    return round(sum(p), 2)" in lines
    assert lines[-1] == "DONE 1 None None 0"
    assert "round" in (tmp_path / "shop" / "total.py").read_text()


@pytest.mark.whole
@pytest.mark.spec("B1")
def test_the_example_with_langgraph_does_what_it_says(story: Story, tmp_path: Path):
    lines = played(1, tmp_path)
    assert lines[0] == "RunBegun" and "RunEnded" in lines and "+    return round(sum(p), 2)" in lines
    assert lines[-1] == "DONE 1"
    assert "round" in (tmp_path / "shop" / "total.py").read_text()


def test_every_command_field_and_event_of_the_api_is_on_its_page():
    public = [name for name in vars(Session) if not name.startswith("_")]
    fields = [one.name for kind in (RunRequest, ApprovalResponse) for one in dataclasses.fields(kind)]
    events = [one.__name__ for kind in (SessionEvent, RunEvent) for one in get_args(kind)]
    inner = {"shop", "listen", "cancel", "permit", "close"}
    missing = [name for name in (*public, *fields, *events) if f"`{name}" not in PAGE and name not in inner]
    assert [name for name in missing if f"`Session.{name}(" not in PAGE] == []


@pytest.fixture
def notes(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """A workspace without tests, in which a run is quick."""
    (tmp_path / "config.toml").write_text('review = "off"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    story.user_writes({"notes.txt": "begin\n"})
    return story


def order(story: Story, text: str, **more: object) -> RunRequest:
    return RunRequest(**{"text": text, "approval": Approval.NEVER, "model": f"scripted:{story.script}", **more})


@pytest.mark.spec("B7")
def test_words_said_while_it_works_are_taken_at_the_next_step(notes: Story):
    notes.model_says(
        call("file_write", path="a.txt", content="a\n"),
        {"match": {"user": "and b too"}, **call("file_write", path="b.txt", content="b\n")},
        say("Both are written."),
    )
    with notes.session() as session:
        notes.meanwhile = once(ToolStarted, lambda: session.steer("and b too"))
        done = session.do(order(notes, "write a.txt"))
        said = [one.message.text for one in session.transcript(done.conversation)]
    assert done.delivery is DeliveryState.DONE and "b.txt" in notes.files()
    kinds = [type(event) for event in notes.events]
    assert kinds.index(ToolStarted) < kinds.index(Steered) < len(kinds) - 1 - kinds[::-1].index(RequestSent)
    assert "and b too" in said


@pytest.mark.spec("B7", "F7")
def test_of_two_answers_at_the_same_moment_the_first_counts_and_the_other_is_told_so(notes: Story):
    """Both have read that the run waits before either of them answers."""
    notes.model_says(call("file_write", path="a.txt", content="a\n"), say("It is written."))
    with notes.session() as session:
        asked = session.do(order(notes, "write a.txt", approval=Approval.FINAL))
        digest = asked.question.digest

        class Late(Session):
            def shown(self, run: str) -> ChangeSet:
                session.accept(run, ApprovalResponse(answer=ApprovalAnswer.REJECT, digest=digest, reason="not so"))
                return super().shown(run)

        patch = session.patch(asked.run).replace("+a", "+b")
        with pytest.raises(UsageError, match="does not wait for an answer"):
            Late(session.shop).accept(
                asked.run, ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest, patch=patch)
            )
        ended = session.resume(asked.run)
        assert ended.rejected == "not so" and "a.txt" not in notes.files()


def once(kind: type, act):
    """Does it at the first event of the kind."""
    left = [act]

    def hear(event: object) -> None:
        if left and isinstance(event, kind):
            left.pop()()

    return hear


@pytest.mark.spec("B7")
def test_words_said_while_the_last_answer_comes_keep_the_talk_open(notes: Story):
    notes.model_says(
        call("file_write", path="a.txt", content="a\n"),
        say("Written."),
        {"match": {"user": "b as well"}, **call("file_write", path="b.txt", content="b\n")},
        say("Both."),
    )
    with notes.session() as session:
        sent = []

        def hear(event: object) -> None:
            if isinstance(event, RequestSent):
                sent.append(event)
                if len(sent) == 2:
                    session.steer("b as well")

        notes.meanwhile = hear
        done = session.do(order(notes, "write a.txt"))
    assert (done.answer, done.requests) == ("Both.", 5)


@pytest.mark.spec("B7")
def test_a_steered_run_that_is_interrupted_hears_the_same_words_again(notes: Story):
    notes.model_says(
        call("file_write", path="a.txt", content="a\n"),
        {"match": {"user": "and b too"}, **call("file_write", path="b.txt", content="b\n")},
        {"match": {"user": "never mind"}, **call("file_read", path="a.txt")},
        say("Both are written."),
    )
    with notes.session() as session:
        ended = []

        def hear(event: object) -> None:
            if isinstance(event, ToolEnded):
                ended.append(event)
                if len(ended) == 1:
                    session.steer("and b too")
                if len(ended) == 2:
                    session.steer("never mind")
                    session.interrupt()

        notes.meanwhile = hear
        stopped = session.do(order(notes, "write a.txt"))
    assert (stopped.state, stopped.trouble.code) == (RunState.WORKING, "cancelled")
    assert [event.text for event in notes.events if isinstance(event, Steered)] == ["and b too"]
    notes.meanwhile = lambda event: None
    notes.events.clear()
    with notes.session() as session:
        done = session.resume(stopped.run)
        said = [one.message.text for one in session.transcript(done.conversation)]
    assert done.delivery is DeliveryState.DONE and done.requests == 5
    # What was heard before is not heard anew; what was said and not yet taken is.
    assert [event.text for event in notes.events if isinstance(event, Steered)] == ["never mind"]
    assert said.count("and b too") == said.count("never mind") == 1


def test_words_that_nobody_was_there_to_take_are_the_next_request(notes: Story):
    with notes.session() as session:
        notes.meanwhile = once(RunBegun, lambda: session.steer("what can you do?"))
        first = session.do(order(notes, "help"))
        assert [one.text for one in session.queued] == ["what can you do?"]
        following = session.go_on()
    assert following is not None and following.conversation == first.conversation
    assert "changes code on a bench" in following.answer


def test_words_said_when_the_run_is_over_are_the_next_request(notes: Story):
    with notes.session() as session:
        first = session.do(order(notes, "help"))
        assert not session.is_spoken_to
        session.steer("what can you do?")
        assert session.is_spoken_to
        following = session.go_on()
        assert not session.is_spoken_to
    assert following is not None and following.conversation == first.conversation


@pytest.mark.spec("B7")
def test_follow_ups_are_carried_out_in_order_in_the_same_conversation(notes: Story):
    notes.model_says(
        {"match": {"user": "write b.txt"}, **call("file_write", path="b.txt", content="b\n")},
        {"match": {"user": "write b.txt"}, **say("b is written.")},
        {"match": {"user": "write a.txt"}, **call("file_write", path="a.txt", content="a\n")},
        {"match": {"user": "write a.txt"}, **say("a is written.")},
    )
    with notes.session() as session:

        def ask_more() -> None:
            session.queue("write b.txt")
            session.queue("what can you do?")

        notes.meanwhile = once(RunBegun, ask_more)
        first = session.do(order(notes, "write a.txt"))
        second, third, none = session.go_on(), session.go_on(), session.go_on()
        said = [one.message.text for one in session.transcript(first.conversation)]
    assert (second.answer, third.requests, none) == ("b is written.", 0, None)
    assert len({first.run, second.run, third.run}) == 3
    assert {first.conversation} == {second.conversation, third.conversation}
    assert said[0] == "write a.txt" and said[-2:] == ["what can you do?", third.answer]
    assert [len(event.waiting) for event in notes.events if isinstance(event, QueueChanged)] == [2, 1, 0]


def test_follow_ups_of_an_interrupted_run_are_there_when_it_is_resumed_and_wait_for_its_end(notes: Story):
    notes.model_says(call("file_write", path="a.txt", content="a\n"), say("a is written."))
    with notes.session() as session:

        def stop() -> None:
            session.queue("what can you do?")
            session.interrupt()

        notes.meanwhile = once(ToolStarted, stop)
        stopped = session.do(order(notes, "write a.txt"))
        assert session.go_on() is None  # the present request is not at its end
    notes.meanwhile = lambda event: None
    with notes.session() as session:
        assert session.resume(stopped.run).delivery is DeliveryState.DONE
        assert "changes code" in session.go_on().answer


@pytest.mark.spec("B7")
def test_a_command_that_is_interrupted_leaves_a_run_that_does_it_again(notes: Story):
    notes.model_says(
        call("run_command", command="echo x >> log.txt; test -e go || sleep 25; echo y >> log.txt"), say("Logged.")
    )
    with notes.session() as session:
        notes.meanwhile = once(ToolStarted, session.interrupt)
        stopped = session.do(order(notes, "write the log"))
    assert stopped.state is RunState.WORKING and stopped.requests == 1
    (notes.workspace / "go").touch()
    done = notes.resume(stopped.run)
    assert (done.delivery, done.requests) == (DeliveryState.DONE, 3)
    assert notes.read("log.txt") == "x\ny\n"


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_what_the_user_edited_is_verified_again_and_promoted(story: Story):
    story.model_says(*FIX)
    waiting = story.do("fix is_leap")
    with story.session() as session:
        shown = session.patch(waiting.run)
        assert [hunk.path for hunk in session.hunks(waiting.run)] == ["dates.py"]
        wrong = ApprovalResponse(
            answer=ApprovalAnswer.APPROVE,
            digest=waiting.question.digest,
            patch=shown.replace("year % 100 != 0", "False"),
        )
        again = session.answer(waiting.run, wrong)
        assert again.state is RunState.WAITING and "as you edited it does not pass" in again.stale
        mine = shown.replace("\n+    return", "\n+    # centuries\n+    return")
        done = session.answer(
            waiting.run,
            ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=again.question.digest, patch=f"# a remark\n{mine}"),
        )
    assert done.delivery is DeliveryState.DONE, done
    assert f"    # centuries\n    {RIGHT}\n" in story.read("dates.py")
    assert done.kept is not None  # what was shown is at hand


HOSTILE = {
    "no patch": "do as I say",
    "nothing": "# all of it is gone\n",
    "out of the workspace": "diff --git a/../x b/../x\nnew file mode 100644\n"
    "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
    "a secret": "diff --git a/.env b/.env\nnew file mode 100644\n--- /dev/null\n+++ b/.env\n@@ -0,0 +1 @@\n+x\n",
    "a hook of git": "diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n"
    "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n",
    "another text": "diff --git a/dates.py b/dates.py\n--- a/dates.py\n+++ b/dates.py\n@@ -1 +1 @@\n-never there\n+x\n",
}


@pytest.mark.whole
@pytest.mark.spec("B7")
@pytest.mark.attack("A43")
def test_an_edited_patch_that_is_hostile_or_torn_is_refused_and_the_run_still_waits(story: Story):
    before = story.files()
    story.model_says(*FIX)
    waiting = story.do("fix is_leap")
    with story.session() as session:
        for text in HOSTILE.values():
            with pytest.raises(UsageError, match="edited patch"):
                session.answer(
                    waiting.run,
                    ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=waiting.question.digest, patch=text),
                )
        with pytest.raises(UsageError, match="approves all of it"):
            session.answer(
                waiting.run, ApprovalResponse(answer=ApprovalAnswer.REJECT, digest="", patch=session.patch(waiting.run))
            )
        stale = session.answer(
            waiting.run,
            ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest="0" * 64, patch=session.patch(waiting.run)),
        )
        assert stale.state is RunState.WAITING and "a different change" in stale.stale
    assert story.files() == before


def test_a_fork_knows_what_was_said_and_leaves_the_first_as_it_was(notes: Story):
    notes.model_says(
        {"match": {"user": "what does"}, **say("notes.txt begins with begin (notes.txt:1).")},
        {"match": {"user": "what follows"}, **say("Nothing follows (notes.txt:1).")},
    )
    with notes.session() as session:
        first = session.do(order(notes, "what does notes.txt say?"))
        before = session.transcript(first.conversation)
        other = session.fork(first.conversation)
        second = session.do(order(notes, "what follows?", conversation=other, mode="chat"))
        assert second.conversation == other != first.conversation
        assert session.transcript(first.conversation) == before
        texts = [one.message.text for one in session.transcript(other)]
        assert texts[: len(before)] == [one.message.text for one in before] and len(texts) == len(before) + 2
        assert {one.id for one in session.conversations()} == {first.conversation, other}
        assert [row.id for row in session.runs(limit=2)] == [second.run, first.run]
        with pytest.raises(UnknownEntry):
            session.fork("c00000000")


def test_context_and_cost_are_told_after_each_answer_and_go_on_after_an_interruption(notes: Story):
    turns = (call("file_write", path="a.txt", content="a\n"), call("file_read", path="a.txt"), say("Written."))
    priced = [{"answer": {**turn["answer"], "cost": "0.25", "usage": {"input": 1000, "output": 10}}} for turn in turns]
    notes.model_says(*priced)
    with notes.session() as session:
        notes.meanwhile = once(ToolStarted, session.interrupt)
        stopped = session.do(order(notes, "write a.txt"))
    with notes.session() as session:
        done = session.resume(stopped.run)
    meters = [event for event in notes.events if isinstance(event, Metered)]
    assert [(one.requests, one.cost) for one in meters] == [(n, Decimal("0.25") * n) for n in (1, 2, 3)]
    assert {one.context_tokens for one in meters} == {1010} and meters[0].context_window > 1010
    assert done.cost == meters[-1].cost


def test_a_run_that_was_only_made_begins_and_one_that_was_stopped_is_resumed(notes: Story):
    notes.model_says(call("file_write", path="a.txt", content="a\n"), say("Written."))
    with notes.session() as session:
        run = session.begin(order(notes, "write a.txt"))
        notes.meanwhile = once(ToolStarted, session.interrupt)
        session.resume(run)
    with notes.session() as session:
        session.resume(run)
    assert [one.resumed for one in notes.events if isinstance(one, RunBegun)] == [False, True]


@pytest.mark.whole
def test_the_events_of_a_command_begin_with_the_run_and_end_with_its_report(story: Story):
    story.model_says(*FIX)
    waiting = story.do("fix is_leap")
    first, *_, asked, last = story.events
    assert isinstance(first, RunBegun) and first.run == waiting.run and not first.resumed
    assert isinstance(asked, ApprovalAsked) and asked.question == waiting.question
    assert isinstance(last, RunEnded) and last.report == waiting


def test_a_folder_is_opened_with_the_settings_of_an_environment(tmp_path: Path):
    (tmp_path / "work").mkdir()
    environment = {"HOME": str(tmp_path), "PAWL_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    with Session.open(tmp_path / "work", environment=environment) as session:
        assert session.do("what can you do?").delivery is DeliveryState.DONE
        with pytest.raises(UsageError):
            session.steer("  ")
        session.interrupt()  # nothing is under way
