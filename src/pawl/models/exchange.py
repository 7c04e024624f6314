"""A model behind a wire format: asks it, tries again where that makes sense, and gives the answer as events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request, Retrying, TextDelta, ThoughtDelta
from pawl.core.errors import BrokenHistory, Cancelled, ModelError, ModelTimedOut
from pawl.models.calls import without_thoughts
from pawl.models.decoding import Draft, Finished
from pawl.models.endpoint import Endpoint, Quirks, ReasoningSwitch, SchemaCarrier, Timeouts, Wire, quirks_of
from pawl.models.failures import AttemptFault, Retries, interrupted
from pawl.models.transport import Emit, Transport
from pawl.models.wire import anthropic, gemini, openai
from pawl.models.wire.outgoing import Outgoing
from pawl.sandbox.cancel import CancelToken

if TYPE_CHECKING:
    from pawl.models.attempt import Patience, RequestAttempt


__all__ = [
    "Endpoint",
    "Quirks",
    "ReasoningSwitch",
    "Retries",
    "SchemaCarrier",
    "Timeouts",
    "Transport",
    "Wire",
    "WireModel",
    "quirks_of",
]

_ENCODERS = {Wire.OPENAI: openai.encode, Wire.ANTHROPIC: anthropic.encode, Wire.GEMINI: gemini.encode}
_REMEMBERED = 64


class WireModel:
    """Fits `Model`. Several can share one transport, and with it the connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        *,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._transport = transport
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries()
        self._answers = _Answers()

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        if cancel is not None and cancel.requested:
            raise Cancelled("the request to the model was stopped")
        from pawl.models.attempt import Patience

        patience = Patience(self._timeouts)
        asking = _Asking(self, request, patience)
        try:
            yield from self._transport.drive(asking.run, cancel=cancel, on_pause=patience.extend)
        except (ModelError, Cancelled) as error:
            error.begun = asking.begun
            raise


class _Asking:
    """One request, with as many attempts as it takes."""

    def __init__(self, model: WireModel, request: Request, patience: Patience) -> None:
        self._endpoint = model.endpoint
        self._transport = model._transport
        self._retries = model._retries
        self._answers = model._answers
        self._request = request
        self._patience = patience
        self._outgoing = self._encoded(request)
        self._first_shown: float | None = None
        self._latest: RequestAttempt | None = None

    @property
    def begun(self) -> bool:
        """Whether the model has begun to answer in the latest attempt, be it with calls that are not shown."""
        return self._latest is not None and self._latest.draft.progress > 0

    def _encoded(self, request: Request) -> Outgoing:
        return _ENCODERS[self._endpoint.wire](request, self._endpoint)

    async def run(self, emit: Emit[ModelEvent]) -> None:
        import asyncio

        whole = self._patience.timeouts.whole
        limit = asyncio.timeout(whole)
        try:
            async with limit:
                self._patience.add(limit)
                await self._until_answered(emit)
                return
        except TimeoutError:
            pass
        finally:
            self._patience.drop(limit)
        raise ModelTimedOut(
            f"{self._endpoint.model!r} was not done after {whole:g} s",
            advice="ask for less at once, or use another model",
        )

    async def _until_answered(self, emit: Emit[ModelEvent]) -> None:
        import asyncio

        clock, wait = self._retries.clock, self._retries.wait or asyncio.sleep
        started = clock()
        first_failure: float | None = None
        number = 0
        while True:
            number += 1
            outcome = await self._attempt(emit, started)
            now = clock()
            if not isinstance(outcome, AttemptFault):
                emit(Answered(replace(outcome, seconds=now - started, attempts=number)))
                return
            first_failure = now if first_failure is None else first_failure
            pause = 0.0 if self._repaired(outcome.error) else self._retries.pause(number, outcome, now - first_failure)
            if pause is None:
                raise outcome.error
            emit(Retrying(why=outcome.error.message, wait_seconds=pause, attempt=number, begun=self.begun))
            await wait(pause)

    async def _attempt(self, emit: Emit[ModelEvent], started: float) -> ModelResponse | AttemptFault:
        from pawl.models.attempt import RequestAttempt

        def show(delta: TextDelta | ThoughtDelta) -> None:
            if self._first_shown is None:
                self._first_shown = self._retries.clock() - started
            emit(delta)

        self._latest = attempt = RequestAttempt(self._endpoint, self._request, self._patience, show)
        fault = await attempt.run(self._transport.client(self._outgoing.url), self._outgoing)
        if fault is not None:
            return fault
        draft = attempt.draft
        finished = draft.finish(len(self._outgoing.body))
        if self._answers.has_other(draft, finished, self._outgoing.body):
            return interrupted(self._endpoint, "it is the answer to an earlier request", "")
        return self._answer(draft, finished)

    def _answer(self, draft: Draft, finished: Finished) -> ModelResponse:
        return ModelResponse(
            text=finished.text,
            stop=finished.stop,
            usage=finished.usage,
            model=self._endpoint.model,
            thoughts=finished.thoughts,
            calls=finished.calls,
            first_token_seconds=self._first_shown,
            served_by=draft.served_by,
        )

    def _repaired(self, error: ModelError) -> bool:
        """Whether turns that were refused can be sent again without signed thoughts; once."""
        if not isinstance(error, BrokenHistory) or not any(message.thoughts for message in self._request.messages):
            return False
        bare = without_thoughts(self._request.messages)
        self._request = replace(self._request, messages=bare)
        self._outgoing = self._encoded(self._request)
        return True


class _Answers:
    """Remembers what was answered to what, to tell an answer that something in between replays.

    Ids alone do not do: servers exist that give every answer the same one.
    """

    def __init__(self) -> None:
        self._requests: OrderedDict[int, int] = OrderedDict()

    def has_other(self, draft: Draft, finished: Finished, request: bytes) -> bool:
        """Whether this very answer was given to another request before; remembers it if not."""
        if not draft.identity[0]:
            return False
        # Bodies are large and this is asked for each of them, so that the cheap hash has to do.
        answer = hash((draft.identity, finished.text, tuple((call.name, call.raw) for call in finished.calls)))
        asked = hash(request)
        if self._requests.get(answer, asked) != asked:
            return True
        self._requests[answer] = asked
        while len(self._requests) > _REMEMBERED:
            self._requests.popitem(last=False)
        return False
