"""Control groups: where this process may make them, they bound the memory and the process count of a whole tree.

Moving a process into a group can take ten milliseconds. Version 1 groups take single threads, so a command is born in
its group when a thread that already sits there starts it. The first command does not wait for that thread: it is moved
while it stands at its gate, as every command is with version 2, and quickly, because the thread has just been moved.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import resource
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from types import MappingProxyType

from pawl.core.execution import Limits
from pawl.sandbox.usage import started_at

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
    """One group, used by one command at a time."""

    def __init__(self, hierarchy: Hierarchy, name: str) -> None:
        self._version = hierarchy.version
        self._folders = {controller: folder / name for controller, folder in hierarchy.folders.items()}
        for folder in self._folders.values():
            folder.mkdir(exist_ok=True)

    def limit(self, limits: Limits) -> None:
        memory = "memory.limit_in_bytes" if self._version == 1 else "memory.max"
        self._write("pids", "pids.max", limits.processes + (_LAUNCHERS if self._version == 1 else 0))
        self._write("memory", memory, limits.memory_bytes)

    def seat(self, thread: int) -> None:
        """Takes in one thread; what it starts is born in the group."""
        for controller in self._folders:
            self._write(controller, "tasks", thread)

    def admit(self, pid: int) -> None:
        """Takes in a process that has not yet started others."""
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

    def remove(self) -> None:
        """Waits a moment for a thread that is on its way out: a group is removed only when it is empty."""
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


class GroupSeat:
    """A group and, where groups take threads, the thread in it that starts the commands."""

    def __init__(self, hierarchy: Hierarchy, name: str) -> None:
        self._group = Group(hierarchy, name)
        self._orders: queue.SimpleQueue[tuple[_Start, Future[Popen[bytes]]] | None] = queue.SimpleQueue()
        self._seated: Future[None] = Future()
        self._thread: threading.Thread | None = None
        self._is_born_inside = False
        if hierarchy.version == 1:
            self._thread = threading.Thread(target=self._serve, name="pawl-launcher", daemon=True)
            self._thread.start()

    def limit(self, limits: Limits) -> None:
        self._group.limit(limits)

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
                self._group.admit(pid)

    def out_of_memory_kills(self) -> int:
        return self._group.out_of_memory_kills()

    def close(self) -> None:
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join(timeout=5)
        self._group.remove()

    def _serve(self) -> None:
        try:
            self._group.seat(threading.get_native_id())
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
    """Lends a seat to each running command and keeps it for the next one."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        self._hierarchy = hierarchy
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._free: list[GroupSeat] = []
        self._all: list[GroupSeat] = []
        self._owner = os.getpid()
        weakref.finalize(self, _close_all, self._all, self._owner)
        if hierarchy is not None:
            remove_leftovers(hierarchy)

    @contextlib.contextmanager
    def seat(self, limits: Limits) -> Iterator[GroupSeat | None]:
        """A seat with these limits set, or None where this process cannot make groups."""
        seat = self._take(limits)
        try:
            yield seat
        finally:
            if seat is not None:
                with self._lock:
                    self._free.append(seat)

    def _take(self, limits: Limits) -> GroupSeat | None:
        # After a fork the launcher threads are gone; the child goes without groups.
        if self._hierarchy is None or self._owner != os.getpid():
            return None
        with self._lock:
            seat = self._free.pop() if self._free else None
        try:
            if seat is None:
                name = f"{_PREFIX}-{self._owner}-{started_at(self._owner)}-{next(self._numbers)}"
                seat = GroupSeat(self._hierarchy, name)
                self._all.append(seat)
            seat.limit(limits)
        except OSError:
            return None
        return seat


_POOLS: dict[int, GroupPool] = {}
_MAKING = threading.Lock()


def process_pool() -> GroupPool:
    """The one pool of this process, shared by every sandbox in it: a seat is a thread and a group."""
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
            if pid.isdigit() and started_at(int(pid)) != started:
                with contextlib.suppress(OSError):
                    group.rmdir()


def _close_all(seats: list[GroupSeat], owner: int) -> None:
    if owner == os.getpid():
        for seat in seats:
            seat.close()


_OPEN_FILES = 4096
_NAMESPACED_COUNT = (5, 14)
"""Since this kernel RLIMIT_NPROC counts per user namespace; before, it counted everything the user runs."""


def set_ceilings(pid: int, limits: Limits) -> None:
    ceilings = {
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_DATA: limits.memory_bytes,
    }
    for which, value in MappingProxyType(ceilings).items():
        _lower(pid, which, value)


def set_process_ceiling(pid: int, limits: Limits) -> None:
    """Holds for a command in a user namespace of its own; the kernel exempts the superuser."""
    if kernel_version() >= _NAMESPACED_COUNT:
        _lower(pid, resource.RLIMIT_NPROC, limits.processes)


def kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()) or 0)


def _lower(pid: int, which: int, value: int) -> None:
    _, hard = resource.prlimit(pid, which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.prlimit(pid, which, (value, value))
