"""Bringing paths of a tree to given nodes, in an order that a crash at any instant can be recovered from.

New contents are staged in one folder at the root and made durable before the first visible step; every visible step is
one rename, unlink, mkdir, rmdir or chmod. The same code goes forward, goes back, and resumes.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from pawl.core.change import BlobReader, Node, NodeKind, parents
from pawl.core.errors import Conflicted, PathRefused
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import Seen, Tree, writer_lock
from pawl.workspace.paths import NEW_FILE, change_mode, depth, held, is_closed, nearest_folder, parent, write_all

STAGING_PREFIX = ".pawl-tmp-"
_KEY = "staging-key"
_KEY_BYTES = 32
_TRIES = 3


def staging_names(state: Path, number: int) -> tuple[str, ...]:
    """Where a promotion stages this entry, in the order in which they are tried.

    Each is a keyed hash of the entry's number, with a random key that lies in the state folder. Nobody else can tell
    such a name before it is used, and of what stands in a workspace only the folders of an interrupted entry are
    Pawl's own.
    """
    key = _key(state)
    words = (f"{number}.{attempt}".encode() for attempt in range(_TRIES))
    return tuple(f"{STAGING_PREFIX}{hmac.new(key, word, hashlib.sha256).hexdigest()[:32]}" for word in words)


def former_name(state: Path, number: int) -> str:
    """The name that an earlier version staged this entry under."""
    return f"{STAGING_PREFIX}{hashlib.sha256(os.fsencode(state)).hexdigest()[:8]}-{number}"


def _key(state: Path) -> bytes:
    """The key, made at the first use. It appears whole or not at all, whoever else makes one at the same time."""
    path = state / _KEY
    with suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == _KEY_BYTES:
            return key
    with writer_lock(state, str(path)):
        if not path.exists() or path.stat().st_size != _KEY_BYTES:
            _make_key(path)
    return path.read_bytes()


def _make_key(path: Path) -> None:
    made = path.with_name(f"{_KEY}-{secrets.token_hex(8)}")
    try:
        with held(os.open(made, NEW_FILE, 0o600)) as fd:
            os.write(fd, secrets.token_bytes(_KEY_BYTES))
            os.fsync(fd)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    with held(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
        os.fsync(folder)


SYNC_EACH = 16
"""Up to this many files each is flushed by itself; above, one flush of the file system is cheaper."""

_OF_THE_CONTENT = frozenset({"security.capability", "security.ima", "security.evm"})
"""Attributes that vouch for a content, or give it rights, and so do not pass on to another one."""

_WITH_MODES = frozenset({NodeKind.FILE, NodeKind.DIRECTORY})
_libc = ctypes.CDLL(None, use_errno=True)
_NO_REPLACE = 1


def flush_file_system(fd: int) -> None:
    """Waits until everything written to the file system of this descriptor is on the disk."""
    if _libc.syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _later(_: int) -> None:
    """One flush of the whole file system follows."""


@dataclass(frozen=True, slots=True)
class WriteStep:
    """One path on its way: where it stands now, and where it shall stand."""

    path: str
    now: Node | None
    goal: Node | None
    seen: Seen | None

    @property
    def removes(self) -> bool:
        return self.now is not None and (self.goal is None or self.goal.kind is not self.now.kind)

    @property
    def stages(self) -> bool:
        """Whether a new content or link has to be put in place."""
        if self.goal is None or self.goal.kind is NodeKind.DIRECTORY:
            return False
        if self.now is None or (self.now.kind, self.now.blob) != (self.goal.kind, self.goal.blob):
            return True
        # A mode belongs to the file, which may have another name outside the workspace.
        return self.now.mode != self.goal.mode and self.seen is not None and self.seen.links > 1


@dataclass(slots=True)
class Writer:
    tree: Tree
    blobs: BlobReader
    staging: Sequence[str]
    """Names that a folder for staging may have; the first that is free is taken."""
    modes: Mapping[str, int] = field(default_factory=dict)
    """The modes of what is opened meanwhile though the change set does not speak of it."""
    sync_each: int = SYNC_EACH

    def settle(self, steps: Iterable[WriteStep]) -> None:
        """Takes every step. Raises `OSError` or `Conflicted` half-way; the caller then goes back."""
        every = list(steps)
        todo = [step for step in every if step.now != step.goal]
        self._unlock(todo)
        staged = self._stage(todo)
        touched: set[str] = set()
        for step in sorted(todo, key=lambda step: depth(step.path), reverse=True):
            if step.removes:
                self._remove(step)
                touched.add(parent(step.path))
        for step in sorted(todo, key=lambda step: depth(step.path)):
            if step.goal is not None and step.goal.kind is NodeKind.DIRECTORY and (step.now is None or step.removes):
                self._make_folder(step.path)
                touched.add(parent(step.path))
        touched |= self._put_all(staged)
        self._finish(touched, self._wrong_modes(every))

    def sweep(self) -> None:
        """Removes what was staged. What somebody put under these names or into these folders since stays."""
        for name in self.staging:
            try:
                folder = self.tree.open_folder(name)
            except (FileNotFoundError, NotADirectoryError, PathRefused):
                continue
            with held(folder):
                for inner in os.listdir(folder):
                    with suppress(IsADirectoryError):
                        os.unlink(inner, dir_fd=folder)
            try:
                os.rmdir(name, dir_fd=self.tree.fd)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise

    def _stage(self, todo: list[WriteStep]) -> list[tuple[WriteStep, str]]:
        """Writes each new content; returns where it is staged."""
        wanted = [step for step in todo if step.stages]
        if not wanted:
            return []
        self.sweep()
        folder = self._staging_folder()
        one_by_one = len(wanted) <= self.sync_each
        with held(self.tree.open_folder(folder)) as fd:
            harden = os.fsync if one_by_one else _later
            for number, step in enumerate(wanted):
                self._stage_one(fd, str(number), step, harden)
            (os.fsync if one_by_one else flush_file_system)(fd)
        return [(step, f"{folder}/{number}") for number, step in enumerate(wanted)]

    def _staging_folder(self) -> str:
        for name in self.staging:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.tree.fd)
                return name
        # They were seen after a crash and planted. Nobody knows this one, and nobody sweeps it after another crash.
        self.staging = (*self.staging, f"{STAGING_PREFIX}{secrets.token_hex(16)}")
        os.mkdir(self.staging[-1], 0o700, dir_fd=self.tree.fd)
        return self.staging[-1]

    def _stage_one(self, folder: int, name: str, step: WriteStep, harden: Callable[[int], None]) -> None:
        assert step.goal is not None and step.goal.blob is not None
        data = self.blobs.get(step.goal.blob)
        if step.goal.kind is NodeKind.LINK:
            os.symlink(data, os.fsencode(name), dir_fd=folder)
            with suppress(PermissionError):
                os.chown(name, *self._ownership(step), dir_fd=folder, follow_symlinks=False)
            return
        with held(os.open(name, NEW_FILE, 0o600, dir_fd=folder)) as fd:
            write_all(fd, data)
            with suppress(PermissionError):
                os.fchown(fd, *self._ownership(step))
            if step.now is not None and not step.removes:
                self._copy_attributes(fd, step.path)
            os.fchmod(fd, step.goal.mode)
            harden(fd)

    def _ownership(self, step: WriteStep) -> tuple[int, int]:
        """A replaced node keeps its owner and group, as far as the user may give it to them; what root makes anew
        belongs to the folder's owner."""
        if step.seen is not None and not step.removes:
            return step.seen.owner if os.geteuid() == 0 else -1, step.seen.group
        folder = nearest_folder(self.tree, step.path)
        if os.geteuid() == 0:
            return folder.owner, folder.group
        return -1, folder.group if folder.mode & stat.S_ISGID else -1

    def _copy_attributes(self, fd: int, path: str) -> None:
        with suppress(OSError), self.tree.folder_of(path) as (folder, name), held(_reading(name, folder)) as old:
            for attribute in os.listxattr(old):
                if attribute not in _OF_THE_CONTENT:
                    with suppress(OSError):
                        os.setxattr(fd, attribute, os.getxattr(old, attribute))

    def _unlock(self, todo: list[WriteStep]) -> None:
        """Folders are opened for their owner where that is needed; each gets its mode back at the end."""
        if os.geteuid() == 0:
            return
        written = {parent(step.path) for step in todo if step.removes or step.now is None or step.stages}
        for path in sorted({above for step in todo for above in parents(step.path)}, key=depth):
            seen = self.tree.find(path)
            needed = 0o700 if path in written else 0o500
            if seen is not None and seen.kind is NodeKind.DIRECTORY and is_closed(seen, needed):
                self._chmod(path, seen.mode | 0o700)

    def _still(self, step: WriteStep) -> None:
        """The user may have saved the file since it was looked at: then it is theirs."""
        if not _same(self.tree.find(step.path), step.seen):
            raise _changed(step.path)

    def _remove(self, step: WriteStep) -> None:
        self._still(step)
        assert step.now is not None
        with _as_conflict(step.path), self.tree.folder_of(step.path) as (folder, name):
            if step.now.kind is not NodeKind.DIRECTORY:
                os.unlink(name, dir_fd=folder)
                return
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                if step.goal is not None:
                    raise Conflicted(f"{step.path!r} has other files in it", (step.path,)) from error
                # What the user put there meanwhile keeps its folder.

    def _make_folder(self, path: str) -> None:
        with _as_conflict(path), self.tree.folder_of(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)
            if os.geteuid() == 0:
                model = Seen.of(os.fstat(folder))
                os.chown(name, model.owner, model.group, dir_fd=folder, follow_symlinks=False)

    def _put_all(self, staged: list[tuple[WriteStep, str]]) -> set[str]:
        """Renames everything that was staged to its place; returns the folders that it went to."""
        if not staged:
            return set()
        with held(self.tree.open_folder(parent(staged[0][1]))) as fd:
            for step, place in staged:
                self._put(step, fd, place.rpartition("/")[2])
        return {parent(step.path) for step, _ in staged}

    def _put(self, step: WriteStep, staging: int, staged: str) -> None:
        if step.removes:
            if self.tree.find(step.path) is not None:
                raise Conflicted(f"{step.path!r} was created while it was being written", (step.path,))
        else:
            self._still(step)
        with _as_conflict(step.path), self.tree.folder_of(step.path) as (folder, name):
            if step.now is None or step.removes:
                _rename_to_nothing(staged, name, staging, folder)
            else:
                os.rename(staged, name, src_dir_fd=staging, dst_dir_fd=folder)

    def _wrong_modes(self, every: list[WriteStep]) -> dict[str, int]:
        """The paths that have another mode than they shall have, the deepest first."""
        wanted = {path: (mode, _WITH_MODES) for path, mode in self.modes.items()}
        for step in every:
            node = step.goal or step.now
            # A folder that was to go and could not, because the user put something into it, keeps its mode.
            if node is not None and (node.kind is NodeKind.DIRECTORY or (step.goal is not None and not step.stages)):
                wanted[step.path] = (node.mode, _WITH_MODES & {node.kind})
        wrong = {}
        for path in sorted(wanted, key=depth, reverse=True):
            mode, kinds = wanted[path]
            seen = self.tree.find(path)
            if seen is not None and seen.kind in kinds and seen.mode != mode:
                wrong[path] = mode
        return wrong

    def _finish(self, touched: set[str], modes: Mapping[str, int]) -> None:
        """Everything becomes durable; folders are flushed before their mode may close them."""
        one_by_one = len(touched) + len(modes) <= self.sync_each
        for path in sorted(touched - {""}) if one_by_one else ():
            with suppress(FileNotFoundError, NotADirectoryError, PathRefused), held(self.tree.open_folder(path)) as fd:
                os.fsync(fd)
        for path, mode in modes.items():
            self._chmod(path, mode, durable=one_by_one)
        self.sweep()
        (os.fsync if one_by_one else flush_file_system)(self.tree.fd)

    def _chmod(self, path: str, mode: int, *, durable: bool = True) -> None:
        with self.tree.folder_of(path) as (folder, name):
            change_mode(folder, name, mode)
            if not durable:
                return
            try:
                with held(_reading(name, folder)) as file:
                    os.fsync(file)
            except PermissionError:
                flush_file_system(folder)


def _reading(name: str, folder: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


@contextmanager
def _as_conflict(path: str) -> Iterator[None]:
    """The folder was taken away, or something was put in the place, since the path was looked at."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PathRefused) as error:
        raise _changed(path) from error


def _rename_to_nothing(staged: str, name: str, staging: int, folder: int) -> None:
    """Renames without replacing what somebody may have created in this instant."""
    words = (os.fsencode(staged), ctypes.c_int(folder), os.fsencode(name), ctypes.c_uint(_NO_REPLACE))
    if hasattr(_libc, "renameat2"):
        if _libc.renameat2(ctypes.c_int(staging), *words) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(number, os.strerror(number), name)
    os.rename(staged, name, src_dir_fd=staging, dst_dir_fd=folder)


def _changed(path: str) -> Conflicted:
    return Conflicted(f"{path!r} changed while it was being written", (path,), advice="your version stands; try again")


def _same(now: Seen | None, known: Seen | None) -> bool:
    """Whether nobody wrote the node between two looks. A change of its other names or of a folder's entries is none."""
    if now is None or known is None:
        return now is known
    if now.kind is NodeKind.DIRECTORY and known.kind is NodeKind.DIRECTORY:
        return True
    facts = [(seen.kind, seen.mode, seen.inode, seen.size, seen.modified_ns) for seen in (now, known)]
    return facts[0] == facts[1]
