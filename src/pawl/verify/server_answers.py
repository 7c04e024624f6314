"""Dev server: it starts on the bench, says where it listens, and answers over HTTP; then it is ended with its tree."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from pawl.core.execution import Execution, Network
from pawl.core.finding import Finding, Verdict
from pawl.verify.dev_servers import DevServer, Serving, found_in
from pawl.verify.installers import missing_modules
from pawl.verify.lsp.host import Host, inside
from pawl.verify.serving import MARK
from pawl.verify.steps.step import Subject, failed, passed, skipped, stopped

SECONDS = 60.0
_GRACE_SECONDS = 15.0
_MODULE = "pawl.verify.serving"


def question(serving: Serving, seconds: float, *, port: int | None = None, stay: bool = False) -> str:
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
            "stay": stay,
        }
    )


def execution(serving: Serving, host: Host, subject: Subject, seconds: float = SECONDS) -> Execution:
    limits = dataclasses.replace(subject.limits, seconds=seconds + _GRACE_SECONDS)
    words = inside(host, _MODULE, question(serving, seconds))
    return Execution(argv=words, limits=limits, network=Network.OFF)


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """Fits `Step`."""

    host: Host
    own: tuple[DevServer, ...] = ()
    """The user's."""
    name: str = "server"

    def run(self, subject: Subject) -> Verdict:
        serving = found_in(subject, self.own)
        if serving is None:
            return skipped(self.name, "the project has no dev server that is known")
        if serving.server.program and (missing := missing_modules(subject.files)):
            return skipped(self.name, missing)
        completed = subject.runner.run(execution(serving, self.host, subject))
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
