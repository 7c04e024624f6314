"""One request on the wire: sent, received and read within its deadlines, with a fault as a value if it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

import httpx2

from pawl.core.dialogue import Request, TextDelta, ThoughtDelta
from pawl.core.errors import ModelTimedOut
from pawl.models.decoding import Corrupt, Draft, ErrorInside
from pawl.models.endpoint import Endpoint, Timeouts, Wire
from pawl.models.failures import (
    AttemptFault,
    asked_wait,
    diverted,
    failed_inside,
    interrupted,
    refused,
    transport_fault,
    unusable,
)
from pawl.models.transport import EventDecoder, EventTooLarge, ServerEvent
from pawl.models.wire import anthropic, gemini, openai
from pawl.models.wire.outgoing import Outgoing

MOST_BODY = 32 * 1024 * 1024
MOST_EVENT = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class WireDecoder(Protocol):
    """What reads one wire format into a draft."""

    draft: Draft

    def event(self, event: ServerEvent) -> None:
        """One event of a stream."""
        ...

    def whole(self, payload: Mapping[str, object]) -> None:
        """An answer that came in one piece."""
        ...

    def close(self) -> None:
        """The body ended cleanly."""
        ...


class NoAnswer(Exception):
    """The body is none of a model's answer."""


class BodyReader:
    """Feeds a decoder. Goes by what the body starts with, because content types are often wrong."""

    def __init__(self, decoder: WireDecoder, *, content_type: str) -> None:
        self._decoder = decoder
        self._content_type = content_type.partition(";")[0].strip().lower()
        self._size = 0
        self._pieces: list[bytes] = []
        self._events: EventDecoder | None = None
        self._is_whole = False
        self._has_events = False

    def feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > MOST_BODY:
            raise NoAnswer(f"it is larger than {MOST_BODY // 1024**2} MiB")
        if self._events is not None:
            self._feed_events(chunk)
            return
        self._pieces.append(chunk)
        if not self._is_whole:
            self._look()

    def close(self) -> None:
        """The body ended cleanly."""
        if self._events is not None:
            self._feed_events(b"", final=True)
            if not self._has_events and self._content_type != "text/event-stream":
                raise NoAnswer(f"its type is {self._content_type or 'not given'}")
        elif self._is_whole:
            self._feed_whole()
        self._decoder.close()

    def _look(self) -> None:
        start = b"".join(self._pieces)
        if _BOM.startswith(start[:3]) and len(start) < len(_BOM):
            return
        first = start.removeprefix(_BOM).lstrip(b" \t\r\n")[:1]
        if not first:
            return
        if first == b"<":
            raise NoAnswer("it is a web page")
        if first in b"{[":
            self._is_whole = True
            return
        self._events = EventDecoder(most=MOST_EVENT)
        self._pieces.clear()
        self._feed_events(start)

    def _feed_events(self, chunk: bytes, *, final: bool = False) -> None:
        if self._events is None:
            return
        try:
            for event in self._events.feed(chunk, final=final):
                self._has_events = True
                if not self._decoder.draft.is_ended:
                    self._decoder.event(event)
        except EventTooLarge:
            raise NoAnswer(f"one event is larger than {MOST_EVENT // 1024**2} MiB") from None

    def _feed_whole(self) -> None:
        try:
            value = json.loads(b"".join(self._pieces).decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            raise Corrupt("it is not whole JSON") from None
        for payload in value if isinstance(value, list) else [value]:
            if not isinstance(payload, dict):
                raise NoAnswer("it is JSON of another kind")
            self._decoder.whole(payload)


_MOST_ERROR = 64 * 1024
_DRAIN_SECONDS = 0.05
_DECODERS: Mapping[Wire, Callable[[Request, Endpoint], WireDecoder]] = {
    Wire.OPENAI: openai.OpenAIDecoder,
    Wire.ANTHROPIC: anthropic.AnthropicDecoder,
    Wire.GEMINI: gemini.GeminiDecoder,
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
        self._decoder = _DECODERS[endpoint.wire](request, endpoint)
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
