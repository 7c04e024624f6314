"""What happens while a role talks with a model, for whoever renders or records it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pawl.core.dialogue import FellBack, Retrying, TextDelta, ThoughtDelta, ToolAnswer, ToolCall, Usage
from pawl.core.run import RoleName, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent:
    """A request is on its way; `tools` is what the model may call."""

    number: int
    """Counts the requests of this dialogue, from 1."""
    stage: Stage
    role: RoleName
    model: str
    tools: tuple[str, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """The answer had a known fault and was sent back."""

    name: str
    why: str
    text: str
    """What had been said; it does not count as the answer."""


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
    """What the latest request and its answer take."""
    context_window: int
    """What the model can hold."""
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
    | Corrected
    | Shortened
    | Steered
    | Metered
    | Warned
)
