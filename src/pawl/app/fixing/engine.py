"""Starts the engine on the bench with the workspace's own interpreter and passes its events on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pawl.core.errors import ParseFailed
from pawl.core.execution import Completed, Execution, Limits, Stream
from pawl.core.ports import Cancel
from pawl.repair.model import BaselineTaken, RepairEvent, RepairRequest
from pawl.repair.stream import command, parse_event
from pawl.sandbox.cancel import CancelToken
from pawl.verify.runners import launched
from pawl.workspace.bench import Bench

Take = Callable[[RepairEvent], None]


@dataclass(frozen=True, slots=True)
class Engine:
    bench: Bench
    python: str

    def run(self, request: RepairRequest, limits: Limits, take: Take, cancel: Cancel | None = None) -> Completed:
        words = launched(self.bench.files, command(request, self.python))
        return self.bench.run(Execution(argv=words, limits=limits), on_output=EventLines(take).feed, cancel=cancel)

    def survey(self, request: RepairRequest, limits: Limits) -> BaselineTaken | None:
        """How each test stands, by a run in which no test can hang; None when that cannot be told."""
        taken: list[BaselineTaken] = []
        cancel = CancelToken()

        def take(event: RepairEvent) -> None:
            if isinstance(event, BaselineTaken):
                taken.append(event)
                cancel.request()

        try:
            self.run(request, limits, take, cancel)
        finally:
            cancel.close()
        return taken[0] if taken else None


class EventLines:
    """Puts the engine's output together into lines; anything that is no event is the project's own noise."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._rest = b""

    def feed(self, stream: Stream, data: bytes) -> None:
        if stream is not Stream.STDOUT:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'{"event"'):
                try:
                    self._take(parse_event(line))
                except ParseFailed:
                    continue
