"""What failing tests say about where the fault is: the places of their tracebacks, the innermost most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pawl.context.sorting import is_test
from pawl.core.finding import Finding
from pawl.core.locating import Suspicion

_FADING = 0.7
"""What the next frame outwards counts."""
_MOST_FINDINGS = 50
_MOST_SUSPICIONS = 40


def suspicions(findings: Iterable[Finding]) -> tuple[Suspicion, ...]:
    """One for each place, the most suspicious first. A place that many failing tests run through is more so than one
    that few do; the tests themselves are not suspected."""
    weights: dict[tuple[str, int], float] = defaultdict(float)
    failed = [finding for finding in findings if finding.test][:_MOST_FINDINGS]
    for finding in failed:
        weight = 1.0
        for place in reversed(finding.frames):
            if not is_test(place.path):
                weights[place.path, place.line] += weight / len(failed)
                weight *= _FADING
    order = sorted(weights, key=lambda place: (-weights[place], place))[:_MOST_SUSPICIONS]
    return tuple(Suspicion(path=path, line=line, weight=min(1.0, weights[path, line])) for path, line in order)
