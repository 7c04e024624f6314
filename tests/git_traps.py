"""Repositories that try to make whoever asks git in them run a program, write a file, or wait for ever.

Each trap is set in a repository whose `a.txt` can be changed and committed. A program that is run leaves its name in
the folder `ran` beside the workspace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit"),
    *("post-index-change", "post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit"),
    *("pre-merge-commit", "pre-push", "pre-rebase", "prepare-commit-msg", "push-to-checkout", "reference-transaction"),
    *("sendemail-validate", "update", "post-update", "pre-receive", "post-receive", "proc-receive"),
)
PROGRAMS = """
[core]
    fsmonitor = {evil} fsmonitor
    hooksPath = {hooks}
    sshCommand = {evil} ssh
    gitProxy = {evil} proxy
    askPass = {evil} askpass
    pager = {evil} pager
    editor = {evil} editor
    alternateRefsCommand = {evil} alternate-refs
[filter "x"]
    clean = {evil} clean
    smudge = {evil} smudge
    process = {evil} process
    required = true
[diff]
    external = {evil} external
[diff "x"]
    textconv = {evil} textconv
    command = {evil} diff-command
[merge "x"]
    driver = {evil} merge-driver
[credential]
    helper = !{evil} credential
[gpg]
    program = {evil}
[gpg "ssh"]
    program = {evil}
[commit]
    gpgSign = true
[user]
    signingKey = x
[log]
    showSignature = true
[tag]
    gpgSign = true
[pager]
    log = {evil} pager-log
    diff = {evil} pager-diff
[interactive]
    diffFilter = {evil} diff-filter
[sequence]
    editor = {evil} sequence
[alias]
    log = !{evil} alias
    ls-files = !{evil} alias
    ls-tree = !{evil} alias
[trace2]
    eventTarget = {ran}/trace2-event
    normalTarget = {ran}/trace2-normal
    perfTarget = {ran}/trace2-perf
[url "ext::{evil} insteadOf %S "]
    insteadOf = https://
[remote "origin"]
    url = ext::{evil} remote %S
    uploadpack = {evil} uploadpack
    receivepack = {evil} receivepack
    vcs = ext
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[uploadpack]
    packObjectsHook = {evil} pack-objects
[branch "main"]
    remote = origin
    merge = refs/heads/main
"""
PROMISOR = """
[core]
    repositoryFormatVersion = 1
[extensions]
    partialClone = origin
[remote "origin"]
    promisor = true
    partialCloneFilter = blob:none
    url = {ran}/../elsewhere
    uploadpack = {evil} lazy-fetch
[protocol "file"]
    allow = always
"""


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Trapped:
    """A workspace with a repository, beside `evil` and the folder where it leaves its marks."""

    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "work"

    @property
    def folder(self) -> Path:
        return self.workspace / ".git"

    @property
    def evil(self) -> Path:
        return self.root / "evil"

    @property
    def marks(self) -> list[str]:
        return sorted(os.listdir(self.root / "ran"))

    @classmethod
    def made(cls, root: Path) -> Trapped:
        made = cls(root)
        made.workspace.mkdir()
        (root / "ran").mkdir(mode=0o777)
        (root / "ran").chmod(0o777)
        made.program(made.evil, '"${1:-gpg}"')
        git(made.workspace, "init", "-q", "-b", "main")
        git(made.workspace, "config", "user.name", "Kim")
        git(made.workspace, "config", "user.email", "kim@example.org")
        for name, text in {"a.txt": "one\n", "b.txt": "one\n", "sub/c.txt": "one\n", "kept.log": "1\n"}.items():
            (made.workspace / name).parent.mkdir(exist_ok=True)
            (made.workspace / name).write_text(text)
        git(made.workspace, "add", "-A")
        git(made.workspace, "commit", "-qm", "first")
        (made.workspace / ".gitignore").write_text("*.log\n")
        git(made.workspace, "add", "-A")
        git(made.workspace, "commit", "-qm", "second")
        return made

    def program(self, path: Path, name: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {self.root}/ran/{name}\nexit 1\n")
        path.chmod(0o755)

    def config(self, text: str, name: str = "config") -> None:
        with open(self.folder / name, "a") as file:
            file.write(text.format(evil=self.evil, hooks=self.root / "hooks", ran=self.root / "ran"))

    def drop(self, name: str) -> None:
        """Takes an object away, as a partial clone does."""
        (self.folder / "objects" / name[:2] / name[2:]).unlink()


def programs(it: Trapped) -> None:
    for name in HOOKS:
        it.program(it.root / "hooks" / name, f"path-{name}")
    it.config(PROGRAMS)
    (it.folder / "info/attributes").write_text("*.txt diff=x merge=x\n")


def hooks(it: Trapped) -> None:
    for name in HOOKS:
        it.program(it.folder / "hooks" / name, name)


def filters_in_info(it: Trapped) -> None:
    programs(it)
    (it.folder / "info/attributes").write_text("* filter=x diff=x\n")


def filters_in_tree(it: Trapped) -> None:
    programs(it)
    (it.workspace / ".gitattributes").write_text("a.* filter=x\n")


def filters_elsewhere(it: Trapped) -> None:
    programs(it)
    (it.root / "attributes").write_text("* filter=x\n")
    git(it.workspace, "config", "core.attributesFile", str(it.root / "attributes"))


def included(it: Trapped) -> None:
    programs(it)
    shutil.copy(it.folder / "config", it.root / "settings")
    git(it.workspace, "init", "-q")
    (it.folder / "config").write_text(
        "[core]\nrepositoryFormatVersion = 0\n[user]\nname = Kim\nemail = kim@example.org\n"
        f'[include]\npath = {it.root}/settings\n[includeIf "gitdir:**"]\npath = {it.root}/settings\n'
    )


def worktree_configured(it: Trapped) -> None:
    programs(it)
    shutil.move(it.folder / "config", it.folder / "config.worktree")
    (it.folder / "config").write_text(
        "[core]\nrepositoryFormatVersion = 1\n[extensions]\nworktreeConfig = true\n"
        "[user]\nname = Kim\nemail = kim@example.org\n"
    )


def missing_blob(it: Trapped) -> None:
    it.config(PROMISOR)
    it.drop(git(it.workspace, "rev-parse", "HEAD:.gitignore"))


def missing_tree(it: Trapped) -> None:
    it.config(PROMISOR)
    it.drop(git(it.workspace, "rev-parse", "HEAD^{tree}"))


def missing_commit(it: Trapped) -> None:
    it.config(PROMISOR)
    it.drop(git(it.workspace, "rev-parse", "HEAD"))


def borrowed(it: Trapped) -> None:
    shutil.move(it.folder / "objects", it.root / "objects")
    (it.folder / "objects/pack").mkdir(parents=True)
    (it.folder / "objects/info").mkdir()
    (it.folder / "objects/info/alternates").write_text(f"{it.root}/objects\n")


def linked_objects(it: Trapped) -> None:
    shutil.move(it.folder / "objects", it.root / "objects")
    (it.folder / "objects").symlink_to(it.root / "objects")


def replaced(it: Trapped) -> None:
    programs(it)
    old, new = (git(it.workspace, "-c", "core.fsmonitor=", "rev-parse", name) for name in ("HEAD:a.txt", "HEAD~1"))
    (it.folder / "refs/replace").mkdir()
    (it.folder / "refs/replace" / git(it.workspace, "rev-parse", "HEAD")).write_text(f"{new}\n")
    (it.folder / "info/grafts").write_text(f"{git(it.workspace, 'rev-parse', 'HEAD')}\n{old}\n")


def common_folder(it: Trapped) -> None:
    programs(it)
    shutil.copytree(it.folder, it.root / "common")
    (it.folder / "config").write_text("[core]\nrepositoryFormatVersion = 0\n")
    (it.folder / "commondir").write_text("../../common\n")


def pointing_elsewhere(it: Trapped) -> None:
    programs(it)
    shutil.move(it.folder, it.root / "elsewhere")
    (it.workspace / ".git").write_text(f"gitdir: {it.root}/elsewhere\n")


def linked_away(it: Trapped) -> None:
    programs(it)
    shutil.move(it.folder, it.root / "elsewhere")
    (it.workspace / ".git").symlink_to(it.root / "elsewhere")


def files_elsewhere(it: Trapped) -> None:
    programs(it)
    (it.root / "files").mkdir()
    it.config(f"[core]\nworktree = {it.root}/files\n")


def bare_in_place(it: Trapped) -> None:
    programs(it)
    for name in ("HEAD", "objects", "refs", "config", "info"):
        shutil.move(it.folder / name, it.workspace / name)
    shutil.rmtree(it.folder)
    it.root.joinpath("work/config").write_text((it.workspace / "config").read_text() + "[core]\nbare = true\n")


def waiting(*names: str) -> Callable[[Trapped], None]:
    def trap(it: Trapped) -> None:
        for name in names:
            path = it.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            os.mkfifo(path)

    trap.__name__ = "waiting_" + "_".join(Path(name).name for name in names)
    return trap


def endless(it: Trapped) -> None:
    """Files that never end, behind links."""
    for name in ("packed-refs", "shallow", "info/exclude", "info/attributes"):
        (it.folder / name).unlink(missing_ok=True)
        (it.folder / name).symlink_to("/dev/zero")


COMMITTED = (
    programs,
    hooks,
    included,
    worktree_configured,
    missing_blob,
    replaced,
    endless,
    waiting(".git/shallow", ".git/info/exclude", ".git/info/attributes", ".mailmap"),
)
"""In these the change is committed all the same."""
REFUSED = {
    filters_in_info: "'a.txt' by its attribute filter=x",
    filters_in_tree: "'a.txt' by its attribute filter=x",
    filters_elsewhere: "names an attributes file",
    missing_tree: "git does not answer",
    missing_commit: "git does not answer",
    borrowed: "borrows objects",
    linked_objects: "'.git/objects' is not a folder",
    common_folder: "leads to another repository",
    pointing_elsewhere: "'.git' is neither a folder nor",
    linked_away: "'.git' is neither a folder nor",
    files_elsewhere: "core.worktree",
    bare_in_place: "is not a git repository",
    waiting(".git/HEAD"): "is not a regular file",
    waiting(".git/config"): "is not a regular file",
    waiting(".git/refs/heads/main"): "is not a regular file",
    waiting(".git/objects/pack/pack-1.idx", ".git/objects/pack/pack-1.pack"): "is no file",
    waiting(".gitattributes"): "not a plain file",
}
"""In these it is not, and the message says why."""
