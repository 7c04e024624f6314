"""Which models are configured, whether they can be reached, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.dialogue import Usage
from pawl.core.errors import PawlError
from pawl.models.configuration import ModelConfig
from pawl.models.endpoint import Endpoint
from pawl.models.local.header import local_settings
from pawl.models.providers import ModelName, capabilities
from pawl.models.router import endpoint_for
from pawl.models.wire.encoding import address, own_headers

if TYPE_CHECKING:
    import httpx2

    from pawl.models.transport import Transport


SECONDS = 5.0
"""For all of it: a server that drips a letter at a time is not waited for."""
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The answer of a provider. `serves` is None where it did not list its models."""

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

    url = address(endpoint, endpoint.format.listing)
    try:
        async with (
            asyncio.timeout(SECONDS),
            transport.client(url).stream("GET", url, headers=own_headers(endpoint), timeout=None) as answer,
        ):
            return await _read(endpoint, answer)
    except TimeoutError:
        return Reached(works=False, detail=f"{endpoint.host} did not answer in {SECONDS:g} s")
    except httpx2.RequestError as error:
        return Reached(works=False, detail=f"{endpoint.host} cannot be reached ({type(error).__name__})")


async def _read(endpoint: Endpoint, answer: httpx2.Response) -> Reached:
    status = answer.status_code
    if status in (401, 403):
        detail = f"{endpoint.host} does not accept the key ({status})"
        return Reached(works=False, detail=detail, advice=endpoint.key_advice)
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


_SMALL = 1000
"""Tokens of a request that no provider charges more for because of its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One model that the configuration names."""

    model: str
    used_for: tuple[str, ...]
    """`default`, slots, and `instead of MODEL` for a fallback."""
    ready: bool | None
    """None when nobody looked."""
    detail: str
    advice: str
    """How to make it ready."""
    input_price: Decimal | None
    """US dollars for a million tokens; None when unknown."""
    output_price: Decimal | None
    context: int
    tools: str
    """`native`, or `text` where they are asked for in words."""


def listed(config: ModelConfig, *, look: bool, only: str = "") -> tuple[Listed, ...]:
    """Every model of the configuration, or only one; with `look`, each is looked for."""
    local_settings(config.local)
    uses: dict[str, list[str]] = {}
    routes = config.routes
    if routes.default:
        uses.setdefault(routes.default, []).append("default")
    for slot, model in routes.slots.items():
        uses.setdefault(model, []).append(slot)
    for model, others in routes.fallbacks.items():
        for other in others:
            uses.setdefault(other, []).append(f"instead of {model}")
    return tuple(_listed(config, model, tuple(used), look=look) for model, used in uses.items() if only in ("", model))


def _listed(config: ModelConfig, model: str, used: tuple[str, ...], *, look: bool) -> Listed:
    found = _looked_for(config, model) if look else None
    can = capabilities(model, config.rules)
    return Listed(
        model=model,
        used_for=used,
        ready=None if found is None else found.works and found.serves is not False,
        detail=found.detail if found else "",
        advice=found.advice if found else "",
        input_price=_per_million(config, model, Usage(input=_SMALL)),
        output_price=_per_million(config, model, Usage(output=_SMALL)),
        context=can.context,
        tools=can.tools,
    )


def _per_million(config: ModelConfig, model: str, usage: Usage) -> Decimal | None:
    cost = config.prices.cost(model, usage)
    return None if cost is None else cost * (1_000_000 // _SMALL)


def _looked_for(config: ModelConfig, model: str) -> Reached:
    from pawl.models.transport import Transport  # loads the HTTP library, which costs 60 ms

    try:
        name = ModelName.parse(model, config.providers)
        if name.is_file:
            there = Path(name.name).expanduser().is_file()
            return Reached(works=there, detail="the file is there" if there else "there is no such file")
        with Transport() as transport:
            return reach(endpoint_for(name, config.providers, config.environment, config.rules), transport)
    except PawlError as error:
        return Reached(works=False, detail=error.message, advice=error.advice)
