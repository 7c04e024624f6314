"""One budget for all roles: nothing is sent that could cost more than is left."""

from __future__ import annotations

import threading
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pawl.core.dialogue import Request, Sampling, StopReason, Usage, user
from pawl.core.errors import BudgetExceeded
from pawl.core.run import Budget, Mode, Reasoning, RequestRecord, RoleName, Stage
from pawl.models.ledger import SHORT_ANSWER, Ledger, Prices, Reservation, dollars, most_input, overrides
from pawl.models.providers import builtin

# A dollar for a million tokens, whatever they are.
PRICES = Prices(builtin(), overrides({"openai/plain": {"input": 1, "output": 1}}))


def request(model: str = "openai/plain", max_output: int = 1000) -> Request:
    return Request(model=model, system=(), messages=(user("hello"),), sampling=Sampling(max_output=max_output))


def worst(output: int) -> Decimal:
    return Decimal(most_input(request()) + output) / 1_000_000


MOST = worst(1000)


def ledger(**budget: object) -> Ledger:
    return Ledger(Budget(**budget), PRICES)  # type: ignore[arg-type]


@pytest.mark.spec("E6")
def test_a_request_that_could_cost_more_than_is_left_is_refused_before_it_is_sent():
    account = ledger(money=2 * MOST)
    account.reserve(request()).settle(Usage(input=100, output=900), Decimal("0.001"))
    account.reserve(request()).release()
    with account.reserve(request()), pytest.raises(BudgetExceeded) as caught:
        account.reserve(request())
    assert "'openai/plain' could cost $0.000" in caught.value.message and "a short answer" in caught.value.message
    assert "$0.001 of the budget of" in caught.value.message
    assert "reserved for requests in progress" in caught.value.message
    assert "--max-budget-usd" in caught.value.advice
    assert caught.value.exit_code == 54


@pytest.mark.spec("E6")
def test_a_budget_makes_the_answer_shorter_before_it_refuses():
    def asked(most: Decimal) -> int:
        return ledger(money=most).reserve(request()).request.sampling.max_output

    assert asked(MOST) == 1000
    assert asked(MOST - Decimal("0.000001")) == 999
    assert asked(MOST - Decimal("0.000744")) == SHORT_ANSWER
    with pytest.raises(BudgetExceeded):
        asked(MOST - Decimal("0.000745"))
    assert ledger(tokens=most_input(request()) + 700).reserve(request()).request.sampling.max_output == 700
    assert ledger(money=MOST).reserve(request(max_output=100)).request.sampling.max_output == 100


def test_reasoning_is_held_back_for_as_well():
    account = ledger(money=MOST)
    with pytest.raises(BudgetExceeded):
        account.reserve(replace(request(), reasoning=Reasoning.ON))


@pytest.mark.spec("E6")
def test_all_requests_spend_from_one_budget():
    account = ledger(money=Decimal(1))
    account.reserve(request()).settle(Usage(input=10, output=5, cached=4), Decimal("0.1"))
    account.reserve(request()).settle(Usage(input=20, output=5), Decimal("0.2"))
    account.reserve(request("ollama/x")).settle(Usage(input=7, output=3), Decimal(0))
    spent = account.spent
    assert (spent.money, spent.input, spent.output, spent.cached, spent.requests) == (Decimal("0.3"), 37, 13, 4, 3)


@pytest.mark.spec("E6")
def test_without_a_budget_everything_is_counted_and_nothing_refused():
    account = ledger()
    account.reserve(request(max_output=10**9)).settle(Usage(input=1, output=1), Decimal("0.5"))
    account.reserve(request("openai/secret-model")).settle(Usage(input=30, output=12), None)
    assert (account.spent.money, account.spent.unpriced_tokens, account.spent.requests) == (Decimal("0.5"), 42, 2)


@pytest.mark.spec("E6")
def test_a_model_of_unknown_price_needs_a_budget_in_tokens():
    with pytest.raises(BudgetExceeded, match="price of 'openai/secret-model' is unknown") as caught:
        ledger(money=Decimal(100)).reserve(request("openai/secret-model"))
    assert '[prices."openai/secret-model"]' in caught.value.advice
    assert "budget.tokens" in caught.value.advice


@pytest.mark.spec("E6")
def test_a_budget_in_tokens_holds_whatever_the_price_is():
    account = ledger(tokens=3500)
    hidden = request("openai/secret-model")
    account.reserve(hidden).settle(Usage(input=600, output=700), None)
    account.reserve(request()).settle(Usage(input=600, output=400), Decimal(2))
    for model in ("openai/secret-model", request().model, "ollama/x"):
        with (
            account.reserve(hidden),
            pytest.raises(BudgetExceeded, match=r"2,300 of the budget of 3,500 are used, 1,\d+ reserved"),
        ):
            account.reserve(request(model))
    account.reserve(hidden)


@pytest.mark.spec("E6", "F10")
def test_a_local_model_is_never_refused_for_its_price():
    account = ledger(money=Decimal(0))
    for model in ("local:a.gguf", "ollama/x", "scripted:a.toml"):
        account.reserve(request(model, max_output=10**9)).settle(Usage(input=1, output=1), Decimal(0))
    assert account.spent.money == 0


@pytest.mark.spec("E6")
def test_an_attempt_that_failed_half_way_is_paid_for_and_the_next_one_must_still_fit():
    account = ledger(money=2 * MOST)
    hold = account.reserve(request())
    hold.lost(Usage(input=500, output=10, estimated=True), MOST)
    assert account.held == MOST
    with pytest.raises(BudgetExceeded):
        hold.lost(Usage(input=500, output=10, estimated=True), Decimal("0.000001"))
    hold.release()
    assert account.held == 0
    assert account.spent.requests == 0
    assert account.spent.money == MOST + Decimal("0.000001")


def test_leaving_a_hold_gives_back_what_was_not_settled():
    account = ledger(money=Decimal(1))
    with account.reserve(request()):
        assert account.held == MOST
    assert account.held == 0
    with account.reserve(request()) as hold:
        hold.settle(Usage(input=1), Decimal("0.1"))
    assert (account.held, account.spent.money) == (0, Decimal("0.1"))


def test_a_hold_is_settled_once():
    hold = ledger().reserve(request())
    hold.settle(Usage(input=1), Decimal(1))
    with pytest.raises(AssertionError):
        hold.settle(Usage(input=1), Decimal(1))


def record(role: RoleName, model: str, usage: Usage, cost: Decimal | None) -> RequestRecord:
    return RequestRecord(
        conversation="c",
        run="r",
        mode=Mode.AGENT,
        stage=Stage.ACT,
        role=role,
        model=model,
        reasoning=Reasoning.OFF,
        tools=(),
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        estimated=usage.estimated,
        cost=cost,
        seconds=1.0,
        first_token_seconds=None,
        attempts=1,
        ended=StopReason.END,
    )


ASKED = st.tuples(
    st.sampled_from([RoleName.WORKER, RoleName.CRITIC]),
    st.sampled_from(["openai/plain", "ollama/x", "nobody/x"]),
    st.builds(Usage, input=st.integers(0, 10**6), output=st.integers(0, 10**5), cached=st.integers(0, 10)),
    st.one_of(st.none(), st.decimals(0, 5, places=9)),
)


@pytest.mark.spec("E6")
@given(st.lists(ASKED, max_size=20))
def test_the_account_of_a_resumed_run_is_that_of_its_request_log(
    asked: list[tuple[RoleName, str, Usage, Decimal | None]],
):
    account = ledger()
    for _, model, usage, cost in asked:
        account.reserve(request(model)).settle(usage, cost)
    resumed = Ledger(Budget(), PRICES)
    resumed.count([record(*one) for one in asked])
    assert resumed.spent == account.spent


class Purse(RuleBasedStateMachine):
    """Requests that begin, fail, are given up and end in any order; each costs at most its worst case."""

    @initialize(money=st.integers(0, 50))
    def start(self, money: int) -> None:
        self.budget = money * MOST
        self.account = ledger(money=self.budget)
        self.open: list[Reservation] = []

    @rule()
    def begin(self) -> None:
        try:
            self.open.append(self.account.reserve(request()))
        except BudgetExceeded:
            assert self.account.spent.money + self.account.held + worst(SHORT_ANSWER) > self.budget

    @precondition(lambda self: self.open)
    @rule(data=st.data(), share=st.fractions(0, 1, max_denominator=1000))
    def settle(self, data: st.DataObject, share: object) -> None:
        hold = self._taken(data)
        hold.settle(Usage(input=1), self._part(hold, share))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), share=st.fractions(0, 1, max_denominator=1000))
    def lose(self, data: st.DataObject, share: object) -> None:
        hold = self._taken(data)
        try:
            hold.lost(Usage(input=1), self._part(hold, share))
        except BudgetExceeded:
            return
        self.open.append(hold)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        self._taken(data).release()

    @invariant()
    def nothing_is_overspent(self) -> None:
        if hasattr(self, "account"):
            assert self.account.held == sum(worst(one.request.sampling.max_output) for one in self.open)
            assert self.account.spent.money + self.account.held <= self.budget

    def _taken(self, data: st.DataObject) -> Reservation:
        return self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))

    def _part(self, hold: Reservation, share: object) -> Decimal:
        most = worst(hold.request.sampling.max_output)
        return (most * share.numerator / share.denominator).quantize(Decimal("1e-12"))  # type: ignore[attr-defined]


TestNoOrderOfRequestsOverspends = pytest.mark.spec("E6")(Purse.TestCase)


@pytest.mark.spec("E6")
def test_threads_that_ask_at_the_same_time_do_not_overspend_together():
    account = ledger(money=10 * MOST)
    ready = threading.Barrier(8)
    refused = []

    def ask() -> None:
        ready.wait()
        for _ in range(20):
            try:
                with account.reserve(request()) as hold:
                    hold.settle(Usage(input=1), worst(hold.request.sampling.max_output))
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 10 * MOST - worst(SHORT_ANSWER) < account.spent.money <= 10 * MOST
    assert len(refused) >= 100


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "$0.00"),
        ("1.5", "$1.50"),
        ("0.0034951", "$0.003495"),
        ("0.0000001", "less than $0.000001"),
        ("1234.5678", "$1234.57"),
    ],
)
def test_amounts_are_shown_with_the_digits_they_need(amount: str, shown: str):
    assert dollars(Decimal(amount)) == shown
