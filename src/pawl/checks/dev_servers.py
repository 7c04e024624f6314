"""Dev servers as values, and which of them a project has: how it is started, where it listens, when it is ready."""

from __future__ import annotations

import dataclasses
import functools
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pawl.checks.lsp.verdicts import Host, inside
from pawl.checks.project_facts import Folder, installer_of, missing_modules, package_json, text
from pawl.checks.runners import launched
from pawl.checks.server_runner import MARK
from pawl.checks.signs import CheckSigns
from pawl.checks.steps import Subject, failed, passed, skipped, stopped
from pawl.core.diagnostic import NOT_SERVING, CheckResult, Diagnostic
from pawl.core.errors import ConfigError, SandboxUnavailable
from pawl.core.execution import Execution, Limits, Network
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, data_table, read_json, written

COMMON_BUSY = (
    "EADDRINUSE",
    "(?i)address already in use",
    r"(?i)port \d+ is (?:already )?in use",
    "(?i)that port is already in use",
)
"""Messages of any server about a port that is taken."""
_MOST_SOURCES = 500
_SKIPPED = frozenset({"tests", "test", "node_modules", ".venv", "venv", "docs", "examples"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DevServer:
    """A server as `dev_servers.toml` or the user describes it."""

    name: str
    when: CheckSigns
    words: tuple[str, ...]
    port: int
    ready: tuple[str, ...]
    script: tuple[str, ...] = ()
    program: str = ""
    first: tuple[str, ...] = ()
    app: re.Pattern[str] | None = None
    busy: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    reload: str = "none"

    def __post_init__(self) -> None:
        for pattern in self.ready:
            if "port" not in re.compile(pattern).groupindex:
                raise ValueError(f"{pattern!r} has no group 'port'")
        if not 0 < self.port < 1 << 16:
            raise ValueError(f"{self.port} is not a port")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that a project has, ready to be started on a port."""

    server: DevServer
    words: tuple[str, ...]


def load(data: Mapping[str, Any], source: str) -> tuple[DevServer, ...]:
    """Servers from a table with `server`s; refused with the reason when one cannot be used."""
    found = []
    for entry in data.get("server", []):
        try:
            found.append(written(DevServer, entry))
        except (ValueError, re.error) as error:
            name = entry.get("name", "without a name") if isinstance(entry, Mapping) else repr(entry)
            raise ConfigError(
                f"{source}: the dev server {name!r} cannot be used: {error}",
                advice="it has name, when, words, port and ready; see docs/verification.md",
            ) from error
    return tuple(found)


@functools.cache
def built_in() -> tuple[DevServer, ...]:
    return load(data_table("pawl.checks", "dev_servers.toml"), "dev_servers.toml")


def found_in(subject: Subject, own: tuple[DevServer, ...] = ()) -> Serving | None:
    """The server that the project has; those of the user come first."""
    for server in (*own, *built_in()):
        words = _command(server, subject) if server.when.shown_by(subject.files) else None
        if words is not None:
            return Serving(server=server, words=words)
    return None


def shielded(serving: Serving, subject: Subject) -> Serving:
    """A server that is a module of Python's as it is started: none of the workspace stands for one that it imports."""
    if serving.words[:2] != (subject.python, "-m"):
        return serving
    return dataclasses.replace(serving, words=launched(subject.files, serving.words))


def _command(server: DevServer, subject: Subject) -> tuple[str, ...] | None:
    if server.program:
        return _by_node(server, subject)
    values = {"python": subject.python}
    if server.app is not None:
        place = _app(server.app, subject.files)
        if place is None:
            return None
        values |= place
    return tuple(re.sub(r"\{(python|app|module)\}", lambda match: values[match[1]], word) for word in server.words)


def _by_node(server: DevServer, subject: Subject) -> tuple[str, ...] | None:
    """The project's own script where it runs the program, else the program."""
    scripts = package_json(subject.files).get("scripts")
    known = scripts if isinstance(scripts, dict) else {}
    for name in server.script:
        if re.search(rf"\b{re.escape(server.program)}\b", str(known.get(name, ""))):
            runner = installer_of(subject.files)
            between = ("--",) if runner.name == "npm" and server.words else ()
            return (*runner.run, name, *between, *server.words)
    program = next(iter(subject.node_programs(server.program)))
    return (program, *server.first, *server.words) if subject.files.exists("node_modules") else None


def _app(line: re.Pattern[str], files: Folder) -> dict[str, str] | None:
    """Where the application is made: the module and the name; the shallowest file first."""
    paths = [path for path in files.walk() if path.endswith(".py") and _SKIPPED.isdisjoint(path.split("/"))]
    for path in sorted(paths, key=lambda one: (one.count("/"), one))[:_MOST_SOURCES]:
        match = line.search(text(files, path))
        if match:
            folder, name = posixpath.split(path)
            module = name.removesuffix(".py") if name != "__init__.py" else ""
            return {"app": match["app"], "module": ".".join(filter(None, (folder.replace("/", "."), module)))}
    return None


SECONDS = 60.0
_GRACE_SECONDS = 15.0
_MODULE = "pawl.checks.server_runner"


def question(serving: Serving, seconds: float, joint: int, *, port: int | None = None, stay: bool = False) -> str:
    """The question to the process on the bench."""
    server = serving.server
    return json.dumps(
        {
            "words": serving.words,
            "environment": dict(server.environment),
            "port": port or server.port,
            "ready": server.ready,
            "busy": (*server.busy, *COMMON_BUSY),
            "seconds": seconds,
            "joint": joint,
            "stay": stay,
        }
    )


def read_told(line: str) -> dict[str, Any]:
    """The answer of the process on the bench in such a line, which a server may have forged."""
    try:
        told = read_json(line.removeprefix(MARK))
    except Unreadable:
        told = None
    plain = isinstance(told, dict) and str(told.get("ready", "0")).isdecimal()
    return told if plain else {"failed": "its output cannot be parsed"}


def execution(host: Host, limits: Limits, asked: str, joint: int) -> Execution:
    """Runs a server in a network of its own; whoever holds the other end of the joint decides what it reaches."""
    return Execution(argv=inside(host, _MODULE, asked), limits=limits, network=Network.OFF, files=(joint,))


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """The project's dev server must start and answer."""

    host: Host
    services: tuple[tuple[str, int], ...]
    """The addresses that it may reach."""
    own: tuple[DevServer, ...] = ()
    """The user's."""
    name: str = "server"

    def run(self, subject: Subject) -> CheckResult:
        # Loaded by those who start a server.
        from pawl.sandbox.forwarder import Forwarder

        serving = found_in(subject, self.own)
        if serving is None:
            return skipped(self.name, "the project has no dev server that Pawl knows")
        if serving.server.program and (missing := missing_modules(subject.files)):
            return skipped(self.name, missing)
        limits = dataclasses.replace(subject.limits, seconds=SECONDS + _GRACE_SECONDS)
        with Forwarder(self.services) as joint:
            asked = question(shielded(serving, subject), SECONDS, joint.file)
            try:
                completed = subject.runner.run(execution(self.host, limits, asked, joint.file))
            except SandboxUnavailable as error:
                return skipped(self.name, error.message)
        name = serving.server.name
        if joint.failure:
            return _unserved(self.name, name, joint.failure)
        marked = [line for line in completed.stdout.text.splitlines() if line.startswith(MARK)]
        if not marked:
            said = stopped(completed) or f"{name} gave up: {completed.stderr.text.strip()[-300:]}"
            return _unserved(self.name, name, said)
        told = read_told(marked[-1])
        taken = f"; port {told['taken']} is taken" if "taken" in told else ""
        if "ready" in told:
            return passed(self.name, f"{name} answers on port {told['ready']} with status {told.get('status')}{taken}")
        output = told.get("output", "")
        if told.get("missing") or "No module named " + name in output:
            return skipped(self.name, f"{name} is not installed")
        why = told.get("failed", "")
        return _unserved(self.name, name, f"{name}: {why}", output or why)


def _unserved(step: str, server: str, reason: str, message: str = "") -> CheckResult:
    return failed(step, reason, [Diagnostic(tool=server, message=message or reason, code=NOT_SERVING)])
