"""What a run is made of: its mode and reasoning, which belong to the user, its stages, and the roles that act in it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Mode(StrEnum):
    """Chosen by the user and frozen for the run: chat reads and answers, agent may change things."""

    CHAT = "chat"
    AGENT = "agent"


class Reasoning(StrEnum):
    """Chosen by the user and frozen for the run."""

    ON = "on"
    OFF = "off"


class Detail(StrEnum):
    """How much an answer says (A10)."""

    TERSE = "terse"
    EXHAUSTIVE = "exhaustive"


class Stage(StrEnum):
    """A phase of a run."""

    INTENT = "intent"
    WARMUP = "warmup"
    PLAN = "plan"
    ACT = "act"
    FOLLOW_UP = "follow_up"
    DELIVERY = "delivery"
    QA = "qa"
    FINAL = "final"
    EVALUATE = "evaluate"
    STUDY = "study"
    """Reads and judges, changes nothing, and answers by the role's contract."""
    DRAFT = "draft"
    """Answers with code in one go, for models that are better at that than at calling tools."""


class RoleName(StrEnum):
    """An agent that is described by a data file."""

    SUPERVISOR = "supervisor"
    LEAD = "lead"
    PLANNER = "planner"
    WORKER = "worker"
    FIXER = "fixer"
    LIBRARIAN = "librarian"
    ARTISAN = "artisan"
    CRITIC = "critic"
    CHAOS = "chaos"
    REVIEWER = "reviewer"


MODEL_SLOTS = frozenset({"chaos", "code", "plan", "read", "review"})
"""Names under which roles share a model; each role may also have one under its own name."""


class ReasoningFormat(StrEnum):
    """How much reasoning a stage asks for."""

    NONE = "none"
    MACRO = "macro"
    MICRO = "micro"


class Approval(StrEnum):
    """When the user is asked about a change."""

    EACH = "each"
    FINAL = "final"
    NEVER = "never"


class DeliveryState(StrEnum):
    NEEDS_WORK = "NEEDS_WORK"
    DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """What the user chose for a run; nothing changes it while the run lasts."""

    run: str
    conversation: str
    mode: Mode
    reasoning: Reasoning
    model: str
    role_models: tuple[tuple[str, str], ...] = ()
    """Roles for which the user chose another model, each with its model."""

    def model_for(self, role: str) -> str:
        return dict(self.role_models).get(role, self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the policy gives a role at a stage in a mode: the one answer to who may do what, and what is sent."""

    tools: tuple[str, ...]
    """Names, sorted."""
    prompts: tuple[str, ...]
    """Names of prompts, in the order in which they are sent."""
    reasoning: ReasoningFormat
    approval: Approval
    contract: str = ""
    """The name of the schema that the answer must fit; empty for plain text."""
    reasoning_required: bool = False
    """An answer without its reasoning is faulty; otherwise it is asked for, and its absence is let pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may spend. Money and tokens are one purse for all roles; turns and time are limits of their own."""

    money: Decimal | None = None
    """In US dollars."""
    tokens: int | None = None
    """In and out, whatever they cost."""
    turns: int = 50
    seconds: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One line of the request log (C15)."""

    conversation: str
    run: str
    mode: Mode
    stage: Stage
    role: RoleName
    model: str
    reasoning: Reasoning
    tools: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    estimated: bool
    """The tokens are Pawl's own figures, because the provider gave none."""
    cost: Decimal | None
    """In US dollars; None when the price is unknown."""
    seconds: float
    first_token_seconds: float | None
    attempts: int
    ended: str
    """How it ended: a `Stop`, or the code of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningOutcome:
    """What stays of a step's reasoning in the history; the full text is stored and shown, never sent again."""

    plan_delta: str
    next_action: str
    risks: str
    delivery: DeliveryState
