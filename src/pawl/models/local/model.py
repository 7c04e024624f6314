"""Model files as models: each is served by a child of its own and asked in the OpenAI format over loopback."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request, Retrying
from pawl.core.errors import AnswerInterrupted, ContextTooLong, Unreachable
from pawl.models.endpoint import Endpoint, Quirks, ReasoningSwitch, SchemaCarrier, Timeouts, Wire
from pawl.models.exchange import WireModel
from pawl.models.failures import Retries
from pawl.models.local.child import Life
from pawl.models.local.header import LocalSettings, read_header, start_of
from pawl.models.transport import Transport
from pawl.sandbox.cancel import CancelToken

PROVIDER = "local"
_ATTEMPTS = 2
_QUIRKS = Quirks(reasoning=ReasoningSwitch.TEMPLATE, schema=SchemaCarrier.JSON_SCHEMA)


_SERVER = (sys.executable, "-P", "-m", "pawl.models.local.child")
"""The folder that it runs in is not a place that modules are taken from."""


class LocalModel:
    """Fits `Model`, from several threads too: the child takes one request after the other. Offers no tools.

    Nothing runs before the first request; leaving it as a context manager ends the child.

    The library holds an answer to its schema, but for what it has no grammar for: bounds of numbers with fractions,
    `format`, `uniqueItems`, conditions. A schema that it cannot read is `RequestRejected`.
    """

    def __init__(
        self, path: str | Path, settings: LocalSettings | None = None, command: Sequence[str] = _SERVER
    ) -> None:
        """`UnknownModel` for what is no model. `command` is the server that is started, as `child.main` is."""
        self.header = read_header(Path(path).expanduser().absolute())
        self.settings = settings or LocalSettings()
        self.name = f"{PROVIDER}:{self.header.path}"
        self.context = self.settings.context_of(self.header)
        self._command = tuple(command)
        self._life: Life | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        """That of the process which holds the model in memory, while there is one."""
        process = None if self._life is None else self._life.process
        return process.pid if process is not None and process.returncode is None else None

    def __enter__(self) -> LocalModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            life, self._life = self._life, None
        if life is not None:
            life.end()

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        """Loads the model where it is not. A process that dies is replaced once, and the request asked again."""
        started = time.monotonic()
        for attempt in range(1, _ATTEMPTS + 1):
            with self._serving(cancel) as life:
                waited = time.monotonic() - started
                try:
                    with closing(self._asked(life, request, cancel)) as events:
                        for event in events:
                            if isinstance(event, Answered):
                                event = Answered(self._own(event.answer, waited=waited, attempts=attempt))
                            yield event
                    return
                except (AnswerInterrupted, Unreachable) as error:
                    death = life.death()
                    if death is None:
                        raise
                    if attempt == _ATTEMPTS:
                        raise death from error
            yield Retrying(why=death.message, wait_seconds=0.0, attempt=attempt)

    @contextmanager
    def _serving(self, cancel: CancelToken | None) -> Iterator[Life]:
        """A process that serves, held for as long as the block lasts; started where there is none."""
        life = self._held()
        try:
            life.wait(cancel)
            yield life
        finally:
            life.leave()

    def _held(self) -> Life:
        with self._lock:
            if self._is_closed:
                raise Unreachable(f"{self.name!r} was closed", advice="open it again")
            if self._life is None or not self._life.enter():
                start = start_of(self.header, self.settings, secrets.token_urlsafe(32))
                idle, load = self.settings.idle_seconds, self.settings.load_seconds
                self._life = Life(self._command, start, idle_seconds=idle, load_seconds=load)
            return self._life

    def _asked(self, life: Life, request: Request, cancel: CancelToken | None) -> Generator[ModelEvent, None, None]:
        limit = self.settings.answer_seconds
        endpoint = Endpoint(
            wire=Wire.OPENAI,
            base_url=f"{life.address}/v1",
            name=self.header.path.name,
            provider=PROVIDER,
            key=life.token,
            quirks=_QUIRKS,
        )
        # A transport is for one thread, and on loopback a new one costs next to nothing.
        with Transport() as transport:
            model = WireModel(
                endpoint,
                transport,
                timeouts=Timeouts(first_byte=limit, idle=limit, whole=limit),
                retries=Retries(tries=1),
            )
            try:
                yield from model.stream(request, cancel=cancel)
            except ContextTooLong:
                raise self._too_long() from None

    def _own(self, answer: ModelResponse, *, waited: float, attempts: int) -> ModelResponse:
        first = answer.first_token_seconds
        return replace(
            answer,
            model=self.name,
            cost=Decimal(0),
            seconds=answer.seconds + waited,
            first_token_seconds=None if first is None else first + waited,
            attempts=attempts,
        )

    def _too_long(self) -> ContextTooLong:
        most = self.header.context
        larger = f", set a larger context (this file reads up to {most})" if most and most > self.context else ""
        return ContextTooLong(
            f"the request is too long for {self.name!r}, which is loaded to read {self.context} tokens",
            advice=f"send less{larger}, or use another model",
        )
