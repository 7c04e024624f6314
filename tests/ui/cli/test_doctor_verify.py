"""`pawl doctor --verify` finds nothing wrong where nothing is wrong, whatever happened before or happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nursery import PATIENCE
from ui.cli.console import PAWL, Pawl
from ui.cli.dev_site import DevSite
from ui.cli.projects import Project
from ui.cli.test_cli_do import FILES, FIX, Script, script
from users import NAMES, become

from pawl.store.store import Store

__all__ = ["script"]

pytestmark = [pytest.mark.spec("F2"), pytest.mark.timeout(180)]


@pytest.fixture(params=NAMES)
def site(request: pytest.FixtureRequest) -> Iterator[DevSite]:
    user = become(request.param)
    with user.folder() as root:
        made = DevSite(user, root)
        made.set_up()
        (made.workspace / "notes.txt").write_text("one\n")
        user.own(root)
        yield made


def is_sound(site: DevSite, *, benches: int = 0) -> None:
    told = site.told("doctor", "--verify")
    assert (told["ok"], told["problems"], told["benches"]) == (True, [], benches)


@pytest.mark.whole
def test_a_history_of_every_kind_is_sound_at_each_step(site: DevSite):
    is_sound(site)
    write = ("run", "--apply", "--", "sh", "-c")
    for words in (
        (*write, "echo two > notes.txt; echo new > new.txt; mkdir -p deep/er; echo x > deep/er/x"),
        (*write, "rm notes.txt; ln -s new.txt link; chmod +x new.txt"),
        ("run", "--", "sh", "-c", "echo kept back > later.txt"),
        ("undo",),
        ("redo",),
        ("checkpoint", "here"),
        (*write, "echo more > new.txt; rm link"),
        ("restore", "here"),
        ("promote", "3"),
        ("gc", "--days", "0", "--backups", "0"),
    ):
        code, out, err = site.pawl(*words)
        assert code == 0, (words, out, err)
        is_sound(site)
    (site.workspace / "new.txt").write_text("the user's own\n")
    (site.workspace / "deep/er/x").unlink()
    is_sound(site)
    assert "every stored content is intact" in site.pawl("doctor", "--verify")[1]


@pytest.mark.whole
def test_leftovers_of_another_user_are_no_problem_and_stay(site: DevSite):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    site.pawl("history")
    left = site.root / "state" / "benches" / "b0123456789ab"
    left.mkdir(parents=True)
    (left / "owner.json").write_text("{}")
    os.chown(left.parent, site.user.uid, site.user.gid)
    left.parent.chmod(0o700)
    for path in (left / "owner.json", left):
        os.chown(path, 12345, 12345)
    left.chmod(0o700)
    is_sound(site, benches=1)
    assert site.pawl("run", "--", "true")[0] == 0
    left.chmod(0o777)
    os.chown(left.parent, 12345, 12345)
    is_sound(site)
    assert site.pawl("gc")[0] == 0
    assert left.exists()


def test_a_workspace_that_cannot_be_written_is_no_problem():
    user = become("ordinary")
    with user.folder() as root:
        site = DevSite(user, root)
        site.set_up()
        site.workspace.chmod(0o555)
        is_sound(site)


def test_without_bubblewrap_the_state_is_as_sound(site: DevSite):
    without = ["unshare", "-rm", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', "/usr/bin/bwrap"]
    if subprocess.run(site.user.words([*without, "true"]), capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    code, out, err = site.pawl("doctor", "--verify", before=without)
    assert (code, err) == (0, "") and "every stored content is intact" in out


@pytest.mark.whole
def test_the_work_of_a_run_that_waits_is_counted(project: Project, script: Script, state_directory: Path):
    pawl = project(FILES)
    assert pawl("do", "fix", "the", "bug", "in", "after", "--model", script(FIX)).code == 4
    assert pawl.json("doctor", "--verify")["problems"] == []
    assert pawl("gc", "--days", "0", "--backups", "0").code == 0
    assert pawl.json("doctor", "--verify")["problems"] == []
    assert pawl("approve", "--yes").code == 0
    assert pawl("undo").code == 0
    assert pawl.json("doctor", "--verify")["problems"] == []
    # And what is wrong is still found.
    with Store.open(state_directory) as store:
        store._database.run("UPDATE blob SET refs = refs + 1 WHERE id = 1")
    told = pawl.json("doctor", "--verify", code=1)
    assert not told["ok"] and "references" in told["problems"][0]


def test_a_run_under_way_and_one_that_was_killed_are_no_problem(pawl: Pawl):
    script = "echo x > x; echo ready; exec sleep 4322"
    with pawl.started("run", "--apply", "--", "sh", "-c", script, until="ready") as process:
        assert pawl.json("doctor", "--verify")["problems"] == []
        process.send_signal(signal.SIGKILL)
    assert pawl.json("doctor", "--verify")["problems"] == []
    assert pawl("run", "--apply", "--", "sh", "-c", "echo y > y").code == 0
    assert (pawl.json("doctor", "--verify")["problems"], (pawl.workspace / "y").exists()) == ([], True)


BUSY = """
import sys
from pathlib import Path
from pawl.store import Store
with Store.open(Path(sys.argv[1])) as store:
    for round in range(int(sys.argv[2])):
        with store.blobs.batch():
            for number in range(200):
                store.blobs.put(f"{round} {number}".encode())
        store.collect(-10.0, vacuum=round % 10 == 0)
        print(round, flush=True)
"""


@pytest.mark.whole
def test_what_another_process_stores_and_drops_meanwhile_is_no_problem(state_directory: Path):
    words = [PAWL[0], "-c", BUSY, str(state_directory), "150"]
    with Store.open(state_directory) as store:
        store.blobs.put(b"first")
        busy = subprocess.Popen(words, stdout=subprocess.PIPE)
        busy.stdout.readline()
        looked = 0
        while busy.poll() is None:
            assert store.integrity() == []
            looked += 1
        assert (busy.wait(PATIENCE), looked > 3) == (0, True)
        busy.stdout.close()
