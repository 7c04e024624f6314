"""Ways to reach the network, the machine's own services, and sockets that no namespace covers."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest
from sandbox.site import denied

pytestmark = [pytest.mark.hostile, pytest.mark.spec("F4")]

STREAM, DATAGRAM, RAW = 1, 2, 3
VSOCK, PACKET, ALG, IPV4, IPV6, NETLINK = 40, 17, 38, 2, 10, 16


@contextlib.contextmanager
def canary(family: int, kind: int, address):
    """A listener that says how many came."""
    with socket.socket(family, kind) as listener:
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        yield listener


def visits(listener: socket.socket) -> int:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                listener.recv(100)
            count += 1
    return count


@pytest.mark.attack("A20")
def test_a_server_of_the_machine_sees_no_connection(any_site):
    with (
        canary(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as four,
        canary(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)) as six,
    ):
        port, port6 = four.getsockname()[1], six.getsockname()[1]
        attempts = [("tcp", host, port) for host in ("127.0.0.1", "localhost", "0.0.0.0")] + [("tcp", "::1", port6)]
        assert denied(any_site.probe(*attempts))
        assert (visits(four), visits(six)) == (0, 0)
        assert any_site.probe_bare(*attempts) == ["allowed"] * 4
        assert (visits(four), visits(six)) == (3, 1)


@pytest.mark.attack("A21")
def test_no_datagram_and_no_name_leaves_the_machine(any_site):
    with canary(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        sent, looked_up, settings = any_site.probe(
            ("udp", "127.0.0.1", port), ("look_up", "canary.invalid"), ("read_file", "/etc/resolv.conf")
        )
        # Into an empty network a datagram may be sent; nobody is there to get it.
        assert any_site.kind == "namespaces" or sent.startswith("denied")
        assert looked_up.startswith("denied")
        assert settings.startswith("denied")
        assert visits(listener) == 0
        any_site.probe_bare(("udp", "127.0.0.1", port))
        assert visits(listener) == 1


@pytest.mark.attack("A22")
def test_a_socket_file_of_the_machine_cannot_be_connected_to(any_site):
    path = str(any_site.outside / "docker.sock")
    with canary(socket.AF_UNIX, socket.SOCK_STREAM, path) as stream:
        os.chmod(path, 0o777)
        answers = any_site.probe(("unix", path), env={"SSH_AUTH_SOCK": path})
        assert answers[0] in ("denied ENOENT", "denied EPERM")
        assert "SSH_AUTH_SOCK" not in any_site.probe(("environment",), env={"SSH_AUTH_SOCK": path})[0]
        assert visits(stream) == 0
        assert any_site.probe_bare(("unix", path)) == ["allowed"]
        assert visits(stream) == 1


@pytest.mark.attack("A22")
def test_a_pair_of_datagram_sockets_is_no_way_to_the_machines_sockets(any_site):
    path = str(any_site.outside / "log.sock")
    with canary(socket.AF_UNIX, socket.SOCK_DGRAM, path):
        os.chmod(path, 0o777)
        assert denied(any_site.probe(("unix_datagram_pair", path)))
        assert any_site.probe_bare(("unix_datagram_pair", path)) == ["allowed"]


@pytest.mark.attack("A23")
def test_an_abstract_socket_of_the_machine_cannot_be_connected_to(any_site):
    name = f"pawl-attack-{os.getpid()}"
    with canary(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}") as listener:
        assert denied(any_site.probe(("unix", f"@{name}")))
        assert visits(listener) == 0
        assert any_site.probe_bare(("unix", f"@{name}")) == ["allowed"]


@pytest.mark.attack("A24")
def test_no_socket_outside_the_network_namespace_can_be_opened(any_site):
    families = [
        ("open_socket", VSOCK, STREAM, 0),
        ("open_socket", PACKET, RAW, 0),
        ("open_socket", ALG, 5, 0),
        ("open_socket", IPV4, RAW, 1),
        ("open_socket", IPV6, RAW, 58),
        ("open_socket", IPV4, 10, 0),
    ]
    assert any_site.probe(*families) == ["denied EPERM"] * 6


@pytest.mark.attack("A24")
@pytest.mark.parametrize("network", ["off", "on"])
def test_netlink_beyond_routing_is_closed(any_site, network):
    """Socket diagnosis, netfilter, audit, connector, device events, generic families, crypto and the rest."""
    opened = any_site.probe(*[("open_socket", NETLINK, RAW, protocol) for protocol in range(1, 32)], network=network)
    assert opened == ["denied EPERM"] * 31
    paired = any_site.probe(*[("open_pair", NETLINK, RAW, protocol) for protocol in (0, 4, 9, 15, 16)], network=network)
    assert paired == ["denied EPERM"] * 5
    bare = any_site.probe_bare(("open_socket", NETLINK, RAW, 4), ("open_socket", NETLINK, RAW, 16))
    assert bare == ["allowed", "allowed"]


CALLS = """
import ctypes, os, platform, socket, struct
call, number = ctypes.CDLL(None).syscall, {"x86_64": 41, "aarch64": 198}[platform.machine()]
families = [f for f in range(64) if f not in (1, 2, 10, 16)]
tries = [(16 + up, kind, p + over) for up in (0, 1 << 32, 255 << 40) for kind in (2, 3, 0x80003, 0x803)
         for p in range(1, 32) for over in (0, 1 << 32, -(1 << 32))]
tries += [(f, kind, 0) for f in families for kind in (1, 2, 3, 5)]
tries += [(f, 3 + up, 255) for f in (2, 10) for up in (0, 1 << 33)]
print([one for one in tries if call(number, *map(ctypes.c_long, one)) >= 0])
def told(kind, body):
    with socket.socket(16, 3, 0) as one:
        one.send(struct.pack("=IHHII", 16 + len(body), kind, 5, 1, 0) + body)
        answer = one.recv(4096)
        return struct.unpack_from("=H", answer, 4)[0] == 2 and os.strerror(-struct.unpack_from("=i", answer, 16)[0])
link, route = struct.pack("=BxHiII", 0, 0, 1, 0, 0), struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0)
print({told(kind, body) for kind, body in ((16, link), (19, link), (20, struct.pack("=BBBBI", 2, 8, 0, 0, 1)),
       (24, route), (32, route), (88, bytes(4)), (36, struct.pack("=BxxxiIII", 0, 1, 0, 1, 0)))})
"""


@pytest.mark.attack("A24")
@pytest.mark.parametrize("network", ["off", "on"])
def test_no_number_that_the_kernel_cuts_short_opens_more_and_routing_only_reads(site, network):
    answer = site.run("/usr/bin/python3", "-c", CALLS, network=network)
    assert answer["stdout"]["text"] == "[]\n{'Operation not permitted'}\n"


def test_a_server_on_the_sandboxs_own_loopback_works(site):
    answers = site.probe(("loopback_server",), ("socket_pair",), ("open_socket", NETLINK, RAW, 0))
    assert answers == ["hello", "hello", "allowed"]


def test_socket_pairs_work_where_nothing_else_does(any_site):
    assert any_site.probe(("socket_pair",)) == ["hello"]
    answer = any_site.run("/usr/bin/python3", "-c", "import asyncio; asyncio.run(asyncio.sleep(0)); print('ran')")
    assert answer["stdout"]["text"] == "ran\n"


def test_the_network_is_there_when_it_is_allowed(any_site):
    with canary(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as listener:
        attempts = [("tcp", "127.0.0.1", listener.getsockname()[1]), ("open_socket", VSOCK, STREAM, 0)]
        assert any_site.probe(*attempts, network="on") == ["allowed", "denied EPERM"]
        assert visits(listener) == 1
