"""The process that confines a command by Landlock and outlives it by a moment.

Runs as a script of its own, on the standard library alone, because a filter must be loaded between fork and exec and
only a process with a single thread may do so in Python. It stays unconfined, adopts every descendant of the command,
and ends them all when the command ends, when the gate is closed, or when Pawl dies, which closes the gate too.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import errno
import json
import os
import platform
import select
import signal
import stat
import struct
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CAPSET = {"x86_64": 126, "aarch64": 91}
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_CAPABILITIES = 64
_NO_GO, _NOT_EXECUTABLE, _NOT_FOUND = 125, 126, 127

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_EVERYTHING = (1 << 15) - 1
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 when it has none or does not use it."""
    return max(0, int(_libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def main() -> NoReturn:
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        order: dict[str, Any] = json.load(file)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    command = os.fork()
    if command == 0:
        _become_command(order, parent)
    status = _follow(command)
    _sweep()
    if status is None:
        # Nobody waits for the answer; when Pawl is dead, nobody else removes this.
        _remove(order["private"])
        os._exit(_NO_GO)
    # As shells do: a signal becomes 128 and its number.
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _become_command(order: dict[str, Any], parent: int) -> NoReturn:
    try:
        _prepare(order, parent)
        os.write(1, b"R")
        if os.read(0, 1) != b"\n":
            os._exit(_NO_GO)
        os.dup2(3, 0)
        os.close(3)
    except OSError as error:
        os.write(2, f"landlock: {error.strerror or error}: {error.filename}\n".encode())
        os._exit(1)
    try:
        os.execvpe(order["argv"][0], order["argv"], order["environment"])
    except OSError as error:
        os.write(2, f"pawl: {order['argv'][0]}: {error.strerror}\n".encode("utf-8", "backslashreplace"))
        os._exit(_NOT_FOUND if error.errno == errno.ENOENT else _NOT_EXECUTABLE)


def _prepare(order: dict[str, Any], parent: int) -> None:
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(_NO_GO)
    # Python ignores these two; a command expects them to work.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.dup2(order["pipe"] or _given(base64.b64decode(order["given"])), 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    os.chdir(order["directory"])
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _restrict_files(order)
    _drop_capabilities()
    _load_filter(base64.b64decode(order["filter"]))


def _given(data: bytes) -> int:
    """A descriptor of the command's standard input."""
    if not data:
        return os.open("/dev/null", os.O_RDONLY)
    file = os.memfd_create("given")
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _restrict_files(order: dict[str, Any]) -> None:
    version = landlock_version()
    handled = _EVERYTHING | (_IOCTL if version >= 5 else 0)
    ports = 3 if version >= 4 and not order["network"] else 0
    scope = 3 if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, ports, scope)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for path in order["readable"]:
        _allow(rules, path, _READ)
    for path in order["devices"]:
        _allow(rules, path, _READ | _WRITE_FILE | _TRUNCATE)
    for path in order["writable"]:
        _allow(rules, path, handled & ~(_MAKE_CHAR | _MAKE_BLOCK))
    _call(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(file).st_mode):
        rights &= _ON_FILES
    _call(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(1), struct.pack("=Qi", rights, file), ctypes.c_uint32(0))
    os.close(file)


def _drop_capabilities() -> None:
    _libc.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _call(_CAPSET[platform.machine()], struct.pack("=Ii", 0x20080522, 0), bytes(24))


def _load_filter(program: bytes) -> None:
    class FilterProgram(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    steps = ctypes.create_string_buffer(program, len(program))
    _prctl(_PR_SET_SECCOMP, 2, ctypes.byref(FilterProgram(len(program) // 8, ctypes.addressof(steps))))


def _call(number: int, *arguments: Any) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"system call {number}")
    return result


def _prctl(option: int, *arguments: Any) -> None:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    if _libc.prctl(option, *padded) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"prctl {option}")


def _follow(command: int) -> int | None:
    """How the command ended, or None when the gate was closed first; reaps whatever ends meanwhile."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    poll = select.poll()
    poll.register(0, 0)
    poll.register(woken, select.POLLIN)
    while True:
        for pid, status in _reap():
            if pid == command:
                return status
        events = dict(poll.poll())
        if 0 in events:
            return None
        os.read(woken, 4096)


def _sweep() -> None:
    """Ends every descendant. They are stopped first, because a stopped process cannot start another one."""
    signal.set_wakeup_fd(-1)
    while descendants := set(_descendants(os.getpid())):
        stopped: set[int] = set()
        while fresh := descendants - stopped:
            _signal_all(fresh, signal.SIGSTOP)
            stopped |= fresh
            descendants = set(_descendants(os.getpid()))
        _signal_all(stopped, signal.SIGKILL)
        for _ in _reap():
            pass
        select.select([], [], [], 0.001)


def _remove(folder: str) -> None:
    # Imported only here, because it takes longer to import than everything else together.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _reap() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children = file.read().split()
            for child in map(int, children):
                yield child
                yield from _descendants(child)


if __name__ == "__main__":
    main()
