"""Whether a provider can be reached with the key that is set: one small request that costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pawl.models.classify import key_advice
from pawl.models.endpoint import Endpoint, Wire
from pawl.models.transport import Transport

if TYPE_CHECKING:
    import httpx2

SECONDS = 5.0
"""For all of it: a server that drips a letter at a time is not waited for."""
_LISTS = {Wire.OPENAI: "models", Wire.ANTHROPIC: "models?limit=1000", Wire.GEMINI: "models?pageSize=1000"}
"""The whole list: a page of it would leave out models that are there."""
_VERSIONS = {Wire.OPENAI: "", Wire.ANTHROPIC: "v1", Wire.GEMINI: "v1beta"}
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What the provider said. `serves` is None where it did not list its models."""

    works: bool
    detail: str
    advice: str = ""
    serves: bool | None = None


def reach(endpoint: Endpoint, transport: Transport) -> Reached:
    """Asks for the list of models; the key goes nowhere but to the endpoint."""

    async def produce(emit: Callable[[Reached], None]) -> None:
        emit(await _asked(endpoint, transport))

    return next(iter(transport.drive(produce)))


async def _asked(endpoint: Endpoint, transport: Transport) -> Reached:
    import asyncio

    import httpx2

    url = _url(endpoint)
    try:
        async with (
            asyncio.timeout(SECONDS),
            transport.client(url).stream("GET", url, headers=_headers(endpoint), timeout=None) as answer,
        ):
            return await _read(endpoint, answer)
    except TimeoutError:
        return Reached(works=False, detail=f"{endpoint.host} did not answer in {SECONDS:g} s")
    except httpx2.RequestError as error:
        return Reached(works=False, detail=f"{endpoint.host} cannot be reached ({type(error).__name__})")


def _url(endpoint: Endpoint) -> str:
    """Addresses are written with and without the version of the format."""
    base, version = endpoint.base_url.rstrip("/"), _VERSIONS[endpoint.wire]
    if version and not base.rpartition("/")[2].startswith("v1"):
        base = f"{base}/{version}"
    return f"{base}/{_LISTS[endpoint.wire]}"


async def _read(endpoint: Endpoint, answer: httpx2.Response) -> Reached:
    status = answer.status_code
    if status in (401, 403):
        detail = f"{endpoint.host} does not accept the key ({status})"
        return Reached(works=False, detail=detail, advice=key_advice(endpoint))
    if status == 404:
        # There may be no list, or nothing at all at this address: that is not known before a model is asked.
        detail = f"{endpoint.host} answers, and has no list of models at this address (404)"
        return Reached(works=False, detail=detail, advice="check base_url; a server without a list works all the same")
    if status != 200:
        return Reached(works=status == 405, detail=f"{endpoint.host} answers (no list of models: {status})")
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > _MOST_BYTES:
            return Reached(works=True, detail="reachable")
    serves = endpoint.name.encode() in body
    return Reached(
        works=True, detail="reachable" if serves else "reachable, and does not list this model", serves=serves
    )


def _headers(endpoint: Endpoint) -> dict[str, str]:
    if not endpoint.key:
        return dict(endpoint.quirks.headers)
    match endpoint.wire:
        case Wire.OPENAI:
            own = {"authorization": f"Bearer {endpoint.key}"}
        case Wire.ANTHROPIC:
            own = {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}
        case Wire.GEMINI:
            own = {"x-goog-api-key": endpoint.key}
    return {**endpoint.quirks.headers, **own}
