"""What is remembered between questions: memories by their rules, the session of a conversation, estimates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pawl.agent import workspace_memory as remembering
from pawl.agent.context_watch import WORKSHEET, ContextWatch
from pawl.agent.session import Session
from pawl.agent.session_memory import SessionMemory, Worksheet
from pawl.agent.workspace_memory import ESTIMATES, SESSION
from pawl.core.dialogue import Request, ToolAnswer, ToolCall, Usage, user
from pawl.core.errors import UnknownEntry
from pawl.core.events import RequestAnswered, Shortened, ToolEnded
from pawl.core.run import Intent, Mode, Reasoning, Report, RunRequest, RunTerms
from pawl.core.typed import typed
from pawl.store.memories import MemoryTier
from pawl.workspace.project import Project, new_run_id

SCRIPT = """
[[turn]]
answer = { calls = [{ name = "file_read", arguments = { path = "src/greeter.py" } }] }
[[turn]]
answer = "In src/greeter.py:1."
[[turn]]
answer = "Yes, src/greeter.py:2."
"""


def asked(shop: Project, script: Path, text: str, **more: object) -> Report:
    shop.run_id = new_run_id()
    order = RunRequest(text=text, mode=Mode.CHAT, intent=Intent.READ, model=f"scripted:{script}", **more)
    return Session(shop).do(order)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return path


@pytest.mark.spec("C14")
def test_a_run_writes_memories_only_when_it_succeeded_or_a_decision_is_settled(shop: Project):
    wishes = [(MemoryTier.FACT, "Greetings are in src."), (MemoryTier.DECISION, "One module for each language.")]
    assert remembering.remember(shop, wishes, succeeded=False) == ()
    assert [one.tier for one in remembering.remember(shop, wishes, succeeded=False, decided=True)] == [
        MemoryTier.DECISION
    ]
    assert len(remembering.remember(shop, wishes, succeeded=True)) == 2
    assert {(one.text, one.run) for one in remembering.memories(shop)} == {(text, shop.run_id) for _, text in wishes}


@pytest.mark.spec("C14")
def test_what_a_run_is_told_is_bounded_and_the_same_each_time(shop: Project):
    assert remembering.told(shop, "anything") == ()
    for number in range(60):
        remembering.add(shop, f"Fact number {number} about the {'greeter' if number == 3 else 'rest'}. {'x' * 60}")
    (text,) = remembering.told(shop, "where is the greeter?")
    assert len(text) <= remembering.MEMORY_TOKENS * 4 and "Fact number 3 " in text
    assert remembering.told(shop, "where is the greeter?") == (text,)


@pytest.mark.spec("B3", "E12")
def test_the_session_of_a_conversation_is_taken_up_by_another_process(shop: Project, script: Path, site):
    first = asked(shop, script, "where is it?")
    with site.open() as other:
        held = other.store.snapshots.get(other.workspace, first.conversation, SESSION)
        session = typed(SessionMemory, held or {})
        assert [(one.question, one.answer) for one in session.exchanges] == [("where is it?", "In src/greeter.py:1.")]
        assert [one.path for one in session.seen] == ["src/greeter.py"]
        assert [one.path for one in session.accessed] == ["src/greeter.py"]
        watch = ContextWatch(other, terms(other, first.conversation))
        assert watch.session == session and watch.worksheet == Worksheet(task="where is it?", read=("src/greeter.py",))
        kept = remembering.persistent(other)
        assert (kept.answers, list(kept.files), [one.id for one in kept.conversations]) == (
            1,
            ["src/greeter.py"],
            [first.conversation],
        )


@pytest.mark.spec("B3", "B4")
def test_an_answer_that_was_known_is_an_exchange_of_its_session(shop: Project, script: Path):
    first = asked(shop, script, "where is it?")
    again = asked(shop, script, "where is it?")
    assert again.cached and again.conversation != first.conversation
    number, session = remembering.session(shop)
    assert number == again.conversation
    assert [(one.question, one.answer) for one in session.exchanges] == [("where is it?", "In src/greeter.py:1.")]
    assert [one.path for one in session.seen] == ["src/greeter.py"]
    on = asked(shop, script, "are you sure?", conversation=again.conversation)
    assert [one.question for one in remembering.session(shop, on.conversation)[1].exchanges] == [
        "where is it?",
        "are you sure?",
    ]


@pytest.mark.spec("B3")
def test_a_session_that_is_not_there_is_told(shop: Project):
    with pytest.raises(UnknownEntry, match="there is no conversation in this workspace"):
        remembering.session(shop)
    with pytest.raises(UnknownEntry, match="there is no conversation 'c9'"):
        remembering.session(shop, "c9")


def terms(shop: Project, conversation: str = "c1") -> RunTerms:
    return RunTerms(run=shop.run_id, conversation=conversation, mode=Mode.CHAT, reasoning=Reasoning.OFF, model="here/m")


@pytest.mark.spec("E1")
def test_what_a_provider_counted_corrects_the_next_process(shop: Project):
    watch = ContextWatch(shop, terms(shop))
    request = Request(model="here/m", system=("x" * 4000,), messages=(user("hello"),))
    watch.clean(request)
    estimated = watch.monitor.reading(watch.agent).tokens
    answered = RequestAnswered(
        number=1, model="here/m", usage=Usage(input=2 * estimated, output=10), cost=None, seconds=1.0
    )
    watch.hear(answered)
    watch.keep("q", "a", {})
    assert shop.store.snapshots.get(shop.workspace, "", ESTIMATES) == {"here/m": [1, 2.0]}
    shown = remembering.estimates(shop)
    assert {model: (one.requests, one.ratio) for model, one in shown.items()} == {"here/m": (1, 2.0)}
    later = ContextWatch(shop, replace(terms(shop), run="r2"))
    later.clean(request)
    assert later.monitor.reading(later.agent).tokens == 2 * estimated


@pytest.mark.spec("C13")
def test_shortening_is_logged_with_the_tokens_before_and_after(shop: Project):
    watch = ContextWatch(shop, terms(shop))
    watch.hear(Shortened(before_tokens=90_000, after_tokens=9_000))
    event = list(shop.store.events.read(shop.workspace, run=shop.run_id))[-1]
    assert (event["kind"], event["body"]) == ("shortened", {"before_tokens": 90_000, "after_tokens": 9_000})


def test_what_cannot_be_read_of_a_snapshot_is_passed_over(shop: Project):
    for kind in (SESSION, WORKSHEET):
        shop.store.snapshots.put(shop.workspace, "c1", kind, {"done": 3, "seen": 4})
    shop.store.snapshots.put(shop.workspace, "", ESTIMATES, {"here/m": "much"})
    watch = ContextWatch(shop, terms(shop))
    assert (watch.session, watch.worksheet, watch.monitor.errors) == (SessionMemory(), Worksheet(), {})
    call = ToolCall(id="1", name="file_read", arguments={"path": "a.py"})
    watch.hear(ToolEnded(call=call, answer=ToolAnswer(call="1", name="file_read", text="x"), seconds=0.1))
    assert watch.worksheet.read == ("a.py",)


@pytest.mark.spec("B3")
def test_the_session_knows_which_files_were_read_searched_and_written(shop: Project):
    watch = ContextWatch(shop, terms(shop))
    parts = [{"path": "b.py"}, {"path": "c.py"}]
    for name, arguments in (
        ("file_read", {"path": "a.py"}),
        ("file_search", {"query": "x", "path": "src"}),
        ("change_files", {"changes": parts}),
        ("run", {"command": "ls"}),
    ):
        call, answer = ToolCall(id="1", name=name, arguments=arguments), ToolAnswer(call="1", name=name, text="x")
        watch.hear(ToolEnded(call=call, answer=answer, seconds=0.1))
        watch.hear(
            ToolEnded(call=replace(call, arguments={"path": "no"}), answer=replace(answer, failed=True), seconds=0)
        )
    watch.keep("q", "a", {})
    again = ContextWatch(shop, terms(shop)).session
    assert [(one.path, one.kind.value) for one in again.accessed] == [
        ("a.py", "read"),
        ("src", "searched"),
        ("b.py", "written"),
        ("c.py", "written"),
    ]


@pytest.mark.spec("E1")
def test_a_context_that_becomes_too_full_is_an_event_of_the_agent(shop: Project):
    watch = ContextWatch(shop, terms(shop))
    for size in (10, 52_000, 52_100, 90_000):
        watch.clean(Request(model="scripted:x", system=(), messages=(user("word " * size),)))
    noted = [event["body"] for event in shop.store.events.read(shop.workspace) if event["kind"] == "context"]
    assert [(body["agent"], body["level"]) for body in noted] == [
        (watch.agent, "warning"),
        (watch.agent, "critical"),
    ]
