"""The one place that starts git: in the sandbox, over a private repository folder that is written for each call.

The private folder holds a HEAD and a configuration of ours. Of the repository it sees the objects, through links to the
folders that hold them, and copies of plain data: the index, the shallow boundary, attributes, patterns to ignore. The
repository's own configuration, hooks, alternates, grafts, replacements and remotes are not there for git to read, nor
is the user's configuration, so nothing that they name can be run, fetched or written, not even inside the sandbox.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from importlib import resources
from typing import Protocol

from pawl.core.errors import GitFailed, NotFound, OverlayUnavailable, PathRefused, PawlError, SandboxUnavailable
from pawl.core.execution import Completed, Execution, Limits, Secrets
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.tree import Tree
from pawl.workspace.repository import OBJECT_NAME, Repository, opened


class CommandRunner(Protocol):
    def run(self, execution: Execution) -> Completed:
        """Runs the command on the bench, confined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    name: str
    """Its hash."""
    at: int
    """Seconds since 1970."""
    message: str
    paths: tuple[str, ...]
    """The files that it changed."""


Run = Callable[[Execution], Completed]
"""Runs a command on a view of the workspace."""

_WORDS_AT_ONCE = 64 << 10
_LIMITS = Limits(seconds=9.0, processes=128, disk_bytes=512 << 20, output_bytes=128 << 20)
_BOOLEAN = frozenset({"true", "false"})
_COMPARING = {"autocrlf": _BOOLEAN | {"input"}, "eol": frozenset({"lf", "crlf", "native"}), "filemode": _BOOLEAN}
_NO_GIT = 127
PLACES = "/usr/local/bin:/usr/bin:/bin"
"""Where git is looked for before the folders of the user's PATH."""


@dataclass(frozen=True, slots=True)
class GitEntry:
    """A path as git has it: a mode and the name of an object."""

    mode: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git over the repository of a workspace. `GitFailed` where it does not answer."""

    run: Run
    repository: Repository
    head: str = ""
    """The commit to start from; none is needed for what only reads the index."""
    attributes: str = ""
    """The user's own attributes, which count beside those of the repository."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The user's and the repository's configuration; only how line ends and modes are compared is taken from it."""

    def tracked(self, paths: Sequence[str]) -> frozenset[str]:
        """Which of these paths, and of the paths below them, the index holds."""
        return frozenset(name for part in _parts(paths) for name in _split(self._git("tracked", *part)))

    def log(self, words: Sequence[str]) -> bytes:
        """The answer to a `log` command; HEAD is `head`."""
        return self._git("log", *words)

    def staged(self, paths: Sequence[str]) -> dict[str, GitEntry]:
        """The entries of the index at these paths that are in no conflict."""
        rows = [row for part in _parts(paths) for row in _split(self._git("staged", *part))]
        return {path: GitEntry(mode, name) for (mode, name, stage), path in map(_row, rows) if stage == "0"}

    def folders(self, paths: Sequence[str]) -> dict[str, GitEntry]:
        """The entries of HEAD in its root and in these folders, by path."""
        parts = [*_parts([f"{path}/" for path in paths])] or [[]]
        rows = [row for part in parts for row in _split(self._git("folders", *part))]
        return {path: GitEntry(mode, name) for (mode, _, name), path in map(_row, rows)}

    def attributes_of(self, paths: Sequence[str]) -> dict[str, dict[str, str]]:
        """By path the attributes that say how git converts a file; `unset` and `unspecified` are values too."""
        found: dict[str, dict[str, str]] = {path: {} for path in paths}
        for part in _parts(paths):
            words = _split(self._git("attributes", *part))
            for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=True):
                found[path][name] = value
        return found

    def index_with(self, entries: Mapping[str, GitEntry | None]) -> bytes:
        """The index, whole, with these entries put or taken out."""
        none = GitEntry("0", "0" * (64 if self.repository.algorithm == "sha256" else 40))
        lines = [f"{(one or none).mode} {(one or none).name}\t{path}" for path, one in entries.items()]
        return self._git("put", *lines)

    def diff(self, hides: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
        """How the files stand against HEAD, with files that are new; and which paths are left out, as they are hidden.

        A hidden file looks emptied to git, and what it held stands in HEAD. What was moved or copied from one is left
        out with it.
        """
        empty = hashlib.new(self.repository.algorithm, b"tree 0\0", usedforsecurity=False).hexdigest()
        start = self.head or empty
        shown: list[str] = []
        left_out: set[str] = set()
        words = iter(_split(self._git("changed", start, secrets=Secrets.MASKED)))
        for status in words:
            paths = [next(words) for _ in range(2 if status[:1] in ("R", "C") else 1)]
            if any(map(hides, paths)):
                left_out.update(paths[-1:] if status[:1] == "C" else paths)
            else:
                shown += paths
        shown = [path for path in dict.fromkeys(shown) if path not in left_out]
        texts = [self._git("diff", start, *part, secrets=Secrets.MASKED) for part in _parts(shown)]
        return b"".join(texts).decode("utf-8", "replace"), tuple(sorted(left_out))

    def _git(self, what: str, *words: str, secrets: Secrets = Secrets.SHOWN) -> bytes:
        configured = self.repository.config
        comparing = {key: self.settings.get(f"core.{key}", "").lower() for key in _COMPARING}
        # Only the index of a sparse checkout cannot be listed without objects.
        plain = not {"core.sparsecheckout", "extensions.worktreeconfig"} & configured.keys()
        environment = {
            "PAWL_GIT_PLACES": PLACES,
            "PAWL_GIT_HEAD": self.head or "ref: refs/heads/main",
            "PAWL_GIT_ALGORITHM": self.repository.algorithm,
            "PAWL_GIT_COMPARING": "\n".join(
                f"{key} = {one}" for key, one in comparing.items() if one in _COMPARING[key]
            ),
            "PAWL_GIT_ATTRIBUTES": self.attributes,
            "PAWL_GIT_OBJECTS": "" if what == "tracked" and plain else "1",
        }
        # A folder of the workspace is named from there: not every sandbox shows the workspace at its own path.
        folders = (".git", ".git") if self.repository.linked is None else self.repository.linked
        argv = ("/bin/sh", "-c", _script(), "git", what, *folders, *words)
        try:
            done = self.run(Execution(argv=argv, environment=environment, limits=_LIMITS, secrets=secrets))
        except OverlayUnavailable:
            raise
        except SandboxUnavailable as error:
            raise GitFailed(
                f"git is not run unconfined: {error.message}", advice=error.advice or "see 'pawl doctor'"
            ) from error
        if done.code == _NO_GIT:
            raise GitFailed("the sandbox shows no git", advice="install git in /usr, or in a folder of your PATH")
        if not done.ok or done.stdout.dropped:
            said = done.stderr.text.strip().splitlines()
            raise GitFailed(f"git does not answer: {said[-1] if said else done.ending}", advice="see 'git fsck'")
        return done.stdout.head + done.stdout.tail


@functools.cache
def _script() -> str:
    return (resources.files("pawl.workspace") / "git.sh").read_text("utf-8")


def _split(output: bytes) -> list[str]:
    return [os.fsdecode(part) for part in output.split(b"\0")[:-1]]


def _row(line: str) -> tuple[list[str], str]:
    """The fields of a listing, and the path behind them."""
    fields, _, path = line.partition("\t")
    return fields.split(), path


def _parts(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths in groups that fit on a command line."""
    part: list[str] = []
    size = 0
    for path in paths:
        size += len(os.fsencode(path)) + 1
        if part and size > _WORDS_AT_ONCE:
            yield part
            part, size = [], len(os.fsencode(path)) + 1
        part.append(path)
    if part:
        yield part


_FORMAT = "%x01%H%x02%ct%x02%B%x03"

OpenRunner = Callable[[], AbstractContextManager[CommandRunner]]
"""Gives something that runs commands on a bench of the workspace."""


class GitLog:
    """The commits of a workspace that HEAD reaches."""

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
    """The words that ask git for the commits that `start` reaches; `commits_in` reads the answer."""
    names = ("--no-merges", "--no-renames", "--no-mailmap", "--name-only", "-z")
    return ("log", f"-n{most}", *names, f"--format={_FORMAT}", start)


def commits_in(output: bytes) -> Iterator[Commit]:
    for part in output.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, names = part.partition("\x03")
        name, at, message = [*head.split("\x02", 2), "", ""][:3]
        if OBJECT_NAME.fullmatch(name) and at.isdigit():
            paths = (path.strip("\n") for path in names.split("\0"))
            yield Commit(name=name, at=int(at), message=message, paths=tuple(path for path in paths if path))
