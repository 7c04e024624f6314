"""A model behind a wire format: asks it within its deadlines, tries again where that makes sense, gives events."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import aclosing
from dataclasses import replace

import httpx2

from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request, Retrying, TextDelta, ThoughtDelta
from pawl.core.errors import BrokenHistory, Cancelled, ModelError, ModelTimedOut
from pawl.models.decoding import BodyReader, Corrupt, Draft, ErrorInside, NoAnswer, WireDecoder
from pawl.models.endpoint import Endpoint, Timeouts, Wire
from pawl.models.failures import (
    AttemptFault,
    Retries,
    asked_wait,
    diverted,
    failed_inside,
    interrupted,
    refused,
    transport_fault,
    unusable,
)
from pawl.models.transport import STOPPED, Emit, Transport
from pawl.models.wire import anthropic, gemini, openai
from pawl.models.wire.encoding import Outgoing, without_thoughts
from pawl.sandbox.cancel import CancelToken, raise_if_stopped

_FORMATS: Mapping[Wire, tuple[Callable[[Request, Endpoint], Outgoing], type[WireDecoder]]] = {
    Wire.OPENAI: (openai.encode, openai.OpenAIDecoder),
    Wire.ANTHROPIC: (anthropic.encode, anthropic.AnthropicDecoder),
    Wire.GEMINI: (gemini.encode, gemini.GeminiDecoder),
}
_REMEMBERED = 64
_MOST_ERROR = 64 * 1024
_DRAIN_SECONDS = 0.05


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
        raise_if_stopped(cancel, STOPPED)
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
        return _FORMATS[self._endpoint.wire][0](request, self._endpoint)

    async def run(self, emit: Emit[ModelEvent]) -> None:
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
        def show(delta: TextDelta | ThoughtDelta) -> None:
            if self._first_shown is None:
                self._first_shown = self._retries.clock() - started
            emit(delta)

        self._latest = attempt = RequestAttempt(self._endpoint, self._request, self._patience, show)
        fault = await attempt.run(self._transport.client(self._outgoing.url), self._outgoing)
        if fault is not None:
            return fault
        answer = attempt.draft.finish(len(self._outgoing.body))
        if self._answers.has_other(attempt.draft, answer, self._outgoing.body):
            return interrupted(self._endpoint, "it is the answer to an earlier request", "")
        return replace(answer, first_token_seconds=self._first_shown)

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

    def has_other(self, draft: Draft, response: ModelResponse, request: bytes) -> bool:
        """Whether this very answer was given to another request before; remembers it if not."""
        if not draft.identity[0]:
            return False
        # Bodies are large and this is asked for each of them, so that the cheap hash has to do.
        answer = hash((draft.identity, response.text, tuple((call.name, call.raw) for call in response.calls)))
        asked = hash(request)
        if self._requests.get(answer, asked) != asked:
            return True
        self._requests[answer] = asked
        while len(self._requests) > _REMEMBERED:
            self._requests.popitem(last=False)
        return False


class Patience:
    """The deadlines of a request. Time that the caller takes for itself is not held against the provider."""

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._limits: list[asyncio.Timeout] = []

    def add(self, limit: asyncio.Timeout) -> None:
        self._limits.append(limit)

    def drop(self, limit: asyncio.Timeout) -> None:
        self._limits.remove(limit)

    def extend(self, seconds: float) -> None:
        for limit in self._limits:
            when = limit.when()
            if when is not None and not limit.expired():
                limit.reschedule(when + seconds)


class RequestAttempt:
    """Sends the request once. `draft` is what came of it."""

    def __init__(
        self,
        endpoint: Endpoint,
        request: Request,
        patience: Patience,
        show: Callable[[TextDelta | ThoughtDelta], None],
    ) -> None:
        self._endpoint = endpoint
        self._patience = patience
        self._show = show
        self._decoder = _FORMATS[endpoint.wire][1](request, endpoint)
        self._progress = 0
        self._quiet = asyncio.timeout(None)

    @property
    def draft(self) -> Draft:
        return self._decoder.draft

    async def run(self, client: httpx2.AsyncClient, outgoing: Outgoing) -> AttemptFault | None:
        """None when the answer ended properly. The fault is made outside of the handlers, so that no request with
        its key hangs on the error."""
        self._patience.add(self._quiet)
        try:
            async with self._quiet:
                return await self._exchange(client, outgoing)
        except TimeoutError:
            pass
        finally:
            self._patience.drop(self._quiet)
        return self._timed_out()

    async def _exchange(self, client: httpx2.AsyncClient, outgoing: Outgoing) -> AttemptFault | None:
        try:
            request = client.build_request(
                "POST",
                outgoing.url,
                headers=outgoing.headers,
                content=outgoing.body,
                timeout=httpx2.Timeout(None, connect=self._patience.timeouts.connect),
                extensions={"trace": self._trace},
            )
            response = await client.send(request, stream=True)
            try:
                return await self._receive(response)
            finally:
                await response.aclose()
        except httpx2.RequestError as error:
            return transport_fault(self._endpoint, error, self.draft.text_so_far)
        except httpx2.InvalidURL:
            return unusable(self._endpoint, "its address cannot be read")
        except NoAnswer as error:
            return unusable(self._endpoint, str(error))
        except Corrupt as error:
            return interrupted(self._endpoint, str(error), self.draft.text_so_far)
        except ErrorInside as error:
            return failed_inside(self._endpoint, error.body, self.draft.text_so_far)

    async def _trace(self, event: str, _: Mapping[str, object]) -> None:
        if event.endswith("send_request_headers.started"):
            self._allow(self._patience.timeouts.first_byte)

    def _allow(self, seconds: float) -> None:
        if not self._quiet.expired():
            self._quiet.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _receive(self, response: httpx2.Response) -> AttemptFault | None:
        if 300 <= response.status_code < 400:
            return diverted(self._endpoint, response.status_code, response.headers.get("location", ""))
        if response.status_code != 200:
            wait = asked_wait(response.headers)
            return refused(self._endpoint, response.status_code, await _start_of(response), wait_seconds=wait)
        reader = BodyReader(self._decoder, content_type=response.headers.get("content-type", ""))
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                reader.feed(chunk)
                self._report()
                if self.draft.is_ended:
                    await _drain(chunks)
                    return self._doubt()
        reader.close()
        self._report()
        if self.draft.is_ended:
            return self._doubt()
        return interrupted(self._endpoint, "it stops in the middle", self.draft.text_so_far)

    def _doubt(self) -> AttemptFault | None:
        why = self.draft.doubt
        return interrupted(self._endpoint, why, self.draft.text_so_far) if why else None

    def _report(self) -> None:
        for delta in self.draft.take():
            self._show(delta)
        if self.draft.progress != self._progress:
            self._progress = self.draft.progress
            self._allow(self._patience.timeouts.idle)

    def _timed_out(self) -> AttemptFault:
        timeouts, model = self._patience.timeouts, repr(self._endpoint.model)
        if self._progress:
            message = f"{model} fell silent in the middle of its answer for {timeouts.idle:g} s"
        else:
            message = f"{model} said nothing for {timeouts.first_byte:g} s"
        return AttemptFault(error=ModelTimedOut(message, advice="try again, or use another model"), again=True)


async def _start_of(response: httpx2.Response) -> bytes:
    """As much of an error's body as is worth reading."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) >= _MOST_ERROR:
                break
    return bytes(body[:_MOST_ERROR])


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Reads the end of a body that has said everything, so that its connection can be used again."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx2.RequestError):
        return
