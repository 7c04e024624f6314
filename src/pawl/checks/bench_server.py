"""The dev server that a role starts: on a bench of its own that holds the work so far, ended with the run."""

from __future__ import annotations

import http.client
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import field
from typing import Any

from pawl.checks.dev_servers import SECONDS, Serving, execution, found_in, question, read_told, shielded
from pawl.checks.lsp.verdicts import host
from pawl.checks.output import cleaned
from pawl.checks.project_facts import missing_modules
from pawl.checks.server_runner import MARK
from pawl.checks.settings import verify_settings
from pawl.checks.supervisor import LONGEST_LINE, LONGEST_SECONDS
from pawl.checks.verifier import Verifier
from pawl.core.change import ChangeSet
from pawl.core.errors import BuildFailed, NotFound, PawlError, PortInUse, ServerUnavailable, TimedOut
from pawl.core.execution import Limits, Stream
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.forwarder import LOOPBACK, Forwarder
from pawl.workspace.bench import Bench

_LINES = 200
_TOLD_LINES = 15
_GRACE_SECONDS = 30.0
PAGE_SECONDS = 30.0
_MOST_BODY = 64 << 10
_BROKEN = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A dev server as it stands, with the page that was asked for."""

    name: str
    port: int
    path: str
    status: int
    body: str
    log: str
    is_current: bool
    """Whether it serves all the work that is done."""


@dataclass(slots=True)
class _Running:
    """One server in its thread. It is told of by lines that start with the mark; all others are its log."""

    serving: Serving
    work: ChangeSet
    forwarder: Forwarder
    cancel: CancelToken
    told: dict[str, Any] = field(default_factory=dict)
    settled: threading.Event = field(default_factory=threading.Event)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES))
    _rest: bytes = b""

    @property
    def name(self) -> str:
        return self.serving.server.name

    @property
    def log(self) -> str:
        return "\n".join(list(self.lines)[-_TOLD_LINES:])

    def raise_if_failed(self) -> None:
        if error := failure(self.name, self.told, self.log):
            raise error

    def run(self, bench: Bench, asked: str, hides: Callable[[str], bool] | None, limits: Limits) -> None:
        command = execution(host(), limits, asked, self.forwarder.file)
        try:
            bench.run(command, on_output=self._feed, cancel=self.cancel, hides=hides)
            blocked = self.forwarder.failure
            said: Mapping[str, object] = {"failed": blocked or "it has ended", "busy": bool(blocked)}
        except PawlError as error:
            said = {"failed": error.message}
        if "failed" not in self.told:
            self.told = dict(said)
        self.settled.set()

    def _feed(self, stream: Stream, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-LONGEST_LINE:]
        for line in lines:
            if line.startswith(MARK.encode()):
                told = read_told(line.decode("utf-8", "replace"))
                self.told = {"failed": told["ended"], **told} if "ended" in told else told
                self.settled.set()
            else:
                self.lines.append(cleaned(line.decode("utf-8", "replace")).text.rstrip())


class BenchServer:
    """The one dev server of a role's bench. Nothing of this machine reaches it but Pawl."""

    def __init__(
        self,
        verifier: Callable[[], Verifier],
        work: Callable[[], ChangeSet],
        hides: Callable[[], Callable[[str], bool] | None],
    ) -> None:
        self._verifier = verifier
        self._work = work
        self._hides = hides
        self._running: _Running | None = None
        self._closing = ExitStack()

    def start(self, path: str) -> Served:
        """Starts it with the work so far; one that serves the same work stays."""
        work = self._work()
        if self._running is None or self._running.work != work or "failed" in self._running.told:
            self.stop()
            try:
                self._begin(work)
            except BaseException:
                self.stop()
                raise
        return self.status(path)

    def status(self, path: str) -> Served:
        running = self._running
        if running is None:
            raise NotFound("no dev server runs", advice="start it")
        running.raise_if_failed()
        status, body = _page(running, path)
        log = running.log
        if status >= _BROKEN:
            raise _build_failed(f"{running.name} answers {path!r} with status {status}\n{log or body}")
        return Served(
            name=running.name,
            port=int(running.told["ready"]),
            path=path,
            status=status,
            body=body,
            log=log,
            is_current=running.work == self._work(),
        )

    def stop(self) -> str:
        """Ends it with its whole tree; its name, empty where none ran."""
        name = "" if self._running is None else self._running.name
        self._running = None
        self._closing.close()
        return name

    def _begin(self, work: ChangeSet) -> None:
        verifier = self._verifier()
        shop = verifier.shop
        bench, _ = self._closing.enter_context(verifier.bench(work))
        subject = verifier.subject(bench.files, bench)
        settings = verify_settings(shop.config)
        serving = found_in(subject, settings.dev_server)
        if serving is None:
            raise NotFound("the project has no dev server that Pawl knows", advice="run what it has with run_command")
        if serving.server.program and (missing := missing_modules(subject.files)):
            raise ServerUnavailable(missing, advice="the user can install them: pawl verify --install")
        forwarder = self._closing.enter_context(Forwarder(settings.dev_services))
        cancel = CancelToken(above=shop.stop)
        running = _Running(serving, work, forwarder, cancel)
        asked = question(shielded(serving, subject), SECONDS, forwarder.file, stay=True)
        limits = shop.config.settings.limits(LONGEST_SECONDS)
        thread = threading.Thread(
            target=running.run, args=(bench, asked, self._hides(), limits), name="pawl-server", daemon=True
        )
        thread.start()
        self._closing.callback(cancel.close)
        self._closing.callback(thread.join)
        self._closing.callback(cancel.request)
        self._running = running
        if not running.settled.wait(SECONDS + _GRACE_SECONDS):
            raise TimedOut(f"{running.name} does not start", advice="see what it waits for")
        running.raise_if_failed()


def failure(name: str, told: Mapping[str, Any], log: str = "") -> PawlError | None:
    """The error in the words of a server's end; None while it serves."""
    if "failed" not in told:
        return None
    output = str(told.get("output", "")) or log
    said = f"{name}: {told['failed']}\n{output}".rstrip()
    if told.get("busy"):
        return PortInUse(said, advice="let it take its port from its arguments, or end what else listens there")
    if told.get("late"):
        return TimedOut(said, advice="see what it waits for, and that it prints its address")
    if told.get("missing") or "No module named " + name in output:
        return ServerUnavailable(f"{name} is not installed", advice="the user can install it: pawl verify --install")
    return _build_failed(said)


def _build_failed(said: str) -> BuildFailed:
    return BuildFailed(said, advice="fix what it reports, then start it again")


def _page(running: _Running, path: str) -> tuple[int, str]:
    port = int(running.told["ready"])
    connection = http.client.HTTPConnection(LOOPBACK, port)
    late = None
    try:
        connection.sock = running.forwarder.connect(port)
        late = threading.Timer(PAGE_SECONDS, _cut_off, (connection.sock,))
        late.start()
        connection.request("GET", path, headers={"Accept": "text/html,*/*", "Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BODY).decode("utf-8", "replace")
    except TimeoutError as error:
        raise TimedOut(f"{running.name} does not answer {path!r} in time", advice="read its log") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ServerUnavailable(
            f"{running.name} gives no answer to {path!r}: {error}\n{running.log}".rstrip(), advice="start it again"
        ) from error
    finally:
        if late is not None:
            late.cancel()
        connection.close()


def _cut_off(one: socket.socket) -> None:
    """Ends a page that comes byte by byte, which no limit on one reading sees."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
