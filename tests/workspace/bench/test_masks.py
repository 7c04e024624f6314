"""What a bench does not show: the same from its first command to its last, whatever the commands and the user do."""

from __future__ import annotations

import os

import pytest
from git_traps import git
from workspace.bench.stand import Stand, shell
from world import lay

from pawl.core.execution import Secrets
from pawl.settings.files import Tree
from pawl.workspace.capture import Capture, HeldBack, HeldReason
from pawl.workspace.masks import HiddenSearch


@pytest.mark.spec("A15", "F4")
@pytest.mark.attack("A26")
def test_what_a_command_made_does_not_use_up_the_hiding(stand: Stand):
    lay(stand.workspace, {"z/.env": b"canary", "notes": b"1"})
    bench = stand.bench()
    shell(bench, "for i in $(seq 300); do touch $i.pem; done; seq 6000 | xargs touch; mkdir -p a/b; touch a/b/.env")
    assert shell(bench, "cat z/.env a/b/.env *.pem").stdout.text == ""


@pytest.mark.attack("A26")
def test_a_secret_that_the_user_puts_there_is_hidden_from_the_next_command(overlay_stand: Stand):
    workspace = overlay_stand.workspace
    lay(workspace, {"conf/plain": b"1", "later/x": b"1"})
    bench = overlay_stand.bench()
    shell(bench, "test -e conf/plain; echo 2 > conf/more")
    lay(workspace, {"conf/.env": b"canary", "fresh/deep/.env": b"canary"})
    (workspace / "later/x").rename(workspace / "later/x.key")
    assert shell(bench, "cat conf/.env fresh/deep/.env later/x.key").stdout.text == ""
    (workspace / "conf/.env").rename(workspace / "conf/.env.example")
    assert shell(bench, "cat conf/.env.example; test ! -e conf/.env").stdout.text == "canary"
    assert bench.capture().changes.paths == {"conf/more"}


@pytest.mark.attack("A26")
def test_what_a_command_stages_on_its_bench_is_tracked_by_nobody(stand: Stand):
    """A tracked file with harmless values is shown; the index that says so is the workspace's, not the bench's."""
    lay(stand.workspace, {".gitignore": b".env\n*.log\n", "a": b"1", "kept.log": b"1"})
    git(stand.workspace, "init", "-q")
    git(stand.workspace, "add", "-A")
    lay(stand.workspace, {".env": b"note=canary\n"})
    bench = stand.bench()
    staged = shell(bench, "echo 2 > new.log; git add -f .env *.log && git ls-files", writable_git=True)
    assert ".env" in staged.stdout.text.split()
    lay(stand.workspace, {"x.pem": b"canary"})  # what is harmless is asked about again
    assert shell(bench, "cat .env").stdout.text == ""
    assert bench.capture().changes.paths == frozenset()


@pytest.mark.attack("A26")
def test_a_folder_whose_time_is_set_back_is_looked_at_again(overlay_stand: Stand):
    folder = overlay_stand.workspace / "conf"
    lay(folder, {"plain": b"1"})
    with Tree(overlay_stand.workspace) as tree:
        search = HiddenSearch(tree, overlay_stand.guardrails)
        assert search.masks().secrets == frozenset()
        for name in (".env", "x.pem"):
            before = folder.stat()
            lay(folder, {name: b"canary"})
            os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert f"conf/{name}" in search.masks().secrets


@pytest.mark.spec("F4")
def test_a_hidden_secret_is_no_change_and_one_that_was_written_is_held_back(stand: Stand):
    lay(stand.workspace, {"conf/.env": b"canary", "conf/x": b"1", "src/.npmrc": b"canary"})
    (stand.workspace / "conf").chmod(0o2750)
    bench = stand.bench()
    shell(bench, "cat conf/.env src/.npmrc; echo 2 > conf/x; stat -c %a conf > mode")
    captured = bench.capture()
    assert (captured.changes.paths, captured.held) == ({"conf/x", "mode"}, ())
    assert bench.files.read("mode") == b"2750\n"
    shell(bench, "chmod u+w conf/.env; echo mine > conf/.env; mv src/.npmrc src/plain")
    assert bench.capture().held == (HeldBack("conf/.env", HeldReason.SECRET), HeldBack("src/.npmrc", HeldReason.SECRET))
    assert bench.files.read("src/plain") == b""


def test_secrets_that_are_shown_are_whole_and_special_files_are_not_shown_even_then(stand: Stand):
    lay(stand.workspace, {"conf/.env": b"canary"})
    os.mkfifo(stand.workspace / "conf/pipe")
    bench = stand.bench()
    assert shell(bench, "cat conf/.env; ls conf", secrets=Secrets.SHOWN).stdout.text == "canary"
    assert shell(bench, "cat conf/.env; ls conf").stdout.text == ""
    assert bench.capture() == Capture()


def test_benches_side_by_side_hide_the_same(stand: Stand):
    lay(stand.workspace, {"conf/.env": b"canary"})
    benches = [stand.bench() for _ in range(3)]
    shell(benches[0], "rm -rf conf")
    assert [shell(bench, "cat conf/.env").stdout.text for bench in benches[1:]] == ["", ""]


def test_a_bench_that_becomes_a_copy_goes_on_hiding(overlay_stand: Stand):
    lay(overlay_stand.workspace, {"conf/.env": b"canary", "deep/er/x.key": b"canary"})
    bench = overlay_stand.bench()
    shell(bench, "echo 1 > conf/new")
    overlay_stand.sandbox.overlay = False
    assert shell(bench, "cat conf/.env deep/er/x.key conf/new").stdout.text == "1\n"
    assert bench.capture().changes.paths == {"conf/new"}


@pytest.mark.attack("A26")
def test_links_to_folders_above_them_have_few_names_and_many_are_one_that_only_the_user_may_change(
    overlay_stand: Stand,
):
    workspace = overlay_stand.workspace
    lay(workspace, {"src/a.py": b"1"})
    for name in ("here", "there"):
        (workspace / name).symlink_to(".")
    with Tree(workspace) as tree:
        search = HiddenSearch(tree, overlay_stand.guardrails)
        search.masks()
        names = list(search.other_names("src/a.py"))
        assert {"here/src/a.py", "there/src/a.py", "here/there/src/a.py"} <= {*names} and len(names) < 10
        for number in range(9):
            (workspace / f"more{number}").symlink_to(".")
        search.masks()
        names = list(search.other_names("src/a.py"))
        assert names[-1] == ".git/src/a.py" and len(names) < 1000
