"""For each thread one event loop and one set of kept connections, driven step by step from ordinary code."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx2

from pawl.core.errors import Cancelled, Unreachable
from pawl.core.version import __version__
from pawl.models.endpoint import LOOPBACK
from pawl.sandbox.cancel import CancelToken, raise_if_stopped

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
                    future.set_exception(RuntimeError("the lookup broke"))

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
