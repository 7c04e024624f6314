"""MCP servers as the user and a trusted workspace configure them (F6, F8)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Annotated, Literal

from pawl.core.errors import ConfigError, PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import register
from pawl.core.typed import Above, AtLeast, Reader, Unreadable, plain, read_json, typed
from pawl.settings.config import Config, environment_of
from pawl.settings.trust import MCP_FILE, is_secret_name, trusted_files

NAME = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_URL = re.compile(r"https?://[^/@\s]+(?:/|\Z)")
_HTTP = ("http", "streamable-http")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One server as it is written: a command on standard streams, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    type: str = ""
    """`stdio`, `http` or `streamable-http`; found from the rest where it is left out."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: Annotated[float, Above(0)] = 30_000
    """Milliseconds for one answer."""
    network: bool = False
    """Whether its sandbox has a network."""
    reads: tuple[str, ...] = ()
    """Folders beside the workspace that its sandbox shows, read-only."""
    host: bool = False
    """It runs on this machine, outside of the sandbox; only in the user's own settings."""

    @property
    def is_remote(self) -> bool:
        return bool(self.url)

    @property
    def digest(self) -> str:
        return digest(plain(self, sparse=True))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the user that it is given."""
        return tuple(dict.fromkeys(found["name"] for text in self._texts() for found in _VARIABLE.finditer(text)))

    @property
    def has_more(self) -> bool:
        """Whether it is given what a command of a model is not."""
        return bool(self.url or self.host or self.network or self.reads or self.env or self.variables)

    def places(self, workspace: str) -> Iterator[str]:
        """Patterns of the files and folders of the workspace that its words name."""
        for word in (self.command, *self.args):
            for part in {word, word.partition("=")[2]} - {""}:
                path = os.path.normpath(os.path.join(workspace, part))
                if "\0" not in path and path.startswith(f"{workspace}/") and os.path.lexists(path):
                    yield path[len(workspace) + 1 :] + ("/**" if os.path.isdir(path) else "")

    def mistake(self) -> str:
        if bool(self.command) is bool(self.url):
            return "needs a command or a url, and not both"
        if self.type not in ("", *(_HTTP if self.url else ("stdio",))):
            return f"cannot have the type {self.type!r:.40}; there are stdio, http and streamable-http"
        if self.url and not _VARIABLE.match(self.url) and not _URL.match(_VARIABLE.sub("x", self.url)):
            return f"has no usable url: {self.url!r:.200}"
        return ""

    def expanded(self, environment: Mapping[str, str]) -> McpServer:
        """With `${NAME}` and `${NAME:-default}` filled in; `ConfigError` names a variable that is not set."""

        def fill(text: str) -> str:
            return _VARIABLE.sub(lambda found: _filled(found, environment), text)

        made = replace(
            self,
            command=fill(self.command),
            args=tuple(map(fill, self.args)),
            env={name: fill(text) for name, text in self.env.items()},
            url=fill(self.url),
            headers={name: fill(text) for name, text in self.headers.items()},
        )
        if made.url and not _URL.match(made.url):
            raise ConfigError(f"it has no usable url: {made.url!r:.200}", advice="write it as https://host/path")
        for name, value in made.headers.items():
            if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
                raise ConfigError(f"the header {name!r} may hold plain ASCII only", advice="correct it or its variable")
        named = {**self.env, **self.headers}
        values = {**made.env, **made.headers}
        register(*(values[name] for name in named if is_secret_name(name) or name.lower() == "authorization"))
        return made

    def _texts(self) -> Iterator[str]:
        yield from (self.command, *self.args, *self.env.values(), self.url, *self.headers.values())


def _filled(found: re.Match[str], environment: Mapping[str, str]) -> str:
    value = environment.get(found["name"]) or found["default"]
    if value is None:
        raise ConfigError(f"the variable {found['name']} is not set", advice="set it, or write ${NAME:-default}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """The table [mcp]."""

    servers: Mapping[str, McpServer] = field(default_factory=dict)
    schema_tokens: Annotated[int, AtLeast(0)] = 4_000
    """The size of all definitions that go with each request; the tools of servers beyond it are found by a search."""
    hands: Literal["direct", "mcp"] = "direct"
    """Whether an agent's files and commands are reached through MCP servers of Pawl's own."""
    promote: Literal["ask", "allow"] = "ask"
    """Whether clients of `pawl mcp serve` may promote without a person's yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownServer:
    """A server and who configured it."""

    name: str
    server: McpServer
    source: str
    is_own: bool
    """It is in the user's own settings."""
    mistake: str = ""


def mcp_settings(config: Config) -> McpSettings:
    """The table as it is meant; every mistake at once."""
    reader = Reader()
    read = reader.table(McpSettings, config.tables.mcp, "mcp") or McpSettings()
    for name, server in read.servers.items():
        if mistake := server_mistake(name, server):
            reader.wrong(f"mcp.servers.{name}", mistake)
    reader.check(str(config.file))
    return read


def server_mistake(name: str, server: McpServer) -> str:
    if not NAME.fullmatch(name):
        return "is not a valid server name: up to 32 letters, digits, - and single _"
    return server.mistake()


def known_servers(config: Config, workspace: str) -> dict[str, KnownServer]:
    """The user's own, then those of the workspace if it is trusted; the user's go before others of that name."""
    found = {
        name: KnownServer(name=name, server=server, source=str(config.file), is_own=True)
        for name, server in mcp_settings(config).servers.items()
    }
    trusted = trusted_files(config, workspace) if os.path.lexists(os.path.join(workspace, MCP_FILE)) else None
    text = "" if trusted is None else trusted.text(MCP_FILE)
    for name, server, mistake in project_servers(text):
        one = KnownServer(name=name, server=server, source=MCP_FILE, is_own=False, mistake=mistake)
        found.setdefault(name, one)
    return found


def rewritable(config: Config, workspace: str) -> tuple[str, ...]:
    """Patterns of what servers with more than a command has run from the workspace: an agent would be given it too."""
    with suppress(PawlError):
        servers = [one.server for one in known_servers(config, workspace).values() if one.server.has_more]
        return tuple(pattern for one in servers for pattern in one.places(workspace))
    return ()


def project_servers(text: str) -> Iterator[tuple[str, McpServer, str]]:
    """Fields that only other agents know are passed over."""
    try:
        servers = read_json(text or "{}").get("mcpServers", {}).items()
    except (Unreadable, AttributeError) as error:
        raise ConfigError(f"{MCP_FILE!r} cannot be read: {error}", advice='it must hold {"mcpServers": {…}}') from error
    for name, given in servers:
        try:
            server = typed(McpServer, given)
        except ValueError as error:
            yield name, McpServer(), str(error)
            continue
        own = "cannot ask for host = true, which is only yours to say" if server.host else ""
        yield name, server, own or server_mistake(name, server)


def variables_of(config: Config) -> dict[str, str]:
    """The variables that servers may be given: the environment, and the user's own `.env`."""
    return environment_of(config.environment, user=config.file.parent / ".env")


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
