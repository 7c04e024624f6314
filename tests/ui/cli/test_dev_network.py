"""A dev server has a network of its own: one port of this machine's loopback leads in, named services lead out."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from nursery import PATIENCE
from ui.cli.dev_site import DevSite, asked, free_port, probed, until
from users import NAMES, become

pytestmark = [pytest.mark.hostile, pytest.mark.spec("A13", "F4"), pytest.mark.timeout(180)]


@pytest.fixture(params=NAMES)
def site(request: pytest.FixtureRequest) -> Iterator[DevSite]:
    user = become(request.param)
    with user.folder() as root:
        yield DevSite(user, root)


@pytest.fixture
def mine() -> Iterator[DevSite]:
    """Of whoever runs the tests: how bytes are carried does not depend on the user."""
    user = become("root" if os.geteuid() == 0 else "ordinary")
    with user.folder() as root:
        yield DevSite(user, root)


@contextlib.contextmanager
def canary(host: str = "127.0.0.1", port: int = 0, *, path: str = "") -> Iterator[socket.socket]:
    """A listener of this machine; what it is told it gives back in capitals."""
    family = socket.AF_UNIX if path else socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(path or (host, port))
        listener.listen()
        yield listener


def visits(listener: socket.socket) -> int:
    listener.setblocking(False)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


@contextlib.contextmanager
def shouting(host: str, port: int = 0) -> Iterator[int]:
    """A service that gives back in capitals what it is told."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listener.accept()
                with one:
                    one.sendall(one.makefile("rb").read().upper())

    with canary(host, port) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


def own_addresses() -> list[str]:
    """The addresses of this machine beside 127.0.0.1."""
    found = ["127.0.0.2"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(one, 0x8915, struct.pack("256s", name.encode()[:15]))
                found.append(socket.inet_ntoa(answer[20:24]))
    return [address for address in found if address != "127.0.0.1"]


def is_reached(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=5) as one:
        # Another server may have the port at that address.
        one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return b'"began": "here"' in one.makefile("rb").read()
    return False


@pytest.mark.attack("A20")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_that_listens_everywhere_is_reached_on_one_port_of_the_loopback_only(site: DevSite, host: str):
    with site.serving({"host": host, "began": "here", "moved": 1}) as told:
        port = told["port"]
        assert is_reached("127.0.0.1", port)
        others = [(address, port) for address in (*own_addresses(), "::1")]
        assert [one for one in others if is_reached(*one)] == []
        assert not any(is_reached(address, port + 1) for address in ("127.0.0.1", *own_addresses()))


@pytest.mark.attack("A20", "A21", "A22", "A23")
def test_a_server_reaches_no_port_and_no_socket_of_the_machine(site: DevSite):
    path, name = str(site.root / "docker.sock"), f"pawl-dev-{os.getpid()}"
    with canary() as four, canary("::1") as six, canary(path=path) as file, canary(path=f"\0{name}") as abstract:
        os.chmod(path, 0o777)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(("127.0.0.1", 0))
            datagrams.setblocking(False)
            port, port6 = four.getsockname()[1], six.getsockname()[1]
            attempts = [("tcp", host, port) for host in ("127.0.0.1", "localhost", "0.0.0.0", *own_addresses())]
            attempts += [("tcp", "::1", port6), ("unix", path), ("unix", f"@{name}")]
            with site.serving() as told:
                answers = probed(told["port"], *attempts, ("tcp", "127.0.0.1", told["pid"] % 60000 + 1024))
                probed(told["port"], ("udp", "127.0.0.1", datagrams.getsockname()[1]))
                assert [one for one in answers if not one.startswith("denied")] == []
                assert probed(told["port"], ("interfaces",)) == [["lo"]]
            assert [visits(one) for one in (four, six, file, abstract)] == [0, 0, 0, 0]
            with pytest.raises(BlockingIOError):
                datagrams.recv(10)


@pytest.mark.attack("A27", "A38")
def test_a_server_cannot_take_over_what_hands_out_its_sockets(site: DevSite):
    with site.serving() as told:
        tries = [("parent", name, flags) for name, flags in (("mem", os.O_RDONLY), ("fd/0", 0), ("fd/1", os.O_WRONLY))]
        *denied, own = probed(told["port"], *tries, ("own_sockets",))
        assert [one for one in denied if not one.startswith("denied Permission")] == []
        # Its listener and the connection that asks; nothing that it inherited.
        assert own == 2


def test_named_services_are_reached_at_their_address_and_nothing_beside_them(site: DevSite):
    with shouting("127.0.0.1") as four, shouting("::1") as six, shouting("127.0.0.3") as third, canary() as other:
        services = [f"127.0.0.1:{four}", f"[::1]:{six}", f"127.0.0.3:{third}"]
        with site.serving(services=services) as told:
            asks = [("said", "127.0.0.1", four), ("said", "::1", six), ("said", "127.0.0.3", third)]
            assert probed(told["port"], *asks) == ["HELLO SERVICE"] * 3
            others = [("127.0.0.1", other.getsockname()[1]), ("::1", four), ("127.0.0.2", four), ("127.0.0.1", third)]
            answers = probed(told["port"], *[("tcp", *one) for one in others])
            assert [one for one in answers if not one.startswith("denied")] == []
        assert visits(other) == 0


def test_localhost_stands_for_both_addresses_and_a_service_may_come_later(mine: DevSite):
    port = free_port()
    with mine.serving(services=[f"localhost:{port}"]) as told:
        assert probed(told["port"], ("said", "127.0.0.1", port))[0].startswith("denied")
        for host in ("127.0.0.1", "::1"):
            with shouting(host, port):
                assert probed(told["port"], ("said", host, port)) == ["HELLO SERVICE"]


def test_the_ladders_server_has_the_same_network(site: DevSite):
    with shouting("127.0.0.1") as port:
        for services, standing in (([], "fail"), ([f"127.0.0.1:{port}"], "pass")):
            site.set_up({"needs": ["127.0.0.1", port]}, services=services)
            told = site.told("verify", "--all", code=6 if services else 1)
            assert {one["step"]: one["standing"] for one in told["steps"]}["server"] == standing


@pytest.mark.parametrize("text", ["10.0.0.1:80", "127.0.0.1:0", "127.0.0.1", "example.com:80", "::ffff:10.0.0.1:80"])
def test_a_service_that_is_no_port_of_the_loopback_is_refused(mine: DevSite, text: str):
    mine.set_up(services=[text])
    code, _, err = mine.pawl("dev", "start")
    assert code == 1 and "is not a port of this machine's loopback" in err


@pytest.mark.parametrize("mode", [{"host": "::1"}, {"moved": 7}, {"lies": True}, {"host": "::1", "moved": -3}])
def test_wherever_it_listens_and_whatever_it_says_the_told_port_leads_to_it(mine: DevSite, mode: dict):
    port = free_port()
    with mine.serving({**mode, "began": "here"}, port=port) as told:
        assert (told["port"], told["notice"]) == (port, "")
        assert is_reached("127.0.0.1", port)


def test_requests_follow_each_other_on_one_connection(mine: DevSite):
    with mine.serving() as told:
        connection = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=PATIENCE)
        sockets = set()
        for _ in range(50):
            connection.request("GET", "/")
            assert json.loads(connection.getresponse().read())["pid"]
            sockets.add(connection.sock.getsockname())
        connection.close()
        assert len(sockets) == 1


def test_a_web_socket_carries_messages_both_ways(mine: DevSite):
    with (
        mine.serving() as told,
        socket.create_connection(("127.0.0.1", told["port"]), timeout=PATIENCE) as one,
        one.makefile("rb") as answers,
    ):
        one.sendall(b"GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        one.sendall(b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        head = b"".join(iter(answers.readline, b"\r\n"))
        assert b" 101 " in head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
        for number in range(100):
            text, mask = f"message {number}".encode(), bytes((number, 2, 3, 4))
            hidden = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
            one.sendall(bytes((0x81, 0x80 | len(text))) + mask + hidden)
            assert answers.read(2 + len(text)) == bytes((0x81, len(text))) + text


def test_a_side_that_has_ended_its_part_still_gets_its_answer(mine: DevSite):
    with mine.serving() as told, socket.create_connection(("127.0.0.1", told["port"]), timeout=PATIENCE) as one:
        one.sendall(b"RAW / HTTP/1.1\r\n\r\n" + bytes(300_000))
        one.shutdown(socket.SHUT_WR)
        assert one.makefile("rb").read() == b"300000 bytes"


def test_a_connection_that_breaks_is_broken_and_not_ended(mine: DevSite):
    with mine.serving() as told:
        with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
            asked(told["port"], path="/break")
        assert asked(told["port"])


def test_large_bodies_arrive_whole(mine: DevSite):
    body = os.urandom(1 << 20) * 32
    with mine.serving({"large": 64 << 20}) as told:
        assert asked(told["port"], "POST", "/", body).decode() == hashlib.sha256(body).hexdigest()
        assert len(asked(told["port"], path="/large")) == 64 << 20


def test_a_hundred_connections_are_open_at_once(mine: DevSite):
    with mine.serving() as told, contextlib.ExitStack() as stack:
        made = [http.client.HTTPConnection("127.0.0.1", told["port"], timeout=PATIENCE) for _ in range(100)]
        for one in made:
            stack.callback(one.close)
            one.request("GET", "/")
        assert [one.getresponse().read() != b"" for one in made] == [True] * 100
        for one in reversed(made):
            one.request("GET", "/")
        assert [one.getresponse().status for one in made] == [200] * 100


def test_a_slow_reader_holds_up_the_server_and_not_the_memory(mine: DevSite):
    whole = 128 << 20
    with mine.serving({"large": whole}) as told, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        slow.settimeout(PATIENCE)
        slow.connect(("127.0.0.1", told["port"]))
        slow.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        sent = [-1, *(json.loads(asked(told["port"]))["sent"] for _ in range(2))]
        while len(set(sent[-20:])) > 1 or sent[-1] == 0:
            sent.append(json.loads(asked(told["port"]))["sent"])
        assert sent[-1] < whole // 4
        held = int(Path(f"/proc/{told['pid']}/status").read_text().split("VmHWM:")[1].split()[0])
        assert held < 200_000
        left = len(slow.makefile("rb").read().partition(b"\r\n\r\n")[2])
        assert left == whole


def test_a_server_that_starts_anew_is_reached_again(mine: DevSite):
    with mine.serving({"began": "here"}) as told:
        for _ in range(3):
            assert asked(told["port"], path="/anew") == b"soon"
            until(lambda: is_reached("127.0.0.1", told["port"]))
        assert mine.told("dev", "status")["state"] == "ready"


def test_a_taken_port_is_said_with_who_has_it(site: DevSite):
    with canary() as taken:
        port = taken.getsockname()[1]
        with site.serving(port=port) as told:
            using = f"; using {told['port']}"
            assert told["port"] != port and told["notice"].endswith(using)
            assert told["notice"].startswith(f"port {port} is taken by ")
            named = "another program" if site.user.name == "ordinary" and os.geteuid() == 0 else str(os.getpid())
            assert named in told["notice"]
            assert site.pawl("dev", "status")[1].startswith(told["notice"])
            assert asked(told["port"])


def test_nothing_listens_after_the_server_or_what_holds_it_has_ended(site: DevSite):
    with site.serving() as told:
        inside = json.loads(asked(told["port"]))["pid"]
        assert inside
        os.kill(told["pid"], signal.SIGKILL)
        until(lambda: not is_reached("127.0.0.1", told["port"]))
        until(lambda: not Path(f"/proc/{told['pid']}").exists() or b"Z" in stat_of(told["pid"]))
        again = site.told("dev", "start")
        assert again["port"] == told["port"]
        with socket.create_connection(("127.0.0.1", again["port"]), timeout=PATIENCE) as one:
            assert site.told("dev", "stop")["state"] == "stopped"
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", again["port"]), timeout=5)


def stat_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    return b"Z"


def test_without_namespaces_it_is_refused_and_the_step_is_skipped(site: DevSite):
    bubblewrap = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    without = ["unshare", "-rm", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', str(bubblewrap)]
    if subprocess.run(site.user.words([*without, "true"]), capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    site.set_up()
    code, _, err = site.pawl("dev", "start", before=without)
    assert code != 0 and "no network of its own" in err and "bubblewrap" in err
    told = json.loads(site.pawl("verify", "--all", "--json", before=without)[1])
    (step,) = [one for one in told["steps"] if one["step"] == "server"]
    assert step["standing"] == "skipped" and "no network of its own" in step["reason"]


NODE = """
const server = require("http").createServer((_, answer) => answer.end('{"began": "here"}'));
server.listen(Number(process.argv[2]), () => console.log(`serving on port ${server.address().port}`));
"""


@pytest.mark.skipif(shutil.which("node", path="/usr/bin:/bin") is None, reason="no Node.js that all users can run")
def test_a_server_of_node_that_names_no_address_is_reached(mine: DevSite):
    mine.set_up()
    (mine.workspace / "serve.js").write_text(NODE)
    settings = mine.root / "config.toml"
    settings.write_text(settings.read_text().replace('"python3", "-u", "serve.py"', '"node", "serve.js"'))
    told = mine.told("dev", "start")
    try:
        assert is_reached("127.0.0.1", told["port"])
        assert not any(is_reached(address, told["port"]) for address in (*own_addresses(), "::1"))
    finally:
        mine.pawl("dev", "stop")
