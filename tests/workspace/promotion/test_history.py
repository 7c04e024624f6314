"""Undo, redo and restore: exact, in any order, merged with what the user did since, and never a loss."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from workspace.promotion.yard import File, Folder, Goal, Link, Yard
from world import lay

from pawl.core.change import EntryKind, EntryState, Retention, RollbackPolicy
from pawl.core.errors import Conflicted, NothingToDo, StoreError, UnknownEntry
from pawl.core.merge import ConflictReason
from pawl.workspace.reversal import Wish

pytestmark = pytest.mark.spec("B9")

TEN = b"".join(b"line %d\n" % n for n in range(1, 11))


def with_line(number: int, text: bytes, source: bytes = TEN) -> bytes:
    lines = source.splitlines(keepends=True)
    lines[number - 1] = text + b"\n"
    return b"".join(lines)


@pytest.fixture
def filled(yard: Yard) -> Yard:
    lay(yard.workspace, {"a": TEN, "b": b"b\n", "sub/c": b"c\n", "bin": bytes(range(256)), "link": "a"})
    return yard


def active(yard: Yard) -> list[int]:
    return sorted(entry.id for entry in yard.entries() if entry.active and entry.kind is EntryKind.EDIT)


class TestUndo:
    def test_without_a_number_the_newest_entry_is_taken_back_then_the_one_before(self, filled: Yard) -> None:
        states = [filled.now()]
        for n in range(3):
            filled.promote({"b": b"version %d\n" % n, f"new{n}": b"1"})
            states.append(filled.now())
        for n in reversed(range(3)):
            assert filled.undo().title == f"undo {n + 1}: work"
            assert filled.now() == states[n]
        with pytest.raises(NothingToDo, match="nothing to undo"):
            filled.undo()

    def test_entries_can_be_taken_back_in_any_order(self, filled: Yard) -> None:
        before = filled.now()
        filled.promote({"a": with_line(1, b"one"), "new": b"1"})
        filled.promote({"a": with_line(5, b"five", with_line(1, b"one"))})
        filled.promote({"a": with_line(10, b"ten", with_line(5, b"five", with_line(1, b"one")))})
        filled.undo(1)
        assert filled.read("a") == with_line(10, b"ten", with_line(5, b"five"))
        filled.undo(3)
        assert filled.read("a") == with_line(5, b"five")
        filled.undo(2)
        assert filled.now() == before

    def test_twice_is_refused_with_the_way_back(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        filled.undo(1)
        with pytest.raises(NothingToDo, match="entry 1 was already undone by entry 2") as caught:
            filled.undo(1)
        assert caught.value.advice == "bring it back with 'pawl undo 2' or 'pawl redo'"

    def test_one_file_of_an_entry(self, filled: Yard) -> None:
        filled.promote({"a": b"1\n", "b": b"2\n", "sub/c": b"3\n"})
        filled.undo(1, "b")
        assert [filled.read(name) for name in ("a", "b", "sub/c")] == [b"1\n", b"b\n", b"3\n"]
        assert filled.entries()[1].active
        filled.undo(1)
        assert [filled.read(name) for name in ("a", "b", "sub/c")] == [TEN, b"b\n", b"c\n"]

    def test_one_folder_of_an_entry_and_not_what_only_begins_like_it(self, filled: Yard) -> None:
        filled.promote({"sub/c": b"1\n", "sub/new/deep": b"2\n", "subway": b"3\n"})
        filled.undo(1, "sub")
        assert filled.read("sub/c") == b"c\n"
        assert not (filled.workspace / "sub/new").exists()
        assert filled.read("subway") == b"3\n"

    def test_a_file_the_entry_did_not_touch_is_told_with_what_it_did(self, filled: Yard) -> None:
        filled.promote({"a": b"1\n"})
        with pytest.raises(UnknownEntry, match="did not touch 'zzz'") as caught:
            filled.undo(1, "zzz")
        assert caught.value.advice == "it touched 'a'"

    def test_an_unknown_entry_is_told(self, filled: Yard) -> None:
        with pytest.raises(UnknownEntry, match="no entry 9"):
            filled.undo(9)

    @pytest.mark.parametrize("state", [EntryState.ROLLED_BACK, EntryState.CONFLICT])
    def test_an_entry_that_is_not_in_the_workspace_cannot_be_taken_back(self, filled: Yard, state: EntryState) -> None:
        filled.store.journal.finish(filled.begin({"a": b"1\n"}), state)
        with pytest.raises(NothingToDo, match=f"entry 1 is {state}"):
            filled.undo(1)

    def test_a_kept_entry_cannot_be_taken_back(self, filled: Yard) -> None:
        filled.store.journal.record(filled.entry(), filled.changes({"a": b"1\n"}))
        with pytest.raises(NothingToDo, match="entry 1 is captured"):
            filled.undo(1)

    def test_what_the_user_took_back_by_hand_is_told_with_the_entry_before(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        filled.promote({"a": b"2\n"})
        filled.write("a", TEN)
        with pytest.raises(NothingToDo, match="are already as they were before") as caught:
            filled.undo()
        assert caught.value.advice == "'pawl undo 1' takes back what was done before that"

    def test_a_preview_changes_nothing(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        before = filled.now()
        reversal = filled.history.undo(None, Wish(dry_run=True))
        assert (reversal.promotion, reversal.changes.paths) == (None, {"b"})
        assert (filled.now(), len(filled.entries())) == (before, 1)

    def test_of_an_undo_brings_the_work_back_and_of_that_takes_it_again(self, filled: Yard) -> None:
        before = filled.now()
        filled.promote({"b": File(b"1\n", 0o755), "new": b"2\n"})
        after = filled.now()
        filled.undo(1)
        filled.undo(2)
        assert filled.now() == after
        assert active(filled) == [1]
        filled.undo(3)
        assert filled.now() == before
        filled.undo(4)
        assert filled.now() == after

    def test_after_an_undo_of_an_undo_the_work_can_be_taken_back_as_before(self, filled: Yard) -> None:
        before = filled.now()
        filled.promote({"b": b"1\n"})
        filled.undo()
        filled.undo(2)
        filled.undo()
        assert filled.now() == before

    def test_a_pruned_entry_is_a_clear_error(self, filled: Yard) -> None:
        for n in range(3):
            filled.promote({"b": b"%d\n" % n})
        filled.store.journal.prune(Retention(days=0, backups=1))
        with pytest.raises(StoreError, match="entry 1 was pruned by retention"):
            filled.undo(1)
        filled.undo(3)
        assert filled.read("b") == b"1\n"


class TestRun:
    @pytest.fixture
    def two_runs(self, filled: Yard) -> Yard:
        filled.promote({"a": with_line(1, b"one")})
        filled.run = "r2"
        filled.promote({"b": b"other run\n"})
        filled.run = "r1"
        filled.promote({"a": with_line(1, b"two"), "new": b"1"})
        filled.promote({"new": b"2", "sub/c": None})
        return filled

    def test_of_several_entries_is_taken_back_as_one_and_nothing_else(self, two_runs: Yard) -> None:
        two_runs.run = "r3"
        after = two_runs.now()
        assert two_runs.undo_run("r1").title == "undo run r1"
        assert two_runs.read("a") == TEN
        assert two_runs.read("sub/c") == b"c\n"
        assert two_runs.read("b") == b"other run\n"
        assert not (two_runs.workspace / "new").exists()
        assert active(two_runs) == [2]
        two_runs.undo(5)
        assert two_runs.now() == after
        assert active(two_runs) == [1, 2, 3, 4]

    def test_that_was_taken_back_is_not_offered_again(self, two_runs: Yard) -> None:
        two_runs.run = "r3"
        two_runs.undo_run("r1")
        with pytest.raises(UnknownEntry, match="no run 'r1' with something to undo"):
            two_runs.undo_run("r1")
        assert two_runs.undo().title == "undo 2: work"

    def test_leaves_out_what_somebody_else_has_taken_back(self, two_runs: Yard) -> None:
        two_runs.run = "r3"
        two_runs.undo(4)
        two_runs.undo_run("r1")
        assert two_runs.read("a") == TEN
        assert active(two_runs) == [2]

    def test_takes_back_its_own_undos_with_the_rest(self, two_runs: Yard) -> None:
        two_runs.undo(3, on_conflict="keep")
        two_runs.run = "r3"
        two_runs.undo_run("r1")
        assert two_runs.read("a") == TEN
        assert not (two_runs.workspace / "new").exists()

    def test_is_brought_back_by_redo(self, two_runs: Yard) -> None:
        after = two_runs.now()
        two_runs.run = "r3"
        two_runs.undo_run("r1")
        two_runs.redo()
        assert two_runs.now() == after

    def test_one_file_of_all_of_it(self, two_runs: Yard) -> None:
        two_runs.history.undo_run("r1", Wish(files=("a",)))
        assert two_runs.read("a") == TEN
        assert two_runs.read("new") == b"2"


class TestRedo:
    def test_brings_back_one_after_the_other(self, filled: Yard) -> None:
        states = [filled.now()]
        for n in range(3):
            filled.promote({"b": b"version %d\n" % n})
            states.append(filled.now())
        for _ in range(3):
            filled.undo()
        for n in range(1, 4):
            filled.redo()
            assert filled.now() == states[n]
        with pytest.raises(NothingToDo, match="nothing to redo"):
            filled.redo()
        filled.undo()
        assert filled.now() == states[2]

    def test_is_refused_after_new_work(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        filled.undo()
        filled.promote({"a": b"new work\n"})
        with pytest.raises(NothingToDo, match="nothing to redo") as caught:
            filled.redo()
        assert "'pawl undo ID' of an undo" in caught.value.advice
        filled.undo(2)
        assert filled.read("b") == b"1\n"

    def test_is_possible_again_when_the_new_work_is_taken_back(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        filled.undo()
        filled.promote({"a": b"new work\n"})
        filled.undo()
        filled.redo()
        assert filled.read("a") == b"new work\n"

    def test_of_one_files_undo_brings_that_file_back(self, filled: Yard) -> None:
        filled.promote({"a": b"1\n", "b": b"2\n"})
        filled.undo(1, "a")
        filled.redo()
        assert filled.read("a") == b"1\n"

    def test_of_some_files_leaves_the_rest_undone_and_is_itself_undone(self, filled: Yard) -> None:
        before = filled.now()
        filled.promote({"a": b"1\n", "b": b"2\n"})
        after = filled.now()
        filled.undo()
        filled.history.redo(Wish(files=("b",)))
        assert (filled.read("a"), filled.read("b")) == (TEN, b"2\n")
        filled.undo()
        assert filled.now() == before
        filled.redo()
        filled.redo()
        assert filled.now() == after

    def test_without_an_undo_there_is_nothing(self, filled: Yard) -> None:
        filled.promote({"a": b"1\n"})
        with pytest.raises(NothingToDo):
            filled.redo()

    def test_merges_with_the_users_edit(self, filled: Yard) -> None:
        filled.promote({"a": with_line(1, b"one")})
        filled.undo()
        filled.write("a", with_line(10, b"mine"))
        filled.redo()
        assert filled.read("a") == with_line(10, b"mine", with_line(1, b"one"))


class TestRestore:
    @pytest.mark.spec("A3")
    def test_takes_back_all_since_the_checkpoint_and_makes_one_first(self, filled: Yard) -> None:
        filled.promote({"b": b"kept\n"})
        start = filled.now()
        filled.history.checkpoint("start")
        filled.promote({"a": b"1\n"})
        filled.promote({"a": b"2\n", "sub/c": None, "new/deep": b"3\n"})
        after = filled.now()
        filled.restore("start")
        assert filled.now() == start
        made = filled.store.journal.checkpoints(str(filled.workspace))[0]
        assert (made.name, made.after_entry) == ("before-restore-3", 3)
        filled.restore("before-restore-3")
        assert filled.now() == after

    def test_with_undos_and_redos_in_between_is_exact(self, filled: Yard) -> None:
        filled.promote({"b": b"0\n"})
        start = filled.now()
        filled.history.checkpoint("start")
        filled.promote({"a": b"1\n"})
        filled.undo(1)
        filled.promote({"a": b"2\n", "b": b"3\n"})
        filled.undo(2, on_conflict="overwrite")
        filled.undo(4, on_conflict="keep")
        filled.redo()
        filled.restore("start")
        assert filled.now() == start
        assert active(filled) == [1]

    def test_of_a_restore_and_again(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        start = filled.now()
        filled.promote({"a": b"1\n"})
        middle = filled.now()
        filled.restore("start")
        filled.restore("before-restore-1")
        assert filled.now() == middle
        filled.restore("start")
        assert filled.now() == start
        names = [one.name for one in filled.store.journal.checkpoints(str(filled.workspace))]
        assert names == ["before-restore-3", "before-restore-2", "before-restore-1", "start"]

    def test_can_be_taken_back_with_a_plain_undo_and_redone(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        start = filled.now()
        filled.promote({"a": b"1\n"})
        filled.promote({"b": b"2\n"})
        after = filled.now()
        filled.restore("start")
        assert filled.undo().title == "undo 3: restore 'start'"
        assert filled.now() == after
        assert filled.undo(2).changes.paths == {"b"}
        filled.redo()
        filled.redo()
        assert filled.now() == start

    def test_tells_who_took_an_entry_back(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"a": b"1\n"})
        filled.restore("start")
        with pytest.raises(NothingToDo, match="entry 1 was already undone by entry 2"):
            filled.undo(1)

    def test_keeps_the_users_files_and_edits(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"a": with_line(1, b"one"), "made/x": b"1"})
        lay(filled.workspace, {"mine": b"mine\n", "made/mine": b"mine\n"})
        filled.write("a", with_line(10, b"mine", filled.read("a")))
        filled.restore("start")
        assert filled.read("a") == with_line(10, b"mine")
        assert filled.read("made/mine") == filled.read("mine") == b"mine\n"
        assert not (filled.workspace / "made/x").exists()

    def test_of_one_file_leaves_the_rest_and_the_entries(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"a": b"1\n"})
        filled.promote({"b": b"2\n"})
        filled.restore("start", "a")
        assert (filled.read("a"), filled.read("b")) == (TEN, b"2\n")
        assert active(filled) == [1, 2]

    def test_that_stops_at_a_conflict_leaves_no_checkpoint(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"b": b"1\n"})
        filled.write("b", b"mine\n")
        with pytest.raises(Conflicted):
            filled.restore("start")
        assert len(filled.store.journal.checkpoints(str(filled.workspace))) == 1

    def test_with_nothing_since_is_nothing_to_do(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        filled.history.checkpoint("start")
        with pytest.raises(NothingToDo, match="since 'start'"):
            filled.restore("start")

    def test_what_stands_as_at_the_checkpoint_is_no_conflict(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"b": b"1\n", "a": b"2\n"})
        filled.write("b", b"mine\n")
        filled.undo(1, "b", on_conflict="overwrite")
        filled.restore("start")
        assert (filled.read("b"), filled.read("a")) == (b"b\n", TEN)


class TestMerge:
    def test_the_users_edits_elsewhere_in_the_file_stay(self, filled: Yard) -> None:
        filled.promote({"a": with_line(2, b"ours")})
        filled.write("a", with_line(9, b"mine", filled.read("a")))
        filled.undo()
        assert filled.read("a") == with_line(9, b"mine")
        filled.undo(2)
        assert filled.read("a") == with_line(9, b"mine", with_line(2, b"ours"))

    def test_the_users_mode_stays(self, filled: Yard) -> None:
        filled.promote({"b": b"1\n"})
        (filled.workspace / "b").chmod(0o700)
        filled.undo()
        assert filled.now()[b"b"] == ("file", 0o700, b"b\n")

    def test_a_mode_is_taken_back_under_the_users_edit(self, filled: Yard) -> None:
        filled.promote({"b": File(b"b\n", 0o755)})
        filled.write("b", b"mine\n", 0o755)
        filled.undo()
        assert filled.now()[b"b"] == ("file", 0o644, b"mine\n")

    def test_the_users_new_files_keep_the_folder_that_goes(self, filled: Yard) -> None:
        filled.promote({"made": Folder(0o750), "made/ours": b"1"})
        filled.write("made/mine", b"mine\n")
        filled.undo()
        assert filled.now()[b"made"] == ("folder", 0o750, b"")
        assert filled.read("made/mine") == b"mine\n"
        assert not (filled.workspace / "made/ours").exists()

    def test_what_the_user_deleted_as_well_is_no_conflict(self, filled: Yard) -> None:
        filled.promote({"new": b"1", "b": b"2\n"})
        (filled.workspace / "new").unlink()
        filled.undo()
        assert filled.read("b") == b"b\n"

    def test_a_deleted_file_comes_back_though_the_user_deleted_its_folder(self, filled: Yard) -> None:
        filled.promote({"sub/c": None})
        (filled.workspace / "sub").rmdir()
        filled.undo()
        assert filled.read("sub/c") == b"c\n"


CONFLICTS: dict[str, tuple[dict[str, Goal], Callable[[Path], object], str, ConflictReason]] = {
    "edited the same line": (
        {"a": with_line(3, b"ours")},
        lambda root: (root / "a").write_bytes(with_line(3, b"mine")),
        "a",
        ConflictReason.CONTENT,
    ),
    "deleted the file": ({"b": b"ours\n"}, lambda root: (root / "b").unlink(), "b", ConflictReason.DELETED),
    "renamed the file": ({"b": b"ours\n"}, lambda root: (root / "b").rename(root / "b2"), "b", ConflictReason.DELETED),
    "edited the new file": (
        {"new": b"1\n"},
        lambda root: (root / "new").write_bytes(b"mine\n"),
        "new",
        ConflictReason.DELETED,
    ),
    "made the deleted file again": (
        {"b": None},
        lambda root: (root / "b").write_bytes(b"mine\n"),
        "b",
        ConflictReason.CREATED,
    ),
    "changed the binary": (
        {"bin": b"\0ours" * 9},
        lambda root: (root / "bin").write_bytes(b"\0mine" * 9),
        "bin",
        ConflictReason.BINARY,
    ),
    "pointed the link elsewhere": (
        {"link": Link("b")},
        lambda root: ((root / "link").unlink(), (root / "link").symlink_to("sub")),
        "link",
        ConflictReason.LINK,
    ),
    "changed the mode": (
        {"b": File(b"b\n", 0o755)},
        lambda root: (root / "b").chmod(0o600),
        "b",
        ConflictReason.MODE,
    ),
    "made a folder of it": (
        {"b": b"ours\n"},
        lambda root: ((root / "b").unlink(), (root / "b").mkdir()),
        "b",
        ConflictReason.KIND,
    ),
    "put a file into the folder that was one": (
        {"b": Folder(), "b/x": b"1"},
        lambda root: (root / "b/mine").write_bytes(b"mine\n"),
        "",
        ConflictReason.OCCUPIED,
    ),
    "put a file in the place of the folder": (
        {"sub/c": None},
        lambda root: ((root / "sub").rmdir(), (root / "sub").write_bytes(b"mine\n")),
        "sub/c",
        ConflictReason.PARENT,
    ),
}
FOLDER_CASES = ("put a file into the folder that was one", "put a file in the place of the folder")


class TestConflict:
    @pytest.fixture(params=[name for name in CONFLICTS if name != FOLDER_CASES[0]])
    def conflict(self, request: pytest.FixtureRequest, filled: Yard) -> tuple[Yard, str]:
        """An entry, then the user's own change in the same place; another file changed too."""
        goals, action, path, _ = CONFLICTS[request.param]
        filled.promote({**goals, "other": b"1\n"})
        action(filled.workspace)
        filled.case = request.param
        return filled, path

    def test_stops_with_nothing_written_and_says_where_and_why(self, conflict: tuple[Yard, str]) -> None:
        yard, path = conflict
        mine = yard.now()
        with pytest.raises(Conflicted, match=f"you changed {re.escape(repr(path))} since") as caught:
            yard.undo()
        assert yard.now() == mine
        assert len(yard.entries()) == 1
        assert [(one.path, one.reason) for one in caught.value.conflicts] == [(path, CONFLICTS[yard.case][3])]
        assert "--on-conflict" in caught.value.advice

    def test_is_listed_by_a_preview(self, conflict: tuple[Yard, str]) -> None:
        yard, path = conflict
        reversal = yard.history.undo(None, Wish(dry_run=True))
        assert [one.path for one in reversal.conflicts] == [path]

    def test_keep_leaves_the_users_version_and_takes_back_the_rest(self, conflict: tuple[Yard, str]) -> None:
        yard, _ = conflict
        mine = yard.now()
        yard.undo(on_conflict="keep")
        assert not (yard.workspace / "other").exists()
        expected = {name: node for name, node in mine.items() if name != b"other"}
        assert yard.now() == expected
        yard.undo(2)
        assert yard.now() == mine

    def test_overwrite_takes_it_back_and_the_undo_of_that_is_the_users_version(
        self, conflict: tuple[Yard, str]
    ) -> None:
        yard, path = conflict
        if yard.case in FOLDER_CASES:
            with pytest.raises(Conflicted, match="changed meanwhile"):
                yard.undo(on_conflict="overwrite")
            return
        before = yard.store.journal.changes(1).get(path).before
        mine = yard.now()
        yard.undo(on_conflict="overwrite")
        assert (yard.tree.node(path) if yard.tree.find(path) else None) == before
        yard.undo(2)
        assert yard.now() == mine

    def test_a_folder_with_the_users_file_in_it_does_not_become_a_file_again(self, filled: Yard) -> None:
        goals, action, *_ = CONFLICTS[FOLDER_CASES[0]]
        filled.promote(goals)
        action(filled.workspace)
        mine = filled.now()
        with pytest.raises(Conflicted):
            filled.undo()
        assert filled.now() == mine

    def test_a_later_entry_in_the_same_place_is_named(self, filled: Yard) -> None:
        filled.promote({"a": with_line(3, b"one")})
        filled.promote({"a": with_line(3, b"two")})
        with pytest.raises(Conflicted, match="entry 2 changed 'a' since") as caught:
            filled.undo(1)
        assert caught.value.advice.startswith("undo entry 2 first, or choose")

    def test_what_was_kept_can_be_taken_back_by_name_later(self, filled: Yard) -> None:
        filled.promote({"b": b"ours\n", "other": b"1\n"})
        filled.write("b", b"mine\n")
        filled.undo(on_conflict="keep")
        filled.undo(1, "b", on_conflict="overwrite")
        assert filled.read("b") == b"b\n"
        filled.undo(3)
        assert filled.read("b") == b"mine\n"

    def test_keep_of_everything_is_nothing_to_do(self, filled: Yard) -> None:
        filled.promote({"b": b"ours\n"})
        filled.write("b", b"mine\n")
        with pytest.raises(NothingToDo, match="you changed everything that this would undo"):
            filled.undo(on_conflict="keep")

    @pytest.mark.parametrize("choice", ["keep", "overwrite"])
    def test_over_several_entries_loses_nothing_either(self, filled: Yard, choice: str) -> None:
        filled.history.checkpoint("start")
        filled.promote({"a": with_line(3, b"one"), "b": b"1\n"})
        filled.promote({"a": with_line(3, b"two"), "b": b"2\n", "new": b"3\n"})
        filled.write("a", with_line(3, b"mine"))
        mine = filled.now()
        filled.restore("start", on_conflict=choice)
        assert filled.read("b") == b"b\n"
        if choice == "keep":
            assert filled.read("a") == with_line(3, b"mine")
        if choice == "overwrite":
            assert filled.read("a") == TEN
        filled.undo()
        assert filled.now() == mine

    def test_keep_leaves_a_file_whole_though_only_one_of_the_entries_conflicts(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"a": with_line(1, b"one"), "b": b"1\n"})
        filled.promote({"a": with_line(5, b"five", filled.read("a"))})
        filled.write("a", with_line(5, b"mine", filled.read("a")))
        mine = filled.read("a")
        filled.restore("start", on_conflict="keep")
        assert (filled.read("a"), filled.read("b")) == (mine, b"b\n")

    def test_a_fifo_in_the_place_is_told(self, filled: Yard) -> None:
        filled.promote({"b": b"ours\n"})
        (filled.workspace / "b").unlink()
        os.mkfifo(filled.workspace / "b")
        with pytest.raises(Conflicted, match="'b' is not a file, folder or link"):
            filled.undo()


@pytest.mark.spec("A3")
class TestCheckpoint:
    def test_holds_id_time_changes_progress_verification_and_policy(self, filled: Yard) -> None:
        filled.promote({"a": b"before\n"})
        filled.history.checkpoint("first")
        filled.promote({"a": b"1\n", "b": b"2\n"})
        filled.promote({"a": b"3\n", "b": b"b\n"})
        history = filled.history
        history.policy = RollbackPolicy(depth=7)
        made = history.checkpoint("second", progress={"step": 2}, verification={"tests": "12 passed"})
        assert filled.store.journal.checkpoints(str(filled.workspace))[0] == made
        assert (made.id, made.after_entry, made.name) == (2, 3, "second")
        assert datetime.fromisoformat(made.created).utcoffset() is not None
        change = made.changes.get("a")
        assert made.changes.paths == {"a"}
        assert change is not None
        assert [filled.store.blobs.get(node.blob) for node in (change.before, change.after)] == [b"before\n", b"3\n"]
        assert (made.progress, made.verification) == ({"step": 2}, {"tests": "12 passed"})
        assert made.policy == RollbackPolicy(automatic_on_error=True, depth=7, preserve_user_edits=True)

    def test_falls_back_five_deep_on_error_by_default_and_always_keeps_what_the_user_made(self, filled: Yard) -> None:
        policy = filled.history.checkpoint("start").policy
        assert (policy.automatic_on_error, policy.depth, policy.preserve_user_edits) == (True, 5, True)
        with pytest.raises(ValueError, match="always preserves"):
            RollbackPolicy(preserve_user_edits=False)

    def test_with_a_name_that_is_taken_is_refused_and_the_first_one_stays(self, filled: Yard) -> None:
        filled.history.checkpoint("start")
        filled.promote({"a": b"1\n"})
        with pytest.raises(StoreError, match="there is already a checkpoint named 'start'"):
            filled.history.checkpoint("start")
        assert filled.history.free_name("start") == "start-2"
        filled.history.checkpoint("start-2")
        assert filled.history.free_name("start") == "start-3"
        filled.restore("start")
        assert filled.read("a") == TEN

    def test_before_the_first_entry_goes_back_to_the_very_start(self, filled: Yard) -> None:
        made = filled.history.checkpoint("start")
        assert (made.after_entry, len(made.changes)) == (0, 0)
