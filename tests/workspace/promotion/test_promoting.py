"""Promotion: every kind of change arrives, and nothing is written over what the user did meanwhile."""

from __future__ import annotations

import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from users import become
from workspace.promotion.yard import File, Folder, Goal, Link, MeddlingBlobs, MeddlingJournal, Yard, small_disk
from world import lay, snapshot

from pawl.core.change import Change, ChangeSet, EntryState, Node
from pawl.core.errors import (
    Conflicted,
    MissingBlob,
    NothingToDo,
    PathRefused,
    PromotionFailed,
    ProtectedRefused,
    StoreBusy,
    StoreError,
)
from pawl.settings.files import writer_lock
from pawl.workspace.promotion import Promoter

pytestmark = pytest.mark.spec("F2")

KINDS: dict[str, Mapping[str, Goal]] = {
    "a new file": {"new.py": b"new\n"},
    "a new file that is empty": {"new.py": b""},
    "a new program": {"new.sh": File(b"#!/bin/sh\n", 0o755)},
    "a new private file": {"key": File(b"x", 0o600)},
    "a file in new folders": {"d": Folder(), "d/e": Folder(0o700), "d/e/f": b"deep\n"},
    "a file in folders that nobody speaks of": {"d/e/f": b"deep\n"},
    "an edited file": {"text": b"edited\n"},
    "an emptied file": {"text": b""},
    "a binary file": {"text": bytes(range(256)) * 50},
    "a file that is deleted": {"text": None},
    "a mode": {"text": File(b"old\n", 0o755)},
    "a mode and a content": {"text": File(b"edited\n", 0o700)},
    "a folder's mode": {"pkg": Folder(0o700)},
    "a new link": {"link2": Link("text")},
    "a link that points elsewhere": {"link": Link("pkg/mod.py")},
    "a link that is deleted": {"link": None},
    "a link that becomes a file": {"link": b"now a file\n"},
    "a file that becomes a link": {"text": Link("pkg")},
    "a file that becomes a folder": {"text": Folder(), "text/inside": b"in\n"},
    "a folder that becomes a file": {"pkg/mod.py": None, "pkg": b"now a file\n"},
    "a folder that becomes a link": {"pkg/mod.py": None, "pkg": Link("text")},
    "a folder that goes": {"pkg/mod.py": None, "pkg": None},
    "an empty folder": {"empty": Folder(0o711)},
    "a file that moves": {"text": None, "moved": b"old\n"},
    "two files that trade places": {"text": b"module\n", "pkg/mod.py": b"old\n"},
    "odd names": {"new\nline": b"1", "tab\t": b"2", os.fsdecode(b"\xff\xfe"): b"3", "ünï 🙂": b"4", "-rf": b"5"},
    "the longest name": {"n" * 255: b"long"},
    "many at once": {f"many/{n % 7}/{n}": b"%d" % n for n in range(60)},
}


@pytest.fixture
def filled(yard: Yard) -> Yard:
    lay(yard.workspace, {"text": b"old\n", "pkg/mod.py": b"module\n", "other": b"not touched\n", "link": "text"})
    return yard


def standing(yard: Yard, path: str) -> Node | None:
    return yard.tree.node(path) if yard.tree.find(path) else None


@pytest.mark.spec("B9")
@pytest.mark.parametrize("sync_each", [0, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_change_arrives_and_goes_again(filled: Yard, kind: str, sync_each: int) -> None:
    before = filled.now()
    goals = KINDS[kind]
    promoter = filled.promoter
    promoter.sync_each = sync_each
    promoter.promote(filled.entry(), filled.changes(goals))
    assert {path: standing(filled, path) for path in goals} == {path: filled.node(goal) for path, goal in goals.items()}
    named = {os.fsencode(path) for path in goals}
    untouched = {name: node for name, node in before.items() if name not in named}
    assert untouched.items() <= filled.now().items()
    assert filled.staged() == []
    filled.undo()
    assert filled.now() == before


def test_what_already_stands_so_is_left_out_of_the_entry(filled: Yard) -> None:
    changes = filled.changes({"text": b"edited\n", "other": b"by the user too\n"})
    filled.write("other", b"by the user too\n")
    assert filled.promoter.promote(filled.entry(), changes).changes.paths == {"text"}


def test_a_change_that_is_already_so_is_nothing_to_do_and_no_entry(filled: Yard) -> None:
    changes = filled.changes({"text": b"edited\n"})
    filled.write("text", b"edited\n")
    with pytest.raises(NothingToDo):
        filled.promoter.promote(filled.entry(), changes)
    assert filled.entries() == []


def test_a_folder_the_user_made_meanwhile_keeps_the_users_mode(filled: Yard) -> None:
    changes = filled.changes({"d": Folder(0o755), "d/f": b"1"})
    (filled.workspace / "d").mkdir(mode=0o700)
    filled.promoter.promote(filled.entry(), changes)
    assert stat.S_IMODE((filled.workspace / "d").stat().st_mode) == 0o700
    filled.undo()
    assert (filled.workspace / "d").is_dir()


MEANWHILE: dict[str, tuple[Mapping[str, Goal], Callable[[Path], object]]] = {
    "edits the file": ({"text": b"edited\n"}, lambda root: (root / "text").write_text("mine\n")),
    "saves it anew": ({"text": b"edited\n"}, lambda root: _save_by_rename(root / "text", "mine\n")),
    "makes it executable": ({"text": b"edited\n"}, lambda root: (root / "text").chmod(0o755)),
    "deletes it": ({"text": b"edited\n"}, lambda root: (root / "text").unlink()),
    "edits what is to be deleted": ({"text": None}, lambda root: (root / "text").write_text("mine\n")),
    "creates it first": ({"new": b"new\n"}, lambda root: (root / "new").write_text("mine\n")),
    "makes a folder of the name": ({"new": b"new\n"}, lambda root: (root / "new").mkdir()),
    "makes a link of the name": ({"new": b"new\n"}, lambda root: (root / "new").symlink_to("text")),
    "makes a FIFO of the name": ({"new": b"new\n"}, lambda root: os.mkfifo(root / "new")),
    "makes a link of the file": ({"text": b"edited\n"}, lambda root: _replace(root / "text", "pkg")),
    "points the link elsewhere": ({"link": Link("pkg")}, lambda root: _replace(root / "link", "other")),
    "makes a file of the folder": ({"pkg/new": b"1"}, lambda root: _folder_to_file(root / "pkg")),
    "makes a link of the folder": ({"pkg/new": b"1"}, lambda root: _folder_to_link(root / "pkg")),
    "puts a file into the folder": (
        {"pkg/mod.py": None, "pkg": b"now a file\n"},
        lambda root: (root / "pkg" / "mine").write_text("mine\n"),
    ),
}


def _save_by_rename(path: Path, text: str) -> None:
    path.with_name("saving~").write_text(text)
    path.with_name("saving~").rename(path)


def _replace(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def _folder_to_file(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.write_text("mine\n")


def _folder_to_link(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.symlink_to("away")


@pytest.mark.spec("B9")
@pytest.mark.parametrize("who", MEANWHILE)
def test_nothing_is_written_when_the_user_meanwhile(filled: Yard, who: str) -> None:
    goals, action = MEANWHILE[who]
    changes = filled.changes({**goals, "other": b"would change too\n"})
    action(filled.workspace)
    mine = filled.now()
    with pytest.raises(Conflicted) as caught:
        filled.promoter.promote(filled.entry(), changes)
    assert filled.now() == mine
    assert filled.entries() == []
    assert set(caught.value.conflicts) <= changes.paths - {"other"}
    assert caught.value.conflicts


@pytest.mark.spec("B9")
@pytest.mark.parametrize("moment", ["while files are staged", "before the intent is written"])
@pytest.mark.parametrize("who", MEANWHILE)
def test_everything_is_taken_back_when_during_the_write_the_user(filled: Yard, who: str, moment: str) -> None:
    goals, action = MEANWHILE[who]
    seen: list[object] = []

    def meddle() -> None:
        action(filled.workspace)
        seen.append({name: node for name, node in filled.now().items() if not name.startswith(b".pawl-tmp-")})

    promoter = filled.promoter
    if moment == "while files are staged":
        promoter.blobs = MeddlingBlobs(filled.store, meddle)
    else:
        promoter.journal = MeddlingJournal(filled.store.journal, before_begin=meddle)
    # The other files sort around the one that the user touches, so some of them are in place already.
    extra = {"a-new-one": b"1", "other": b"would change too\n", "zz/last": b"1"}
    with pytest.raises(Conflicted):
        promoter.promote(filled.entry(), filled.changes({**extra, **goals}))
    assert [filled.now()] == seen
    assert set(filled.states().values()) <= {EntryState.CONFLICT, EntryState.ROLLED_BACK}
    assert filled.recover() == []


@pytest.mark.spec("B9")
def test_a_save_by_another_process_during_the_write_is_kept(filled: Yard) -> None:
    def save() -> None:
        code = "import sys; open(sys.argv[1], 'w').write('mine, from an editor\\n')"
        subprocess.run([sys.executable, "-c", code, filled.workspace / "text"], check=True)

    promoter = filled.promoter
    promoter.blobs = MeddlingBlobs(filled.store, save)
    with pytest.raises(Conflicted, match="'text' changed while it was being written"):
        promoter.promote(filled.entry(), filled.changes({"new": b"1", "text": b"edited\n", "other": None}))
    assert filled.read("text") == b"mine, from an editor\n"
    assert (filled.workspace / "other").exists()
    assert not (filled.workspace / "new").exists()


@pytest.mark.attack("A08")
def test_the_other_name_of_a_hard_linked_file_is_not_changed(filled: Yard, tmp_path: Path) -> None:
    outside = filled.workspace.parent / "outside"
    os.link(filled.workspace / "text", outside)
    filled.promote({"text": File(b"edited\n", 0o600)})
    assert (outside.read_bytes(), stat.S_IMODE(outside.stat().st_mode)) == (b"old\n", 0o644)
    filled.undo()
    assert (filled.read("text"), outside.read_bytes()) == (b"old\n", b"old\n")


@pytest.mark.attack("A08")
def test_the_other_name_of_a_link_is_not_written_through(filled: Yard) -> None:
    outside = filled.workspace.parent / "outside"
    outside.write_bytes(b"old\n")
    filled.workspace.joinpath("way").symlink_to(outside)
    filled.promote({"way": b"a file instead\n"})
    assert outside.read_bytes() == b"old\n"


@pytest.mark.root
def test_root_leaves_a_users_file_to_the_user(filled: Yard) -> None:
    theirs = {"text": (1234, 5678), "pkg": (1234, 0), "link": (4321, 8765), "pkg/mod.py": (99, 98)}
    for name, (owner, group) in theirs.items():
        os.lchown(filled.workspace / name, owner, group)
    os.chmod(filled.workspace / "text", 0o6755)
    goals = {"text": File(b"edited\n", 0o6755), "pkg/mod.py": b"edited\n", "link": Link("pkg")}
    filled.promote({**goals, "pkg/new": b"1", "pkg/sub": Folder(), "pkg/sub/link": Link("x"), "mine": b"1"})
    owners = {name: _owner(filled.workspace / name) for name in theirs}
    assert owners == theirs
    assert stat.S_IMODE((filled.workspace / "text").stat().st_mode) == 0o6755
    made = {name: _owner(filled.workspace / name) for name in ("pkg/new", "pkg/sub", "pkg/sub/link", "mine")}
    assert made == {"pkg/new": (1234, 0), "pkg/sub": (1234, 0), "pkg/sub/link": (1234, 0), "mine": (0, 0)}
    filled.undo()
    assert {name: _owner(filled.workspace / name) for name in theirs} == theirs


def _owner(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid


def test_a_replaced_file_keeps_its_extended_attributes(filled: Yard) -> None:
    path = filled.workspace / "text"
    try:
        os.setxattr(path, "user.origin", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")
    filled.promote({"text": b"edited\n"})
    assert os.getxattr(path, "user.origin") == b"kept"


@pytest.mark.root
def test_a_replaced_program_does_not_pass_its_capabilities_on(filled: Yard) -> None:
    path = filled.workspace / "text"
    try:
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))
    except OSError:
        pytest.skip("no file capabilities here")
    filled.promote({"text": File(b"another program\n", 0o755)})
    assert "security.capability" not in os.listxattr(path)


AS_OWNER = """
import sys
from pathlib import Path
from pawl.core.change import *
from pawl.core.change import *
from pawl.core.change import EntryState
from pawl.store import Store
from pawl.workspace.reversal import History, Wish
from pawl.workspace.promotion import Promoter
from pawl.settings.files import Tree

root = Path(sys.argv[1])
with Store.open(root / "s") as store, Tree(root / "w") as tree:
    promoter = Promoter(tree, store.journal, store.blobs, root / "s" / "locks")
    history = History(tree, promoter, store.journal, store.blobs, "r1")
    entry = NewEntry(workspace=tree.root, run="r1", kind=EntryKind.EDIT, title="work")

    def promote(**goals):
        changes = []
        for name, goal in goals.items():
            path = name.replace("__", "/")
            node = goal if goal is None or isinstance(goal, Node) else Node.file(store.blobs.put(goal), 0o644)
            changes.append(Change(path, promoter.nodes([path], frozenset())[path], node))
        return promoter.promote(entry, ChangeSet.of(changes))

    exec(sys.argv[2])
"""


def as_ordinary_user(files: Callable[[Path], object], code: str) -> tuple[object, object, str]:
    """Runs the code as the owner of a workspace; returns it before and after, and what the code printed."""
    user = become("ordinary")
    with user.folder() as root:
        (root / "w").mkdir()
        (root / "s").mkdir(mode=0o700)
        files(root / "w")
        user.own(root)
        before = snapshot(root / "w")
        process = user.start_python(AS_OWNER, str(root), code, home=root, stdout=-1, stderr=-1)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err.decode()
        return before, snapshot(root / "w"), out.decode()


def _read_only_folder(root: Path) -> None:
    lay(root, {"locked/deep/old": b"old\n", "locked/deep/gone": b"gone\n"})
    (root / "locked/deep").chmod(0o555)
    (root / "locked").chmod(0o555)


@pytest.mark.spec("B9")
def test_a_read_only_folder_is_written_and_stays_read_only() -> None:
    code = "promote(locked__deep__old=b'new', locked__deep__gone=None, locked__deep__sub=Node.directory(0o500))"
    before, after, _ = as_ordinary_user(_read_only_folder, code)
    assert after == {
        b"locked": ("folder", 0o555, b""),
        b"locked/deep": ("folder", 0o555, b""),
        b"locked/deep/old": ("file", 0o644, b"new"),
        b"locked/deep/sub": ("folder", 0o500, b""),
    }
    back = as_ordinary_user(_read_only_folder, f"{code}; history.undo(None, Wish())")
    assert back[0] == back[1] == before


def _closed_folder(root: Path) -> None:
    lay(root, {"shut/shutter/file": b"old\n", "unreadable": b"old\n"})
    (root / "unreadable").chmod(0o000)
    (root / "shut/shutter").chmod(0o300)
    (root / "shut").chmod(0o000)


@pytest.mark.spec("B9")
def test_a_folder_that_nobody_may_enter_is_written_and_stays_closed() -> None:
    code = "promote(shut__shutter__file=b'new', shut__shutter__two=b'2', unreadable=b'new')"
    before, after, _ = as_ordinary_user(_closed_folder, code)
    assert after == {
        b"shut": ("folder", 0o000, b""),
        b"shut/shutter": ("folder", 0o300, b""),
        b"shut/shutter/file": ("file", 0o644, b"new"),
        b"shut/shutter/two": ("file", 0o644, b"2"),
        b"unreadable": ("file", 0o644, b"new"),
    }
    back = as_ordinary_user(_closed_folder, f"{code}; history.undo(None, Wish())")
    assert back[0] == back[1] == before


@pytest.mark.spec("B9")
def test_a_closed_folder_that_was_made_can_be_taken_back() -> None:
    code = (
        "f = Node.file(store.blobs.put(b'1'), 0);"
        "promote(shut=Node.directory(0), shut__in=Node.directory(0o300), shut__in__f=f);"
        "history.undo(None, Wish()); history.redo(Wish()); history.undo(None, Wish()); print(promoter.recover())"
    )
    before, after, said = as_ordinary_user(lambda root: None, code)
    assert (before, after, said) == ({}, {}, "()\n")


def test_a_conflict_in_a_closed_folder_leaves_it_closed() -> None:
    code = (
        "changes = ChangeSet.of([Change('shut/shutter/file', Node.file(store.blobs.put(b'other')), None)])\n"
        "try: promoter.promote(entry, changes)\n"
        "except Exception as error: print(type(error).__name__, len(store.journal.pending(tree.root)))"
    )
    before, after, said = as_ordinary_user(_closed_folder, code)
    assert (after, said) == (before, "Conflicted 0\n")


def test_a_file_of_somebody_else_that_cannot_be_read_is_named() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs a file of another user")

    user = become("ordinary")
    with user.folder() as root:
        lay(root / "w", {"theirs": b"secret\n"})
        (root / "s").mkdir(mode=0o700)
        user.own(root)
        os.chown(root / "w" / "theirs", 0, 0)
        (root / "w" / "theirs").chmod(0o600)
        code = (
            "changes = ChangeSet.of([Change('theirs', Node.file(store.blobs.put(b'x')), None)])\n"
            "try: promoter.promote(entry, changes)\n"
            "except Exception as error: print(type(error).__name__, error)"
        )
        process = user.start_python(AS_OWNER, str(root), code, home=root, stdout=-1)
        said = process.communicate(timeout=60)[0].decode()
    assert said == (
        "PromotionFailed the workspace could not be read ('theirs': Permission denied); nothing was written\n"
    )


def test_a_folder_with_files_that_stay_stays_with_them(filled: Yard) -> None:
    changes = filled.changes({"pkg/mod.py": None, "pkg": None})
    lay(filled.workspace, {"pkg/cache.pyc": b"ignored", "pkg/sub/mine": b"mine"})
    promoted = filled.promoter.promote(filled.entry(), changes)
    assert promoted.changes.paths == {"pkg/mod.py"}
    assert {b"pkg/cache.pyc", b"pkg/sub/mine"} <= filled.now().keys()


def test_a_folder_that_the_user_filled_during_the_write_stays_with_the_mode_it_had() -> None:
    code = (
        "class Meddling:\n"
        "    def get(self, digest):\n"
        "        open(tree.root + '/locked/deep/mine', 'w').write('mine')\n"
        "        return store.blobs.get(digest)\n"
        "blobs, promoter.blobs = promoter.blobs, Meddling()\n"
        "nodes = Promoter(tree, store.journal, blobs, promoter.locks).nodes\n"
        "gone = ['locked/deep/old', 'locked/deep/gone', 'locked/deep']\n"
        "changes = [Change(path, node, None) for path, node in nodes(gone, frozenset()).items()]\n"
        "changes.append(Change('new', None, Node.file(blobs.put(b'1'))))\n"
        "promoter.promote(entry, ChangeSet.of(changes))\n"
    )
    _, after, _ = as_ordinary_user(_read_only_folder, code)
    assert after == {
        b"locked": ("folder", 0o555, b""),
        b"locked/deep": ("folder", 0o555, b""),
        b"locked/deep/mine": ("file", 0o644, b"mine"),
        b"new": ("file", 0o644, b"1"),
    }


def test_a_socket_in_the_way_is_a_conflict(filled: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = filled.changes({"new": b"1"})
    monkeypatch.chdir(filled.workspace)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("new")
        with pytest.raises(Conflicted):
            filled.promoter.promote(filled.entry(), changes)


@pytest.mark.spec("A15")
@pytest.mark.parametrize("path", [".git/config", ".GIT/hooks/pre-commit", "sub/.Git", ".git", ".gIt/x"])
def test_gits_own_folder_is_refused_in_any_spelling(filled: Yard, path: str) -> None:
    changes = ChangeSet.of([Change(path, None, filled.node(b"1"))])
    with pytest.raises(ProtectedRefused, match="git's own"):
        filled.promoter.promote(filled.entry(), changes)
    assert filled.entries() == []


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../b", "a//b", "./a", "", "a\0b"])
def test_a_path_that_is_not_plainly_inside_is_refused(filled: Yard, path: str) -> None:
    with pytest.raises(PathRefused):
        filled.promoter.promote(filled.entry(), ChangeSet.of([Change(path, None, filled.node(b"1"))]))


def test_pawls_own_staging_place_cannot_be_promoted_to(filled: Yard) -> None:
    with pytest.raises(ProtectedRefused):
        filled.promoter.promote(filled.entry(), ChangeSet.of([Change(".pawl-tmp-1/x", None, filled.node(b"1"))]))


def test_a_content_that_is_not_stored_begins_nothing(filled: Yard) -> None:
    lost = ChangeSet.of([Change("new", None, Node.file("0" * 64))])
    with pytest.raises(MissingBlob):
        filled.promoter.promote(filled.entry(), lost)
    assert filled.entries() == []


@pytest.mark.root
def test_a_full_disk_leaves_the_tree_as_it_was(memory: Path) -> None:
    with small_disk(memory / "w", "1m"), Yard.open(memory) as yard:
        lay(yard.workspace, {"text": b"old\n", "pkg/mod.py": b"module\n"})
        before = yard.now()
        big = {f"big{n}": bytes([n]) * 300_000 for n in range(6)}
        with pytest.raises(PromotionFailed, match=r"No space left on device\) and is as it was") as caught:
            yard.promote({"text": b"edited\n", "pkg/mod.py": None, **big})
        assert yard.now() == before
        assert yard.states() == {1: EntryState.ROLLED_BACK}
        assert "'pawl diff 1'" in caught.value.advice
        yard.promote({"text": b"edited\n", "big": b"x" * 300_000})
        assert yard.read("text") == b"edited\n"


def _marks_fail(state: EntryState) -> Callable[[EntryState], None]:
    def fail(asked: EntryState) -> None:
        if asked is state:
            raise StoreError("the state file is full")

    return fail


def test_a_failed_promotion_whose_mark_fails_is_never_carried_out_later(filled: Yard) -> None:
    promoter = filled.promoter
    promoter.journal = MeddlingJournal(filled.store.journal, before_finish=_marks_fail(EntryState.CONFLICT))
    promoter.blobs = MeddlingBlobs(filled.store, lambda: filled.write("text", b"mine\n"))
    with pytest.raises(PromotionFailed, match="entry 1 could not be marked as conflict") as caught:
        promoter.promote(filled.entry(), filled.changes({"text": b"edited\n", "other": b"x", "new": b"1"}))
    assert "nothing of it will be written" in caught.value.advice
    mine = filled.now()
    assert filled.recover() == [(1, "conflict", ("text",))]
    assert filled.now() == mine


def test_a_promotion_that_failed_and_left_no_trace_stays_undone(filled: Yard) -> None:
    filled.begin({"text": b"edited\n", "new": b"1"})
    before = filled.now()
    assert filled.recover() == [(1, "rolled back", ())]
    assert filled.now() == before


def test_a_promotion_whose_mark_fails_is_told_and_confirmed_at_the_next_start(filled: Yard) -> None:
    promoter = filled.promoter
    promoter.journal = MeddlingJournal(filled.store.journal, before_finish=_marks_fail(EntryState.DONE))
    promotion = promoter.promote(filled.entry(), filled.changes({"text": b"edited\n", "new": b"1"}))
    assert "could not be marked as done" in promotion.notices[0]
    assert filled.states() == {1: EntryState.PREPARED}
    assert filled.recover() == [(1, "done", ())]
    assert filled.read("text") == b"edited\n"


def test_a_promotion_tells_what_it_found_interrupted(filled: Yard) -> None:
    filled.begin({"text": b"edited\n", "new": b"1"})
    filled.write("text", b"mine\n")
    promotion = filled.promote({"other": b"x"})
    assert promotion.notices == ("entry 1 was interrupted earlier and is now conflict; 'text' left as you made it",)


HOLDER = """
import sys
from pathlib import Path
from pawl.settings.files import writer_lock
with writer_lock(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(filled: Yard):
    """Another process that holds the workspace's lock."""
    words = [sys.executable, "-c", HOLDER, filled.state / "locks", filled.workspace]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_lock_that_does_not_come_free_names_its_holder(filled: Yard, holder: subprocess.Popen[bytes]) -> None:
    promoter = filled.promoter
    promoter.lock_seconds = 0.1
    with pytest.raises(StoreBusy, match=rf"process {holder.pid}\) is writing") as caught:
        promoter.promote(filled.entry(), filled.changes({"text": b"edited\n"}))
    assert caught.value.exit_code == 75
    assert filled.read("text") == b"old\n"
    assert filled.entries() == []


def test_the_lock_of_a_killed_holder_is_free(filled: Yard, holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait()
    filled.promote({"text": b"edited\n"})
    assert filled.read("text") == b"edited\n"


def test_other_workspaces_are_not_held_up(filled: Yard, holder: subprocess.Popen[bytes]) -> None:
    with writer_lock(filled.state / "locks", "/elsewhere", seconds=0):
        pass


APPENDER = """
import sys
from pathlib import Path
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import Conflicted
from pawl.core.change import EntryKind, NewEntry
from pawl.store import Store
from pawl.workspace.promotion import Promoter
from pawl.settings.files import Tree
root, name = Path(sys.argv[1]), sys.argv[2]
with Store.open(root / "s", busy_seconds=60) as store, Tree(root / "w") as tree:
    promoter = Promoter(tree, store.journal, store.blobs, root / "s" / "locks", lock_seconds=60)
    done = 0
    while done < 15:
        before = tree.node("text", store.blobs)
        after = Node.file(store.blobs.put(store.blobs.get(before.blob) + name.encode() + b"\\n"))
        entry = NewEntry(workspace=tree.root, run=name, kind=EntryKind.EDIT, title=name)
        try:
            promoter.promote(entry, ChangeSet.of([Change("text", before, after)]))
            done += 1
        except Conflicted:
            continue
"""


def test_two_processes_that_promote_at_once_lose_nothing_of_each_other(filled: Yard) -> None:
    words = [sys.executable, "-c", APPENDER, filled.workspace.parent]
    both = [subprocess.Popen([*words, name], stderr=subprocess.PIPE) for name in ("one", "two")]
    assert [process.communicate(timeout=90)[1] for process in both] == [b"", b""]
    lines = filled.read("text").splitlines()
    assert lines[0] == b"old"
    assert sorted(lines[1:]) == [b"one"] * 15 + [b"two"] * 15
    assert set(filled.states().values()) == {EntryState.DONE}
    for _ in range(30):
        filled.undo()
    assert filled.read("text") == b"old\n"


def test_staging_folders_of_different_states_have_different_names(filled: Yard) -> None:
    seen = []
    for state in ("one", "two"):
        promoter = Promoter(filled.tree, filled.store.journal, filled.store.blobs, filled.state / state)
        promoter.blobs = MeddlingBlobs(filled.store, lambda: seen.append(filled.staged()))
        promoter.promote(filled.entry(), filled.changes({"text": state.encode()}))
    assert seen[0] != seen[1]
    assert len(seen[0]) == len(seen[1]) == 1
