"""Tiers from YAML, and the ladder that flags and a file make together."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.escalation import LadderWish, ladder_of
from pawl.agent.tier_file import parsed_tiers
from pawl.core.errors import ConfigError, UsageError
from pawl.core.tiers import Escalation, TierMode

GOOD = """\
max_cost: 2.50
max_iterations: 20
models:
  critic: openai/gpt-5
tiers:
  - name: reflex
    mode: reflex
  - name: local
    mode: simple
    model: ollama/qwen3-coder
    samples: 5
    max_minutes: 10
  - name: strong
    mode: full
    models: {artisan: anthropic/claude}
    temperatures: {artisan: 0.5, critic: 0}
    max_iterations: 2
    max_cost: 1
    chaos: true
  - mode: team
"""


@pytest.mark.spec("E4")
def test_a_file_gives_names_modes_models_and_budgets():
    ladder = parsed_tiers(GOOD, "tiers.yaml")
    assert [(tier.name, tier.mode) for tier in ladder.tiers] == [
        ("reflex", TierMode.REFLEX),
        ("local", TierMode.SIMPLE),
        ("strong", TierMode.FULL),
        ("team-4", TierMode.TEAM),
    ]
    reflex, local, strong, _ = ladder.tiers
    assert (ladder.max_cost, ladder.max_iterations, ladder.summary) == (Decimal("2.50"), 20, 4_000)
    assert (local.model_for("artisan"), local.samples, local.iterations, local.max_minutes) == (
        "ollama/qwen3-coder", 5, 5, 10.0,
    )  # fmt: skip
    assert (strong.model_for("artisan"), strong.model_for("critic"), strong.model_for("librarian")) == (
        "anthropic/claude", "openai/gpt-5", "",
    )  # fmt: skip
    assert dict(strong.temperatures) == {"artisan": 0.5, "critic": 0.0}
    assert (strong.max_cost, strong.chaos, reflex.models) == (Decimal(1), True, ())


@pytest.mark.spec("E4")
def test_every_mistake_is_told_at_once_with_its_line_and_column():
    bad = (
        "max_cost: -1\ncolour: blue\nmodels: {pilot: a/b}\ntiers:\n  - name: one\n    mode: reflx\n"
        "  - name: one\n    mode: simple\n    model: nowhere/x\n    max_iterations: 2.5\n    mode: full\n"
        "  - mode: reflex\n    samples: 3\n  - 7\n  - {name: late, max_itterations: 3, mode: simple}\n"
    )
    with pytest.raises(ConfigError) as raised:
        parsed_tiers(bad, "t.yaml", lambda model: "no such provider" if model.startswith("nowhere") else "")
    assert raised.value.message.splitlines() == [
        "t.yaml:1:11: 'max_cost' must be between 0 and 1000000, not -1",
        "t.yaml:2:9: the file has no field 'colour'; it has tiers, models, max_cost, max_iterations, max_minutes",
        "t.yaml:3:17: models: no role 'pilot' takes part here; it is one of supervisor, lead, planner, worker, fixer, "
        "librarian, artisan, critic, chaos, reviewer",
        "t.yaml:6:11: tier 1: 'mode' must be one of reflex, simple, full, team, not 'reflx'",
        "t.yaml:7:11: tier 2: tier 1 has the name 'one' too",
        "t.yaml:9:12: tier 2: 'model': no such provider",
        "t.yaml:10:21: tier 2: 'max_iterations' must be a whole number, not '2.5'",
        "t.yaml:11:5: 'mode' occurs twice in tier 2",
        "t.yaml:13:14: tier 3: the reflex asks no model and runs once; it has no 'samples'",
        "t.yaml:14:5: tier 4 must be a mapping, such as 'name: value'",
        "t.yaml:15:35: tier 5 has no field 'max_itterations'; did you mean 'max_iterations'?",
    ]
    assert raised.value.exit_code == 52


@pytest.mark.spec("E4")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "t.yaml:1:1: the file is empty"),
        ("# only words\n", "the file is empty"),
        ("tiers: [", "this is not YAML"),
        ("tiers: []", "t.yaml:1:8: 'tiers' is empty"),
        ("max_cost: 1", "there are no tiers"),
        ("- a", "must be a mapping"),
        ("tiers: !!python/object:os.system [x]", "this is not YAML|must be a list|must be a mapping"),
        ("a: &x [*x]\ntiers: *x", "must be a mapping"),
    ],
)
def test_a_file_that_is_no_list_of_tiers_says_so(text: str, told: str):
    with pytest.raises(ConfigError, match=told):
        parsed_tiers(text, "t.yaml")


@given(st.text(max_size=200) | st.text("tiers:-{}[] \nmodesimpl&*!", max_size=200))
def test_whatever_the_file_holds_the_answer_is_a_ladder_or_a_named_place(text: str):
    try:
        assert isinstance(parsed_tiers(text, "t.yaml"), Escalation)
    except ConfigError as error:
        assert all(line.startswith("t.yaml:") for line in error.message.split("\nt.yaml")[:1])


@pytest.mark.spec("E3")
def test_the_usual_ladder_is_reflex_simple_full_within_limits():
    ladder, warnings = ladder_of(LadderWish())
    assert [(tier.name, tier.iterations) for tier in ladder.tiers] == [("reflex", 1), ("simple", 5), ("full", 3)]
    assert (ladder.max_cost, ladder.max_minutes, ladder.max_iterations) == (None, 240.0, 100)
    assert warnings == ()
    assert [tier.name for tier in ladder_of(LadderWish(simple=2, escalate=False))[0].tiers] == ["reflex", "simple"]
    assert [tier.name for tier in ladder_of(LadderWish(full=True, reflex=False))[0].tiers] == ["full"]
    for wrong in (
        LadderWish(simple=0),
        LadderWish(simple=2, full=True),
        LadderWish(max_minutes=0),
        LadderWish(samples=99),
        LadderWish(max_cost=Decimal(-1)),
        LadderWish(max_cost=Decimal("nan")),
        LadderWish(max_minutes=float("nan")),
    ):
        with pytest.raises(UsageError):
            ladder_of(wrong)


@pytest.mark.spec("E4")
def test_the_tier_file_wins_over_flags_which_are_warned_about(tmp_path: Path):
    file = tmp_path / "tiers.yaml"
    file.write_text(GOOD)
    wish = LadderWish(tiers=file, simple=9, escalate=False, max_cost=Decimal(9), max_minutes=30, max_iterations=7)
    ladder, warnings = ladder_of(wish)
    assert len(ladder.tiers) == 4
    assert (ladder.max_cost, ladder.max_iterations) == (Decimal("2.50"), 20)
    assert ladder.max_minutes == 30, "the file leaves it open"
    assert [warning.split()[0] for warning in warnings] == [
        "--simple", "--no-escalate", "--max-cost", "--max-iterations",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"none\.yaml' cannot be read: No such file or directory$"):
        ladder_of(LadderWish(tiers=tmp_path / "none.yaml"))


@pytest.mark.spec("E4")
def test_tiers_of_other_loops_are_told_each_difference():
    text = "tiers:\n  - mode: simple\n    maxIterations: 3\n    maxCost: 1\n    models: {artisan: gpt-5}\n"
    with pytest.raises(ConfigError) as found:
        parsed_tiers(text, "t.yaml", lambda model: f"did you mean 'openai/{model}'?")
    assert found.value.message.splitlines() == [
        "t.yaml:3:20: tier 1 has no field 'maxIterations'; did you mean 'max_iterations'?",
        "t.yaml:4:14: tier 1 has no field 'maxCost'; did you mean 'max_cost'?",
        "t.yaml:5:23: tier 1: 'models': 'artisan': did you mean 'openai/gpt-5'?",
    ]
