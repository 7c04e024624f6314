"""The commits that HEAD reaches. HEAD itself is read from its files; git runs, confined, only to list commits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from pawl.core.errors import PawlError, SandboxUnavailable
from pawl.core.execution import Execution, Limits
from pawl.core.locating import Commit
from pawl.core.ports import CommandRunner
from pawl.workspace.git import COMMAND, ENVIRONMENT
from pawl.workspace.tree import Tree

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LARGEST_FILE = 4 << 20
_LIMITS = Limits(seconds=10.0, processes=16, disk_bytes=1 << 20, output_bytes=32 << 20)
_FORMAT = "%x01%H%x02%ct%x02%B%x03"

OpenRunner = Callable[[], AbstractContextManager[CommandRunner]]
"""Gives something that runs commands on a bench of the workspace."""


class GitLog:
    """Fits `ports.CommitLog`. A linked worktree, whose repository lies elsewhere, counts as none."""

    def __init__(self, tree: Tree, runner: OpenRunner) -> None:
        self._tree = tree
        self._runner = runner

    def head(self) -> str:
        text = self._text(".git/HEAD")
        if not text.startswith("ref: "):
            return text if _HASH.fullmatch(text) else ""
        name = text[5:].strip()
        loose = self._text(f".git/{name}") if re.fullmatch(r"refs/[\w./@+-]+", name) and ".." not in name else ""
        if _HASH.fullmatch(loose):
            return loose
        packed = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", self._text(".git/packed-refs"), re.MULTILINE)
        return packed[1] if packed else ""

    def commits(self, most: int) -> list[Commit]:
        # A signature is checked by a program that the repository names.
        argv = (*COMMAND, "-c", "log.showSignature=false", *log_words(most, "HEAD"))
        try:
            with self._runner() as runner:
                ended = runner.run(Execution(argv=argv, environment=ENVIRONMENT, limits=_LIMITS))
        except SandboxUnavailable:
            return []
        return list(commits_in(ended.stdout.head + ended.stdout.tail)) if ended.ok and not ended.stdout.dropped else []

    def _text(self, path: str) -> str:
        try:
            return self._tree.read(path, _LARGEST_FILE).decode("utf-8", "replace").strip()
        except (PawlError, OSError):
            return ""


def log_words(most: int, start: str) -> tuple[str, ...]:
    """What git is asked for the commits that `start` reaches; `commits_in` reads the answer."""
    return ("log", f"-n{most}", "--no-merges", "--no-renames", "--name-only", "-z", f"--format={_FORMAT}", start)


def commits_in(output: bytes) -> Iterator[Commit]:
    for part in output.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, names = part.partition("\x03")
        name, at, message = [*head.split("\x02", 2), "", ""][:3]
        if _HASH.fullmatch(name) and at.isdigit():
            paths = (path.strip("\n") for path in names.split("\0"))
            yield Commit(name=name, at=int(at), message=message, paths=tuple(path for path in paths if path))
