"""The files of a bench through the eyes of a tool, and every path by which a tool might be led out of it."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from memory_blobs import MemoryBlobs
from workspace.bench.stand import Stand, shell
from world import lay, snapshot

from pawl.core.change import Change, ChangeSet, Node, blob_digest
from pawl.core.errors import (
    Conflicted,
    DiskFull,
    NotAFile,
    NotFound,
    PathRefused,
    PawlError,
    ProtectedRefused,
    SecretRefused,
    TooLarge,
)
from pawl.workspace.capture import Capture, HeldBack, HeldReason


def file(data: bytes, mode: int = 0o644) -> Node:
    return Node.file(blob_digest(data), mode)


@pytest.mark.spec("F2", "A5")
def test_what_is_written_shows_on_the_bench_and_not_in_the_workspace(stand: Stand):
    before = snapshot(stand.workspace)
    bench = stand.bench()
    bench.files.write("src/main.py", b"changed")
    bench.files.write("new/deep/file.txt", b"new")
    bench.files.delete("README.md")
    assert bench.files.read("src/main.py") == b"changed"
    assert bench.files.read("new/deep/file.txt") == b"new"
    assert not bench.files.exists("README.md")
    assert (
        shell(bench, "cat src/main.py new/deep/file.txt; ls").stdout.text
        == "changednewlatest\nlogo.bin\nnew\nrun.sh\nsrc\n"
    )
    assert bench.capture().changes.paths == {"src/main.py", "new", "new/deep", "new/deep/file.txt", "README.md"}
    assert snapshot(stand.workspace) == before


def test_an_edited_file_keeps_its_mode_and_a_new_one_gets_an_ordinary_one(stand: Stand):
    bench = stand.bench()
    bench.files.write("run.sh", b"#!/bin/sh\n")
    bench.files.write("new", b"")
    changes = bench.capture().changes
    assert changes.get("run.sh").after.mode == 0o755
    assert changes.get("new").after.mode == 0o644


def test_what_was_deleted_can_be_written_again_and_deleted_again(stand: Stand):
    bench = stand.bench()
    for _ in range(2):
        bench.files.delete("src/main.py")
        with pytest.raises(NotFound):
            bench.files.read("src/main.py")
        with pytest.raises(NotFound):
            bench.files.delete("src/main.py")
        bench.files.write("src/main.py", b"again")
        assert bench.files.read("src/main.py") == b"again"
    bench.files.write("fresh", b"x")
    bench.files.delete("fresh")
    assert bench.capture().changes.paths == {"src/main.py"}


def test_a_folder_that_a_command_replaced_shows_nothing_of_the_old_one(stand: Stand):
    bench = stand.bench()
    shell(bench, "rm -r src; mkdir src; echo x > src/x")
    assert list(bench.files.walk()) == ["README.md", "logo.bin", "run.sh", "src/x"]
    assert not bench.files.exists("src/main.py")
    bench.files.write("src/main.py", b"new")
    assert shell(bench, "ls src").stdout.text == "main.py\nx\n"


def test_a_folder_made_where_one_was_removed_is_empty_for_commands_too(stand: Stand):
    bench = stand.bench()
    shell(bench, "rm -r src")
    bench.files.write("src/only", b"x")
    assert shell(bench, "ls -A src").stdout.text == "only\n"


def test_folders_that_a_write_made_go_when_their_only_file_does(stand: Stand):
    bench = stand.bench()
    bench.files.write("a/b/c", b"x")
    bench.files.write("a/d", b"x")
    bench.files.delete("a/b/c")
    assert bench.capture().changes.paths == {"a", "a/d"}
    bench.files.delete("a/d")
    assert bench.capture() == Capture()


def test_the_walk_leaves_out_what_is_ignored_linked_special_or_gits(stand: Stand):
    lay(stand.workspace, {".gitignore": b"*.log\n", "a.log": b"x", "sub/b.log": b"", "sub/c": b"", ".env": b""})
    subprocess.run(["git", "init", "-q", stand.workspace], check=True)
    bench = stand.bench()
    shell(bench, "mkdir src/__pycache__; echo x > src/__pycache__/x.pyc; rm logo.bin; mkfifo pipe; ln -s . loop")
    assert list(bench.files.walk()) == [
        ".env", ".gitignore", "README.md", "run.sh", "src/greeter.py", "src/main.py", "sub/c",
    ]  # fmt: skip
    assert list(bench.files.walk("sub")) == ["sub/c"]
    assert list(bench.files.walk("nowhere")) == []
    with pytest.raises(NotAFile):
        bench.files.walk("run.sh")
    with pytest.raises(PathRefused):
        bench.files.walk("..")


def test_an_absolute_path_is_understood_when_it_lies_in_the_workspace(stand: Stand):
    bench = stand.bench()
    bench.files.write(f"{stand.workspace}/src/main.py", b"x")
    assert bench.files.read("src/main.py") == b"x"


@pytest.mark.attack("A01", "A02", "A03", "A10")
@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt", "src/../../outside.txt", "src/..", "..", ".", "", "./", "/", "src//main.py",
        "/etc/cron.d/x", "~/.bashrc", "~root/x", "file:///etc/passwd", "http://x/y", "x/./y",
        "{workspace}-evil/x", "{workspace}", "{workspace}/../outside.txt",
        "nul\0byte", "new\nline", "a" * 5000, "b" * 256, "\udcff\udcfe", "\x1b[2K",
    ],
)  # fmt: skip
def test_a_path_that_is_not_plainly_inside_is_refused(stand: Stand, path: str, tmp_path: Path):
    evil = tmp_path / "workspace-evil"
    evil.mkdir()
    bench = stand.bench()
    before = snapshot(tmp_path)
    path = path.format(workspace=stand.workspace)
    for attempt in (
        lambda: bench.files.write(path, b"evil"),
        lambda: bench.files.read(path),
        lambda: bench.files.delete(path),
        lambda: bench.files.exists(path),
    ):
        with pytest.raises(PathRefused):
            attempt()
    assert snapshot(tmp_path) == before


@pytest.mark.attack("A04", "A05", "A06")
def test_no_link_is_followed_out_of_the_workspace_or_inside_it(stand: Stand, tmp_path: Path):
    outside = lay(tmp_path / "outside", {"target.txt": b"target"})
    (stand.workspace / "notes").symlink_to(outside / "target.txt")
    (stand.workspace / "build").symlink_to(outside)
    (stand.workspace / "shadow").symlink_to("/etc/shadow")
    bench = stand.bench()
    shell(bench, f"ln -s {outside} made; ln -s src inner; ln -s {outside}/target.txt made.txt")
    for path in ("notes", "build/new", "build/target.txt", "shadow", "made/new", "made.txt", "inner/main.py", "latest"):
        for attempt in (
            lambda: bench.files.write(path, b"evil"),  # noqa: B023
            lambda: bench.files.read(path),  # noqa: B023
            lambda: bench.files.delete(path),  # noqa: B023
        ):
            with pytest.raises(PathRefused):
                attempt()
    assert snapshot(outside) == {b"target.txt": ("file", 0o644, b"target")}


@contextmanager
def swapping(first: Path, second: Path) -> Iterator[None]:
    """Another process that exchanges two names as fast as it can."""
    code = (
        "import ctypes, sys\n"
        "exchange = ctypes.CDLL(None).renameat2\n"
        "first, second = (word.encode() for word in sys.argv[1:])\n"
        "print('ready', flush=True)\n"
        "while True: exchange(-100, first, -100, second, 2)"
    )
    attacker = subprocess.Popen([sys.executable, "-c", code, first, second], stdout=subprocess.PIPE)
    try:
        assert attacker.stdout.readline() == b"ready\n"
        yield
    finally:
        attacker.kill()
        attacker.wait()
        attacker.stdout.close()


def write_against_swaps(stand: Stand, outside: Path, count: int) -> tuple[int, int]:
    """How many writes came through and how many were refused, while a folder and a link outwards change places."""
    outside.mkdir()
    (stand.workspace / "dir").mkdir()
    (stand.workspace / "link").symlink_to(outside)
    bench = stand.bench()
    shell(bench, f"mkdir made; ln -s {outside} out")
    ground = bench.folder / ("upper" if (bench.folder / "upper").exists() else "copy")
    written = refused = 0
    with swapping(stand.workspace / "dir", stand.workspace / "link"), swapping(ground / "made", ground / "out"):
        for number in range(count):
            try:
                bench.files.write(f"{'dir' if number % 2 else 'made'}/{number}", b"x")
                written += 1
            except PawlError:
                refused += 1
    return written, refused


@pytest.mark.attack("A07")
def test_no_write_lands_outside_while_a_folder_and_a_link_change_places(stand: Stand, tmp_path: Path):
    written, refused = write_against_swaps(stand, tmp_path / "outside", 2000)
    assert os.listdir(tmp_path / "outside") == []
    assert written and refused


@pytest.mark.slow
@pytest.mark.attack("A07")
def test_none_of_20000_writes_lands_outside_while_a_folder_and_a_link_change_places(stand: Stand, tmp_path: Path):
    written, refused = write_against_swaps(stand, tmp_path / "outside", 20_000)
    assert os.listdir(tmp_path / "outside") == []
    assert written and refused


@pytest.mark.attack("A08")
def test_a_file_with_a_second_name_outside_is_changed_only_on_the_bench(stand: Stand, tmp_path: Path):
    outside = tmp_path / "outside.txt"
    outside.write_text("kept")
    os.link(outside, stand.workspace / "inside.txt")
    bench = stand.bench()
    bench.files.write("inside.txt", b"changed")
    bench.files.write("inside.txt", b"changed again")
    shell(bench, "echo more >> inside.txt")
    assert outside.read_text() == "kept"
    assert bench.files.read("inside.txt") == b"changed againmore\n"


@pytest.mark.attack("A09")
def test_a_fifo_a_socket_or_a_device_is_an_error_at_once(overlay_stand: Stand):
    os.mkfifo(overlay_stand.workspace / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(overlay_stand.workspace / "sock"))
    server.close()
    names = ["pipe", "sock"]
    if os.geteuid() == 0:
        os.mknod(overlay_stand.workspace / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        names.append("zero")
    bench = overlay_stand.bench()
    shell(bench, "mkfifo made")
    for name in (*names, "made"):
        for attempt in (
            lambda: bench.files.read(name),  # noqa: B023
            lambda: bench.files.write(name, b"x"),  # noqa: B023
            lambda: bench.files.delete(name),  # noqa: B023
        ):
            with pytest.raises(NotAFile):
                attempt()
    assert list(bench.files.walk()) == ["README.md", "logo.bin", "run.sh", "src/greeter.py", "src/main.py"]


def test_a_special_file_of_the_workspace_is_not_copied_and_not_missed(stand: Stand):
    os.mkfifo(stand.workspace / "pipe")
    bench = stand.bench()
    shell(bench, "echo x > x")
    assert bench.capture().changes.paths == {"x"}
    assert bench.capture().held == ()


@pytest.mark.attack("A11")
@pytest.mark.parametrize("path", ["a/../../x", "../x", "/x", "a//x", ".git/hooks/pre-commit", "sub/.GIT/config"])
def test_a_change_set_with_one_path_outside_changes_nothing(stand: Stand, path: str, tmp_path: Path):
    blobs = MemoryBlobs([b"x"])
    bench = stand.bench()
    before = snapshot(tmp_path)
    changes = ChangeSet.of(
        [Change("one", None, file(b"x")), Change("two", None, file(b"x")), Change(path, None, file(b"x"))]
    )
    with pytest.raises((PathRefused, ProtectedRefused)):
        bench.apply(changes, blobs)
    assert bench.capture() == Capture()
    assert snapshot(tmp_path) == before


@pytest.mark.attack("A12")
def test_git_is_out_of_reach_and_what_configures_or_executes_is_held_back(stand: Stand):
    subprocess.run(["git", "init", "-q", stand.workspace], check=True)
    before = snapshot(stand.workspace)
    bench = stand.bench()
    for path in (".git/hooks/pre-commit", ".git/config", ".GIT/config", "sub/.git/config", ".git", "git~1/config"):
        with pytest.raises(PathRefused):
            bench.files.write(path, b"evil")
    for path in (".vscode/tasks.json", ".mcp.json", "AGENTS.md", ".pawl/config.toml"):
        bench.files.write(path, b"evil")
    captured = bench.capture()
    assert captured.changes == ChangeSet()
    assert {held.reason for held in captured.held} == {HeldReason.PROTECTED}
    assert snapshot(stand.workspace) == before


@pytest.mark.spec("A15", "B13")
def test_secrets_are_neither_read_nor_written_nor_deleted(stand: Stand):
    (stand.workspace / ".env").write_text("KEY=canary")
    bench = stand.bench()
    for path in (".env", "keys/server.pem", "deploy/.env.production", "id_rsa"):
        for attempt in (
            lambda: bench.files.read(path),  # noqa: B023
            lambda: bench.files.write(path, b"x"),  # noqa: B023
            lambda: bench.files.delete(path),  # noqa: B023
        ):
            with pytest.raises(SecretRefused) as caught:
                attempt()
            assert "canary" not in str(caught.value)
    assert bench.files.exists(".env")
    bench.files.write(".env.example", b"KEY=\n")
    assert bench.capture().changes.paths == {".env.example"}


@pytest.mark.spec("A15")
def test_a_file_over_the_preset_limit_is_refused(stand: Stand):
    limit = stand.guardrails.file_bytes
    (stand.workspace / "large").write_bytes(b"x" * (limit + 1))
    (stand.workspace / "fits").write_bytes(b"x" * limit)
    bench = stand.bench()
    with pytest.raises(TooLarge):
        bench.files.read("large")
    with pytest.raises(TooLarge):
        bench.files.write("new", b"x" * (limit + 1))
    assert len(bench.files.read("fits")) == limit
    assert not bench.files.exists("new")


@pytest.mark.spec("A5")
def test_a_full_disk_leaves_the_file_as_it_was(stand: Stand):
    bench = stand.bench()
    bench.files.write("README.md", b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(DiskFull):
            bench.files.write("README.md", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert bench.files.read("README.md") == b"before"
    assert os.listdir(bench.folder / "staging") == []


@pytest.mark.parametrize("path", ["README.md/x", "run.sh/a/b"])
def test_a_file_is_no_folder(stand: Stand, path: str):
    bench = stand.bench()
    with pytest.raises((NotAFile, NotFound)):
        bench.files.read(path)
    with pytest.raises(NotAFile):
        bench.files.write(path, b"x")
    with pytest.raises(NotAFile):
        bench.files.write("src", b"x")
    with pytest.raises(NotAFile):
        bench.files.delete("src")


def test_a_change_set_that_starts_from_something_else_is_a_conflict_and_changes_nothing(stand: Stand):
    blobs = MemoryBlobs([b"x"])
    bench = stand.bench()
    bench.files.write("README.md", b"other")
    changes = ChangeSet.of([Change("README.md", file(b"what it was"), file(b"x")), Change("new", None, file(b"x"))])
    with pytest.raises(Conflicted) as caught:
        bench.apply(changes, blobs)
    assert caught.value.conflicts == ("README.md",)
    assert not bench.files.exists("new")
    assert bench.files.read("README.md") == b"other"


def test_applying_what_is_already_so_changes_nothing(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo x > x; mkdir d; chmod 700 d; rm -r src; ln -sf run.sh latest")
    captured = bench.capture()
    bench.apply(captured.changes, stand.blobs)
    assert bench.capture() == captured


def test_the_kernel_takes_what_was_written_into_the_layer_for_its_own(overlay_stand: Stand):
    """Edits and commands alternate on the same paths, and each sees what the other did."""
    bench = overlay_stand.bench()
    bench.files.delete("src/main.py")
    shell(bench, "test ! -e src/main.py && rm src/greeter.py && rmdir src")
    bench.files.write("src/main.py", b"1")
    shell(bench, "test $(cat src/main.py) = 1 && test $(ls src) = main.py && echo 2 > src/two && rm src/main.py")
    assert list(bench.files.walk("src")) == ["src/two"]
    bench.files.write("src/two", b"3")
    shell(bench, "test $(cat src/two) = 3 && mv src moved && mkdir src")
    assert list(bench.files.walk("moved")) == ["moved/two"]
    assert bench.capture().changes.paths == {"src/main.py", "src/greeter.py", "moved", "moved/two"}


def test_a_held_back_link_of_a_command_is_not_written_through(stand: Stand, tmp_path: Path):
    outside = lay(tmp_path / "outside", {"x": b"kept"})
    bench = stand.bench()
    shell(bench, f"rm README.md; ln -s {outside}/x README.md; rm -r src; ln -s {outside} src")
    for path in ("README.md", "src/x", "src/new"):
        with pytest.raises(PathRefused):
            bench.files.write(path, b"evil")
    assert snapshot(outside) == {b"x": ("file", 0o644, b"kept")}
    captured = bench.capture()
    assert HeldBack("src", HeldReason.LEAVES_TREE, captured.held[1].change) in captured.held


def test_exchanging_names_is_something_this_machine_can_do():
    """Without it the race tests would prove nothing."""
    assert hasattr(ctypes.CDLL(None), "renameat2")
