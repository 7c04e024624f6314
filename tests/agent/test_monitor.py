"""The context monitor: marks for each agent, unknown agents are errors, estimates learn from what providers count."""

from __future__ import annotations

import json

import pytest

from pawl.agent.context_watch import ContextMonitor, EstimateError, Level, Measured
from pawl.core.dialogue import Usage
from pawl.core.errors import UnregisteredAgent

pytestmark = pytest.mark.spec("E1")


@pytest.fixture
def monitor() -> ContextMonitor:
    made = ContextMonitor()
    made.register("artisan", "p/m")
    return made


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (0, Level.OPTIMAL),
        (59_999, Level.OPTIMAL),
        (60_000, Level.WARNING),
        (80_000, Level.WARNING),
        (80_001, Level.CRITICAL),
    ],
)
def test_the_marks_are_at_60_and_80_thousand_tokens(monitor, tokens, level):
    reading = monitor.sending("artisan", tokens)
    assert (reading.tokens, reading.level) == (tokens, level)
    assert (reading.advice == "finalize, checkpoint, start fresh") is (level is Level.CRITICAL)


def test_an_agent_that_is_not_registered_is_an_error_everywhere(monitor):
    for asked in (
        lambda: monitor.reading("critic"),
        lambda: monitor.sending("critic", 1),
        lambda: monitor.answered("critic", Usage(input=1)),
        lambda: monitor.unregister("critic"),
    ):
        with pytest.raises(UnregisteredAgent, match="critic"):
            asked()
    monitor.unregister("artisan")
    with pytest.raises(UnregisteredAgent):
        monitor.reading("artisan")


def test_each_agent_has_its_own_context_and_starts_fresh_when_registered_again(monitor):
    monitor.register("critic", "p/m")
    monitor.sending("artisan", 90_000)
    assert (monitor.reading("artisan").level, monitor.reading("critic").level) == (Level.CRITICAL, Level.OPTIMAL)
    monitor.register("artisan", "p/m")
    assert monitor.reading("artisan").tokens == 0 and monitor.agents == ("artisan", "critic")


def test_the_providers_count_is_recorded_and_corrects_the_next_estimate(monitor):
    monitor.sending("artisan", 1000)
    assert monitor.answered("artisan", Usage(input=1200, output=100)).tokens == 1300
    monitor.sending("artisan", 2000)
    monitor.answered("artisan", Usage(input=2800))
    assert list(monitor.measured) == [
        Measured(agent="artisan", model="p/m", estimated=1000, counted=1200),
        Measured(agent="artisan", model="p/m", estimated=2000, counted=2800),
    ]
    assert monitor.errors["p/m"] == EstimateError(requests=2, ratio=pytest.approx(1.3))
    assert monitor.sending("artisan", 50_000).tokens == 65_000
    monitor.register("other", "p/another")
    assert monitor.sending("other", 50_000).tokens == 50_000


def test_pawls_own_figures_and_counts_of_something_else_teach_nothing(monitor):
    monitor.sending("artisan", 1000)
    assert monitor.answered("artisan", Usage(input=7, output=5, estimated=True)).tokens == 1005
    monitor.sending("artisan", 1000)
    monitor.answered("artisan", Usage(input=3))
    assert monitor.errors.get("p/m", EstimateError()) == EstimateError()


def test_what_was_learnt_outlives_the_process_and_nonsense_is_passed_over(monitor):
    monitor.sending("artisan", 1000)
    monitor.answered("artisan", Usage(input=1500))
    later = ContextMonitor()
    later.learn({**json.loads(json.dumps(monitor.to_json())), "a": "x", "b": [1, 900.0], "c": [1]})
    assert later.errors == {"p/m": EstimateError(requests=1, ratio=1.5)}


def test_the_mean_follows_a_change():
    error = EstimateError(requests=10_000, ratio=1.0)
    for _ in range(1000):
        error = error.after(100, 200)
    assert error.ratio > 1.9
