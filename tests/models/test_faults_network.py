"""No connection: the name, the certificate, the server and the proxy are told apart, and only some are tried again."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest
from models.provider_socket import Connection, Ended, Step, hang_up, provider, streamed, whole
from models.wire_scripts import KEY, SCRIPTS, Said, Waits, answer_of, asking, failure_of, patient

from pawl.core import errors
from pawl.models.failures import connect_fault
from pawl.models.providers import Endpoint, Timeouts, Wire

pytestmark = pytest.mark.fault("P27")

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def failed(url: str) -> tuple[errors.PawlError, int]:
    """The error, and how many waits it took."""
    waits = Waits()
    with asking(url, retries=patient(waits), timeouts=Timeouts(connect=5)) as model:
        error = failure_of(model)
    assert KEY not in str(error) + error.advice
    assert error.__context__ is None and error.__cause__ is None
    return error, len(waits.taken)


def test_p27_nothing_listens():
    port = free_port()
    error, waits = failed(f"http://127.0.0.1:{port}")
    assert isinstance(error, errors.Unreachable)
    assert str(error) == f"no connection to '127.0.0.1:{port}': nothing listens there"
    assert waits == 4


def test_p27_no_such_name():
    error, waits = failed("https://no-such-host.invalid")
    assert isinstance(error, errors.Unreachable)
    assert "its name cannot be found" in str(error)
    assert waits == 4


def test_p27_no_tls_is_not_tried_again():
    def greet(listener: socket.socket) -> None:
        with listener.accept()[0] as accepted:
            accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            accepted.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
        error, waits = failed(f"https://127.0.0.1:{listener.getsockname()[1]}")
    assert isinstance(error, errors.Unreachable)
    assert "its certificate or TLS fails" in str(error)
    assert waits == 0


@pytest.mark.parametrize("code", [9, 10])
def test_p27_a_certificate_out_of_its_time_points_at_the_clock(code: int):
    cause = ssl.SSLCertVerificationError(1, "failed")
    cause.verify_code, cause.verify_message = code, "certificate has expired"
    outer = OSError("no connection")
    outer.__cause__ = cause
    endpoint = Endpoint(wire=Wire.OPENAI, base_url="https://api.test", name="m", provider="p")
    fault = connect_fault(endpoint, outer)
    assert "clock" in fault.error.advice
    assert not fault.again


def test_p27_a_connection_that_is_never_made_is_tried_again():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        # Linux takes one more than the backlog before it lets connections hang.
        waiting = [socket.create_connection(address)]
        waits = Waits()
        with asking(
            f"http://127.0.0.1:{address[1]}", retries=patient(waits, tries=2), timeouts=Timeouts(connect=0.2)
        ) as model:
            error = failure_of(model)
        for one in waiting:
            one.close()
    assert isinstance(error, errors.Unreachable)
    assert "does not answer" in str(error)
    assert len(waits.taken) == 1


def test_p27_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{free_port()}")
    error, waits = failed("https://api.test")
    assert isinstance(error, errors.Unreachable)
    assert "the proxy 127.0.0.1:" in str(error)
    assert "HTTPS_PROXY" in error.advice
    assert "secret" not in str(error)
    assert waits == 4


def test_p27_a_proxy_that_refuses_is_not_tried_again(monkeypatch: pytest.MonkeyPatch):
    refusal: list[Step] = [whole(b"", status="407 Proxy Authentication Required"), hang_up]
    with provider(refusal, refusal) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        error, waits = failed("https://api.test")
    assert isinstance(error, errors.Unreachable)
    assert "does not let the connection through: 407" in str(error)
    assert waits == 0
    assert [seen.target for seen in proxy.requests] == ["api.test:443"]
    assert all(KEY not in str(seen.headers) for seen in proxy.requests)


def test_p27_a_plain_server_is_reached_through_the_proxy(monkeypatch: pytest.MonkeyPatch):
    with provider(streamed(*SCRIPTS[Wire.OPENAI](Said(text=("ok",))))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with asking("http://model.test/v1") as model:
            assert answer_of(model).text == "ok"
    assert proxy.requests[0].target == "http://model.test/v1/chat/completions"


def test_p27_a_server_on_this_machine_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with provider(streamed(*SCRIPTS[Wire.OPENAI](Said(text=("ok",))))) as server, asking(server) as model:
        assert answer_of(model).text == "ok"


@pytest.mark.parametrize("proxy", ["socks5://user:secret@127.0.0.1:1", "gopher://127.0.0.1:1", "http://[x"])
def test_p27_a_proxy_of_a_kind_that_cannot_be_used(proxy: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with asking("https://api.test", retries=patient()) as model:
        error = failure_of(model)
    assert isinstance(error, errors.Unreachable)
    assert "proxy" in str(error)
    assert "secret" not in str(error) + error.advice
    with provider(streamed(*SCRIPTS[Wire.OPENAI](Said(text=("ok",))))) as server, asking(server) as model:
        assert answer_of(model).text == "ok", "a server on this machine needs none"


def test_p27_an_address_that_is_none():
    error, waits = failed("ftp://api.test")
    assert isinstance(error, errors.Unreachable)
    assert waits == 0


def test_p27_a_connection_that_closes_at_once_is_tried_again():
    def close(_: Connection) -> None:
        raise Ended

    ok = streamed(*SCRIPTS[Wire.OPENAI](Said(text=("ok",))))
    with provider([close], ok) as server, asking(server) as model:
        assert answer_of(model).attempts == 2
