"""The bubblewrap profile: an empty root into which only what a command needs is put.

Each odd flag closes a way out that was measured; docs/security.md tells which.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pawl.core.execution import Execution, Network
from pawl.sandbox.surroundings import SYSTEM_FOLDERS, Root, is_below, system_files

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
    repository: str | None = None


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
    yield from ("--bind", profile.shown, profile.workspace)
    if profile.repository is not None:
        yield from ("--ro-bind", profile.repository, profile.repository)
    if profile.git_folder:
        yield from ("--ro-bind", f"{profile.shown}/.git", f"{profile.workspace}/.git")
