"""Any sequence of promotions, the user's edits, undos, redos and restores: Pawl's part goes back, the user's stays."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from workspace.promotion.yard import File, Folder, Goal, Link, Yard, in_memory
from world import Snapshot

from pawl.core.change import Entry, EntryKind
from pawl.core.errors import Conflicted, NothingToDo

SHARED = ("shared/one", "shared/two", "three")
OURS = ("made/x", "made/deep/y", "z")
THEIRS = ("mine", "made/mine", "shared/mine")
LINES = 12
OUR_LINES = st.integers(0, 4)
THEIR_LINES = st.integers(7, LINES - 1)
WORDS = st.integers(0, 5).map(lambda n: f"word {n}")


def text(name: str) -> list[str]:
    return [f"{name} line {n}" for n in range(LINES)]


def joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


class Life(RuleBasedStateMachine):
    """Pawl changes the first lines of shared files and files of its own; the user the last lines and others."""

    def __init__(self) -> None:
        super().__init__()
        self.rooms = ExitStack()
        self.yard = self.rooms.enter_context(Yard.open(self.rooms.enter_context(in_memory(Path("/tmp")))))
        self.lines = {name: text(name) for name in SHARED}
        """The shared files as they would be without Pawl."""
        self.files: dict[str, bytes] = {}
        self.points: list[tuple[str, Snapshot]] = []

    @initialize()
    def lay(self) -> None:
        for name, lines in self.lines.items():
            self.yard.write(name, joined(lines))
        self.folders = {name for name, node in self.yard.now().items() if node[0] == "folder"}

    def pawls_part(self) -> Snapshot:
        """The tree without what the user did: their lines count as empty, their files as not there."""
        part = {}
        for name, (kind, mode, data) in self.yard.now().items():
            if name.decode() in SHARED:
                lines = data.decode().splitlines()
                part[name] = (kind, mode, joined(lines[:7]))
            elif kind != "folder" and name.decode() not in THEIRS:
                part[name] = (kind, mode, data)
        return part

    def promote(self, goals: dict[str, Goal]) -> None:
        with suppress(NothingToDo, ValueError):  # A change that changes nothing is no value.
            self.yard.promote(goals)

    @rule(name=st.sampled_from(SHARED), line=OUR_LINES, word=WORDS, mode=st.sampled_from([0o644, 0o755]))
    def pawl_edits_a_line(self, name: str, line: int, word: str, mode: int) -> None:
        lines = self.yard.read(name).decode().splitlines()
        lines[line] = f"pawl {word}"
        self.promote({name: File(joined(lines), mode)})

    @rule(names=st.sets(st.sampled_from(OURS), min_size=1), word=WORDS)
    def pawl_writes_files(self, names: set[str], word: str) -> None:
        self.promote({name: f"{word}\nof {name}\n".encode() for name in names})

    @rule(name=st.sampled_from(OURS), link=st.booleans())
    def pawl_deletes_a_file_or_makes_a_link_of_it(self, name: str, link: bool) -> None:
        if self.yard.tree.find(name) is not None:
            self.promote({name: Link("elsewhere") if link else None})

    @rule()
    def pawl_makes_a_folder(self) -> None:
        if self.yard.tree.find("empty") is None:
            self.promote({"empty": Folder(0o700)})

    @rule(name=st.sampled_from(SHARED), line=THEIR_LINES, word=WORDS)
    def the_user_edits_a_line(self, name: str, line: int, word: str) -> None:
        lines = self.yard.read(name).decode().splitlines()
        lines[line] = self.lines[name][line] = f"user {word}"
        (self.yard.workspace / name).write_bytes(joined(lines))

    @rule(name=st.sampled_from(THEIRS), word=WORDS)
    def the_user_writes_a_file(self, name: str, word: str) -> None:
        self.files[name] = word.encode()
        self.yard.write(name, self.files[name])

    @rule(name=st.sampled_from(THEIRS))
    def the_user_deletes_a_file(self, name: str) -> None:
        if self.files.pop(name, None) is not None:
            (self.yard.workspace / name).unlink()

    @rule()
    def undo_the_newest(self) -> None:
        self.attempt(lambda: self.yard.undo())

    @rule(data=st.data())
    def undo_any_and_perhaps_that_too(self, data: st.DataObject) -> None:
        entries = self.independent()
        if not entries:
            return
        chosen = data.draw(st.sampled_from(entries), label="entry")
        before = self.pawls_part()
        if self.attempt(lambda: self.yard.undo(chosen.id)) and data.draw(st.booleans(), label="back again"):
            self.yard.undo(self.yard.entries()[0].id)
            assert self.pawls_part() == before

    def independent(self) -> list[Entry]:
        """Entries on which no later work rests: taking back a creation says nothing of a later deletion."""
        found, later = [], set()
        for entry in self.yard.entries():
            if not entry.active:
                continue
            touched = self.touched(entry)
            if later.isdisjoint(touched):
                found.append(entry)
            if entry.kind in (EntryKind.EDIT, EntryKind.RESTORE):
                later |= touched
        return found

    def touched(self, entry: Entry) -> set[tuple[str, object]]:
        places: set[tuple[str, object]] = set()
        for change in self.yard.store.journal.changes(entry.id):
            if change.path not in SHARED or change.before is None or change.after is None:
                places.add((change.path, None))
                continue
            if change.before.mode != change.after.mode:
                places.add((change.path, "mode"))
            texts = [self.yard.store.blobs.get(node.blob).splitlines() for node in (change.before, change.after)]
            places |= {(change.path, n) for n, pair in enumerate(zip(*texts, strict=True)) if pair[0] != pair[1]}
        return places

    @rule()
    def redo(self) -> None:
        self.attempt(self.yard.redo)

    @precondition(lambda self: len(self.points) < 3)
    @rule()
    def make_a_checkpoint(self) -> None:
        name = f"point {len(self.points)}"
        self.yard.history.checkpoint(name)
        self.points.append((name, self.pawls_part()))

    @precondition(lambda self: self.points)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        name, part = data.draw(st.sampled_from(self.points), label="checkpoint")
        with suppress(NothingToDo):
            self.yard.restore(name)
        assert self.pawls_part() == part

    def attempt(self, action) -> bool:
        """A step back that is refused has changed nothing."""
        before = self.yard.now()
        try:
            action()
        except (Conflicted, NothingToDo):
            assert self.yard.now() == before
            return False
        return True

    @invariant()
    def what_the_user_made_stands(self) -> None:
        for name, lines in self.lines.items():
            if self.yard.tree.find(name) is not None:
                assert self.yard.read(name).decode().splitlines()[7:] == lines[7:]
        assert {name: self.yard.read(name) for name in self.files} == self.files
        assert self.yard.staged() == []

    def teardown(self) -> None:
        try:
            self.undo_everything()
        finally:
            self.rooms.close()

    def undo_everything(self) -> None:
        while entries := [one for one in self.yard.entries() if one.active and one.kind is not EntryKind.UNDO]:
            work = [one for one in entries if one.kind is not EntryKind.REDO]
            if not work or not any(self.attempt(lambda one=one: self.yard.undo(one.id)) for one in work):
                break
        expected = {name: joined(lines) for name, lines in self.lines.items()} | self.files
        found = {name.decode(): data for name, (kind, _, data) in self.yard.now().items() if kind != "folder"}
        assert found == expected
        kept = {parent.encode() for name in self.files for parent in (name.rpartition("/")[0],) if parent}
        folders = {name for name, node in self.yard.now().items() if node[0] == "folder"}
        assert self.folders <= folders <= self.folders | kept | {b"made"}


@pytest.mark.spec("B9")
def test_after_any_sequence_undoing_everything_leaves_the_start_with_the_users_edits() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=8, stateful_step_count=20, deadline=None))


@pytest.mark.slow
@pytest.mark.spec("B9")
@pytest.mark.timeout(1800)
def test_after_any_long_sequence_undoing_everything_leaves_the_start_with_the_users_edits() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=150, stateful_step_count=50, deadline=None))
