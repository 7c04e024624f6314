"""The money and tokens of a run: what requests cost, what was spent, and what is held back for those under way.

A price is the user's own, the one that genai-prices carries, or nothing for local models; one that is not known is
None, never 0. Nothing is fetched; the price list is the one that was installed. Before each request the ledger holds
back the most that it could cost. Where that does not fit, a shorter answer is asked for; where not even a short one
fits, the request is refused before it is sent. So the money spent stays within the budget as long as no request costs
more than its worst case.
"""

from __future__ import annotations

import fnmatch
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.dialogue import (
    Message,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    ToolOffer,
    Usage,
)
from pawl.core.errors import AnswerInterrupted, AnswerUnusable, BudgetExceeded, PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Budget, Reasoning, RequestRecord
from pawl.core.typed import names_of, raise_mistakes, read_table
from pawl.models.providers import LOCAL, SCRIPTED, Provider

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
            return _FOR_NOTHING
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


_FOR_NOTHING = Rates(input=FREE, output=FREE)


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


_RAISE_MONEY = "raise the budget with --max-budget-usd or `budget.money`, or use a cheaper model"
_RAISE_TOKENS = "raise it with --max-tokens or `budget.tokens`, or ask for less"
SHORT_ANSWER = 256
"""Tokens; a request for less than this, or for less than it asks itself, is not worth sending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The sum of a run so far."""

    money: Decimal = FREE
    input: int = 0
    output: int = 0
    cached: int = 0
    requests: int = 0
    unpriced_tokens: int = 0
    """Those of models whose price is unknown; they are not in the money."""

    @property
    def tokens(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class _Most:
    """The most that a request can come to. Money is None when the price is unknown or nobody asks for it."""

    money: Decimal | None
    tokens: int


_HAD_BEGUN = (AnswerInterrupted, AnswerUnusable)
"""Errors of an answer that had begun, so that it is paid for even if nothing of it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Usage and cost of asking one model, with the attempts that failed after they had begun."""

    model: str
    usage: Usage
    cost: Decimal | None
    """None when the price is unknown."""
    attempts: int
    ended: str
    """How it ended: a `Stop`, or the code of the error."""


class Reservation:
    """The reserve for one request to one model, and the account of it while it is under way.

    Leaving it as a context manager releases what was not settled.
    """

    def __init__(self, ledger: Ledger, request: Request) -> None:
        self._ledger = ledger
        self.request = request
        """As it may be sent: with an answer as long as the budget pays for."""
        self._said: list[str] = []
        self._attempts = 1
        self.model = request.model
        self.usage = Usage()
        """All that the request came to, with the attempts that were lost."""
        self.cost: Decimal | None = FREE
        """None when the price is unknown."""

    @property
    def is_open(self) -> bool:
        """Nothing has settled or released it."""
        return self._ledger.holds(self)

    def settle(self, usage: Usage, cost: Decimal | None) -> None:
        """The request has been answered, or ended in a way that is paid for."""
        self._ledger.settle(self, usage, cost, is_lost=False)

    def lost(self, usage: Usage, cost: Decimal | None) -> None:
        """An attempt failed after it had begun to answer: it is paid for, and the next one must still fit."""
        self._ledger.settle(self, usage, cost, is_lost=True)

    def release(self) -> None:
        """Nothing was answered, so that nothing is paid for."""
        self._ledger.release(self)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hears(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text) | ThoughtDelta(text=text):
                self._said.append(text)
            case Retrying(begun=begun):
                self._attempts += 1
                if begun or self._said:
                    # It is paid for, though nobody counts it for us.
                    said, self._said = self._said, []
                    self.lost(*self._estimate("".join(said)))

    def answered(self, answer: ModelResponse) -> ModelResponse:
        """Settles; gives the answer with its price. A provider that counted nothing is counted for."""
        usage = answer.usage
        if usage.input <= 0 and usage.output <= 0:
            thoughts = "".join(one.text for one in answer.thoughts)
            usage = estimated_usage(self.request, answer.text + thoughts, answer.calls)
        self.settle(usage, answer.cost if answer.cost is not None else self._ledger.prices.cost(self.model, usage))
        return replace(answer, model=self.model, usage=usage, cost=self.cost)

    def fails(self, error: PawlError) -> None:
        if self.is_open and (isinstance(error, _HAD_BEGUN) or getattr(error, "begun", False)):
            said = max("".join(self._said), getattr(error, "text", ""), key=len)
            self.settle(*self._estimate(said))

    def closed(self, ended: str) -> Charge:
        if self.is_open and self._said:
            self.settle(*self._estimate("".join(self._said)))
        return Charge(model=self.model, usage=self.usage, cost=self.cost, attempts=self._attempts, ended=ended)

    def _estimate(self, said: str) -> tuple[Usage, Decimal | None]:
        usage = estimated_usage(self.request, said)
        return usage, self._ledger.prices.cost(self.model, usage)


class Ledger:
    """Safe to use from any thread."""

    def __init__(
        self, budget: Budget, prices: Prices, *, reasoning_tokens: Callable[[str], int] = lambda model: 4096
    ) -> None:
        """`reasoning_tokens` is what a model may write on top of its answer when it is asked to reason."""
        self.budget = budget
        self._reasoning_tokens = reasoning_tokens
        self.prices = prices
        self._lock = threading.Lock()
        self._holds: dict[Reservation, _Most] = {}
        self._spent = Spending()

    def count(self, records: Iterable[RequestRecord]) -> None:
        """Adds what the request log has of this run, so that it counts after an interruption, too."""
        with self._lock:
            for record in records:
                usage = Usage(input=record.input_tokens, output=record.output_tokens, cached=record.cached_tokens)
                self._add(usage, record.cost, requests=1)

    @property
    def spent(self) -> Spending:
        with self._lock:
            return self._spent

    def share(self, parts: float) -> Callable[[], bool]:
        """Says from now on whether more than that part of what is left is spent: a fourth for 4."""
        before, whole, part = self.spent, self.budget, Decimal(parts)

        def is_spent() -> bool:
            now = self.spent
            by_money = whole.money is not None and (now.money - before.money) * part > whole.money - before.money
            by_tokens = whole.tokens is not None and (now.tokens - before.tokens) * part > whole.tokens - before.tokens
            return by_money or by_tokens

        return is_spent

    @property
    def held(self) -> Decimal:
        """The money reserved for requests in progress."""
        with self._lock:
            return self._held_money()

    def reserve(self, request: Request) -> Reservation:
        """Holds back the worst case of the request, whose answer is made shorter where no more can be paid.

        `BudgetExceeded`, before anything is sent, where not even a short answer fits.
        """
        if self.budget.money is None and self.budget.tokens is None:
            # Nothing is compared, and the price list is slow to load before the first request.
            hold = Reservation(self, request)
            with self._lock:
                self._holds[hold] = _Most(money=None, tokens=0)
            return hold
        read = most_input(request)
        thought = self._reasoning_tokens(request.model) if request.reasoning is Reasoning.ON else 0
        with self._lock:
            output = self._affordable(request, read, thought)
            hold = Reservation(self, replace(request, sampling=replace(request.sampling, max_output=output)))
            self._holds[hold] = self._most(request.model, read, output + thought)
        return hold

    def _affordable(self, request: Request, read: int, thought: int) -> int:
        """The longest answer that fits, at most the one that is asked for."""
        model, most = request.model, request.sampling.max_output

        def fits(output: int) -> bool:
            try:
                self._check(model, self._most(model, read, output + thought))
            except BudgetExceeded:
                return False
            return True

        if fits(most):
            return most
        low, high = min(most, SHORT_ANSWER), most
        self._check(model, self._most(model, read, low + thought), how=" with a short answer")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _most(self, model: str, read: int, written: int) -> _Most:
        money = None if self.budget.money is None else self.prices.worst_case(model, read, written)
        return _Most(money=money, tokens=read + written)

    def _check(self, model: str, most: _Most, *, how: str = "") -> None:
        money, tokens = self.budget.money, self.budget.tokens
        if tokens is not None:
            self._check_tokens(model, most.tokens, tokens, how)
        if money is None:
            return
        if most.money is not None:
            self._check_money(model, most.money, money, how)
        elif tokens is None:
            raise BudgetExceeded(
                f"the price of {model!r} is unknown, so the budget of {dollars(money)} cannot be enforced",
                advice=f'give its price in [prices."{model}"], or a budget in tokens with `budget.tokens`',
            )

    def _check_money(self, model: str, most: Decimal, budget: Decimal, how: str) -> None:
        held, spent = self._held_money(), self._spent.money
        if spent + held + most > budget:
            under_way = f", {dollars(held)} reserved for requests in progress" if held else ""
            raise BudgetExceeded(
                f"the next request to {model!r} could cost {dollars(most)}{how}; "
                f"{dollars(spent)} of the budget of {dollars(budget)} is spent{under_way}",
                advice=_RAISE_MONEY,
            )

    def _check_tokens(self, model: str, most: int, budget: int, how: str) -> None:
        held = sum(hold.tokens for hold in self._holds.values())
        spent = self._spent.tokens
        if spent + held + most > budget:
            under_way = f", {held:,} reserved for requests in progress" if held else ""
            raise BudgetExceeded(
                f"the next request to {model!r} could take {most:,} tokens{how}; "
                f"{spent:,} of the budget of {budget:,} are used{under_way}",
                advice=_RAISE_TOKENS,
            )

    def _held_money(self) -> Decimal:
        return sum((hold.money for hold in self._holds.values() if hold.money is not None), FREE)

    def holds(self, hold: Reservation) -> bool:
        with self._lock:
            return hold in self._holds

    def settle(self, hold: Reservation, usage: Usage, cost: Decimal | None, *, is_lost: bool) -> None:
        """Pays for a request. One whose attempt was lost is held again for the next, if that still fits."""
        with self._lock:
            most = self._holds.pop(hold, None)
            assert most is not None, "a hold is settled once"
            self._add(usage, cost, requests=0 if is_lost else 1)
            hold.usage += usage
            hold.cost = None if cost is None or hold.cost is None else hold.cost + cost
            if is_lost:
                self._check(hold.model, most)
                self._holds[hold] = most

    def release(self, hold: Reservation) -> None:
        with self._lock:
            self._holds.pop(hold, None)

    def _add(self, usage: Usage, cost: Decimal | None, *, requests: int) -> None:
        before, read, written = self._spent, max(usage.input, 0), max(usage.output, 0)
        self._spent = Spending(
            money=before.money + (cost or FREE),
            input=before.input + read,
            output=before.output + written,
            cached=before.cached + usage.cached,
            requests=before.requests + requests,
            unpriced_tokens=before.unpriced_tokens + (read + written if cost is None else 0),
        )


def dollars(amount: Decimal) -> str:
    """An amount for people: cents, and more digits where cents would hide it."""
    if amount == amount.quantize(Decimal("0.01")) or amount >= 100:
        return f"${amount:.2f}"
    if amount < Decimal("0.000001"):
        return "less than $0.000001"
    return f"${amount.quantize(Decimal('0.000001')).normalize():f}"
