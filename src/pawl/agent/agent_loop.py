"""A role's talk with a model: requests and tool calls until there is an answer, within limits, faults sent back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal

from pawl.agent.compression import flattened
from pawl.agent.context import AgentContext, LoopEnd, Spoken
from pawl.agent.corrections import AnswerSituation, corrections, fault_of, reasoning_of
from pawl.agent.policy import Sent, check_request
from pawl.agent.reasoning import AnswerPart, Reasoned, ReasoningSplitter, outcome_of
from pawl.agent.tool_calls import Calls
from pawl.core.dialogue import (
    Answered,
    Attachment,
    FellBack,
    Message,
    ModelResponse,
    Request,
    Retrying,
    Sampling,
    Speaker,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolAnswer,
    ToolCall,
    ToolOffer,
    Usage,
    assistant,
    dialogue_tokens,
    tool_answers,
    user,
)
from pawl.core.errors import (
    AnswerInterrupted,
    BrokenHistory,
    ContextTooLong,
    OutOfTime,
    PawlError,
    RequestRejected,
    SchemaUnmet,
)
from pawl.core.events import Corrected, ReasoningShown, RequestAnswered, RequestSent, Shortened
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import (
    Mode,
    PolicyDecision,
    Reasoning,
    ReasoningFormat,
    ReasoningOutcome,
    RequestRecord,
    Stage,
)
from pawl.sandbox.cancel import raise_if_stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The part of a request beside the dialogue; the same for every turn of a stage, so that prompt caches hold."""

    stage: Stage
    decision: PolicyDecision
    request: Request
    submit: str = ""
    """The tool that takes the answer by its schema, where the model has others beside it."""


def composed(seat: AgentContext, stage: Stage, variables: Mapping[str, str]) -> Composed:
    """The request of a stage without its messages. The schema of its answer is a tool where tools are offered."""
    decision = seat.policy.decide(stage, seat.terms.mode, seat.role.name, reasoning=seat.terms.reasoning)
    system = seat.prompts.compose(decision, variables)
    if seat.detail is not None:
        system = (*system, seat.prompts.render(f"detail/{seat.detail}", variables))
    system = (*system, *seat.context)
    schema = _schema(decision)
    submit = f"submit_{decision.contract}" if schema is not None and decision.tools else ""
    tools = seat.tools.offers(decision.tools)
    if schema is not None and submit:
        tools = (*tools, ToolOffer(name=submit, description=SUBMIT, input_schema=schema))
    request = Request(
        model=seat.terms.model_for(seat.role.name),
        system=system,
        messages=(),
        tools=tools,
        answer_schema=None if submit else schema,
        sampling=seat.sampling or Sampling(temperature=seat.role.temperature),
        reasoning=seat.terms.reasoning,
    )
    return Composed(stage=stage, decision=decision, request=request, submit=submit)


SUBMIT = "Gives your answer and ends your turn. Call it once, when you know enough."


def submitted(answer: ModelResponse, submit: str) -> ModelResponse:
    """The answer with what it submits as its text; calls beside that are not executed."""
    given = next((call.raw for call in answer.calls if call.name == submit), None)
    return answer if given is None else replace(answer, text=given, calls=(), stop=StopReason.END)


def reasons(decision: PolicyDecision) -> bool:
    """Whether the answer carries reasoning."""
    return decision.reasoning is not ReasoningFormat.NONE


def ask(seat: AgentContext, ready: Composed, messages: tuple[Message, ...], number: int) -> ModelResponse:
    """Sends the dialogue and returns the whole answer; what happens meanwhile goes to the listener."""
    request = seat.clean(replace(ready.request, messages=messages))
    _hold_against_policy(seat, ready, request)
    role = seat.role.name
    seat.listen(
        RequestSent(
            number=number,
            stage=ready.stage,
            role=role,
            model=request.model,
            tools=tuple(t.name for t in request.tools),
            attached=tuple(one.name for said in messages for one in said.files) if number == 1 else (),
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


def _schema(decision: PolicyDecision) -> Mapping[str, object] | None:
    """The schema of the contract. Contracts load slowly, and a talk in words needs none."""
    if not decision.contract:
        return None
    from pawl.agent.contracts import json_schema

    return json_schema(decision.contract, reasoning=reasons(decision))


def _hold_against_policy(seat: AgentContext, ready: Composed, request: Request) -> None:
    sent = Sent(
        mode=seat.terms.mode,
        reasoning=request.reasoning,
        model=request.model,
        tools=tuple(tool.name for tool in request.tools if tool.name != ready.submit),
        system=request.system,
    )
    check_request(seat.policy, seat.terms, ready.stage, seat.role.name, sent)


def _streamed(seat: AgentContext, ready: Composed, request: Request) -> ModelResponse:
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


def _show(seat: AgentContext, splitter: ReasoningSplitter | None, text: str, *, ended: bool = False) -> None:
    if splitter is None:
        if text:
            seat.listen(TextDelta(text))
        return
    for piece in splitter.finish() if ended else splitter.feed(text):
        seat.listen(TextDelta(piece.text) if piece.part is AnswerPart.VISIBLE else ThoughtDelta(piece.text))


def _failed(request: Request, error: PawlError, seconds: float) -> ModelResponse:
    """A request that brought no answer, in the shape of one, so that it is recorded like the others."""
    return ModelResponse(
        text=getattr(error, "text", ""),
        stop=StopReason.END,
        usage=Usage(estimated=True),
        model=request.model,
        cost=Decimal(0),
        seconds=seconds,
    )


def _record(seat: AgentContext, ready: Composed, answer: ModelResponse, ended: str) -> RequestRecord:
    terms = seat.terms
    return RequestRecord(
        conversation=terms.conversation,
        run=terms.run,
        mode=terms.mode,
        stage=ready.stage,
        role=seat.role.name,
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


OUTCOME = "[{delivery}] plan: {plan_delta} | next: {next_action} | risks: {risks}"


def converse(
    seat: AgentContext,
    history: Sequence[Message],
    text: str,
    stage: Stage | None = None,
    *,
    read: Sequence[str] = (),
    files: tuple[Attachment, ...] = (),
) -> Spoken:
    """Says the user's words and goes on until the model has answered; `history` is what was said before.

    Without a stage of its own a talk opens with WARMUP where the user has reasoning on, and goes on with ACT and
    FOLLOW_UP. A stage without tools is one request, and so is all where the model is no better at several. Files of
    `read` are read before the model is asked, as if it had called for them, which saves a turn.
    """
    first = stage or (Stage.WARMUP if seat.terms.reasoning is Reasoning.ON else Stage.ACT)
    request = user(text, files)
    talk = _Talk(seat, [*_forgotten(history), request], first, request)
    talk.read_ahead(read)
    talk.stage = Stage.ONCE if stage is None and seat.once else talk.stage
    owed = stage is not None and talk._composed().decision.contract
    spoken = talk.run()
    if owed and spoken.value is None:
        raise SchemaUnmet(f"no answer in the form asked for: {spoken.ended.replace('_', ' ')}")
    return spoken


def _reading(place: str) -> dict[str, object]:
    """The arguments that read `path`, or `path:10-20`."""
    path, found, lines = place.rpartition(":")
    start, _, end = lines.partition("-")
    return {"path": path, "start": int(start), "end": int(end)} if found else {"path": place}


@dataclass(slots=True)
class _Talk:
    seat: AgentContext
    messages: list[Message]
    stage: Stage
    request: Message
    """The user's words, which stay in the dialogue however short it becomes."""
    said: list[Message] = field(default_factory=list)
    requests: int = 0
    outcome: ReasoningOutcome | None = None
    calls: Calls = field(init=False)
    sent_back: Counter[str] = field(default_factory=Counter)
    """How often each correction was sent."""
    same_stage: bool = False
    ready: dict[Stage, Composed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calls = Calls(self.seat)
        self.said.append(self.request)

    def read_ahead(self, paths: Sequence[str]) -> None:
        number = sum(len(message.calls) for message in self.messages)
        given = [_reading(path) for path in paths]
        calls = tuple(
            ToolCall(id=f"call_{number + place}", name="file_read", arguments=one, raw=json.dumps(one))
            for place, one in enumerate(given, start=1)
        )
        decision = self._composed().decision
        if calls and "file_read" in decision.tools:
            self._say(assistant("", *calls))
            self._say(tool_answers(*self.calls.execute(calls, decision)))

    def run(self) -> Spoken:
        try:
            return self._answered()
        except OutOfTime:
            if self._composed().decision.contract:
                raise
            calls = self.messages[-1].calls
            self._refuse(calls, "not finished: time ran out")
            return self._spoken(self._last_words(), LoopEnd.OUT_OF_TIME)

    def _answered(self) -> Spoken:
        while True:
            raise_if_stopped(self.seat.cancel)
            self._listened()
            self._take_found()
            ended = self._limit()
            if ended is not None:
                self.stage = Stage.FINAL
            ready = self._composed()
            answer = submitted(self._asked(ready), ready.submit)
            reasoned = reasoning_of(answer, ready.decision)
            self._keep(answer, reasoned)
            if ended is not None:
                return self._spoken(reasoned.visible, ended)
            done = self._handled(ready, answer, reasoned)
            if done is not None:
                return done
            # Reasoning that is asked for again has the form of its stage.
            if self.stage in (Stage.ACT, Stage.WARMUP) and not self.same_stage:
                self.stage = Stage.FOLLOW_UP
            self.same_stage = False

    def _last_words(self) -> str:
        """Compose an answer from the model's last words and the calls made, where no request is left for it."""
        said = next((one.text for one in reversed(self.said) if one.speaker is Speaker.ASSISTANT and one.text), "")
        done = "\n".join(self.calls.summary)
        return "\n\n".join(part for part in (said, f"The time was up. Done by then:\n{done}" if done else "") if part)

    def _limit(self) -> LoopEnd | None:
        """The last request that the limits allow is asked for an answer from what is known, with no tools."""
        limits = self.seat.limits
        if self.calls.stuck:
            return LoopEnd.STUCK
        if self.requests and self.seat.is_spent():
            return LoopEnd.OUT_OF_TURNS
        if self.requests + 1 >= limits.turns and (self.requests > 0 or limits.turns == 1):
            return LoopEnd.OUT_OF_TURNS
        return None

    def _composed(self) -> Composed:
        ready = self.ready.get(self.stage)
        if ready is None:
            ready = composed(self.seat, self.stage, self._variables())
            self.ready[self.stage] = ready
        return ready

    def _asked(self, ready: Composed) -> ModelResponse:
        self.requests += 1
        self._compressed(too_long=False)
        try:
            return ask(self.seat, ready, tuple(self.messages), self.requests)
        except RequestRejected as error:
            if isinstance(error, BrokenHistory):
                self._replace(flattened(self.messages))
            elif not (isinstance(error, ContextTooLong) and self._compressed(too_long=True)):
                raise
            return ask(self.seat, ready, tuple(self.messages), self.requests)

    def _compressed(self, *, too_long: bool) -> bool:
        """Whether the dialogue is another one now."""
        equal = [place for place, message in enumerate(self.messages) if message == self.request]
        made = self.seat.compress(self.messages, request=equal[-1], too_long=too_long)
        if made is self.messages:
            return False
        self._replace(made)
        return True

    def _replace(self, messages: Sequence[Message]) -> None:
        before = dialogue_tokens(self.messages)
        self.messages = list(messages)
        self.calls.standing.clear()
        self.seat.listen(Shortened(before_tokens=before, after_tokens=dialogue_tokens(self.messages)))

    def _keep(self, answer: ModelResponse, reasoned: Reasoned) -> None:
        """Keep the visible words and the outcome of the reasoning in the history, not its text."""
        message = answer.message
        if reasoned.present:
            self.seat.listen(ReasoningShown(reasoned.raw))
            self.outcome = outcome_of(reasoned)
            said = OUTCOME.format(
                delivery=self.outcome.delivery,
                plan_delta=self.outcome.plan_delta,
                next_action=self.outcome.next_action,
                risks=self.outcome.risks,
            )
            message = replace(message, text=f"{said}\n{reasoned.visible}".strip())
        elif answer.text != reasoned.visible:
            message = replace(message, text=reasoned.visible)
        self._say(message)

    def _say(self, message: Message) -> None:
        self.messages.append(message)
        self.said.append(message)

    def _handled(self, ready: Composed, answer: ModelResponse, reasoned: Reasoned) -> Spoken | None:
        """The end of the talk, or None when it goes on with another turn."""
        if answer.stop is StopReason.REFUSED:
            self._refuse(answer.calls, "not executed: the answer was refused")
            return self._spoken(reasoned.visible, LoopEnd.REFUSED)
        if answer.stop is StopReason.LENGTH:
            return self._cut_off(answer, reasoned)
        if self._corrected(ready, answer, reasoned):
            return None
        if answer.calls:
            self._say(tool_answers(*self.calls.execute(answer.calls, ready.decision)))
            return None
        if ready.decision.contract:
            return self._fitted(ready, reasoned)
        if self._listened() or self._sent_on(reasoned.visible):
            return None
        return self._spoken(reasoned.visible, LoopEnd.ANSWERED if reasoned.visible.strip() else LoopEnd.EMPTY)

    def _listened(self) -> bool:
        """Whether the user has said something meanwhile; it stands in the dialogue then."""
        said = self.seat.heard()
        for text in said:
            self._say(user(text))
        return bool(said)

    def _take_found(self) -> None:
        """Results that came meanwhile stand with the answers to the last calls: the dialogue only grows."""
        for text in self.seat.found() if self.requests or self.seat.once else ():
            last = self.messages[-1]
            if not last.answers or last is not self.said[-1]:
                self._say(user(text, automatic=True))
                continue
            *others, answer = last.answers
            told = replace(answer, text=f"{answer.text}\n\n{text}")
            self.messages[-1] = self.said[-1] = replace(last, answers=(*others, told))

    def _sent_on(self, text: str) -> bool:
        said = self.seat.stopping(text)
        for words in said:
            self._say(user(words, automatic=True))
        return bool(said)

    def _cut_off(self, answer: ModelResponse, reasoned: Reasoned) -> Spoken | None:
        """An answer in words that is too long is one all the same; calls that may be half are never executed."""
        limit = corrections()["cut_off"].limit
        if (reasoned.visible and not answer.calls) or self.sent_back["cut_off"] >= limit:
            self._refuse(answer.calls, "not executed: your answer was cut off")
            return self._spoken(reasoned.visible, LoopEnd.CUT_OFF)
        self._refuse(answer.calls, "not executed: your answer was cut off")
        self._send_back("cut_off", reasoned, "")
        return None

    def _refuse(self, calls: Sequence[ToolCall], why: str) -> None:
        """Every call has an answer, so that the history can be sent again."""
        if calls:
            refused = (ToolAnswer(call=call.id, name=call.name, text=why, failed=True) for call in calls)
            self._say(tool_answers(*refused))

    def _corrected(self, ready: Composed, answer: ModelResponse, reasoned: Reasoned) -> bool:
        situation = AnswerSituation(
            stage=ready.stage,
            decision=ready.decision,
            work_left=() if self.calls.changed else self.seat.work_left,
            owes_change=self.seat.owes_change and not (self.calls.changed or self.calls.refused),
            read=tuple(self.calls.read) if self.seat.terms.mode is Mode.CHAT else (),
            sent=self.sent_back,
        )
        fault = fault_of(answer, situation)
        if fault is None:
            return False
        self._refuse(answer.calls, "not executed: see what is wrong with your answer, and make the call again")
        self._send_back(fault.correction.name, reasoned, fault.why)
        return True

    def _send_back(self, name: str, reasoned: Reasoned, why: str) -> None:
        self.sent_back[name] += 1
        self.same_stage = name.startswith("reasoning")
        self.seat.listen(Corrected(name=name, why=why, text=reasoned.visible))
        words = self.seat.prompts.render(corrections()[name].prompt, {**self._variables(), "last_step_outcome": why})
        self._say(user(words, automatic=True))

    def _fitted(self, ready: Composed, reasoned: Reasoned) -> Spoken | None:
        from pawl.agent.contracts import validated

        try:
            value = validated(ready.decision.contract, reasoned.visible, reasoning=reasons(ready.decision))
        except SchemaUnmet as error:
            if self.sent_back["contract_unmet"] >= corrections()["contract_unmet"].limit:
                raise
            how = f"\nCall {ready.submit} with the whole object." if ready.submit else ""
            self._send_back("contract_unmet", reasoned, error.message + how)
            return None
        return replace(self._spoken(reasoned.visible, LoopEnd.ANSWERED), value=value)

    def _variables(self) -> dict[str, str]:
        """Variables for prompts; those that change from turn to turn stand only in the last ones."""
        said = self.outcome.next_action if self.outcome else ""
        return {
            "tool_summary": "\n".join(self.calls.summary) or "no tool was called",
            "last_step_outcome": said or "none yet",
            **self.seat.variables,
        }

    def _spoken(self, text: str, ended: LoopEnd) -> Spoken:
        return Spoken(
            text=text,
            ended=ended,
            messages=tuple(self.messages),
            said=tuple(self.said),
            requests=self.requests,
            outcome=self.outcome,
        )


def _forgotten(history: Sequence[Message]) -> list[Message]:
    """Earlier turns without a provider's own reasoning, which is needed only within one loop of tool calls."""
    return [replace(message, thoughts=()) if message.thoughts else message for message in history]
