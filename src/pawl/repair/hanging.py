"""Suites that do not end: noticing it, asking which tests hang, or where an import does."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from pawl.checks.output import places
from pawl.checks.runners import launched
from pawl.checks.steps import Subject
from pawl.core.execution import Completed, Execution, Stream
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench import Bench

_COLLECT = {
    "pytest": """
import pytest
pytest.main(["--collect-only", "-q", "-s", "-p", "no:faulthandler", *sys.argv[2:]])
""",
    "unittest": """
import unittest
unittest.defaultTestLoader.discover(".")
""",
}
_OR_SAY_WHERE = """
import faulthandler, sys
faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True)
"""


class StallGuard:
    """Runs a command on a bench, and stops it when it prints nothing for too long. Fits `CommandRunner`."""

    def __init__(self, bench: Bench, silence: float) -> None:
        self.fell_silent = False
        self.completed: Completed | None = None
        """How the last command ended."""
        self._bench = bench
        self._silence = silence
        self._heard = 0.0

    def run(self, execution: Execution) -> Completed:
        cancel = CancelToken()
        self._heard = time.monotonic()
        self.fell_silent = False
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended, cancel), daemon=True)
        watcher.start()
        try:
            self.completed = self._bench.run(execution, on_output=self._listen, cancel=cancel)
            return self.completed
        finally:
            ended.set()
            watcher.join()
            cancel.close()

    def _listen(self, _: Stream, data: bytes) -> None:
        self._heard = time.monotonic()

    def _watch(self, ended: threading.Event, cancel: CancelToken) -> None:
        while not ended.wait(max(0.05, self._heard + self._silence - time.monotonic())):
            if time.monotonic() - self._heard >= self._silence:
                self.fell_silent = True
                cancel.request()
                return


def where_it_hangs(subject: Subject, framework: str, words: Sequence[str], seconds: float) -> str:
    """The place in the workspace that collecting the tests does not get past in that time; empty when it does."""
    script = _OR_SAY_WHERE + _COLLECT[framework]
    completed = subject.run(launched(subject.files, (subject.python, "-c", script, str(seconds), *words)))
    if completed is None or "Timeout" not in completed.stderr.text:
        return ""
    stack = places(completed.stderr.text, subject.origin)
    return f"{stack[0].path}:{stack[0].line}" if stack else ""
