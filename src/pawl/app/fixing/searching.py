"""Repairs by search: what the engine is asked, and what it says about the tests on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pawl.app.fixing.ground import GRACE_SECONDS, Ground
from pawl.core.finding import Finding
from pawl.repair.model import BaselineTaken, LinesSuspected, RepairEnded, RepairEvent, Status, SuspiciousLine


@dataclass(slots=True)
class Search:
    ground: Ground
    tried: int = 0
    cpu_seconds: float = 0.0
    suspicious: dict[tuple[str, int], SuspiciousLine] = field(default_factory=dict)
    unsteady: dict[str, str] = field(default_factory=dict)
    """Tests that pass or fail by chance or by their order, and which of the two."""

    def run(self, failing: Sequence[Finding], seconds: float) -> RepairEnded:
        """One search for a patch that makes these tests pass."""
        ended: list[RepairEnded] = []

        def take(event: RepairEvent) -> None:
            self._notice(event)
            if isinstance(event, RepairEnded):
                ended.append(event)
            else:
                self.ground.listen(event)

        request = self.ground.request_for([finding.test for finding in failing], max(1.0, seconds))
        done = self.ground.engine.run(request, self.ground.limits(seconds + GRACE_SECONDS), take)
        if not ended:
            said = done.stderr.text.strip().splitlines()[-1:] or [f"it ended with code {done.code}"]
            return RepairEnded(status=Status.ENGINE_FAILED, seconds=done.seconds, error=said[0])
        if ended[0].status is Status.NOTHING_FAILS:
            # They failed a moment ago.
            tests = [finding.test for finding in failing]
            self.unsteady.update(dict.fromkeys(tests, "flaky"))
            self.ground.note_tests("flaky", tests)
        self.tried += ended[0].tried
        self.cpu_seconds += ended[0].cpu
        return ended[0]

    def _notice(self, event: RepairEvent) -> None:
        if isinstance(event, LinesSuspected):
            self.suspicious.update({(line.path, line.line): line for line in event.lines})
        if isinstance(event, BaselineTaken):
            for word, tests in (("flaky", event.flaky), ("order-dependent", event.ordered)):
                self.unsteady.update(dict.fromkeys(tests, word))
            for word, tests in (("flaky", event.flaky), ("order-dependent", event.ordered), ("hanging", event.hanging)):
                self.ground.note_tests(word, tests)
