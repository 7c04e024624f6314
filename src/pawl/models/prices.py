"""The cost of requests: the user's own prices, those that genai-prices carries, nothing for local models.

A price that is not known is None, never 0. Nothing is fetched; the price list is the one that was installed.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.dialogue import Message, Request, ToolCall, ToolOffer, Usage
from pawl.models.providers import LOCAL, SCRIPTED, Provider
from pawl.settings.tables import names_of, raise_mistakes, read_table

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice


FREE = Decimal(0)
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    """None for the price of the input, as for what is written to the cache."""
    cache_written: Decimal | None = None

    def cost(self, usage: Usage) -> Decimal:
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_written is None else self.cache_written
        fresh = usage.input - usage.cached - usage.cache_written
        return (
            fresh * self.input + usage.cached * cached + usage.cache_written * written + usage.output * self.output
        ) / _MILLION


class Prices:
    """Fits what the ledger asks. The price list is loaded when the first price that needs it is asked for."""

    def __init__(self, providers: Mapping[str, Provider], overrides: Mapping[str, Rates] | None = None) -> None:
        self._providers = providers
        self._overrides = overrides or {}

    def cost(self, model: str, usage: Usage) -> Decimal | None:
        """The cost of this usage of the model; None when its price is unknown."""
        return self._highest(model, [_sound(usage)], any_time=False)

    def worst_case(self, model: str, input_tokens: int, max_output: int) -> Decimal | None:
        """The most that a request of that size can cost, whatever of it is cached and whenever it is answered."""
        plain = Usage(input=input_tokens, output=max_output)
        return self._highest(model, [plain, replace(plain, cache_written=input_tokens)], any_time=True)

    def _highest(self, model: str, cases: Sequence[Usage], *, any_time: bool) -> Decimal | None:
        rates = self._known(model)
        if rates is not None:
            return max(rates.cost(case) for case in cases)
        listed = self._listed(model)
        if listed is None:
            return None
        prices = _at_any_time(listed) if any_time else [listed.get_prices(datetime.now(UTC))]
        costs = [_calculated(one, case, listed.id) for one in prices for case in cases]
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
    read = {
        pattern: read_table(Rates, table, where=f"prices.{pattern!r}", mistakes=mistakes)
        for pattern, table in tables.items()
    }
    raise_mistakes("the prices are wrong", mistakes, advice=f'a table [prices."PATTERN"] takes {names_of(Rates)}')
    return {pattern: rates for pattern, rates in read.items() if rates is not None}


_NOTHING = Rates(input=FREE, output=FREE)


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


_LIKELY_BYTES = 4
_LEAST_BYTES = 2
_MESSAGE_TOKENS = 8
"""Put around a turn, a call or a tool by the provider."""
_REQUEST_TOKENS = 64


def likely_input(request: Request) -> int:
    """About as many tokens as the provider will count."""
    size, parts = _measured(request)
    return -(-size // _LIKELY_BYTES) + parts * (_MESSAGE_TOKENS // 2)


def most_input(request: Request) -> int:
    """More tokens than the provider will count."""
    size, parts = _measured(request)
    return -(-size // _LEAST_BYTES) + parts * _MESSAGE_TOKENS + _REQUEST_TOKENS


def likely_tokens(text: str) -> int:
    return -(-_bytes(text) // _LIKELY_BYTES)


def estimated_usage(request: Request, said: str, calls: Iterable[ToolCall] = ()) -> Usage:
    """An estimate for a request whose usage nobody told; never more than was held back for it."""
    output = likely_tokens(said) + sum(-(-_call(call) // _LIKELY_BYTES) + _MESSAGE_TOKENS for call in calls)
    return Usage(input=likely_input(request), output=min(output, request.sampling.max_output), estimated=True)


def _measured(request: Request) -> tuple[int, int]:
    """Bytes, and parts that something is put around."""
    size = sum(map(_bytes, request.system)) + sum(map(_message, request.messages)) + sum(map(_offer, request.tools))
    if request.answer_schema is not None:
        size += len(json.dumps(request.answer_schema))
    turns = sum(1 + len(message.calls) + len(message.answers) for message in request.messages)
    return size, turns + len(request.tools) + len(request.system)


def _message(message: Message) -> int:
    return (
        _bytes(message.text)
        + sum(_bytes(thought.text) + len(thought.signature) for thought in message.thoughts)
        + sum(map(_call, message.calls))
        + sum(_bytes(answer.text) + len(answer.name) for answer in message.answers)
    )


def _call(call: ToolCall) -> int:
    sent = call.raw or json.dumps(call.arguments or {})
    return len(call.name) + _bytes(sent) + len(call.signature)


def _offer(offer: ToolOffer) -> int:
    return len(offer.name) + _bytes(offer.description) + len(json.dumps(offer.input_schema))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
