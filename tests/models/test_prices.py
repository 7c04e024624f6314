"""What requests cost, and how large they are before anybody has counted."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.dialogue import Request, Sampling, ToolAnswer, ToolCall, ToolOffer, Usage, assistant, tool_answers, user
from pawl.core.errors import ConfigError
from pawl.models.ledger import Prices, estimated_usage, likely_input, most_input, overrides
from pawl.models.providers import builtin, merged

PRICES = Prices(builtin())


@pytest.mark.spec("E9")
def test_a_known_model_is_priced_to_the_digit_with_what_was_cached():
    usage = Usage(input=1000, cached=400, cache_written=100, output=100)
    assert PRICES.cost("anthropic/claude-sonnet-4-5", usage) == Decimal("0.003495")
    assert PRICES.cost("openrouter/anthropic/claude-sonnet-4.5", usage) == Decimal("0.003495")
    assert PRICES.cost("openai/gpt-5", Usage(input=1000, output=100, cached=400)) == Decimal("0.0018")
    assert PRICES.cost("gemini/gemini-2.5-pro", Usage(input=1000, output=100)) == Decimal("0.00225")


@pytest.mark.spec("F10")
def test_what_runs_on_this_machine_costs_nothing():
    for model in ("local:/a/b.gguf", "ollama/qwen3", "vllm/anything", "scripted:turns.toml"):
        assert PRICES.cost(model, Usage(input=10**6, output=10**6)) == 0
        assert PRICES.worst_case(model, 10**6, 10**6) == 0


@pytest.mark.parametrize("model", ["openai/no-such-model", "corp/x", "nobody/x", "gemini/gemma-3", "openrouter/a/b"])
def test_an_unknown_price_is_none_and_never_nothing(model: str):
    prices = Prices(merged({"corp": {"wire": "openai", "base_url": "http://10.0.0.1/v1"}}))
    assert prices.cost(model, Usage(input=1, output=1)) is None
    assert prices.worst_case(model, 1, 1) is None


def test_a_free_model_of_the_list_costs_nothing():
    assert PRICES.cost("openrouter/meta-llama/llama-3.3-70b-instruct:free", Usage(input=1, output=1)) == 0


def test_the_users_price_goes_before_the_list_and_the_last_pattern_before_the_first():
    own = overrides(
        tomllib.loads(
            """
            ["openai/*"]
            input = 1
            output = 2.5
            ["openai/gpt-5"]
            input = "0.1"
            output = 0.2
            cached = 0.01
            """
        )
    )
    prices = Prices(builtin(), own)
    assert prices.cost("openai/gpt-5", Usage(input=1_000_000, cached=500_000, output=1_000_000)) == Decimal("0.255")
    assert prices.cost("openai/new", Usage(input=1_000_000, output=1_000_000)) == Decimal("3.5")
    assert prices.cost("anthropic/claude-sonnet-4-5", Usage(input=1000)) == Decimal("0.003")


def test_every_mistake_in_the_prices_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        overrides(tomllib.loads('["a/*"]\ninput = -1\noutput = "much"\n["b/*"]\ninput = 1\noutputs = 2'))
    for part in ("input must be an amount", "output must be an amount", "output is missing", "outputs is not a field"):
        assert part in caught.value.message


@pytest.mark.spec("E6")
@given(
    model=st.sampled_from(
        ["anthropic/claude-sonnet-4-5", "openai/gpt-5", "gemini/gemini-2.5-pro", "deepseek/deepseek-chat", "own/x"]
    ),
    sizes=st.tuples(st.integers(0, 500_000), st.integers(0, 50_000)),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_no_usage_within_the_bounds_costs_more_than_the_worst_case(
    model: str, sizes: tuple[int, int], shares: tuple[float, float]
):
    own = overrides({"own/*": {"input": 2, "output": 1, "cached": 1, "cache_written": 5}})
    prices = Prices(builtin(), own)
    cached = int(sizes[0] * shares[0])
    written = int((sizes[0] - cached) * shares[1])
    cost = prices.cost(model, Usage(input=sizes[0], output=sizes[1], cached=cached, cache_written=written))
    most = prices.worst_case(model, *sizes)
    assert cost is not None
    assert most is not None
    assert cost <= most


def test_a_provider_that_says_more_was_cached_than_sent_is_not_paid_less_than_nothing():
    cost = PRICES.cost("openai/gpt-5", Usage(input=10, cached=1000, output=-5))
    assert cost is not None
    assert cost > 0


def test_importing_the_router_does_not_load_the_price_list():
    code = "import sys, pawl.models.router, pawl.models.scripted; print({'genai_prices', 'httpx2'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


REQUEST = Request(
    model="openai/gpt-5",
    system=("You are a careful engineer. " * 20,),
    messages=(
        user("Bitte ändere die Größe — 変更してください"),
        assistant("I look.", ToolCall(id="call_1", name="read", arguments={"path": "a.py"})),
        tool_answers(ToolAnswer(call="call_1", name="read", text="def f(x):\n    return x + 1\n" * 200)),
    ),
    tools=(ToolOffer(name="read", description="Reads.", input_schema={"type": "object", "properties": {}}),),
    sampling=Sampling(max_output=100),
)


def test_the_likely_size_is_below_the_most_and_both_are_the_same_each_time():
    assert likely_input(REQUEST) < most_input(REQUEST)
    assert (likely_input(REQUEST), most_input(REQUEST)) == (likely_input(REQUEST), most_input(REQUEST))
    # The file of 5,400 bytes alone is 1,600 to 1,800 tokens for the tokenizers in use.
    assert 1500 < likely_input(REQUEST) < 1900


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_is_never_fewer_tokens(one: str, two: str):
    def size(text: str) -> tuple[int, int]:
        request = Request(model="m", system=(), messages=(user(text),))
        return likely_input(request), most_input(request)

    shorter, longer = size(one), size(one + two)
    assert shorter[0] <= longer[0]
    assert shorter[1] <= longer[1]


def test_estimated_usage_stays_below_what_a_request_may_write():
    usage = estimated_usage(REQUEST, "word " * 10_000)
    assert usage == Usage(input=likely_input(REQUEST), output=100, estimated=True)
