"""What a request costs: the user's own prices, those that genai-prices carries, nothing for local models.

A price that is not known is None, never 0. Nothing is fetched; the price list is the one that was installed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.dialogue import Usage
from pawl.models.names import LOCAL, SCRIPTED
from pawl.models.providers import Provider
from pawl.models.tables import Fields, raise_mistakes

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

FREE = Decimal(0)
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal
    cache_written: Decimal

    def cost(self, usage: Usage) -> Decimal:
        fresh = usage.input - usage.cached - usage.cache_written
        return (
            fresh * self.input
            + usage.cached * self.cached
            + usage.cache_written * self.cache_written
            + usage.output * self.output
        ) / _MILLION


class Prices:
    """Fits what the ledger asks. The price list is loaded when the first price that needs it is asked for."""

    def __init__(self, providers: Mapping[str, Provider], overrides: Mapping[str, Rates] | None = None) -> None:
        self._providers = providers
        self._overrides = overrides or {}

    def cost(self, model: str, usage: Usage) -> Decimal | None:
        """What this usage of the model costs; None when its price is unknown."""
        usage = _sound(usage)
        rates = self._known(model)
        if rates is not None:
            return rates.cost(usage)
        listed = self._listed(model)
        if listed is None:
            return None
        now = datetime.now(UTC)
        return _calculated(listed.get_prices(now), usage, listed.id)

    def worst_case(self, model: str, input_tokens: int, max_output: int) -> Decimal | None:
        """What a request of that size can cost at most, whatever of it is cached and whenever it is answered."""
        cases = (
            Usage(input=input_tokens, output=max_output),
            Usage(input=input_tokens, output=max_output, cache_written=input_tokens),
        )
        rates = self._known(model)
        if rates is not None:
            return max(rates.cost(case) for case in cases)
        listed = self._listed(model)
        if listed is None:
            return None
        costs = [_calculated(prices, case, listed.id) for prices in _at_any_time(listed) for case in cases]
        known = [cost for cost in costs if cost is not None]
        return max(known) if len(known) == len(costs) else None

    def _known(self, model: str) -> Rates | None:
        """The price that needs no list; the user's last pattern that matches goes first."""
        for pattern, rates in reversed(tuple(self._overrides.items())):
            if fnmatch.fnmatchcase(model, pattern):
                return rates
        provider = self._providers.get(model.partition("/")[0])
        if model.startswith((f"{LOCAL}:", f"{SCRIPTED}:")) or (provider is not None and provider.local):
            return _NOTHING
        return None

    def _listed(self, model: str) -> ModelInfo | None:
        name, _, reference = model.partition("/")
        provider = self._providers.get(name)
        if provider is None or not provider.prices or not reference:
            return None
        from genai_prices.data_snapshot import get_snapshot

        try:
            return get_snapshot().find_provider_model(reference, None, provider.prices, None)[1]
        except LookupError:
            return None


def overrides(tables: Mapping[str, object]) -> Mapping[str, Rates]:
    """The user's [prices."PATTERN"] tables, in US dollars for a million tokens; every mistake at once."""
    mistakes: list[str] = []
    read: dict[str, Rates] = {}
    for pattern, table in tables.items():
        given = Fields(f"prices.{pattern!r}", table, mistakes)
        amounts = {name: given.money(name) for name in ("input", "output", "cached", "cache_written")}
        given.close()
        plain, output = amounts["input"], amounts["output"]
        for name in ("input", "output"):
            if not given.has(name):
                given.wrong(name, "is missing")
        if plain is not None and output is not None:
            cached, written = amounts["cached"], amounts["cache_written"]
            read[pattern] = Rates(
                input=plain,
                output=output,
                cached=plain if cached is None else cached,
                cache_written=plain if written is None else written,
            )
    raise_mistakes(
        "the prices are wrong",
        mistakes,
        advice='a table [prices."PATTERN"] takes input and output, and may take cached and cache_written',
    )
    return read


_NOTHING = Rates(input=FREE, output=FREE, cached=FREE, cache_written=FREE)


def _sound(usage: Usage) -> Usage:
    """The parts of the input are never more than the whole, whatever a provider says."""
    cached, written = max(usage.cached, 0), max(usage.cache_written, 0)
    return Usage(
        input=max(usage.input, cached + written), output=max(usage.output, 0), cached=cached, cache_written=written
    )


def _calculated(prices: ModelPrice, usage: Usage, model: str) -> Decimal | None:
    from genai_prices.types import Usage as Counted

    if prices.input_mtok is None or prices.output_mtok is None:
        # The list has some models with no price at all; only the name says which of them cost nothing.
        return FREE if model.endswith(":free") else None
    counted = Counted(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.cache_written,
    )
    try:
        return prices.calc_price(counted)["total_price"]
    except ValueError:
        return None


def _at_any_time(model: ModelInfo) -> Iterator[ModelPrice]:
    """The price of now, and those of other hours of the day."""
    from genai_prices.types import TimeOfDateConstraint

    yield model.get_prices(datetime.now(UTC))
    if isinstance(model.prices, list):
        for priced in model.prices:
            if isinstance(priced.constraint, TimeOfDateConstraint):
                yield priced.prices
