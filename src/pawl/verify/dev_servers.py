"""Dev servers as values, and which of them a project has: how it is started, where it listens, when it is ready."""

from __future__ import annotations

import functools
import posixpath
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.core.errors import ConfigError
from pawl.verify.installers import installer_of
from pawl.verify.project import Folder, dependencies, package_json, text
from pawl.verify.steps.step import Subject

COMMON_BUSY = (
    "EADDRINUSE",
    "(?i)address already in use",
    r"(?i)port \d+ is (?:already )?in use",
    "(?i)that port is already in use",
)
"""What servers of every kind say of a port that is taken."""
_MOST_SOURCES = 500
_SKIPPED = frozenset({"tests", "test", "node_modules", ".venv", "venv", "docs", "examples"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DevServer:
    name: str
    dependencies: frozenset[str]
    files: tuple[str, ...]
    script: tuple[str, ...]
    program: str
    first: tuple[str, ...]
    words: tuple[str, ...]
    app: re.Pattern[str] | None
    port: int
    ready: tuple[str, ...]
    busy: tuple[str, ...]
    environment: Mapping[str, str]
    reload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that a project has, ready to be started on a port."""

    server: DevServer
    why: str
    words: tuple[str, ...]

    def command(self, port: int) -> tuple[str, ...]:
        return tuple(word.replace("{port}", str(port)) for word in self.words)

    def environment(self, port: int) -> dict[str, str]:
        return {name: value.replace("{port}", str(port)) for name, value in self.server.environment.items()}


def load(data: Mapping[str, Any], source: str) -> tuple[DevServer, ...]:
    """Servers from a table with `server`s; refused with the reason when one cannot be used."""
    found = []
    for entry in data.get("server", []):
        name = entry.get("name", "without a name") if isinstance(entry, Mapping) else repr(entry)
        try:
            found.append(_server(entry))
        except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
            said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"{source}: the dev server {name!r} cannot be used: {said}",
                advice="it has name, when, words, port and ready; see docs/verification.md",
            ) from error
    return tuple(found)


def _server(entry: Mapping[str, Any]) -> DevServer:
    when = entry["when"]
    ready = tuple(entry["ready"])
    for pattern in ready:
        if "port" not in re.compile(pattern).groupindex:
            raise ValueError(f"{pattern!r} has no group 'port'")
    port = int(entry["port"])
    if not 0 < port < 1 << 16:
        raise ValueError(f"{port} is no port")
    return DevServer(
        name=str(entry["name"]),
        dependencies=frozenset(when.get("dependencies", ())),
        files=tuple(when.get("files", ())),
        script=tuple(entry.get("script", ())),
        program=str(entry.get("program", "")),
        first=tuple(entry.get("first", ())),
        words=tuple(entry["words"]),
        app=re.compile(entry["app"], re.MULTILINE) if "app" in entry else None,
        port=port,
        ready=ready,
        busy=(*entry.get("busy", ()), *COMMON_BUSY),
        environment=dict(entry.get("environment", {})),
        reload=str(entry.get("reload", "none")),
    )


@functools.cache
def built_in() -> tuple[DevServer, ...]:
    text = (resources.files("pawl.verify") / "dev_servers.toml").read_text(encoding="utf-8")
    return load(tomllib.loads(text), "dev_servers.toml")


def found_in(subject: Subject, own: tuple[DevServer, ...] = ()) -> Serving | None:
    """The server that the project has; those of the user come first."""
    needed = dependencies(subject.files)
    for server in (*own, *built_in()):
        shown = sorted(server.dependencies & needed) or [name for name in server.files if subject.files.exists(name)]
        words = _command(server, subject) if shown else None
        if words is not None:
            return Serving(server=server, why=f"{shown[0]} is there", words=words)
    return None


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
