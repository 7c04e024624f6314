"""Confines a command by namespaces, a system call filter and limits, with an overlay or a copy as its workspace."""

from __future__ import annotations

import functools
import os
import platform
import select
import shutil
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from types import MappingProxyType

from pawl.core.errors import OverlayUnavailable, PawlError, SandboxUnavailable
from pawl.core.execution import Confinement, CopyView, Execution, Network, OverlayView, View
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table
from pawl.sandbox.process import (
    ALLOW_NAMESPACES,
    INSTALL_BUBBLEWRAP,
    MOVE_STATE,
    SHOW_PROCESSES,
    GatedSandbox,
    Launch,
    Launched,
    Programs,
    memory_file,
    piped,
    remedy_for,
)
from pawl.sandbox.process_limits import children, filter_count
from pawl.sandbox.visibility import (
    SYSTEM_FOLDERS,
    Layers,
    Root,
    Scenery,
    Surroundings,
    check_command,
    check_directory,
    command_environment,
    has_git_folder,
    is_below,
    linked_repository,
    readonly_roots,
    system_files,
    visible_path,
)


class Sockets(Enum):
    """Which sockets a command may open."""

    PRIVATE = "private"
    """Inside a network namespace of its own, or with the network allowed: local, IPv4, IPv6 and routing sockets.

    Routing is the one netlink protocol: programs list their addresses by it. The others are ways into the kernel.
    """
    INTERNET = "internet"
    """No namespaces, network allowed: no local sockets, because those of the machine could be connected to."""
    NONE = "none"
    """No namespaces, no network: socket pairs only."""


_UNIX, _IPV4, _IPV6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _SEQUENTIAL = 1, 2, 5
_ROUTING = 0
_FAMILIES = MappingProxyType(
    {
        Sockets.PRIVATE: (_UNIX, _NETLINK, _IPV4, _IPV6),
        Sockets.INTERNET: (_NETLINK, _IPV4, _IPV6),
        Sockets.NONE: (),
    }
)


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    column: int
    clone: int
    ioctl: int
    socket: int
    socketpair: int
    connect: int


_MACHINES = MappingProxyType(
    {
        "x86_64": _Machine(0xC000003E, 0, clone=56, ioctl=16, socket=41, socketpair=53, connect=42),
        "aarch64": _Machine(0xC00000B7, 1, clone=220, ioctl=29, socket=198, socketpair=199, connect=203),
    }
)

_CALLS = data_table("pawl.sandbox", "refused_calls.toml")
_REFUSED: Mapping[str, tuple[int, int | None]] = {name: (at[0], *at[1:], None)[:2] for name, at in _CALLS.items()}
_CLONE3 = 435
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: both can type into the terminal that Pawl runs in."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _AUDIT, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
_ALLOW, _KILL, _NOT_PERMITTED, _NOT_IMPLEMENTED = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction; `then` and `otherwise` name labels, empty for the next instruction."""

    code: int
    value: int
    then: str = ""
    otherwise: str = ""


@functools.cache
def filter_program(machine: str, sockets: Sockets) -> bytes:
    """The filter for this processor, as the kernel reads it."""
    numbers = _MACHINES.get(machine)
    if numbers is None:
        raise SandboxUnavailable(
            f"no system call filter is known for the processor {machine!r}",
            advice=f"run Pawl on one of {', '.join(_MACHINES)}",
        )
    return _assemble(list(_steps(numbers, sockets)))


def _steps(machine: _Machine, sockets: Sockets) -> Iterator[_Step | str]:
    yield _Step(_LOAD, _AUDIT)
    # A call through another calling convention has other numbers, so that no rule below would see it.
    yield _Step(_EQUAL, machine.audit, "", "kill")
    yield _Step(_LOAD, _NUMBER)
    if machine.column == 0:
        yield _Step(_AT_LEAST, _X32, "refuse", "")
    for pair in _REFUSED.values():
        number = pair[machine.column]
        if number is not None:
            yield _Step(_EQUAL, number, "refuse", "")
    # Its flags are behind a pointer; "not implemented" makes the C library fall back to clone.
    yield _Step(_EQUAL, _CLONE3, "unknown", "")
    yield _Step(_EQUAL, machine.clone, "clone", "")
    yield _Step(_EQUAL, machine.ioctl, "ioctl", "")
    yield _Step(_EQUAL, machine.socket, "socket", "")
    yield _Step(_EQUAL, machine.socketpair, "socketpair", "")
    if sockets is Sockets.NONE:
        yield _Step(_EQUAL, machine.connect, "refuse", "")
    yield _Step(_RETURN, _ALLOW)
    yield from _arguments(sockets)
    yield from ("allow", _Step(_RETURN, _ALLOW), "refuse", _Step(_RETURN, _NOT_PERMITTED))
    yield from ("unknown", _Step(_RETURN, _NOT_IMPLEMENTED), "kill", _Step(_RETURN, _KILL))


def _arguments(sockets: Sockets) -> Iterator[_Step | str]:
    """The rules that look at arguments."""
    yield from ("clone", _Step(_LOAD, _FIRST), _Step(_ANY_BIT, _NEW_NAMESPACES, "refuse", "allow"))
    yield from ("ioctl", _Step(_LOAD, _SECOND))
    yield from (_Step(_EQUAL, request, "refuse", "") for request in _TERMINAL_REQUESTS)
    yield _Step(_RETURN, _ALLOW)
    yield from ("socket", _Step(_LOAD, _FIRST))
    for family in _FAMILIES[sockets]:
        yield _Step(_EQUAL, family, {_UNIX: "allow", _NETLINK: "netlink"}.get(family, "type"), "")
    yield _Step(_RETURN, _NOT_PERMITTED)
    yield from ("netlink", _Step(_LOAD, _THIRD), _Step(_EQUAL, _ROUTING, "allow", "refuse"))
    # Raw sockets forge packets.
    yield from ("type", _Step(_LOAD, _SECOND), _Step(_AND, 0xF))
    yield from (_Step(_EQUAL, _STREAM, "allow", ""), _Step(_EQUAL, _DATAGRAM, "allow", "refuse"))
    yield from ("socketpair", _Step(_LOAD, _FIRST), _Step(_EQUAL, _UNIX, "", "refuse"))
    if sockets is not Sockets.PRIVATE:
        # A datagram pair could be connected anew to a socket of the machine; the other kinds stay joined.
        yield from (_Step(_LOAD, _SECOND), _Step(_AND, 0xF))
        yield from (_Step(_EQUAL, _STREAM, "allow", ""), _Step(_EQUAL, _SEQUENTIAL, "allow", "refuse"))
    yield _Step(_RETURN, _ALLOW)


def _assemble(items: list[_Step | str]) -> bytes:
    """Turns labels into the relative jumps that the kernel knows."""
    places: dict[str, int] = {}
    steps: list[_Step] = []
    for item in items:
        if isinstance(item, str):
            places[item] = len(steps)
        else:
            steps.append(item)
    code = bytearray()
    for index, step in enumerate(steps):
        then, otherwise = (places[label] - index - 1 if label else 0 for label in (step.then, step.otherwise))
        code += struct.pack("=HBBI", step.code, then, otherwise, step.value)
    return bytes(code)


HOME = "/home/agent"
GIVEN = "/run/given"
"""Where a command's standard input lies."""
_SMALL_STORE = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    workspace: str
    shown: str
    """The folder of this machine that stands for the workspace."""
    execution: Execution
    environment: Mapping[str, str]
    directory: str
    roots: tuple[Root, ...]
    home: str
    """The caller's own home: what is shown of it appears under the command's home too."""
    git_folder: bool = False
    repository: tuple[str, ...] = ()


def bubblewrap_arguments(profile: Profile, filter_file: int, given_file: int) -> list[str]:
    return [
        *_namespaces(profile.execution.network),
        *_environment(profile.environment),
        *_system(profile.execution.network),
        *_stores(profile.execution.limits.scratch_bytes),
        *_toolchains(profile.roots, profile.home),
        *_workspace(profile),
        *(("--file", str(given_file), GIVEN) if profile.execution.given else ()),
        # Last: from here on nothing can be made in the root, which is memory.
        *("--remount-ro", "/"),
        *("--chdir", profile.directory),
        *("--seccomp", str(filter_file)),
    ]


def _namespaces(network: Network) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns")
    if network is Network.ON:
        yield "--share-net"
    yield from ("--uid", str(os.getuid()), "--gid", str(os.getgid()))
    yield from ("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv")


def _environment(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        yield from ("--setenv", name, value)


@functools.cache
def _system(network: Network) -> tuple[str, ...]:
    return tuple(_system_folders()) + tuple(_system_configuration(network))


def _system_folders() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for folder in SYSTEM_FOLDERS:
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        elif os.path.isdir(folder):
            yield from ("--ro-bind", folder, folder)


def _system_configuration(network: Network) -> Iterator[str]:
    for path in system_files(network):
        # A link into /usr is made anew: it costs a tenth of a mount.
        if os.path.islink(path) and is_below(os.path.realpath(path), "/usr"):
            yield from ("--symlink", os.path.realpath(path), path)
        else:
            yield from ("--ro-bind-try", path, path)


def _stores(scratch: int) -> Iterator[str]:
    """Devices, processes and the three places to write to beside the workspace, all in bounded memory."""
    yield from ("--dev", "/dev", *_store("/dev/shm", _SMALL_STORE, "1777"), "--remount-ro", "/dev")
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from (*_store("/tmp", scratch, "1777"), *_store("/var/tmp", _SMALL_STORE, "1777"), "--dir", "/run")
    yield from _store(HOME, _SMALL_STORE, "0700")


def _store(path: str, size: int, mode: str) -> tuple[str, ...]:
    return ("--perms", mode, "--size", str(size), "--tmpfs", path)


def _toolchains(roots: Iterable[Root], home: str) -> Iterator[str]:
    for root in roots:
        yield from ("--ro-bind-try", root.source, root.path)
        if is_below(root.path, home) and not is_below(root.path, HOME):
            yield from ("--symlink", root.path, os.path.join(HOME, os.path.relpath(root.path, home)))


def _workspace(profile: Profile) -> Iterator[str]:
    worktree = profile.repository[:1]
    repositories = [os.path.dirname(os.path.dirname(folder)) for folder in worktree]
    for repository in repositories:
        yield from _store(repository, _SMALL_STORE, "0755")
    for part in profile.repository:
        yield from ("--ro-bind", part, part)
    yield from ("--bind", profile.shown, profile.workspace)  # which may lie in the folder of the repository
    for repository in repositories:
        yield from ("--remount-ro", repository)
    if profile.git_folder:
        yield from ("--ro-bind", f"{profile.shown}/.git", f"{profile.workspace}/.git")


_NO_OVERLAY = 97
_NO_GO = 125
# The folders are handed over as open files, so that no character in their names means anything to mount.
_MOUNT_SCRIPT = f"""\
mount=$1 target=$5 lower=/proc/self/fd/3
[ -z "$6" ] || lower=/proc/self/fd/6:$lower
"$mount" -t overlay overlay -o \
lowerdir=$lower,upperdir=/proc/self/fd/4,workdir=/proc/self/fd/5,userxattr,volatile "$target" \
3<"$2" 4<"$3" 5<"$4" 6<"${{6:-$2}}" || exit {_NO_OVERLAY}
shift 6
exec "$@"
"""
_GATE_SCRIPT = f'printf R; read -r go || exit {_NO_GO}; exec "$@" <"$0"'
_SETTLE_SECONDS = 10.0
_ROOTS_SECONDS = 5.0


class NamespaceSandbox(GatedSandbox):
    confinement = Confinement.NAMESPACES

    def __init__(self, surroundings: Surroundings, *, programs: Programs | None = None) -> None:
        super().__init__(surroundings)
        self._programs = programs or Programs.installed()
        self._around: dict[str, tuple[float, tuple[Root, ...], str]] = {}

    def _prepared(self, view: View, execution: Execution, stack: ExitStack) -> Launch:
        profile = self._profile(view, execution)
        if self._programs.bubblewrap is None:
            raise SandboxUnavailable("bubblewrap is not installed", advice=INSTALL_BUBBLEWRAP)
        given = execution.given
        filter_file = memory_file("filter", filter_program(platform.machine(), Sockets.PRIVATE), stack)
        given_file = memory_file("given", given, stack)
        arguments = bubblewrap_arguments(profile, filter_file, given_file)
        # By file and not on the command line, which every user of the machine can read.
        file = memory_file("arguments", os.fsencode("\0".join(arguments) + "\0"), stack)
        source = GIVEN if given else "/dev/null" if execution.pipe is None else f"/proc/self/fd/{execution.pipe}"
        inside = (self._programs.shell, "-c", _GATE_SCRIPT, source, *execution.argv)
        return Launch(
            words=[*self._mounting(view), self._programs.bubblewrap, "--args", str(file), "--", *inside],
            files=(filter_file, file, *((given_file,) if given else ()), *execution.files, *piped(execution)),
            disk_bytes={_written(view): execution.limits.disk_bytes},
        )

    def _profile(self, view: View, execution: Execution) -> Profile:
        """Everything about the run that can be known, and refused, before a process is started."""
        _check_view(view)
        layers = Layers(view)
        roots, path = self._roots_and_path(view.workspace)
        environment = command_environment(
            execution, self._surroundings.variables, home=HOME, temporary="/tmp", path=path
        )
        scenery = Scenery(layers, roots, environment["PATH"])
        directory = check_directory(scenery, execution.directory)
        check_command(scenery, execution.argv[0], directory)
        return Profile(
            workspace=view.workspace,
            shown=view.merged if isinstance(view, OverlayView) else view.copy,
            execution=execution,
            environment=environment,
            directory=directory,
            roots=roots,
            home=self._surroundings.home,
            git_folder=has_git_folder(layers) and not execution.writable_git,
            repository=linked_repository(layers),
        )

    def _roots_and_path(self, workspace: str) -> tuple[tuple[Root, ...], str]:
        """Looked up anew only now and then: toolchains come and go slowly."""
        expiry, roots, path = self._around.get(workspace, (0.0, (), ""))
        if time.monotonic() >= expiry:
            roots = readonly_roots(self._surroundings, workspace)
            path = visible_path(self._surroundings, workspace, roots)
            self._around[workspace] = (time.monotonic() + _ROOTS_SECONDS, roots, path)
        return roots, path

    def _mounting(self, view: View) -> Sequence[str]:
        if isinstance(view, CopyView):
            return ()
        if self._programs.unshare is None or self._programs.mount is None:
            raise OverlayUnavailable("unshare and mount are not installed", advice="install util-linux")
        _forget_mark(view.work)
        script = (self._programs.shell, "-c", _MOUNT_SCRIPT, "sh", self._programs.mount)
        folders = (view.workspace, view.upper, view.work, view.merged, view.masks)
        return (self._programs.unshare, "-Urm", "--", *script, *folders)

    def _root(self, launched: Launched) -> int:
        """bubblewrap's own child, once it is sure to die with bubblewrap.

        It asks the kernel for that right before it loads the filter, so one filter more than bubblewrap has is the
        proof.
        """
        poll = select.poll()
        poll.register(launched.exited, select.POLLIN)
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            found = children(launched.pid)
            if len(found) == 1 and filter_count(found[0]) > filter_count(launched.pid):
                launched.follow(found[0])
                return found[0]
            if poll.poll(1):
                break
        raise SandboxUnavailable("the sandbox cannot be followed in /proc", advice=SHOW_PROCESSES)

    def _explained(self, code: int, complaint: str) -> PawlError:
        said = complaint or f"it ended with code {code}"
        if code == _NO_OVERLAY:
            return OverlayUnavailable(f"the overlay could not be mounted: {said}", advice=MOVE_STATE)
        if complaint.startswith("unshare:"):
            # bubblewrap may be allowed what unshare is not, so a copy is still worth trying.
            return OverlayUnavailable(f"no place to mount the overlay: {said}", advice=ALLOW_NAMESPACES)
        return SandboxUnavailable(f"the sandbox could not be set up: {said}", advice=remedy_for(complaint))


def _written(view: View) -> str:
    return view.upper if isinstance(view, OverlayView) else view.copy


def _check_view(view: View) -> None:
    workspace = view.workspace
    if not os.path.isabs(workspace) or os.path.normpath(workspace) != workspace:
        raise SandboxUnavailable(f"not a resolved path: {workspace!r}", advice="resolve the workspace's path first")
    if workspace == "/" or any(is_below(workspace, folder) for folder in ("/proc", "/sys", "/dev/pts")):
        raise SandboxUnavailable(f"{workspace!r} cannot be a workspace", advice="work in a folder of your own")
    if isinstance(view, OverlayView):
        _check_overlay(view)
    elif not os.path.isdir(view.copy):
        raise SandboxUnavailable(f"there is no copy at {view.copy!r}", advice="make a new bench")


def _check_overlay(view: OverlayView) -> None:
    """The kernel mounts an overlay whose upper layer is not the caller's as read-only, without a word."""
    for folder in (view.upper, view.work):
        try:
            owner = os.stat(folder).st_uid
        except OSError as error:
            raise OverlayUnavailable(f"{folder!r}: {error.strerror}", advice=MOVE_STATE) from error
        if owner != os.geteuid():
            raise OverlayUnavailable(f"{folder!r} belongs to another user", advice=MOVE_STATE)


def _forget_mark(work: str) -> None:
    """Removes what forbids a second mount of a volatile overlay.

    Without `volatile` the end of every command would wait until the whole disk is synchronised. A bench does not
    outlive a power cut, so nothing is lost; the mark is meant for those that do.
    """
    folder = work
    try:
        for name in ("work", "incompat", "volatile"):
            folder = os.path.join(folder, name)
            os.chmod(folder, 0o700)
        shutil.rmtree(os.path.dirname(folder))
    except FileNotFoundError:
        return
