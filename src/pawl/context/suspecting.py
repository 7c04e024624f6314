"""What failing tests say about where the fault is: the places of their tracebacks, the innermost most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pawl.context.sorting import is_test
from pawl.core.finding import Finding, Place
from pawl.core.locating import Suspicion

_FADING = 0.7
"""What the next frame outwards counts."""
FADING_IN_TEXT = 0.3
"""The same, where a text is the only witness: it quotes the lines of every caller, and their words speak for these."""
_MOST_FINDINGS = 50
_MOST_SUSPICIONS = 40


def suspicions(findings: Iterable[Finding], *, fading: float = _FADING) -> tuple[Suspicion, ...]:
    """One for each place, the most suspicious first. A place that many failing tests run through is more so than one
    that few do; the tests themselves are not suspected."""
    weights: dict[tuple[str, int], float] = defaultdict(float)
    failed = [finding for finding in findings if finding.test][:_MOST_FINDINGS]
    for finding in failed:
        weight = 1.0
        for place in reversed(finding.frames or _alone(finding)):
            if not is_test(place.path):
                weights[place.path, place.line] += weight / len(failed)
                weight *= fading
    order = sorted(weights, key=lambda place: (-weights[place], place))[:_MOST_SUSPICIONS]
    return tuple(Suspicion(path=path, line=line, weight=min(1.0, weights[path, line])) for path, line in order)


def _alone(finding: Finding) -> tuple[Place, ...]:
    """A report in one line for each test tells the innermost place alone."""
    return (Place(path=finding.path, line=finding.line),) if finding.path else ()
