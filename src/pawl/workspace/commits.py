"""Commits one promoted change set by itself: nothing else goes into it, and what the user has staged stays staged.

Git is asked, confined, what HEAD and the index hold; objects, the branch and the index are written by Pawl itself. So
no hook, filter, monitor or signing program of anybody's is run.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from pawl.core.change import BlobReader, Change, ChangeSet, Node, NodeKind, is_directory
from pawl.core.errors import GitFailed, NotFound, PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.patch import git_mode
from pawl.settings.files import Seen, Tree
from pawl.workspace.git import (
    CommandRunner,
    Git,
    GitEntry,
    Head,
    Repository,
    is_true,
    opened,
    user_attributes,
    user_values,
)
from pawl.workspace.paths import NEW_FILE, folders_of, held

_LOG = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def object_name(algorithm: str, kind: str, data: bytes) -> str:
    return hashlib.new(algorithm, b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def put_object(repository: Repository, kind: str, data: bytes) -> str:
    """Keeps an object loose, in place of whatever stands under its name."""
    name = object_name(repository.algorithm, kind, data)
    place = f"objects/{name[:2]}"
    with _folder(repository.common, place) as folder:
        made = f"tmp_obj_{secrets.token_hex(8)}"
        content = zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 1)
        try:
            _write(folder, made, content, 0o444)
            os.rename(made, name[2:], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(made, dir_fd=folder)
            raise
        os.fsync(folder)
    return name


@contextmanager
def new_index(repository: Repository, content: bytes | None, expected: Seen | None) -> Iterator[None]:
    """Puts a new index in the old one's place when the body has succeeded; the old one must be as it was `expected`."""
    if content is None:
        yield
        return
    with _locked(repository.own, "index", content):
        if repository.own.look("index") != expected:
            raise GitFailed("the index was changed meanwhile", advice="try again when no other git runs here")
        yield


def move_head(repository: Repository, head: Head, commit: str, log: str) -> None:
    """Moves the branch that is checked out, or a detached HEAD, from where it stood to the commit."""
    content = f"{commit}\n".encode()
    if not head.branch:
        with _locked(repository.own, "HEAD", content):
            _expect(repository, head)
    else:
        with _locked(repository.own, "HEAD", None), _locked(repository.common, head.branch, content):
            _expect(repository, head)
    line = f"{head.commit or '0' * len(commit)} {commit} {log}\n".encode("utf-8", "surrogateescape")
    if is_true(repository.config.get("core.logallrefupdates", "true")):
        # The branch has moved: a log that cannot be written is no failure of the commit.
        with suppress(OSError, PawlError):
            _append(repository.own, "logs/HEAD", line)
            if head.branch:
                _append(repository.common, f"logs/{head.branch}", line)


def _expect(repository: Repository, head: Head) -> None:
    if repository.head() != head:
        raise GitFailed("HEAD was moved by another git meanwhile", advice="try again when no other git runs here")


@contextmanager
def _locked(tree: Tree, path: str, content: bytes | None) -> Iterator[None]:
    """Holds `path.lock`; afterwards it takes the place of the file, or goes where there is no new content."""
    above, _, name = path.rpartition("/")
    with _folder(tree, above) as folder:
        lock = f"{name}.lock"
        try:
            _write(folder, lock, content or b"", 0o666)
        except FileExistsError as error:
            raise GitFailed(
                f"'{path}.lock' exists: another git runs in this repository, or was killed",
                advice=f"wait for it, or remove .git/{path}.lock",
            ) from error
        replaced = False
        try:
            yield
            if content is not None:
                os.rename(lock, name, src_dir_fd=folder, dst_dir_fd=folder)
                replaced = True
                os.fsync(folder)
        finally:
            # Once it is in place, a lock of this name is another's.
            if not replaced:
                with suppress(FileNotFoundError):
                    os.unlink(lock, dir_fd=folder)


def _write(folder: int, name: str, content: bytes, mode: int) -> None:
    fd = os.open(name, NEW_FILE, mode, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def _append(tree: Tree, path: str, line: bytes) -> None:
    with _folder(tree, path.rpartition("/")[0]) as folder:
        fd = os.open(path.rpartition("/")[2], _LOG, 0o666, dir_fd=folder)
        with os.fdopen(fd, "ab") as file:
            if Seen.of(os.fstat(fd)).kind is NodeKind.FILE:
                file.write(line)


@contextmanager
def _folder(tree: Tree, path: str) -> Iterator[int]:
    """A folder of the repository, made where it is missing; never through a link."""
    made = ""
    for name in path.split("/") if path else ():
        made = f"{made}/{name}".lstrip("/")
        seen = tree.look(made)
        if seen is None:
            with tree.folder_of(made) as (above, last), suppress(FileExistsError):
                os.mkdir(last, dir_fd=above)
        elif seen.kind is not NodeKind.DIRECTORY:
            raise NotFound(f"'.git/{made}' is not a folder", advice="see 'git fsck'")
    with held(tree.open_folder(path)) as fd:
        yield fd


FOLDER = "040000"
_SUBMODULE = "160000"


def edited_tree(repository: Repository, held: Mapping[str, GitEntry], changed: Mapping[str, GitEntry | None]) -> str:
    """The name of the tree in which the changed paths stand as given; `held` is what their folders hold."""
    inside: dict[str, dict[str, GitEntry]] = {folder: {} for folder in ("", *folders_of(changed))}
    for path, entry in held.items():
        if entry.mode == _SUBMODULE and path in inside:
            raise GitFailed(f"{path!r} is a submodule", advice="commit there by hand")
        folder, _, name = path.rpartition("/")
        if folder in inside and changed.get(path, entry) is not None:
            inside[folder][name] = entry
    put: dict[str, dict[str, GitEntry]] = {folder: {} for folder in inside}
    for path, wanted in changed.items():
        if wanted is not None:
            put[path.rpartition("/")[0]][path.rpartition("/")[2]] = wanted
    # The deepest first, so that each folder finds the new names of those in it.
    for folder in sorted(put.keys() - {""}, key=lambda one: one.count("/"), reverse=True):
        entries = _merged(folder, inside[folder], put[folder])
        outer, _, name = folder.rpartition("/")
        if entries:
            inside[outer][name] = GitEntry(FOLDER, put_object(repository, "tree", _content(entries)))
        elif name in inside[outer] and inside[outer][name].mode == FOLDER:
            del inside[outer][name]
    return put_object(repository, "tree", _content(_merged("", inside[""], put[""])))


def _merged(folder: str, held: Mapping[str, GitEntry], put: Mapping[str, GitEntry]) -> dict[str, GitEntry]:
    for name in put:
        if name in held and held[name].mode == FOLDER:
            path = f"{folder}/{name}".lstrip("/")
            raise GitFailed(f"{path!r} is a folder with other files in HEAD", advice="commit it by hand")
    return {**held, **put}


def _content(entries: Mapping[str, GitEntry]) -> bytes:
    """In git's order, in which a folder's name ends with a slash."""
    rows = {os.fsencode(name): entry for name, entry in entries.items()}
    ordered = sorted(rows, key=lambda name: name + b"/" if rows[name].mode == FOLDER else name)
    return b"".join(
        b"%s %s\0%s" % (rows[name].mode.lstrip("0").encode(), name, bytes.fromhex(rows[name].name)) for name in ordered
    )


_PRINTED = frozenset(range(32, 256)) - {127} | {8, 9, 10, 12, 13, 27}


def converts(attributes: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """How CRLF is taken into the repository: `text` always, `auto` where the file is text, empty never."""
    text = attributes.get("text", "unspecified")
    if text == "unspecified":
        text = {"set": "set", "unset": "unset", "input": "set"}.get(attributes.get("crlf", ""), "unspecified")
    if text in ("set", "input"):
        return "text"
    if text == "unset":
        return ""
    if text == "auto":
        return "auto"
    if attributes.get("eol") in ("lf", "crlf"):
        return "text"
    return "auto" if settings.get("core.autocrlf", "").lower() in ("true", "input", "yes", "on", "1") else ""


def as_git_keeps(content: bytes, how: str, node: Node) -> bytes:
    if not how or node.kind is not NodeKind.FILE or b"\r\n" not in content or (how == "auto" and _is_binary(content)):
        return content
    return content.replace(b"\r\n", b"\n")


def _is_binary(content: bytes) -> bool:
    """By git's measure: a NUL, a CR that ends no line, or more than one odd byte in 128."""
    if b"\0" in content or content.count(b"\r") != content.count(b"\r\n"):
        return True
    odd = len(content.removesuffix(b"\x1a").translate(None, bytes(_PRINTED)))
    printable = len(content) - odd - content.count(b"\n") - content.count(b"\r")
    return (printable >> 7) < odd


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
_NOT_MOVED = "HEAD has not moved"
NOTHING_DIFFERS = "not committed: nothing differs from HEAD"
NOT_SIGNED = (
    "the commit is not signed, because Pawl runs no signing program; 'git commit --amend -S --no-edit' signs it"
)


@dataclass(frozen=True, slots=True)
class _File:
    """One path of the change as git has it, before and after; `kept` is the content to keep."""

    path: str
    before: tuple[GitEntry, ...]
    """The forms in which git may hold what was there: as it lay there, and converted."""
    after: GitEntry | None
    kept: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """The repository of a workspace."""

    workspace: Tree
    environment: Mapping[str, str]
    """The user's, for the name and address of a commit and for how git converts files."""
    blobs: BlobReader
    runner: Callable[[], AbstractContextManager[CommandRunner]]
    since: str | None = None
    """HEAD before this was tried for the first time: one that has moved since holds the changes by that try."""

    def commit(self, changes: ChangeSet, message: str) -> tuple[str, tuple[str, ...]]:
        """The commit of the changes on top of HEAD, with what the user should know of it.

        `GitFailed` where none was made; it says so of HEAD, too, after looking.
        """
        try:
            with opened(self.workspace) as repository:
                return self._on_top(repository, changes, message)
        except GitFailed:
            raise  # it has looked at HEAD
        except (PawlError, OSError) as error:
            raise _failed(error, _NOT_MOVED) from error

    def _on_top(self, repository: Repository, changes: ChangeSet, message: str) -> tuple[str, tuple[str, ...]]:
        head: Head | None = None
        made = ""
        try:
            _refuse_unfit(repository)
            head = repository.head()
            steps = [step for step in map(_as_git_sees, changes) if step is not None]
            self._refuse_foreign_folders(steps)
            settings = {**user_values(self.environment, self.workspace, repository), **repository.config}
            with self.runner() as runner:
                git = self._git(runner, repository, head, settings)
                tree = git.folders(sorted(folders_of(step.path for step in steps))) if head.commit else {}
                held = {path: entry for path, entry in tree.items() if entry.mode != FOLDER}
                files = self._files(git, repository, steps, held, settings)
                if head.commit and all(held.get(one.path) == one.after for one in files):
                    return (head.commit, ()) if self.since not in (None, head.commit) else ("", (NOTHING_DIFFERS,))
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
        """Files in a repository of their own are not this one's to commit; attributes are read from plain files."""
        if sum(len(os.fsencode(step.path)) + 80 for step in steps) > _MOST_BYTES_OF_NAMES:
            raise GitFailed("the change has too many paths to be committed at once", advice="commit it by hand")
        above = sorted(folders_of(step.path for step in steps))
        for folder in above:
            if self.workspace.find(f"{folder}/.git") is not None:
                raise GitFailed(f"{folder!r} is a repository of its own", advice="commit there by hand")
        for folder in ("", *above):
            path = f"{folder}/.gitattributes".lstrip("/")
            seen = self.workspace.find(path)
            if seen is not None and seen.kind is not NodeKind.FILE:
                raise GitFailed(f"{path!r} is not a plain file", advice="make it one, or commit by hand")

    def _files(
        self,
        git: Git,
        repository: Repository,
        steps: Sequence[Change],
        held: Mapping[str, GitEntry],
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

    def _file(self, step: Change, repository: Repository, how: str, held: Mapping[str, GitEntry]) -> _File:
        there = held.get(step.path)
        fixed = there.mode if there and not is_true(repository.config.get("core.filemode", "true")) else ""

        def entry(node: Node, content: bytes) -> GitEntry:
            mode = fixed if fixed.startswith("100") and node.kind is NodeKind.FILE else git_mode(node)
            return GitEntry(mode, object_name(repository.algorithm, "blob", content))

        before: tuple[GitEntry, ...] = ()
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
        if seen is None or seen.kind is not NodeKind.DIRECTORY:
            raise GitFailed(f"'.git/{path}' is not a folder", advice="see 'git fsck'")
    repository.refuse_borrowed()


def _refuse_edited(files: Sequence[_File], held: Mapping[str, GitEntry]) -> None:
    edited = [one.path for one in files if held.get(one.path) not in (one.before or (None,))]
    if edited:
        names = ", ".join(map(repr, edited))
        raise GitFailed(f"{names} had changes before this one that are not committed", advice="commit them by hand")


def _after_failure(
    repository: Repository, head: Head | None, made: str, error: PawlError | OSError
) -> tuple[str, tuple[str, ...]]:
    """HEAD is looked at, so that what is said of it is true."""
    try:
        now = repository.head()
    except (PawlError, OSError):
        told = "whether it moved cannot be told: see 'git log'" if made else "Pawl has not moved it"
        raise _failed(error, f"HEAD cannot be read; {told}") from error
    if made and now.commit == made:
        said = error.message if isinstance(error, PawlError) else str(error)
        return made, (f"committed, but the index is not up to date: {said}; 'git reset' brings it there",)
    raise _failed(error, _NOT_MOVED if head in (None, now) else "HEAD was moved, not by Pawl") from error


def _failed(error: PawlError | OSError, where: str) -> GitFailed:
    if isinstance(error, PawlError):
        return GitFailed(f"{error.message}; {where}", advice=error.advice)
    return GitFailed(f"{error}; {where}", advice="commit it by hand")


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
            or _plain(environment.get("EMAIL", "") if part == "email" else "")
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
