"""The replay log of an agent loop: every step, so that an interrupted one resumes where it was.

Answers of the model and of tools come from the tape as long as there are some; then the talk goes on live, and each
step is recorded before the next. Nothing that was recorded is asked or done again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

from pawl.agent.context import ToolReply, Toolset
from pawl.core.dialogue import (
    Answered,
    FellBack,
    ModelEvent,
    ModelResponse,
    Request,
    StopReason,
    ToolOffer,
    Usage,
    from_json,
    to_json,
)
from pawl.core.events import Corrected, ReasoningShown, RequestAnswered, RequestSent, RunEvent, ToolEnded, ToolStarted
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted, redacted_message
from pawl.models import Model
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.settings.guardrails import Permission

ANSWER, CALL, WORDS = "answer", "call", "words"
Permit = Callable[[int, str, Mapping[str, object]], tuple[str, Mapping[str, object]]]
_STARTS = (RequestSent, ToolStarted)
_ENDS = (RequestAnswered, ToolEnded, Corrected, ReasoningShown)


@dataclass(slots=True)
class ReplayLog:
    steps: list[Mapping[str, Any]]
    """The recorded steps."""
    write: Callable[[int, Mapping[str, object]], None]
    """Keeps the step of that number."""
    at: int = 0
    replayed: bool = False
    """The latest step came from the tape."""
    fresh: ModelResponse | None = None
    """An answer that came live and is not kept yet."""

    def __post_init__(self) -> None:
        # A call whose words had to be hidden cannot be carried out from the tape.
        while self.steps and self.steps[-1].get("hidden"):
            self.steps.pop()

    @property
    def is_behind(self) -> bool:
        """The next step is on the tape."""
        return self.at < len(self.steps)

    def take(self, kind: str, name: str = "") -> Mapping[str, Any] | None:
        """The next step, if it is on the tape and is of that kind; a tape of something else ends there."""
        self.replayed = False
        if not self.is_behind:
            return None
        step = self.steps[self.at]
        if step["kind"] != kind or step.get("name", "") != name:
            del self.steps[self.at :]
            return None
        self.at += 1
        self.replayed = True
        return step

    def heard(self, live: Callable[[], Sequence[str]], *, by: str = "user") -> tuple[str, ...]:
        """Words of the user, of a hook or of the tests at this point: from the log while it lasts, then live."""
        if self.is_behind:
            found = []
            while self.is_behind and self.steps[self.at]["kind"] == WORDS and self.steps[self.at].get("by", by) == by:
                found.append(str(self.steps[self.at]["text"]))
                self.at += 1
            return tuple(found)
        said = tuple(redacted(text) for text in live())
        for text in said:
            self.add({"kind": WORDS, "text": text, "by": by})
        return said

    def add(self, body: Mapping[str, object]) -> None:
        self.write(self.at, body)
        self.steps.append(body)
        self.at += 1

    def keep_fresh(self) -> None:
        if self.fresh is not None:
            self.add(_answer_json(self.fresh))
            self.fresh = None

    def hides(self, event: RunEvent) -> bool:
        """Whether the event was already shown, before the talk was interrupted."""
        if isinstance(event, _STARTS):
            return self.is_behind
        return isinstance(event, _ENDS) and self.replayed


@dataclass(slots=True)
class TapedModel:
    """Fits `Model`."""

    model: Model
    tape: ReplayLog

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        step = self.tape.take(ANSWER)
        if step is not None:
            yield Answered(_answer_of(step))
            return
        events = self.model.stream(request, cancel=cancel)
        try:
            for event in events:
                if isinstance(event, Answered):
                    self.tape.fresh = event.answer
                yield event
        finally:
            events.close()


def refusal_of(permission: Permission) -> str:
    """The answer to a call that a rule refuses."""
    return f"permission_denied: {permission.reason}\nnext: do it another way, or say what is in the way"


@dataclass(slots=True)
class TapedTools:
    """Fits `Toolset`."""

    tools: Toolset
    tape: ReplayLog
    keep: Callable[[str, Callable[[], None]], None]
    """Makes what a tool has done durable together with its step."""
    permit: Permit = lambda step, name, arguments: ("", arguments)
    """Why a call is not carried out, empty when it may be, and its arguments, which a hook may have changed. May stop
    the talk to ask the user."""
    after: Callable[[int, str, Mapping[str, object], ToolReply], ToolReply] = lambda step, name, arguments, reply: reply
    """Told of what was carried out; the answer that the model gets."""
    catch_up: Callable[[Sequence[tuple[str, Mapping[str, object]]]], None] = lambda calls: None
    """Told of the calls that came from the tape before the first live one."""
    expect: Callable[[Mapping[int, Mapping[str, object]]], object] = lambda calls: None
    """Told of calls, by their step, that are about to be made one after the other and may be worked on together."""
    cancel: CancelToken | None = None
    _judged: dict[int, tuple[str, Mapping[str, object]]] = field(default_factory=dict)
    _past: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return self.tools.names

    def offers(self, names: Sequence[str]) -> tuple[ToolOffer, ...]:
        return self.tools.offers(names)

    def together(self, name: str, calls: Sequence[Mapping[str, object]]) -> None:
        """Calls of one tool that follow each other: all are judged before the first begins, unless they were."""
        for step, arguments in enumerate(calls, self.tape.at):
            if step >= len(self.tape.steps):
                self._judged[step] = self.permit(step, name, arguments)
        self.expect({step: given for step, (refusal, given) in self._judged.items() if not refusal})

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        step = self.tape.take(CALL, name)
        if step is not None:
            self._past.append((name, arguments))
            return ToolReply(step["text"], step["failed"])
        if self._past:
            self.catch_up(self._past)
            self._past.clear()
        at = self.tape.at
        refusal, arguments = self._judged.pop(at) if at in self._judged else self.permit(at, name, arguments)
        if refusal:
            reply = ToolReply(refusal, failed=True)
        else:
            live = self.tools.call(name, arguments)
            # It may be half done. It is not kept, nor is what it did, so that it is done again from its start.
            raise_if_stopped(self.cancel)
            reply = self.after(self.tape.at, name, arguments, live)
        body = {"kind": CALL, "name": name, "text": redacted(reply.text), "failed": reply.failed}
        self.keep(name, lambda: self.tape.add(body))
        return reply


def _answer_json(answer: ModelResponse) -> dict[str, object]:
    message = redacted_message(answer.message)
    return {
        "kind": ANSWER,
        "message": to_json(message),
        "hidden": bool(answer.calls) and message.calls != answer.message.calls,
        "stop": answer.stop,
        "usage": [answer.usage.input, answer.usage.output, answer.usage.cached, answer.usage.reasoning],
        "estimated": answer.usage.estimated,
        "model": answer.model,
        "cost": None if answer.cost is None else str(answer.cost),
        "seconds": answer.seconds,
    }


def _answer_of(step: Mapping[str, Any]) -> ModelResponse:
    message = from_json(step["message"])
    given, out, cached, reasoning = step["usage"]
    return ModelResponse(
        text=message.text,
        stop=StopReason(step["stop"]),
        usage=Usage(input=given, output=out, cached=cached, reasoning=reasoning, estimated=step["estimated"]),
        model=step["model"],
        thoughts=message.thoughts,
        calls=message.calls,
        cost=None if step["cost"] is None else Decimal(step["cost"]),
        seconds=step["seconds"],
    )


@dataclass(slots=True)
class TalkEvents:
    """The events of an agent loop that are kept."""

    replayed: bool
    """Some of it comes from the tape."""
    thoughts: list[str] = field(default_factory=list)
    fell_back: list[FellBack] = field(default_factory=list)

    def take(self, event: RunEvent) -> None:
        match event:
            case ReasoningShown(text=text):
                self.thoughts.append(text)
            case FellBack():
                self.fell_back.append(event)
