"""Writes the audit as well as it can: what the disk does not take is warned about once, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pawl.core.climb_event import Warned
from pawl.core.errors import StoreError
from pawl.core.tiers import Climb
from pawl.store.audit import Audit


class AuditTrail:
    """The audit of one run."""

    def __init__(self, state: Path, run: str, listen: Callable[[Warned], object]) -> None:
        self._state = state
        self._run = run
        self._listen = listen
        self._audit: Audit | None = None
        self._silent = False

    def begun(self, workspace: str, objective: str, climb: Climb) -> None:
        self._write(lambda audit: audit.begun(workspace, self._run, objective, climb.ladder, len(climb.failing)))

    def tried(self, climb: Climb) -> None:
        """The last attempt of the climb."""
        self._write(lambda audit: audit.tried(self._run, len(climb.attempts), climb.attempts[-1]))

    def left(self, tier: int, reason: str) -> None:
        self._write(lambda audit: audit.left(self._run, tier, reason))

    def ended(self, why: str, reason: str) -> None:
        self._write(lambda audit: audit.ended(self._run, why, reason))

    def close(self) -> None:
        if self._audit is not None:
            self._audit.close()
            self._audit = None

    def _write(self, write: Callable[[Audit], None]) -> None:
        try:
            if self._audit is None:
                self._audit = Audit.open(self._state)
            write(self._audit)
        except (StoreError, OSError) as error:
            if not self._silent:
                self._silent = True
                said = error.message if isinstance(error, StoreError) else f"{error.strerror or error}"
                self._listen(Warned(f"the audit cannot be written, the run goes on: {said}"))
