"""The parts of a run: its mode and reasoning, which belong to the user, its stages, and the roles that act in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pawl.core.diagnostic import TestCounts, Verdict
from pawl.core.errors import PawlError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.tiers import EscalationState
from pawl.core.typed import AtLeast


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
    ONCE = "once"
    """Answers a whole request in one go, from the code that comes with it."""


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
    """The delivery of a request, as far as it is proved."""

    NEEDS_WORK = "NEEDS_WORK"
    DONE = "DONE"
    PARTLY = "PARTLY"
    """Some of what was asked for is done and promoted."""
    UNVERIFIED = "UNVERIFIED"
    """Made, not proved, and kept for a person's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """The user's terms for a run; nothing changes them while the run lasts."""

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
class PolicyDecision:
    """The policy's answer for a role at a stage in a mode: who may do what, and what is sent."""

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
    found: tuple[str, ...] = ()
    """Tools that are not told with a request; they are found by a search and may be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a run. Money and tokens are one budget for all roles; turns and time are limits of their own."""

    money: Decimal | None = None
    """In US dollars."""
    tokens: Annotated[int | None, AtLeast(1)] = None
    """In and out, whatever they cost."""
    turns: Annotated[int, AtLeast(1)] = 50
    seconds: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One line of the request log (C15)."""

    conversation: str
    run: str
    mode: Mode
    stage: Stage
    role: str
    """A `RoleName`, or one of the user's own."""
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
    """The part of a step's reasoning that stays in the history; the full text is stored and shown, never sent again."""

    plan_delta: str
    next_action: str
    risks: str
    delivery: DeliveryState


class Intent(StrEnum):
    """The intent of a request."""

    READ = "read"
    EDIT = "edit"
    FIX = "fix"
    """Failing tests are to pass: the reflex goes first."""
    RUN = "run"
    UNDO = "undo"
    PROFILE = "profile"
    LOOP = "loop"
    """Tiers are tried until the checks accept what was made; named by the command, never guessed."""

    @classmethod
    def _missing_(cls, value: object) -> Intent | None:
        """Stored runs, and files of users from before, say `mend`."""
        return cls.FIX if value == "mend" else None


class RunState(StrEnum):
    WORKING = "working"
    """Under way, or interrupted; it can be resumed."""
    WAITING = "waiting"
    """For the user's answer."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The user's request and its terms; frozen for the run."""

    text: str
    mode: Mode = Mode.AGENT
    intent: Intent | None = None
    """Named by the command; None where the words tell it."""
    approval: Approval = Approval.FINAL
    model: str = ""
    """Empty for the configured one."""
    test_command: tuple[str, ...] = ()
    reasoning: str = ""
    """Empty for the setting."""
    budget: Mapping[str, object] = field(default_factory=dict)
    conversation: str = ""
    """An earlier one to go on with."""
    schema: Mapping[str, object] | None = None
    """A JSON schema that the answer to the user must fit."""
    commit: str = ""
    """`on` or `off`: whether what is promoted is committed; empty for the setting."""
    context: tuple[str, ...] = ()
    """Told to the model beside the request: what the user did meanwhile, or how it is to be answered."""
    pictures: tuple[tuple[str, str], ...] = ()
    """Pictures and PDFs that came with the words: the name of each, and its content in the store."""
    record: str = ""
    """Where what is said is written as a script; empty for nowhere."""
    read_ahead: bool = True
    """Short files that the text names are read before the model is asked."""
    accept_unverified: bool = False
    """Promote unproved work all the same."""
    attended: bool = True
    """Whether somebody can be asked about a call; otherwise it is refused, and the model is told why."""
    install: bool = False
    """Packages that the project lacks may be installed on its benches, with a network."""
    fresh: bool = False
    """A question is asked anew, also where an answer that was given before still holds."""
    allowed_tools: tuple[str, ...] = ()
    """Rules such as `Bash(git diff *)`; whatever else would change something is asked about. Empty for no bound."""
    loop: Mapping[str, object] = field(default_factory=dict)
    """The ladder to climb and what it is for, as `agent/tier_file` writes it; empty for a request without one."""

    def __post_init__(self) -> None:
        """Programs may write the words: `approval="never"`."""
        for name, kind in (("mode", Mode), ("approval", Approval), ("intent", Intent)):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, None if value is None else kind(value))
            except ValueError as error:
                raise UsageError(f"there is no {name} {value!r}", advice=f"it is one of {', '.join(kind)}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One step of a plan: one file where possible, with its own verification."""

    number: int
    what: str
    paths: tuple[str, ...] = ()
    """The files to change; empty where only the work shows them."""
    creates: tuple[str, ...] = ()
    """Those of the paths that may not be there yet."""


class TaskState(StrEnum):
    DONE = "done"
    FAILED = "failed"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """The state of one task of a run, or of one part of its request."""

    number: int
    what: str
    state: TaskState = TaskState.NOT_BEGUN
    reason: str = ""
    """Why it failed."""
    entry: int | None = None
    """The entry that keeps its work, where it failed."""


@dataclass(frozen=True, slots=True)
class RunCursor:
    """Where a run stands: a node of the graph, which task, which attempt at it. Ids only."""

    run: str
    at: str
    task: int = 1
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """The record of a run."""

    id: str
    workspace: str
    created: str
    state: RunState
    place: RunCursor
    order: RunRequest
    delivery: DeliveryState | None = None
    """Authoritative; written once and never erased."""


class ApprovalAnswer(StrEnum):
    """The user's word on what is shown."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResponse:
    """An answer to a question, bound to the digest of exactly what was shown."""

    answer: ApprovalAnswer
    digest: str
    reason: str = ""
    hunks: tuple[int, ...] = ()
    """Which of the hunks, counted from 1 over the whole; empty for all."""
    patch: str = ""
    """The change as the user edited it, in the form of git; empty when it is taken as it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """The question that a run waits on: a yes to a change set, or to one call of a tool."""

    kind: str
    """`change` or `call`."""
    digest: str
    """Of exactly what is shown."""
    why: tuple[str, ...] = ()
    """Why it is asked, beyond the user's own policy."""
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    """The call as lines that are safe to show, with what is left out counted."""
    patch: tuple[str, ...] = ()
    """The lines of an edit that is short enough to be read at once, file by file."""
    flags: tuple[str, ...] = ()
    """Why the eyes may be deceived by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error, as the record keeps it."""

    code: str
    message: str
    advice: str
    exit_code: int


def trouble_of(error: PawlError) -> Trouble:
    return Trouble(code=error.code, message=error.message, advice=error.advice, exit_code=error.exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The advisory QA report beside the answer."""

    summary: str
    findings: tuple[str, ...] = ()
    """Those that block come first."""
    blocking: int = 0
    """How many of the findings block."""
    missing_tests: tuple[str, ...] = ()
    confidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A line that an answer names."""

    path: str
    line: int
    holds: bool
    """There is such a file, and it has that line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a run. Every ending composes one."""

    run: str
    request: str
    intent: Intent | None
    state: RunState
    delivery: DeliveryState | None
    answer: str = ""
    before: TestCounts | None = None
    after: TestCounts | None = None
    verdict: Verdict | None = None
    """On the change as a whole."""
    verdicts: tuple[tuple[str, str, str], ...] = ()
    """Step, standing, reason."""
    refused: tuple[str, ...] = ()
    """Why verification did not accept the work."""
    unproved: tuple[str, ...] = ()
    """Why nothing proves the work."""
    notes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    task_states: tuple[TaskOutcome, ...] = ()
    """The state of each task, or of each part of the request."""
    entry: int | None = None
    """Where the change was promoted."""
    kept: int | None = None
    """The entry that keeps what was not promoted."""
    alternatives: tuple[tuple[int, str], ...] = ()
    """Entries with patches that pass and disagree, and what each does where: the user's to choose from."""
    commit: str = ""
    """The commit of what was promoted; empty when none was made."""
    question: ApprovalRequest | None = None
    stale: str = ""
    """Why an approval was not taken: what it was given for is no longer what there is."""
    denials: tuple[Mapping[str, object], ...] = ()
    """Calls that the rules or a hook refused: `tool_name` and `tool_input`."""
    rejected: str | None = None
    """The user's reason, when it was rejected."""
    review: Review | None = None
    structured: object = None
    """The result by the user's schema."""
    score: int | None = None
    trouble: Trouble | None = None
    ended: str = ""
    """How the last talk with a model ended."""
    exit_code: int | None = None
    """Of a command that was run for the user."""
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    """Some of the tokens are Pawl's own figures."""
    cost: Decimal | None = Decimal(0)
    model: str = ""
    """The one that answered last, which may be a fallback."""
    asked_model: str = ""
    """The one that a question was meant for."""
    cached: str = ""
    """When the answer was first given, if it was given before; no model was asked."""
    citations: tuple[Citation, ...] = ()
    fell_back: tuple[tuple[str, str, str], ...] = ()
    """Model, the one that took over, why."""
    notices: tuple[str, ...] = ()
    conversation: str = ""
    seconds: float = 0.0
    climb: EscalationState | None = None
    """How far it came on its ladder, where it has one."""
