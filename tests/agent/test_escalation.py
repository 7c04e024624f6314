"""When models go on by themselves: never for money that the user did not allow, and never against his word."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pawl.agent.escalation import NO_ESCALATION, LadderWish, LoopWish, escalation, loop_of, with_escalation
from pawl.core.run import Mode, RunRequest
from pawl.repair.model import FixOutcome, FixRequest
from pawl.settings.config import load
from pawl.ui.cli.call import Call
from pawl.ui.cli.fix import order_after
from pawl.ui.screen.screen import Screen
from pawl.workspace.project import Project

LIMIT = {"money": "1"}
MODEL = '[models]\ndefault = "openai/gpt-5"\n'


@pytest.mark.spec("E3", "E6")
@pytest.mark.parametrize(
    ("order", "setting", "budget", "climbs"),
    [
        (RunRequest(text="x"), "auto", {}, False),
        (RunRequest(text="x"), "auto", {"turns": 9}, False),
        (RunRequest(text="x"), "auto", LIMIT, True),
        (RunRequest(text="x", budget={"tokens": 9}), "auto", {}, True),
        (RunRequest(text="x"), "on", {}, True),
        (RunRequest(text="x"), "off", LIMIT, False),
        (RunRequest(text="x", mode=Mode.CHAT), "on", LIMIT, False),
        (RunRequest(text="x", loop=dict(NO_ESCALATION)), "on", LIMIT, False),
        (RunRequest(text="x", loop=escalation()), "off", {}, True),
    ],
)
def test_a_request_climbs_by_itself_only_within_a_limit_or_by_the_users_word(
    order: RunRequest, setting: str, budget: dict[str, object], climbs: bool
):
    assert bool(with_escalation(order, setting, budget).loop.get("escalate")) is climbs


Opened = Callable[[str], Project]


@pytest.fixture
def opened(tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.delenv("PAWL_MODEL", raising=False)
    (tmp_path / "project").mkdir()

    def made(settings: str) -> Project:
        (tmp_path / "config.toml").write_text(settings)
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
        return Project.open(load(), tmp_path / "project")

    return made


@pytest.mark.spec("E6")
@pytest.mark.parametrize(
    ("settings", "flag", "most"),
    [
        (MODEL, None, None),
        (f'escalate = "off"\n{MODEL}', None, None),
        ('escalate = "on"\n', None, None),
        (f'escalate = "on"\n{MODEL}', None, "5"),
        (f'escalate = "on"\n{MODEL}[budget]\nmoney = 0.25\n', None, "0.25"),
        (f'escalate = "off"\n{MODEL}', True, "5"),
    ],
)
def test_what_the_search_leaves_goes_to_a_model_only_by_the_users_word_and_within_his_budget(
    opened: Opened, settings: str, flag: bool | None, most: str | None
):
    aside = io.StringIO()
    options = argparse.Namespace(escalate=flag, model=None, test=None, max_cost=None, json=False)
    with opened(settings) as shop:
        call = Call(options, Screen(io.StringIO(), color=False), Screen(aside, color=False))
        order = order_after(shop, call, FixRequest(targets=()), FixOutcome.NOT_FIXED)
    assert (None if order is None else order.budget["money"]) == most
    assert ("openai/gpt-5 works on what is left, for at most $" in aside.getvalue()) is (order is not None)


@pytest.mark.spec("E6")
def test_a_loop_keeps_to_the_users_budget_where_neither_flag_nor_file_says_more(opened: Opened):
    with opened("[budget]\nmoney = 0.25\ntokens = 1000\nseconds = 90\n") as shop:
        order, warnings = loop_of(shop, LoopWish(), LadderWish())
        assert order.budget == {"money": "0.25", "tokens": 1000, "seconds": 90.0} and not warnings
        more, _ = loop_of(shop, LoopWish(max_tokens=9), LadderWish(max_cost=Decimal(2), max_minutes=3))
        assert more.budget == {"money": "2", "tokens": 9, "seconds": 180.0}


@pytest.mark.spec("E6")
@pytest.mark.parametrize(
    ("settings", "tokens", "ladder", "budget"),
    [
        ("", None, LadderWish(), {"money": "5", "tokens": 5_000_000}),
        ("", None, LadderWish(max_cost=Decimal(1)), {"money": "1"}),
        ("", None, LadderWish(allowed_cost=Decimal(5)), {"money": "5"}),
        ("", 7, LadderWish(max_cost=Decimal(1)), {"money": "1", "tokens": 7}),
        ("[budget]\nmoney = 2\n", None, LadderWish(), {"money": "2"}),
        ("[budget]\ntokens = 9\n", None, LadderWish(), {"money": "5", "tokens": 9}),
    ],
)
def test_money_that_somebody_limits_is_not_spent_on_a_price_that_nobody_knows(
    opened: Opened, settings: str, tokens: int | None, ladder: LadderWish, budget: dict[str, object]
):
    """The ledger refuses an unknown price where money is limited and tokens are not."""
    with opened(settings) as shop:
        order, _ = loop_of(shop, LoopWish(max_tokens=tokens), ladder)
    assert {name: order.budget[name] for name in ("money", "tokens") if name in order.budget} == budget
