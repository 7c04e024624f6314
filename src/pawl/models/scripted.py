"""A model that answers from a file of turns: for tests, demonstrations, and replaying what was recorded."""

from __future__ import annotations

import select
import threading
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from pawl.core.dialogue import (
    Answered,
    FellBack,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    Speaker,
    TextDelta,
    ToolCall,
)
from pawl.core.errors import (
    AnswerInterrupted,
    AnswerUnusable,
    BrokenHistory,
    Cancelled,
    ConfigError,
    ContextTooLong,
    Diverted,
    ModelError,
    ModelTimedOut,
    NotAuthorized,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ScriptEnded,
    UnknownModel,
    Unreachable,
)
from pawl.core.redact import redacted
from pawl.models.calls import next_number, parsed_arguments
from pawl.models.prices import estimated_usage
from pawl.models.script_file import ENDINGS, ScriptedAnswer, ScriptedCall, ScriptedFault, Turn, TurnMatch, read_script
from pawl.sandbox.cancel import CancelToken

_RAISED: Mapping[str, type[ModelError]] = {
    "unknown_model": UnknownModel,
    "not_authorized": NotAuthorized,
    "quota_exhausted": QuotaExhausted,
    "overloaded": Overloaded,
    "unreachable": Unreachable,
    "timed_out": ModelTimedOut,
    "unusable": AnswerUnusable,
    "rejected": RequestRejected,
    "context_too_long": ContextTooLong,
    "broken_history": BrokenHistory,
    "diverted": Diverted,
}
_SHOWN = 60


class ScriptedModel:
    """Fits `Model`. Turns are taken in order: the first one that is left and whose match fits the request."""

    def __init__(self, path: Path, *, used: Sequence[int] = ()) -> None:
        """`used` are the turns that a run has taken before it was resumed, as `consumed` has them."""
        self._path = path
        self._turns = read_script(path)
        self._lock = threading.Lock()
        self._consumed = list(used)
        if unknown := [number for number in used if not 1 <= number <= len(self._turns)]:
            raise ConfigError(
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
        _wait(turn.delay_seconds, cancel)
        said = ""
        for event in _up_to_fault(turn):
            _check(cancel)
            match event:
                case TextDelta(text=text):
                    said += text
                case Retrying() | FellBack():
                    said = ""
            yield event
        _check(cancel)
        if turn.fault is not None and turn.fault.kind not in ENDINGS:
            raise _error(turn.fault, request.model, said)
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
        raise ScriptEnded(
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
    # A recorded turn knows the text without its secrets only.
    return all(
        text in (place := _place(name, request)) or text in redacted(place) for name, text in match.texts
    ) and all(pattern.search(_place(name, request)) for name, pattern in match.patterns)


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
    """What is streamed; a fault may cut the text short."""
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


def _error(fault: ScriptedFault, model: str, said: str) -> ModelError:
    message = fault.message or f"{model!r}: {fault.kind.replace('_', ' ')}, as its script says"
    advice = "it is the script that says so"
    match fault.kind:
        case "rate_limited":
            return RateLimited(message, fault.wait_seconds, advice=advice)
        case "interrupted":
            return AnswerInterrupted(message, said, advice=advice)
    return _RAISED[fault.kind](message, advice=advice)


def _answer(turn: Turn, request: Request) -> ModelResponse:
    given, fault = turn.answer, turn.fault
    text, stop, calls = given.text, given.stop, _calls(given, request)
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


def _calls(answer: ScriptedAnswer, request: Request) -> tuple[ToolCall, ...]:
    first = next_number(request.messages)
    return tuple(_call(call, f"call_{first + at}") for at, call in enumerate(answer.calls))


def _call(call: ScriptedCall, own_id: str) -> ToolCall:
    arguments, mistake = parsed_arguments(call.raw)
    return ToolCall(
        id=call.id or own_id,
        name=call.name,
        arguments=None if call.mistake else arguments,
        raw=call.raw,
        mistake=call.mistake or mistake,
        provider_id=call.provider_id,
        signature=call.signature,
    )


def _wait(seconds: float, cancel: CancelToken | None) -> None:
    if seconds:
        select.select([] if cancel is None else [cancel], [], [], seconds)
    _check(cancel)


def _check(cancel: CancelToken | None) -> None:
    if cancel is not None and cancel.requested:
        raise Cancelled("the request was stopped", advice="")
