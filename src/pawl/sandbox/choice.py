"""Chooses between namespaces and Landlock: the first command that shows that namespaces do not work decides.

Landlock and a system call filter are for machines without user namespaces or bubblewrap, and weaker: the command sees
that other files exist and can change the mode and times of those that belong to the same user, loopback servers cannot
be started, and `.git` of the copy is writable.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pawl.core.errors import OverlayUnavailable, PawlError, SandboxUnavailable
from pawl.core.execution import (
    Completed,
    Confinement,
    CopyView,
    Execution,
    Network,
    OverlayView,
    Probe,
    Protection,
    View,
)
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.launcher import landlock_version
from pawl.sandbox.namespaces import NamespaceSandbox, Sockets, filter_program
from pawl.sandbox.process import (
    ALLOW_FILTERS,
    ALLOW_NAMESPACES,
    ENVIRONMENT,
    GROUPS,
    INSTALL_BUBBLEWRAP,
    MOVE_STATE,
    NEWER_KERNEL,
    GatedSandbox,
    Launch,
    OnOutput,
    Programs,
    memory_file,
    piped,
)
from pawl.sandbox.process_limits import find_hierarchy
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
            files=(file, *piped(execution)),
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
            "pipe": execution.pipe,
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


_OLDEST_BUBBLEWRAP = (0, 8)
_SECONDS = 10


def survey(surroundings: Surroundings, programs: Programs) -> Protection:
    sandbox = NamespaceSandbox(surroundings, programs=programs)
    whole, overlay = probe_namespaces(sandbox), _overlay(sandbox)
    landlock = _landlock()
    confinement = Confinement.NONE
    if whole.works:
        confinement = Confinement.NAMESPACES
    elif landlock.works:
        confinement = Confinement.LANDLOCK
    probes = (_bubblewrap(programs), _user_namespaces(programs), _filter(), whole, overlay, landlock, _groups())
    return Protection(confinement=confinement, overlay=overlay.works, probes=probes)


def probe_namespaces(sandbox: NamespaceSandbox) -> Probe:
    """Runs a command in the whole sandbox."""
    with tempfile.TemporaryDirectory(prefix="pawl-") as folder:
        workspace = os.path.realpath(folder)
        try:
            completed = sandbox.run(CopyView(workspace=workspace, copy=workspace), Execution(argv=("true",)))
        except PawlError as error:
            return _probe("sandbox", error.message, error.advice, works=False)
    return _probe("sandbox", f"a command {completed.ending} with {completed.code}", works=completed.ok)


def _overlay(sandbox: NamespaceSandbox) -> Probe:
    """Mounts one and writes through it."""
    with tempfile.TemporaryDirectory(prefix="pawl-", ignore_cleanup_errors=True) as folder:
        places = {
            name: os.path.join(os.path.realpath(folder), name) for name in ("workspace", "upper", "work", "merged")
        }
        for place in places.values():
            os.mkdir(place)
        try:
            sandbox.run(OverlayView(**places), Execution(argv=("touch", "written")))
        except PawlError as error:
            return _probe("overlay", error.message, error.advice, works=False)
        works = os.path.exists(os.path.join(places["upper"], "written"))
        # The kernel leaves a folder there that nobody may enter.
        os.chmod(os.path.join(places["work"], "work"), 0o700)
    detail = "mounted and written through" if works else "a write did not reach the upper layer"
    return _probe("overlay", detail, MOVE_STATE, works=works)


def _bubblewrap(programs: Programs) -> Probe:
    if programs.bubblewrap is None:
        return _probe("bubblewrap", "not installed", INSTALL_BUBBLEWRAP, works=False)
    said = _output([programs.bubblewrap, "--version"])
    version = re.search(r"(\d+)\.(\d+)", said)
    works = version is not None and (int(version[1]), int(version[2])) >= _OLDEST_BUBBLEWRAP
    detail = f"{programs.bubblewrap}, {said or 'no answer'}"
    return _probe("bubblewrap", detail, INSTALL_BUBBLEWRAP, works=works)


def _user_namespaces(programs: Programs) -> Probe:
    if programs.unshare is None:
        return _probe("user namespaces", "unshare is not installed", "install util-linux", works=False)
    said = _output([programs.unshare, "-Ur", "--", programs.shell, "-c", "echo allowed"])
    return _probe("user namespaces", said, ALLOW_NAMESPACES, works=said == "allowed")


def _filter() -> Probe:
    try:
        steps = len(filter_program(platform.machine(), Sockets.PRIVATE)) // 8
    except PawlError as error:
        return _probe("system call filter", error.message, error.advice, works=False)
    with open("/proc/self/status") as file:
        works = "\nSeccomp:" in file.read()
    detail = f"{steps} steps for {platform.machine()}" if works else "the kernel has none"
    return _probe("system call filter", detail, ALLOW_FILTERS, works=works)


def _landlock() -> Probe:
    version = landlock_version()
    detail = f"version {version}" if version else "not offered by the kernel"
    return _probe("Landlock", detail, NEWER_KERNEL, works=version >= OLDEST_VERSION)


def _groups() -> Probe:
    hierarchy = find_hierarchy()
    if hierarchy is None:
        detail = "none can be made here; memory and processes are watched instead"
        return _probe("control groups", detail, GROUPS, works=False)
    detail = f"version {hierarchy.version}: {', '.join(sorted(hierarchy.folders))}"
    return _probe("control groups", detail, works=True)


def _probe(name: str, detail: str, remedy: str = "", *, works: bool) -> Probe:
    return Probe(name=name, works=works, detail=detail, remedy="" if works else remedy)


def _output(words: Sequence[str]) -> str:
    try:
        completed = subprocess.run(
            words, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (completed.stdout or completed.stderr).decode("utf-8", "replace").strip()


class ChosenSandbox:
    """The strongest sandbox this machine gives, and none weaker than `minimum`; nothing is probed before it is used."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        minimum: Confinement = Confinement.LANDLOCK,
        programs: Programs | None = None,
    ) -> None:
        self._surroundings = surroundings
        self._minimum = minimum
        self._programs = programs or Programs.installed()
        self._namespaces = NamespaceSandbox(surroundings, programs=self._programs)
        self._fallback: LandlockSandbox | None = None

    def run(
        self, view: View, execution: Execution, *, on_output: OnOutput | None = None, cancel: CancelToken | None = None
    ) -> Completed:
        if self._fallback is None:
            try:
                return self._namespaces.run(view, execution, on_output=on_output, cancel=cancel)
            except OverlayUnavailable:
                raise
            except SandboxUnavailable as error:
                self._fallback = self._weaker(error)
        return self._fallback.run(view, execution, on_output=on_output, cancel=cancel)

    def protection(self) -> Protection:
        return survey(self._surroundings, self._programs)

    def _weaker(self, error: SandboxUnavailable) -> LandlockSandbox:
        """A fault of this one command is no reason to protect less: only a sandbox that cannot run at all is."""
        if self._minimum is Confinement.NAMESPACES or probe_namespaces(self._namespaces).works:
            raise error
        try:
            check_landlock()
        except SandboxUnavailable as second:
            raise SandboxUnavailable(
                f"no way to confine a command here: {error.message}; {second.message}",
                advice=f"{error.advice}; or {second.advice}",
            ) from error
        return LandlockSandbox(self._surroundings, reason=error.advice)
