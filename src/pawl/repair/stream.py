"""Starts the engine on a bench and reads its events."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from pawl.checks.runners import launched
from pawl.core.errors import ParseFailed
from pawl.core.execution import Completed, Execution, Limits, Stream
from pawl.core.formats import read_json
from pawl.core.typed import typed
from pawl.repair.model import (
    BaselineTaken,
    LinesSuspected,
    ProblemFound,
    Progressed,
    RepairEnded,
    RepairEvent,
    RepairRequest,
    StageBegun,
)
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench import Bench


def start_script() -> str:
    """The engine's entry; its folder must be readable where the command runs."""
    return os.fspath(resources.files("pawl.repair") / "inside" / "start.py")  # type: ignore[call-overload, no-any-return]


def command(request: RepairRequest, python: str) -> tuple[str, ...]:
    """The words that run the engine with the workspace's own interpreter."""
    return (python, start_script(), request.to_json())


_EVENTS: dict[str, type[RepairEvent]] = {
    "stage": StageBegun,
    "problem": ProblemFound,
    "baseline": BaselineTaken,
    "suspicious": LinesSuspected,
    "progress": Progressed,
    "done": RepairEnded,
}


def parse_event(line: bytes) -> RepairEvent:
    try:
        values = read_json(line)
        event: RepairEvent = typed(_EVENTS[values.pop("event")], values)
        return event
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseFailed(f"not an event of the reflex: {line[:120]!r}", advice="run again with --explain") from error


Take = Callable[[RepairEvent], None]


@dataclass(frozen=True, slots=True)
class ReflexEngine:
    bench: Bench
    python: str

    def run(self, request: RepairRequest, limits: Limits, take: Take, cancel: CancelToken | None = None) -> Completed:
        words = launched(self.bench.files, command(request, self.python))
        return self.bench.run(Execution(argv=words, limits=limits), on_output=EventLines(take).feed, cancel=cancel)

    def survey(self, request: RepairRequest, limits: Limits) -> BaselineTaken | None:
        """How each test stands, by a run in which no test can hang; None when that cannot be told."""
        taken: list[BaselineTaken] = []
        cancel = CancelToken(above=self.bench.stop)

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
