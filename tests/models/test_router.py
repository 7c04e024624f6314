"""One way to every model: the named one is asked, paid for, and never swapped without being listed and shown."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from models.provider_socket import chunk, head, hold, provider
from models.wire_scripts import ONCE, Said, asking, openai, sse

from pawl.core.dialogue import Answered, FellBack, ModelEvent, Request, Retrying, Sampling, TextDelta, Usage, user
from pawl.core.errors import (
    AnswerInterrupted,
    BudgetExceeded,
    Cancelled,
    ConfigError,
    ModelError,
    ModelTimedOut,
    NotAuthorized,
    Overloaded,
    UnknownModel,
)
from pawl.core.run import Budget
from pawl.models import Model
from pawl.models.ledger import Charge, Ledger, Prices, likely_input, overrides
from pawl.models.providers import ModelName, Timeouts, builtin
from pawl.models.router import Router, Routes, routes
from pawl.models.scripted import ScriptedModel
from pawl.sandbox.cancel import CancelToken

PRICES = Prices(builtin(), overrides({"openai/*": {"input": 1, "output": 1}, "gemini/*": {"input": 2, "output": 2}}))
USAGE = "usage = { input = 100, output = 50 }"


def request(model: str = "openai/one", text: str = "hello") -> Request:
    return Request(model=model, system=(), messages=(user(text),), sampling=Sampling(max_output=1000))


class House:
    """A router over scripts: each model's turns are a file of their own."""

    def __init__(
        self, folder: Path, scripts: Mapping[str, str], *, budget: Budget | None = None, **listed: object
    ) -> None:
        self.folder = folder
        self.scripts = scripts
        self.opened: list[str] = []
        self.ledger = Ledger(budget or Budget(), PRICES)
        self.router = Router(
            self._open,
            routes=Routes(fallbacks=listed),
            ledger=self.ledger,
            providers=builtin(),  # type: ignore[arg-type]
        )

    def _open(self, name: ModelName) -> Model:
        self.opened.append(str(name))
        path = self.folder / f"{len(self.opened)}.toml"
        path.write_text(self.scripts[str(name)])
        return ScriptedModel(path)


def answer_turn(text: str, more: str = USAGE) -> str:
    return f'[[turn]]\n[turn.answer]\ntext = "{text}"\n{more}\n'


@pytest.mark.spec("E9", "E6")
def test_the_named_model_answers_with_its_price_and_the_ledger_has_it(tmp_path: Path):
    house = House(tmp_path, {"openai/one": answer_turn("hi")}, budget=Budget(money=Decimal(1)))
    worker = house.router.conversation()
    events = list(worker.stream(request()))
    assert events[0] == TextDelta("hi")
    assert isinstance(events[-1], Answered)
    answer = events[-1].answer
    assert (answer.model, answer.cost) == ("openai/one", Decimal("0.00015"))
    assert (house.ledger.spent.money, house.ledger.spent.tokens, house.ledger.spent.requests) == (answer.cost, 150, 1)
    assert house.ledger.held == 0
    assert worker.charged == (
        Charge(model="openai/one", usage=Usage(input=100, output=50), cost=Decimal("0.00015"), attempts=1, ended="end"),
    )


def test_a_model_is_opened_once(tmp_path: Path):
    house = House(tmp_path, {"openai/one": answer_turn("a") + answer_turn("b"), "gemini/two": answer_turn("c")})
    for model in ("openai/one", "gemini/two", "openai/one"):
        list(house.router.stream(request(model)))
    assert house.opened == ["openai/one", "gemini/two"]


@pytest.mark.spec("E9")
@pytest.mark.parametrize("fault", ["overloaded", "rate_limited", "unreachable", "timed_out", "unknown_model"])
def test_a_listed_model_takes_over_and_is_shown(tmp_path: Path, fault: str):
    scripts = {"openai/one": f'[[turn]]\nfault = "{fault}"\n', "gemini/two": answer_turn("hi")}
    house = House(tmp_path, scripts, **{"openai/one": ("gemini/two",)})
    events = list(house.router.stream(request()))
    assert isinstance(events[0], FellBack)
    assert (events[0].model, events[0].to) == ("openai/one", "gemini/two")
    assert events[0].why
    assert isinstance(events[-1], Answered)
    assert (events[-1].answer.model, events[-1].answer.cost) == ("gemini/two", Decimal("0.0003"))


@pytest.mark.spec("E9")
def test_a_model_that_another_took_over_from_is_not_asked_again_by_the_same_role(tmp_path: Path):
    scripts = {
        "openai/one": '[[turn]]\nfault = "overloaded"\n[[turn]]\nanswer = "back"',
        "gemini/two": '[[turn]]\ntimes = 0\nanswer = "here"',
    }
    house = House(tmp_path, scripts, **{"openai/one": ("gemini/two",)})
    role = house.router.conversation()
    assert [sum(isinstance(event, FellBack) for event in role.stream(request())) for _ in range(2)] == [1, 0]
    assert [charge.model for charge in role.charged] == ["gemini/two"]
    assert list(house.router.conversation().stream(request()))[-1].answer.text == "back"  # type: ignore[union-attr]


@pytest.mark.spec("E9")
def test_a_fallback_is_asked_for_no_more_than_it_can_write(tmp_path: Path):
    house = House(tmp_path, {})
    router = Router(
        house._open,
        routes=Routes(),
        ledger=house.ledger,
        providers=builtin(),
        most_output={"gemini/two": 300}.__getitem__,
    )
    fitted = router.fitted(request(), "gemini/two")
    assert (fitted.model, fitted.sampling.max_output) == ("gemini/two", 300)


@pytest.mark.spec("E9")
def test_a_pinned_model_is_never_swapped(tmp_path: Path):
    scripts = {"openai/one": '[[turn]]\nfault = "overloaded"\n', "gemini/two": answer_turn("hi")}
    house = House(tmp_path, scripts, **{"gemini/two": ("openai/one",)})
    with pytest.raises(Overloaded):
        list(house.router.stream(request()))
    assert house.opened == ["openai/one"]


@pytest.mark.parametrize("fault", ["not_authorized", "quota_exhausted", "rejected", "context_too_long", "interrupted"])
def test_what_another_model_would_not_mend_is_raised_as_it_is(tmp_path: Path, fault: str):
    scripts = {"openai/one": f'[[turn]]\nfault = "{fault}"\n', "gemini/two": answer_turn("hi")}
    house = House(tmp_path, scripts, **{"openai/one": ("gemini/two",)})
    with pytest.raises(ModelError):
        list(house.router.stream(request()))
    assert house.opened == ["openai/one"]


def test_the_whole_list_is_tried_in_order_and_the_last_error_is_raised(tmp_path: Path):
    scripts = dict.fromkeys(("openai/one", "gemini/two", "openai/three"), '[[turn]]\nfault = "overloaded"\n')
    house = House(tmp_path, scripts, **{"openai/one": ("gemini/two", "openai/three")})
    events: list[ModelEvent] = []
    with pytest.raises(Overloaded, match="openai/three"):
        for event in house.router.stream(request()):
            events.append(event)
    assert [(event.model, event.to) for event in events if isinstance(event, FellBack)] == [
        ("openai/one", "gemini/two"),
        ("gemini/two", "openai/three"),
    ]


@pytest.mark.spec("E6")
def test_a_request_over_the_budget_is_never_sent(tmp_path: Path):
    house = House(tmp_path, {"openai/one": answer_turn("hi")}, budget=Budget(money=Decimal("0.0002")))
    with pytest.raises(BudgetExceeded):
        list(house.router.stream(request()))
    opened = house.router.opened("openai/one")
    assert isinstance(opened, ScriptedModel)
    assert opened.consumed == ()


@pytest.mark.spec("E6")
def test_a_model_that_counts_nothing_is_counted_for(tmp_path: Path):
    house = House(tmp_path, {"openai/one": answer_turn("hello there", "usage = { input = 0, output = 0 }")})
    events = list(house.router.stream(request()))
    assert isinstance(events[-1], Answered)
    assert events[-1].answer.usage == Usage(input=likely_input(request()), output=3, estimated=True)
    assert house.ledger.spent.money > 0


def test_a_cost_that_the_provider_tells_goes_before_the_price_list(tmp_path: Path):
    house = House(tmp_path, {"openai/one": answer_turn("hi", 'cost = "0.5"')})
    events = list(house.router.stream(request()))
    assert isinstance(events[-1], Answered)
    assert events[-1].answer.cost == Decimal("0.5")
    assert house.ledger.spent.money == Decimal("0.5")


@pytest.mark.spec("E6")
def test_attempts_that_had_begun_are_paid_for_with_the_answer(tmp_path: Path):
    text = """
    [[turn]]
    chunks = ["eight ch", { retrying = "it broke" }, { retrying = "not begun" },
              { retrying = "calls", begun = true }, "hi"]
    answer = { text = "hi", usage = { input = 100, output = 50 } }
    """
    house = House(tmp_path, {"openai/one": text})
    worker = house.router.conversation()
    events = list(worker.stream(request()))
    lost = Usage(input=2 * likely_input(request()), output=2, estimated=True)
    cost = Decimal(lost.input + lost.output + 150) / 1_000_000
    assert isinstance(events[-1], Answered)
    assert (events[-1].answer.usage, events[-1].answer.cost) == (Usage(input=100, output=50), cost)
    assert worker.charged == (
        Charge(model="openai/one", usage=lost + Usage(input=100, output=50), cost=cost, attempts=4, ended="end"),
    )
    assert house.ledger.spent.money == cost
    assert house.ledger.spent.requests == 1


@pytest.mark.spec("E6")
def test_retries_stop_when_the_next_attempt_could_cost_more_than_is_left(tmp_path: Path):
    text = '[[turn]]\nchunks = ["' + "word " * 400 + '", { retrying = "it broke" }, "never shown"]\n'
    house = House(tmp_path, {"openai/one": text}, budget=Budget(money=Decimal("0.0015")))
    events: list[ModelEvent] = []
    with pytest.raises(BudgetExceeded):
        for event in house.router.stream(request()):
            events.append(event)
    assert not any(isinstance(event, Retrying) for event in events)
    assert house.ledger.held == 0
    assert 0 < house.ledger.spent.money <= Decimal("0.0015")


@pytest.mark.spec("E6")
def test_an_answer_that_broke_off_is_paid_for(tmp_path: Path):
    house = House(tmp_path, {"openai/one": '[[turn]]\nanswer = "half of it"\nfault = "interrupted"\n'})
    worker = house.router.conversation()
    with pytest.raises(AnswerInterrupted):
        list(worker.stream(request()))
    assert worker.charged[0].ended == "answer_interrupted"
    assert house.ledger.spent.output == 3


@pytest.mark.spec("E6")
@pytest.mark.parametrize("ending", ["silence", "error"])
def test_an_answer_that_had_begun_with_a_call_and_failed_is_paid_for(ending: str):
    """Nothing of a call is shown while it comes, so that its beginning must be known otherwise."""
    said = Said(calls=(("p", "read", '{"path": "a.py"}'),), stop="calls")
    steps = {
        "silence": [hold],
        "error": [chunk(sse({"error": {"type": "overloaded_error", "message": "busy"}})), hold],
    }[ending]
    script = [head(), *map(chunk, openai(said)[:2]), *steps]
    ledger = Ledger(Budget(money=Decimal(1)), PRICES)
    with provider(script) as server, asking(server, timeouts=Timeouts(idle=0.2), retries=ONCE) as model:
        worker = Router(lambda _: model, routes=Routes(), ledger=ledger, providers=builtin()).conversation()
        with pytest.raises((ModelTimedOut, Overloaded)):
            list(worker.stream(request()))
    assert ledger.spent.money == Decimal(likely_input(request())) / 1_000_000
    assert (ledger.held, worker.charged[0].usage.estimated) == (0, True)


@pytest.mark.spec("E6")
def test_a_request_that_failed_before_it_began_costs_nothing(tmp_path: Path):
    house = House(tmp_path, {"openai/one": '[[turn]]\nfault = "not_authorized"\n'}, budget=Budget(money=Decimal(1)))
    worker = house.router.conversation()
    with pytest.raises(NotAuthorized):
        list(worker.stream(request()))
    assert (house.ledger.spent.money, house.ledger.held, house.ledger.spent.requests) == (0, 0, 0)
    assert [(charge.cost, charge.ended) for charge in worker.charged] == [(0, "not_authorized")]


@pytest.mark.spec("E6")
def test_what_was_streamed_before_the_user_stopped_is_paid_for(tmp_path: Path):
    house = House(tmp_path, {"openai/one": 2 * ('[[turn]]\nchunks = 4\n[turn.answer]\ntext = "four four four"\n')})
    cancel = CancelToken()
    events = house.router.stream(request(), cancel=cancel)
    next(events)
    cancel.request()
    with pytest.raises(Cancelled):
        next(events)
    cancelled = house.ledger.spent.money
    closed = house.router.conversation()
    events = closed.stream(request())
    next(events)
    events.close()
    assert cancelled > 0
    assert house.ledger.spent.money == 2 * cancelled
    assert house.ledger.held == 0
    assert closed.charged[0].ended == "closed"


def test_a_model_that_ends_without_an_answer_is_an_interruption():
    class Silent:
        def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
            yield TextDelta("hm")

    router = Router(lambda name: Silent(), routes=Routes(), ledger=Ledger(Budget(), PRICES), providers=builtin())
    with pytest.raises(AnswerInterrupted):
        list(router.stream(request()))


@pytest.mark.spec("E6")
def test_workers_side_by_side_stay_within_one_budget(tmp_path: Path):
    script = '[[turn]]\ntimes = 0\n[turn.answer]\ntext = "x"\nusage = { input = 50, output = 250 }\n'
    budget = Budget(money=Decimal("0.02"))
    house = House(tmp_path, {"openai/one": script}, budget=budget)

    def work(number: int) -> None:
        worker = house.router.conversation()
        try:
            while True:
                list(worker.stream(request()))
        except BudgetExceeded:
            return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.money is not None
    assert Decimal("0.015") < house.ledger.spent.money <= budget.money


@pytest.mark.spec("E9")
def test_a_slot_has_its_model_and_every_other_the_default():
    known = Routes(default="openai/one", slots={"critic": "gemini/two"})
    assert [known.model_for(slot) for slot in ("critic", "worker")] == ["gemini/two", "openai/one"]


def test_without_a_model_it_is_said_what_to_configure():
    with pytest.raises(UnknownModel, match="no model is configured") as caught:
        Routes().model_for("worker")
    assert "--model provider/name" in caught.value.advice


def test_routes_are_read_from_a_configuration():
    table = {"default": "openai/a", "slots": {"critic": "local:x.gguf"}, "fallbacks": {"openai/a": ["gemini/b"]}}
    assert routes(table, builtin()) == Routes(
        default="openai/a", slots={"critic": "local:x.gguf"}, fallbacks={"openai/a": ("gemini/b",)}
    )


def test_every_mistake_in_the_routes_is_reported_at_once():
    table = {
        "default": "gpt-5",
        "slots": {"critic": "opnai/x", "worker": 1},
        "fallback": {},
        "fallbacks": {"a/b": "c/d"},
    }
    with pytest.raises(ConfigError) as caught:
        routes(table, builtin())
    for part in (
        "default: 'gpt-5' is not a model's name (did you mean 'openai/gpt-5'?)",
        "slots.critic: no provider 'opnai'",
        "slots.worker must be a text",
        "fallback is not a field",
        "no provider 'a'",
        "no provider 'c'",
    ):
        assert part in caught.value.message


@pytest.mark.spec("A10", "E9")
def test_a_request_goes_out_as_it_was_asked_but_for_the_name(tmp_path: Path):
    seen: list[Request] = []

    class Keeping:
        def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
            seen.append(request)
            raise Overloaded("no")
            yield

    listed = Routes(fallbacks={"openai/one": ("gemini/two",)})
    router = Router(lambda name: Keeping(), routes=listed, ledger=Ledger(Budget(), PRICES), providers=builtin())
    with pytest.raises(Overloaded):
        list(router.stream(request()))
    assert seen == [request(), replace(request(), model="gemini/two")]
