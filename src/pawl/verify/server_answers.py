"""Dev server: it starts on the bench, says where it listens, and answers over HTTP; then it is ended with its tree."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pawl.core.errors import SandboxUnavailable
from pawl.core.execution import Execution, Limits, Network
from pawl.core.finding import Finding, Verdict
from pawl.verify.dev_servers import DevServer, Serving, found_in
from pawl.verify.installers import missing_modules
from pawl.verify.lsp.host import Host, inside
from pawl.verify.serving import MARK
from pawl.verify.steps.step import Subject, failed, passed, skipped, stopped

SECONDS = 60.0
_GRACE_SECONDS = 15.0
_MODULE = "pawl.verify.serving"


class Joint(Protocol):
    """Joins the network of a server to the services it needs."""

    failure: str

    @property
    def file(self) -> int:
        """What the process on the bench inherits."""
        ...


Joining = Callable[[], AbstractContextManager[Joint]]


def question(serving: Serving, seconds: float, joint: int, *, port: int | None = None, stay: bool = False) -> str:
    """What the process on the bench is asked."""
    server = serving.server
    return json.dumps(
        {
            "words": serving.words,
            "environment": dict(server.environment),
            "port": port or server.port,
            "ready": server.ready,
            "busy": server.busy,
            "seconds": seconds,
            "joint": joint,
            "stay": stay,
        }
    )


def execution(host: Host, limits: Limits, asked: str, joint: int) -> Execution:
    """Runs a server in a network of its own; whoever holds the other end of the joint decides what it reaches."""
    return Execution(argv=inside(host, _MODULE, asked), limits=limits, network=Network.OFF, files=(joint,))


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """Fits `Step`."""

    host: Host
    joining: Joining
    own: tuple[DevServer, ...] = ()
    """The user's."""
    name: str = "server"

    def run(self, subject: Subject) -> Verdict:
        serving = found_in(subject, self.own)
        if serving is None:
            return skipped(self.name, "the project has no dev server that is known")
        if serving.server.program and (missing := missing_modules(subject.files)):
            return skipped(self.name, missing)
        limits = dataclasses.replace(subject.limits, seconds=SECONDS + _GRACE_SECONDS)
        with self.joining() as joint:
            asked = question(serving, SECONDS, joint.file)
            try:
                completed = subject.runner.run(execution(self.host, limits, asked, joint.file))
            except SandboxUnavailable as error:
                return skipped(self.name, error.message)
        if joint.failure:
            return failed(self.name, joint.failure)
        marked = [line for line in completed.stdout.text.splitlines() if line.startswith(MARK)]
        name = serving.server.name
        if not marked:
            return failed(self.name, stopped(completed) or f"{name} gave up: {completed.stderr.text.strip()[-300:]}")
        told = json.loads(marked[-1].removeprefix(MARK))
        if "ready" in told:
            return passed(self.name, f"{name} answers on port {told['ready']} with status {told['status']}")
        output = told.get("output", "")
        if told.get("missing") or "No module named " + name in output:
            return skipped(self.name, f"{name} is not installed")
        finding = Finding(tool=name, message=output or told["failed"], code="server")
        return failed(self.name, f"{name}: {told['failed']}", [finding])
