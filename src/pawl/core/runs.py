"""A run on its way from a request to its report: what was asked, where the run stands, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pawl.core.errors import UsageError
from pawl.core.finding import TestCounts
from pawl.core.run import Approval, DeliveryState, Mode
from pawl.core.tiers import Climb


class Intent(StrEnum):
    """What a request asks for."""

    READ = "read"
    EDIT = "edit"
    MEND = "mend"
    """Failing tests are to pass: the reflex goes first."""
    RUN = "run"
    UNDO = "undo"
    PROFILE = "profile"
    LOOP = "loop"
    """A ladder is climbed until the checks accept what was made; named by the command, never guessed."""


class RunState(StrEnum):
    WORKING = "working"
    """Under way, or interrupted; it can be resumed."""
    WAITING = "waiting"
    """For the user's answer."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the user asked for and on which terms; frozen for the run."""

    text: str
    mode: Mode = Mode.AGENT
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
    record: str = ""
    """Where what is said is written as a script; empty for nowhere."""
    loop: Mapping[str, object] = field(default_factory=dict)
    """The ladder to climb and what it is for, as `app/looping` writes it; empty for a request without one."""

    def __post_init__(self) -> None:
        """Programs may write the words: `approval="never"`."""
        for name, kind in (("mode", Mode), ("approval", Approval)):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, kind(value))
            except ValueError as error:
                raise UsageError(f"there is no {name} {value!r}", advice=f"it is one of {', '.join(kind)}") from error


def order_body(order: Order) -> dict[str, object]:
    """The order as JSON can hold it, without what is empty."""
    return {key: value for key, value in asdict(order).items() if value not in ("", (), None, {})}


def order_from(body: object) -> Order:
    given = dict(body) if isinstance(body, Mapping) else {}
    given["test_command"] = tuple(given.get("test_command", ()))
    return Order(**{"text": "", **given})


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One step of a plan: one file where possible, with its own verification."""

    number: int
    what: str
    paths: tuple[str, ...] = ()
    """What is to change; empty where only the work shows it."""
    creates: tuple[str, ...] = ()
    """Those of the paths that may not be there yet."""


@dataclass(frozen=True, slots=True)
class Place:
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
    place: Place
    order: Order
    delivery: DeliveryState | None = None
    """Authoritative; written once and never erased."""


class Answer(StrEnum):
    """The user's word on what is shown."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """An answer to a question, bound to the digest of exactly what was shown."""

    answer: Answer
    digest: str
    reason: str = ""
    hunks: tuple[int, ...] = ()
    """Which of the hunks, counted from 1 over the whole; empty for all."""
    patch: str = ""
    """The change as the user edited it, in the form of git; empty when it is taken as it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a run waits for: a yes to a change set, or to one call of a tool."""

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
    flags: tuple[str, ...] = ()
    """Why the eyes may be deceived by it."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Question:
        """The question as the record keeps it."""
        several = {name: tuple(body.get(name, ())) for name in ("why", "shown", "flags")}
        return cls(**{**body, **several})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error, as the record keeps it."""

    code: str
    message: str
    advice: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The advisory QA report beside the answer."""

    summary: str
    findings: tuple[str, ...] = ()
    missing_tests: tuple[str, ...] = ()
    confidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a run. Every ending composes one."""

    run: str
    request: str
    intent: Intent | None
    state: RunState
    delivery: DeliveryState | None
    answer: str = ""
    before: TestCounts | None = None
    after: TestCounts | None = None
    verdicts: tuple[tuple[str, str, str], ...] = ()
    """Step, standing, reason."""
    refused: tuple[str, ...] = ()
    """Why verification did not accept the work."""
    notes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    work: str = ""
    """The name under which the record keeps the change set that is shown; empty when there is none."""
    entry: int | None = None
    """Where the change was promoted."""
    kept: int | None = None
    """The entry that keeps what was not promoted."""
    commit: str = ""
    """The commit of what was promoted; empty when none was made."""
    question: Question | None = None
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
    cost: Decimal | None = Decimal(0)
    model: str = ""
    conversation: str = ""
    seconds: float = 0.0
    climb: Climb | None = None
    """How far it came on its ladder, where it has one."""
