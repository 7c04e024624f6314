"""Whatever a helper inside hands out, the forwarder takes a TCP socket or nothing, and keeps nothing open."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable

import pytest

from pawl.sandbox.forwarder import Forwarder

pytestmark = [pytest.mark.spec("F4"), pytest.mark.timeout(60)]

HANDED: dict[str, Callable[[], list[socket.socket]]] = {
    "a local socket": lambda: [socket.socket(socket.AF_UNIX)],
    "a datagram socket": lambda: [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)],
    "another family": lambda: [socket.socket(socket.AF_INET6)],
    "too many": lambda: [socket.socket(socket.AF_UNIX) for _ in range(5)],
    "nothing": list,
}


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def until_reset(port: int) -> bool:
    with contextlib.suppress(ConnectionResetError), socket.create_connection(("127.0.0.1", port), timeout=30) as one:
        return one.recv(1) == b""
    return True


@pytest.mark.attack("A38")
@pytest.mark.parametrize("name", HANDED)
def test_what_is_no_tcp_socket_is_not_taken(name: str):
    before = open_files()
    with Forwarder() as forwarder:
        helper = socket.socket(fileno=os.dup(forwarder.file))

        def hand_out() -> None:
            while asked := helper.recv(1):
                made = HANDED[name]() if asked == b"4" else []
                socket.send_fds(helper, [b"."], [one.fileno() for one in made])
                for one in made:
                    one.close()

        thread = threading.Thread(target=hand_out, daemon=True)
        thread.start()
        forwarder.listen(0)
        forwarder.forward(80)
        assert until_reset(forwarder.port)
        helper.shutdown(socket.SHUT_RDWR)
        thread.join()
        helper.close()
    assert open_files() == before


def test_a_port_that_two_want_is_had_by_one():
    with Forwarder() as first, Forwarder() as second:
        first.listen(0)
        with pytest.raises(OSError, match="in use"):
            second.listen(first.port)
        assert second.port == 0
