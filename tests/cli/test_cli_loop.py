"""`pawl loop` and `pawl audit` as a person and a program use them, through real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.projects import Project
from cli.test_cli_do import FILES, FIX, RIGHT, Script, script
from cli.test_cli_docs import COMMANDS, keys, section

from pawl.app.looping.tier_file import read_tiers
from pawl.models.names import ModelName
from pawl.models.providers import builtin

__all__ = ["script"]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiers.yaml"


@pytest.mark.spec("E3", "E5")
def test_a_loop_promotes_what_the_checks_accept_and_the_audit_tells_what_it_cost(project: Project, script: Script):
    pawl = project(FILES)
    said = pawl.json("loop", "--no-reflex", "--simple", "--model", script(FIX), "mend", "after")
    assert (said["exit_code"], said["delivery"], said["loop"]["attempts"][0]["ended"]) == (0, "DONE", "verified")
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    named = section("loop") + section("do") + section("history") + COMMANDS[: COMMANDS.index("## pawl run")]
    assert {key for key in keys(said) if f"`{key}`" not in named and f'"{key}"' not in named} == set()
    audit = pawl.json("audit")
    assert (audit["why"], audit["run"], audit["attempts"][0]["failing"]) == ("verified", said["run"], 0)
    assert {key for key in keys(audit) if f"`{key}`" not in section("audit")} == set()
    told = pawl("audit", said["run"])
    assert f"# Run {said['run']}" in told.out and "| 1 | simple | 1.1 |" in told.out
    assert pawl.json("audit", "--list")["runs"][0]["run"] == said["run"]
    assert pawl("audit", "r00000000").code == 42


@pytest.mark.spec("E4")
def test_the_tier_file_wins_over_flags_with_a_warning_and_its_mistakes_are_told_with_their_place(
    project: Project, script: Script
):
    pawl = project(FILES)
    file = pawl.workspace / "tiers.yaml"
    file.write_text(f"tiers:\n  - name: only\n    mode: simple\n    model: {script(FIX)}\n    max_iterations: 2\n")
    said = pawl("loop", "--full", "--tiers", str(file))
    assert said.code == 0, said
    assert f"! --full is overruled by the tier file {str(file)!r}" in said.err
    assert "── tier 1 of 1: only (simple; * scripted:" in said.err
    assert "tier      only: 1 attempts, " in said.out
    file.write_text("tiers:\n  - mode: simpel\n    model: nowhere\n")
    wrong = pawl("loop", "--tiers", str(file))
    assert wrong.code == 52
    assert f"{file}:2:11: tier 1: 'mode' must be one of" in wrong.err and f"{file}:3:12: " in wrong.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--simple", "0"], 42, "--simple 0 is not between"),
        (["--max-cost", "much"], 42, "is no amount"),
        (["nowhere/none.py", "mend it"], 42, "there is no file"),
        (["--resume"], 42, "no interrupted loop"),
        (["--model", "nobody/x"], 52, "nobody"),
        (["--test", "'"], 42, "cannot be read"),
    ],
)
def test_a_loop_that_cannot_begin_says_why(project: Project, words: list[str], code: int, told: str):
    pawl = project(FILES)
    said = pawl("loop", "--no-reflex", *words)
    assert said.code == code, said
    assert told in said.err


def test_the_example_of_tiers_can_be_used_as_it_is():
    def known(model: str) -> str:
        ModelName.parse(model, builtin())
        return ""

    assert [tier.name for tier in read_tiers(EXAMPLE, known).tiers] == ["reflex", "local", "larger"]
