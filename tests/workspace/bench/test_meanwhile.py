"""What the user changes while a bench stands is never overwritten: it is untouched by the bench, or a conflict."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest
from workspace.bench.stand import Stand, shell
from world import lay, snapshot

from pawl.core.change import Change, ChangeSet, Node, blob_digest
from pawl.core.errors import MissingBlob
from pawl.core.merge import Conflict
from pawl.core.merge import ConflictReason as Why
from pawl.workspace.capture import Capture, CaptureRules, HeldBack, HeldReason, capture
from pawl.workspace.ignore import Ignore


def file(text: str, mode: int = 0o644) -> Node:
    return Node.file(blob_digest(text.encode()), mode)


def conflict(path: str, ours: Node | None, theirs: Node | None) -> Conflict:
    return Conflict(path=path, base=None, ours=ours, theirs=theirs, reason=Why.MEANWHILE)


@pytest.mark.attack("A14")
@pytest.mark.spec("F2")
def test_a_file_that_both_changed_is_a_conflict_and_the_benchs_version_is_kept(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo bench > README.md; echo x > x")
    (stand.workspace / "README.md").write_text("user\n")
    captured = bench.capture()
    assert captured == Capture(
        changes=ChangeSet((Change("x", None, file("x\n")),)),
        conflicts=(conflict("README.md", file("bench\n"), file("user\n")),),
    )
    assert stand.blobs.get(blob_digest(b"bench\n")) == b"bench\n"
    assert (stand.workspace / "README.md").read_text() == "user\n"


@pytest.mark.attack("A14")
def test_an_edit_of_a_file_that_the_user_changed_after_the_bench_was_made_is_a_conflict(stand: Stand):
    bench = stand.bench()
    seen = bench.files.read("src/main.py")
    (stand.workspace / "src/main.py").write_text("user's\n")
    bench.files.write("src/main.py", seen + b"# model's\n")
    captured = bench.capture()
    assert captured.changes == ChangeSet()
    assert [(one.path, one.theirs) for one in captured.conflicts] == [("src/main.py", file("user's\n"))]
    assert (stand.workspace / "src/main.py").read_text() == "user's\n"


def test_what_only_the_user_changed_is_nobodys_business(stand: Stand):
    (stand.workspace / "lib").mkdir()
    bench = stand.bench()
    shell(bench, "echo x > x; touch src/main.py")
    (stand.workspace / "README.md").write_text("user\n")
    (stand.workspace / "mine").write_text("user\n")
    (stand.workspace / "run.sh").unlink()
    (stand.workspace / "lib").chmod(0o700)
    shell(bench, "true")
    assert bench.capture().changes.paths == {"x"}
    assert bench.capture().conflicts == ()


def test_what_both_made_the_same_is_no_change(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo same > README.md; echo same > new; rm run.sh")
    (stand.workspace / "README.md").write_text("same\n")
    (stand.workspace / "new").write_text("same\n")
    (stand.workspace / "run.sh").unlink()
    assert bench.capture() == Capture()


def test_a_file_that_the_user_deleted_and_the_bench_changed_is_a_conflict(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo bench >> run.sh")
    text = (stand.workspace / "run.sh").read_text()
    (stand.workspace / "run.sh").unlink()
    assert bench.capture() == Capture(conflicts=(conflict("run.sh", file(text + "bench\n", 0o755), None),))


def test_a_file_that_the_user_changed_and_the_bench_deleted_is_a_conflict(stand: Stand):
    bench = stand.bench()
    shell(bench, "rm run.sh")
    (stand.workspace / "run.sh").write_text("user\n")
    assert bench.capture() == Capture(conflicts=(conflict("run.sh", None, file("user\n", 0o755)),))


def test_a_file_that_both_created_differently_is_a_conflict(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo bench > new")
    (stand.workspace / "new").write_text("user\n")
    assert bench.capture() == Capture(conflicts=(conflict("new", file("bench\n"), file("user\n")),))


def test_a_mode_that_both_changed_is_a_conflict(stand: Stand):
    bench = stand.bench()
    shell(bench, "chmod 700 src; chmod 600 run.sh")
    (stand.workspace / "src").chmod(0o750)
    (stand.workspace / "run.sh").chmod(0o644)
    assert {one.path for one in bench.capture().conflicts} == {"src", "run.sh"}


def test_what_the_user_put_into_a_folder_that_the_bench_removed_keeps_its_folder(overlay_stand: Stand):
    bench = overlay_stand.bench()
    shell(bench, "rm -r src")
    (overlay_stand.workspace / "src/mine").write_text("user\n")
    captured = bench.capture()
    assert captured.changes.paths == {"src/greeter.py", "src/main.py"}
    assert captured.conflicts == (conflict("src/mine", None, file("user\n")),)
    assert captured.held == (HeldBack("src", HeldReason.IN_THE_WAY, Change("src", Node.directory(), None)),)


def test_a_folder_that_the_user_took_away_comes_back_only_for_what_the_bench_put_into_it(stand: Stand):
    lay(stand.workspace, {"one/a": b"1", "two/a": b"1"})
    bench = stand.bench()
    shell(bench, "echo 2 > one/a; echo 2 > two/a; echo 2 > two/new")
    shutil.rmtree(stand.workspace / "one")
    shutil.rmtree(stand.workspace / "two")
    captured = bench.capture()
    assert captured.changes == ChangeSet.of(
        [Change("two", None, Node.directory()), Change("two/new", None, file("2\n"))]
    )
    assert captured.conflicts == (conflict("one/a", file("2\n"), None), conflict("two/a", file("2\n"), None))


def test_moving_a_file_is_no_conflict_though_the_user_works_in_the_same_folder(stand: Stand):
    bench = stand.bench()
    before = snapshot(stand.workspace)
    shell(bench, "mv src/main.py src/moved.py; mv README.md src/readme; mkdir new; mv run.sh new/run")
    (stand.workspace / "src/other.py").write_text("user\n")
    (stand.workspace / "other").write_text("user\n")
    captured = bench.capture()
    assert captured.conflicts == ()
    assert captured.changes.paths == {
        "src/main.py", "src/moved.py", "README.md", "src/readme", "new", "new/run", "run.sh",
    }  # fmt: skip
    assert captured.changes.get("src/moved.py").after.blob == blob_digest(before[b"src/main.py"][2])


def test_a_secret_that_both_changed_is_held_back_and_reaches_no_blob(stand: Stand):
    (stand.workspace / ".env").write_text("KEY=1\n")
    bench = stand.bench()
    shell(bench, "echo KEY=canary > .env", secrets="shown")
    (stand.workspace / ".env").write_text("KEY=2\n")
    assert bench.capture() == Capture(held=(HeldBack(".env", HeldReason.SECRET),))
    with pytest.raises(MissingBlob):
        stand.blobs.get(blob_digest(b"KEY=canary\n"))


def test_what_the_user_changes_while_the_bench_is_read_is_a_conflict_too(stand: Stand):
    """Git is asked between the look at the names and the reading of the contents, so that is when the user saves."""
    lay(stand.workspace, {"kept.log": b"1", ".env": b"KEY=1\n", "gone": b"1", "same": b"1", "removed": b"1"})
    bench = stand.bench()
    script = "for f in README.md kept.log gone same; do echo bench > $f; done; rm removed; echo KEY=canary > .env"
    shell(bench, script, secrets="shown")

    def save(asked: Sequence[str]) -> frozenset[str]:
        assert asked == ["kept.log"]
        for name in ("README.md", "removed"):
            (stand.workspace / name).write_text("user\n")
        (stand.workspace / "same").write_text("bench\n")
        (stand.workspace / "gone").unlink()
        (stand.workspace / ".env").unlink()
        return frozenset()

    ignore = Ignore(lambda path: b"*.log\n" if path == ".gitignore" else None)
    rules = CaptureRules(blobs=stand.blobs, guardrails=stand.guardrails, ignore=ignore, tracked=save)
    assert capture(bench._surface, rules) == Capture(
        ignored=("kept.log",),
        held=(HeldBack(".env", HeldReason.SECRET),),
        conflicts=(
            conflict("README.md", file("bench\n"), file("user\n")),
            conflict("gone", file("bench\n"), None),
            conflict("removed", None, file("user\n")),
        ),
    )
    with pytest.raises(MissingBlob):
        stand.blobs.get(blob_digest(b"KEY=canary\n"))


def test_a_change_made_just_before_the_bench_is_part_of_its_base(stand: Stand):
    for number in range(20):
        (stand.workspace / "README.md").write_text(f"user {number}\n")
        bench = stand.bench()
        bench.files.write("README.md", b"bench\n")
        assert bench.capture() == Capture(
            changes=ChangeSet((Change("README.md", file(f"user {number}\n"), file("bench\n")),))
        )
        bench.discard()


def test_a_change_made_just_after_the_bench_is_a_conflict(stand: Stand):
    for number in range(20):
        bench = stand.bench()
        (stand.workspace / "README.md").write_text(f"user {number}\n")
        bench.files.write("README.md", b"bench\n")
        assert [one.path for one in bench.capture().conflicts] == ["README.md"]
        bench.discard()
