"""Everything that a node of the run works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pawl.agent.errands import Runner
from pawl.agent.evidence import Climbed, Requirements
from pawl.agent.intents import Phrase
from pawl.agent.record import RunRecord
from pawl.agent.run_hooks import Hooking
from pawl.agent.talking import Talker
from pawl.agent.works import BenchWorks


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    record: RunRecord
    talks: Talker
    works: BenchWorks
    errands: Runner
    hooking: Hooking
    review: str = "auto"
    """`auto`, `on` or `off`: whether a second role looks at the finished work."""
    evaluator: str = "rules"
    """`rules` or `model`."""
    judge: Callable[[], tuple[int, str]] | None = None
    """An evaluator of the user's own, which goes before both."""
    phrases: Callable[[], Sequence[Phrase]] = tuple
    """What the user has ways of their own to ask for."""
    climb: Callable[[Requirements], Climbed] | None = None
    """Climbs the tiers of the run to their end; None where there are none. What was tried before an interruption is
    not tried again."""
