"""Starts the engine and reads its events; how the process is started is the caller's choice."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.checks.runners import launched
from pawl.core.errors import ParseFailed
from pawl.core.execution import Completed, Execution, Limits, Stream
from pawl.core.formats import read_json
from pawl.repair.model import (
    Agreement,
    BaselineTaken,
    FoundPatch,
    LinesSuspected,
    ProblemFound,
    Progressed,
    RepairEnded,
    RepairEvent,
    RepairRequest,
    RepairStatus,
    StageBegun,
    SuspiciousLine,
    TextEdit,
)
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench import Bench

Launch = Callable[[tuple[str, ...]], Iterable[bytes]]
"""Runs a command in the request's root and gives the lines of its standard output as they come."""
MISSING_PACKAGE = re.compile(r"No module named '([\w.]+)'")


def start_script() -> str:
    """The engine's entry; its folder must be readable where the command runs."""
    return os.fspath(resources.files("pawl.repair") / "inside" / "start.py")  # type: ignore[call-overload, no-any-return]


def command(request: RepairRequest, python: str) -> tuple[str, ...]:
    """The words that run the engine with the workspace's own interpreter."""
    return (python, start_script(), request.to_json())


def repair_events(request: RepairRequest, python: str, launch: Launch) -> Iterator[RepairEvent]:
    """The events of one search, the last of which is always `RepairEnded`."""
    ended = False
    for line in launch(command(request, python)):
        if line.strip():
            event = parse_event(line)
            yield event
            ended = isinstance(event, RepairEnded)
    if not ended:
        yield RepairEnded(status=RepairStatus.ENGINE_FAILED, seconds=0.0, error="the engine ended without a word")


def run_locally(words: tuple[str, ...]) -> Iterator[bytes]:
    """Starts the command with no confinement: for measurements, and where the caller is confined itself."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            yield from process.stdout
        finally:
            process.terminate()


def parse_event(line: bytes) -> RepairEvent:
    try:
        values = read_json(line)
        return _PARSERS[values.pop("event")](values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseFailed(f"not an event of the reflex: {line[:120]!r}", advice="run again with --explain") from error


def _problem(values: dict[str, Any]) -> ProblemFound:
    missing = MISSING_PACKAGE.search(values["message"])
    return ProblemFound(**values, package=missing.group(1).split(".")[0] if missing else "")


def _baseline(values: dict[str, Any]) -> BaselineTaken:
    fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in values.items()}
    return BaselineTaken(**fields)


def _patch(values: dict[str, Any]) -> FoundPatch:
    edits = tuple(TextEdit(start, end, text) for start, end, text in values.pop("edits"))
    return FoundPatch(edits=edits, **values)


def _ended(values: dict[str, Any]) -> RepairEnded:
    patches = tuple(_patch(patch) for patch in values.pop("patches", ()))
    status = RepairStatus(values.pop("status"))
    agreement = Agreement(values.pop("agreement", Agreement.SOLE))
    tests = tuple(values.pop("tests", ()))
    return RepairEnded(status=status, patches=patches, agreement=agreement, tests=tests, **values)


_PARSERS: dict[str, Callable[[dict[str, Any]], RepairEvent]] = {
    "stage": lambda values: StageBegun(**values),
    "problem": _problem,
    "baseline": _baseline,
    "suspicious": lambda values: LinesSuspected(tuple(SuspiciousLine(**line) for line in values["lines"])),
    "progress": lambda values: Progressed(**values),
    "done": _ended,
}


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
