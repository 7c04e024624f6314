"""One request to a model: composed from the policy's decision, held against it, streamed, recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from pawl.core.dialogue import (
    Answer,
    Answered,
    FellBack,
    Message,
    Request,
    Retrying,
    Sampling,
    Stop,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from pawl.core.errors import AnswerInterrupted, PawlError
from pawl.core.run import Decision, ReasoningFormat, RequestRecord, RoleName, Stage
from pawl.core.run_event import RequestAnswered, RequestSent
from pawl.policy.invariants import Sent, check_request
from pawl.policy.splitting import Part, ReasoningSplitter
from pawl.workflow.seat import Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What a stage sends beside the dialogue; the same for every turn of the stage, so that prompt caches hold."""

    stage: Stage
    decision: Decision
    request: Request


def composed(seat: Seat, stage: Stage, variables: Mapping[str, str]) -> Composed:
    """The request of a stage without its messages. A schema goes with it only where no tools are offered."""
    decision = seat.policy.decide(stage, seat.terms.mode, seat.role.name, reasoning=seat.terms.reasoning)
    system = seat.prompts.compose(decision, variables)
    if seat.detail is not None:
        system = (*system, seat.prompts.render(f"detail/{seat.detail}", variables))
    system = (*system, *seat.context)
    request = Request(
        model=seat.terms.model_for(seat.role.name),
        system=system,
        messages=(),
        tools=seat.tools.offers(decision.tools),
        answer_schema=None if decision.tools else _schema(decision),
        sampling=seat.sampling or Sampling(temperature=seat.role.temperature),
        reasoning=seat.terms.reasoning,
    )
    return Composed(stage=stage, decision=decision, request=request)


def reasons(decision: Decision) -> bool:
    """Whether the answer carries reasoning."""
    return decision.reasoning is not ReasoningFormat.NONE


def ask(seat: Seat, ready: Composed, messages: tuple[Message, ...], number: int) -> Answer:
    """Sends the dialogue and returns the whole answer; what happens meanwhile goes to the listener."""
    request = seat.clean(replace(ready.request, messages=messages))
    _hold_against_policy(seat, ready, request)
    role = RoleName(seat.role.name)
    seat.listen(
        RequestSent(
            number=number, stage=ready.stage, role=role, model=request.model, tools=tuple(t.name for t in request.tools)
        )
    )
    started = seat.clock()
    try:
        answer = _streamed(seat, ready, request)
    except PawlError as error:
        seat.record(_record(seat, ready, _failed(request, error, seat.clock() - started), error.code))
        raise
    seat.record(_record(seat, ready, answer, answer.stop))
    seat.listen(
        RequestAnswered(number=number, model=answer.model, usage=answer.usage, cost=answer.cost, seconds=answer.seconds)
    )
    return answer


def _schema(decision: Decision) -> Mapping[str, object] | None:
    """The schema of the contract. Contracts load slowly, and a talk in words needs none."""
    if not decision.contract:
        return None
    from pawl.workflow.contracts import json_schema

    return json_schema(decision.contract, reasoning=reasons(decision))


def _hold_against_policy(seat: Seat, ready: Composed, request: Request) -> None:
    sent = Sent(
        mode=seat.terms.mode,
        reasoning=request.reasoning,
        model=request.model,
        tools=tuple(tool.name for tool in request.tools),
        system=request.system,
    )
    check_request(seat.policy, seat.terms, ready.stage, seat.role.name, sent)


def _streamed(seat: Seat, ready: Composed, request: Request) -> Answer:
    plain = not reasons(ready.decision) or bool(ready.decision.contract)
    splitter = None if plain else ReasoningSplitter()
    events = seat.model.stream(request, cancel=seat.cancel)
    try:
        for event in events:
            match event:
                case Answered(answer=answer):
                    _show(seat, splitter, "", ended=True)
                    return answer
                case TextDelta(text=text):
                    _show(seat, splitter, text)
                case Retrying() | FellBack():
                    splitter = None if plain else ReasoningSplitter()
                    seat.listen(event)
                case _:
                    seat.listen(event)
    finally:
        events.close()
    raise AnswerInterrupted(f"{request.model!r} ended without an answer", advice="try again")


def _show(seat: Seat, splitter: ReasoningSplitter | None, text: str, *, ended: bool = False) -> None:
    if splitter is None:
        if text:
            seat.listen(TextDelta(text))
        return
    for piece in splitter.finish() if ended else splitter.feed(text):
        seat.listen(TextDelta(piece.text) if piece.part is Part.VISIBLE else ThoughtDelta(piece.text))


def _failed(request: Request, error: PawlError, seconds: float) -> Answer:
    """A request that brought no answer, in the shape of one, so that it is recorded like the others."""
    return Answer(
        text=getattr(error, "text", ""),
        stop=Stop.END,
        usage=Usage(estimated=True),
        model=request.model,
        cost=Decimal(0),
        seconds=seconds,
    )


def _record(seat: Seat, ready: Composed, answer: Answer, ended: str) -> RequestRecord:
    terms = seat.terms
    return RequestRecord(
        conversation=terms.conversation,
        run=terms.run,
        mode=terms.mode,
        stage=ready.stage,
        role=RoleName(seat.role.name),
        model=answer.model,
        reasoning=terms.reasoning,
        tools=ready.decision.tools,
        input_tokens=answer.usage.input,
        output_tokens=answer.usage.output,
        cached_tokens=answer.usage.cached,
        estimated=answer.usage.estimated,
        cost=answer.cost,
        seconds=answer.seconds,
        first_token_seconds=answer.first_token_seconds,
        attempts=answer.attempts,
        ended=ended,
    )
