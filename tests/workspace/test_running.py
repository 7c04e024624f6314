"""A command on a bench: what becomes of its changes, and what never becomes of its secrets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from opened import Run, Site
from world import snapshot

from pawl.core.change import EntryKind, EntryState, Node
from pawl.core.errors import StoreBusy
from pawl.core.execution import Secrets
from pawl.settings.files import Tree, writer_lock
from pawl.settings.guardrails import preset
from pawl.workspace.benches import CommandRequest, keep, land, run_on_bench
from pawl.workspace.capture import CaptureRules, HeldReason, capture
from pawl.workspace.ignore import Ignore
from pawl.workspace.overlay import LayeredSurface
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

CANARY = "c4nary-Zq8"


def stored(site: Site) -> bytes:
    """The state file as it lies on the disk while it is open, with its log."""
    files = sorted(site.config.state.glob("pawl.db*"))
    assert [file.name for file in files] == ["pawl.db", "pawl.db-shm", "pawl.db-wal"]
    return b"".join(file.read_bytes() for file in files)


def content(shop: Project, node: Node | None) -> bytes | None:
    return None if node is None or node.blob is None else shop.store.blobs.get(node.blob)


@pytest.mark.spec("F3", "F2", "B9")
def test_a_commands_changes_land_as_one_entry_and_go_as_one(site: Site, shop: Project, run: Run) -> None:
    before = snapshot(site.workspace)
    ran = run("sed -i s/hello/goodbye/ README.md; mkdir -p new/deep; echo 1 > new/deep/f; rm run.sh; chmod 700 src")
    assert snapshot(site.workspace) == before
    landing = land(shop, ran, allow_protected=False)
    assert landing.promotion is not None
    assert landing.promotion.changes.paths == {"README.md", "new", "new/deep", "new/deep/f", "run.sh", "src"}
    assert site.read("README.md") == b"# Greeter\n\nSays goodbye.\n"
    assert (landing.kept, landing.held, landing.conflicts) == (None, (), ())
    shop.undo(landing.promotion.entry, Wish())
    assert snapshot(site.workspace) == before


def test_a_command_that_changes_nothing_leaves_no_entry(shop: Project, run: Run) -> None:
    landing = land(shop, run("touch README.md; cat run.sh > copy; rm copy"), allow_protected=False)
    assert (landing.promotion, landing.kept) == (None, None)
    assert shop.entries() == []


@pytest.mark.spec("F2")
def test_a_failed_commands_changes_are_kept_and_not_promoted(site: Site, shop: Project, run: Run) -> None:
    before = snapshot(site.workspace)
    ran = run("echo half > README.md; exit 3")
    assert ran.completed.code == 3
    landing = keep(shop, ran)
    assert snapshot(site.workspace) == before
    assert landing.promotion is None
    assert landing.kept is not None
    entry = shop.entry(landing.kept)
    assert (entry.state, entry.active) == (EntryState.CAPTURED, False)
    change = shop.changes(entry).get("README.md")
    assert change is not None
    assert content(shop, change.after) == b"half\n"


@pytest.mark.spec("A15")
def test_protected_files_are_held_back_until_the_user_says_yes(site: Site, shop: Project, run: Run) -> None:
    script = "echo rules > AGENTS.md; mkdir -p .github/workflows; echo on > .github/workflows/ci.yml; echo 1 > plain"
    ran = run(script)
    landing = land(shop, ran, allow_protected=False)
    names = [".github", ".github/workflows", ".github/workflows/ci.yml", "AGENTS.md"]
    assert [(one.path, one.reason) for one in landing.held] == [(name, HeldReason.PROTECTED) for name in names]
    assert site.read("plain") == b"1\n"
    assert not (site.workspace / "AGENTS.md").exists()
    assert landing.kept is not None
    assert shop.changes(shop.entry(landing.kept)).paths == set(names)
    released = land(shop, ran, allow_protected=True)
    assert released.held == ()
    assert site.read(".github/workflows/ci.yml") == b"on\n"
    assert site.read("AGENTS.md") == b"rules\n"


@pytest.mark.spec("A15", "B13")
@pytest.mark.parametrize("fate", [land, keep])
@pytest.mark.parametrize("name", [".env", "deep/in/.env.local", "id_rsa.pem", "server.key"])
def test_a_secret_file_is_never_stored_nor_written(
    site: Site, shop: Project, run: Run, name: str, fate: Callable[..., object]
) -> None:
    ran = run(f"mkdir -p deep/in; echo PASSWORD={CANARY} > {name}; echo 1 > plain", secrets=Secrets.SHOWN)
    landing = land(shop, ran, allow_protected=True) if fate is land else keep(shop, ran)
    assert [(one.path, one.reason, one.change) for one in landing.held] == [(name, HeldReason.SECRET, None)]
    assert CANARY.encode() not in stored(site)
    assert b"plain" in stored(site)
    assert site.read(".env") == b"PASSWORD=old-one\n"


@pytest.mark.spec("B13")
def test_a_secret_file_cannot_be_read_unless_the_user_shows_it(site: Site, run: Run) -> None:
    site.write(".env", f"PASSWORD={CANARY}\n".encode())
    assert run("cat .env").completed.stdout.text == ""
    assert CANARY in run("cat .env", secrets=Secrets.SHOWN).completed.stdout.text
    assert CANARY.encode() not in stored(site)


@pytest.mark.spec("B13")
def test_secrets_in_a_command_are_in_no_title_and_no_event(site: Site, shop: Project) -> None:
    script = f"echo 1 > plain # TOKEN={CANARY}"
    argv = ("/bin/sh", "-c", script, "sh", "--password", f"words and {CANARY}", f"https://me:{CANARY}@host")
    landing = land(shop, run_on_bench(shop, CommandRequest(argv=argv, seconds=60)), allow_protected=False)
    assert landing.promotion is not None
    assert "echo 1 > plain" in shop.entry(landing.promotion.entry).title
    shop.undo(None, Wish())
    raw = stored(site)
    assert CANARY.encode() not in raw
    assert b"[redacted]" in raw


@pytest.mark.spec("B13")
def test_a_secret_whose_workspace_side_vanishes_while_it_is_read_is_not_stored_either(site: Site, memory: Path) -> None:
    """The user puts a FIFO in the place of .env between the first look and the read."""

    class Meddling(Ignore):
        def topmost(self, path: str, *, folder: bool) -> str | None:
            if path == ".env":
                (site.workspace / ".env").unlink()
                os.mkfifo(site.workspace / ".env")
            return super().topmost(path, folder=folder)

    with site.open() as shop, Tree(site.workspace) as tree:
        rules = CaptureRules(
            blobs=shop.store.blobs,
            guardrails=preset("standard"),
            ignore=Meddling(lambda _: None),
            tracked=lambda paths: frozenset(),
        )
        surface = LayeredSurface.create(tree, memory)
        try:
            same_size = f"PASS={CANARY}\n".encode().ljust(len(site.read(".env")))
            surface.put_file(".env", same_size, 0o644)
            captured = capture(surface, rules)
        finally:
            surface.close()
        assert [(one.path, one.reason) for one in captured.held] == [(".env", HeldReason.SECRET)]
        assert captured.conflicts == ()
        assert CANARY.encode() not in stored(site)


@pytest.mark.spec("B9")
def test_an_edit_by_the_user_after_the_command_is_merged(site: Site, shop: Project, run: Run) -> None:
    ran = run("sed -i '1s/.*/# Renamed/' README.md; echo 1 > other")
    site.write("README.md", b"# Greeter\n\nSays hello.\n\nMine.\n")
    landing = land(shop, ran, allow_protected=False)
    assert landing.conflicts == ()
    assert site.read("README.md") == b"# Renamed\n\nSays hello.\n\nMine.\n"


@pytest.mark.spec("B9", "F2")
def test_an_edit_of_the_same_line_keeps_both_versions_and_promotes_nothing(site: Site, shop: Project, run: Run) -> None:
    ran = run("sed -i '1s/.*/# Theirs/' README.md; echo 1 > other")
    site.write("README.md", b"# Mine\n\nSays hello.\n")
    before = snapshot(site.workspace)
    landing = land(shop, ran, allow_protected=False)
    assert snapshot(site.workspace) == before
    assert (landing.promotion, landing.conflicts) == (None, ("README.md",))
    assert landing.kept is not None
    kept = shop.changes(shop.entry(landing.kept))
    assert kept.paths == {"README.md", "other"}
    change = kept.get("README.md")
    assert change is not None
    assert content(shop, change.after) == b"# Theirs\n\nSays hello.\n"


@pytest.mark.spec("B9", "F2")
@pytest.mark.parametrize("fate", [land, keep])
def test_an_edit_while_the_command_runs_stands_and_the_benchs_version_is_kept(
    site: Site, shop: Project, fate: Callable[..., object]
) -> None:
    def meddle(*_: object) -> None:
        site.write("README.md", b"# Mine\n")

    argv = ("/bin/sh", "-c", "echo '# Theirs' > README.md; echo 1 > other; echo started")
    ran = run_on_bench(shop, CommandRequest(argv=argv, seconds=60), on_output=meddle)
    landing = land(shop, ran, allow_protected=False) if fate is land else keep(shop, ran)
    assert site.read("README.md") == b"# Mine\n"
    assert landing.conflicts == ("README.md",)
    assert landing.kept is not None
    change = shop.changes(shop.entry(landing.kept)).get("README.md")
    assert change is not None
    assert (content(shop, change.before), content(shop, change.after)) == (b"# Mine\n", b"# Theirs\n")
    assert (site.workspace / "other").exists() == (fate is land)


def test_what_the_user_did_as_well_is_nothing_to_promote(site: Site, shop: Project, run: Run) -> None:
    ran = run("echo same > README.md")
    site.write("README.md", b"same\n")
    landing = land(shop, ran, allow_protected=False)
    assert (landing.promotion, landing.kept, landing.conflicts) == (None, None, ())


def test_a_fifo_the_user_put_in_the_place_is_a_conflict_and_the_work_is_kept(
    site: Site, shop: Project, run: Run
) -> None:
    ran = run("echo new > README.md; echo 1 > other")
    (site.workspace / "README.md").unlink()
    os.mkfifo(site.workspace / "README.md")
    landing = land(shop, ran, allow_protected=False)
    assert (landing.promotion, landing.conflicts) == (None, ("README.md",))
    assert landing.kept is not None
    assert shop.changes(shop.entry(landing.kept)).paths == {"README.md", "other"}


def test_when_another_pawl_is_writing_the_work_can_still_be_kept(site: Site, shop: Project, run: Run) -> None:
    ran = run("echo new > README.md")
    with writer_lock(site.config.state / "locks", shop.workspace):
        promoter = shop.promoter
        promoter.lock_seconds = 0
        with pytest.raises(StoreBusy):
            promoter.promote(shop.new_entry(EntryKind.RUN, "busy"), ran.capture.changes)
        landing = keep(shop, ran)
    assert landing.kept is not None
    change = shop.changes(shop.entry(landing.kept)).get("README.md")
    assert change is not None
    assert content(shop, change.after) == b"new\n"


@pytest.mark.spec("F3")
def test_ignored_files_stay_on_the_bench_unless_they_are_asked_for(site: Site, shop: Project, run: Run) -> None:
    site.write(".gitignore", b"*.log\n")
    ran = run("echo 1 > out.log; echo 2 > plain")
    assert ran.capture.ignored == ("out.log",)
    land(shop, ran, allow_protected=False)
    assert not (site.workspace / "out.log").exists()
    land(shop, run("echo 1 > out.log", include_ignored=True), allow_protected=False)
    assert site.read("out.log") == b"1\n"


@pytest.mark.spec("F3")
def test_a_command_and_its_end_are_events(shop: Project, run: Run) -> None:
    run("echo 1 > new; exit 4")
    told = [(event["kind"], event["body"]) for event in shop.store.events.read(shop.workspace)]
    assert [kind for kind, _ in told] == ["command", "command ended"]
    assert (told[0][1]["network"], told[1][1]["code"], told[1][1]["changes"]) == ("off", 4, 1)
