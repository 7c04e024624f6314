"""Reading a file that somebody else may have put there: a regular one of a bounded size, or an error at once. And one
writer at a time, across processes.

A FIFO would not answer, a device would not end, and either may stand behind any name of a workspace. A `Tree` is looked
at through its descriptor: no symbolic link leads out of it, whoever swaps what meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pawl.core.change import BlobStore, Node, NodeKind, blob_digest
from pawl.core.errors import Conflicted, NotAFile, NotFound, PathRefused, StoreBusy, TooLarge, UsageError
from pawl.core.lazy_dataclass import dataclass

LARGEST_TEXT = 4 << 20
LARGEST_DATA = 64 << 20
_PIPES = "/dev/fd/"
"""The shell's form of `<(command)`: only who calls can name one, and means to wait for it."""


@contextmanager
def opened(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[BinaryIO]:
    """The regular file at a path, or a pipe that the shell made; `OSError` for anything else."""
    piped = os.fspath(path).startswith(_PIPES)
    flags = (
        os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW) | (0 if piped else os.O_NONBLOCK)
    )
    descriptor = os.open(path, flags)
    if not piped and not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    with open(descriptor, "rb") as file:
        yield file


def read_bytes(path: str | os.PathLike[str], most: int = LARGEST_TEXT, *, follow: bool = True) -> bytes:
    """The whole content; `OSError` for more than that."""
    with opened(path, follow=follow) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], most: int = LARGEST_TEXT, *, follow: bool = True) -> str:
    """The whole content as UTF-8; `UnicodeDecodeError` for what is not."""
    return read_bytes(path, most, follow=follow).decode("utf-8")


LOCK_SECONDS = 10.0
"""How long to wait for a holder. A promotion of thousands of files takes less."""


@contextmanager
def writer_lock(folder: Path, workspace: str, *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Holds the workspace's lock; `StoreBusy` with the holder's process number when it does not come free in time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
    fd = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        acquire(fd, f"is writing {workspace!r}", seconds)
        yield
    finally:
        os.close(fd)


@contextmanager
def place_in_line(folder: Path) -> Iterator[Callable[[], bool]]:
    """Takes the last place; the value tells whether nobody is before it any more, and is asked again and again.
    Who dies leaves the line, and one that has stopped asking is passed over."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = folder / f"new.{os.getpid()}.{threading.get_ident()}"
    fd = os.open(own, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        number = max(_places(folder), default=0) + 1
        # Locked before it has its name, so that nobody takes it for one that was left.
        while not _linked(own, folder / str(number)):
            number += 1
        own.unlink()

        def is_next() -> bool:
            os.utime(fd)
            return not any(_is_held(folder / str(one)) for one in _places(folder) if one < number)

        yield is_next
        (folder / str(number)).unlink(missing_ok=True)
    finally:
        os.close(fd)


_ASKED_SECONDS = 10.0
"""Whoever has not asked for so long is stopped, or has had his turn."""


def _places(folder: Path) -> list[int]:
    return [int(one) for one in os.listdir(folder) if one.isdigit()]


def _linked(file: Path, name: Path) -> bool:
    with suppress(FileExistsError):
        os.link(file, name)
        return True
    return False


def _is_held(place: Path) -> bool:
    """Whether its owner asks for his turn; the place of one that is gone is taken away."""
    try:
        fd = os.open(place, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        place.unlink(missing_ok=True)
    except BlockingIOError:
        return time.time() - os.fstat(fd).st_mtime < _ASKED_SECONDS
    finally:
        os.close(fd)
    return False


def acquire(fd: int, works: str, seconds: float) -> None:
    """Locks the file for this process, which is then named in it; `StoreBusy` where another one has it for longer."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                holder = os.pread(fd, 20, 0).decode("ascii", "replace") or "unknown"
                raise StoreBusy(
                    f"another Pawl (process {holder}) {works}",
                    advice="wait until it has finished and try again",
                ) from error
            pause.wait(0.02)


def write_private(path: Path, text: str) -> None:
    """Replaces a file of the user's alone as a whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text, "utf-8")
    os.replace(temporary, path)


def write_given(path: Path, data: bytes, workspace: str, *, private: bool = False) -> None:
    """Writes a file that the user has named, a private one only where there is none. No link of the workspace leads it
    elsewhere, and nothing that stands there makes it wait."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_EXCL if private else os.O_TRUNC)
    leads = path.is_symlink() or not passes(os.path.realpath(path.parent), workspace)
    try:
        if leads and passes(os.path.abspath(path), workspace):
            raise OSError(errno.ELOOP, "a link of the workspace leads elsewhere")
        with open(os.open(path, flags, 0o600 if private else 0o666), "wb") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {error.strerror}", advice="name another file") from error


def workspace_key(workspace: str) -> str:
    """The name of what is kept of a workspace."""
    return hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:32]


LARGEST_BLOB = 256 << 20

_OPENAT2 = 437
_RESOLVE = 0x02 | 0x04 | 0x08  # no magic links, no symbolic links, beneath
_LONGEST_PART = 1000  # characters, so below the kernel's 4,096 bytes however they are encoded
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """The status of a path, without reading it. `kind` is None for a device, FIFO or socket."""

    kind: NodeKind | None
    mode: int
    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    device: int
    owner: int
    group: int
    whiteout: bool = False
    """A device numbered 0:0, with which an overlay says that nothing stands here."""
    links: int = 1
    """How many names a file has."""

    @classmethod
    def of(cls, status: os.stat_result) -> Seen:
        kinds = {stat.S_IFREG: NodeKind.FILE, stat.S_IFLNK: NodeKind.LINK, stat.S_IFDIR: NodeKind.DIRECTORY}
        return cls(
            kinds.get(stat.S_IFMT(status.st_mode)),
            stat.S_IMODE(status.st_mode),
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_dev,
            status.st_uid,
            status.st_gid,
            stat.S_ISCHR(status.st_mode) and status.st_rdev == 0,
            status.st_nlink if stat.S_ISREG(status.st_mode) else 1,
        )


class Tree:
    """A folder held open by its descriptor."""

    def __init__(self, root: str | Path) -> None:
        self.root = os.fspath(root)
        self.fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_folder(self, path: str) -> int:
        """A descriptor of the folder; the caller closes it. A symbolic link anywhere in the path is refused."""
        try:
            return _open_beneath(self.fd, path)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise PathRefused(
                    f"{path!r} passes through a symbolic link", advice="name the file by its real path"
                ) from error
            raise

    @contextmanager
    def folder_of(self, path: str) -> Iterator[tuple[int, str]]:
        """The parent folder's descriptor and the last name of the path."""
        above, _, name = path.rpartition("/")
        fd = self.open_folder(above)
        try:
            yield fd, name
        finally:
            os.close(fd)

    def look(self, path: str) -> Seen | None:
        """The status of the path, not following a link; None when nothing is there."""
        try:
            with self.folder_of(path) as (fd, name):
                return Seen.of(os.stat(name, dir_fd=fd, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def find(self, path: str) -> Seen | None:
        """Like `look`, but what lies behind a symbolic link is not there."""
        try:
            return self.look(path)
        except PathRefused:
            return None

    def names(self, path: str = "") -> list[str]:
        fd = self.open_folder(path)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    def kinds(self, path: str = "") -> dict[str, NodeKind | None]:
        """Every name in a folder with what it is, as far as the folder itself tells."""
        fd = self.open_folder(path)
        try:
            with os.scandir(fd) as found:
                return {entry.name: kind_of(entry) for entry in found}
        finally:
            os.close(fd)

    def entries(self, path: str = "") -> dict[str, Seen]:
        """Every name in a folder with a look at it, sorted."""
        fd = self.open_folder(path)
        found: dict[str, Seen] = {}
        try:
            for name in sorted(os.listdir(fd)):
                with suppress(FileNotFoundError):
                    found[name] = Seen.of(os.stat(name, dir_fd=fd, follow_symlinks=False))
        finally:
            os.close(fd)
        return found

    def node(self, path: str, blobs: BlobStore | None = None) -> Node | None:
        """The node at the path with the name of its content, which is kept when `blobs` are given."""
        seen = self.look(path)
        if seen is None:
            return None
        match seen.kind:
            case NodeKind.DIRECTORY:
                return Node.directory(seen.mode)
            case NodeKind.LINK:
                target = self.link_target(path)
                return Node.link(blobs.put(target) if blobs else blob_digest(target))
            case NodeKind.FILE:
                return self._file_node(path, blobs)
        raise NotAFile(f"{path!r} is a device, FIFO or socket", advice="Pawl works on files, folders and links only")

    def _file_node(self, path: str, blobs: BlobStore | None) -> Node:
        if blobs is not None:
            data, seen = self.read_with(path, LARGEST_BLOB)
            return Node.file(blobs.put(data), seen.mode)
        fd = self.open_file(path)
        hasher = hashlib.sha256()
        with os.fdopen(fd, "rb", buffering=0) as file:
            seen = Seen.of(os.fstat(file.fileno()))
            while chunk := file.read(1 << 20):
                hasher.update(chunk)
        return Node.file(hasher.hexdigest(), seen.mode)

    def link_target(self, path: str) -> bytes:
        with self.folder_of(path) as (fd, name):
            return os.readlink(os.fsencode(name), dir_fd=fd)

    def read(self, path: str, limit: int = LARGEST_BLOB) -> bytes:
        return self.read_with(path, limit)[0]

    def read_with(self, path: str, limit: int) -> tuple[bytes, Seen]:
        """The content together with the look that belongs to it."""
        for _ in range(3):
            fd = self.open_file(path)
            with os.fdopen(fd, "rb", buffering=0) as file:
                before = Seen.of(os.fstat(fd))
                if before.size > limit:
                    raise TooLarge(
                        f"{path!r} has {before.size:,} bytes; the limit is {limit:,}",
                        advice="leave it out, for example with a line in .gitignore",
                    )
                data = file.readall() or b""
                if Seen.of(os.fstat(fd)) == before and len(data) == before.size:
                    return data, before
        raise Conflicted(f"{path!r} keeps changing while it is read", advice="stop what writes it and try again")

    def open_file(self, path: str) -> int:
        """A descriptor for reading the regular file; the caller closes it. Anything else is refused at once."""
        try:
            with self.folder_of(path) as (folder, name):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
                fd = os.open(name, flags, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(f"there is no file {path!r}", advice="check the spelling, or search for it") from error
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise PathRefused(f"{path!r} is a symbolic link", advice="name the file it points to") from error
            if error.errno == errno.ENXIO:
                raise NotAFile(f"{path!r} is a FIFO or socket", advice="Pawl reads regular files only") from error
            raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise NotAFile(f"{path!r} is not a regular file", advice="name a file, not a folder or device")
        return fd


def kind_of(entry: os.DirEntry[str]) -> NodeKind | None:
    if entry.is_symlink():
        return NodeKind.LINK
    if entry.is_dir(follow_symlinks=False):
        return NodeKind.DIRECTORY
    return NodeKind.FILE if entry.is_file(follow_symlinks=False) else None


def _open_beneath(root: int, path: str) -> int:
    if not path:  # not a duplicate: two who list it at a time would share one position
        return os.open(".", _FOLDER, dir_fd=root)
    *above, last = _parts(path)
    fd = os.dup(root) if above else root
    for part in above:
        try:
            inner = _open_part(fd, part)
        finally:
            os.close(fd)
        fd = inner
    try:
        return _open_part(fd, last)
    finally:
        if above:
            os.close(fd)


def _parts(path: str) -> Iterator[str]:
    """The path in pieces that the kernel takes: a path may be longer than what fits into one call."""
    while len(path) > _LONGEST_PART and (cut := path.rfind("/", 0, _LONGEST_PART)) > 0:
        yield path[:cut]
        path = path[cut + 1 :]
    yield path


def _open_part(root: int, path: str) -> int:
    # Without O_NOFOLLOW: that would call a link at the end "not a directory", where the resolve flags say "link".
    how = struct.pack("QQQ", _FOLDER & ~os.O_NOFOLLOW, 0, _RESOLVE)
    fd: int = _libc.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(root), os.fsencode(path), how, ctypes.c_size_t(len(how))
    )
    if fd >= 0:
        return fd
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG, errno.EAGAIN, errno.E2BIG):
        return _walk(root, path)
    raise OSError(number, os.strerror(number), path)


def _walk(root: int, path: str) -> int:
    """The same without openat2: one component at a time, never through a link."""
    fd = os.dup(root)
    for name in path.split("/"):
        if name in ("", ".", ".."):
            os.close(fd)
            raise PathRefused(f"{path!r} has the component {name!r}")
        try:
            inner = os.open(name, _FOLDER, dir_fd=fd)
        except NotADirectoryError as error:
            linked = stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
            raise OSError(errno.ELOOP if linked else errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
        finally:
            os.close(fd)
        fd = inner
    return fd


_MOST_LINKS = 40


def way_of(path: str) -> list[str]:
    """Every place that the kernel passes on its way to what the path names, each without links above it."""
    passed, left, at = [], path.split("/")[::-1], "/"
    links = 0
    while left:
        name = left.pop()
        at = os.path.dirname(at) if name == ".." else os.path.join(at, name) if name not in ("", ".") else at
        passed.append(at)
        if os.path.islink(at):
            links += 1
            if links > _MOST_LINKS:
                break
            target = os.readlink(at)
            at = "/" if target.startswith("/") else os.path.dirname(at)
            left += target.split("/")[::-1]
    return passed


def passes(path: str, folder: str) -> bool:
    """Whether the path, or a link on its way, lies in that folder."""
    places = (os.path.normpath(path), *way_of(path))
    return any(f"{place}/".startswith(f"{folder.rstrip('/')}/") for place in places)
