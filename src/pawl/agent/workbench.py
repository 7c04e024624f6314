"""What the nodes of the graph work with, as ports: the run's record, talks with models, work on a bench, errands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pawl.agent.context import Spoken
from pawl.agent.evidence import Requirements, Verification
from pawl.agent.intents import Phrase
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import CheckResult
from pawl.core.dialogue import Message
from pawl.core.errors import PawlError
from pawl.core.run import ApprovalRequest, DeliveryState, RoleName, RunRequest, Stage, Task
from pawl.core.tiers import StopReason


class Unanswered(PawlError):
    """A call waits for the user's yes. No error for a person: the run stops here, asks, and goes on."""

    def __init__(self, question: ApprovalRequest) -> None:
        super().__init__(f"{question.tool!r} waits for your yes")
        self.question = question


class RunRecord(Protocol):
    """The record of one run; what is put is durable when it returns."""

    @property
    def run(self) -> str: ...

    @property
    def order(self) -> RunRequest: ...

    def value(self, name: str) -> object:
        """None when nothing was put under that name."""
        ...

    def put(self, name: str, body: object) -> None: ...

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        """An event."""
        ...

    def deliver(self, state: DeliveryState) -> DeliveryState:
        """Written once; returns what counts."""
        ...

    @property
    def delivery(self) -> DeliveryState | None: ...

    def work(self, name: str) -> ChangeSet | None: ...

    def keep_work(self, name: str, changes: ChangeSet) -> None: ...

    def evaluate(self, score: int, *, reason: str, judge: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """What is said to a role in a talk. A talk has a name, so that it can be taken up where it was interrupted."""

    talk: str
    role: RoleName
    text: str
    stage: Stage | None = None
    history: tuple[Message, ...] = ()
    summary: str = ""
    """What was done so far, for the stages that look back on it."""
    outcome: str = ""


class Talks(Protocol):
    @property
    def configured(self) -> bool:
        """There is a model to talk to."""
        ...

    def say(self, line: TurnInput) -> Spoken:
        """Talks until there is an answer. What was already said and done in this talk is not said and done again."""
        ...

    def earlier(self) -> tuple[Message, ...]:
        """What was said in the conversation before this run."""
        ...

    def history(self, talk: str) -> tuple[Message, ...]:
        """The dialogue of an earlier talk, to go on with; empty when there was none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPath:
    """A path that is not part of the change set, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What stands on the bench, over the workspace as it stands now."""

    changes: ChangeSet
    held: tuple[HeldPath, ...] = ()
    spare: ChangeSet = EMPTY
    """The changes that are held back and could be kept."""


class Works(Protocol):
    """The work on the bench and its way into the workspace."""

    def unmet(self, task: Task) -> tuple[str, ...]:
        """Every precondition of the task that does not hold."""
        ...

    def order(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Imported files before their importers."""
        ...

    def before(self) -> CheckResult:
        """The tests without any change; run once."""
        ...

    def now(self) -> Work:
        """`Conflicted` where the user has changed the same place meanwhile."""
        ...

    def verify(self, changes: ChangeSet) -> Verification:
        """On a fresh bench that holds nothing but these changes."""
        ...

    def adopt(self, changes: ChangeSet) -> None:
        """Puts a change set onto the bench."""
        ...

    def clear(self) -> None:
        """Throws away what stands on the bench."""
        ...

    def settle(self, task: int) -> None:
        """The task is verified: the bench as it stands is what the next one falls back to."""
        ...

    def breaches(self, changes: ChangeSet) -> tuple[str, ...]:
        """Limits of the guardrails that the changes go over, so that the user is asked."""
        ...

    def select(self, changes: ChangeSet, hunks: Sequence[int]) -> ChangeSet: ...

    def stale(self, changes: ChangeSet) -> tuple[str, ...]:
        """The paths that no longer stand where the changes start."""
        ...

    def promoted(self, changes: ChangeSet) -> int | None:
        """The entry by which this run has already promoted the changes."""
        ...

    def promote(self, changes: ChangeSet, title: str) -> int:
        """The entry."""
        ...

    def commit(self, changes: ChangeSet, title: str) -> tuple[str, tuple[str, ...]]:
        """The commit of what was promoted, empty where the user wants none, with what there is to say of it.

        `GitFailed` where it cannot be made.
        """
        ...

    def keep(self, changes: ChangeSet, title: str, reason: str) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What came of something that needs no change of ours."""

    text: str
    exit_code: int = 0
    ended: str = ""
    verdicts: tuple[CheckResult, ...] = ()
    kept: int | None = None
    entry: int | None = None
    conversation: str = ""


class Errands(Protocol):
    def read(self) -> Action: ...

    def run(self, command: str) -> Action: ...

    def undo(self) -> Action: ...

    def profile(self) -> Action: ...

    def mend(self) -> tuple[ChangeSet, str, str]:
        """What the reflex found, why it found nothing, and what to do about it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """What a climb came to."""

    why: StopReason | None
    """None when there was nothing to climb for."""
    reason: str
    changes: ChangeSet = EMPTY
    """What the checks accepted; else the best that stands, which may be nothing."""
    checked: Verification | None = None
    """The verification of what was accepted."""
    notes: tuple[str, ...] = ()
    answer: str = ""

    @property
    def accepted(self) -> bool:
        return self.why is StopReason.VERIFIED


class Climber(Protocol):
    def climb(self, wanted: Requirements) -> Climbed:
        """Climbs the ladder of the run to its end. What was tried before an interruption is not tried again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """Everything that a node may use."""

    record: RunRecord
    talks: Talks
    works: Works
    errands: Errands
    ask_user: Callable[[ApprovalRequest], Mapping[str, object]]
    """Waits for the user's answer; the process may end meanwhile."""
    review: str = "auto"
    """`auto`, `on` or `off`: whether a second role looks at the finished work."""
    evaluator: str = "rules"
    """`rules` or `model`."""
    judge: Callable[[], tuple[int, str]] | None = None
    """An evaluator of the user's own, which goes before both."""
    phrases: Callable[[], Sequence[Phrase]] = tuple
    """What the user has ways of their own to ask for."""
    climber: Climber | None = None
    """None where no ladder may be climbed."""
