"""A settings file with many mistakes: whichever of them a command meets, all are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from ui.cli.console import Pawl

TABLES = """
[budget]
money = "much"
[sampling]
beams = 3
temperature = 9
[local]
threads = 0.5
[models]
default = "opnai/gpt-5"
[verify]
skipp = []
seconds = -1
budget = "x"
[permissions]
deny = ["Bsh(rm *)", "Edit(../x)"]
[[hooks.Stopp]]
[extensions]
tool = ["x"]
[trust]
folders = "~/src"
"""
IN_TABLES = (
    "budget.money must be an amount",
    "sampling.beams is not a field",
    "sampling.temperature must not be above 2",
    "local.threads must be a whole number",
    "no provider 'opnai'",
    "skipp is not a field; did you mean 'skip'?",
    "seconds must be above 0, not -1.0",
    "budget must be a number, not 'x'",
    "no tool 'Bsh'",
    "its path leads upwards",
    "no event 'Stopp'; did you mean 'Stop'?",
    "extensions.tool is not a field; did you mean 'tools'?",
    "trust.folders must be a list",
)
AT_THE_TOP = ("run_seconds must be a number, not 'x'", "'zzz' is not a setting", "no guardrail preset 'nope'")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


def missing(mistakes: tuple[str, ...], told: str) -> list[str]:
    return [mistake for mistake in mistakes if mistake not in told]


def test_all_mistakes_are_told_at_once_by_whatever_command(pawl: Pawl, file: Path):
    file.write_text(f"run_seconds = 'x'\nzzz = 1\npreset = 'nope'\n{TABLES}")
    told = pawl.json("policy", code=52)["message"]
    assert missing((*AT_THE_TOP, *IN_TABLES), told) == []
    assert told.count(str(file)) == 1


def test_a_command_that_meets_one_table_tells_of_all(pawl: Pawl, file: Path):
    file.write_text(TABLES)
    for words in (["models", "--offline"], ["verify"], ["permissions", "list"]):
        assert missing(IN_TABLES, pawl.json(*words, code=52)["message"]) == []


def test_a_command_that_reads_no_table_goes_on(pawl: Pawl, file: Path):
    file.write_text(TABLES.replace('folders = "~/src"', "").replace('deny = ["Bsh(rm *)", "Edit(../x)"]', ""))
    assert pawl("history").code == 0
