"""Which models are configured, whether they can be reached, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pawl.app.asking.model_config import ModelConfig
from pawl.core.dialogue import Usage
from pawl.core.errors import PawlError
from pawl.models.capabilities import capabilities
from pawl.models.local.settings import local_settings
from pawl.models.names import ModelName

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
    """What to do about one that is not ready."""
    input_price: Decimal | None
    """US dollars for a million tokens; None when unknown."""
    output_price: Decimal | None
    context: int
    tools: str
    """`native`, or `text` where they are asked for in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderListed:
    name: str
    address: str
    has_key: bool
    """Or needs none."""
    key_names: tuple[str, ...]
    local: bool


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


def providers_listed(config: ModelConfig) -> tuple[ProviderListed, ...]:
    found = []
    for provider in config.providers.values():
        has_key = not provider.key_env or any(config.environment.get(name, "").strip() for name in provider.key_env)
        found.append(
            ProviderListed(
                name=provider.name,
                address=provider.address(config.environment),
                has_key=has_key,
                key_names=provider.key_env,
                local=provider.local,
            )
        )
    return tuple(found)


def _listed(config: ModelConfig, model: str, used: tuple[str, ...], *, look: bool) -> Listed:
    ready, detail, advice = _looked_for(config, model) if look else (None, "", "")
    can = capabilities(model, config.rules)
    return Listed(
        model=model,
        used_for=used,
        ready=ready,
        detail=detail,
        advice=advice,
        input_price=_per_million(config, model, Usage(input=_SMALL)),
        output_price=_per_million(config, model, Usage(output=_SMALL)),
        context=can.context,
        tools=can.tools,
    )


def _per_million(config: ModelConfig, model: str, usage: Usage) -> Decimal | None:
    cost = config.prices.cost(model, usage)
    return None if cost is None else cost * (1_000_000 // _SMALL)


def _looked_for(config: ModelConfig, model: str) -> tuple[bool, str, str]:
    from pawl.models.opening import endpoint_for
    from pawl.models.probing import reach
    from pawl.models.transport import Transport

    try:
        name = ModelName.parse(model, config.providers)
        if name.is_file:
            from pathlib import Path

            there = Path(name.name).expanduser().is_file()
            return there, "the file is there" if there else "there is no such file", ""
        with Transport() as transport:
            reached = reach(endpoint_for(name, config.providers, config.environment, config.rules), transport)
        return reached.works and reached.serves is not False, reached.detail, reached.advice
    except PawlError as error:
        return False, error.message, error.advice
