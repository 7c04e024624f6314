"""The one account of a run: what it has spent over all roles, and what is held back for requests under way.

Before each request the ledger holds back the most that it could cost. Where that does not fit, a shorter answer is
asked for; where not even a short one fits, the request is refused before it is sent. So the money spent stays within
the budget as long as no request costs more than its worst case.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from pawl.core.dialogue import Request, Usage
from pawl.core.errors import BudgetExceeded
from pawl.core.run import Budget, Reasoning, RequestRecord
from pawl.models.prices import Prices, most_input

_NOTHING = Decimal(0)
_RAISE_MONEY = "raise the budget with --max-budget-usd or `budget.money`, or use a cheaper model"
_RAISE_TOKENS = "raise it with --max-tokens or `budget.tokens`, or ask for less"
SHORT_ANSWER = 256
"""Tokens; a request for less than this, or for less than it asks itself, is not worth sending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The sum of a run so far."""

    money: Decimal = _NOTHING
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


class Reservation:
    """The reserve for one request. Leaving it as a context manager releases what was not settled."""

    def __init__(self, ledger: Ledger, request: Request) -> None:
        self._ledger = ledger
        self.request = request
        """As it may be sent: with an answer as long as the budget pays for."""
        self.model = request.model
        self.usage = Usage()
        """All that the request came to, with the attempts that were lost."""
        self.cost: Decimal | None = _NOTHING
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

    @property
    def held(self) -> Decimal:
        """The money held back for requests under way."""
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
                f"the price of {model!r} is unknown, so that the budget of {dollars(money)} cannot be kept",
                advice=f'give its price in [prices."{model}"], or a budget in tokens with `budget.tokens`',
            )

    def _check_money(self, model: str, most: Decimal, budget: Decimal, how: str) -> None:
        held, spent = self._held_money(), self._spent.money
        if spent + held + most > budget:
            under_way = f", {dollars(held)} held back for requests under way" if held else ""
            raise BudgetExceeded(
                f"the next request to {model!r} could cost {dollars(most)}{how}, "
                f"and of the budget of {dollars(budget)} are {dollars(spent)} spent{under_way}",
                advice=_RAISE_MONEY,
            )

    def _check_tokens(self, model: str, most: int, budget: int, how: str) -> None:
        held = sum(hold.tokens for hold in self._holds.values())
        spent = self._spent.tokens
        if spent + held + most > budget:
            under_way = f", {held:,} held back for requests under way" if held else ""
            raise BudgetExceeded(
                f"the next request to {model!r} could take {most:,} tokens{how}, "
                f"and of the budget of {budget:,} are {spent:,} used{under_way}",
                advice=_RAISE_TOKENS,
            )

    def _held_money(self) -> Decimal:
        return sum((hold.money for hold in self._holds.values() if hold.money is not None), _NOTHING)

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
            money=before.money + (cost or _NOTHING),
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
