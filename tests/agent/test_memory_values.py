"""What is remembered in a session and between runs: values, the write policy, the bank in the workspace."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import Folder

from pawl.agent.context_watch import MOST_FILES, MOST_TASKS, WorkingContext
from pawl.agent.session_memory import Access, AccessKind, EditNote, Exchange, SeenFile, SessionMemory, Worksheet
from pawl.agent.workspace_memory import (
    TITLES,
    Bank,
    Note,
    concise,
    read_bank,
    recalled,
    updated,
    worth_keeping,
)
from pawl.core.text import CHARACTERS_PER_TOKEN
from pawl.core.typed import plain, typed
from pawl.settings.guardrails import preset
from pawl.store.memories import LONGEST_MEMORY, Memory, MemorySource, MemoryTier, NewMemory

GUARDRAILS = preset("standard")
CANARY = "Zq8vT3xLm2RpW9ydKc5B"


@pytest.mark.spec("B3", "E10")
def test_a_session_remembers_files_exchanges_accesses_and_edits_as_a_value():
    empty = SessionMemory()
    full = (
        empty.with_seen("a.py", "1")
        .with_seen("b.py", "2")
        .with_seen("a.py", "3")
        .with_access("a.py", AccessKind.READ)
        .with_exchange("where?", "there")
        .with_edit("b.py", "rounds prices", 4)
    )
    assert empty == SessionMemory()
    assert full == SessionMemory(
        seen=(SeenFile(path="b.py", digest="2"), SeenFile(path="a.py", digest="3")),
        exchanges=(Exchange(question="where?", answer="there"),),
        accessed=(Access(path="a.py", kind=AccessKind.READ), Access(path="b.py", kind=AccessKind.WRITTEN)),
        edits=(EditNote(path="b.py", what="rounds prices", entry=4),),
    )


@pytest.mark.spec("B3")
def test_a_session_remembers_the_last_ten_exchanges():
    memory = SessionMemory()
    for number in range(12):
        memory = memory.with_exchange(f"question {number}", "answer")
    assert [one.question for one in memory.exchanges] == [f"question {number}" for number in range(2, 12)]


@pytest.mark.spec("B3", "E12")
def test_a_sessions_memory_comes_back_from_json():
    memory = SessionMemory().with_seen("a.py", "1").with_exchange("q", "a").with_edit("a.py", "what")
    assert typed(SessionMemory, json.loads(json.dumps(plain(memory)))) == memory
    for broken in ({**plain(memory), "seen": [1]}, {**plain(memory), "accessed": [["a", "eaten"]]}):
        with pytest.raises(ValueError):
            typed(SessionMemory, broken)
    with pytest.raises(ValueError):
        typed(Worksheet, {"done": "no list"})


@pytest.mark.spec("E10", "C13")
def test_a_worksheet_tells_what_is_done_next_and_read():
    sheet = Worksheet(task="round prices").with_next(["patch", "test", "patch"]).with_read("a.py", "b.py", "a.py")
    further = sheet.with_done("patch")
    assert (sheet.next, further.next, further.done) == (("patch", "test"), ("test",), ("patch",))
    assert further.text == "Task: round prices\nDone:\n- patch\nNext:\n- test\nRead: a.py, b.py"
    for number in range(30):
        further = further.with_done(f"step {number}")
    assert "- [19 earlier]" in further.text and "step 29" in further.text


@pytest.mark.spec("A9", "E10")
def test_the_working_context_drops_the_oldest_first_and_never_a_critical_task():
    context = WorkingContext(most_tokens=1000).with_task("the one that matters" * 10, critical=True)
    for number in range(30):
        context = context.with_task(f"task {number}")
    assert len(context.tasks) == MOST_TASKS and context.tasks[0].critical and context.tasks[-1].text == "task 29"
    for number in range(60):
        context = context.with_file(f"{number}.py", "d", "x" * 40)
    assert len(context.files) == MOST_FILES and context.files[0].path == "10.py"
    context = context.with_file("large.py", "d", "x" * 3500)
    assert context.tokens <= 1000 and context.files[-1].path == "large.py" and context.files[0].path != "10.py"
    context = context.with_task("y" * 5000, critical=True)
    assert [task.critical for task in context.tasks] == [True, True] and context.files == ()


@pytest.mark.spec("A9")
def test_a_cached_file_counts_only_for_the_content_it_had():
    context = WorkingContext().with_file("a.py", "1", "old").with_diagnostics("a.py", "E1", "E2")
    assert context.file("a.py", "1") is not None and context.file("a.py", "2") is None
    assert [one.text for one in context.with_diagnostics("a.py", "E3").diagnostics] == ["E3"]


@pytest.mark.spec("C14")
@pytest.mark.parametrize(
    ("tier", "standing", "kept"),
    [
        (MemoryTier.FACT, {}, False),
        (MemoryTier.FACT, {"decided": True}, False),
        (MemoryTier.FACT, {"succeeded": True}, True),
        (MemoryTier.OUTCOME, {}, False),
        (MemoryTier.OUTCOME, {"succeeded": True}, True),
        (MemoryTier.DECISION, {}, False),
        (MemoryTier.DECISION, {"decided": True}, True),
        (MemoryTier.DECISION, {"succeeded": True}, True),
    ],
)
def test_a_memory_is_written_only_after_success_or_for_a_settled_decision(tier, standing, kept):
    made = worth_keeping(tier, "Tests run with make test.", run="r1", **standing)
    expected = NewMemory(tier=tier, text="Tests run with make test.", source=MemorySource.RUN, run="r1")
    assert made == (expected if kept else None)


@pytest.mark.spec("C14")
def test_a_memory_is_concise_and_without_secrets():
    assert worth_keeping(MemoryTier.FACT, f"API_KEY={CANARY}", succeeded=True) is None
    text = concise("word " * 200)
    assert len(text) <= LONGEST_MEMORY and text.endswith("word…")
    assert CANARY not in concise(f"Use password: {CANARY} for it.")


def memory(number: int, text: str, tier: MemoryTier = MemoryTier.FACT) -> Memory:
    return Memory(
        id=number, tier=tier, text=text, source=MemorySource.RUN, run="r", created=f"2026-01-{number:02}T00:00:00"
    )


@pytest.mark.spec("C14")
def test_what_fits_the_request_is_told_first_then_the_newest_within_the_budget():
    every = [memory(number, f"fact {number} {'x' * 80}") for number in range(1, 20)]
    decision = memory(20, "One file for each command.", MemoryTier.DECISION)
    text = recalled([every[2]], [*every, decision], budget=100)
    assert len(text) <= 100 * CHARACTERS_PER_TOKEN
    assert "fact 3 " in text and "One file for each command." in text and "fact 19 " in text and "fact 4 " not in text
    assert text.index("## Facts") < text.index("## Decisions")
    assert text == recalled([every[2]], [decision, *reversed(every)], budget=100)
    assert recalled([], [], budget=100) == "" and recalled([], every, budget=5) == ""


NOTES = (
    Note(file="project.md", section="Facts", items=("Tests run with make test.",)),
    Note(file="progress.md", section="Next", items=("Round prices.", "Write docs."), replace=True),
)


@pytest.mark.spec("E12")
def test_the_bank_is_written_only_on_success_and_the_same_notes_change_nothing():
    assert updated(Bank(), NOTES, succeeded=False) == {}
    written = updated(Bank(), NOTES, succeeded=True)
    assert written == {
        ".pawl/memory/progress.md": b"# Progress\n\n## Next\n\n- Round prices.\n- Write docs.\n",
        ".pawl/memory/project.md": b"# Project\n\n## Facts\n\n- Tests run with make test.\n",
    }
    bank = read_bank(Folder(written), GUARDRAILS)
    assert updated(bank, NOTES, succeeded=True) == {}


@pytest.mark.spec("E12")
def test_sections_are_added_to_or_replaced_and_the_users_own_words_stay_byte_for_byte():
    before = (
        "# Our notes\r\n\r\nHello.\r\n\r\n## Next\r\nDo these, please:\r\n\r\n- old\r\n\r\n## Mine\r\n\r\n- keep\r\n"
    )
    bank = read_bank(Folder({".pawl/memory/progress.md": before.encode()}), GUARDRAILS)
    replaced = Note(file="progress.md", section="Next", items=("new",), replace=True)
    added = Note(file="progress.md", section="Mine", items=("keep", "more"))
    (content,) = updated(bank, [replaced, added], succeeded=True).values()
    assert content.decode() == (
        "# Our notes\r\n\r\nHello.\r\n\r\n## Next\r\nDo these, please:\r\n\r\n- new\r\n\r\n"
        "## Mine\r\n\r\n- keep\r\n- more\r\n"
    )


@pytest.mark.spec("E12")
def test_the_bank_is_read_first_bounded_and_never_tells_a_secret():
    text = "# Project\n\n## Facts\n\n" + "".join(f"- fact {number}\n" for number in range(500)) + f"- token={CANARY}\n"
    folder = Folder({".pawl/memory/project.md": text.encode(), ".pawl/memory/decisions.md": b"# Decisions\n- one\n"})
    bank = read_bank(folder, GUARDRAILS)
    shown = bank.text(100)
    assert len(shown) <= 400 and shown.startswith("[.pawl/memory/project.md]\n# Project\n")
    assert shown.rsplit("\n", 1)[1].startswith("[… ") and "- fact 0" in shown.split("\n")
    assert CANARY not in bank.text(100_000) and "- one" in bank.text(100_000)
    assert Bank().text(100) == ""
    (content,) = updated(
        Bank(), [Note(file="project.md", section="F", items=(f"key: API_KEY={CANARY}",))], succeeded=True
    ).values()
    assert CANARY.encode() not in content


@pytest.mark.spec("E12")
@pytest.mark.parametrize("data", [b"\x00\x01binary", "caf\xe9".encode("latin-1"), "x".encode("utf-16")])
def test_a_file_that_is_not_utf_8_is_left_alone(data: bytes):
    bank = read_bank(Folder({".pawl/memory/project.md": data}), GUARDRAILS)
    assert list(updated(bank, NOTES, succeeded=True)) == [".pawl/memory/progress.md"]


ITEMS = st.lists(st.text("ab -#\n", max_size=20), max_size=4).map(tuple)


@given(
    st.lists(
        st.builds(Note, file=st.sampled_from(list(TITLES)), section=st.sampled_from("AB"), items=ITEMS), max_size=6
    )
)
def test_whatever_is_noted_noting_it_again_changes_nothing(notes: list[Note]):
    written = updated(Bank(), notes, succeeded=True)
    again = read_bank(Folder(dict(written)), GUARDRAILS)
    assert updated(again, notes, succeeded=True) == {}
