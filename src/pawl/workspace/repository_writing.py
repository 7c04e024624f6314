"""Writes objects, branches and the index into a repository by git's own file protocols, without git.

Objects come first and are reachable from nothing; the index and the branch are replaced under their lock files, which
exist only for the moment of replacing. A crash leaves objects that git clears away, or a lock file that git names.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pawl.core.change import Kind
from pawl.core.errors import GitFailed, NotFound
from pawl.workspace.git_config import is_true
from pawl.workspace.repository import Head, Repository
from pawl.workspace.tree import Seen, Tree

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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
            raise GitFailed("the index was changed meanwhile", advice="try again when no other git works here")
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
        with suppress(OSError, GitFailed):
            _append(repository.own, "logs/HEAD", line)
            if head.branch:
                _append(repository.common, f"logs/{head.branch}", line)


def _expect(repository: Repository, head: Head) -> None:
    if repository.head() != head:
        raise GitFailed("HEAD was moved by another git meanwhile", advice="try again when no other git works here")


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
                f"'{path}.lock' is there: another git works in this repository, or was killed",
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
    fd = os.open(name, _NEW, mode, dir_fd=folder)
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
            if Seen.of(os.fstat(fd)).kind is Kind.FILE:
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
        elif seen.kind is not Kind.DIRECTORY:
            raise NotFound(f"'.git/{made}' is no folder", advice="see 'git fsck'")
    fd = tree.open_folder(path)
    try:
        yield fd
    finally:
        os.close(fd)
