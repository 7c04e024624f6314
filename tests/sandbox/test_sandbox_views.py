"""How the workspace and what is around it look from inside."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sandbox.site import PYTHON, Site

pytestmark = pytest.mark.spec("F4")

ODD_NAMES = (
    "plain",
    "a,b:c",
    "back\\slash",
    "sp ace\t\"quote'",
    "new\nline",
    "ünï",
    "dollar$(x)`y`;&",
    "-dash",
    "byte\udcff",
)


def test_a_workspace_may_have_any_name(user):
    with user.folder() as folder:
        sites = [Site(user, folder / name) for name in ODD_NAMES]
        orders = [site.order("sh", "-c", "cat kept.txt; echo new > new.txt; rm kept.txt") for site in sites]
        answers = sites[0].run_all(*orders)
        assert [(answer["code"], answer["stdout"]["text"]) for answer in answers] == [(0, "kept\n")] * len(sites)
        for site in sites:
            assert (site.upper / "new.txt").read_text() == "new\n"
            assert os.listdir(site.workspace) == ["kept.txt"]


@pytest.mark.parametrize("view", ["overlay", "copy"])
def test_the_workspace_stands_at_its_own_path_and_stays_as_it_was(site, view):
    site.view_kind = view
    answer = site.shell(f"pwd; cat {site.workspace}/kept.txt; echo changed > kept.txt; cat kept.txt")
    assert answer["stdout"]["text"] == f"{site.workspace}\nkept\nchanged\n"
    assert (site.workspace / "kept.txt").read_text() == "kept\n"
    assert (site.upper / "kept.txt").read_text() == "changed\n"


def test_a_second_command_sees_what_the_first_one_did(site):
    site.shell("rm kept.txt; mkdir made; echo x > made/file")
    assert site.shell("ls")["stdout"]["text"] == "made\n"
    assert site.shell("cat file", directory="made")["stdout"]["text"] == "x\n"


def test_files_belong_to_the_person_inside_and_outside(site):
    answer = site.shell("id -u; id -g; touch mine; stat -c %u mine")
    assert answer["stdout"]["text"].split() == [str(site.user.uid), str(site.user.gid), str(site.user.uid)]
    assert (site.upper / "mine").stat().st_uid == site.user.uid


def test_the_environment_is_clean_and_the_executions_own_is_added(any_site):
    answer = any_site.run("env", env={"LEAK": "1"}, environment={"ADDED": "yes", "CI": "2"})
    seen = dict(line.partition("=")[::2] for line in answer["stdout"]["text"].splitlines())
    assert seen.pop("PWD") == str(any_site.workspace if any_site.kind == "namespaces" else any_site.upper)
    assert seen.pop("XDG_CACHE_HOME") == f"{seen['TMPDIR']}/cache"
    home = seen.pop("HOME"), seen.pop("TMPDIR")
    assert any_site.kind == "landlock" or home == ("/home/agent", "/tmp")
    assert seen == {
        "ADDED": "yes",
        "CI": "2",
        "NO_COLOR": "1",
        "PIP_RETRIES": "0",
        "npm_config_fetch_retries": "0",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def git(folder: Path, *words: str) -> None:
    settings = ("-c", "safe.directory=*", "-c", "user.name=Test", "-c", "user.email=test@example.invalid")
    subprocess.run(["git", *settings, "-C", str(folder), *words], check=True)


def test_git_can_read_the_history_and_not_write_it(site):
    git(site.workspace, "init", "-q")
    git(site.workspace, "add", ".")
    git(site.workspace, "commit", "-qm", "first")
    site.user.own(site.folder)
    answer = site.shell("git log --oneline; echo more >> kept.txt; git status --short")
    assert answer["stdout"]["text"].splitlines()[1:] == [" M kept.txt"]
    assert answer["stdout"]["text"].splitlines()[0].endswith("first")
    assert "Read-only" in site.shell("git add kept.txt")["stderr"]["text"]
    assert site.shell("git add kept.txt && git status --short", writable_git=True)["stdout"]["text"] == "M  kept.txt\n"


def make_worktree(site: Site) -> None:
    """The workspace becomes a linked worktree of a repository beside it."""
    main = site.folder / "main"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    (main / "kept.txt").write_text("kept\n")
    git(main, "add", ".")
    git(main, "commit", "-qm", "first")
    shutil.rmtree(site.workspace)
    git(main, "worktree", "add", "-q", str(site.workspace))
    site.user.own(site.folder)


def test_a_linked_worktree_finds_its_repository(any_site):
    make_worktree(any_site)
    answer = any_site.shell("git log --oneline && git status --short && touch ../main/.git/evil")
    assert answer["stdout"]["text"].strip().endswith("first")
    assert answer["code"] != 0


@pytest.mark.attack("A26")
def test_a_git_file_cannot_name_a_folder_that_does_not_know_the_workspace(site):
    secret = site.home / ".ssh"
    secret.mkdir()
    (secret / "id_ed25519").write_text("CANARY")
    (site.workspace / ".git").write_text(f"gitdir: {secret}\n")
    site.user.own(site.folder)
    assert site.shell(f"cat {secret}/id_ed25519")["code"] != 0


@pytest.mark.attack("A26")
def test_a_git_file_cannot_name_the_worktree_of_another_project(site):
    make_worktree(site)
    pointer = (site.workspace / ".git").read_text()
    hostile = Site(site.user, site.folder / "hostile")
    (hostile.workspace / ".git").write_text(pointer)
    site.user.own(site.folder)
    assert hostile.shell(f"cat {site.folder}/main/.git/HEAD")["code"] != 0


@pytest.mark.attack("A26")
def test_a_forged_worktree_cannot_name_a_common_folder_elsewhere(site):
    secret = site.home / ".ssh"
    secret.mkdir()
    (secret / "HEAD").write_text("ref: refs/heads/main\n")
    (secret / "id_ed25519").write_text("CANARY")
    forged = site.workspace / "forged"
    forged.mkdir()
    (forged / "gitdir").write_text(f"{site.workspace}/.git\n")
    (forged / "commondir").write_text(f"{secret}\n")
    (site.workspace / ".git").write_text("gitdir: forged\n")
    site.user.own(site.folder)
    assert site.shell(f"cat {secret}/id_ed25519")["code"] != 0


def test_toolchains_of_the_home_can_be_used_and_not_written(any_site):
    tool = any_site.home / ".cargo/bin/my-tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho from the toolchain\n")
    tool.chmod(0o755)
    (any_site.home / ".cargo/credentials.toml").write_text("CANARY")
    any_site.user.own(any_site.folder)
    any_site.path = f"relative:{any_site.home}/.cargo/bin:{any_site.home}/private:/usr/bin"
    answer = any_site.run("my-tool")
    assert answer["stdout"]["text"] == "from the toolchain\n"
    answer = any_site.shell(f"echo $PATH; cat ~/.cargo/bin/my-tool; touch {tool}; cat {any_site.home}/.cargo/cred*")
    assert answer["stdout"]["text"].splitlines()[0] == f"{any_site.home}/.cargo/bin:/usr/bin:/usr/local/bin:/bin"
    assert "from the toolchain" in answer["stdout"]["text"]
    assert "CANARY" not in answer["stdout"]["text"]
    assert answer["code"] != 0


def test_a_virtual_environment_of_the_workspace_works_unchanged(site):
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(site.workspace / ".venv")], check=True)
    site.user.own(site.folder)
    site.path = f"{site.workspace}/.venv/bin:/usr/bin:/bin"
    answer = site.run("python", "-c", "import sys; print(sys.prefix)")
    assert answer["stdout"]["text"] == f"{site.workspace}/.venv\n"


def test_temporary_files_and_shared_memory_work(site):
    code = "import multiprocessing, tempfile; multiprocessing.Lock(); tempfile.NamedTemporaryFile(); print('ok')"
    assert site.run(PYTHON, "-c", code)["stdout"]["text"] == "ok\n"
    assert site.shell("touch /var/tmp/x && ls /var/tmp/x")["stdout"]["text"] == "/var/tmp/x\n"


@pytest.mark.parametrize(
    ("directory", "error"),
    [("missing", "NotFound"), ("../outside", "PathRefused"), ("/etc", "PathRefused"), ("kept.txt", "NotAFile")],
)
def test_a_directory_that_is_none_is_refused(my_site, directory, error):
    assert my_site.shell("pwd", directory=directory)["error"] == error


def test_a_link_out_of_the_workspace_is_no_directory_to_start_in(my_site):
    (my_site.workspace / "out").symlink_to(my_site.outside)
    assert my_site.shell("pwd", directory="out")["error"] == "PathRefused"
