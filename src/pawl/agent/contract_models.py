"""The contracts as types: the fields of each answer in JSON, and what must agree inside of it.

The order of the fields is the order in which a model writes them. Importing this module imports pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pawl.agent.reasoning import FEWEST_BULLETS, MOST_BULLETS

MOST_CHANGES = 10
MOST_ATTEMPTS = 3

Status = Literal["completed", "partial", "failed"]
Text = Annotated[str, Field(min_length=1)]


def _relative(path: str) -> str:
    parts = path.split("/")
    if path.startswith(("/", "~")) or "\\" in path or "\0" in path or ".." in parts or (path[1:2] == ":"):
        raise ValueError("must be relative to the workspace, with / and without ..")
    return path


FilePath = Annotated[str, Field(min_length=1), AfterValidator(_relative)]
Line = Annotated[int, Field(ge=0, description="0 for the whole file")]


class Disagreements(ValueError):
    """Every contradiction inside an answer."""

    def __init__(self, wrong: Sequence[str]) -> None:
        super().__init__("; ".join(wrong))
        self.wrong = tuple(wrong)


class Contract(BaseModel):
    """A JSON object with exactly its fields, which agree with each other."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def disagreements(self) -> Iterable[str]:
        return ()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        wrong = list(self.disagreements())
        if wrong:
            raise Disagreements(wrong)
        return self


class PlannedChange(Contract):
    id: Annotated[int, Field(ge=1)]
    path: FilePath
    action: Literal["create", "edit", "delete"]
    what: Text
    depends_on: Annotated[tuple[int, ...], Field(description="ids of earlier changes")]


class ChangeResult(Contract):
    id: Annotated[int, Field(ge=1, description="the id of the planned change")]
    path: FilePath
    status: Status
    detail: str


class WorkerAnswer(Contract):
    """The result of a worker's changes (D6)."""

    status: Status
    results: tuple[ChangeResult, ...]
    files_modified: tuple[FilePath, ...]
    files_failed: tuple[FilePath, ...]

    def disagreements(self) -> Iterable[str]:
        return _disagreements_of_work(self)


Changes = Annotated[tuple[PlannedChange, ...], Field(max_length=MOST_CHANGES)]


class PlannedChanges(Contract):
    """The changes that a request is cut into, before any is made."""

    plan: Changes

    def disagreements(self) -> Iterable[str]:
        return _disagreements_of_plan(self.plan)


class PlannerAnswer(Contract):
    """The plan and what became of it (D6)."""

    status: Status
    plan: Changes
    results: tuple[ChangeResult, ...]
    files_modified: tuple[FilePath, ...]
    files_failed: tuple[FilePath, ...]

    def disagreements(self) -> Iterable[str]:
        yield from _disagreements_of_work(self)
        yield from _disagreements_of_plan(self.plan)
        unplanned = sorted({result.id for result in self.results} - {change.id for change in self.plan})
        if unplanned:
            yield f"results: no planned change has the id {_listed(unplanned)}"


class AppliedFix(Contract):
    path: FilePath
    error: Text
    fix: Text


class FixerAnswer(Contract):
    """The repairs of a fixer and what remains (D6)."""

    status: Status
    fixes_applied: tuple[AppliedFix, ...]
    build_status: Literal["passed", "failed", "not_run"]
    remaining_errors: tuple[Text, ...]
    attempts: Annotated[int, Field(ge=0, le=MOST_ATTEMPTS)]

    def disagreements(self) -> Iterable[str]:
        if self.status == "completed" and (self.build_status != "passed" or self.remaining_errors):
            yield "status is completed, but the build did not pass or errors remain"
        if self.build_status == "passed" and self.remaining_errors:
            yield "build_status is passed, but errors remain"


class Remark(Contract):
    path: FilePath
    line: Line
    severity: Literal["blocking", "minor"]
    problem: Text
    suggestion: str


class CriticVerdict(Contract):
    """The critic's: a change is sent back exactly when something blocks it."""

    verdict: Literal["approve", "send_back"]
    summary: Text
    problems: tuple[Remark, ...]

    def disagreements(self) -> Iterable[str]:
        blocked = any(problem.severity == "blocking" for problem in self.problems)
        if self.verdict == "approve" and blocked:
            yield "verdict is approve, but a problem is blocking"
        if self.verdict == "send_back" and not blocked:
            yield "verdict is send_back, but no problem is blocking"


class RankedFile(Contract):
    path: FilePath
    relevance: Literal["high", "medium", "low"]
    why: Text


class FileRanking(Contract):
    """The librarian's, most relevant first."""

    summary: Text
    files: tuple[RankedFile, ...]

    def disagreements(self) -> Iterable[str]:
        paths = [file.path for file in self.files]
        return [f"files: {path} occurs twice" for path in sorted(set(paths)) if paths.count(path) > 1]


class ReviewAnswer(Contract):
    """The QA report, which says nothing on the delivery."""

    summary: Text
    findings: tuple[Remark, ...]
    missing_tests: tuple[Text, ...]
    confidence: Literal["high", "medium", "low"]


class IntentAnswer(Contract):
    intent: Literal["read", "edit", "run", "undo", "profile"]
    summary: Text
    paths: tuple[FilePath, ...]
    command: Annotated[str, Field(description="the command to run, as the request names it; else empty")]

    def disagreements(self) -> Iterable[str]:
        if self.command and self.intent != "run":
            yield "command is given, but the intent is not run"


class Score(Contract):
    score: Annotated[int, Field(ge=1, le=5, json_schema_extra={"enum": [1, 2, 3, 4, 5]})]
    reason: Text


class ChaosCase(Contract):
    target: Annotated[str, Field(min_length=1, description="path::name of the function")]
    input: Annotated[str, Field(min_length=1, description="an expression that can be run")]
    expect: Text
    why: Text


class Cases(Contract):
    """Chaos's attempts to break a result."""

    cases: Annotated[tuple[ChaosCase, ...], Field(min_length=1, max_length=20)]


class Delivery(Contract):
    """Whether the request is fulfilled; the record of the run decides in the end."""

    state: Literal["NEEDS_WORK", "DONE"]
    evidence: tuple[Text, ...]
    remaining: tuple[Text, ...]
    tests_left: Annotated[
        Literal["must pass", "may fail", "none"],
        Field(description="what the request, in its own words, wants of the tests that still fail"),
    ] = "none"

    def disagreements(self) -> Iterable[str]:
        if self.state == "DONE" and self.remaining:
            yield "state is DONE, but something remains"
        if self.state == "DONE" and not self.evidence:
            yield "state is DONE without evidence"
        if self.state == "NEEDS_WORK" and not self.remaining:
            yield "state is NEEDS_WORK, but nothing remains"


Reasons = Annotated[tuple[Text, ...], Field(min_length=FEWEST_BULLETS, max_length=MOST_BULLETS)]
"""The micro reasoning of an answer in JSON, as its first field."""


CONTRACTS: Mapping[str, type[Contract]] = MappingProxyType(
    {
        "cases": Cases,
        "delivery": Delivery,
        "fix": FixerAnswer,
        "intent": IntentAnswer,
        "plan": PlannerAnswer,
        "ranking": FileRanking,
        "review": ReviewAnswer,
        "score": Score,
        "tasks": PlannedChanges,
        "verdict": CriticVerdict,
        "work": WorkerAnswer,
    }
)


def _disagreements_of_work(answer: PlannerAnswer | WorkerAnswer) -> Iterator[str]:
    both = sorted(set(answer.files_modified) & set(answer.files_failed))
    if both:
        yield f"files_modified and files_failed both name {_listed(both)}"
    failed = answer.files_failed or any(result.status == "failed" for result in answer.results)
    if answer.status == "completed" and failed:
        yield "status is completed, but a change failed"
    if answer.status == "failed" and answer.files_modified:
        yield "status is failed, but files were modified: say partial"


def _disagreements_of_plan(plan: Sequence[PlannedChange]) -> Iterator[str]:
    seen: set[int] = set()
    for change in plan:
        if change.id in seen:
            yield f"plan: the id {change.id} occurs twice"
        later = sorted(set(change.depends_on) - seen)
        if later:
            yield f"plan: {change.id} depends on {_listed(later)}, which does not come before it"
        seen.add(change.id)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
