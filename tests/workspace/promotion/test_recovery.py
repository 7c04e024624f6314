"""Recovery: what a crash interrupted is finished or taken back, and the user's own work is kept."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from workspace.promotion.test_promoting import as_ordinary_user
from workspace.promotion.yard import File, Folder, Goal, Link, MeddlingBlobs, Yard, small_disk
from world import lay

from pawl.core.change import EntryState
from pawl.core.errors import PromotionFailed
from pawl.workspace.writer import former_name, staging_names

pytestmark = pytest.mark.spec("F2")

GOALS: Mapping[str, Goal] = {
    "text": b"new text\n",
    "gone": None,
    "mode": File(b"mode\n", 0o755),
    "made": Folder(),
    "made/inside": b"inside\n",
    "swap": Folder(),
    "swap/inside": b"was a file\n",
    "pkg/mod.py": None,
    "pkg": b"was a folder\n",
    "link": Link("text"),
}


@pytest.fixture
def filled(yard: Yard) -> Yard:
    lay(
        yard.workspace,
        {"text": b"old\n", "gone": b"gone\n", "mode": b"mode\n", "swap": b"file\n", "pkg/mod.py": b"m\n"},
    )
    return yard


def carry_out(yard: Yard, goals: Mapping[str, Goal]) -> None:
    """Does by hand what the interrupted process got to."""
    for path, goal in goals.items():
        place = yard.workspace / path
        if place.is_dir() and not place.is_symlink() and not isinstance(goal, Folder):
            place.rmdir()
        elif place.exists() and not place.is_dir():
            place.unlink()
        match goal:
            case bytes():
                yard.write(path, goal)
            case File(data, mode):
                yard.write(path, data, mode)
            case Link(target):
                place.symlink_to(target)
            case Folder(mode):
                place.mkdir(mode, exist_ok=True)


def only(*names: str) -> dict[str, Goal]:
    return {name: GOALS[name] for name in names}


PARTS = {
    "the first file": only("text"),
    "a deletion": only("gone"),
    "a folder": only("made"),
    "a folder that opened for writing": {"made": Folder(0o700)},
    "half a swap": {"swap": None},
    "a swap": only("swap"),
    "half a folder": only("pkg/mod.py"),
    "all but the modes": {name: goal for name, goal in GOALS.items() if name != "mode"},
    "the mode": only("mode"),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_was_begun_is_finished(filled: Yard, part: str) -> None:
    before = filled.now()
    filled.begin(GOALS)
    carry_out(filled, PARTS[part])
    lay(filled.workspace, {f"{filled.staging(1)[0]}/0": b"staged"})
    assert filled.recover() == [(1, "done", ())]
    assert {path: filled.tree.node(path) if filled.tree.find(path) else None for path in GOALS} == {
        path: filled.node(goal) for path, goal in GOALS.items()
    }
    assert filled.staged() == []
    filled.undo()
    assert filled.now() == before


def test_what_was_only_announced_is_not_begun(filled: Yard) -> None:
    before = filled.now()
    filled.begin(GOALS)
    lay(filled.workspace, {f"{filled.staging(1)[0]}/0": b"staged"})
    assert filled.recover() == [(1, "rolled back", ())]
    assert filled.now() == before


def test_what_was_done_but_not_marked_is_confirmed(filled: Yard) -> None:
    filled.begin(GOALS)
    carry_out(filled, GOALS)
    after = filled.now()
    assert filled.recover() == [(1, "done", ())]
    assert filled.now() == after
    assert filled.recover() == []


MINE: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "edits a file that was written": (lambda root: (root / "text").write_text("mine\n"), ("text",)),
    "edits a file that was not": (lambda root: (root / "mode").write_text("mine\n"), ("mode",)),
    "chmods a file": (lambda root: (root / "text").chmod(0o600), ("text",)),
    "makes again what was deleted": (lambda root: (root / "gone").write_text("mine\n"), ("gone",)),
    "edits in the new folder": (lambda root: (root / "made/inside").write_text("mine\n"), ("made/inside",)),
    "edits in the folder that was a file": (
        lambda root: (root / "swap/inside").write_text("mine\n"),
        ("swap", "swap/inside"),
    ),
    "puts a file into the folder that was a file": (
        lambda root: ((root / "swap/mine").write_text("mine\n"), (root / "text").write_text("mine\n")),
        ("swap", "text"),
    ),
    "edits the file that was a folder": (lambda root: (root / "pkg").write_text("mine\n"), ("pkg", "pkg/mod.py")),
    "makes a link of the file that was a folder": (
        lambda root: ((root / "pkg").unlink(), (root / "pkg").symlink_to("/etc")),
        ("pkg", "pkg/mod.py"),
    ),
    "deletes a file that was written": (lambda root: (root / "text").unlink(), ("text",)),
    "makes a FIFO of it": (lambda root: ((root / "text").unlink(), os.mkfifo(root / "text")), ("text",)),
}


@pytest.mark.spec("B9")
@pytest.mark.parametrize("who", MINE)
def test_the_users_own_work_is_kept_and_named_and_the_rest_taken_back_when_the_user(filled: Yard, who: str) -> None:
    before = filled.now()
    action, kept = MINE[who]
    filled.begin(GOALS)
    carry_out(filled, {name: goal for name, goal in GOALS.items() if name != "mode"})
    action(filled.workspace)
    mine = filled.now()
    assert filled.recover() == [(1, "conflict", kept)]
    now = filled.now()
    for name in kept:
        assert now.get(name.encode()) == mine.get(name.encode())
    spared = {name.encode() for name in kept} | {b"swap/mine"}
    assert {name: node for name, node in now.items() if name not in spared | {b"made"}} == {
        name: node for name, node in before.items() if name not in spared
    }
    assert filled.recover() == []
    assert filled.promote({"more": b"work goes on\n"}).notices == ()


def test_a_folder_the_user_took_away_meanwhile_does_not_stop_recovery(filled: Yard) -> None:
    lay(filled.workspace, {"deep/down/a": b"a\n", "deep/down/b": b"b\n"})
    filled.begin({"text": b"new text\n", "deep/down/a": None, "deep/down/b": b"new b\n"})
    filled.write("text", b"new text\n")
    os.rename(filled.workspace / "deep", filled.workspace / "away")
    assert filled.recover() == [(1, "conflict", ("deep/down/a", "deep/down/b"))]
    assert filled.read("text") == b"old\n"
    assert filled.read("away/down/b") == b"b\n"


def test_a_folder_the_user_made_a_link_of_meanwhile_is_not_written_through(filled: Yard) -> None:
    outside = lay(filled.workspace.parent / "outside", {"mod.py": b"outside\n"})
    filled.begin({"text": b"new text\n", "pkg/new": b"1"})
    filled.write("text", b"new text\n")
    os.rename(filled.workspace / "pkg", filled.workspace / "away")
    (filled.workspace / "pkg").symlink_to(outside)
    assert filled.recover() == [(1, "rolled back", ())]
    assert filled.read("text") == b"old\n"
    assert os.listdir(outside) == ["mod.py"]


def test_a_save_in_the_middle_of_recovery_is_kept(filled: Yard) -> None:
    filled.begin({"text": b"new text\n", "mode": b"new mode\n", "swap": b"new swap\n"})
    filled.write("text", b"new text\n")
    promoter = filled.promoter
    promoter.blobs = MeddlingBlobs(filled.store, lambda: filled.write("swap", b"mine\n"))
    (found,) = promoter.recover()
    assert (found.state, found.kept) == (EntryState.CONFLICT, ("swap",))
    assert [filled.read(name) for name in ("text", "mode", "swap")] == [b"old\n", b"mode\n", b"mine\n"]


def test_the_notice_of_a_recovery_names_what_was_left(filled: Yard) -> None:
    filled.begin({"text": b"new text\n"})
    filled.write("text", b"mine\n")
    (found,) = filled.promoter.recover()
    assert found.notice == "entry 1 was interrupted earlier and is now conflict; 'text' left as you made it"


def test_several_interrupted_entries_are_recovered_in_their_order(filled: Yard) -> None:
    filled.begin({"text": b"new text\n", "new": b"1"})
    filled.write("text", b"new text\n")
    number = filled.store.journal.begin(filled.entry(), filled.changes({"mode": b"x"}), {})
    assert filled.recover() == [(1, "done", ()), (number, "rolled back", ())]


@pytest.mark.root
def test_what_cannot_be_finished_on_a_full_disk_is_taken_back(memory: Path) -> None:
    with small_disk(memory / "w", "1m"), Yard.open(memory) as yard:
        lay(yard.workspace, {"text": b"old\n", "gone": b"gone\n"})
        before = yard.now()
        yard.begin({"gone": None, "new": b"x" * 600_000, "text": b"y" * 600_000})
        yard.write("new", b"x" * 600_000)
        assert yard.recover() == [(1, "rolled back", ())]
        assert yard.now() == before


@pytest.mark.root
def test_what_can_be_neither_finished_nor_taken_back_is_said_and_tried_again(memory: Path) -> None:
    with small_disk(memory / "w", "1m"), Yard.open(memory) as yard:
        lay(yard.workspace, {"a": b"a" * 300_000, "b": b"b" * 300_000})
        yard.begin({"a": b"new a", "b": b"new b" * 100_000})
        yard.write("a", b"new a")
        yard.write("ballast", b"x" * 600_000)
        with pytest.raises(PromotionFailed, match="entry 1 was interrupted and can be neither finished") as caught:
            yard.recover()
        assert "it tries again first" in caught.value.advice
        with pytest.raises(PromotionFailed, match="entry 1 was interrupted"):
            yard.promote({"new": b"1"})
        (yard.workspace / "ballast").unlink()
        assert yard.recover() == [(1, "done", ())]
        assert (yard.read("a"), yard.read("b")) == (b"new a", b"new b" * 100_000)


@pytest.mark.spec("F4")
def test_what_is_planted_under_the_names_of_an_entry_is_left_alone_and_blocks_nothing(filled: Yard) -> None:
    """Nobody can tell the names beforehand; after a crash they are to be seen."""
    number = filled.begin({"text": b"new text\n"})
    first, second, third = filled.staging(number)
    lay(filled.workspace, {f"{first}/0": b"left behind", f"{first}/mine/kept": b"the user's", second: b"a file"})
    (filled.workspace / "outside").mkdir()
    lay(filled.workspace, {"outside/0": b"not ours"})
    filled.promoter._writer(number).sweep()
    (filled.workspace / third).symlink_to("outside")
    filled.recover()
    filled.promote({"text": b"newer text\n"})
    assert filled.staged() == sorted((first, second, third))
    assert filled.read(f"{first}/mine/kept") == b"the user's" and not (filled.workspace / first / "0").exists()
    assert filled.read("outside/0") == b"not ours"
    assert filled.read("text") == b"newer text\n"


@pytest.mark.hostile
@pytest.mark.spec("F4")
@pytest.mark.parametrize("plant", [b"a file", "outside", {"0": b"x", "deep/x": b"x"}, 0o000], ids=str)
def test_no_planted_name_keeps_an_interrupted_entry_from_being_finished(filled: Yard, plant) -> None:
    """Every name of it is to be seen after a crash, and something that is not Pawl's stands under all of them."""
    number = filled.begin({"text": b"new text\n", "mode": b"new mode\n"})
    filled.write("text", b"new text\n")
    for name in filled.staging(number):
        place = filled.workspace / name
        if isinstance(plant, str):
            place.symlink_to(plant)
        elif isinstance(plant, bytes):
            place.write_bytes(plant)
        else:
            lay(filled.workspace, {f"{name}/{inner}": data for inner, data in (plant or {"deep/x": b"x"}).items()})
            place.chmod(0o755 if plant else 0)
    [(_, state, _)] = filled.recover()
    assert state in ("done", "rolled back", "conflict")
    filled.promote({"text": b"newer text\n"})
    assert filled.read("text") == b"newer text\n"
    assert filled.staged() == sorted(filled.staging(number))


@pytest.mark.spec("F4")
def test_staging_that_no_unfinished_entry_speaks_of_is_left_alone(filled: Yard) -> None:
    planted = {f".pawl-tmp-{name}": b"somebody's" for name in ("0badc0de-1", "1", "2")}
    lay(filled.workspace, planted)
    filled.promote({"text": b"new text\n"})
    assert filled.staged() == sorted(planted)


@pytest.mark.spec("F4")
def test_what_an_earlier_version_left_of_an_unfinished_entry_is_swept_and_of_no_other(filled: Yard) -> None:
    number = filled.begin({"text": b"new text\n"})
    old = [former_name(filled.promoter.locks, one) for one in (number, number + 1)]
    lay(filled.workspace, {f"{name}/0": b"left behind" for name in old})
    filled.recover()
    assert filled.staged() == old[1:]


@pytest.mark.spec("F4")
def test_the_key_of_staging_needs_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "this file system has no hard links")

    monkeypatch.setattr(os, "link", refuse)
    assert staging_names(tmp_path, 1) == staging_names(tmp_path, 1)
    (tmp_path / "staging-key").write_bytes(b"torn")
    assert staging_names(tmp_path, 1) == staging_names(tmp_path, 1)


@pytest.mark.spec("F4")
def test_names_of_staging_differ_for_each_entry_and_each_state_folder(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    names = {name for state in (one, other) for number in range(50) for name in staging_names(state, number)}
    assert len(names) == 300
    assert staging_names(one, 7) == staging_names(one, 7)
    assert (one / "staging-key").stat().st_mode & 0o777 == 0o600


VICTIM = """
import os, sys
from pathlib import Path
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.change import EntryKind, NewEntry
from pawl.store import Store
from pawl.workspace.writer import staging_names
from pawl.workspace.promotion import Promoter
from pawl.settings.files import Tree

class Slow:
    def __init__(self, blobs): self.blobs = blobs
    def get(self, digest):
        print("staging", flush=True)
        sys.stdin.readline()
        return self.blobs.get(digest)

root = Path(sys.argv[1])
with Store.open(root / "s") as store, Tree(root / "w") as tree:
    before = tree.node("text", store.blobs)
    changes = ChangeSet.of([Change("text", before, Node.file(store.blobs.put(b"new text")))])
    entry = NewEntry(workspace=tree.root, run="r1", kind=EntryKind.EDIT, title="victim")
    Promoter(tree, store.journal, Slow(store.blobs), root / "s" / "locks").promote(entry, changes)
"""


def test_a_process_that_is_killed_in_the_middle_leaves_its_lock_and_nothing_else(filled: Yard) -> None:
    before = filled.now()
    words = [sys.executable, "-c", VICTIM, filled.workspace.parent]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"staging\n"
        assert filled.staged() != []
        victim.send_signal(signal.SIGKILL)
    assert filled.recover() == [(1, "rolled back", ())]
    assert filled.now() == before
    filled.promote({"text": b"goes on\n"})


def _locked(root: Path) -> None:
    lay(root, {"locked/deep/old": b"old\n", "other": b"1\n"})
    (root / "locked/deep").chmod(0o500)
    (root / "locked").chmod(0o500)


def test_folders_that_were_opened_for_the_write_are_closed_again() -> None:
    code = (
        "import os\n"
        "changes = ChangeSet.of([Change('locked/deep/old', promoter.nodes(['locked/deep/old'], frozenset())"
        "['locked/deep/old'], None), Change('locked/deep/new', None, Node.file(store.blobs.put(b'1')))])\n"
        "store.journal.begin(entry, changes, {'locked': 0o500, 'locked/deep': 0o500})\n"
        "os.chmod(tree.root + '/locked', 0o700); os.chmod(tree.root + '/locked/deep', 0o700)\n"
        "print(*[one.state for one in promoter.recover()])"
    )
    before, after, said = as_ordinary_user(_locked, code)
    assert (after, said) == (before, "rolled back\n")


def test_what_was_opened_only_for_a_look_is_closed_again() -> None:
    code = (
        "import os\n"
        "store.journal.begin(entry, ChangeSet(), {'locked': 0o500, 'other': 0o644})\n"
        "os.chmod(tree.root + '/locked', 0o777); os.chmod(tree.root + '/other', 0o777)\n"
        "print(*[one.state for one in promoter.recover()])"
    )
    before, after, said = as_ordinary_user(_locked, code)
    assert (after, said) == (before, "rolled back\n")


def test_what_a_crash_left_closed_is_recovered_all_the_same() -> None:
    code = (
        "import os\n"
        "f = Node.file(store.blobs.put(b'1'), 0)\n"
        "wanted = {'shut': Node.directory(0), 'shut/f': f, 'after': Node.file(store.blobs.put(b'2'))}\n"
        "store.journal.begin(entry, ChangeSet.of(Change(path, None, node) for path, node in wanted.items()), {})\n"
        "os.mkdir(tree.root + '/shut'); open(tree.root + '/shut/f', 'w').write('1')\n"
        "os.chmod(tree.root + '/shut/f', 0); os.chmod(tree.root + '/shut', 0)\n"
        "print(*[one.state for one in promoter.recover()])"
    )
    _, after, said = as_ordinary_user(lambda root: None, code)
    assert said == "done\n"
    assert after == {
        b"shut": ("folder", 0, b""),
        b"shut/f": ("file", 0, b"1"),
        b"after": ("file", 0o644, b"2"),
    }
