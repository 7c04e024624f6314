"""Confines a command by namespaces, a system call filter and limits, with an overlay or a copy as its workspace."""

from __future__ import annotations

import functools
import os
import platform
import select
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from pawl.core.errors import OverlayUnavailable, PawlError, SandboxUnavailable
from pawl.core.execution import Confinement, CopyView, Execution, Network, OverlayView, View
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox import programs as remedies
from pawl.sandbox.process import GatedSandbox, Launch, Launched, memory_file
from pawl.sandbox.process_limits import children, filter_count
from pawl.sandbox.programs import Programs
from pawl.sandbox.seccomp import Sockets, filter_program
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
            raise SandboxUnavailable("bubblewrap is not installed", advice=remedies.INSTALL_BUBBLEWRAP)
        given = execution.given
        filter_file = memory_file("filter", filter_program(platform.machine(), Sockets.PRIVATE), stack)
        given_file = memory_file("given", given, stack)
        arguments = bubblewrap_arguments(profile, filter_file, given_file)
        # By file and not on the command line, which every user of the machine can read.
        file = memory_file("arguments", os.fsencode("\0".join(arguments) + "\0"), stack)
        source = GIVEN if given else "/dev/null"
        inside = (self._programs.shell, "-c", _GATE_SCRIPT, source, *execution.argv)
        return Launch(
            words=[*self._mounting(view), self._programs.bubblewrap, "--args", str(file), "--", *inside],
            files=(filter_file, file, *((given_file,) if given else ()), *execution.files),
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
        raise SandboxUnavailable("the sandbox cannot be followed in /proc", advice=remedies.SHOW_PROCESSES)

    def _explained(self, code: int, complaint: str) -> PawlError:
        said = complaint or f"it ended with code {code}"
        if code == _NO_OVERLAY:
            return OverlayUnavailable(f"the overlay could not be mounted: {said}", advice=remedies.MOVE_STATE)
        if complaint.startswith("unshare:"):
            # bubblewrap may be allowed what unshare is not, so a copy is still worth trying.
            return OverlayUnavailable(f"no place to mount the overlay: {said}", advice=remedies.ALLOW_NAMESPACES)
        return SandboxUnavailable(f"the sandbox could not be set up: {said}", advice=remedies.remedy_for(complaint))


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
        raise SandboxUnavailable(f"there is no copy at {view.copy!r}", advice="make the bench anew")


def _check_overlay(view: OverlayView) -> None:
    """The kernel mounts an overlay whose upper layer is not the caller's as read-only, without a word."""
    for folder in (view.upper, view.work):
        try:
            owner = os.stat(folder).st_uid
        except OSError as error:
            raise OverlayUnavailable(f"{folder!r}: {error.strerror}", advice=remedies.MOVE_STATE) from error
        if owner != os.geteuid():
            raise OverlayUnavailable(f"{folder!r} belongs to another user", advice=remedies.MOVE_STATE)


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
