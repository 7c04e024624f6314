"""The system call filter, assembled as classic BPF by hand so that no library has to be installed."""

from __future__ import annotations

import functools
import struct
import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from pawl.core.errors import SandboxUnavailable
from pawl.core.lazy_dataclass import dataclass


class Sockets(Enum):
    """Which sockets a command may open."""

    PRIVATE = "private"
    """Inside a network namespace of its own, or with the network allowed: local, IPv4, IPv6 and routing sockets.

    Routing is the one netlink protocol: programs list their addresses by it. The others are ways into the kernel.
    """
    INTERNET = "internet"
    """No namespaces, network allowed: no local sockets, because those of the machine could be connected to."""
    NONE = "none"
    """No namespaces, no network: socket pairs only."""


_UNIX, _IPV4, _IPV6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _SEQUENTIAL = 1, 2, 5
_ROUTING = 0
_FAMILIES = MappingProxyType(
    {
        Sockets.PRIVATE: (_UNIX, _NETLINK, _IPV4, _IPV6),
        Sockets.INTERNET: (_NETLINK, _IPV4, _IPV6),
        Sockets.NONE: (),
    }
)


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    column: int
    clone: int
    ioctl: int
    socket: int
    socketpair: int
    connect: int


_MACHINES = MappingProxyType(
    {
        "x86_64": _Machine(0xC000003E, 0, clone=56, ioctl=16, socket=41, socketpair=53, connect=42),
        "aarch64": _Machine(0xC00000B7, 1, clone=220, ioctl=29, socket=198, socketpair=199, connect=203),
    }
)

_CALLS = tomllib.loads(Path(__file__).with_name("refused_calls.toml").read_text(encoding="utf-8"))
_REFUSED: Mapping[str, tuple[int, int | None]] = {name: (at[0], *at[1:], None)[:2] for name, at in _CALLS.items()}
_CLONE3 = 435
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: both can type into the terminal that Pawl runs in."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _AUDIT, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
_ALLOW, _KILL, _NOT_PERMITTED, _NOT_IMPLEMENTED = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction; `then` and `otherwise` name labels, empty for the next instruction."""

    code: int
    value: int
    then: str = ""
    otherwise: str = ""


@functools.cache
def filter_program(machine: str, sockets: Sockets) -> bytes:
    """The filter for this processor, as the kernel reads it."""
    numbers = _MACHINES.get(machine)
    if numbers is None:
        raise SandboxUnavailable(
            f"no system call filter is known for the processor {machine!r}",
            advice=f"run Pawl on one of {', '.join(_MACHINES)}",
        )
    return _assemble(list(_steps(numbers, sockets)))


def _steps(machine: _Machine, sockets: Sockets) -> Iterator[_Step | str]:
    yield _Step(_LOAD, _AUDIT)
    # A call through another calling convention has other numbers, so that no rule below would see it.
    yield _Step(_EQUAL, machine.audit, "", "kill")
    yield _Step(_LOAD, _NUMBER)
    if machine.column == 0:
        yield _Step(_AT_LEAST, _X32, "refuse", "")
    for pair in _REFUSED.values():
        number = pair[machine.column]
        if number is not None:
            yield _Step(_EQUAL, number, "refuse", "")
    # Its flags are behind a pointer; "not implemented" makes the C library fall back to clone.
    yield _Step(_EQUAL, _CLONE3, "unknown", "")
    yield _Step(_EQUAL, machine.clone, "clone", "")
    yield _Step(_EQUAL, machine.ioctl, "ioctl", "")
    yield _Step(_EQUAL, machine.socket, "socket", "")
    yield _Step(_EQUAL, machine.socketpair, "socketpair", "")
    if sockets is Sockets.NONE:
        yield _Step(_EQUAL, machine.connect, "refuse", "")
    yield _Step(_RETURN, _ALLOW)
    yield from _arguments(sockets)
    yield from ("allow", _Step(_RETURN, _ALLOW), "refuse", _Step(_RETURN, _NOT_PERMITTED))
    yield from ("unknown", _Step(_RETURN, _NOT_IMPLEMENTED), "kill", _Step(_RETURN, _KILL))


def _arguments(sockets: Sockets) -> Iterator[_Step | str]:
    """The rules that look at arguments."""
    yield from ("clone", _Step(_LOAD, _FIRST), _Step(_ANY_BIT, _NEW_NAMESPACES, "refuse", "allow"))
    yield from ("ioctl", _Step(_LOAD, _SECOND))
    yield from (_Step(_EQUAL, request, "refuse", "") for request in _TERMINAL_REQUESTS)
    yield _Step(_RETURN, _ALLOW)
    yield from ("socket", _Step(_LOAD, _FIRST))
    for family in _FAMILIES[sockets]:
        yield _Step(_EQUAL, family, {_UNIX: "allow", _NETLINK: "netlink"}.get(family, "type"), "")
    yield _Step(_RETURN, _NOT_PERMITTED)
    yield from ("netlink", _Step(_LOAD, _THIRD), _Step(_EQUAL, _ROUTING, "allow", "refuse"))
    # Raw sockets forge packets.
    yield from ("type", _Step(_LOAD, _SECOND), _Step(_AND, 0xF))
    yield from (_Step(_EQUAL, _STREAM, "allow", ""), _Step(_EQUAL, _DATAGRAM, "allow", "refuse"))
    yield from ("socketpair", _Step(_LOAD, _FIRST), _Step(_EQUAL, _UNIX, "", "refuse"))
    if sockets is not Sockets.PRIVATE:
        # A datagram pair could be connected anew to a socket of the machine; the other kinds stay joined.
        yield from (_Step(_LOAD, _SECOND), _Step(_AND, 0xF))
        yield from (_Step(_EQUAL, _STREAM, "allow", ""), _Step(_EQUAL, _SEQUENTIAL, "allow", "refuse"))
    yield _Step(_RETURN, _ALLOW)


def _assemble(items: list[_Step | str]) -> bytes:
    """Turns labels into the relative jumps that the kernel knows."""
    places: dict[str, int] = {}
    steps: list[_Step] = []
    for item in items:
        if isinstance(item, str):
            places[item] = len(steps)
        else:
            steps.append(item)
    code = bytearray()
    for index, step in enumerate(steps):
        then, otherwise = (places[label] - index - 1 if label else 0 for label in (step.then, step.otherwise))
        code += struct.pack("=HBBI", step.code, then, otherwise, step.value)
    return bytes(code)
