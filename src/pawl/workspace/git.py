"""The one place that starts git: in the sandbox, over a private repository folder that is written for each call.

The private folder holds a HEAD and a configuration of ours. Of the repository it sees the objects, through links to the
folders that hold them, and copies of plain data: the index, the shallow boundary, attributes, patterns to ignore. The
repository's own configuration, hooks, alternates, grafts, replacements and remotes are not there for git to read, nor
is the user's configuration, so nothing that they name can be run, fetched or written, not even inside the sandbox.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pawl.core.errors import GitFailed, NotFound, OverlayUnavailable, PathRefused, PawlError, SandboxUnavailable
from pawl.core.execution import Completed, Execution, Limits, Secrets
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
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
_CONFIG = """\
[core]
	repositoryFormatVersion = 1
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	splitIndex = false
	untrackedCache = false
	commitGraph = false
[extensions]
	objectFormat = {algorithm}
[protocol]
	allow = never
[safe]
	bareRepository = explicit
[gc]
	auto = 0
[maintenance]
	auto = false
"""
_BOOLEAN = frozenset({"true", "false"})
_COMPARING = {"autocrlf": _BOOLEAN | {"input"}, "eol": frozenset({"lf", "crlf", "native"}), "filemode": _BOOLEAN}
_SET_UP = r"""
set -eu
given=$PATH PATH=$PAWL_GIT_PLACES
command -v git > /dev/null || {
    # One of the user's toolchains: never one in the workspace, which an agent may have put there.
    here=$(pwd -P) IFS=:
    set -f
    for one in $given; do
        real=$(readlink -f "$one/git") || continue
        case $one,$real in [!/]* | "$here"/* | *,"$here"/*) continue ;; esac
        case $(readlink -f "$one") in "$here" | "$here"/*) continue ;; esac
        if [ -f "$real" ] && [ -x "$real" ]; then PATH=$PATH:$one; break; fi
    done
    set +f
    unset IFS
    command -v git > /dev/null || exit 127
}
absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s' "$PWD/$1" ;; esac; }
own=$(absolute "$1") common=$(absolute "$2")
shift 2
GIT_WORK_TREE=$PWD
GIT_DIR=$(mktemp -d)
trap 'rm -rf "$GIT_DIR"' EXIT
GIT_INDEX_FILE=$GIT_DIR/index
export GIT_WORK_TREE GIT_DIR GIT_INDEX_FILE PATH
mkdir -p "$GIT_DIR/refs" "$GIT_DIR/objects/info" "$GIT_DIR/info" "$GIT_DIR/theirs"
printf '%s\n' "$GIT_DIR/theirs" > "$GIT_DIR/objects/info/alternates"
printf '%s\n' "$PAWL_GIT_HEAD" > "$GIT_DIR/HEAD"
printf '%s' "$PAWL_GIT_CONFIG" > "$GIT_DIR/config"
printf '%s' "$PAWL_GIT_ATTRIBUTES" > "$GIT_DIR/attributes"
copy() { if [ -f "$1" ] && [ ! -h "$1" ]; then cp -p "$1" "$GIT_DIR/$2"; fi; }
copy "$own/index" index
for one in "$own"/sharedindex.*; do copy "$one" "${one##*/}"; done
copy "$common/shallow" shallow
copy "$common/info/attributes" info/attributes
copy "$common/info/exclude" info/exclude
git() { command git -c core.attributesFile="$GIT_DIR/attributes" "$@"; }
"""
_NO_GIT = 127
PLACES = "/usr/local/bin:/usr/bin:/bin"
"""Where git is looked for before the folders of the user's PATH."""
_OBJECTS = r"""
bad=$(find "$common/objects" ! -type d ! -type f -print -quit)
if [ -n "$bad" ]; then echo "'$bad' is no file" >&2; exit 4; fi
for one in "$common"/objects/[0-9a-f][0-9a-f] "$common/objects/pack"; do
    if [ -d "$one" ]; then printf '%s\0' "$one"; fi
done | xargs -0 -r ln -s -t "$GIT_DIR/theirs"
"""
_LOG = 'git "$@"'
_TRACKED = 'git ls-files -z -- "$@"'
_STAGED = 'git ls-files -z -s -- "$@"'
_FOLDERS = 'git ls-tree -z HEAD; if [ $# -gt 0 ]; then git ls-tree -z -t HEAD -- "$@"; fi'
_ATTRIBUTES = 'git check-attr -z filter ident working-tree-encoding text eol crlf -- "$@"'
_PUT = r"""printf '%s\0' "$@" | git update-index -z --index-info; cat "$GIT_INDEX_FILE" """
_COMPARED = r"""
bad=$(find . '(' -name .gitattributes -o -name .gitignore ')' ! -type f ! -type l -print -quit)
if [ -n "$bad" ]; then echo "'$bad' is no file" >&2; exit 4; fi
git add --all --intent-to-add . || true
compared() { git diff --no-ext-diff --no-textconv --no-color "$@"; }
"""
_CHANGED = _COMPARED + 'compared --name-status --find-copies -z "$1"'
_DIFF = _COMPARED + 'tree=$1; shift; compared "$tree" -- "$@"'


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
        return frozenset(name for part in _parts(paths) for name in _split(self._git(_TRACKED, *part)))

    def log(self, words: Sequence[str]) -> bytes:
        """The answer to a `log` command; HEAD is `head`."""
        return self._git(_LOG, *words)

    def staged(self, paths: Sequence[str]) -> dict[str, GitEntry]:
        """The entries of the index at these paths that are in no conflict."""
        rows = [row for part in _parts(paths) for row in _split(self._git(_STAGED, *part))]
        return {path: GitEntry(mode, name) for (mode, name, stage), path in map(_row, rows) if stage == "0"}

    def folders(self, paths: Sequence[str]) -> dict[str, GitEntry]:
        """The entries of HEAD in its root and in these folders, by path."""
        parts = [*_parts([f"{path}/" for path in paths])] or [[]]
        rows = [row for part in parts for row in _split(self._git(_FOLDERS, *part))]
        return {path: GitEntry(mode, name) for (mode, _, name), path in map(_row, rows)}

    def attributes_of(self, paths: Sequence[str]) -> dict[str, dict[str, str]]:
        """By path the attributes that say how git converts a file; `unset` and `unspecified` are values too."""
        found: dict[str, dict[str, str]] = {path: {} for path in paths}
        for part in _parts(paths):
            words = _split(self._git(_ATTRIBUTES, *part))
            for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=True):
                found[path][name] = value
        return found

    def index_with(self, entries: Mapping[str, GitEntry | None]) -> bytes:
        """The index, whole, with these entries put or taken out."""
        none = GitEntry("0", "0" * (64 if self.repository.algorithm == "sha256" else 40))
        lines = [f"{(one or none).mode} {(one or none).name}\t{path}" for path, one in entries.items()]
        return self._git(_PUT, *lines)

    def diff(self, hides: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
        """How the files stand against HEAD, with files that are new; and which paths are left out, as they are hidden.

        A hidden file looks emptied to git, and what it held stands in HEAD. What was moved or copied from one is left
        out with it.
        """
        empty = hashlib.new(self.repository.algorithm, b"tree 0\0", usedforsecurity=False).hexdigest()
        start = self.head or empty
        shown: list[str] = []
        left_out: set[str] = set()
        words = iter(_split(self._git(_CHANGED, start, secrets=Secrets.HIDDEN)))
        for status in words:
            paths = [next(words) for _ in range(2 if status[:1] in ("R", "C") else 1)]
            if any(map(hides, paths)):
                left_out.update(paths[-1:] if status[:1] == "C" else paths)
            else:
                shown += paths
        shown = [path for path in dict.fromkeys(shown) if path not in left_out]
        texts = [self._git(_DIFF, start, *part, secrets=Secrets.HIDDEN) for part in _parts(shown)]
        return b"".join(texts).decode("utf-8", "replace"), tuple(sorted(left_out))

    def _git(self, script: str, *words: str, secrets: Secrets = Secrets.SHOWN) -> bytes:
        config = _CONFIG.format(algorithm=self.repository.algorithm)
        for key, known in _COMPARING.items():
            value = self.settings.get(f"core.{key}", "").lower()
            config += f"[core]\n\t{key} = {value}\n" if value in known else ""
        environment = {
            **_ENVIRONMENT,
            "PAWL_GIT_PLACES": PLACES,
            "PAWL_GIT_HEAD": self.head or "ref: refs/heads/main",
            "PAWL_GIT_CONFIG": config,
            "PAWL_GIT_ATTRIBUTES": self.attributes,
        }
        # A folder of the workspace is named from there: not every sandbox shows the workspace at its own path.
        folders = (".git", ".git") if self.repository.linked is None else self.repository.linked
        # Only the index of a sparse checkout cannot be listed without objects.
        configured = self.repository.config
        plain = not {"core.sparsecheckout", "extensions.worktreeconfig"} & configured.keys()
        objects = "" if script == _TRACKED and plain else _OBJECTS
        argv = ("/bin/sh", "-c", _SET_UP + objects + script, "git", *folders, *words)
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
