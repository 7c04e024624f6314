"""The models of a process, opened as the user configured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from models.provider_socket import head, hold, provider

from pawl.core.dialogue import Request, Sampling, user
from pawl.core.errors import BudgetExceeded, ModelTimedOut
from pawl.core.run import Reasoning
from pawl.models.router import ModelConfig, Models, model_config
from pawl.settings.config import load

TABLES = """
[prices."anthropic/*"]
input = 0
output = 1

[budget]
money = "0.01"
"""
ASK = Request(
    model="anthropic/claude-sonnet-4-5",
    system=(),
    messages=(user("hello"),),
    sampling=Sampling(max_output=1000),
    reasoning=Reasoning.ON,
)


def configured(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> ModelConfig:
    file = folder / "config.toml"
    file.write_text(text)
    return model_config(load({"HOME": str(folder), "PAWL_CONFIG": str(file), **(environment or {})}))


@pytest.mark.spec("E6")
def test_the_budget_of_a_run_holds_back_as_much_reasoning_as_the_user_allows_a_model(tmp_path: Path):
    with Models(configured(tmp_path, TABLES)) as models, models.router.ledger.reserve(ASK):
        assert models.router.ledger.held == Decimal("0.005096")
    more = f'{TABLES}[models."anthropic/claude-sonnet-*"]\nquirks = {{ reasoning_budget = 20000 }}\n'
    with Models(configured(tmp_path, more)) as models:
        ledger = models.router.ledger
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ASK)
        ledger.reserve(replace(ASK, reasoning=Reasoning.OFF)).release()


@pytest.mark.spec("E6")
def test_no_request_takes_longer_than_the_run_may(tmp_path: Path):
    with provider([head(), hold]) as server:
        text = f'[providers.here]\nwire = "openai"\nbase_url = "{server.url}"\n[budget]\nseconds = 0.2\n'
        with (
            Models(configured(tmp_path, text)) as models,
            pytest.raises(ModelTimedOut, match=r"not done within 0\.2 s"),
        ):
            list(models.router.stream(replace(ASK, model="here/m")))
