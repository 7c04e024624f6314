"""`pawl policy` and `pawl prompts`: who may do what, what is sent, and whose files may change it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ui.cli.console import Pawl

from pawl.core.run import Mode, RoleName, Stage

READS = "file_read file_search list_files outline read_skill web_fetch web_search"

Settings = Callable[[str], None]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Writes the user's settings; the folder around them is the user's own."""

    def write(text: str) -> None:
        (tmp_path / "config.toml").write_text(text)
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))

    write("")
    return write


def override(folder: Path, name: str, text: str) -> Path:
    path = folder / "prompts" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.spec("C1")
def test_the_table_has_a_line_for_every_mode_stage_and_role(pawl: Pawl):
    rows = pawl.json("policy")["rows"]
    assert {(row["mode"], row["stage"], row["role"]) for row in rows} == {
        (mode, stage, role) for mode in Mode for stage in Stage for role in RoleName
    }
    assert len(pawl("policy").lines) == len(rows) + 1


@pytest.mark.spec("C1")
def test_the_table_is_filtered_by_mode_stage_and_role(pawl: Pawl):
    said = pawl("policy", "--mode", "chat", "--stage", "act", "--role", "artisan")
    assert said.lines[1].split(maxsplit=4) == ["chat", "act", "artisan", "micro", READS]
    assert len(said.lines) == 2
    stages = {line.split()[1] for line in pawl("policy", "--mode", "agent", "--role", "worker").lines[1:]}
    assert stages == set(Stage)
    assert pawl("policy", "--role", "nobody").code == 2


@pytest.mark.spec("C1")
def test_a_line_of_the_table_as_json_names_everything_that_is_decided(pawl: Pawl):
    words = ("policy", "--mode", "agent", "--stage", "plan", "--role", "planner")
    assert pawl.json(*words)["rows"] == [
        {
            "mode": "agent",
            "stage": "plan",
            "role": "planner",
            "tools": READS.split(),
            "prompts": ["base", "roles/planner", "project_root", "modes/agent", "stages/plan", "reasoning/field"],
            "reasoning": "micro",
            "approval": "final",
            "contract": "tasks",
        }
    ]


def test_as_markdown_the_whole_table_is_written_and_nothing_else(pawl: Pawl):
    said = pawl("policy", "--markdown")
    assert said.code == 0 and said.err == ""
    assert re.findall("^### (.*)", said.out, re.MULTILINE) == [
        "A kind of tool",
        "What a stage allows",
        "Roles",
        "What a role has",
    ]
    for more in (["--mode", "chat"], ["--role", "artisan"], ["--json"]):
        assert pawl("policy", "--markdown", *more).code == 42


@pytest.mark.spec("C2")
def test_every_prompt_is_listed_with_its_purpose(pawl: Pawl):
    prompts = pawl.json("prompts", "list")["prompts"]
    assert {"base", "modes/chat", "roles/artisan", "stages/act", "corrections/cut_off"} <= {p["name"] for p in prompts}
    assert [p["name"] for p in prompts if not p["purpose"]] == []
    assert len(pawl("prompts", "list").lines) == len(prompts) + 1


@pytest.mark.spec("C2")
def test_a_prompt_is_shown_as_it_is_written(pawl: Pawl):
    body = pawl.json("prompts", "show", "stages/act")
    assert body["text"].startswith("# Stage: act") and body["source"] == "prompts/stages/act.md"
    assert pawl("prompts", "show", "stages/act").out == f"{body['text']}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show"], "'pawl prompts list' lists them"),
        (["show", "stages/akt"], "did you mean 'stages/act'?"),
        (["show", "../../etc/passwd"], "'pawl prompts list' lists them"),
        (["list", "base"], "show takes a name"),
    ],
)
def test_a_wrong_request_says_what_would_be_right(pawl: Pawl, words: list[str], said: str):
    ended = pawl("prompts", *words)
    assert (ended.code, ended.out) == (42, "")
    assert said in ended.err


@pytest.mark.spec("C2")
def test_the_prompts_that_come_with_pawl_are_sound(pawl: Pawl):
    assert pawl("prompts", "check").out == "every prompt is valid\n"
    assert pawl.json("prompts", "check") == {"faults": []}


@pytest.mark.spec("C2")
def test_the_users_own_prompt_takes_the_place_of_pawls_and_is_what_is_sent(
    pawl: Pawl, settings: Settings, tmp_path: Path
):
    path = override(tmp_path, "roles/artisan", "---\npurpose: Mine.\n---\nAnswer in verse.\n")
    assert pawl("prompts", "show", "roles/artisan").out == "Answer in verse.\n"
    (line,) = (line for line in pawl("prompts", "list").lines if line.startswith("roles/artisan "))
    assert line.split(maxsplit=1)[1].split("  ", 1)[0] == "Mine." and line.endswith(str(path))
    script = tmp_path / "script.toml"
    script.write_text('[[turn]]\nmatch = { system = "Answer in verse." }\nanswer = "So be it."\n')
    assert pawl("ask", "--model", f"scripted:{script}", "hello").out == "So be it.\n"


@pytest.mark.spec("C2")
def test_every_fault_of_an_override_is_named_with_its_file_and_line(pawl: Pawl, settings: Settings, tmp_path: Path):
    stage = override(tmp_path, "stages/act", "# Stage: act\n\nIn {{project_rot}}.\n")
    base = override(tmp_path, "base", "You are Pawl.\nThey said {{user_input}}.\n")
    stray = override(tmp_path, "stages/akt", "Typo.\n")
    faults = [
        (f"{base}:2:", "may not stand in 'base'"),
        (f"{stage}:3:", "{{project_rot}} is not a variable; did you mean 'project_root'?"),
        (f"{stray}:1:", "there is no prompt 'stages/akt' to override; did you mean 'stages/act'?"),
    ]
    checked = pawl("prompts", "check")
    assert checked.code == 52
    for place, what in faults:
        assert any(line.startswith(place) and what in line for line in checked.lines)
    body = pawl.json("prompts", "check", code=52)
    assert {(fault["path"], fault["line"]) for fault in body["faults"]} == {
        (str(base), 2),
        (str(stage), 3),
        (str(stray), 1),
    }
    script = tmp_path / "script.toml"
    script.write_text('[[turn]]\nanswer = "Never."\n')
    for words in (["prompts", "list"], ["ask", "--model", f"scripted:{script}", "hello"]):
        said = pawl(*words)
        assert (said.code, said.out) == (52, "")
        assert all(place in said.err and what in said.err for place, what in faults)


@pytest.mark.spec("C1", "C2")
def test_an_override_cannot_take_the_mode_out_of_what_is_sent(pawl: Pawl, settings: Settings, tmp_path: Path):
    override(tmp_path, "modes/chat", "# Mode: agent\nChange whatever you like.\n")
    said = pawl("prompts", "check")
    assert said.code == 52 and "must begin with the line '# Mode: chat'" in said.out


@pytest.mark.spec("C2")
def test_a_workspace_changes_prompts_only_where_the_user_trusts_it(pawl: Pawl, settings: Settings, tmp_path: Path):
    path = override(pawl.workspace / ".pawl", "roles/artisan", "The repository speaks.\n")
    override(tmp_path, "roles/artisan", "The user speaks.\n")
    assert pawl("prompts", "show", "roles/artisan").out == "The user speaks.\n"
    settings(f'[trust]\nfolders = ["{pawl.workspace}-other"]\n')
    assert pawl("prompts", "show", "roles/artisan").out == "The user speaks.\n"
    settings(f'[trust]\nfolders = ["{pawl.workspace.parent}"]\n')
    assert pawl.json("prompts", "show", "roles/artisan")["source"] == str(path)


def test_a_broken_prompt_of_an_untrusted_workspace_is_not_even_looked_at(pawl: Pawl, settings: Settings):
    override(pawl.workspace / ".pawl", "roles/artisan", "{{what}}\n")
    assert pawl("prompts", "check").code == 0
    settings(f'[trust]\nfolders = ["{pawl.workspace}"]\n')
    assert pawl("prompts", "check").code == 52


@pytest.mark.parametrize("table", ['folders = "/tmp"', "folders = [1]", "all = true"])
def test_trust_that_cannot_be_read_trusts_nobody(pawl: Pawl, settings: Settings, table: str):
    settings(f"[trust]\n{table}\n")
    said = pawl("prompts", "list")
    assert said.code == 52 and "trust" in said.err
