"""The process that a dev server runs under: it holds the bench and the sandbox, and everything ends with it."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import BinaryIO

from pawl.checks.dev_process import ServerRecord, ServerRegistry, ServerState, born, port_holder
from pawl.checks.dev_servers import execution, found_in, read_told, shielded
from pawl.checks.dev_servers import question as asking
from pawl.checks.lsp.verdicts import host, readable
from pawl.checks.packages import PackagePolicy, provide
from pawl.checks.server_runner import MARK
from pawl.checks.settings import verify_settings
from pawl.checks.verifier import Verifier
from pawl.core.change import ChangeSet
from pawl.core.errors import NotFound, PawlError
from pawl.core.execution import Secrets, Stream
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.run import RunState
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.forwarder import Forwarder
from pawl.settings.config import load
from pawl.workspace.bench import sweep
from pawl.workspace.benches import open_bench
from pawl.workspace.paths import bench_places
from pawl.workspace.project import Project

SECRETS_SHOWN = "it reads files that hold secrets (--secrets)"
LONGEST_SECONDS = 7 * 86_400.0
LARGEST_LOG = 4 << 20
LONGEST_LINE = 1 << 20
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def main() -> None:
    asked = json.loads(sys.argv[1])
    config = load()
    registry = ServerRegistry.under(config.state)
    workspace: str = asked["workspace"]
    record = ServerRecord(
        workspace=workspace, name="", pid=os.getpid(), born=born(os.getpid()), state=ServerState.STARTING
    )
    registry.put(record)
    cancel = CancelToken()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: cancel.request())
    threading.Thread(target=_watch, args=(cancel,), daemon=True).start()
    keeper = _Keeper(registry, record, registry.log(workspace))
    try:
        with Project.open(config, Path(workspace)) as shop:
            _serve(shop, keeper, cancel, asked)
    except PawlError as error:
        keeper.told({"failed": redacted(f"{error.message}; {error.advice}" if error.advice else error.message)})
    finally:
        keeper.close(stopped=cancel.requested)


def _watch(cancel: CancelToken) -> None:
    """Ends everything when who started it dies before the server was told of."""
    if not sys.stdin.buffer.read(1):
        cancel.request()


def _serve(shop: Project, keeper: _Keeper, cancel: CancelToken, asked: dict[str, object]) -> None:
    for place in bench_places(shop.config):
        sweep(place)
    with open_bench(shop, extra_readonly=readable()) as bench:
        if asked["run"]:
            bench.apply(_made(shop, str(asked["run"])), shop.store.blobs)
        provided = provide(shop, bench, PackagePolicy(install=bool(asked["install"])))
        subject = Verifier(shop=shop).subject(bench.files, bench)
        serving = found_in(subject, verify_settings(shop.config).dev_server)
        lacking = [one.note for one in provided if not one.key]
        if lacking and (serving is None or serving.server.program):
            raise NotFound(lacking[0], advice="or install them yourself")
        if serving is None:
            raise NotFound(
                "the project has no dev server that Pawl knows",
                advice="known are Vite, Next.js, Astro, Create React App, uvicorn, Flask and Django",
            )
        services = verify_settings(shop.config).dev_services
        with Forwarder(services) as forwarder:
            wanted = asked["port"] if isinstance(asked["port"], int) else serving.server.port
            notices = [_taken(forwarder, wanted, services, keeper.registry), SECRETS_SHOWN if asked["secrets"] else ""]
            keeper.named(serving.server.name, forwarder, "; ".join(filter(None, notices)))
            question = asking(
                shielded(serving, subject), float(str(asked["seconds"])), forwarder.file, port=forwarder.port, stay=True
            )
            limits = shop.config.settings.limits(LONGEST_SECONDS)
            command = execution(host(), limits, question, forwarder.file)
            if asked["secrets"]:
                command = replace(command, secrets=Secrets.SHOWN)
            completed = bench.run(command, on_output=keeper.feed, cancel=cancel)
        if forwarder.failure:
            keeper.told({"failed": forwarder.failure})
        elif keeper.record.state is ServerState.STARTING:
            said = completed.stderr.text.strip().splitlines()[-1:] or [f"it ended by {completed.ending.value}"]
            keeper.told({"failed": said[0]})


def _made(shop: Project, run: str) -> ChangeSet:
    """What a run shows for approval; while it works, what stands on its bench by now."""
    runs = shop.store.runs
    return (runs.bench(run) if runs.state(run) is RunState.WORKING else runs.work(run, "shown")) or ChangeSet()


def _taken(forwarder: Forwarder, wanted: int, services: Sequence[tuple[str, int]], registry: ServerRegistry) -> str:
    """Takes the wanted port of this machine, or any; says why it is another one."""
    try:
        if any(port == wanted for _, port in services):
            why = "is a service of your settings"
        else:
            forwarder.listen(wanted)
            return ""
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            why = f"cannot be used: {error.strerror}"
        else:
            why = f"is taken by {registry.holder(wanted) or port_holder(wanted) or 'another program'}"
    forwarder.listen(0)
    return f"port {wanted} {why}; using {forwarder.port}"


@dataclass(slots=True)
class _Keeper:
    """Keeps the registry and the log up to date with what the server says."""

    registry: ServerRegistry
    record: ServerRecord
    path: Path
    _forwarder: Forwarder | None = None
    _log: BinaryIO | None = None
    _rest: bytes = b""
    _written: int = 0
    _closed: bool = field(default=False)

    def named(self, name: str, forwarder: Forwarder, notice: str) -> None:
        self._forwarder = forwarder
        self._put(replace(self.record, name=name, notice=notice))

    def feed(self, stream: Stream, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            if line.startswith(MARK.encode()):
                self.told(read_told(line.decode("utf-8", "replace")))
            else:
                self._write(line + b"\n")

    def told(self, body: dict[str, object]) -> None:
        if "ready" in body and self._forwarder is not None:
            self._forwarder.forward(int(str(body["ready"])))
            status = str(body.get("status"))
            notices = [self.record.notice, f"it answers with status {status}" if status.startswith("5") else ""]
            notice = "; ".join(filter(None, notices))
            self._put(replace(self.record, state=ServerState.READY, port=self._forwarder.port, notice=notice))
        elif "failed" in body:
            self._put(replace(self.record, state=ServerState.FAILED, reason=str(body["failed"])))
        elif self.record.state is ServerState.READY:
            self._put(replace(self.record, state=ServerState.ENDED, reason=str(body.get("ended", ""))))

    def close(self, *, stopped: bool) -> None:
        if self._log is not None:
            self._log.close()
        if stopped:
            self.registry.forget(self.record.workspace)
        elif self.record.state in (ServerState.STARTING, ServerState.READY):
            self._put(replace(self.record, state=ServerState.ENDED, reason=""))

    def _put(self, record: ServerRecord) -> None:
        self.record = record
        self.registry.put(record)

    def _write(self, data: bytes) -> None:
        if self._log is None or self._written > LARGEST_LOG:
            self._opened().truncate(0)
            self._written = 0
        assert self._log is not None
        plain = _ESCAPES.sub("", data.decode("utf-8", "replace"))
        self._log.write(redacted(plain).encode("utf-8", "replace"))
        self._log.flush()
        self._written += len(data)

    def _opened(self) -> BinaryIO:
        if self._log is None:
            opener: Callable[[str, int], int] = lambda name, flags: os.open(name, flags, 0o600)  # noqa: E731
            self._log = open(self.path, "wb", opener=opener)  # noqa: SIM115
        else:
            self._log.seek(0)
        return self._log


if __name__ == "__main__":
    main()
