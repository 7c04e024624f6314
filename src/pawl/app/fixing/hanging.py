"""Suites that do not end: noticing it, asking which tests hang, or where an import does."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from pawl.app.running import OnOutput
from pawl.core.execution import Completed, Execution, Stream
from pawl.sandbox import CancelToken
from pawl.verify.steps.step import Subject
from pawl.verify.tracebacks import places
from pawl.workspace.bench import Bench

_WHERE_SECONDS = 3.0
_WHERE = f"""
import faulthandler, runpy, sys
faulthandler.dump_traceback_later({_WHERE_SECONDS}, exit=True)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
_COLLECTING = {
    "pytest": ("pytest", "--collect-only", "-q", "-s", "-p", "no:faulthandler"),
    "unittest": ("unittest", "discover"),
}


class Patient:
    """Runs a command on a bench, and stops it when it prints nothing for too long. Fits `ports.CommandRunner`."""

    def __init__(self, bench: Bench, silence: float, hear: OnOutput | None = None) -> None:
        self.silence = silence
        self.fell_silent = False
        self._bench = bench
        self._hear = hear
        self._heard = 0.0
        self._cancel: CancelToken | None = None

    def run(self, execution: Execution) -> Completed:
        self._cancel = cancel = CancelToken()
        self._heard = time.monotonic()
        self.fell_silent = False
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended, cancel), daemon=True)
        watcher.start()
        try:
            return self._bench.run(execution, on_output=self._listen, cancel=cancel)
        finally:
            ended.set()
            watcher.join()
            self._cancel = None
            cancel.close()

    def stop(self) -> None:
        """Ends the command that is running."""
        if self._cancel is not None:
            self._cancel.request()

    def _listen(self, stream: Stream, data: bytes) -> None:
        self._heard = time.monotonic()
        if self._hear is not None:
            self._hear(stream, data)

    def _watch(self, ended: threading.Event, cancel: CancelToken) -> None:
        while not ended.wait(max(0.05, self._heard + self.silence - time.monotonic())):
            if time.monotonic() - self._heard >= self.silence:
                self.fell_silent = True
                cancel.request()
                return


def where_it_hangs(subject: Subject, framework: str, words: Sequence[str]) -> str:
    """The place in the workspace at which collecting the tests does not go on; empty when it does."""
    collecting = (*_COLLECTING[framework], *(words if framework == "pytest" else ()))
    completed = subject.run((subject.python, "-c", _WHERE, *collecting))
    if completed is None or "Timeout" not in completed.stderr.text:
        return ""
    stack = places(completed.stderr.text, subject.origin)
    return f"{stack[0].path}:{stack[0].line}" if stack else ""
