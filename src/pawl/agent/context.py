"""Who talks with a model: a role of a run with its terms, prompts, tools and limits, and how a talk ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from pawl.agent.compression import cut
from pawl.agent.policy import Policy
from pawl.agent.prompts import PromptRepository
from pawl.agent.roles import Role
from pawl.core.dialogue import Message, Request, Sampling, ToolOffer
from pawl.core.errors import PawlError
from pawl.core.events import RunEvent
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import (
    ApprovalRequest,
    Budget,
    Detail,
    Mode,
    ReasoningOutcome,
    RequestRecord,
    RunTerms,
    Stage,
)
from pawl.models import Model
from pawl.sandbox.cancel import CancelToken


@dataclass(frozen=True, slots=True)
class ToolReply:
    """How a tool call ended, for the model."""

    text: str
    failed: bool


class Toolset(Protocol):
    """The tools that there are, by name."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        """These tools as a model sees them, in a stable order."""
        ...

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        """Never raises for what a model did wrong: that is a reply that failed."""
        ...


class Compress(Protocol):
    """Makes a dialogue shorter; the message at `request` stays in it, the same value."""

    def __call__(self, messages: Sequence[Message], *, request: int, too_long: bool) -> Sequence[Message]:
        """The messages to go on with: the given ones when there is nothing to gain.

        Asked before each request, and with `too_long` when the model could not read it all.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """Everything that stays the same while a role talks."""

    terms: RunTerms
    role: Role
    policy: Policy
    prompts: PromptRepository
    variables: Mapping[str, str]
    model: Model
    tools: Toolset
    record: Callable[[RequestRecord], object]
    listen: Callable[[RunEvent], object] = lambda event: None
    together: Callable[[Sequence[Mapping[str, object]]], object] = lambda calls: None
    """Told the arguments of calls that send several others in one answer, before the first is made."""
    clean: Callable[[Request], Request] = lambda request: request
    """Takes secrets out of what is about to be sent."""
    compress: Compress = cut
    context: tuple[str, ...] = ()
    """Sent after the prompts, such as memories; the same throughout, so that prompt caches hold."""
    work_left: tuple[str, ...] = ()
    """The refusals of the verification, by the run's own record; they hold until the loop changes something."""
    owes_change: bool = False
    """The user's words ask for a change, and none stands on the bench."""
    once: bool = False
    """One request is all: the model is not known to call tools well."""
    heard: Callable[[], tuple[str, ...]] = tuple
    """The user's words since this was last asked; taken before the next request."""
    found: Callable[[], tuple[str, ...]] = tuple
    """Results that came while the model was asked; said before every request but the first."""
    stopping: Callable[[str], tuple[str, ...]] = lambda text: ()
    """Why the role is to go on that would end with these words."""
    limits: Budget = field(default_factory=Budget)
    is_spent: Callable[[], bool] = lambda: False
    """Whether the share of whoever was sent is used up: it answers from what it knows."""
    sampling: Sampling | None = None
    """The role's own temperature and the usual rest when None."""
    detail: Detail | None = None
    cancel: CancelToken | None = None
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """A turn of the user's with a role. Its talk has a name, so that it can be taken up where it was interrupted."""

    talk: str
    role: str
    text: str
    stage: Stage | None = None
    mode: Mode | None = None
    """Another than the run's: a question is answered in chat mode, with nobody to ask about a call."""
    history: tuple[Message, ...] = ()
    summary: str = ""
    """The work so far, for the stages that look back on it."""
    outcome: str = ""
    longest: int = 0
    """Tokens of the answer; 0 for as many as the settings say."""
    sent: bool = False
    """By another role, which gets the answer; the user's conversation has nothing of it."""


class Unanswered(PawlError):
    """A call waits for the user's yes. The run stops here, asks, and goes on."""

    def __init__(self, question: ApprovalRequest) -> None:
        super().__init__(f"{question.tool!r} waits for your yes")
        self.question = question


class LoopEnd(StrEnum):
    """Why a talk ended."""

    ANSWERED = "answered"
    CUT_OFF = "cut_off"
    """The answer is as long as an answer may be, and not whole."""
    EMPTY = "empty"
    """The model had nothing to say, also when it was told so."""
    REFUSED = "refused"
    STUCK = "stuck"
    """The same calls brought the same results again and again."""
    OUT_OF_TURNS = "out_of_turns"
    OUT_OF_TIME = "out_of_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """The result of an agent loop."""

    text: str
    ended: LoopEnd
    messages: tuple[Message, ...]
    """The whole dialogue, as it may be sent again."""
    said: tuple[Message, ...]
    """Added by this loop, whole even where the dialogue was shortened."""
    requests: int
    outcome: ReasoningOutcome | None = None
    value: object = None
    """The validated answer, where the role has a contract."""
