"""A file of turns that stand for a model: what each expects of a request, and what it answers.

People write TOML, the recorder writes JSON lines (`.jsonl`), one turn a line, with the same fields:

    [[turn]]
    match = { user = "fix", tools = ["file_read"] }     # all that is given must fit; left out: any request
    answer = { text = "I look first.", calls = [{ name = "file_read", arguments = { path = "a.py" } }] }

    [[turn]]
    times = 0                                            # how often it may be used; 0: always; left out: once
    fault = { kind = "interrupted", after = 10 }         # the answer breaks off there; `fault = "overloaded"` is enough
    answer = "This is a long text."
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from pawl.core.dialogue import FellBack, ModelEvent, Retrying, StopReason, TextDelta, Thought, ThoughtDelta, Usage
from pawl.core.errors import UnknownModel
from pawl.settings import files as bounded
from pawl.settings.tables import Fields, raise_mistakes

VERSION = 1
ENDINGS: Mapping[str, StopReason] = {"length": StopReason.LENGTH, "refused": StopReason.REFUSED}
"""Faults that are a way for an answer to end."""
FAULTS = (
    "unknown_model",
    "not_authorized",
    "rate_limited",
    "quota_exhausted",
    "overloaded",
    "unreachable",
    "timed_out",
    "interrupted",
    "unusable",
    "rejected",
    "context_too_long",
    "broken_history",
    "diverted",
    *ENDINGS,
)

_PLACES = ("user", "tool", "system")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMatch:
    """What a request must have for the turn; everything that is not None must fit."""

    texts: tuple[tuple[str, str], ...] = ()
    """A place (`user`, `tool`, `system`) and what must occur there."""
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()
    tools: tuple[str, ...] = ()
    """Tools that must be offered."""
    answered: tuple[str, ...] | None = None
    """The tools whose answers end the request."""
    schema: bool | None = None
    step: int | None = None
    """How many answers of the model the request carries, so that a turn fits at one point of a conversation only."""

    def __str__(self) -> str:
        given = {**dict(self.texts), **{f"{place}_regex": one.pattern for place, one in self.patterns}}
        for name in ("tools", "answered", "schema", "step"):
            if (value := getattr(self, name)) not in ((), None):
                given[name] = value
        return ", ".join(f"{name}={value!r}" for name, value in given.items()) or "any request"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    name: str
    raw: str
    id: str = ""
    """Empty for the next one of the conversation."""
    mistake: str = ""
    provider_id: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    text: str = ""
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason = StopReason.END
    usage: Usage | None = None
    """None to have it estimated."""
    cost: Decimal | None = None
    seconds: float = 0.0
    first_token_seconds: float | None = None
    attempts: int = 1
    served_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFault:
    kind: str
    message: str = ""
    wait_seconds: float | None = None
    after: int | None = None
    """How many characters of the text come through before it; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    number: int
    """From 1, in the order of the file."""
    match: TurnMatch
    answer: ScriptedAnswer
    events: tuple[ModelEvent, ...]
    """What is streamed before the answer or the fault."""
    fault: ScriptedFault | None = None
    times: int = 1
    """How often it may be used; 0 for always."""
    delay_seconds: float = 0.0


def read_script(path: Path) -> tuple[Turn, ...]:
    """The turns of a file; `UnknownModel` when it is not there, `ConfigError` with every mistake in it."""
    try:
        text = bounded.read_text(path, bounded.LARGEST_DATA)
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownModel(
            f"the script {str(path)!r} cannot be read: {error}", advice="name a file of turns"
        ) from error
    return parse_script(text, name=str(path), lines=path.suffix == ".jsonl")


def parse_script(text: str, *, name: str, lines: bool = False) -> tuple[Turn, ...]:
    """The turns of a TOML text, or of JSON lines."""
    mistakes: list[str] = []
    tables = _json_lines(text, mistakes) if lines else _toml(text, mistakes)
    turns = tuple(_turn(number, table, mistakes) for number, table in enumerate(tables, start=1))
    if not turns and not mistakes:
        mistakes.append("there is no turn in it")
    raise_mistakes(
        f"the script {name!r} is wrong",
        mistakes,
        advice="a turn takes match, answer, fault, chunks, times and delay_ms; see the examples in the documentation",
    )
    return turns


def _toml(text: str, mistakes: list[str]) -> tuple[object, ...]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        mistakes.append(f"it is not TOML: {error}")
        return ()
    fields = Fields("", table, mistakes)
    _check_version(fields)
    turns = fields.sequence("turn")
    fields.close()
    return turns


def _json_lines(text: str, mistakes: list[str]) -> tuple[object, ...]:
    tables: list[object] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            table = json.loads(line)
        except (ValueError, RecursionError) as error:
            mistakes.append(f"line {number} is not JSON: {error}")
            continue
        if isinstance(table, dict) and "version" in table:
            _check_version(Fields(f"line {number}", table, mistakes))
        else:
            tables.append(table)
    return tuple(tables)


def _check_version(fields: Fields) -> None:
    version = fields.whole("version")
    if version is not None and version != VERSION:
        fields.wrong("version", f"is {version}, and this Pawl reads {VERSION}")


def _turn(number: int, table: object, mistakes: list[str]) -> Turn:
    fields = Fields(f"turn {number}", table, mistakes)
    match = _match(fields)
    answer = _answer(fields)
    fault = _fault(fields)
    events, streamed = _events(fields, answer)
    if answer is None:
        if fault is None and streamed is None:
            fields.wrong("answer", "is missing, and there is no fault")
        answer = ScriptedAnswer()
    if streamed and not answer.text:
        answer = replace(answer, text=streamed)
    times, delay = fields.whole("times"), fields.whole("delay_ms")
    fields.close()
    return Turn(
        number=number,
        match=match,
        answer=answer,
        events=events,
        fault=fault,
        times=1 if times is None else times,
        delay_seconds=(delay or 0) / 1000,
    )


def _match(turn: Fields) -> TurnMatch:
    if isinstance(turn.any("match"), str):
        return TurnMatch(texts=(("user", turn.text("match")),))
    given = turn.inner("match")
    if given is None:
        return TurnMatch()
    texts = tuple((place, given.text(place)) for place in _PLACES)
    answered, schema = given.texts("answered"), given.flag("schema")
    match = TurnMatch(
        texts=tuple((place, text) for place, text in texts if text),
        patterns=tuple(pattern for place in _PLACES if (pattern := _pattern(given, place)) is not None),
        tools=given.texts("tools"),
        answered=answered if given.has("answered") else None,
        schema=schema if given.has("schema") else None,
        step=given.whole("step"),
    )
    given.close()
    return match


def _pattern(given: Fields, place: str) -> tuple[str, re.Pattern[str]] | None:
    name = f"{place}_regex"
    text = given.text(name)
    try:
        return (place, re.compile(text, re.MULTILINE)) if given.has(name) else None
    except re.error as error:
        given.wrong(name, f"is no regular expression: {error}")
        return None


def _answer(turn: Fields) -> ScriptedAnswer | None:
    if isinstance(turn.any("answer"), str):
        return ScriptedAnswer(text=turn.text("answer"))
    given = turn.inner("answer")
    if given is None:
        return None
    calls = tuple(_call(given, at, one) for at, one in _listed(given, "calls"))
    stop = given.text("stop", choices=tuple(StopReason))
    seconds, attempts = given.seconds("seconds"), given.whole("attempts", least=1)
    answer = ScriptedAnswer(
        text=given.text("text"),
        thoughts=tuple(_thought(given, at, one) for at, one in _listed(given, "thoughts")),
        calls=calls,
        stop=StopReason(stop) if stop else StopReason.CALLS if calls else StopReason.END,
        usage=_usage(given.inner("usage")),
        cost=given.money("cost"),
        seconds=seconds or 0.0,
        first_token_seconds=given.seconds("first_token_seconds"),
        attempts=attempts or 1,
        served_by=given.text("served_by"),
    )
    given.close()
    return answer


def _listed(given: Fields, name: str) -> list[tuple[int, object]]:
    """The things of a list; one text stands for a list of one."""
    value = given.any(name)
    return list(enumerate((value,) if isinstance(value, str) else given.sequence(name)))


def _thought(answer: Fields, at: int, given: object) -> Thought:
    if isinstance(given, str):
        return Thought(text=given)
    fields = Fields(f"{answer.where}.thoughts[{at}]", given, answer.mistakes)
    thought = Thought(text=fields.text("text"), signature=fields.text("signature"))
    fields.close()
    return thought


def _call(answer: Fields, at: int, one: object) -> ScriptedCall:
    given = Fields(f"{answer.where}.calls[{at}]", one, answer.mistakes)
    arguments, raw = given.table("arguments"), given.text("raw")
    if not given.has("name"):
        given.wrong("name", "is missing")
    if given.has("arguments") and given.has("raw"):
        given.wrong("raw", "is another way to give `arguments`: give one of them")
    call = ScriptedCall(
        name=given.text("name"),
        raw=raw if given.has("raw") else json.dumps(arguments, default=str, ensure_ascii=False),
        id=given.text("id"),
        mistake=given.text("mistake"),
        provider_id=given.text("provider_id"),
        signature=given.text("signature"),
    )
    given.close()
    return call


def _usage(given: Fields | None) -> Usage | None:
    if given is None:
        return None
    counts = {name: given.whole(name) or 0 for name in ("input", "output", "cached", "cache_written", "reasoning")}
    usage = Usage(**counts, estimated=given.flag("estimated"))
    given.close()
    return usage


def _fault(turn: Fields) -> ScriptedFault | None:
    if isinstance(turn.any("fault"), str):
        return ScriptedFault(kind=turn.text("fault", "overloaded", choices=FAULTS))
    given = turn.inner("fault")
    if given is None:
        return None
    if not given.has("kind"):
        given.wrong("kind", f"is missing; it is one of {', '.join(FAULTS)}")
    fault = ScriptedFault(
        kind=given.text("kind", "overloaded", choices=FAULTS),
        message=given.text("message"),
        wait_seconds=given.seconds("wait_seconds"),
        after=given.whole("after"),
    )
    given.close()
    return fault


def _events(turn: Fields, answer: ScriptedAnswer | None) -> tuple[tuple[ModelEvent, ...], str | None]:
    """What is streamed, and its text after the last attempt that failed; None when it was not given."""
    given = turn.any("chunks")
    text = answer.text if answer else ""
    if given is None or isinstance(given, int):
        size = turn.whole("chunks", least=1) or max(len(text), 1)
        thoughts = tuple(ThoughtDelta(one.text) for one in (answer.thoughts if answer else ()) if one.text)
        return (*thoughts, *(TextDelta(text[at : at + size]) for at in range(0, len(text), size))), None
    events = tuple(_event(turn, at, one) for at, one in enumerate(turn.sequence("chunks")))
    said = ""
    for event in events:
        match event:
            case TextDelta(text=piece):
                said += piece
            case Retrying() | FellBack():
                said = ""
    return events, said


def _event(turn: Fields, at: int, given: object) -> ModelEvent:
    if isinstance(given, str):
        return TextDelta(given)
    fields = Fields(f"{turn.where}.chunks[{at}]", given, turn.mistakes)
    if fields.has("thought"):
        event: ModelEvent = ThoughtDelta(fields.text("thought"))
    elif fields.has("fell_back_to"):
        event = FellBack(
            model=fields.text("model"), to=fields.text("fell_back_to"), why=fields.text("why", "a fault of the script")
        )
    else:
        if not fields.has("retrying"):
            fields.wrong("retrying", "is missing: a piece is a text or has thought, retrying or fell_back_to")
        event = Retrying(
            why=fields.text("retrying"),
            wait_seconds=fields.seconds("wait_seconds") or 0.0,
            attempt=fields.whole("attempt", least=1) or 1,
            begun=fields.flag("begun"),
        )
    fields.close()
    return event
