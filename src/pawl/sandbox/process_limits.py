"""The limits of a command's whole process tree: what it uses by /proc, control groups, and ceilings of the kernel."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import re
import resource
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from subprocess import Popen

from pawl.core.execution import Limits
from pawl.core.lazy_dataclass import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROPORTIONAL = re.compile(rb"^Pss:\s+(\d+) kB$", re.MULTILINE)
_FILTERS = re.compile(rb"^Seccomp_filters:\s+(\d+)$", re.MULTILINE)
_FILTERED = re.compile(rb"^Seccomp:\s+2$", re.MULTILINE)
_GONE = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class TreeUse:
    processes: tuple[int, ...] = ()
    tasks: int = 0
    """Processes and their threads; this is what the kernel's own limits count."""
    resident_bytes: int = 0
    """Shared pages are counted once per process, so this is never too small."""
    private_bytes: int = 0


def children(pid: int) -> tuple[int, ...]:
    return tuple(child for task in _tasks(pid) for child in _children_of_task(pid, task))


def tree_use(root: int) -> TreeUse:
    """Counts what the descendants of `root` use, without `root` itself."""
    found: list[int] = []
    tasks = resident = private = 0
    waiting = list(children(root))
    while waiting:
        pid = waiting.pop()
        names = _tasks(pid)
        if not names:
            continue
        found.append(pid)
        tasks += len(names)
        total, shared = _pages(pid)
        resident += total
        private += total - shared
        waiting.extend(child for task in names for child in _children_of_task(pid, task))
    return TreeUse(tuple(found), tasks, resident * _PAGE, private * _PAGE)


def proportional_bytes(use: TreeUse) -> int:
    """The memory of the tree with shared pages counted once in all; slow, so only asked for in doubt."""
    total = 0
    for pid in use.processes:
        try:
            match = _PROPORTIONAL.search(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
        except (*_GONE, PermissionError):
            match = None
        resident, shared = _pages(pid)
        total += int(match[1]) * 1024 if match else (resident - shared) * _PAGE
    return total


def filter_count(pid: int) -> int:
    """How many system call filters the process runs under; kernels that do not count say one or none."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except _GONE:
        return 0
    match = _FILTERS.search(status)
    return int(match[1]) if match else int(_FILTERED.search(status) is not None)


def started_at(pid: int) -> int:
    """When the process started, in ticks since boot, 0 if unknown; with the number this names a process for good."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (*_GONE, PermissionError):
        return []


def _children_of_task(pid: int, task: str) -> Iterator[int]:
    try:
        yield from map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
    except _GONE:
        return


def _pages(pid: int) -> tuple[int, int]:
    """Resident and, of those, shared pages."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (*_GONE, PermissionError):
        return 0, 0
    return int(fields[1]), int(fields[2])


_ENTRY_BYTES = 512
"""An empty file counts for this much, so that a flood of them is noticed too."""
_SMALLEST_STEP = 1 << 20
_LONGEST_SILENCE = 2.0
"""Seconds after which is counted even when the free space did not shrink: others may have freed some."""


class DiskWatch:
    """Tells when a command has stored more below a folder than it may."""

    def __init__(self, folder: str, limit_bytes: int) -> None:
        self._folder = folder
        self._limit = limit_bytes
        # File systems lag behind by a tick at most, and the sandbox takes longer than that to come up.
        self._since = time.time_ns()
        self._next_count = time.monotonic() + _LONGEST_SILENCE
        self._step = self._trigger = max(_SMALLEST_STEP, limit_bytes // 8)
        self._before = os.statvfs(folder)

    def exceeded(self, processes: Iterable[int] = ()) -> bool:
        """Whether these processes have stored too much, also in files that have no name any more."""
        now = time.monotonic()
        shrunk = self._shrunk()
        if shrunk < self._trigger and now < self._next_count:
            return False
        size = stored_bytes(self._folder, self._since) + nameless_bytes(processes)
        after = time.monotonic()
        self._trigger = shrunk + self._step
        self._next_count = after + max(_LONGEST_SILENCE, 20 * (after - now))
        return size > self._limit

    def _shrunk(self) -> int:
        """How much less the file system has free now, in bytes or in entries."""
        before, now = self._before, os.statvfs(self._folder)
        space = before.f_bavail * before.f_frsize - now.f_bavail * now.f_frsize
        return max(space, (before.f_favail - now.f_favail) * _ENTRY_BYTES)


def stored_bytes(folder: str, since: int = 0) -> int:
    """The disk space of everything below a folder that was changed since a moment.

    The time of change is one that no command can set. Links are not followed; a file with two names counts once.
    """
    total = 0
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(info.st_mode):
                        waiting.append(entry.path)
                    if info.st_ctime_ns >= since and (info.st_dev, info.st_ino) not in seen:
                        total += max(info.st_blocks * 512, _ENTRY_BYTES)
                        if info.st_nlink > 1:
                            seen.add((info.st_dev, info.st_ino))
        except OSError:
            # The command is still running: what it removes or locks meanwhile is not counted.
            continue
    return total


def nameless_bytes(processes: Iterable[int]) -> int:
    """The space of files that were removed while a process still has them open."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        try:
            with os.scandir(f"/proc/{process}/fd") as entries:
                for entry in entries:
                    info = os.stat(entry.path)
                    if info.st_nlink == 0 and stat.S_ISREG(info.st_mode):
                        sizes[info.st_dev, info.st_ino] = info.st_blocks * 512
        except OSError:
            continue
    return sum(sizes.values())


_MOUNT = Path("/sys/fs/cgroup")
_PREFIX = "pawl"
_LAUNCHERS = 3
"""The processes around the command that are born into a version 1 group with it."""
_REMOVALS = 500
_Start = Callable[[], Popen[bytes]]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The folders in which this process may make groups, one per controller."""

    version: int
    folders: Mapping[str, Path]


def find_hierarchy(mount: Path = _MOUNT, membership: str | None = None) -> Hierarchy | None:
    """Below the groups this process is in, so that limits set on Pawl itself stay in force."""
    text = Path("/proc/self/cgroup").read_text() if membership is None else membership
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    folders: dict[str, Path] = {}
    for controller in ("pids", "memory"):
        if controller in paths:
            inside = mount / controller / paths[controller].lstrip("/")
            folder = inside if inside.is_dir() else mount / controller
            if os.access(folder / "tasks", os.W_OK):
                folders[controller] = folder
    if folders:
        return Hierarchy(1, folders)
    return _find_unified(mount, paths.get("", ""))


def _find_unified(mount: Path, path: str) -> Hierarchy | None:
    """A group that holds processes cannot give controllers to groups below it, so its parent is looked at."""
    if path in ("", "/"):
        return None
    parent = (mount / path.lstrip("/")).parent
    try:
        offered = (parent / "cgroup.subtree_control").read_text().split()
    except OSError:
        return None
    if not os.access(parent / "cgroup.procs", os.W_OK):
        return None
    folders: dict[str, Path] = {name: parent for name in ("pids", "memory") if name in offered}
    return Hierarchy(2, folders) if folders else None


class Group:
    """A control group that one command at a time is put into and, where groups take threads, a thread in it.

    Moving a process into a group can take ten milliseconds. Version 1 groups take single threads, so a command is born
    in its group when a thread that already sits there starts it. The first command does not wait for that thread: it is
    moved while it stands at its gate, as every command is with version 2.
    """

    def __init__(self, hierarchy: Hierarchy, name: str) -> None:
        self._version = hierarchy.version
        self._folders = {controller: folder / name for controller, folder in hierarchy.folders.items()}
        for folder in self._folders.values():
            folder.mkdir(exist_ok=True)
        self._orders: queue.SimpleQueue[tuple[_Start, Future[Popen[bytes]]] | None] = queue.SimpleQueue()
        self._seated: Future[None] = Future()
        self._thread: threading.Thread | None = None
        self._is_born_inside = False
        if hierarchy.version == 1:
            self._thread = threading.Thread(target=self._serve, name="pawl-launcher", daemon=True)
            self._thread.start()

    def limit(self, limits: Limits) -> None:
        memory = "memory.limit_in_bytes" if self._version == 1 else "memory.max"
        self._write("pids", "pids.max", limits.processes + (_LAUNCHERS if self._version == 1 else 0))
        self._write("memory", memory, limits.memory_bytes)

    def start(self, start: _Start) -> Popen[bytes]:
        self._is_born_inside = self._seated.done() and self._seated.exception() is None
        if not self._is_born_inside:
            return start()
        answer: Future[Popen[bytes]] = Future()
        self._orders.put((start, answer))
        return answer.result()

    def admit(self, pid: int) -> None:
        """Puts the command into the group before it starts; where that fails, the tree is still watched."""
        with contextlib.suppress(OSError):
            if self._thread is not None:
                self._seated.result()
            if not self._is_born_inside:
                for controller in self._folders if self._version == 1 else list(self._folders)[:1]:
                    self._write(controller, "cgroup.procs", pid)

    def out_of_memory_kills(self) -> int:
        name = "memory.oom_control" if self._version == 1 else "memory.events"
        folder = self._folders.get("memory")
        if folder is None:
            return 0
        with contextlib.suppress(OSError):
            for line in (folder / name).read_text().splitlines():
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count)
        return 0

    def close(self) -> None:
        """Waits a moment for a thread that is on its way out: a group is removed only when it is empty."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join(timeout=5)
        pause = threading.Event()
        for folder in self._folders.values():
            for _ in range(_REMOVALS):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                pause.wait(0.001)

    def _write(self, controller: str, name: str, value: int) -> None:
        if controller in self._folders:
            (self._folders[controller] / name).write_text(str(value))

    def _serve(self) -> None:
        """Takes its own thread into the group; what that starts is born there."""
        try:
            for controller in self._folders:
                self._write(controller, "tasks", threading.get_native_id())
        except OSError as error:
            self._seated.set_exception(error)
            return
        self._seated.set_result(None)
        while (order := self._orders.get()) is not None:
            start, answer = order
            try:
                answer.set_result(start())
            except OSError as error:
                answer.set_exception(error)


class GroupPool:
    """Lends a group to each running command and keeps it for the next one."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        self._hierarchy = hierarchy
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._free: list[Group] = []
        self._all: list[Group] = []
        self._owner = os.getpid()
        weakref.finalize(self, _close_all, self._all, self._owner)
        if hierarchy is not None:
            remove_leftovers(hierarchy)

    @contextlib.contextmanager
    def lent(self, limits: Limits) -> Iterator[Group | None]:
        """A group with these limits set, or None where this process cannot make groups."""
        group = self._take(limits)
        try:
            yield group
        finally:
            if group is not None:
                with self._lock:
                    self._free.append(group)

    def _take(self, limits: Limits) -> Group | None:
        # After a fork the launcher threads are gone; the child goes without groups.
        if self._hierarchy is None or self._owner != os.getpid():
            return None
        with self._lock:
            group = self._free.pop() if self._free else None
        try:
            if group is None:
                name = f"{_PREFIX}-{self._owner}-{started_at(self._owner)}-{next(self._numbers)}"
                group = Group(self._hierarchy, name)
                self._all.append(group)
            group.limit(limits)
        except OSError:
            return None
        return group


_POOLS: dict[int, GroupPool] = {}
_MAKING = threading.Lock()


def process_pool() -> GroupPool:
    """The one pool of this process, shared by every sandbox in it: a group may be a thread as well."""
    with _MAKING:
        pool = _POOLS.get(os.getpid())
        if pool is None:
            pool = _POOLS[os.getpid()] = GroupPool(find_hierarchy())
        return pool


def remove_leftovers(hierarchy: Hierarchy) -> None:
    """Removes the groups of processes that were killed before they could do it."""
    for folder in set(hierarchy.folders.values()):
        for group in folder.glob(f"{_PREFIX}-*-*-*"):
            _, pid, started, _ = group.name.split("-", 3)
            if pid.isdigit() and str(started_at(int(pid))) != started:
                with contextlib.suppress(OSError):
                    group.rmdir()


def _close_all(groups: list[Group], owner: int) -> None:
    if owner == os.getpid():
        for group in groups:
            group.close()


_OPEN_FILES = 4096
_NAMESPACED_COUNT = (5, 14)
"""Since this kernel RLIMIT_NPROC counts per user namespace; before, it counted everything the user runs."""


def set_ceilings(pid: int, limits: Limits, *, namespaced: bool) -> None:
    """Lowers the limits of one process; their number only in a user namespace of its own."""
    ceilings = {
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_DATA: limits.memory_bytes,
    }
    if namespaced and kernel_version() >= _NAMESPACED_COUNT:
        ceilings[resource.RLIMIT_NPROC] = limits.processes
    for which, value in ceilings.items():
        _, hard = resource.prlimit(pid, which)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, which, (most, most))


def kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()) or 0)
