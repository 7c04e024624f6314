"""From the making of a bench to its removal, whatever happened on it and to its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from workspace.bench.stand import GUARDRAILS, Stand, shell
from workspace.bench.unshared import UnsharedSandbox
from world import lay, snapshot

from pawl.core.change import Change, ChangeSet, Node, blob_digest
from pawl.core.errors import ConfigError, OverlayUnavailable, SandboxUnavailable, TooLarge, UsageError
from pawl.core.execution import Execution, Secrets
from pawl.workspace.bench import Bench, BenchKind, BenchSettings, sweep
from pawl.workspace.capture import DEEPEST, Capture, HeldBack, HeldReason
from pawl.workspace.paths import empty
from pawl.workspace.surface import tick

MAKE = """
import sys
from pathlib import Path
from pawl.settings.guardrails import preset
from pawl.workspace.bench import Bench
bench = Bench.create(Path(sys.argv[1]), Path(sys.argv[2]), None, None, preset("standard"))
bench.files.write("x", b"x")
print(bench.id, flush=True)
sys.stdin.read()
"""


def test_a_bench_is_private(stand: Stand):
    bench = stand.bench()
    assert bench.folder.parent == stand.place
    assert bench.folder.name == bench.id
    assert bench.folder.stat().st_mode & 0o777 == 0o700


def test_a_discarded_bench_leaves_nothing_and_takes_no_more_work(stand: Stand):
    before = snapshot(stand.workspace)
    bench = stand.bench()
    shell(bench, "echo x > x; mkdir -p a/b; echo x > a/b/c; chmod 000 a/b a; mkdir r; touch r/f; chmod 555 r; mkfifo p")
    shell(bench, "d=d; for i in $(seq 200); do mkdir $d && cd $d; done; touch bottom")
    bench.discard()
    bench.discard()
    assert list(stand.place.iterdir()) == []
    assert snapshot(stand.workspace) == before
    for attempt in (bench.capture, lambda: shell(bench, "true"), lambda: bench.files.read("README.md")):
        with pytest.raises(UsageError):
            attempt()


def test_a_bench_in_a_with_block_ends_with_it(stand: Stand):
    with stand.bench() as bench:
        shell(bench, "echo x > x")
        assert list(stand.place.iterdir()) == [bench.folder]
    assert list(stand.place.iterdir()) == []


def test_a_tree_deeper_than_python_recurses_is_emptied():
    """In memory where that is possible, because a disk takes its time for every folder."""
    top = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        inner = os.dup(fd)
        for number in range(1500):
            os.mkdir(f"level{number}", 0o700, dir_fd=inner)
            below = os.open(f"level{number}", os.O_RDONLY | os.O_DIRECTORY, dir_fd=inner)
            os.fchmod(inner, 0o500)
            os.close(inner)
            inner = below
        os.close(inner)
        os.fchmod(fd, 0o700)
        empty(fd)
        assert os.listdir(fd) == []
    finally:
        os.close(fd)
    top.rmdir()


def test_after_a_tick_every_write_is_later_than_the_given_time(tmp_path: Path):
    given = time.time_ns() + 20_000_000
    tick(tmp_path, given, seconds=30)
    (tmp_path / "x").touch()
    assert (tmp_path / "x").stat().st_ctime_ns > given
    tick(tmp_path, 2**62, seconds=0.01)
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.slow
def test_what_is_absurdly_deep_is_held_back(stand: Stand):
    bench = stand.bench()
    lines = ("import os", "for number in range(700):", " os.mkdir('d')", " os.chdir('d')")
    deep = "\n".join((*lines, f" if number in ({DEEPEST - 2}, 699): open('file', 'w').close()"))
    assert bench.run(Execution(argv=("python3", "-c", deep))).ok
    captured = bench.capture()
    assert captured.held == (HeldBack("/".join("d" * (DEEPEST + 1)), HeldReason.TOO_DEEP),)
    # The folders down to the file that is not too deep, and that file; folders with nothing in them are no change.
    assert len(captured.changes) == DEEPEST


def test_the_bench_of_a_killed_process_is_swept_and_that_of_a_living_one_is_not(stand: Stand):
    mine = stand.bench()
    words = [sys.executable, "-c", MAKE, str(stand.workspace), str(stand.place)]
    owner = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    theirs = owner.stdout.readline().decode().strip()
    assert sweep(stand.place) == 0
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    assert (stand.place / theirs / "upper/x").exists()
    assert sweep(stand.place) == 1
    assert [path.name for path in stand.place.iterdir()] == [mine.id]
    assert mine.files.exists("README.md")


def test_a_folder_without_a_lock_is_left_while_it_is_young(stand: Stand):
    young, old = stand.place / "young", stand.place / "old"
    for folder in (young, old):
        lay(folder, {"upper/x": b"x", "lock.new": b""})
    os.utime(old, (0, 0))
    assert sweep(stand.place) == 1
    assert young.exists() and not old.exists()
    assert sweep(stand.place / "nowhere") == 0


@pytest.mark.spec("F2")
def test_a_bench_becomes_a_copy_with_the_same_content_where_no_overlay_can_be_mounted(overlay_stand: Stand):
    overlay_stand.sandbox = UnsharedSandbox(overlay=False)
    lay(overlay_stand.workspace, {"gone/a": b"", "gone/b/c": b"", "kept": b"kept", "kind/x": b"x"})
    bench = overlay_stand.bench()
    bench.files.write("README.md", b"edited")
    bench.files.write("new/file", b"new")
    bench.files.delete("gone/a")
    bench.files.delete("gone/b/c")
    bench.apply(
        ChangeSet.of([Change("kind/x", Node.file(blob_digest(b"x")), None), Change("kind", Node.directory(), None)]),
        overlay_stand.blobs,
    )
    bench.apply(ChangeSet((Change("kind", None, Node.directory(0o700)),)), overlay_stand.blobs)
    captured = bench.capture()
    done = bench.run(Execution(argv=("sh", "-c", "cat README.md new/file kept; ls -d gone kind/*; pwd")))
    assert done.stdout.text == f"editednewkeptgone\n{overlay_stand.workspace}\n"
    assert len(done.notices) == 1 and "copy" in done.notices[0]
    assert bench.capture() == captured
    assert shell(bench, "echo more >> kept").notices == ()
    assert bench.capture().changes.paths == captured.changes.paths | {"kept"}
    assert [path.name for path in overlay_stand.place.iterdir()] == [bench.folder.name]


def test_asking_git_makes_a_copy_too_where_no_overlay_can_be_mounted(overlay_stand: Stand):
    subprocess.run(["git", "init", "-q", overlay_stand.workspace], check=True)
    (overlay_stand.workspace / "a.log").write_text("1")
    subprocess.run(["git", "-C", overlay_stand.workspace, "add", "a.log"], check=True)
    (overlay_stand.workspace / ".gitignore").write_text("*.log\n")
    overlay_stand.sandbox = UnsharedSandbox(overlay=False)
    bench = overlay_stand.bench()
    bench.files.write("a.log", b"2")
    assert bench.capture().changes.paths == {"a.log"}
    assert len(bench.notices) == 1


def test_a_place_that_cannot_hold_a_layer_is_passed_over(workspace: Path, tmp_path: Path):
    """The kernel does not put one overlay's upper layer onto another, which is what a place in a container may be."""
    for name in ("lower", "upper", "work", "overlay", "second"):
        (tmp_path / name).mkdir(mode=0o700)
    code = (
        "import sys, tempfile\n"
        "from pathlib import Path\n"
        "from pawl.settings.guardrails import preset\n"
        "from pawl.store import Store\n"
        "from pawl.workspace.bench import Bench, BenchSettings\n"
        "blobs = Store.open(Path(tempfile.mkdtemp())).blobs\n"
        "workspace, place, second = map(Path, sys.argv[1:])\n"
        "for settings in (BenchSettings(second_place=second), BenchSettings()):\n"
        "    with Bench.create(workspace, place, None, blobs, preset('standard'), settings) as bench:\n"
        "        bench.files.write('x', b'x')\n"
        "        print(bench.folder.parent.parent.name, type(bench.view).__name__, *bench.capture().changes.paths)"
    )
    mount = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr overlay"
    words = [
        sys.executable,
        "-c",
        code,
        str(workspace),
        str(tmp_path / "overlay/place"),
        str(tmp_path / "second/place"),
    ]
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", f'{mount} && exec "$@"', "sh", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("second OverlayView x\noverlay CopyView x\n", "")


def test_a_place_that_others_can_write_is_not_used(stand: Stand, tmp_path: Path):
    stand.place.mkdir(mode=0o777)
    stand.place.chmod(0o777)
    with pytest.raises(ConfigError):
        stand.bench()
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    stand.place = linked
    with pytest.raises(ConfigError):
        stand.bench()
    bench = stand.bench(ground=BenchKind.OVERLAY, second_place=tmp_path / "second")
    assert bench.folder.parent == tmp_path / "second"


@pytest.mark.parametrize("place", ["", "inside", "src/deep"])
def test_a_bench_is_not_kept_inside_its_workspace(stand: Stand, place: str):
    before = snapshot(stand.workspace)
    with pytest.raises(ConfigError):
        Bench.create(stand.workspace, stand.workspace / place, stand.sandbox, stand.blobs, GUARDRAILS)
    assert snapshot(stand.workspace) == before


def test_a_workspace_too_large_to_copy_is_not_copied(stand: Stand, tmp_path: Path):
    (stand.workspace / "big").write_bytes(b"x" * 5000)
    with pytest.raises(TooLarge):
        stand.bench(ground=BenchKind.COPY, largest_copy=4000)
    assert list(stand.place.iterdir()) == []


def test_a_copy_keeps_holes_modes_links_and_times(stand: Stand):
    sparse = stand.workspace / "sparse"
    with sparse.open("wb") as opened:
        opened.truncate(50 << 20)
        opened.seek(20 << 20)
        opened.write(b"middle")
    os.utime(stand.workspace / "run.sh", ns=(10**18, 10**18))
    (stand.workspace / "src").chmod(0o750)
    bench = stand.bench(ground=BenchKind.COPY, largest_copy=1 << 20)
    copy = bench.folder / "copy"
    assert snapshot(copy) == snapshot(stand.workspace)
    assert (copy / "sparse").stat().st_blocks < 1000
    assert (copy / "run.sh").stat().st_mtime_ns == 10**18


@pytest.mark.spec("A15", "F4")
def test_secrets_in_reach_are_empty_for_a_command_unless_they_are_shown(stand: Stand):
    lay(
        stand.workspace,
        {
            ".env": b"KEY=1\n",
            "config/.env": b"KEY=2\n",
            "a/b/server.pem": b"KEY=3\n",
            ".env.example": b"KEY=\n",
            "node_modules/p/x.pem": b"K\n",
            ".gitignore": b"node_modules\n",
        },
    )
    bench = stand.bench()
    read = "cat .env config/.env a/b/server.pem .env.example node_modules/p/x.pem"
    for _ in range(2):
        assert shell(bench, read).stdout.text == "KEY=\nK\n"
        assert shell(bench, read, secrets=Secrets.SHOWN).stdout.text == "KEY=1\nKEY=2\nKEY=3\nKEY=\nK\n"
        assert bench.capture() == Capture()


def test_a_key_that_a_command_made_is_there_for_the_next_and_held_back(stand: Stand):
    bench = stand.bench()
    shell(bench, "echo KEY=1 > .env")
    assert shell(bench, "cat .env").stdout.text == "KEY=1\n"
    assert bench.capture().held == (HeldBack(".env", HeldReason.SECRET),)


def test_an_edit_waits_for_the_command_that_is_running(stand: Stand):
    started, go = threading.Event(), threading.Event()

    class Slow(UnsharedSandbox):
        def run(self, view, execution, *, on_output=None, cancel=None):
            started.set()
            assert go.wait(30)
            return super().run(view, execution, on_output=on_output, cancel=cancel)

    stand.sandbox = Slow()
    bench = stand.bench()
    order: list[str] = []

    def command() -> None:
        shell(bench, "cat README.md > seen")
        order.append("command")

    def edit() -> None:
        assert started.wait(30)
        bench.files.write("README.md", b"edited")
        order.append("edit")

    threads = [threading.Thread(target=work) for work in (command, edit)]
    for thread in threads:
        thread.start()
    assert started.wait(30)
    assert order == []
    go.set()
    for thread in threads:
        thread.join()
    assert order == ["command", "edit"]
    assert bench.files.read("seen") == (stand.workspace / "README.md").read_bytes()


def test_a_sandbox_that_confines_nothing_is_never_replaced_by_something_weaker(stand: Stand):
    class Unavailable(UnsharedSandbox):
        def run(self, view, execution, *, on_output=None, cancel=None):
            raise SandboxUnavailable("nothing confines a command here")

    stand.sandbox = Unavailable()
    bench = stand.bench()
    with pytest.raises(SandboxUnavailable):
        bench.run(Execution(argv=("touch", "x")))
    assert not bench.files.exists("x")


def test_a_copy_whose_sandbox_still_asks_for_an_overlay_fails_as_such(stand: Stand):
    class Confused(UnsharedSandbox):
        def run(self, view, execution, *, on_output=None, cancel=None):
            raise OverlayUnavailable("no overlay")

    stand.sandbox = Confused()
    with pytest.raises(OverlayUnavailable):
        stand.bench().run(Execution(argv=("true",)))


def test_settings_have_defaults_that_need_no_second_place():
    assert BenchSettings() == BenchSettings(second_place=None, global_ignore=None, ground=BenchKind.OVERLAY)


def test_the_users_own_ignore_file_counts(stand: Stand, tmp_path: Path):
    (tmp_path / "ignore").write_text("*.mine\n")
    bench = stand.bench(global_ignore=tmp_path / "ignore")
    shell(bench, "echo x > a.mine; echo x > b")
    captured = bench.capture()
    assert (captured.changes.paths, captured.ignored) == ({"b"}, ("a.mine",))
