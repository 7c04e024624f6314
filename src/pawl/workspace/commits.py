"""Commits one promoted change set by itself: nothing else goes into it, and what the user has staged stays staged.

Only plumbing is used, with the repository's hooks and monitors off, so that nothing of the repository is executed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pawl.core.change import Change, ChangeSet, Kind, Node
from pawl.core.errors import CommitFailed
from pawl.core.patch import git_mode, git_object_name
from pawl.core.ports import BlobReader

COMMAND = (
    "git",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.pager=cat"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0"),
)
_SECONDS = 30
_NOTHING = "0" * 40


@dataclass(frozen=True, slots=True)
class _Entry:
    """What git has at a path: a mode and the name of an object."""

    mode: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """The repository of a workspace."""

    workspace: str
    environment: Mapping[str, str]
    blobs: BlobReader

    def commit(self, changes: ChangeSet, message: str) -> str:
        """The commit of the changes on top of HEAD; `CommitFailed`, with nothing done, where it would hold more."""
        head = self._head()
        tree = {path: self._entry(("ls-tree", "-z", head, "--", path)) if head else None for path in _paths(changes)}
        wanted = {change.path: self._wanted(change.after) for change in _files(changes)}
        foreign = [change.path for change in _files(changes) if tree[change.path] != self._wanted(change.before)]
        if head and all(tree[path] == entry for path, entry in wanted.items()):
            return head
        if foreign:
            names = ", ".join(map(repr, foreign))
            raise CommitFailed(f"{names} held changes of yours that are not committed", advice="commit them by hand")
        staged = {path: self._entry(("ls-files", "-z", "-s", "--", path)) for path in wanted}
        for change in _files(changes):
            if change.after is not None:
                self._git("hash-object", "-w", "--stdin", "--no-filters", given=self._content(change.after))
        with tempfile.TemporaryDirectory(prefix="pawl-") as folder:
            index = str(Path(folder) / "index")
            self._git("read-tree", head or "--empty", index=index)
            for path, entry in wanted.items():
                self._git(*_put(path, entry), index=index)
            made = self._git("write-tree", index=index)
        parents = ("-p", head) if head else ()
        name = self._git("commit-tree", made, *parents, given=message.encode("utf-8", "replace"))
        self._git("update-ref", "-m", "commit by pawl", "HEAD", name, head or _NOTHING)
        for path, entry in wanted.items():
            # What the user had not staged follows HEAD; what was staged stays as it is.
            if staged[path] == tree[path]:
                self._git(*_put(path, entry))
        return name

    def _head(self) -> str:
        try:
            inside = self._git("rev-parse", "--show-toplevel")
        except CommitFailed as error:
            raise CommitFailed(
                "the workspace is not a git repository", advice="git init, or leave out --commit"
            ) from error
        if os.path.realpath(inside) != os.path.realpath(self.workspace):
            raise CommitFailed(
                f"the repository is {inside!r}, not the workspace", advice="open the repository's own folder"
            )
        try:
            return self._git("rev-parse", "--verify", "-q", "HEAD")
        except CommitFailed:
            return ""

    def _entry(self, words: tuple[str, ...]) -> _Entry | None:
        """The one entry of a listing: `mode [type] name [stage]`, a tab, the path."""
        said = self._git(*words).rstrip("\0")
        if not said:
            return None
        parts = said.partition("\t")[0].split()
        return _Entry(parts[0], parts[2] if parts[1] in ("blob", "commit", "tree") else parts[1])

    def _wanted(self, node: Node | None) -> _Entry | None:
        return None if node is None else _Entry(git_mode(node), git_object_name(self._content(node)))

    def _content(self, node: Node) -> bytes:
        assert node.blob is not None
        return self.blobs.get(node.blob)

    def _git(self, *words: str, given: bytes = b"", index: str = "") -> str:
        environment = {**self.environment, "GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1"}
        if index:
            environment["GIT_INDEX_FILE"] = index
        try:
            done = subprocess.run(
                [*COMMAND, *words],
                cwd=self.workspace,
                env=environment,
                input=given,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommitFailed(f"git cannot be run: {error}", advice="see that git is installed") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise CommitFailed(f"git {words[0]}: {said[-1] if said else 'failed'}", advice="commit it by hand")
        return os.fsdecode(done.stdout).strip("\n")


def _files(changes: ChangeSet) -> tuple[Change, ...]:
    """Git has no directories."""
    return tuple(
        change for change in changes if all(node is None or node.kind is not Kind.DIRECTORY for node in _ends(change))
    )


def _ends(change: Change) -> tuple[Node | None, Node | None]:
    return change.before, change.after


def _paths(changes: ChangeSet) -> tuple[str, ...]:
    return tuple(change.path for change in _files(changes))


def _put(path: str, entry: _Entry | None) -> tuple[str, ...]:
    if entry is None:
        return ("update-index", "--force-remove", "--", path)
    return ("update-index", "--add", "--cacheinfo", f"{entry.mode},{entry.name},{path}")
