"""Confines a command by Landlock and a system call filter, for machines without user namespaces or bubblewrap.

Weaker than namespaces: the command sees that other files exist and can change the mode and times of those that belong
to the same user, loopback servers cannot be started, and `.git` of the copy is writable.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pawl.core.errors import OverlayUnavailable, SandboxUnavailable
from pawl.core.execution import Completed, Confinement, CopyView, Ending, Execution, Network, OverlayView, View
from pawl.sandbox import programs as remedies
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.environment import (
    SYSTEM_FOLDERS,
    Root,
    Surroundings,
    check_words,
    command_environment,
    is_below,
    readonly_roots,
    system_files,
    visible_path,
)
from pawl.sandbox.groups import GroupPool, GroupSeat, process_pool, set_ceilings
from pawl.sandbox.launcher import landlock_version
from pawl.sandbox.layers import Layers, Scenery, check_command, check_directory, linked_repository
from pawl.sandbox.process import (
    Arrival,
    CommandWatch,
    Launched,
    OnOutput,
    Stopping,
    memory_file,
    start_process,
    started_in,
)
from pawl.sandbox.seccomp import Sockets, filter_program
from pawl.sandbox.usage import DiskAllowance, DiskWatch, children

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


class LandlockSandbox:
    def __init__(self, surroundings: Surroundings, *, reason: str = "") -> None:
        self._surroundings = surroundings
        self._remedy = reason or remedies.INSTALL_BUBBLEWRAP
        self._notice = NOTICE + self._remedy

    @functools.cached_property
    def _groups(self) -> GroupPool:
        return process_pool()

    def run(
        self,
        view: View,
        execution: Execution,
        *,
        on_output: OnOutput | None = None,
        cancel: CancelToken | None = None,
    ) -> Completed:
        check_words(execution)
        check_landlock()
        if execution.files:
            raise SandboxUnavailable(NO_NETWORK, advice=self._remedy)
        if isinstance(view, OverlayView):
            raise OverlayUnavailable("an overlay needs namespaces", advice=remedies.ALLOW_NAMESPACES)
        # Here the command sees the copy at the copy's own path.
        layers = Layers(CopyView(workspace=view.copy, copy=view.copy))
        with ExitStack() as stack:
            private = stack.enter_context(tempfile.TemporaryDirectory(prefix="pawl-", ignore_cleanup_errors=True))
            order = self._order(view, execution, layers, private)
            limits = execution.limits
            disk = DiskWatch(DiskAllowance(view.copy, limits.disk_bytes), DiskAllowance(private, limits.scratch_bytes))
            seat = stack.enter_context(self._groups.seat(limits))
            launched = stack.enter_context(_launch(order, seat))
            arrival = launched.wait_until_up(cancel)
            if arrival is Arrival.CANCELLED:
                return Completed(ending=Ending.CANCELLED, code=None, confinement=Confinement.LANDLOCK)
            if arrival is not Arrival.UP:
                code, complaint = launched.complaint()
                raise SandboxUnavailable(
                    f"the sandbox could not be set up: {complaint or f'code {code}'}", advice=remedies.ALLOW_FILTERS
                )
            _hold(launched, execution, seat)
            watch = CommandWatch(
                launched=launched,
                root=launched.pid,
                limits=limits,
                disk=disk,
                seat=seat,
                on_output=on_output,
                cancel=cancel,
            )
            return watch.run(Confinement.LANDLOCK, (self._notice,))

    def _order(self, view: CopyView, execution: Execution, layers: Layers, private: str) -> dict[str, object]:
        """What the launcher is told; everything that can be refused early is refused here."""
        roots = self._roots(view)
        home, temporary = os.path.join(private, "home"), os.path.join(private, "tmp")
        for folder in (home, temporary):
            os.mkdir(folder, 0o700)
        _link_toolchains(home, roots, self._surroundings.home)
        path = visible_path(_moved(self._surroundings, view), view.copy, roots)
        environment = command_environment(execution, home=home, temporary=temporary, path=path)
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
            f"Landlock version {version} is too old, {OLDEST_VERSION} is needed", advice=remedies.NEWER_KERNEL
        )


def _moved(surroundings: Surroundings, view: CopyView) -> Surroundings:
    """PATH entries inside the workspace are those of the copy."""
    entries = (
        view.copy + entry[len(view.workspace) :] if is_below(entry, view.workspace) else entry
        for entry in surroundings.path.split(":")
    )
    return replace(surroundings, path=":".join(entries))


def _link_toolchains(home: str, roots: Iterable[Root], caller_home: str) -> None:
    for root in roots:
        if is_below(root.path, caller_home):
            link = os.path.join(home, os.path.relpath(root.path, caller_home))
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(root.path, link)


def _launch(order: dict[str, object], seat: GroupSeat | None) -> Launched:
    with memory_file("order", json.dumps(order).encode()) as file:
        words = (sys.executable, "-I", "-S", _LAUNCHER, str(file))
        return Launched(started_in(seat, functools.partial(start_process, words, (file,))), Stopping.CLOSE)


def _hold(launched: Launched, execution: Execution, seat: GroupSeat | None) -> None:
    waiting = children(launched.pid)
    if len(waiting) != 1:
        raise SandboxUnavailable("the sandbox cannot be followed in /proc", advice=remedies.SHOW_PROCESSES)
    try:
        set_ceilings(waiting[0], execution.limits)
        if seat is not None:
            seat.admit(waiting[0])
    except OSError as error:
        raise SandboxUnavailable(f"cannot limit the command: {error}", advice="run `pawl doctor`") from error
