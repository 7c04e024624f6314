"""Answers in JSON: the schema to ask for, the object in what a model wrote, and every mistake in it at once.

A schema holds only what every provider and every grammar of a local model understands; bounds and agreements between
fields are checked here. The types import pydantic, which is paid for only where an answer in JSON is asked for.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pawl.agent.corrections import FIELD
from pawl.agent.reasoning import FEWEST_BULLETS, MOST_BULLETS, json_object
from pawl.core.errors import SchemaUnmet, UsageError
from pawl.core.formats import Unreadable, read_json

if TYPE_CHECKING:
    from pydantic import ValidationError


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
    """What does not agree inside of an answer, all of it."""

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
    """What became of the changes that a worker was sent for (D6)."""

    status: Status
    results: tuple[ChangeResult, ...]
    files_modified: tuple[FilePath, ...]
    files_failed: tuple[FilePath, ...]

    def disagreements(self) -> Iterable[str]:
        return _disagreements_of_work(self)


class PlannerAnswer(Contract):
    """The plan and what became of it (D6)."""

    status: Status
    plan: Annotated[tuple[PlannedChange, ...], Field(max_length=MOST_CHANGES)]
    results: tuple[ChangeResult, ...]
    files_modified: tuple[FilePath, ...]
    files_failed: tuple[FilePath, ...]

    def disagreements(self) -> Iterable[str]:
        yield from _disagreements_of_work(self)
        seen: set[int] = set()
        for change in self.plan:
            if change.id in seen:
                yield f"plan: the id {change.id} occurs twice"
            later = sorted(set(change.depends_on) - seen)
            if later:
                yield f"plan: {change.id} depends on {_listed(later)}, which does not come before it"
            seen.add(change.id)
        unplanned = sorted({result.id for result in self.results} - seen)
        if unplanned:
            yield f"results: no planned change has the id {_listed(unplanned)}"


class AppliedFix(Contract):
    path: FilePath
    error: Text
    fix: Text


class FixerAnswer(Contract):
    """What a fixer mended and what remains (D6)."""

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


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


_KEPT = ("type", "properties", "required", "additionalProperties", "items", "enum", "description")
_SHOWN_MISTAKES = 30


@functools.cache
def contract(name: str, *, reasoning: bool = False) -> type[Contract]:
    """The type of the contract of that name; with reasoning, it has a field for it."""
    from pydantic import create_model

    if name not in CONTRACTS:
        raise UsageError(f"there is no contract {name!r}", advice=f"the contracts are {', '.join(CONTRACTS)}")
    plain = CONTRACTS[name]
    if not reasoning:
        return plain
    return create_model(f"Reasoned{plain.__name__}", __base__=plain, reasoning=(Reasons, ...))


@functools.cache
def json_schema(name: str, *, reasoning: bool = False) -> Mapping[str, object]:
    """The schema to send: every field is required, no other is allowed, nothing is a reference."""
    full = contract(name, reasoning=reasoning).model_json_schema()
    return _inlined({key: value for key, value in full.items() if key != "description"}, full.get("$defs", {}))


def validated(name: str, text: str, *, reasoning: bool = False) -> Contract:
    """The value of the answer; `SchemaUnmet` lists every mistake, one to a line with its place."""
    from pydantic import ValidationError

    kind = contract(name, reasoning=reasoning)
    try:
        return kind.model_validate_json(json_object(text))
    except ValidationError as error:
        mistakes = tuple(_mistakes(error))
    shown = [f"- {mistake}" for mistake in mistakes[:_SHOWN_MISTAKES]]
    if len(mistakes) > len(shown):
        shown.append(f"- and {len(mistakes) - len(shown)} more")
    raise SchemaUnmet(
        f"the answer does not fit the contract {name!r}:\n" + "\n".join(shown),
        mistakes,
        advice="answer with one JSON object that has every field of the schema and no other",
    )


def _mistakes(error: ValidationError) -> Iterator[str]:

    for one in error.errors(include_url=False):
        place = _place(one["loc"])
        cause = one.get("ctx", {}).get("error")
        match one["type"]:
            case "value_error" if isinstance(cause, Disagreements):
                yield from (f"{place}: {wrong}" if place else wrong for wrong in cause.wrong)
            case "value_error":
                yield f"{place}: {cause}, not {_shown(one['input'])}"
            case "missing":
                yield f"{place}: missing"
            case "extra_forbidden":
                yield f"{place}: no such field"
            case "json_invalid":
                yield f"it is not JSON: {cause}"
            case _:
                yield f"{place or 'answer'}: {one['msg'][:1].lower()}{one['msg'][1:]}, not {_shown(one['input'])}"


def _place(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, object]:
    reference = schema.get("$ref")
    if reference is not None:
        named = definitions[reference.rpartition("/")[2]]
        schema = {key: value for key, value in named.items() if key != "description"} | dict(schema)
    kept: dict[str, object] = {key: schema[key] for key in _KEPT if key in schema}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "items" in kept:
        kept["items"] = _inlined(cast("Mapping[str, Any]", kept["items"]), definitions)
    if "properties" in kept:
        fields = cast("Mapping[str, Mapping[str, Any]]", kept["properties"])
        order = sorted(fields, key=lambda name: name != FIELD)
        kept["properties"] = {name: _inlined(fields[name], definitions) for name in order}
        kept["required"] = order
        kept["additionalProperties"] = False
    return kept


MOST_TRIES = 3
_DEEPEST = 40
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
}


def asked(schema: Mapping[str, object], request: str, answer: str) -> str:
    return (
        f"The request was:\n{request}\n\nWhat came of it:\n{answer}\n\n"
        f"Give this result as one JSON value that fits the schema, and nothing else:\n{json.dumps(schema)}"
    )


def again(schema: Mapping[str, object], said: str, mistakes: tuple[str, ...]) -> str:
    listed = "\n".join(f"- {mistake}" for mistake in mistakes)
    return f"You said:\n{said}\n\nIt does not fit:\n{listed}\n\nGive one JSON value that fits:\n{json.dumps(schema)}"


def fitted(text: str, schema: Mapping[str, object]) -> tuple[object, tuple[str, ...]]:
    """The value in the text, and every way in which it does not fit."""
    body = json_object(text) if schema.get("type", "object") == "object" else text.strip()
    try:
        value = read_json(body)
    except Unreadable as error:
        return None, (f"it is not JSON: {error}",)
    return value, tuple(_schema_mistakes(value, schema, "result", 0))


def _schema_mistakes(value: object, schema: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"{place}: it is nested too deep"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: must be one of {schema['enum']}, not {value!r}"
    if "const" in schema and value != schema["const"]:
        yield f"{place}: must be {schema['const']!r}, not {value!r}"
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{place}: must be of type {kinds}, not {type(value).__name__}"
        return
    match value:
        case dict():
            yield from _of_object(value, schema, place, depth)
        case list():
            yield from _of_array(value, schema, place, depth)
        case str():
            yield from _of_text(value, schema, place)
        case int() | float():
            yield from _bounds(value, schema, ("minimum", "maximum"), place)


def _of_array(value: list[object], schema: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    yield from _bounds(len(value), schema, ("minItems", "maxItems"), f"{place}: the number of items")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for number, item in enumerate(value):
            yield from _schema_mistakes(item, items, f"{place}[{number}]", depth + 1)


def _of_text(value: str, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    yield from _bounds(len(value), schema, ("minLength", "maxLength"), f"{place}: its length")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{place}: must match {schema['pattern']!r}"


def _of_object(value: Mapping[str, object], schema: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    fields = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}.{name}: missing"
    for name, inner in value.items():
        if name in fields:
            yield from _schema_mistakes(inner, fields[name], f"{place}.{name}", depth + 1)
        elif schema.get("additionalProperties") is False:
            yield f"{place}.{name}: no such field"


def _bounds(number: float, schema: Mapping[str, Any], names: tuple[str, str], what: str) -> Iterator[str]:
    least, most = (schema.get(name) for name in names)
    if least is not None and number < least:
        yield f"{what} must be at least {least}, not {number}"
    if most is not None and number > most:
        yield f"{what} must be at most {most}, not {number}"


def _is(value: object, kind: str) -> bool:
    if kind in ("number", "integer"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (isinstance(value, float) and (kind == "number" or value.is_integer()))
    return isinstance(value, _TYPES.get(kind, (object,)))
