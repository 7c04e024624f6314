"""The commits that HEAD reaches. HEAD itself is read from its files; git runs, confined, only to list commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from pawl.core.errors import GitFailed, NotFound, PathRefused, PawlError, SandboxUnavailable
from pawl.core.locating import Commit
from pawl.core.ports import CommandRunner
from pawl.workspace.git import Git
from pawl.workspace.repository import OBJECT_NAME, opened
from pawl.workspace.tree import Tree

_FORMAT = "%x01%H%x02%ct%x02%B%x03"

OpenRunner = Callable[[], AbstractContextManager[CommandRunner]]
"""Gives something that runs commands on a bench of the workspace."""


class GitLog:
    """Fits `ports.CommitLog`."""

    def __init__(self, tree: Tree, runner: OpenRunner) -> None:
        self._tree = tree
        self._runner = runner

    def head(self) -> str:
        try:
            with opened(self._tree) as repository:
                return repository.head().commit
        except (PawlError, OSError):
            return ""

    def commits(self, most: int) -> list[Commit]:
        try:
            with opened(self._tree) as repository, self._runner() as runner:
                git = Git(run=runner.run, repository=repository, head=repository.head().commit)
                return list(commits_in(git.log(log_words(most, "HEAD"))))
        except (GitFailed, NotFound, PathRefused, SandboxUnavailable):
            return []


def log_words(most: int, start: str) -> tuple[str, ...]:
    """What git is asked for the commits that `start` reaches; `commits_in` reads the answer."""
    names = ("--no-merges", "--no-renames", "--no-mailmap", "--name-only", "-z")
    return ("log", f"-n{most}", *names, f"--format={_FORMAT}", start)


def commits_in(output: bytes) -> Iterator[Commit]:
    for part in output.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, names = part.partition("\x03")
        name, at, message = [*head.split("\x02", 2), "", ""][:3]
        if OBJECT_NAME.fullmatch(name) and at.isdigit():
            paths = (path.strip("\n") for path in names.split("\0"))
            yield Commit(name=name, at=int(at), message=message, paths=tuple(path for path in paths if path))
