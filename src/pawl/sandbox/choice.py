"""Chooses between namespaces and Landlock: the first command that shows that namespaces do not work decides."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Sequence

from pawl.core.errors import OverlayUnavailable, PawlError, SandboxUnavailable
from pawl.core.execution import Completed, Confinement, CopyView, Execution, OverlayView, Probe, Protection, View
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.landlock import OLDEST_VERSION, LandlockSandbox, check_landlock
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
    OnOutput,
    Programs,
)
from pawl.sandbox.process_limits import find_hierarchy
from pawl.sandbox.visibility import Surroundings

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
