"""One request on the wire: sent, received and read within its deadlines, with a fault as a value if it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing

import httpx2

from pawl.core.dialogue import Request, TextDelta, ThoughtDelta
from pawl.core.errors import ModelTimedOut
from pawl.models.body import BodyReader, Decoder, NoAnswer
from pawl.models.classify import Fault, diverted, failed_inside, interrupted, refused, unusable
from pawl.models.decoding import Corrupt, Draft, ErrorInside
from pawl.models.endpoint import Endpoint, Timeouts, Wire
from pawl.models.network import transport_fault
from pawl.models.retries import asked_wait
from pawl.models.wire import anthropic, gemini, openai
from pawl.models.wire.outgoing import Outgoing

_MOST_ERROR = 64 * 1024
_DRAIN_SECONDS = 0.05
_DECODERS: Mapping[Wire, Callable[[Request, Endpoint], Decoder]] = {
    Wire.OPENAI: openai.Decoder,
    Wire.ANTHROPIC: anthropic.Decoder,
    Wire.GEMINI: gemini.Decoder,
}


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


class Attempt:
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
        self._decoder = _DECODERS[endpoint.wire](request, endpoint)
        self._progress = 0
        self._quiet = asyncio.timeout(None)

    @property
    def draft(self) -> Draft:
        return self._decoder.draft

    async def run(self, client: httpx2.AsyncClient, outgoing: Outgoing) -> Fault | None:
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

    async def _exchange(self, client: httpx2.AsyncClient, outgoing: Outgoing) -> Fault | None:
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

    async def _receive(self, response: httpx2.Response) -> Fault | None:
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

    def _doubt(self) -> Fault | None:
        why = self.draft.doubt
        return interrupted(self._endpoint, why, self.draft.text_so_far) if why else None

    def _report(self) -> None:
        for delta in self.draft.take():
            self._show(delta)
        if self.draft.progress != self._progress:
            self._progress = self.draft.progress
            self._allow(self._patience.timeouts.idle)

    def _timed_out(self) -> Fault:
        timeouts, model = self._patience.timeouts, repr(self._endpoint.model)
        if self._progress:
            message = f"{model} fell silent in the middle of its answer for {timeouts.idle:g} s"
        else:
            message = f"{model} said nothing for {timeouts.first_byte:g} s"
        return Fault(error=ModelTimedOut(message, advice="try again, or use another model"), again=True)


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
