"""The table `[verify]` of the user's settings, checked."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pawl.checks.choosing import CheckSettings
from pawl.checks.dev_servers import DevServer
from pawl.checks.dev_servers import load as dev_servers
from pawl.checks.lsp.servers import server
from pawl.checks.rungs import CommandCheck, load
from pawl.core.errors import ConfigError
from pawl.settings.config import Config

_LONGEST = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    skip: tuple[str, ...] = ()
    """Kinds or names of steps that are left out."""
    seconds: float = 600.0
    """The most that a step may take; commands of builds and linters have 120 of their own."""
    install: bool = False
    """Whether missing packages may be installed on the bench, as the lock file says and with a network."""
    servers: tuple[str, ...] = ()
    """Language servers whose diagnostics are a step; empty for those that say what no other step says."""
    dev_server: tuple[DevServer, ...] = ()
    """Dev servers of the user's own, looked for before the known ones."""
    dev_services: tuple[tuple[str, int], ...] = ()
    """Servers on this machine's loopback that a dev server may reach."""
    recovery: object = ()
    """Entries of the recovery map as they are written; whoever repairs reads them (`own_entries`)."""
    step: tuple[CommandCheck, ...] = ()
    """Steps of the user's own, or in the place of known ones."""

    @property
    def wishes(self) -> CheckSettings:
        return CheckSettings(skip=frozenset(self.skip), own=self.step)


def verify_settings(config: Config) -> VerifySettings:
    """What the user set; `ConfigError` names what cannot be used."""
    table = config.tables.verify
    known = [one.name for one in fields(VerifySettings)]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise _wrong(config, f"{unknown[0]!r} is not a setting of it", f"it takes {', '.join(known)}")
    servers = _names(config, table, "servers")
    for name in servers:
        server(name)
    return VerifySettings(
        skip=_names(config, table, "skip"),
        seconds=_seconds(config, table),
        install=_install(config, table),
        servers=servers,
        dev_server=dev_servers(_server_tables(config, table), "[verify]"),
        dev_services=tuple(
            service for text in _names(config, table, "dev_services") for service in _services(config, text)
        ),
        recovery=table.get("recovery", []),
        step=load(table, "[verify]"),
    )


def _install(config: Config, table: Mapping[str, Any]) -> bool:
    value = table.get("install", False)
    if not isinstance(value, bool):
        raise _wrong(config, f"install must be true or false, not {value!r:.200}", "such as install = true")
    return value


def _names(config: Config, table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _wrong(config, f"{name} must be a list of texts, not {value!r:.200}", f'such as {name} = ["build"]')
    return tuple(value)


def _server_tables(config: Config, table: Mapping[str, Any]) -> dict[str, Any]:
    value = table.get("dev_server", [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _wrong(config, "dev_server must be an array of tables", "write [[verify.dev_server]]")
    return {"server": value}


def _services(config: Config, text: str) -> Iterator[tuple[str, int]]:
    """`localhost` stands for both addresses of the loopback."""
    host, _, port = text.rpartition(":")
    try:
        number = int(port)
        hosts = ("127.0.0.1", "::1") if host == "localhost" else (host.removeprefix("[").removesuffix("]"),)
        if not 0 < number < 1 << 16 or not all(ipaddress.ip_address(one).is_loopback for one in hosts):
            raise ValueError(text)
    except ValueError:
        advice = 'such as dev_services = ["127.0.0.1:5432"]'
        raise _wrong(config, f"dev_services: {text!r:.200} is no port of this machine's loopback", advice) from None
    yield from ((str(ipaddress.ip_address(one)), number) for one in hosts)


def _seconds(config: Config, table: Mapping[str, Any]) -> float:
    value = table.get("seconds", VerifySettings().seconds)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST:
        raise _wrong(config, f"seconds must be between 0 and {_LONGEST:g}, not {value!r:.200}", "such as seconds = 600")
    return float(value)


def _wrong(config: Config, what: str, advice: str) -> ConfigError:
    return ConfigError(f"{str(config.file)!r}, [verify]: {what}", advice=advice)
