"""The commands that look at the history and take back: what each says to a person and to a program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from world import snapshot

from pawl.core.change import Change, ChangeSet, EntryKind, NewEntry, Node
from pawl.store.store import Store


@pytest.mark.spec("B9", "F3")
def test_undo_redo_and_undo_of_an_undo_say_what_they_did_and_leave_the_tree_exact(pawl: Pawl):
    before = snapshot(pawl.workspace)
    pawl.applied("rm -r src; echo x > x; chmod 700 run.sh")
    after = snapshot(pawl.workspace)
    said = pawl("undo")
    assert (said.code, said.err) == (0, "")
    assert said.lines == [
        "undo 1: sh -c 'rm -r src; echo x > x; chmod 700 run.sh'",
        "  ~ run.sh          mode 700 → 755",
        "  + src/",
        "  + src/greeter.py  +2 −0",
        "  + src/main.py     +3 −0",
        "  - x               +0 −1",
        "this is entry 2; undo with: pawl undo 2",
    ]
    assert snapshot(pawl.workspace) == before
    assert pawl("redo").lines[-1] == "this is entry 3; undo with: pawl undo 3"
    assert snapshot(pawl.workspace) == after
    assert pawl("undo", "3").code == 0
    assert snapshot(pawl.workspace) == before


@pytest.mark.spec("B9")
def test_one_file_is_taken_back_named_from_where_the_user_is(repository: Pawl):
    repository.applied("echo a > src/a; echo b > b")
    assert repository("undo", "--file", "a", cwd=repository.workspace / "src").lines[1] == "  - src/a  +0 −1"
    assert (repository.workspace / "b").exists()
    assert repository("undo").lines[1] == "  - b  +0 −1"
    assert repository("redo", "--file", "../b", cwd=repository.workspace / "src").lines[1] == "  + b  +1 −0"
    assert not (repository.workspace / "src/a").exists()
    outside = repository("undo", "1", "--file", "../b")
    assert (outside.code, "is not inside the workspace" in outside.err) == (1, True)


@pytest.mark.spec("B9")
def test_a_run_is_taken_back_by_its_name(pawl: Pawl):
    run = pawl.json("run", "--apply", "--", "touch", "x")["run"]
    assert pawl("undo", run).lines[0] == f"undo run {run}"
    assert not (pawl.workspace / "x").exists()


@pytest.mark.spec("B9")
@pytest.mark.parametrize(
    ("choice", "says", "leaves"),
    [
        ("keep", "left as it is", "one\nMINE\n"),
        ("overwrite", "that version is kept in this entry", "one\n"),
    ],
)
def test_a_conflict_stops_an_undo_until_the_user_chooses(pawl: Pawl, choice: str, says: str, leaves: str):
    (pawl.workspace / "f").write_text("one\n")
    pawl.applied("echo two >> f; touch other")
    (pawl.workspace / "f").write_text("one\nMINE\n")
    stopped, answer, dry = pawl.many([["undo"], ["undo", "--json"], ["undo", "--dry-run"]])
    assert (stopped.code, answer.code, dry.code) == (1, 1, 0)
    assert stopped.err.splitlines()[0].startswith("pawl: you changed 'f' since")
    assert "--on-conflict keep | overwrite" in stopped.err
    assert json.loads(answer.out)["conflicts"] == ["f"]
    assert "  ! f  you changed 'f' since, in the same place; without --dry-run this stops here" in dry.lines
    assert (pawl.workspace / "other").exists()
    said = pawl("undo", "--on-conflict", choice)
    assert said.code == 0
    assert any(line.startswith("  ! f  ") and line.endswith(says) for line in said.lines), said.out
    assert leaves in (pawl.workspace / "f").read_text()
    assert not (pawl.workspace / "other").exists()


def test_a_conflict_with_a_later_entry_names_that_entry(pawl: Pawl):
    pawl.applied("echo one > f")
    pawl.applied("echo two > f")
    assert "  ! f  entry 2 changed 'f' since, in the same place; without --dry-run this stops here" in (
        pawl("undo", "1", "--dry-run").lines
    )


def test_keeping_everything_that_conflicts_takes_nothing_back_and_says_so(pawl: Pawl):
    pawl.applied("echo two > README.md")
    (pawl.workspace / "README.md").write_text("mine\n")
    said = pawl("undo", "--on-conflict", "keep")
    assert (said.code, said.out) == (1, "")
    assert "you changed everything that this would undo" in said.err


@pytest.mark.spec("A3", "B9")
def test_a_checkpoint_is_made_listed_and_restored_by_name_number_or_file(pawl: Pawl):
    made, first, second, again, listed, dry, one, rest = pawl.many(
        [
            ["checkpoint", "start"],
            ["run", "--apply", "--", "touch", "a"],
            ["run", "--apply", "--", "touch", "b"],
            ["checkpoint"],
            ["checkpoint", "--list"],
            ["restore", "start", "--dry-run"],
            ["restore", "start", "--file", "a"],
            ["restore", "1"],
        ]
    )
    assert made.lines == ["checkpoint start, before the first entry", "come back with: pawl restore start"]
    assert (first.code, second.code) == (0, 0)
    assert again.lines[0] == "checkpoint checkpoint-2, after entry 2"
    assert [line.split()[0] for line in listed.lines] == ["id", "2", "1"]
    assert listed.lines[1].endswith("after entry 2")
    assert dry.lines == ["would restore 'start'", "  - a", "  - b"]
    assert one.lines == ["restore 'start'", "  - a", "this is entry 3; undo with: pawl undo 3"]
    assert rest.code == 0
    assert not (pawl.workspace / "b").exists()


@pytest.mark.spec("A3", "B9")
def test_any_entry_is_a_point_to_come_back_to(pawl: Pawl):
    *_, dry, back, again, both, unknown = pawl.many(
        [
            *(["run", "--apply", "--", "touch", name] for name in "abc"),
            ["restore", "--entry", "1", "--dry-run"],
            ["restore", "--entry", "1"],
            ["restore", "--entry", "4"],
            ["restore", "start", "--entry", "1"],
            ["restore", "--entry", "9"],
        ]
    )
    assert dry.lines == ["would restore entry 1", "  - b", "  - c"]
    assert back.lines == ["restore entry 1", "  - b", "  - c", "this is entry 4; undo with: pawl undo 4"]
    assert (again.code, "nothing was done since entry 4" in again.err) == (1, True), again
    assert (both.code, unknown.code) == (42, 42), (both, unknown)
    assert [(pawl.workspace / name).exists() for name in "abc"] == [True, False, False]
    assert "before-restore-3" in pawl("checkpoint", "--list").out


@pytest.mark.spec("A3")
def test_a_checkpoint_as_json_holds_progress_verification_and_policy(pawl: Pawl):
    pawl.applied("touch a")
    body = pawl.json("checkpoint", "one")
    assert body.pop("created").endswith("+00:00")
    assert body == {
        "id": 1,
        "name": "one",
        "after_entry": 1,
        "changes": ["a"],
        "progress": {},
        "verification": {},
        "policy": {"automatic_on_error": True, "depth": 5, "preserve_user_edits": True},
    }
    assert pawl.json("checkpoint", "--list")["checkpoints"][0]["name"] == "one"


@pytest.mark.spec("B9")
def test_a_restore_that_stops_leaves_no_checkpoint_behind(pawl: Pawl):
    pawl("checkpoint", "start")
    pawl.applied("echo two > README.md; touch other")
    (pawl.workspace / "README.md").write_text("mine\n")
    assert pawl("restore").code == 1
    assert pawl("restore", "--on-conflict", "keep").lines[0] == "restore 'start'"
    assert not (pawl.workspace / "other").exists()


def test_the_history_shows_what_stands_and_how_to_see_the_rest(pawl: Pawl):
    empty, _, _, _, short, everything = pawl.many(
        [
            ["history"],
            ["run", "--apply", "--", "touch", "a"],
            ["run", "--", "touch", "kept"],
            ["undo", "1"],
            ["history", "--limit", "1"],
            ["history", "--all"],
        ]
    )
    assert empty.out == "nothing was promoted in this workspace yet\n"
    assert [short.lines[0].split(), short.lines[1].split()[0], *short.lines[2:]] == [
        ["id", "when", "what", "state", "paths", "run"],
        "3",
        "… and 1 older: --limit 2",
        "1 entry not promoted: pawl history --all",
    ]
    rows = everything.lines[1:]
    assert [line.split()[0] for line in rows] == ["3", "2", "1"]
    assert all(word in line for word, line in zip(["promoted", "kept", "undone by 3"], rows, strict=True))


def test_the_history_as_json_holds_whole_entries(pawl: Pawl):
    pawl.applied("echo a long title that is not cut however long it may be, because a program can cut it by itself > a")
    body = pawl.json("history")
    entry = body["entries"][0]
    assert body["total"] == 1
    assert entry["title"].endswith("by itself > a'")
    assert {key: entry[key] for key in ("id", "kind", "state", "paths", "reverses", "reversed_by", "pruned")} == {
        "id": 1,
        "kind": "run",
        "state": "done",
        "paths": 1,
        "reverses": None,
        "reversed_by": None,
        "pruned": False,
    }


@pytest.mark.spec("F3")
def test_a_piped_diff_is_a_patch_that_git_and_pawl_take(pawl: Pawl):
    before = snapshot(pawl.workspace)
    pawl.applied(r"printf 'x\0y' > binary; rm logo.bin; echo more >> README.md; chmod +x README.md")
    after = snapshot(pawl.workspace)
    patch = pawl.raw("diff", "1").stdout
    pawl("undo")
    assert snapshot(pawl.workspace) == before
    subprocess.run(["git", "apply", "-"], input=patch, cwd=pawl.workspace, check=True, capture_output=True)
    assert snapshot(pawl.workspace) == after
    subprocess.run(["git", "apply", "-R", "-"], input=patch, cwd=pawl.workspace, check=True, capture_output=True)
    assert pawl("patch", "-", stdin=patch).code == 0
    assert snapshot(pawl.workspace) == after


def test_a_diff_is_narrowed_to_files_and_to_names(pawl: Pawl):
    pawl.applied("echo a > src/a; echo b > b")
    names, part, missing, answer = pawl.many(
        [
            ["diff", "1", "--stat"],
            ["diff", "--stat", "--file", "src/"],
            ["diff", "--file", "nothing"],
            ["diff", "1", "--json"],
        ]
    )
    assert names.lines == ["  + b      +1 −0", "  + src/a  +1 −0"]
    assert part.lines == ["  + src/a  +1 −0"]
    assert (missing.code, missing.err.splitlines()[0]) == (42, "pawl: that entry did not touch 'nothing'")
    body = json.loads(answer.out)
    assert [row["path"] for row in body["changes"]] == ["b", "src/a"]
    assert (body["entry"]["id"], len(body["digest"])) == (1, 64)


@pytest.mark.spec("A16")
def test_pruned_history_is_listed_and_says_why_it_cannot_be_taken_back(pawl: Pawl):
    pawl.applied("touch a")
    dropped, listed, again, *refused = pawl.many(
        [
            ["gc", "--days", "0", "--backups", "0"],
            ["history"],
            ["gc", "--json"],
            ["undo", "1"],
            ["diff", "1"],
            ["diff", "1", "--stat"],
        ]
    )
    assert dropped.lines == [
        "dropped the contents of 1 old entry, freed 0.0 MB",
        "kept what is younger than 0 days, and the last 0 changes of each file",
    ]
    assert "promoted, pruned" in listed.lines[1]
    assert json.loads(again.out) == {"entries": 0, "bytes_freed": 0, "benches": 0, "days": 30, "backups": 5}
    assert [(said.code, said.out, "was pruned by retention" in said.err) for said in refused] == [(1, "", True)] * 3


def test_the_doctor_says_what_protects_commands_here_and_where_things_are(pawl: Pawl, state_directory: Path):
    said = pawl("doctor", "--verify")
    assert said.code == 0
    words = {line.split()[0] for line in said.lines}
    assert {"protection", "workspace", "state", "settings", "guardrails", "contents"} <= words
    assert f"workspace   {pawl.workspace}" in said.lines
    body = pawl.json("doctor")
    assert (body["ok"], body["problems"], body["state"]) == (True, [], str(state_directory / "pawl.db"))
    assert {"name", "works", "detail", "remedy"} == set(body["probes"][0])


@pytest.mark.spec("F2")
def test_what_a_crash_interrupted_is_settled_and_said(pawl: Pawl, state_directory: Path):
    with Store.open(state_directory) as store:
        blob = store.blobs.put(b"late\n")
        entry = NewEntry(workspace=str(pawl.workspace), run="r1", kind=EntryKind.RUN, title="late")
        store.journal.begin(entry, ChangeSet.of([Change("late", None, Node.file(blob))]), {})
    said = pawl("history")
    state = pawl.json("history", "--all")["entries"][0]["state"]
    assert said.err == f"pawl: entry 1 was interrupted and is now {state}\n"
    assert (state, (pawl.workspace / "late").exists()) in (("done", True), ("rolled back", False))


def test_a_damaged_state_file_is_set_aside_and_said(pawl: Pawl, state_directory: Path):
    (state_directory / "pawl.db").write_bytes(b"not a database, but long enough to be taken for one" * 100)
    said = pawl("history", "--json")
    assert said.out == '{"entries": [], "total": 0}\n'
    assert said.err.startswith("pawl: the state file was damaged; it is kept as ")
    assert [path.name for path in state_directory.glob("pawl.db.corrupt-*")] != []
