"""The process that serves one model file on loopback: `python -m pawl.models.local.server`, told what by `Start`."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pawl.models.local.child import Cause, Ready, ServerFailed, ServerStart

_PR_SET_PDEATHSIG = 1
_FIRST_TO_GO = "800"
_WARNINGS = 2
_MEBIBYTE = 1024**2
_PING_SECONDS = 10


def main() -> int:
    parent = os.getppid()
    replies = os.dup(1)
    # What the library writes belongs to the errors; replies have their own descriptor.
    os.dup2(2, 1)
    _die_with_parent(parent)
    _go_first_when_memory_ends()
    start = ServerStart.of(sys.stdin.buffer.readline())
    try:
        library = importlib.import_module("xllamacpp")
    except ImportError as error:
        os.write(replies, ServerFailed(Cause.EXTRA, str(error)).line())
        return 1
    try:
        server = library.Server(_parameters(library, start))
    except RuntimeError as error:
        os.write(replies, ServerFailed(Cause.FILE, str(error)).line())
        return 1
    os.write(replies, Ready(server.listening_address).line())
    while os.read(0, 1):
        pass
    return 0


def _parameters(library: Any, start: ServerStart) -> Any:
    parameters = library.CommonParams()
    parameters.model.path = start.path
    parameters.model_alias = {Path(start.path).name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [start.token]
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.offline = True
    parameters.warmup = False
    # Above warnings come the texts of requests.
    parameters.verbosity = _WARNINGS
    parameters.n_ctx = start.context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = start.threads
    parameters.cpuparams_batch.n_threads = start.threads
    parameters.cache_ram_mib = start.kept_prompts // _MEBIBYTE
    parameters.sse_ping_interval = _PING_SECONDS
    # Fitting loads the file twice and is only of use where there is a device to fit it to.
    parameters.fit_params = len(library.get_device_info()) > 1
    return parameters


def _die_with_parent(parent: int) -> None:
    """The lifeline alone would do nothing while the library loads, because it holds the interpreter's lock."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _go_first_when_memory_ends() -> None:
    """When memory runs out, this process goes, not Pawl or the user's editor."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)


if __name__ == "__main__":
    # Taking the library down in order can wait for ever for its own threads.
    os._exit(main())
