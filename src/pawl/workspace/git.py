"""The one place that starts git: in the sandbox, over a private repository folder that is written for each call.

The private folder holds a HEAD and a configuration of ours. Of the repository it sees the objects, through links to the
folders that hold them, and copies of plain data: the index, the shallow boundary, attributes, patterns to ignore. The
repository's own configuration, hooks, alternates, grafts, replacements and remotes are not there for git to read, nor
is the user's configuration, so nothing that they name can be run, fetched or written, not even inside the sandbox.

The repository itself is found and read without git: bounded, and through no link, FIFO or device. It is `.git` in the
workspace: a folder, or the file of a linked worktree whose repository knows it. What merely looks like a repository
(`HEAD`, `objects`, `refs` lying in a folder) never is one.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import field
from functools import cached_property
from importlib import resources
from typing import Any, Protocol

from pawl.core.change import NodeKind
from pawl.core.errors import GitFailed, NotFound, OverlayUnavailable, PathRefused, PawlError, SandboxUnavailable
from pawl.core.execution import Completed, Execution, Limits, Secrets
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox.visibility import is_below, linked_worktree
from pawl.settings import files as bounded
from pawl.settings.files import Tree, passes
from pawl.workspace.ignore import path_expression
from pawl.workspace.paths import held

LARGEST = 1 << 20
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}

Values = Mapping[str, str]
"""By `section.key` or `section.subsection.key`; the last one wins, as for git."""


def values(text: str) -> dict[str, str]:
    """The values of a configuration file; a line that cannot be read sets nothing."""
    return dict(pairs(text))


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """The same, in the order of the lines."""
    section = ""
    for line in _lines(text):
        rest = line.lstrip()
        if head := _SECTION.match(rest):
            name = head[1].lower()
            section = name if head[2] is None else name + "." + re.sub(r"\\(.)", r"\1", head[2])
            rest = rest[head.end() :]
        if section and (key := _KEY.match(rest)):
            yield f"{section}.{key[1].lower()}", _value(rest[key.end() :]) if key[2] else "true"


def is_true(value: str) -> bool:
    return value.lower() in ("true", "yes", "on") or (value.isdigit() and int(value) != 0)


def user_attributes(environment: Mapping[str, str], configured: Values) -> str:
    """The text of the user's own attributes file."""
    named = configured.get("core.attributesfile") or f"{settings_home(environment)}/git/attributes"
    return read_plain(re.sub(r"^~(?=/)", lambda _: environment.get("HOME", ""), named))


def settings_home(environment: Mapping[str, str]) -> str:
    return environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"


def read_plain(path: str) -> str:
    """A regular file of the user's, or nothing."""
    try:
        with bounded.opened(path) as file:
            return file.read(LARGEST).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    except (OSError, ValueError):
        return ""


def _lines(text: str) -> Iterator[str]:
    """The lines, with those that a backslash continues joined."""
    joined: list[str] = []
    comment: bool | None = None
    for line in text.replace("\r\n", "\n").split("\n"):
        if comment is None and (start := line.lstrip()[:1]):
            comment = start in "#;"
        if (len(line) - len(line.rstrip("\\"))) % 2 and not comment:
            joined.append(line[:-1])
            continue
        yield "".join((*joined, line))
        joined, comment = [], None
    yield "".join(joined)


def _value(text: str) -> str:
    """Without quotes, escapes and a comment at its end."""
    kept: list[str] = []
    quoted, settled, at = False, 0, 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        elif character == "\\" and at < len(text):
            kept.append(_ESCAPES.get(text[at], text[at]))
            at += 1
        else:
            blank = not quoted and character in " \t"
            if kept or not blank:
                kept.append(character)
            if blank:
                continue
        settled = len(kept)
    return "".join(kept[:settled])


OBJECT_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
BRANCH = re.compile(
    r"refs/heads/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.(?:/|$)|/$))[^\x00-\x20\x7f~^:?*\[\\./][^\x00-\x20\x7f~^:?*\[\\]*"
)
_LARGEST_REFS = 64 << 20
_KNOWN = frozenset(
    {"noop", "noop-v1", "objectformat", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig"}
)


@dataclass(frozen=True, slots=True)
class Head:
    """Where HEAD stands."""

    branch: str
    """Empty where HEAD is detached."""
    commit: str
    """Empty where the branch has no commit yet."""


@dataclasses.dataclass(frozen=True)
class Repository:
    """Its folders, held open."""

    own: Tree
    """Of this worktree: HEAD and the index."""
    common: Tree
    """Of all worktrees: objects, branches and configuration."""

    linked: tuple[str, str] | None = None
    """Where both lie, for a worktree whose repository is elsewhere."""

    @cached_property
    def config(self) -> Values:
        return values(self._text(self.common, "config", LARGEST))

    def refuse_borrowed(self) -> None:
        """Objects of another repository are not shown to git."""
        if self.common.look("objects/info") and self.common.look("objects/info/alternates"):
            raise GitFailed(
                "the repository borrows objects from another (objects/info/alternates)",
                advice="git repack -a -d, remove that file, or commit by hand",
            )

    @property
    def algorithm(self) -> str:
        return "sha256" if self.config.get("extensions.objectformat", "").lower() == "sha256" else "sha1"

    def head(self) -> Head:
        """`PathRefused` where it cannot be told."""
        self.refuse_unknown()
        text = self._text(self.own, "HEAD").strip()
        if OBJECT_NAME.fullmatch(text):
            return Head("", text)
        branch = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not BRANCH.fullmatch(branch):
            raise PathRefused(f"HEAD is neither a branch nor a commit: {text[:80]!r}", advice="see 'git status'")
        loose = self._text(self.common, branch).strip()
        if not loose:
            packed = self._text(self.common, "packed-refs", _LARGEST_REFS)
            line = re.search(rf"^([0-9a-f]+) {re.escape(branch)}$", packed, re.MULTILINE)
            loose = line[1] if line else ""
        if loose and not OBJECT_NAME.fullmatch(loose):
            raise PathRefused(f"{branch!r} names no commit: {loose[:80]!r}", advice="see 'git status'")
        return Head(branch, loose)

    def refuse_unknown(self) -> None:
        """A format that is not known here is not guessed at."""
        extensions = {key.partition(".")[2] for key in self.config if key.startswith("extensions.")}
        table = "reftable" in (self.config.get("extensions.refstorage"), *self.common.kinds())
        odd = sorted(extensions - _KNOWN - {"refstorage"})
        if table or odd:
            kind = "keeps its branches in a reftable" if table else f"has the extension {odd[0]!r}"
            raise PathRefused(f"the repository {kind}, which Pawl does not read", advice="commit it by hand")

    @staticmethod
    def _text(tree: Tree, path: str, limit: int = 4096) -> str:
        """Nothing where there is no such file; `PathRefused` where it is no plain one."""
        try:
            return tree.read(path, limit).decode("utf-8", "surrogateescape")
        except NotFound:
            return ""
        except (PawlError, OSError) as error:
            raise PathRefused(f"'.git/{path}' cannot be read: {error}", advice="see 'git fsck'") from error


@contextmanager
def opened(workspace: Tree) -> Iterator[Repository]:
    """`NotFound` where the workspace is no repository, `PathRefused` where its `.git` is not taken for one."""
    seen = workspace.look(".git")
    if seen is None:
        raise NotFound("the workspace is not a git repository", advice="git init, or leave out --commit")
    if seen.kind is NodeKind.DIRECTORY:
        try:
            fd = workspace.open_folder(".git")
        except OSError as error:
            raise PathRefused(f"'.git' cannot be read: {error.strerror}", advice="correct its permissions") from error
        with held(fd):
            own = common = Tree(f"/proc/self/fd/{fd}")
        linked = None
    else:
        own, common = _linked(workspace)
        linked = (own.root, common.root)
    try:
        yield Repository(own, common, linked)
    finally:
        own.close()
        common.close()


def _linked(workspace: Tree) -> tuple[Tree, Tree]:
    """The folder of a linked worktree and its repository, where they know each other."""
    found = None
    with suppress(PawlError, OSError, ValueError):
        found = linked_worktree(workspace.root, _line(workspace, ".git"))
    if found is None:
        raise PathRefused(
            "'.git' is neither a folder nor the file of a linked worktree that its repository knows",
            advice="use git by hand for submodules and folders kept apart",
        )
    return Tree(found[0]), Tree(found[1])


def _line(tree: Tree, path: str) -> str:
    return os.fsdecode(tree.read(path, 8192)).partition("\n")[0].rstrip("\r")


DEEPEST = 10
"""How many files may include one another, as for git."""
MOST_FILES = 100
MOST_CHARACTERS = 4 << 20
_HAS_URL = "hasconfig:remote.*.url:"


def user_values(environment: Mapping[str, str], workspace: Tree, repository: Repository) -> dict[str, str]:
    """The user's and the machine's configuration of git, by key; the last one wins.

    The repository's folder, branch and remotes choose what is included. No file of the workspace is read, nor one
    that is reached through it: an agent may have written it.
    """
    files = [environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"]
    if is_true(environment.get("GIT_CONFIG_NOSYSTEM", "")):
        files = []
    if "GIT_CONFIG_GLOBAL" in environment:
        files.append(environment["GIT_CONFIG_GLOBAL"])
    else:
        files += [f"{settings_home(environment)}/git/config", f"{environment.get('HOME', '')}/.gitconfig"]
    reading = _Reading(environment.get("HOME", ""), workspace.root, repository)
    for file in files:
        reading.read(file)
    return reading.found


_MOST_WORDS = 500
_WORD = re.compile(r"[^\s'\"!;|&()<>$`=]+")
_HOOKS = ("pre-*", "post-*", "*-msg")
"""How hooks are called, for a workspace that is itself the folder of them."""


def obeyed(environment: Mapping[str, str], workspace: Tree) -> tuple[str, ...]:
    """Patterns of the files in the workspace that the user's git runs or reads, because its configuration says so."""
    try:
        with opened(workspace) as repository:
            configured = [*user_values(environment, workspace, repository).items(), *repository.config.items()]
    except (PawlError, OSError):
        return ()
    found: list[str] = []
    for key, value in configured:
        start = f"{workspace.root}/.git" if key.startswith("include") else workspace.root
        words = [value] if key == "core.hookspath" else _WORD.findall(value)
        for word in words[: max(0, _MOST_WORDS - len(found))]:
            path = os.path.normpath(os.path.join(start, word))
            if is_below(path, workspace.root):
                path = path[len(workspace.root) + 1 :]
                if key == "core.hookspath":
                    found += [f"{path}/**"] if path else _HOOKS
                elif _is_file(workspace, path):
                    found.append(path)
    return tuple(found)


def _is_file(workspace: Tree, path: str) -> bool:
    with suppress(PawlError, OSError, ValueError):
        seen = workspace.find(path) if path else None
        return seen is not None and seen.kind is NodeKind.FILE
    return False


@dataclass(slots=True)
class _Reading:
    home: str
    workspace: str
    repository: Repository
    found: dict[str, str] = field(default_factory=dict)
    files: int = 0
    characters: int = 0

    def read(self, file: str, depth: int = 0) -> None:
        text = read_plain(file)
        self.files += 1
        self.characters += len(text)
        if self.files > MOST_FILES or self.characters > MOST_CHARACTERS:
            return
        for key, value in pairs(text):
            self.found[key] = value
            section, _, name = key.partition(".")
            if name == "path" and section == "include":
                holds = True
            else:
                holds = section == "includeif" and name.endswith(".path") and self._holds(name[: -len(".path")], file)
            if holds and depth < DEEPEST:
                self._include(value, file, depth)

    def _include(self, value: str, file: str, depth: int) -> None:
        path = os.path.join(os.path.dirname(os.path.abspath(file)), self._expanded(value))
        if value and "\0" not in path and not passes(path, self.workspace):
            self.read(path, depth + 1)

    def _expanded(self, path: str) -> str:
        return f"{self.home}{path[1:]}" if path.startswith("~/") else path

    def _holds(self, condition: str, file: str) -> bool:
        kind, _, pattern = condition.partition(":")
        if kind in ("gitdir", "gitdir/i"):
            return self._is_folder(pattern, file, re.IGNORECASE if kind == "gitdir/i" else 0)
        if kind == "onbranch":
            return _fits(pattern, self._branch())
        if condition.startswith(_HAS_URL):
            every = {**self.found, **self.repository.config}
            urls = [one for key, one in every.items() if key.startswith("remote.") and key.endswith(".url")]
            return any(_fits(condition[len(_HAS_URL) :], url) for url in urls)
        return False

    def _is_folder(self, pattern: str, file: str, flags: int) -> bool:
        linked = self.repository.linked
        folder = f"{self.workspace}/.git" if linked is None else linked[0]
        if pattern.startswith("./"):
            pattern = os.path.dirname(os.path.realpath(file)) + pattern[1:]
        elif not pattern.startswith(("/", "~/")):
            pattern = f"/**/{pattern}"
        homes = (self.home, os.path.realpath(self.home)) if pattern.startswith("~/") else ("",)
        patterns = [f"{home}{pattern[1:]}" if home else pattern for home in homes]
        return any(_fits(one, at, flags) for one in patterns for at in (folder, os.path.realpath(folder)))

    def _branch(self) -> str:
        with suppress(PawlError):
            return self.repository.head().branch.removeprefix("refs/heads/")
        return ""


def _fits(pattern: str, text: str, flags: int = 0) -> bool:
    """As git's patterns for paths do: a slash at the end means all below."""
    pattern += "**" if pattern.endswith("/") else ""
    try:
        expression = re.compile(path_expression(os.fsencode(pattern)), re.DOTALL | flags)
    except (ValueError, re.error):
        return False
    return expression.fullmatch(os.fsencode(text)) is not None


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
LIMITS = Limits(seconds=9.0, processes=128, disk_bytes=512 << 20, output_bytes=128 << 20)
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
        return frozenset(name for part in _parts(paths) for name in _split(self.ask("tracked", *part)))

    def staged(self, paths: Sequence[str]) -> dict[str, GitEntry]:
        """The entries of the index at these paths that are in no conflict."""
        rows = [row for part in _parts(paths) for row in _split(self.ask("staged", *part))]
        return {path: GitEntry(mode, name) for (mode, name, stage), path in map(_row, rows) if stage == "0"}

    def folders(self, paths: Sequence[str]) -> dict[str, GitEntry]:
        """The entries of HEAD in its root and in these folders, by path."""
        parts = [*_parts([f"{path}/" for path in paths])] or [[]]
        rows = [row for part in parts for row in _split(self.ask("folders", *part))]
        return {path: GitEntry(mode, name) for (mode, _, name), path in map(_row, rows)}

    def attributes_of(self, paths: Sequence[str]) -> dict[str, dict[str, str]]:
        """By path the attributes that say how git converts a file; `unset` and `unspecified` are values too."""
        found: dict[str, dict[str, str]] = {path: {} for path in paths}
        for part in _parts(paths):
            words = _split(self.ask("attributes", *part))
            for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=True):
                found[path][name] = value
        return found

    def index_with(self, entries: Mapping[str, GitEntry | None]) -> bytes:
        """The index, whole, with these entries put or taken out."""
        none = GitEntry("0", "0" * (64 if self.repository.algorithm == "sha256" else 40))
        lines = [f"{(one or none).mode} {(one or none).name}\t{path}" for path, one in entries.items()]
        return self.ask("put", *lines)

    def diff(self, hides: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
        """How the files stand against HEAD, with files that are new; and which paths are left out, as they are hidden.

        A hidden file looks emptied to git, and what it held stands in HEAD. What was moved or copied from one is left
        out with it.
        """
        shown, left_out = list[str](), set[str]()
        for status, paths in self.changed():
            if any(map(hides, paths)):
                left_out.update(paths[-1:] if status == "C" else paths)
            else:
                shown += paths
        shown = [path for path in dict.fromkeys(shown) if path not in left_out]
        texts = [self.ask("diff", self._start, *part, secrets=Secrets.MASKED) for part in _parts(shown)]
        return b"".join(texts).decode("utf-8", "replace"), tuple(sorted(left_out))

    def changed(self) -> Iterator[tuple[str, list[str]]]:
        """The letter of each change against HEAD with its path, or with both of what was moved or copied."""
        words = iter(_split(self.ask("changed", self._start, secrets=Secrets.MASKED)))
        for status in words:
            yield status[:1], [next(words) for _ in range(2 if status[:1] in ("R", "C") else 1)]

    @property
    def _start(self) -> str:
        return self.head or hashlib.new(self.repository.algorithm, b"tree 0\0", usedforsecurity=False).hexdigest()

    def ask(self, what: str, *words: str, environment: Mapping[str, str] | None = None, **how: Any) -> bytes:
        """The answer to a command of git.sh; `how` it is run, where that is not as usual."""
        configured = self.repository.config
        comparing = {key: self.settings.get(f"core.{key}", "").lower() for key in _COMPARING}
        # Only the index of a sparse checkout cannot be listed without objects.
        plain = not {"core.sparsecheckout", "extensions.worktreeconfig"} & configured.keys()
        told = {
            **(environment or {}),
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
        how = {"limits": LIMITS, "secrets": Secrets.SHOWN, **how}
        try:
            done = self.run(Execution(argv=argv, environment=told, **how))
        except OverlayUnavailable:
            raise
        except SandboxUnavailable as error:
            raise GitFailed(
                f"git is not run without a sandbox: {error.message}", advice=error.advice or "see 'pawl doctor'"
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
        with suppress(PawlError, OSError), opened(self._tree) as repository:
            return repository.head().commit
        return ""

    def commits(self, most: int) -> list[Commit]:
        unread = suppress(GitFailed, NotFound, PathRefused, SandboxUnavailable)
        with unread, opened(self._tree) as repository, self._runner() as runner:
            git = Git(run=runner.run, repository=repository, head=repository.head().commit)
            return list(commits_in(git.ask("log", *log_words(most, "HEAD"))))
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
