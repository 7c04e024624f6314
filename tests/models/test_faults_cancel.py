"""The user stops a request at any moment: it ends at once, its connection is closed, and the next one works."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from models.provider_socket import PATIENCE, chunk, do, head, hold, provider, refusal, streamed
from models.wire_scripts import ASK, SCRIPTS, Said, answer_of, asking, events_of, failure_of, patient

from pawl.core.dialogue import Answered, Retrying, TextDelta
from pawl.core.errors import Cancelled
from pawl.models.providers import Timeouts, Wire
from pawl.sandbox.cancel import CancelToken

pytestmark = pytest.mark.fault("P33")

HELLO = SCRIPTS[Wire.OPENAI](Said(text=("Hel", "lo")))
OK = streamed(*HELLO)


@pytest.fixture
def token() -> Iterator[CancelToken]:
    token = CancelToken()
    yield token
    token.close()


def test_p33_before_anything_is_sent(token: CancelToken):
    token.request()
    with provider(OK) as server, asking(server) as model:
        assert isinstance(failure_of(model, cancel=token), Cancelled)
    assert server.connections == 0


def test_p33_while_the_connection_is_made(token: CancelToken):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            threading.Thread(target=stop_when_connecting, args=(port, token), daemon=True).start()
            with asking(f"http://127.0.0.1:{port}", timeouts=Timeouts(connect=60)) as model:
                assert isinstance(failure_of(model, cancel=token), Cancelled)
            assert not is_connecting(port)


def test_p33_while_the_name_of_the_server_is_looked_up(token: CancelToken, monkeypatch: pytest.MonkeyPatch):
    looked_up = threading.Event()

    def never_found(*_: object, **__: object) -> list[object]:
        token.request()
        assert looked_up.wait(PATIENCE)
        raise socket.gaierror("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", never_found)
    with asking("http://model.example:1234") as model:
        assert isinstance(failure_of(model, cancel=token), Cancelled)
    assert not looked_up.is_set(), "nobody waited for the lookup, which cannot be stopped"
    lookups = [one for one in threading.enumerate() if one.name == "pawl-lookup"]
    assert lookups and all(one.daemon for one in lookups), "nor does the end of the process"
    looked_up.set()
    for one in lookups:
        one.join()


def is_connecting(port: int) -> bool:
    """Whether this process has sent a SYN to that port that is not answered."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


def stop_when_connecting(port: int, token: CancelToken) -> None:
    tick = threading.Event()
    for _ in range(int(PATIENCE / 0.005)):
        if is_connecting(port):
            break
        tick.wait(0.005)
    token.request()


@pytest.mark.parametrize("wire", Wire)
@pytest.mark.parametrize(
    "start",
    [[], [b"HTTP/1.1 200 OK\r\n"], [head()], [head(), chunk(b": ping\n\n")]],
    ids=["no headers", "half of the headers", "no body", "a ping"],
)
def test_p33_while_nothing_has_come(wire: Wire, start: list, token: CancelToken):
    with provider([*start, do(token.request), hold], OK) as server, asking(server, wire) as model:
        error = failure_of(model, cancel=token)
        assert isinstance(error, Cancelled) and not error.begun
        assert server.gone.wait(PATIENCE), "the connection is closed"
    assert len(server.requests) == 1, "nothing is tried again"


@pytest.mark.parametrize("wire", Wire)
def test_p33_in_the_middle_of_an_answer(wire: Wire, token: CancelToken):
    said = Said(text=("Hel", "lo"), calls=(("p", "read", "{}"),), stop="calls")
    start = SCRIPTS[wire](said)[:4]
    again = streamed(*SCRIPTS[wire](Said(text=("ok",))))
    with (
        provider([head(), *map(chunk, start), do(token.request), hold], again) as server,
        asking(server, wire) as model,
    ):
        seen = []
        with pytest.raises(Cancelled):
            seen.extend(model.stream(ASK, cancel=token))
        assert server.gone.wait(PATIENCE)
        assert not any(isinstance(event, Answered) for event in seen)
        assert answer_of(model).text == "ok", "the next request is not touched"


def test_p33_between_two_events_that_have_already_come(token: CancelToken):
    with provider(OK) as server, asking(server) as model:
        stream = model.stream(ASK, cancel=token)
        assert next(stream) == TextDelta("Hel")
        token.request()
        with pytest.raises(Cancelled) as stopped:
            next(stream)
    assert stopped.value.begun, "what the model has said is paid for"


def test_p33_while_an_error_is_read(token: CancelToken):
    start = b"HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nbad"
    with provider([start, do(token.request), hold]) as server, asking(server) as model:
        assert isinstance(failure_of(model, cancel=token), Cancelled)
        assert server.gone.wait(PATIENCE)


def test_p33_while_it_waits_to_try_again(token: CancelToken):
    async def wait(_: float) -> None:
        asyncio.get_running_loop().call_later(0.01, token.request)
        await asyncio.sleep(3600)

    script = refusal("503 Busy", {"error": "busy"}, "retry-after: 59")
    with provider(script, OK) as server, asking(server, retries=patient(wait)) as model:
        stream = model.stream(ASK, cancel=token)
        assert isinstance(next(stream), Retrying)
        with pytest.raises(Cancelled):
            next(stream)
    assert len(server.requests) == 1


def test_p33_a_stop_after_the_answer_takes_nothing_away(token: CancelToken):
    with provider(OK) as server, asking(server) as model:
        events = events_of(model, cancel=token)
        token.request()
    assert events[-1].answer.text == "Hello"


def test_closing_the_stream_closes_the_connection():
    with provider([head(), *map(chunk, HELLO[:2]), hold], OK) as server, asking(server) as model:
        stream = model.stream(ASK)
        assert next(stream) == TextDelta("Hel")
        stream.close()
        assert server.gone.wait(PATIENCE)
        assert answer_of(model).text == "Hello"


def test_closing_the_transport_ends_what_is_under_way():
    with provider([head(), *map(chunk, HELLO[:2]), hold]) as server:
        with asking(server) as model:
            stream = model.stream(ASK)
            next(stream)
        assert server.gone.wait(PATIENCE)
        stream.close()


def test_two_requests_can_be_under_way_with_one_token(token: CancelToken):
    first = [head(), *map(chunk, HELLO[:2]), hold]
    with provider(first, first) as server, asking(server) as model:
        one, other = model.stream(ASK, cancel=token), model.stream(ASK, cancel=token)
        assert next(one) == next(other) == TextDelta("Hel")
        threading.Timer(0.01, token.request).start()
        for stream in (one, other):
            with pytest.raises(Cancelled):
                next(stream)
