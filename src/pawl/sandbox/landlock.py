"""Confines a command by Landlock and a system call filter, for machines without user namespaces or bubblewrap.

Weaker than namespaces: the command sees that other files exist and can change the mode and times of those that belong
to the same user, loopback servers cannot be started, and `.git` of the copy is writable.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pawl.core.errors import OverlayUnavailable, PawlError, SandboxUnavailable
from pawl.core.execution import Confinement, CopyView, Execution, Network, OverlayView, View
from pawl.sandbox.launcher import landlock_version
from pawl.sandbox.namespaces import Sockets, filter_program
from pawl.sandbox.process import (
    ALLOW_FILTERS,
    ALLOW_NAMESPACES,
    INSTALL_BUBBLEWRAP,
    NEWER_KERNEL,
    GatedSandbox,
    Launch,
    memory_file,
)
from pawl.sandbox.visibility import (
    SYSTEM_FOLDERS,
    Layers,
    Root,
    Scenery,
    Surroundings,
    check_command,
    check_directory,
    command_environment,
    is_below,
    linked_repository,
    readonly_roots,
    system_files,
    visible_path,
)

OLDEST_VERSION = 3
"""The first one that covers truncation."""
NOTICE = (
    "protection is weaker here: no namespaces, so the command could see which files exist and change modes and times "
    "of your own files outside the workspace. To get more: "
)
NO_NETWORK = "without namespaces a command has no network of its own, so a server could not be kept apart"
_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_KERNEL_FILES = (
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
)


class LandlockSandbox(GatedSandbox):
    confinement = Confinement.LANDLOCK

    def __init__(self, surroundings: Surroundings, *, reason: str = "") -> None:
        super().__init__(surroundings)
        self._remedy = reason or INSTALL_BUBBLEWRAP
        self._notices = (NOTICE + self._remedy,)

    def _prepared(self, view: View, execution: Execution, stack: ExitStack) -> Launch:
        check_landlock()
        if execution.files:
            raise SandboxUnavailable(NO_NETWORK, advice=self._remedy)
        if isinstance(view, OverlayView):
            raise OverlayUnavailable("an overlay needs namespaces", advice=ALLOW_NAMESPACES)
        private = stack.enter_context(tempfile.TemporaryDirectory(prefix="pawl-", ignore_cleanup_errors=True))
        file = memory_file("order", json.dumps(self._order(view, execution, private)).encode(), stack)
        limits = execution.limits
        return Launch(
            words=(sys.executable, "-I", "-S", _LAUNCHER, str(file)),
            files=(file,),
            disk_bytes={view.copy: limits.disk_bytes, private: limits.scratch_bytes},
        )

    def _explained(self, code: int, complaint: str) -> PawlError:
        said = complaint or f"code {code}"
        return SandboxUnavailable(f"the sandbox could not be set up: {said}", advice=ALLOW_FILTERS)

    def _order(self, view: CopyView, execution: Execution, private: str) -> dict[str, object]:
        """The order to the launcher; everything that can be refused early is refused here."""
        # Here the command sees the copy at the copy's own path.
        layers = Layers(CopyView(workspace=view.copy, copy=view.copy))
        roots = self._roots(view)
        home, temporary = os.path.join(private, "home"), os.path.join(private, "tmp")
        for folder in (home, temporary):
            os.mkdir(folder, 0o700)
        _link_toolchains(home, roots, self._surroundings.home)
        moved = _moved(self._surroundings, view)
        path = visible_path(moved, view.copy, roots)
        environment = command_environment(execution, moved.variables, home=home, temporary=temporary, path=path)
        scenery = Scenery(layers, roots, environment["PATH"])
        directory = check_directory(scenery, execution.directory)
        check_command(scenery, execution.argv[0], directory)
        sockets = Sockets.INTERNET if execution.network is Network.ON else Sockets.NONE
        sources = [*(root.source for root in roots), *linked_repository(Layers(view))]
        return {
            "argv": execution.argv,
            "given": base64.b64encode(execution.given).decode(),
            "environment": {"PWD": directory, **environment},
            "directory": directory,
            "readable": ["/usr", *SYSTEM_FOLDERS, *system_files(execution.network), *_KERNEL_FILES, *sources],
            "writable": [view.copy, private],
            "private": private,
            "devices": _DEVICES,
            "network": execution.network is Network.ON,
            "filter": base64.b64encode(filter_program(platform.machine(), sockets)).decode(),
        }

    def _roots(self, view: CopyView) -> tuple[Root, ...]:
        """As with namespaces, but a virtual environment in the workspace is read where it really is."""
        roots = readonly_roots(self._surroundings, view.copy)
        return tuple(
            root for root in roots if not is_below(root.path, view.workspace) or is_below(root.source, view.workspace)
        )


def check_landlock() -> None:
    version = landlock_version()
    if version < OLDEST_VERSION:
        raise SandboxUnavailable(
            f"Landlock version {version} is too old, {OLDEST_VERSION} is needed", advice=NEWER_KERNEL
        )


def _moved(surroundings: Surroundings, view: CopyView) -> Surroundings:
    """Search paths inside the workspace are those of the copy."""

    def moved(paths: str) -> str:
        return ":".join(
            view.copy + entry[len(view.workspace) :] if is_below(entry, view.workspace) else entry
            for entry in paths.split(":")
        )

    variables = {name: moved(value) for name, value in surroundings.variables.items()}
    return replace(surroundings, path=moved(surroundings.path), variables=variables)


def _link_toolchains(home: str, roots: Iterable[Root], caller_home: str) -> None:
    for root in roots:
        if is_below(root.path, caller_home):
            link = os.path.join(home, os.path.relpath(root.path, caller_home))
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(root.path, link)
