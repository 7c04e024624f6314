"""The tests without any change, run on an untouched bench in a thread of their own: beside the model, or beside the
tests with the change."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.core.diagnostic import CheckResult

HEAD_START = 0.2
"""Seconds for a request to go out first, unless it is answered before: both would only slow each other down."""
PATIENCE = 2.0
"""Seconds that the end of a run waits for the thread, whose command was ended."""


@dataclass(slots=True)
class EarlyTests:
    """One baseline of a run. Whoever needs its result waits for it; who needs none any more ends it."""

    shop: Project
    run: Callable[[Project], CheckResult]
    """Runs the tests of a project that this thread has opened for itself."""
    _thread: threading.Thread | None = None
    _cancel: CancelToken | None = None
    hurry: threading.Event = field(default_factory=threading.Event)
    _result: CheckResult | None = None
    _error: BaseException | None = None

    @property
    def is_begun(self) -> bool:
        return self._thread is not None

    def begin(self) -> None:
        if self._thread is None:
            self._cancel = CancelToken(above=self.shop.stop)
            self._thread = threading.Thread(target=self._work, args=(self._cancel,), name="pawl-baseline", daemon=True)
            self._thread.start()

    def ready(self, seconds: float = 0.0) -> CheckResult | None:
        """The result, waited for so long; None where there is none yet, or where an error stands in its place."""
        if self._thread is not None and seconds > 0:
            self.hurry.set()
            self._thread.join(seconds)
        return self._result

    def result(self) -> CheckResult:
        """Wait for the result; raise what kept the tests from being run."""
        self.begin()
        assert self._thread is not None
        self.hurry.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def close(self) -> None:
        """End the tests that still run; the deadline of the run and the user's word end them too."""
        if self._thread is not None and self._cancel is not None:
            self.hurry.set()
            self._cancel.request()
            self._thread.join(PATIENCE)
            if not self._thread.is_alive():
                self._cancel.close()
            self._thread = self._cancel = None

    def _work(self, cancel: CancelToken) -> None:
        self.hurry.wait(HEAD_START)
        try:
            # A store belongs to one thread.
            with Project.open(self.shop.config, Path(self.shop.workspace)) as own:
                own.run_id, own.stop = self.shop.run_id, cancel
                self._result = self.run(own)
        except (PawlError, OSError) as error:
            self._error = error
        finally:
            if self._result is None and self._error is None:
                # A defect; it belongs to whoever waits for the result.
                self._error = sys.exception()
