"""Repairs by search: the engine runs on the bench with the workspace's own interpreter and tells what it finds."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pawl.app.fixing.ground import Ground, is_test
from pawl.core.errors import ParseFailed
from pawl.core.execution import Execution, Stream
from pawl.core.finding import Finding
from pawl.repair.model import (
    BaselineTaken,
    LinesSuspected,
    RepairEnded,
    RepairEvent,
    RepairRequest,
    Status,
    SuspiciousLine,
)
from pawl.repair.stream import command, parse_event
from pawl.verify.detect import Detection

GRACE_SECONDS = 30.0
"""What the engine gets beyond its budget to collect, and to end in order."""


@dataclass(slots=True)
class Search:
    ground: Ground
    detection: Detection
    tried: int = 0
    cpu_seconds: float = 0.0
    suspicious: dict[tuple[str, int], SuspiciousLine] = field(default_factory=dict)

    def run(self, failing: Sequence[Finding], seconds: float) -> RepairEnded:
        """One search for a patch that makes these tests pass."""
        ended: list[RepairEnded] = []

        def take(event: RepairEvent) -> None:
            self._notice(event)
            if isinstance(event, RepairEnded):
                ended.append(event)
            else:
                self.ground.listen(event)

        request = self._request(failing, seconds)
        reader = _Lines(take)
        done = self.ground.bench.run(
            Execution(
                argv=command(request, self.ground.subject.python),
                limits=self.ground.limits(seconds + GRACE_SECONDS),
            ),
            on_output=reader.feed,
        )
        if not ended:
            said = done.stderr.text.strip().splitlines()[-1:] or [f"it ended with code {done.code}"]
            return RepairEnded(status=Status.ENGINE_FAILED, seconds=done.seconds, error=said[0])
        self.tried += ended[0].tried
        self.cpu_seconds += ended[0].cpu
        return ended[0]

    def _request(self, failing: Sequence[Finding], seconds: float) -> RepairRequest:
        framework = self.detection.framework
        assert framework is not None
        targets = tuple(target for target in self.ground.request.targets if not is_test(target))
        return RepairRequest(
            root=self.ground.shop.workspace,
            targets=targets,
            tests=_words(self.ground.request.test_command, framework.name),
            seconds=max(1.0, seconds),
            workers=self.ground.request.workers,
            memory_bytes=self.ground.limits(seconds).memory_bytes // max(1, self.ground.request.workers),
            framework=framework.name,
            mend=tuple(finding.test for finding in failing),
        )

    def _notice(self, event: RepairEvent) -> None:
        if isinstance(event, LinesSuspected):
            self.suspicious.update({(line.path, line.line): line for line in event.lines})
        if isinstance(event, BaselineTaken):
            for word, tests in (("flaky", event.flaky), ("order-dependent", event.ordered), ("hanging", event.hanging)):
                if tests:
                    some = ", ".join(tests[:3]) + (" …" if len(tests) > 3 else "")
                    note = f"{word}: {some}"
                    if note not in self.ground.notes:
                        self.ground.notes.append(note)


class _Lines:
    """Puts the engine's output together into lines; anything that is no event is the project's own noise."""

    def __init__(self, take: Callable[[RepairEvent], None]) -> None:
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


def _words(test_command: Sequence[str], framework: str) -> tuple[str, ...]:
    """What the user's command passes to the framework; nothing when the command only leads to it."""
    words = list(test_command)
    if len(words) == 1 and " " in words[0]:
        words = shlex.split(words[0])
    for number, word in enumerate(words):
        if word.rsplit("/", 1)[-1] in (framework, "py.test"):
            return tuple(words[number + 1 :])
    return ()
