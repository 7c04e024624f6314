"""Events while a role talks with a model, for whoever renders or records them."""

from __future__ import annotations

from decimal import Decimal

from pawl.core.change import ChangeSet
from pawl.core.dialogue import FellBack, Retrying, TextDelta, ThoughtDelta, ToolAnswer, ToolCall, Usage
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import ApprovalRequest, Report, RunCursor, RunRequest, Stage
from pawl.core.tiers import Attempt, Escalation, EscalationEnd, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent:
    """A request is on its way; `tools` is what the model may call."""

    number: int
    """Counts the requests of this dialogue, from 1."""
    stage: Stage
    role: str
    model: str
    tools: tuple[str, ...]
    attached: tuple[str, ...] = ()
    """Pictures and PDFs that go with the user's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswered:
    """The answer is whole; `cost` is None when the price is unknown."""

    number: int
    model: str
    usage: Usage
    cost: Decimal | None
    seconds: float


@dataclass(frozen=True, slots=True)
class ReasoningShown:
    """The whole reasoning of a step: shown and stored, never sent again."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    call: ToolCall
    answer: ToolAnswer
    seconds: float
    repeated: bool = False
    """It was not executed: the same call had just failed in the same way, or brought nothing new."""


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """What the call that is under way changed on the bench, as far as a model may read it."""

    changes: ChangeSet


@dataclass(frozen=True, slots=True)
class CommandPrinted:
    """A line of a command's output, while it runs; without secrets."""

    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """The answer had a known fault and was sent back."""

    name: str
    why: str
    text: str
    """The text of that answer; it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """Old tool outputs were taken out because the model could not read that much."""

    before_tokens: int
    after_tokens: int


@dataclass(frozen=True, slots=True)
class Steered:
    """Words that the user said while the run worked were taken into the talk."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """How full the model's context is, and what the run has come to by now."""

    context_tokens: int
    """The size of the latest request and its answer."""
    context_window: int
    """The most that the model can hold."""
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: Decimal | None
    """In US dollars; None when a price is unknown."""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that the user should know, such as a key that goes over the wire in the clear."""

    text: str


RunEvent = (
    RequestSent
    | RequestAnswered
    | TextDelta
    | ThoughtDelta
    | ReasoningShown
    | Retrying
    | FellBack
    | ToolStarted
    | ToolEnded
    | FilesChanged
    | CommandPrinted
    | Corrected
    | Shortened
    | Steered
    | Metered
    | Warned
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun:
    """A run is under way: a new one, or one that goes on."""

    run: str
    conversation: str
    order: RunRequest
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class NodeEntered:
    """The run has come to a node of the graph."""

    place: RunCursor


@dataclass(frozen=True, slots=True)
class TasksPlanned:
    """The request is done in these tasks, one after the other."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The follow-ups that wait for the present request to end, in their order."""

    waiting: tuple[RunRequest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked:
    """The run waits for the user."""

    run: str
    question: ApprovalRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSaid:
    """A hook has something to say to the user, or failed."""

    event: str
    text: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run stands still: it has ended, waits, or can be resumed. The last event of each command."""

    report: Report


SessionEvent = RunBegun | NodeEntered | TasksPlanned | QueueChanged | HookSaid | ApprovalAsked | RunEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbBegun:
    """A ladder is climbed; `done` attempts were made before it was interrupted."""

    ladder: Escalation
    failing: int
    done: int = 0
    spent: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierBegun:
    tier: Tier
    number: int
    """From 1."""
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationBegun:
    tier: str
    number: int
    of: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    attempt: Attempt
    number: int
    """Counts the attempts of the climb, from 1."""
    samples: int = 1
    """How many its iteration may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLeft:
    tier: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbEnded:
    why: EscalationEnd
    reason: str


@dataclass(frozen=True, slots=True)
class EscalationWarned:
    """Something went wrong that the run goes on without."""

    text: str


ClimbEvent = ClimbBegun | TierBegun | IterationBegun | AttemptEnded | TierLeft | ClimbEnded | EscalationWarned
