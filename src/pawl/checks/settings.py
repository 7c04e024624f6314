"""The table `[verify]` of the user's settings, checked."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Annotated, Any

from pawl.checks.command_step import CommandCheck, load
from pawl.checks.dev_servers import DevServer
from pawl.checks.dev_servers import load as dev_servers
from pawl.checks.ladder import CheckSettings
from pawl.checks.lsp.servers import server
from pawl.checks.services import TestService
from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Above, AtMost, Reader
from pawl.settings.config import Config

_LONGEST = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    skip: tuple[str, ...] = ()
    """Kinds or names of steps that are left out."""
    test: tuple[str, ...] = ()
    """The words of the command that runs the tests; empty lets the project decide."""
    seconds: Annotated[float, Above(0), AtMost(_LONGEST)] = 600.0
    """The most that a step may take; commands of builds and linters have 120 of their own."""
    budget: Annotated[float, Above(0), AtMost(_LONGEST)] = 60.0
    """Seconds of tests for a change: the whole suite where it takes no longer, else those that the change reaches."""
    afterwards: bool = False
    """Whether the whole suite runs in the background after a change that a part of it verified."""
    install: bool = False
    """Whether missing packages may be installed on the bench, as the lock file says and with a network."""
    servers: tuple[str, ...] = ()
    """Language servers whose diagnostics are a step; empty for those that say what no other step says."""
    dev_server: tuple[DevServer, ...] = ()
    """Dev servers of the user's own, looked for before the known ones."""
    dev_services: tuple[tuple[str, int], ...] = ()
    """Servers on this machine's loopback that a dev server may reach."""
    recovery: Any = field(default_factory=list)
    """Entries of the recovery map as they are written; whoever repairs reads them (`with_users`)."""
    service: tuple[TestService, ...] = ()
    """Services that are started around the tests, in their network."""
    step: tuple[CommandCheck, ...] = ()
    """Steps of the user's own, or in the place of known ones."""

    def __post_init__(self) -> None:
        for name in self.servers:
            server(name)

    @property
    def wishes(self) -> CheckSettings:
        return CheckSettings(skip=frozenset(self.skip), own=self.step)


_READ_APART = frozenset({"step", "dev_server", "dev_services"})


def verify_settings(config: Config) -> VerifySettings:
    """Read the user's settings; `ConfigError` names all that cannot be used."""
    table, reader = config.tables.verify, Reader()
    services, plain = list[tuple[str, int]](), None
    try:
        rest = {name: value for name, value in table.items() if name not in _READ_APART}
        plain = reader.table(VerifySettings, rest, "")
        for one in reader.value(tuple[str, ...], table.get("dev_services", []), "dev_services") or ():
            services += _services(one)
    except ValueError as error:
        reader.mistakes.append(str(error))
    own = table.get("dev_server", [])
    if not isinstance(own, list):
        reader.wrong("dev_server", "must be an array of tables, as [[verify.dev_server]] writes it")
    if plain is None or reader.mistakes:
        told = "; ".join(reader.mistakes)
        raise ConfigError(f"{str(config.file)!r}, [verify]: {told}", advice="see docs/settings.md, verify")
    return replace(
        plain,
        dev_services=tuple(services),
        dev_server=dev_servers({"server": own}, "[verify]"),
        step=load(table, "[verify]"),
    )


def _services(text: str) -> Iterator[tuple[str, int]]:
    """`localhost` stands for both addresses of the loopback."""
    host, _, port = text.rpartition(":")
    hosts = ("127.0.0.1", "::1") if host == "localhost" else (host.removeprefix("[").removesuffix("]"),)
    try:
        number = int(port)
        if not 0 < number < 1 << 16 or not all(ipaddress.ip_address(one).is_loopback for one in hosts):
            raise ValueError(text)
    except ValueError:
        raise ValueError(
            f'dev_services: {text!r:.200} is not a port of this machine\'s loopback, such as "127.0.0.1:5432"'
        ) from None
    yield from ((str(ipaddress.ip_address(one)), number) for one in hosts)
