"""Whether a provider can be reached: one small request, bounded in time, whatever the server does with it."""

from __future__ import annotations

import pytest
from models.provider_socket import drip, head, provider, whole
from models.wire_scripts import KEY

from pawl.models import router as probing
from pawl.models.exchange import Transport
from pawl.models.providers import Endpoint, Wire
from pawl.models.router import Reached, reach


def reached(url: str, wire: Wire = Wire.OPENAI) -> Reached:
    with Transport() as transport:
        return reach(Endpoint(wire=wire, base_url=url, key=KEY, name="m", provider="test"), transport)


@pytest.mark.spec("E9")
@pytest.mark.parametrize(
    ("wire", "base", "target"),
    [
        (Wire.OPENAI, "/v1", "/v1/models"),
        (Wire.ANTHROPIC, "", "/v1/models?limit=1000"),
        (Wire.ANTHROPIC, "/v1", "/v1/models?limit=1000"),
        (Wire.GEMINI, "", "/v1beta/models?pageSize=1000"),
        (Wire.GEMINI, "/v1beta", "/v1beta/models?pageSize=1000"),
    ],
)
def test_the_whole_list_is_asked_for_where_requests_go(wire: Wire, base: str, target: str):
    with provider([whole(b'{"data": [{"id": "m"}]}')]) as server:
        assert reached(server.url + base, wire).serves
    assert server.requests[0].target == target


@pytest.mark.fault("P28")
def test_a_server_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probing, "SECONDS", 0.2)
    with provider([head(content_type="application/json"), drip(b"1\r\n \r\n")]) as server:
        found = reached(server.url)
    assert (found.works, "did not answer in 0.2 s" in found.detail) == (False, True)


@pytest.mark.fault("P24")
def test_a_body_that_cannot_be_unpacked_is_said_and_no_defect():
    with provider([whole(b"not gzip", headers=["content-encoding: gzip"])]) as server:
        found = reached(server.url)
    assert (found.works, "DecodingError" in found.detail) == (False, True)


@pytest.mark.fault("P23")
def test_the_key_stays_where_it_is_sent():
    with provider() as other, provider([whole(b"", status="302 Found", headers=[f"location: {other.url}/"])]) as server:
        found = reached(server.url)
    assert not found.works
    assert (len(server.requests), other.connections) == (1, 0)


@pytest.mark.parametrize(("status", "works"), [("404 Not Found", False), ("405 Method Not Allowed", True)])
def test_an_address_where_there_is_nothing_is_not_taken_for_ready(status: str, works: bool):
    with provider([whole(b"", status=status)]) as server:
        found = reached(server.url)
    assert (found.works, status[:3] in found.detail) == (works, True)


@pytest.mark.parametrize(
    ("url", "key", "clear"),
    [
        ("http://gpu.lan:8000/v1", "k", True),
        ("http://gpu.lan:8000/v1", "", False),
        ("http://127.0.0.1:8000/v1", "k", False),
        ("https://api.example/v1", "k", False),
    ],
)
def test_a_key_that_goes_to_another_machine_without_encryption_is_noticed(url: str, key: str, clear: bool):
    assert Endpoint(wire=Wire.OPENAI, base_url=url, key=key, name="m", provider="p").is_in_the_clear is clear
