"""A model that answers from a file of turns: for tests, demonstrations, and replaying what was recorded.

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
import select
import threading
import tomllib
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pawl.core import errors
from pawl.core.dialogue import (
    Answered,
    FellBack,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    Speaker,
    StopReason,
    TextDelta,
    Thought,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.typed import AtLeast, OneOf, raise_mistakes, read_table, read_value
from pawl.models.calls import next_number, parsed_arguments
from pawl.models.ledger import estimated_usage
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.settings import files as bounded

VERSION = 1
ENDINGS: Mapping[str, StopReason] = {"length": StopReason.LENGTH, "refused": StopReason.REFUSED}
"""Faults that are a way for an answer to end."""
ERRORS: Mapping[str, type[errors.ModelError]] = {
    "unknown_model": errors.UnknownModel,
    "not_authorized": errors.NotAuthorized,
    "rate_limited": errors.RateLimited,
    "quota_exhausted": errors.QuotaExhausted,
    "overloaded": errors.Overloaded,
    "unreachable": errors.Unreachable,
    "timed_out": errors.ModelTimedOut,
    "interrupted": errors.AnswerInterrupted,
    "unusable": errors.AnswerUnusable,
    "rejected": errors.RequestRejected,
    "context_too_long": errors.ContextTooLong,
    "broken_history": errors.BrokenHistory,
    "diverted": errors.Diverted,
}
"""Faults that are raised."""
FAULTS = (*ERRORS, *ENDINGS)
_PLACES = ("user", "tool", "system")
_SHOWN = 60
_STOPPED = "the request was stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMatch:
    """The conditions of a turn on a request; all that are given must hold."""

    user: str = ""
    """Must occur in the last text of the user."""
    tool: str = ""
    system: str = ""
    user_regex: re.Pattern[str] | None = None
    tool_regex: re.Pattern[str] | None = None
    system_regex: re.Pattern[str] | None = None
    tools: tuple[str, ...] = ()
    """Tools that must be offered."""
    answered: tuple[str, ...] | None = None
    """The tools whose answers end the request."""
    schema: bool | None = None
    step: int | None = None
    """How many answers of the model the request carries, so that a turn fits at one point of a conversation only."""

    def __str__(self) -> str:
        given = ((one.name, getattr(self, one.name)) for one in fields(self))
        shown = [
            f"{name}={value.pattern if isinstance(value, re.Pattern) else value!r}"
            for name, value in given
            if value not in ("", (), None)
        ]
        return ", ".join(shown) or "any request"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    name: str = ""
    arguments: Mapping[str, object] | None = None
    raw: str | None = None
    """Another way to give the arguments: as a model would write them."""
    id: str = ""
    """Empty for the next one of the conversation."""
    mistake: str = ""
    provider_id: str = ""
    signature: str = ""

    def as_call(self, own_id: str) -> ToolCall:
        raw = self.raw
        if raw is None:
            raw = json.dumps(self.arguments or {}, default=str, ensure_ascii=False)
        arguments, mistake = parsed_arguments(raw)
        return ToolCall(
            id=self.id or own_id,
            name=self.name,
            arguments=None if self.mistake else arguments,
            raw=raw,
            mistake=self.mistake or mistake,
            provider_id=self.provider_id,
            signature=self.signature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    text: str = ""
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason | None = None
    """None for calls where there are some, and the end of an answer where there are none."""
    usage: Usage | None = None
    """None to have it estimated."""
    cost: Decimal | None = None
    seconds: float = 0.0
    first_token_seconds: float | None = None
    attempts: Annotated[int, AtLeast(1)] = 1
    served_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFault:
    kind: Annotated[str, OneOf(FAULTS)]
    message: str = ""
    wait_seconds: float | None = None
    after: int | None = None
    """How many characters of the text come through before it; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """One event of a stream as a file has it; a text stands for a piece of the answer."""

    text: str | None = None
    thought: str | None = None
    retrying: str | None = None
    wait_seconds: float = 0.0
    attempt: Annotated[int, AtLeast(1)] = 1
    begun: bool = False
    fell_back_to: str | None = None
    model: str = ""
    why: str = "a fault of the script"

    @property
    def event(self) -> ModelEvent | None:
        if self.text is not None:
            return TextDelta(self.text)
        if self.thought is not None:
            return ThoughtDelta(self.thought)
        if self.fell_back_to is not None:
            return FellBack(model=self.model, to=self.fell_back_to, why=self.why)
        if self.retrying is not None:
            return Retrying(why=self.retrying, wait_seconds=self.wait_seconds, attempt=self.attempt, begun=self.begun)
        return None


_ANY_REQUEST = TurnMatch()
_NO_ANSWER = ScriptedAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    match: TurnMatch = _ANY_REQUEST
    answer: ScriptedAnswer = _NO_ANSWER
    fault: ScriptedFault | None = None
    chunks: object = None
    """The length of the pieces in which the text comes, or the events one by one."""
    times: int = 1
    """How often it may be used; 0 for always."""
    delay_ms: int = 0
    number: int = field(default=0, metadata={"own": True})
    """From 1, in the order of the file."""
    events: tuple[ModelEvent, ...] = field(default=(), metadata={"own": True})
    """Streamed before the answer or the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScriptFile:
    version: int = VERSION
    turn: tuple[object, ...] = ()


def read_script(path: Path) -> tuple[Turn, ...]:
    """The turns of a file; `UnknownModel` when it is not there, `ConfigError` with every mistake in it."""
    try:
        text = bounded.read_text(path, bounded.LARGEST_DATA)
    except (OSError, UnicodeDecodeError) as error:
        raise errors.UnknownModel(
            f"the script {str(path)!r} cannot be read: {errors.why(error)}", advice="name a file of turns"
        ) from error
    return parse_script(text, name=str(path), lines=path.suffix == ".jsonl")


def parse_script(text: str, *, name: str, lines: bool = False) -> tuple[Turn, ...]:
    """The turns of a TOML text, or of JSON lines."""
    mistakes: list[str] = []
    file = _json_lines(text, mistakes) if lines else _toml(text, mistakes)
    turns = tuple(_turn(number, table, mistakes) for number, table in enumerate(file.turn, start=1))
    if file.version != VERSION:
        mistakes.append(f"version is {file.version}, and this Pawl reads {VERSION}")
    if not turns and not mistakes:
        mistakes.append("there is no turn in it")
    raise_mistakes(
        f"the script {name!r} is wrong",
        mistakes,
        advice="a turn takes match, answer, fault, chunks, times and delay_ms; see the examples in the documentation",
    )
    return turns


def _toml(text: str, mistakes: list[str]) -> _ScriptFile:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        mistakes.append(f"it is not TOML: {error}")
        table = {}
    return read_table(_ScriptFile, table, where="", mistakes=mistakes) or _ScriptFile()


def _json_lines(text: str, mistakes: list[str]) -> _ScriptFile:
    file = _ScriptFile()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            table = json.loads(line)
        except (ValueError, RecursionError) as error:
            mistakes.append(f"line {number} is not JSON: {error}")
            continue
        if isinstance(table, dict) and "version" in table:
            version = read_value(int, table["version"], where=f"line {number}.version", mistakes=mistakes)
            file = replace(file, version=VERSION if version is None else version)
        else:
            file = replace(file, turn=(*file.turn, table))
    return file


def _turn(number: int, table: object, mistakes: list[str]) -> Turn:
    where = f"turn {number}"
    turn = read_table(Turn, table, where=where, mistakes=mistakes, base=Turn(number=number)) or Turn()
    answer = turn.answer
    for at, call in enumerate(answer.calls):
        place = f"{where}.answer.calls[{at}]"
        if not call.name:
            mistakes.append(f"{place}.name is missing")
        if call.arguments is not None and call.raw is not None:
            mistakes.append(f"{place}.raw is another way to give `arguments`: give one of them")
    if turn.chunks is None or isinstance(turn.chunks, int):
        if answer is _NO_ANSWER and turn.fault is None:
            mistakes.append(f"{where}.answer is missing, and there is no fault")
        return replace(turn, events=_cut(turn, where, mistakes))
    events = _events(turn.chunks, where, mistakes)
    return replace(turn, events=events, answer=replace(answer, text=answer.text or _said(events)))


def _cut(turn: Turn, where: str, mistakes: list[str]) -> tuple[ModelEvent, ...]:
    """The thoughts and the text of the answer, in pieces where a length is given."""
    text, size = turn.answer.text, None
    if turn.chunks is not None:
        size = read_value(Annotated[int, AtLeast(1)], turn.chunks, where=f"{where}.chunks", mistakes=mistakes)
    size = size or max(len(text), 1)
    thoughts = tuple(ThoughtDelta(one.text) for one in turn.answer.thoughts if one.text)
    return (*thoughts, *(TextDelta(text[at : at + size]) for at in range(0, len(text), size)))


def _events(chunks: object, where: str, mistakes: list[str]) -> tuple[ModelEvent, ...]:
    events: list[ModelEvent] = []
    listed = read_value(tuple[object, ...], chunks, where=f"{where}.chunks", mistakes=mistakes) or ()
    for at, one in enumerate(listed):
        place = f"{where}.chunks[{at}]"
        chunk = read_value(_Chunk, one, where=place, mistakes=mistakes)
        if chunk is not None and chunk.event is not None:
            events.append(chunk.event)
        elif chunk is not None:
            mistakes.append(f"{place}.retrying is missing: a piece is a text or has thought, retrying or fell_back_to")
    return tuple(events)


def _said(events: Sequence[ModelEvent]) -> str:
    """The text of the events after the last attempt that failed."""
    said = ""
    for event in events:
        match event:
            case TextDelta(text=piece):
                said += piece
            case Retrying() | FellBack():
                said = ""
    return said


class ScriptedModel:
    """Fits `Model`. Turns are taken in order: the first one that is left and whose match fits the request."""

    def __init__(self, path: Path, *, used: Sequence[int] = ()) -> None:
        """`used` are the turns that a run has taken before it was resumed, as `consumed` has them."""
        self._path = path
        self._turns = read_script(path)
        self._lock = threading.Lock()
        self._consumed = list(used)
        if unknown := [number for number in used if not 1 <= number <= len(self._turns)]:
            raise errors.ConfigError(
                f"the script {str(path)!r} has no turn {unknown[0]}, which the run has used",
                advice="resume with the script that the run was started with",
            )

    @property
    def consumed(self) -> tuple[int, ...]:
        """The numbers of the turns that were taken, in order."""
        with self._lock:
            return tuple(self._consumed)

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        turn = self._taken(request)
        if turn.delay_ms:
            select.select([] if cancel is None else [cancel], [], [], turn.delay_ms / 1000)
        events = _up_to_fault(turn)
        for event in events:
            raise_if_stopped(cancel, _STOPPED)
            yield event
        raise_if_stopped(cancel, _STOPPED)
        if turn.fault is not None and turn.fault.kind not in ENDINGS:
            raise _error(turn.fault, request.model, _said(events))
        yield Answered(_answer(turn, request))

    def _taken(self, request: Request) -> Turn:
        with self._lock:
            used = Counter(self._consumed)
            left = [turn for turn in self._turns if turn.times == 0 or used[turn.number] < turn.times]
            for turn in left:
                if fits(turn.match, request):
                    self._consumed.append(turn.number)
                    return turn
        shown = "; ".join(f"turn {turn.number} wants {turn.match}" for turn in left) or "no turn is left"
        raise errors.ScriptEnded(
            f"no turn of the script {str(self._path)!r} fits a request {_described(request)}: {shown}",
            advice="add a turn that fits, or give one `times = 0` so that it is used again",
        )


def fits(match: TurnMatch, request: Request) -> bool:
    """Whether the request has all that the turn wants."""
    if not set(match.tools) <= {offer.name for offer in request.tools}:
        return False
    if match.answered is not None and match.answered != _answered(request):
        return False
    if match.schema is not None and match.schema != (request.answer_schema is not None):
        return False
    if match.step is not None and match.step != sum(one.speaker is Speaker.ASSISTANT for one in request.messages):
        return False
    for name in _PLACES:
        text, pattern, place = getattr(match, name), getattr(match, f"{name}_regex"), _place(name, request)
        # A recorded turn knows the text without its secrets only.
        if text not in place and text not in redacted(place):
            return False
        if pattern is not None and not pattern.search(place):
            return False
    return True


def _place(name: str, request: Request) -> str:
    match name:
        case "system":
            return "\n".join(request.system)
        case "tool":
            last = request.messages[-1:]
            return "\n".join(answer.text for message in last for answer in message.answers)
    users = (message.text for message in reversed(request.messages) if message.speaker is Speaker.USER)
    return next(users, "")


def _answered(request: Request) -> tuple[str, ...]:
    return tuple(answer.name for message in request.messages[-1:] for answer in message.answers)


def _described(request: Request) -> str:
    answered = _answered(request)
    words = [f"whose last user text is {_short(_place('user', request))}"]
    if answered:
        words.append(f"that ends with the answers of {', '.join(answered)}: {_short(_place('tool', request))}")
    if request.answer_schema is not None:
        words.append("that wants an answer by a schema")
    return " and ".join(words)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _up_to_fault(turn: Turn) -> list[ModelEvent]:
    """The events of the turn; a fault may cut the text short."""
    if turn.fault is None or turn.fault.after is None:
        return list(turn.events)
    room = turn.fault.after
    events: list[ModelEvent] = []
    for event in turn.events:
        if isinstance(event, TextDelta):
            event = TextDelta(event.text[:room])
            room -= len(event.text)
            if not event.text:
                break
        events.append(event)
    return events


def _error(fault: ScriptedFault, model: str, said: str) -> errors.ModelError:
    message = fault.message or f"{model!r}: {fault.kind.replace('_', ' ')}, as its script says"
    advice = "the script asks for this fault"
    match fault.kind:
        case "rate_limited":
            return errors.RateLimited(message, fault.wait_seconds, advice=advice)
        case "interrupted":
            return errors.AnswerInterrupted(message, said, advice=advice)
    return ERRORS[fault.kind](message, advice=advice)


def _answer(turn: Turn, request: Request) -> ModelResponse:
    given, fault = turn.answer, turn.fault
    first = next_number(request.messages)
    calls = tuple(call.as_call(f"call_{first + at}") for at, call in enumerate(given.calls))
    text, stop = given.text, given.stop or (StopReason.CALLS if calls else StopReason.END)
    if fault is not None:
        text, stop, calls = text[: fault.after], ENDINGS[fault.kind], ()
    said = text + "".join(thought.text for thought in given.thoughts)
    return ModelResponse(
        text=text,
        stop=stop,
        usage=given.usage or estimated_usage(request, said, calls),
        model=request.model,
        thoughts=given.thoughts,
        calls=calls,
        cost=given.cost,
        seconds=given.seconds,
        first_token_seconds=given.first_token_seconds,
        attempts=given.attempts,
        served_by=given.served_by,
    )
