"""The workshop: opened with recovery, merging with the user's edits, naming checkpoints, telling events."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from opened import Site
from world import snapshot

from pawl.core.change import Change, ChangeSet, EntryKind, EntryState, Node, RollbackPolicy
from pawl.core.errors import ConfigError, Conflicted, StoreError, UnknownEntry, UsageError
from pawl.store.store import Store
from pawl.workspace.benches import collect, examine
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

CANARY = "c4nary-Zq8"
TEN = b"".join(b"line %d\n" % n for n in range(1, 11))


def promote(shop: Project, **contents: bytes | None) -> int:
    return shop.promote(shop.new_entry(EntryKind.EDIT, "work"), changes(shop, **contents)).entry


def changes(shop: Project, **contents: bytes | None) -> ChangeSet:
    """From the workspace as it stands; a name has __ for its slashes."""
    found = []
    for name, data in contents.items():
        path = name.replace("__", "/")
        before = shop.tree.node(path, shop.store.blobs) if shop.tree.find(path) else None
        after = None if data is None else Node.file(shop.store.blobs.put(data), before.mode if before else 0o644)
        found.append(Change(path, before, after))
    return ChangeSet.of(found)


def events(shop: Project) -> list[tuple[str, dict[str, object]]]:
    return [(event["kind"], event["body"]) for event in shop.store.events.read(shop.workspace)]


@pytest.mark.spec("F2")
def test_what_was_interrupted_is_recovered_before_anything_else_and_told(site: Site) -> None:
    with site.open() as shop:
        entry = shop.new_entry(EntryKind.EDIT, "interrupted")
        number = shop.store.journal.begin(entry, changes(shop, one=b"1", two=b"2"), {})
    site.write("one", b"1")
    with site.open() as shop:
        assert [(found.entry.id, found.state) for found in shop.recovered] == [(number, EntryState.DONE)]
        assert site.read("two") == b"2"
        assert events(shop) == [("recovered", {"entry": number, "state": "done", "kept": []})]


@pytest.mark.spec("F2")
def test_what_cannot_be_recovered_now_does_not_keep_the_user_from_their_history(site: Site) -> None:
    site.write("one", b"0")
    with site.open() as shop:
        shop.store.journal.begin(shop.new_entry(EntryKind.EDIT, "interrupted"), changes(shop, one=b"1", two=b"2"), {})
    site.write("one", b"1")
    # A disk that has lost what was stored.
    with sqlite3.connect(site.config.state / "pawl.db") as connection:
        connection.execute("DELETE FROM content")
    with site.open() as shop:
        assert "entry 1 was interrupted" in shop.unrecovered
        assert shop.entry(1).state is EntryState.PREPARED


def test_a_workspace_that_is_not_there_is_told_and_leaves_nothing_open(site: Site, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be opened: No such file or directory"):
        Project.open(site.config, tmp_path / "none")


def test_a_preset_that_is_not_there_is_told_before_anything_is_opened(site: Site) -> None:
    with pytest.raises(ConfigError, match="no guardrail preset 'loose'"):
        site.open(preset="loose")
    assert not site.config.state.exists()


@pytest.mark.spec("B9")
def test_a_change_is_merged_with_the_users_edit_elsewhere_in_the_file(site: Site, shop: Project) -> None:
    site.write("ten", TEN)
    wanted = changes(shop, ten=TEN.replace(b"line 2\n", b"ours\n"), other=b"1\n")
    site.write("ten", TEN.replace(b"line 9\n", b"mine\n"))
    promotion = shop.promote(shop.new_entry(EntryKind.EDIT, "work"), wanted)
    assert site.read("ten") == TEN.replace(b"line 2\n", b"ours\n").replace(b"line 9\n", b"mine\n")
    assert events(shop)[-1] == ("promoted", {"entry": promotion.entry, "digest": promotion.changes.digest})
    shop.undo(None, Wish())
    assert site.read("ten") == TEN.replace(b"line 9\n", b"mine\n")


@pytest.mark.spec("B9")
def test_a_change_of_the_same_line_is_a_conflict_and_nothing_is_written(site: Site, shop: Project) -> None:
    site.write("ten", TEN)
    wanted = changes(shop, ten=TEN.replace(b"line 2\n", b"ours\n"), other=b"1\n")
    site.write("ten", TEN.replace(b"line 2\n", b"mine\n"))
    before = snapshot(site.workspace)
    with pytest.raises(Conflicted, match="you changed 'ten' meanwhile, in the same place") as caught:
        shop.promote(shop.new_entry(EntryKind.EDIT, "work"), wanted)
    assert [conflict.path for conflict in caught.value.conflicts] == ["ten"]
    assert snapshot(site.workspace) == before
    assert shop.entries() == []


def test_a_change_set_can_be_kept_and_looked_at(site: Site, shop: Project) -> None:
    wanted = changes(shop, new=b"1\n")
    number = shop.keep(shop.new_entry(EntryKind.RUN, "make", "because"), wanted)
    assert shop.changes(shop.entry(number)) == wanted
    assert (shop.entry(None).state, shop.entry(None).reason) == (EntryState.CAPTURED, "because")
    assert not (site.workspace / "new").exists()


def test_the_newest_entry_is_one_that_changes_something(shop: Project) -> None:
    number = promote(shop, one=b"1")
    empty = shop.store.journal.begin(shop.new_entry(EntryKind.EDIT, "a look"), ChangeSet(), {})
    shop.store.journal.finish(empty, EntryState.ROLLED_BACK)
    assert shop.entry(None).id == number


def test_an_empty_history_is_told(shop: Project) -> None:
    with pytest.raises(UnknownEntry, match="nothing was done in this workspace yet"):
        shop.entry(None)
    with pytest.raises(UnknownEntry, match="no checkpoint yet"):
        shop.restore(None, Wish())


@pytest.mark.spec("B9")
def test_each_step_back_is_an_event(site: Site, shop: Project) -> None:
    first = promote(shop, one=b"1")
    shop.checkpoint("start")
    promote(shop, one=b"2")
    shop.undo(None, Wish())
    shop.redo(Wish())
    shop.restore("start", Wish())
    shop.undo(None, Wish(dry_run=True))
    kinds = [kind for kind, _ in events(shop)]
    assert kinds == ["promoted", "checkpoint", "promoted", "undone", "redone", "restored"]
    assert first == 1


@pytest.mark.spec("A3")
def test_a_checkpoint_carries_the_settings_progress_and_verification(site: Site) -> None:
    with site.open(rollback_depth=2) as shop:
        made = shop.checkpoint("mine", progress={"step": 1, "of": 3}, verification={"tests": {"passed": 12}})
        assert made.policy == RollbackPolicy(automatic_on_error=True, depth=2, preserve_user_edits=True)
        assert shop.checkpoint_named("mine") == made
        assert (made.progress, made.verification) == ({"step": 1, "of": 3}, {"tests": {"passed": 12}})


@pytest.mark.spec("A3")
def test_checkpoints_are_found_by_name_and_number_and_the_newest_without(site: Site, shop: Project) -> None:
    first, second = shop.checkpoint("one"), shop.checkpoint(None)
    assert second.name == "checkpoint-2"
    assert shop.checkpoint_named("one") == shop.checkpoint_named(str(first.id)) == first
    assert shop.checkpoint_named(None) == second
    with pytest.raises(UnknownEntry, match="no checkpoint 'nine'") as caught:
        shop.checkpoint_named("nine")
    assert caught.value.advice == "there are 'checkpoint-2', 'one'"


def test_a_checkpoints_name_is_not_taken_twice_by_hand_or_by_itself(shop: Project) -> None:
    shop.checkpoint("checkpoint-2")
    assert shop.checkpoint(None).name == "checkpoint-2-2"
    with pytest.raises(StoreError, match="there is already a checkpoint named 'checkpoint-2'"):
        shop.checkpoint("checkpoint-2")


@pytest.mark.parametrize("name", ["", "7", "-x", "two\nlines", " padded", "bell\a"])
def test_a_name_that_cannot_be_typed_or_is_a_number_is_refused(shop: Project, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a checkpoint"):
        shop.checkpoint(name)


@pytest.mark.spec("B13")
def test_no_secret_reaches_the_state_file_through_words(site: Site) -> None:
    with site.open() as shop:
        shop.note("said", {"argv": f"make TOKEN={CANARY}", "deep": [{"password": CANARY}]})
        entry = shop.new_entry(EntryKind.RUN, f"curl -u me:{CANARY} host", f"because PASSWORD={CANARY}")
        shop.promote(entry, changes(shop, one=b"1"))
        shop.undo(None, Wish())
        shop.keep(entry, changes(shop, two=b"2"))
        shop.checkpoint(
            f"token={CANARY}", progress={"api_key": CANARY}, verification={"log": f"Authorization: Bearer {CANARY}"}
        )
        raw = stored(site)
    assert CANARY.encode() not in raw
    assert b"[redacted]" in raw


def stored(site: Site) -> bytes:
    """The state file as it lies on the disk while it is open, with its log."""
    return b"".join(path.read_bytes() for path in site.config.state.glob("pawl.db*"))


@pytest.mark.spec("A15", "A16")
def test_the_last_five_backups_of_each_file_are_kept_however_old_they_are(site: Site) -> None:
    site.config.state.mkdir(mode=0o700)
    past = 1_500_000_000.0
    with Store.open(site.config.state, clock=lambda: past) as store, site.open() as shop:
        shop.store = store
        for n in range(8):
            promote(shop, README=b"%d\n" % n)
        promote(shop, rare=b"once\n")
    with site.open() as shop:
        cleaned = collect(shop, days=None, backups=None)
        assert (cleaned.entries, cleaned.days, cleaned.backups) == (3, 30, 5)
        assert [entry.pruned for entry in reversed(shop.entries())] == [True] * 3 + [False] * 6
        shop.undo(9, Wish())
        for n in reversed(range(4, 9)):
            shop.undo(n, Wish())
            assert site.read("README") == b"%d\n" % (n - 2)
        with pytest.raises(StoreError, match="entry 3 was pruned by retention"):
            shop.undo(3, Wish())


@pytest.mark.spec("A16")
def test_what_is_younger_than_the_days_is_kept_whatever_their_number(site: Site, shop: Project) -> None:
    for n in range(8):
        promote(shop, README=b"%d\n" % n)
    assert collect(shop, days=None, backups=1).entries == 0
    assert collect(shop, days=0, backups=2).entries == 6


def test_fewer_than_no_days_are_refused(shop: Project) -> None:
    with pytest.raises(UsageError, match="cannot be below 0"):
        collect(shop, days=-1, backups=None)


def test_an_examination_finds_damage_in_the_state_file(site: Site) -> None:
    with site.open() as shop:
        promote(shop, one=b"some content\n" * 5)
        assert examine(shop, thorough=True).problems == ()
        with sqlite3.connect(site.config.state / "pawl.db") as connection:
            connection.execute("UPDATE content SET data = zeroblob(4)")
        connection.close()
        assert examine(shop, thorough=False).problems == ()
        assert len(examine(shop, thorough=True).problems) >= 1
