"""A model behind a wire format: asks it within its deadlines, tries again where that makes sense, gives events."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx2

from pawl.core import __version__
from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request, Retrying, TextDelta, ThoughtDelta
from pawl.core.errors import BrokenHistory, Cancelled, ModelError, ModelTimedOut, Unreachable
from pawl.models.answer_stream import BodyReader, Corrupt, Draft, ErrorInside, NoAnswer, WireDecoder
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
from pawl.models.providers import LOOPBACK, Endpoint, Timeouts, Wire
from pawl.models.wire import Outgoing, anthropic, gemini, openai, without_thoughts
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
            f"{self._endpoint.model!r} was not done within {whole:g} s",
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
            advice = "try again, or use another model"
        else:
            message = f"{model} said nothing for {timeouts.first_byte:g} s"
            advice = (
                f"try again, use another model, or raise first_word_seconds of [providers.{self._endpoint.provider}]"
            )
        return AttemptFault(error=ModelTimedOut(message, advice=advice), again=True)


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


Given = ParamSpec("Given")
Found = TypeVar("Found")


class ForgottenThreads(ThreadPoolExecutor):
    """A thread for each piece of work; it ends with the process, whether it is done or not."""

    def submit(self, fn: Callable[Given, Found], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Found]:
        future: Future[Found] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except (OSError, ValueError) as error:
                # A name that cannot be found, or cannot be written down.
                future.set_exception(error)
            finally:
                # What nobody expects shows as a defect of its thread, and the waiting ends.
                if not future.done():
                    future.set_exception(RuntimeError("the name lookup failed"))

        threading.Thread(target=work, name="pawl-lookup", daemon=True).start()
        return future


Event = TypeVar("Event")
Emit = Callable[[Event], None]

STOPPED = "the request to the model was stopped"
_IDLE_CONNECTIONS = 4
_KEPT_SECONDS = 60.0


class _Line:
    """The event loop and the connections of one thread."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.loop = self._runner.get_loop()
        self.loop.set_default_executor(ForgottenThreads())
        self.clients: dict[tuple[bool, bool], httpx2.AsyncClient] = {}

    def close(self) -> None:
        for client in self.clients.values():
            self.loop.run_until_complete(client.aclose())
        self._runner.close()


class Transport:
    """Opens nothing until the first request. Every thread has a loop and connections of its own."""

    def __init__(self) -> None:
        self._lines: dict[int, _Line] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends requests under way and closes every connection; the next request opens anew.

        No other thread may be waiting for a request meanwhile.
        """
        with self._lock:
            lines, self._lines = self._lines, {}
        for line in lines.values():
            line.close()

    def client(self, url: str) -> httpx2.AsyncClient:
        """The client for an address. Certificates are loaded for encrypted ones only, and a server on this machine
        is never behind a proxy."""
        parts = urlsplit(url)
        kind = (parts.scheme == "https", parts.hostname in LOOPBACK)
        clients = self._line().clients
        if kind not in clients:
            clients[kind] = _client(is_encrypted=kind[0], is_local=kind[1])
        return clients[kind]

    def drive(
        self,
        produce: Callable[[Emit[Event]], Coroutine[Any, Any, None]],
        *,
        cancel: CancelToken | None = None,
        on_pause: Callable[[float], None] | None = None,
    ) -> Generator[Event, None, None]:
        """Yields what `produce` emits, as it is emitted; nothing goes on while the caller holds an event.

        After `cancel`, or when the generator is closed, the work is cancelled and its connection is given up before
        this returns. `on_pause` is told for how long the caller held an event.
        """
        loop = self._line().loop
        emitted: deque[Event] = deque()
        step = _Step(loop, cancel)

        def emit(event: Event) -> None:
            emitted.append(event)
            step.wake()

        task = loop.create_task(produce(emit))
        task.add_done_callback(lambda _: step.wake())
        try:
            while emitted or not task.done():
                raise_if_stopped(cancel, STOPPED)
                if emitted:
                    left = loop.time()
                    yield emitted.popleft()
                    if on_pause is not None:
                        # Before any timer that fell due meanwhile.
                        loop.call_soon(on_pause, loop.time() - left)
                else:
                    step.run(task)
        finally:
            _end(loop, task)
        if task.cancelled():
            raise_if_stopped(cancel, STOPPED)
            raise Cancelled(STOPPED)
        task.result()

    def _line(self) -> _Line:
        own = threading.get_ident()
        with self._lock:
            if own not in self._lines:
                self._lines[own] = _Line()
            return self._lines[own]


class _Step:
    """Runs the loop until something was emitted, the work is done, or the user stops it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: CancelToken | None) -> None:
        self._loop = loop
        self._cancel = cancel
        self._woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def run(self, task: asyncio.Task[None]) -> None:
        woken = self._woken = self._loop.create_future()
        # Watched only while the loop runs, so that several requests can share one token.
        watched = -1 if self._cancel is None else self._cancel.fileno()
        if watched >= 0:
            self._loop.add_reader(watched, self._stop, watched, task)
        try:
            self._loop.run_until_complete(woken)
        finally:
            self._woken = None
            if watched >= 0:
                self._loop.remove_reader(watched)

    def _stop(self, watched: int, task: asyncio.Task[None]) -> None:
        # The descriptor stays readable and would call again at once.
        self._loop.remove_reader(watched)
        task.cancel()


def _end(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    if not task.done() and not loop.is_closed():
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
    if task.done() and not task.cancelled():
        # Looked at, so that the loop does not report it as forgotten.
        task.exception()


def _client(*, is_encrypted: bool, is_local: bool) -> httpx2.AsyncClient:
    try:
        context = httpx2.create_ssl_context(trust_env=True) if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx2.AsyncClient(
            verify=context,
            follow_redirects=False,
            trust_env=not is_local,
            limits=httpx2.Limits(max_keepalive_connections=_IDLE_CONNECTIONS, keepalive_expiry=_KEPT_SECONDS),
            # Compressed streams come late, and what is asked for here is text anyway.
            headers={"user-agent": f"pawl/{__version__}", "accept-encoding": "identity"},
        )
    except (ImportError, ValueError, httpx2.InvalidURL):
        # The words of these name packages, not settings, and can quote a password.
        raise Unreachable(
            "the proxy that this environment names cannot be used",
            advice="name an http:// proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or set NO_PROXY=*",
        ) from None
