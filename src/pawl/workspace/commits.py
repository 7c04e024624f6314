"""Commits one promoted change set by itself: nothing else goes into it, and what the user has staged stays staged.

Git is asked, confined, what HEAD and the index hold; objects, the branch and the index are written by Pawl itself. So
no hook, filter, monitor or signing program of anybody's is run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pawl.core.change import Change, ChangeSet, Kind, Node, is_directory
from pawl.core.errors import GitFailed, PawlError
from pawl.core.patch import git_mode
from pawl.core.ports import BlobReader, CommandRunner
from pawl.workspace.git import Entry, Git
from pawl.workspace.git_config import is_true, user_attributes, user_values
from pawl.workspace.git_trees import FOLDER, edited_tree, folders_above
from pawl.workspace.line_ends import as_git_keeps, converts
from pawl.workspace.repository import Head, Repository, opened
from pawl.workspace.repository_writing import move_head, new_index, object_name, put_object
from pawl.workspace.tree import Tree

_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a sequence of commits",
}
_MOST_BYTES_OF_NAMES = 1 << 20
_LARGEST_ATTRIBUTES = 100_000
_UNCONVERTED = ("filter", "ident", "working-tree-encoding")
NOT_SIGNED = (
    "the commit is not signed, because Pawl runs no signing program; 'git commit --amend -S --no-edit' signs it"
)


@dataclass(frozen=True, slots=True)
class _File:
    """One path of the change as git has it, before and after; `kept` is the content to keep."""

    path: str
    before: tuple[Entry, ...]
    """The forms in which git may hold what was there: as it lay there, and converted."""
    after: Entry | None
    kept: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """The repository of a workspace."""

    workspace: Tree
    environment: Mapping[str, str]
    """The user's, for the name and address of a commit and for how git converts files."""
    blobs: BlobReader
    runner: Callable[[], AbstractContextManager[CommandRunner]]

    def commit(self, changes: ChangeSet, message: str) -> tuple[str, tuple[str, ...]]:
        """The commit of the changes on top of HEAD, with what the user should know of it.

        `GitFailed` where none was made; it says so of HEAD, too, after looking.
        """
        try:
            with opened(self.workspace) as repository:
                return self._on_top(repository, changes, message)
        except GitFailed:
            raise
        except (PawlError, OSError) as error:
            advice = error.advice if isinstance(error, PawlError) else "commit it by hand"
            raise GitFailed(str(error), advice=advice) from error

    def _on_top(self, repository: Repository, changes: ChangeSet, message: str) -> tuple[str, tuple[str, ...]]:
        _refuse_unfit(repository)
        head = repository.head()
        made = ""
        try:
            steps = [step for step in map(_as_git_sees, changes) if step is not None]
            self._refuse_foreign_folders(steps)
            settings = {**user_values(self.environment), **repository.config}
            with self.runner() as runner:
                git = self._git(runner, repository, head, settings)
                tree = git.folders(folders_above(step.path for step in steps)) if head.commit else {}
                held = {path: entry for path, entry in tree.items() if entry.mode != FOLDER}
                files = self._files(git, repository, steps, held, settings)
                if head.commit and all(held.get(one.path) == one.after for one in files):
                    return head.commit, ()
                _refuse_edited(files, held)
                who = _identity(self.environment, settings)
                seen = repository.own.look("index")
                staged = git.staged([one.path for one in files])
                # What the user had not staged follows HEAD; what was staged stays as it is.
                following = {one.path: one.after for one in files if staged.get(one.path) == held.get(one.path)}
                index = git.index_with(following) if following else None
            for one in files:
                if one.after is not None:
                    put_object(repository, "blob", one.kept)
            top = edited_tree(repository, tree, {one.path: one.after for one in files})
            made = put_object(repository, "commit", _commit_text(top, head.commit, who, message))
            with new_index(repository, index, seen):
                move_head(repository, head, made, f"{who[1]}\tcommit by pawl")
        except (PawlError, OSError) as error:
            return _after_failure(repository, head, made, error)
        return made, (NOT_SIGNED,) if is_true(settings.get("commit.gpgsign", "")) else ()

    def _git(self, runner: CommandRunner, repository: Repository, head: Head, settings: Mapping[str, str]) -> Git:
        if repository.config.get("core.attributesfile"):
            raise GitFailed(
                "the repository's configuration names an attributes file, which Pawl does not read",
                advice="commit it by hand",
            )
        attributes = user_attributes(self.environment, settings)
        if len(attributes.encode("utf-8", "surrogateescape")) > _LARGEST_ATTRIBUTES or "\0" in attributes:
            raise GitFailed("your git attributes file is too large to be read", advice="commit it by hand")
        return Git(run=runner.run, repository=repository, head=head.commit, attributes=attributes)

    def _refuse_foreign_folders(self, steps: Sequence[Change]) -> None:
        """What lies in a repository of its own is not this one's to commit; attributes are read from plain files."""
        if sum(len(os.fsencode(step.path)) + 80 for step in steps) > _MOST_BYTES_OF_NAMES:
            raise GitFailed("the change has too many paths to be committed at once", advice="commit it by hand")
        above = folders_above(step.path for step in steps)
        for folder in above:
            if self.workspace.find(f"{folder}/.git") is not None:
                raise GitFailed(f"{folder!r} is a repository of its own", advice="commit there by hand")
        for folder in ("", *above):
            path = f"{folder}/.gitattributes".lstrip("/")
            seen = self.workspace.find(path)
            if seen is not None and seen.kind is not Kind.FILE:
                raise GitFailed(f"{path!r} is no plain file", advice="make it one, or commit by hand")

    def _files(
        self,
        git: Git,
        repository: Repository,
        steps: Sequence[Change],
        held: Mapping[str, Entry],
        settings: Mapping[str, str],
    ) -> list[_File]:
        attributes = git.attributes_of([step.path for step in steps])
        for path, found in attributes.items():
            for name in _UNCONVERTED:
                if found.get(name, "unspecified") not in ("unspecified", "unset"):
                    raise GitFailed(
                        f"git converts {path!r} by its attribute {name}={found[name]}, and Pawl runs no filter",
                        advice=f"git add {path} and commit it by hand",
                    )
        return [self._file(step, repository, converts(attributes[step.path], settings), held) for step in steps]

    def _file(self, step: Change, repository: Repository, how: str, held: Mapping[str, Entry]) -> _File:
        there = held.get(step.path)
        fixed = there.mode if there and not is_true(repository.config.get("core.filemode", "true")) else ""

        def entry(node: Node, content: bytes) -> Entry:
            mode = fixed if fixed.startswith("100") and node.kind is Kind.FILE else git_mode(node)
            return Entry(mode, object_name(repository.algorithm, "blob", content))

        before: tuple[Entry, ...] = ()
        raw = False
        if step.before is not None:
            lain = self._content(step.before)
            before = (entry(step.before, lain), entry(step.before, as_git_keeps(lain, how, step.before)))
            # Git leaves line ends alone that it already holds as they are.
            raw = how == "auto" and there == before[0] and b"\r\n" in lain
        if step.after is None:
            return _File(step.path, before, None)
        content = self._content(step.after)
        kept = content if raw else as_git_keeps(content, how, step.after)
        return _File(step.path, before, entry(step.after, kept), kept)

    def _content(self, node: Node) -> bytes:
        assert node.blob is not None
        return self.blobs.get(node.blob)


def _refuse_unfit(repository: Repository) -> None:
    """Nothing is committed where another work is under way, or where the repository is not all the user's own."""
    own, common = repository.own, repository.common
    for path, what in _UNDER_WAY.items():
        if own.find(path) is not None:
            raise GitFailed(f"{what} is under way", advice="finish or abort it, then commit by hand")
    if any(os.fstat(tree.fd).st_uid != os.geteuid() for tree in (own, common)):
        raise GitFailed("the repository belongs to another user", advice="commit as its owner")
    if repository.linked is None and own.find("commondir") is not None:
        raise GitFailed("'.git/commondir' leads to another repository", advice="commit it by hand")
    if repository.config.get("core.bare") and is_true(repository.config["core.bare"]):
        raise GitFailed("the repository is bare", advice="commit it by hand")
    if repository.config.get("core.worktree"):
        raise GitFailed("the repository keeps its files elsewhere (core.worktree)", advice="commit it by hand")
    for path in ("objects", "objects/pack"):
        seen = common.look(path)
        if seen is None or seen.kind is not Kind.DIRECTORY:
            raise GitFailed(f"'.git/{path}' is no folder", advice="see 'git fsck'")
    if common.look("objects/info") is not None and common.look("objects/info/alternates") is not None:
        raise GitFailed(
            "the repository borrows objects from another (objects/info/alternates)",
            advice="git repack -a -d, remove that file, or commit by hand",
        )


def _refuse_edited(files: Sequence[_File], held: Mapping[str, Entry]) -> None:
    edited = [one.path for one in files if held.get(one.path) not in (one.before or (None,))]
    if edited:
        names = ", ".join(map(repr, edited))
        raise GitFailed(f"{names} held changes of yours that are not committed", advice="commit them by hand")


def _after_failure(
    repository: Repository, head: Head, made: str, error: PawlError | OSError
) -> tuple[str, tuple[str, ...]]:
    """HEAD is looked at, so that what is said of it is true."""
    now = repository.head()
    said = error.message if isinstance(error, PawlError) else str(error)
    if made and now.commit == made:
        return made, (f"committed, but the index is not up to date: {said}; 'git reset' brings it there",)
    where = "HEAD has not moved" if now == head else "HEAD was moved, not by Pawl"
    advice = error.advice if isinstance(error, PawlError) else "commit it by hand"
    raise GitFailed(f"{said}; {where}", advice=advice) from error


def _as_git_sees(change: Change) -> Change | None:
    """Git has no directories."""
    before = None if is_directory(change.before) else change.before
    after = None if is_directory(change.after) else change.after
    return Change(change.path, before, after) if before != after else None


def _identity(environment: Mapping[str, str], settings: Mapping[str, str]) -> tuple[str, str]:
    """The author and the committer, as a commit has them."""
    now = time.time()
    zone = time.strftime("%z", time.localtime(now))
    lines: list[str] = []
    for role in ("author", "committer"):
        parts = [
            _plain(environment.get(f"GIT_{role.upper()}_{part.upper()}", "") or settings.get(f"{role}.{part}", ""))
            or _plain(settings.get(f"user.{part}", ""))
            for part in ("name", "email")
        ]
        if not all(parts):
            raise GitFailed(
                "git does not know who you are: user.name or user.email is not set",
                advice="git config --global user.name NAME, and user.email ADDRESS",
            )
        lines.append(f"{parts[0]} <{parts[1]}> {int(now)} {zone}")
    return lines[0], lines[1]


def _plain(text: str) -> str:
    """Without what would end a line or a field of a commit."""
    return "".join(one for one in text if one.isprintable() and one not in "<>").strip(" .,:;\"'\\")


def _commit_text(tree: str, parent: str, who: tuple[str, str], message: str) -> bytes:
    parents = f"parent {parent}\n" if parent else ""
    text = message.replace("\0", "").rstrip("\n")
    return f"tree {tree}\n{parents}author {who[0]}\ncommitter {who[1]}\n\n{text}\n".encode("utf-8", "replace")
