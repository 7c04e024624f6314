"""Skills: what a model is told of them, how it reads one, and what a person sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from models.wire_scripts import Said
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_one_gate import Configured, configured, model, sent

from pawl import agent as pawl_agent
from pawl.core.typed import front_matter

__all__ = ["configured"]

SKILL = """\
---
name: release-notes
description: >
  How release notes are written here.
  For requests about releases.
---
Newest first, then ${CLAUDE_SKILL_DIR}/references/form.md. Canary: penguin.
"""
FILES = {
    **SETTINGS,
    "app.py": "def after(number):\n    return number + 1\n",
    ".agents/skills/release-notes/SKILL.md": SKILL,
    ".agents/skills/release-notes/references/form.md": "A line for each change: walrus.\n",
    ".agents/skills/release-notes/scripts/count.sh": "echo counted by the skill\n",
}
READS = Said(
    calls=(
        ("t1", "read_skill", '{"name": "release-notes"}'),
        ("t2", "read_skill", '{"name": "release-notes", "file": "references/form.md"}'),
        ("t3", "read_skill", '{"name": "release-notes", "file": "../../../app.py"}'),
        ("t4", "read_skill", '{"name": "no-such-skill"}'),
        ("t5", "run_command", '{"command": "sh .agents/skills/release-notes/scripts/count.sh"}'),
    ),
    stop="calls",
)


@pytest.mark.spec("D5", "F8")
def test_a_model_is_told_of_a_skill_and_reads_it_its_files_and_nothing_else(project: Project, configured: Configured):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    with model(configured, READS) as playing:
        pawl("do", "--approve", "never", "--no-escalate", "write the notes of the release to NOTES.md")
    first, second = (request.body.decode() for request in playing.requests[:2])
    assert "release-notes: How release notes are written here. For requests about releases." in first
    assert "penguin" not in first and "walrus" not in first
    assert "penguin" in second and "walrus" in second and ".agents/skills/release-notes/references/form.md" in second
    assert "has no file '../../../app.py'" in second and "there is no skill 'no-such-skill'" in second
    assert "counted by the skill" in second


@pytest.mark.spec("D5", "F8")
def test_skills_of_a_folder_that_is_not_trusted_or_denied_by_a_rule_are_not_told(
    project: Project, configured: Configured
):
    pawl = project(FILES)
    with model(configured, READS) as playing:
        pawl("do", "--approve", "never", "--no-escalate", "write the notes of the release to NOTES.md")
        assert "release-notes" not in playing.requests[0].body.decode()
    assert pawl("trust").code == 0
    with model(configured, settings='[permissions]\ndeny = ["Read(.agents/**)"]\n') as playing:
        pawl("ask", "what is in the notes of the release?")
    assert "penguin" not in sent(playing) and "release-notes" not in sent(playing)


@pytest.mark.spec("D5")
def test_what_comes_with_pawl_is_told_where_the_request_has_a_word_of_it(project: Project, configured: Configured):
    pawl = project({name: text for name, text in FILES.items() if not name.startswith(".agents")})
    for request, is_told in (("refactor app.py: extract the constant", True), ("what is in app.py?", False)):
        with model(configured) as playing:
            pawl("ask", request)
        body = json.loads(playing.requests[0].body)
        assert ("refactoring: " in str(body["messages"])) is is_told
        assert any(tool["function"]["name"] == "read_skill" for tool in body.get("tools", ())) is is_told


@pytest.mark.spec("D5", "F8")
def test_the_skill_of_the_project_goes_before_the_users_and_that_before_the_one_of_pawl(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for folder, text in ((".agents/skills", "of my home"), (".claude/skills", "of the other folder")):
        path = home / folder / "refactoring/SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: refactoring\ndescription: {text}\n---\nText {text}.\n")
    pawl = project(
        {**FILES, ".pawl/skills/migration/SKILL.md": "---\nname: migration\ndescription: here\n---\nHere.\n"}
    )
    assert pawl("trust").code == 0
    found = {one["name"]: one["description"] for one in pawl.json("skills")["skills"]}
    assert (found["refactoring"], found["migration"]) == ("of my home", "here")
    assert found["writing-tests"].startswith("How to write tests")
    shown = pawl.json("skills", "show", "release-notes")
    assert shown["files"] == ["SKILL.md", "references/form.md", "scripts/count.sh"]


@pytest.mark.spec("F8")
def test_every_fault_of_a_skill_is_told(project: Project):
    pawl = project(
        {
            ".pawl/skills/Bad_Name/SKILL.md": "---\nname: other\n---\n",
            ".pawl/skills/broken/SKILL.md": "---\nname: broken\ndescription: [what\n---\nText.\n",
            ".pawl/skills/forked/SKILL.md": "---\nname: forked\ndescription: d\ncontext: fork\n---\nText.\n",
            ".pawl/skills/long/SKILL.md": f"---\nname: long\ndescription: {'word ' * 300}\n---\n" + "line\n" * 600,
        }
    )
    assert pawl("trust").code == 0
    said = pawl("skills", "check")
    assert said.code == 52
    for words in (
        "lowercase letters",
        "'other' is not that of its folder",
        "no description",
        "not YAML",
        "1024",
        "500 lines",
        "'context' has no effect",
    ):
        assert words in said.out, words


GROWS = "\n".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 7))
TRAPS = {
    "grows": (f"a0: &a0 [lol]\n{GROWS}\ndescription: *a6\nargument-hint: *a6", "it has no description"),
    "odd-date": ("description: d\nmetadata: {at: 2026-99-99, number: !!int x}", "every skill is valid"),
    "long": ("description: d\n" + "key: {a: [1, 2, 3]}\n" * 1_000, "its front matter has over 16,000 characters"),
}


@pytest.mark.parametrize("way", TRAPS)
def test_front_matter_that_is_a_trap_costs_nothing_and_the_other_skills_count(project: Project, way: str):
    fields, told = TRAPS[way]
    pawl = project({**FILES, f".agents/skills/{way}/SKILL.md": f"---\nname: {way}\n{fields}\n---\nText.\n"})
    assert pawl("trust").code == 0
    checked = pawl("skills", "check")
    assert told in checked.out and len(checked.out) < 1_000, checked.err
    listed = {one["name"] for one in pawl.json("skills")["skills"]}
    assert "release-notes" in listed and (way in listed) is (way == "odd-date")


def test_a_wrong_call_says_what_to_type(project: Project):
    pawl = project(FILES)
    said = pawl("skills", "show")
    assert said.code == 42 and "'pawl skills show' needs a name" in said.err and "lists them" in said.err
    said = pawl("skills", "show", "nothing")
    assert said.code != 0 and "there is no skill 'nothing'" in said.err


def test_the_skills_that_come_with_pawl_are_sound(project: Project):
    pawl = project(SETTINGS)
    assert pawl("skills", "check").out == "every skill is valid\n"
    for one in (Path(pawl_agent.__file__).parent / "skills").glob("*/SKILL.md"):
        # The official validator takes no field that the specification does not have.
        assert set(front_matter(one.read_text())[0]) == {"name", "description"}
