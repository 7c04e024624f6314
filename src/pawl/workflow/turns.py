"""A role's talk with a model: requests and tool calls until there is an answer, within limits, faults sent back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pawl.core.dialogue import (
    Answer,
    Message,
    Speaker,
    Stop,
    ToolAnswer,
    ToolCall,
    Usage,
    assistant,
    tool_answers,
    user,
)
from pawl.core.dialogue_size import dialogue_tokens
from pawl.core.errors import BrokenHistory, Cancelled, ContextTooLong, RequestRejected, SchemaUnmet
from pawl.core.run import Mode, Reasoning, ReasoningOutcome, Stage
from pawl.core.run_event import Corrected, ReasoningShown, Shortened
from pawl.policy.corrections import Situation, corrections, fault_of, reasoning_of
from pawl.policy.reasoning import Reasoned, outcome_of
from pawl.workflow.calling import Calls
from pawl.workflow.requesting import Composed, ask, composed, reasons
from pawl.workflow.seat import Ended, Seat, Spoken
from pawl.workflow.shortening import flattened

OUTCOME = "[{delivery}] plan: {plan_delta} | next: {next_action} | risks: {risks}"


def converse(
    seat: Seat, history: Sequence[Message], text: str, stage: Stage | None = None, *, read: Sequence[str] = ()
) -> Spoken:
    """Says the user's words and goes on until the model has answered; `history` is what was said before.

    Without a stage of its own a talk opens with WARMUP where the user has reasoning on, and goes on with ACT and
    FOLLOW_UP. A stage without tools is one request. Files of `read` are read before the model is asked, as if it had
    called for them, which saves a turn.
    """
    first = stage or (Stage.WARMUP if seat.terms.reasoning is Reasoning.ON else Stage.ACT)
    request = user(text)
    talk = _Talk(seat, [*_forgotten(history), request], first, request)
    talk.read_ahead(read)
    return talk.run()


@dataclass(slots=True)
class _Talk:
    seat: Seat
    messages: list[Message]
    stage: Stage
    request: Message
    """The user's words, which stay in the dialogue however short it becomes."""
    said: list[Message] = field(default_factory=list)
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = Decimal(0)
    outcome: ReasoningOutcome | None = None
    calls: Calls = field(init=False)
    sent_back: Counter[str] = field(default_factory=Counter)
    """How often each correction was sent."""
    ready: dict[Stage, Composed] = field(default_factory=dict)
    started: float = 0.0

    def __post_init__(self) -> None:
        self.calls = Calls(self.seat)
        self.started = self.seat.clock()
        self.said.append(self.request)

    def read_ahead(self, paths: Sequence[str]) -> None:
        number = sum(len(message.calls) for message in self.messages)
        calls = tuple(
            ToolCall(
                id=f"call_{number + place}", name="file_read", arguments={"path": path}, raw=json.dumps({"path": path})
            )
            for place, path in enumerate(paths, start=1)
        )
        decision = self._composed().decision
        if calls and "file_read" in decision.tools:
            self._say(assistant("", *calls))
            self._say(tool_answers(*self.calls.execute(calls, decision)))

    def run(self) -> Spoken:
        while True:
            if self.seat.cancel is not None and self.seat.cancel.requested:
                raise Cancelled("stopped by the user")
            self._listened()
            ended = self._limit()
            if ended is Ended.OUT_OF_TIME:
                # Another request would take time that there is not.
                return self._spoken(self._last_words(), ended)
            if ended is not None:
                self.stage = Stage.FINAL
            ready = self._composed()
            answer = self._asked(ready)
            reasoned = reasoning_of(answer, ready.decision)
            self._keep(answer, reasoned)
            if ended is not None:
                return self._spoken(reasoned.visible, ended)
            done = self._handled(ready, answer, reasoned)
            if done is not None:
                return done
            self.stage = Stage.FOLLOW_UP if self.stage in (Stage.ACT, Stage.WARMUP) else self.stage

    def _last_words(self) -> str:
        """What the model said last, and what was done, where nobody is left to put it together."""
        said = next((one.text for one in reversed(self.said) if one.speaker is Speaker.ASSISTANT and one.text), "")
        done = "\n".join(self.calls.summary)
        return "\n\n".join(part for part in (said, f"The time was up. Done by then:\n{done}" if done else "") if part)

    def _limit(self) -> Ended | None:
        """The last request that the limits allow is asked for an answer from what is known, with no tools."""
        limits = self.seat.limits
        if self.calls.stuck:
            return Ended.STUCK
        if self.requests + 1 >= limits.turns and (self.requests > 0 or limits.turns == 1):
            return Ended.OUT_OF_TURNS
        if self.requests > 0 and self.seat.clock() - self.started > limits.seconds:
            return Ended.OUT_OF_TIME
        return None

    def _composed(self) -> Composed:
        ready = self.ready.get(self.stage)
        if ready is None:
            ready = composed(self.seat, self.stage, self._variables())
            self.ready[self.stage] = ready
        return ready

    def _asked(self, ready: Composed) -> Answer:
        self.requests += 1
        self._compressed(too_long=False)
        try:
            return self._counted(ask(self.seat, ready, tuple(self.messages), self.requests))
        except RequestRejected as error:
            if isinstance(error, BrokenHistory):
                self._replace(flattened(self.messages))
            elif not (isinstance(error, ContextTooLong) and self._compressed(too_long=True)):
                raise
            return self._counted(ask(self.seat, ready, tuple(self.messages), self.requests))

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
        self.seat.listen(Shortened(before_tokens=before, after_tokens=dialogue_tokens(self.messages)))

    def _counted(self, answer: Answer) -> Answer:
        self.usage += answer.usage
        self.cost = None if answer.cost is None or self.cost is None else self.cost + answer.cost
        return answer

    def _keep(self, answer: Answer, reasoned: Reasoned) -> None:
        """What goes into the history: the visible words and the outcome of the reasoning, not its text."""
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

    def _handled(self, ready: Composed, answer: Answer, reasoned: Reasoned) -> Spoken | None:
        """The end of the talk, or None when it goes on with another turn."""
        if answer.stop is Stop.REFUSED:
            self._refuse(answer, "not executed: the answer was refused")
            return self._spoken(reasoned.visible, Ended.REFUSED)
        if answer.stop is Stop.LENGTH:
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
        return self._spoken(reasoned.visible, Ended.ANSWERED if reasoned.visible.strip() else Ended.EMPTY)

    def _listened(self) -> bool:
        """Whether the user has said something meanwhile; it stands in the dialogue then."""
        said = self.seat.heard()
        for text in said:
            self._say(user(text))
        return bool(said)

    def _sent_on(self, text: str) -> bool:
        said = self.seat.stopping(text)
        for words in said:
            self._say(user(words))
        return bool(said)

    def _cut_off(self, answer: Answer, reasoned: Reasoned) -> Spoken | None:
        """An answer in words that is too long is one all the same; calls that may be half are never executed."""
        limit = corrections()["cut_off"].limit
        if (reasoned.visible and not answer.calls) or self.sent_back["cut_off"] >= limit:
            self._refuse(answer, "not executed: your answer was cut off")
            return self._spoken(reasoned.visible, Ended.CUT_OFF)
        self._refuse(answer, "not executed: your answer was cut off")
        self._send_back("cut_off", reasoned, "")
        return None

    def _refuse(self, answer: Answer, why: str) -> None:
        """Every call has an answer, so that the history can be sent again."""
        if answer.calls:
            refused = (ToolAnswer(call=call.id, name=call.name, text=why, failed=True) for call in answer.calls)
            self._say(tool_answers(*refused))

    def _corrected(self, ready: Composed, answer: Answer, reasoned: Reasoned) -> bool:
        situation = Situation(
            stage=ready.stage,
            decision=ready.decision,
            work_left=self.seat.work_left(),
            read=tuple(self.calls.read) if self.seat.terms.mode is Mode.CHAT else (),
            sent=self.sent_back,
        )
        fault = fault_of(answer, situation)
        if fault is None:
            return False
        self._refuse(answer, "not executed: see what is wrong with your answer, and make the call again")
        self._send_back(fault.correction.name, reasoned, fault.why)
        return True

    def _send_back(self, name: str, reasoned: Reasoned, why: str) -> None:
        self.sent_back[name] += 1
        self.seat.listen(Corrected(name=name, why=why, text=reasoned.visible))
        prompt = corrections()[name].prompt
        self._say(user(self.seat.prompts.render(prompt, {**self._variables(), "last_step_outcome": why})))

    def _fitted(self, ready: Composed, reasoned: Reasoned) -> Spoken | None:
        from pawl.workflow.contracts import validated

        try:
            value = validated(ready.decision.contract, reasoned.visible, reasoning=reasons(ready.decision))
        except SchemaUnmet as error:
            if self.sent_back["contract_unmet"] >= corrections()["contract_unmet"].limit:
                raise
            self._send_back("contract_unmet", reasoned, error.message)
            return None
        return replace(self._spoken(reasoned.visible, Ended.ANSWERED), value=value)

    def _variables(self) -> dict[str, str]:
        """What prompts may name; the words that change from turn to turn are only in those that come last."""
        said = self.outcome.next_action if self.outcome else ""
        return {
            "tool_summary": "\n".join(self.calls.summary) or "no tool was called",
            "last_step_outcome": said or "none yet",
            **self.seat.variables,
        }

    def _spoken(self, text: str, ended: Ended) -> Spoken:
        return Spoken(
            text=text,
            ended=ended,
            messages=tuple(self.messages),
            said=tuple(self.said),
            requests=self.requests,
            usage=self.usage,
            cost=self.cost,
            outcome=self.outcome,
        )


def _forgotten(history: Sequence[Message]) -> list[Message]:
    """Earlier turns without a provider's own reasoning, which is needed only within one loop of tool calls."""
    return [replace(message, thoughts=()) if message.thoughts else message for message in history]
