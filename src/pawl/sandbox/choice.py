"""Chooses between namespaces and Landlock: the first command that shows that namespaces do not work decides."""

from __future__ import annotations

from pawl.core.errors import OverlayUnavailable, SandboxUnavailable
from pawl.core.execution import Completed, Confinement, Execution, Protection, View
from pawl.core.ports import Cancel, Sandbox
from pawl.sandbox.landlock import LandlockSandbox, check_landlock
from pawl.sandbox.namespaces import NamespaceSandbox
from pawl.sandbox.probes import probe_namespaces, survey
from pawl.sandbox.programs import Programs
from pawl.sandbox.surroundings import Surroundings
from pawl.sandbox.watch import OnOutput


def open_sandbox(
    surroundings: Surroundings,
    *,
    minimum: Confinement = Confinement.LANDLOCK,
    programs: Programs | None = None,
) -> Sandbox:
    """The strongest sandbox this machine gives, and none weaker than `minimum`; nothing is probed before it is used."""
    return ChosenSandbox(surroundings, minimum, programs or Programs.installed())


class ChosenSandbox:
    def __init__(self, surroundings: Surroundings, minimum: Confinement, programs: Programs) -> None:
        self._surroundings = surroundings
        self._minimum = minimum
        self._programs = programs
        self._namespaces = NamespaceSandbox(surroundings, programs=programs)
        self._fallback: LandlockSandbox | None = None

    def run(
        self,
        view: View,
        execution: Execution,
        *,
        on_output: OnOutput | None = None,
        cancel: Cancel | None = None,
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
