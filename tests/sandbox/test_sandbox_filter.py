"""The system call filter, run step by step on calls that never happen, for every processor it is written for."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.errors import SandboxUnavailable
from pawl.sandbox.namespaces import _MACHINES, _REFUSED, Sockets, filter_program

pytestmark = pytest.mark.spec("F4")

ALLOW, KILL, REFUSE, UNKNOWN = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
MACHINES = sorted(_MACHINES)
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
READ = {"x86_64": 0, "aarch64": 63}


def judge(program: bytes, audit: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would answer: an interpreter for the few instructions that the filter uses."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number if number < 1 << 31 else number - (1 << 32), audit, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program))
    position = accumulator = 0
    while True:
        code, then, otherwise, value = steps[position]
        position += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                position += then if accumulator == value else otherwise
            case 0x35:
                position += then if accumulator >= value else otherwise
            case 0x45:
                position += then if accumulator & value else otherwise
            case 0x06:
                return value
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(params=MACHINES)
def machine(request):
    return request.param


@pytest.fixture(params=list(Sockets))
def sockets(request):
    return request.param


def ask(machine, sockets, number, *arguments):
    return judge(filter_program(machine, sockets), AUDIT[machine], number, arguments)


def test_an_ordinary_call_passes(machine, sockets):
    assert ask(machine, sockets, READ[machine]) == ALLOW


def test_each_call_of_the_list_is_refused(machine, sockets):
    numbers = [pair[0 if machine == "x86_64" else 1] for pair in _REFUSED.values()]
    assert {ask(machine, sockets, number) for number in numbers if number is not None} == {REFUSE}


def test_a_foreign_calling_convention_is_the_end(machine, sockets):
    program = filter_program(machine, sockets)
    assert judge(program, 0x40000003, READ[machine]) == KILL


def test_the_second_numbering_of_x86_is_refused(sockets):
    assert ask("x86_64", sockets, 0x40000000) == REFUSE


@pytest.mark.attack("A28")
def test_new_namespaces_are_refused_and_threads_are_not(machine, sockets):
    clone = _MACHINES[machine].clone
    assert ask(machine, sockets, clone, 0x3D0F00) == ALLOW
    assert ask(machine, sockets, clone, 17) == ALLOW
    for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000):
        assert ask(machine, sockets, clone, flag | 17) == REFUSE
    assert ask(machine, sockets, 435) == UNKNOWN


@pytest.mark.attack("A29")
def test_typing_into_a_terminal_is_refused_and_asking_its_size_is_not(machine, sockets):
    ioctl = _MACHINES[machine].ioctl
    assert ask(machine, sockets, ioctl, 0, 0x5412) == REFUSE
    assert ask(machine, sockets, ioctl, 0, 0x541C) == REFUSE
    assert ask(machine, sockets, ioctl, 0, 0x5412 | 1 << 32) == REFUSE
    assert ask(machine, sockets, ioctl, 0, 0x5413) == ALLOW


UNIX, IPV4, IPV6, NETLINK, VSOCK, PACKET, ALG = 1, 2, 10, 16, 40, 17, 38
STREAM, DATAGRAM, RAW, SEQUENTIAL, FLAGS = 1, 2, 3, 5, 0o2004000


@pytest.mark.attack("A24")
def test_sockets_are_allowed_by_family_and_kind(machine):
    def may(sockets, family, kind):
        return ask(machine, sockets, _MACHINES[machine].socket, family, kind) == ALLOW

    for kind in (STREAM, DATAGRAM, STREAM | FLAGS):
        assert [may(Sockets.PRIVATE, family, kind) for family in (UNIX, IPV4, IPV6)] == [True] * 3
        assert [may(Sockets.INTERNET, family, kind) for family in (UNIX, IPV4, IPV6)] == [False, True, True]
        assert [may(Sockets.NONE, family, kind) for family in (UNIX, IPV4, IPV6)] == [False] * 3
    for sockets in Sockets:
        assert not any(may(sockets, family, RAW | FLAGS) for family in (IPV4, IPV6))
        assert not any(may(sockets, family, STREAM) for family in (VSOCK, PACKET, ALG, 0))
        assert may(sockets, NETLINK, RAW) is (sockets is not Sockets.NONE)


@pytest.mark.attack("A24")
def test_routing_is_the_only_netlink_protocol(machine, sockets):
    number = _MACHINES[machine].socket
    for kind in (RAW, DATAGRAM | FLAGS):
        for protocol in (*range(1, 64), 1 << 31, 2**32 - 1):
            assert ask(machine, sockets, number, NETLINK, kind, protocol) == REFUSE
        # The kernel reads the low half of the argument.
        routing = REFUSE if sockets is Sockets.NONE else ALLOW
        assert ask(machine, sockets, number, NETLINK, kind, 1 << 32) == routing
        assert ask(machine, sockets, number, NETLINK | 1 << 32, kind, 9) == REFUSE


@pytest.mark.attack("A24")
def test_only_local_sockets_come_in_pairs(machine, sockets):
    number = _MACHINES[machine].socketpair
    families = [family for family in range(64) if ask(machine, sockets, number, family, STREAM) == ALLOW]
    assert families == [UNIX]


@pytest.mark.attack("A28")
def test_io_uring_stays_closed_by_every_numbering(machine, sockets):
    second = 0x40000000 if machine == "x86_64" else 0
    assert {ask(machine, sockets, number | second) for number in (425, 426, 427)} == {REFUSE}


def test_without_namespaces_pairs_stay_joined_and_nothing_connects(machine):
    numbers = _MACHINES[machine]
    for sockets in (Sockets.NONE, Sockets.INTERNET):
        assert ask(machine, sockets, numbers.socketpair, UNIX, STREAM | FLAGS) == ALLOW
        assert ask(machine, sockets, numbers.socketpair, UNIX, SEQUENTIAL) == ALLOW
        assert ask(machine, sockets, numbers.socketpair, UNIX, DATAGRAM) == REFUSE
    assert ask(machine, Sockets.NONE, numbers.connect) == REFUSE
    assert ask(machine, Sockets.INTERNET, numbers.connect) == ALLOW
    assert ask(machine, Sockets.PRIVATE, numbers.socketpair, UNIX, DATAGRAM) == ALLOW


@given(
    machine=st.sampled_from(MACHINES),
    sockets=st.sampled_from(list(Sockets)),
    number=st.integers(0, 600),
    arguments=st.tuples(*[st.integers(0, 2**64 - 1)] * 6),
)
def test_every_call_gets_an_answer(machine, sockets, number, arguments):
    assert ask(machine, sockets, number, *arguments) in {ALLOW, REFUSE, UNKNOWN}


def test_an_unknown_processor_is_refused():
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        filter_program("riscv64", Sockets.PRIVATE)


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def test_the_numbers_are_those_of_the_kernels_headers(machine):
    if not HEADERS[machine].exists():
        pytest.skip(f"no {HEADERS[machine]}")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text()))
    numbers = {name: pair[0 if machine == "x86_64" else 1] for name, pair in _REFUSED.items()}
    numbers |= {
        name: getattr(_MACHINES[machine], name) for name in ("clone", "ioctl", "socket", "socketpair", "connect")
    }
    # Headers older than a call do not know it.
    expected = {name: int(known[name]) for name in numbers if name in known}
    assert {name: numbers[name] for name in expected} == expected
    assert len(expected) > 45
