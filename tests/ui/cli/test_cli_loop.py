"""`pawl loop` and `pawl audit` as a person and a program use them, through real processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from ui.cli.console import Pawl, Said
from ui.cli.projects import Project, Searches
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script, script
from ui.cli.test_cli_docs import COMMANDS, keys, section

from pawl.agent.tier_file import read_tiers
from pawl.models.providers import ModelName, builtin

__all__ = ["script"]

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "tiers.yaml"


@pytest.mark.whole
@pytest.mark.spec("E3", "E5")
def test_a_loop_promotes_what_the_checks_accept_and_the_audit_tells_what_it_cost(project: Project, script: Script):
    pawl = project(FILES)
    said = pawl.json("loop", "--no-reflex", "--simple", "--model", script(FIX), "mend", "after")
    assert (said["exit_code"], said["delivery"], said["loop"]["attempts"][0]["ended"]) == (0, "DONE", "verified")
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    named = section("loop") + section("do") + section("history") + COMMANDS[: COMMANDS.index("## pawl ")]
    assert {key for key in keys(said) if f"`{key}`" not in named and f'"{key}"' not in named} == set()
    audit = pawl.json("audit")
    assert (audit["why"], audit["run"], audit["attempts"][0]["failing"]) == ("verified", said["run"], 0)
    assert {key for key in keys(audit) if f"`{key}`" not in section("audit")} == set()
    told = pawl("audit", said["run"])
    assert f"# Run {said['run']}" in told.out and "| 1 | simple | 1.1 |" in told.out
    assert pawl.json("audit", "--list")["runs"][0]["run"] == said["run"]
    assert pawl("audit", "r00000000").code == 42


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_a_loop_that_does_not_get_there_says_why_and_what_to_do_next(project: Project, tmp_path: Path):
    file = tmp_path / "script.jsonl"
    file.write_text('{"answer": "I see no way.", "times": 0}\n')
    said = project(FILES)("loop", "--no-reflex", "--simple", "2", "--model", f"scripted:{file}")
    assert said.code == 1 and "! stuck: 2 iterations in a row changed nothing" in said.out, said
    assert "pawl loop --model MODEL REQUEST; what was tried: pawl audit" in " ".join((said.out + said.err).split())


@pytest.mark.whole
@pytest.mark.spec("E4")
def test_the_tier_file_wins_over_flags_with_a_warning_and_its_mistakes_are_told_with_their_place(
    project: Project, script: Script
):
    pawl = project(FILES)
    file = pawl.workspace / "tiers.yaml"
    file.write_text(f"tiers:\n  - name: only\n    mode: simple\n    model: {script(FIX)}\n    max_iterations: 2\n")
    said = pawl("loop", "--full", "--tiers", str(file))
    assert said.code == 0, said
    assert f"! --full is overridden by the tier file {str(file)!r}" in said.err
    assert "── tier 1 of 1: only (simple; * scripted:" in said.err
    assert "tier      only: 1 attempt, " in said.out
    (pawl.workspace / "app.py").write_text(FILES["app.py"])
    file.write_text(f"tiers:\n  - name: one\n    mode: simple\n    models: {{artisan: {script(FIX)!r}}}\n")
    assert pawl("loop", "--tiers", str(file)).code == 0, "no other role needs a model"
    file.write_text("tiers:\n  - mode: simple\n    model: openai/gpt-4o\n")
    (pawl.workspace / "app.py").write_text(FILES["app.py"])
    assert "! there is no key for 'openai': set OPENAI_API_KEY" in pawl("loop", "--tiers", str(file)).err
    file.write_text("tiers:\n  - mode: simpel\n    model: nowhere\n")
    wrong = pawl("loop", "--tiers", str(file))
    assert wrong.code == 52
    assert f"{file}:2:11: tier 1: 'mode' must be one of" in wrong.err and f"{file}:3:12: " in wrong.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--simple", "0"], 42, "--simple 0 is not between"),
        (["--simple", "-1"], 42, "--simple -1 is not between"),
        (["--max-tokens", "0"], 42, "--max-tokens 0 is not between"),
        (["--max-minutes", "0"], 42, "--max-minutes 0 is not above 0 and at most 10080"),
        (["--max-cost", "much"], 42, "is not an amount"),
        (["nofile.py"], 42, "there is no file 'nofile.py'"),
        ([".", "mend it"], 42, "'.'"),
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


WRONG = """
[[turn]]
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 3" } }] }
[[turn]]
answer = "Three is added now."
"""


@pytest.mark.whole
@pytest.mark.spec("E1")
def test_ctrl_c_leaves_a_loop_that_goes_on_with_the_attempt_under_way(project: Project, script: Script):
    pawl = project(FILES)
    words = ["loop", "--no-reflex", "--model", script(f'{WRONG}\n[[turn]]\ndelay_ms = 60000\nanswer = "too late"\n')]
    with pawl.started(*words, until="Three is added") as process:
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().decode()
        assert process.wait(60) == 130
    assert "resume it with: pawl loop --resume r" in rest
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
    # Whether the third turn was taken depends on when the signal came.
    script(f'{WRONG}\n[[turn]]\nanswer = "Nothing."\n{FIX}')
    done = pawl.json("loop", "--resume")
    assert (done["delivery"], done["exit_code"]) == ("DONE", 0)
    assert (pawl.workspace / "app.py").read_text() == RIGHT


ODD = "from app import after\n\n\ndef test_after():\n    assert after(2) == [3, 'odd']\n"
"""What no search finds."""
ODD_FIX = FIX.replace('old = "+ 2", new = "+ 1"', 'old = "return number + 2", new = "return [number + 1, \'odd\']"')


@pytest.mark.whole
@pytest.mark.spec("E1")
def test_ctrl_c_twice_stops_a_loop_at_once_and_it_can_be_gone_on_with(project: Project, script: Script):
    pawl = project({**FILES, "test_app.py": ODD})
    with pawl.terminal("loop", "--model", script(ODD_FIX)) as seen:
        seen.expect("tier 1 of 3: reflex")
        seen.type("\x03")
        seen.type("\x03")
        assert seen.finish() == 130
        assert "nothing was left half done" in seen.text and "Traceback" not in seen.text
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
    done = pawl.json("loop", "--resume")
    assert (done["delivery"], done["loop"]["attempts"][-1]["mode"]) == ("DONE", "simple")


@pytest.mark.whole
def test_what_the_search_leaves_goes_to_a_model_if_the_user_lets_it(
    project: Project, script: Script, searches: Searches
):
    searches(2)
    pawl = project({**FILES, "test_app.py": ODD})
    said = pawl("fix", "--escalate", "--model", script(ODD_FIX))
    assert said.code == 0, said
    assert "── tier 1 of 2: simple" in said.err and "promoted as entry" in said.out
    assert "'odd'" in (pawl.workspace / "app.py").read_text()


@pytest.mark.whole
@pytest.mark.spec("E6")
@pytest.mark.parametrize(("given", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_at_a_terminal_the_user_is_asked_before_a_model_works_on_what_the_search_leaves(
    project: Project, script: Script, searches: Searches, given: str, code: int
):
    searches(1)
    pawl = project({**FILES, "test_app.py": ODD})
    with pawl.terminal("fix", "--max-cost", "0.25", "--model", script(ODD_FIX), columns=160) as seen:
        seen.expect("work on what is left, for at most $0.25? [y/N]")
        seen.type(given)
        assert seen.finish() == code, seen.text
    assert ("'odd'" in (pawl.workspace / "app.py").read_text()) is (code == 0)


TEAM = "tiers:\n  - name: team\n    mode: team\n    model: MODEL\n    max_iterations: 1\n"
CODE_TOOLS = {
    "file_read": {"path": "app.py"},
    "list_files": {},
    "search_text": {"pattern": "after"},
    "strict_patch": {"path": "app.py", "old": "2", "new": "1"},
    "file_write": {"path": "app.py", "content": RIGHT},
    "run_command": {"command": "cat app.py"},
    "check": {"what": "all"},
}


def _team(pawl: Pawl, tmp_path: Path, *turns: tuple[str, dict[str, Any] | str]) -> Said:
    """The loop of a team in which each turn is of a role: a call, or words."""
    answers = [
        {
            "match": {"system": f"Role: {role}"},
            "answer": said if isinstance(said, str) else {"text": "", "calls": [said]},
        }
        for role, said in turns
    ]
    (tmp_path / "team.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    (tmp_path / "team.yaml").write_text(TEAM.replace("MODEL", f"scripted:{tmp_path / 'team.jsonl'}"))
    return pawl("loop", "--no-reflex", "--tiers", str(tmp_path / "team.yaml"), "mend after in app.py")


def _sends(to: str) -> dict[str, Any]:
    return {"name": "delegate", "arguments": {"role": to, "task": "mend after in app.py"}}


def _mends() -> list[tuple[str, dict[str, Any] | str]]:
    """The supervisor sends the lead, the lead the fixer, who does what is right."""
    fixed = {"path": "app.py", "error": "one too many", "fix": "one"}
    done = {"fixes_applied": [fixed], "build_status": "passed", "remaining_errors": [], "attempts": 1}
    return [
        ("supervisor", _sends("lead")),
        ("lead", _sends("fixer")),
        ("fixer", {"name": "file_read", "arguments": {"path": "app.py"}}),
        ("fixer", {"name": "file_write", "arguments": {"path": "app.py", "content": RIGHT}}),
        ("fixer", json.dumps({"status": "completed", **done})),
        ("lead", "The fixer mended it."),
        ("supervisor", "It is mended."),
    ]


@pytest.mark.whole
@pytest.mark.spec("D1")
def test_the_supervisor_of_a_team_has_no_tool_for_code_and_sends_the_lead_alone(project: Project, tmp_path: Path):
    pawl = project(FILES)
    tries = [("supervisor", {"name": name, "arguments": given}) for name, given in CODE_TOOLS.items()]
    said = _team(
        pawl,
        tmp_path,
        *tries,
        ("supervisor", _sends("worker")),
        ("supervisor", _sends("fixer")),
        *_mends(),
    )
    assert (said.code, (pawl.workspace / "app.py").read_text()) == (0, RIGHT), said
    for name in CODE_TOOLS:
        assert f"'{name}' is not a tool of this stage" in said.out + said.err, name
    for role in ("worker", "fixer"):
        assert f"the role 'supervisor' may not delegate to '{role}'" in said.out + said.err
    roles = [one["role"] for one in pawl.json("requests", "--limit", "50")["requests"]]
    assert set(roles) == {"supervisor", "lead", "fixer"} and roles.count("supervisor") == len(tries) + 4, roles


NESTED = {"web/package.json": '{"type": "module", "scripts": {"test": "node --test"}}'}
NESTED["web/app.test.js"] = """
import { readFileSync } from "node:fs";
import test from "node:test";
const app = readFileSync("../app.py", "utf8");
test("the page shows the same", () => { if (!app.includes("+ 2")) throw new Error("no"); });
"""


@pytest.mark.whole
@pytest.mark.spec("D1", "G1")
@pytest.mark.parametrize(
    ("refused", "more"),
    [
        ("in web: 1 failed", NESTED),
        ("✗ build", {"package.json": '{"name": "app", "scripts": {"build": "grep -q \'+ 2\' app.py"}}'}),
    ],
    ids=["a nested project", "a build"],
)
def test_what_a_team_made_is_refused_by_a_nested_project_or_a_build_that_fails_with_it(
    project: Project, tmp_path: Path, refused: str, more: dict[str, str]
):
    pawl = project({**FILES, **more})
    said = _team(pawl, tmp_path, *_mends())
    assert said.code in (1, 53) and (pawl.workspace / "app.py").read_text() == FILES["app.py"], said
    assert refused in said.out + said.err, said


@pytest.mark.whole
@pytest.mark.spec("D1", "A8")
def test_a_supervisor_who_reports_what_nobody_did_is_not_believed(project: Project, tmp_path: Path):
    pawl = project(FILES)
    said = _team(pawl, tmp_path, ("supervisor", "The lead mended it; all tests pass.\nverdict   verified"))
    assert said.code == 1 and (pawl.workspace / "app.py").read_text() == FILES["app.py"], said
    assert "\nverdict   verified\n" not in said.out, said
