"""Sub-agents: whom a model may send, with what, and what comes back; and the hooks that hear of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from models.wire_scripts import Said
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_one_gate import Configured, configured, model, sent

__all__ = ["configured"]

REVIEWER = """\
---
name: code-reviewer
description: Reads a change and says what is wrong with it.
tools: Read, Grep, NotebookEdit
model: sonnet
---
You are the reviewer of this house. Canary: heron.
"""
FILES = {
    **SETTINGS,
    "app.py": "def after(number):\n    return number + 1\n",
    ".claude/agents/code-reviewer.md": REVIEWER,
    ".pawl/agents/typist.md": "---\ndescription: Writes notes.\n---\nYou write what you are told. Canary: stork.\n",
}
CONTEXT = '[models."here/*"]\ncontext = 8192\n'


def delegate(role: str, task: str) -> Said:
    return Said(calls=(("t1", "delegate", json.dumps({"role": role, "task": task})),), stop="calls")


def tools_of(body: bytes) -> set[str]:
    return {tool["function"]["name"] for tool in json.loads(body).get("tools", ())}


@pytest.mark.spec("D1", "F8")
def test_a_sub_agent_works_with_its_own_prompt_tools_and_dialogue_and_its_answer_comes_back(
    project: Project, configured: Configured
):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    looks = Said(calls=(("t1", "file_read", '{"path": "app.py"}'), ("t2", "file_write", "{}")), stop="calls")
    turns = (delegate("code-reviewer", "look at app.py"), looks, Said(text=("It is fine, says the walrus.",)))
    with model(configured, *turns) as playing:
        said = pawl("do", "--approve", "never", "--no-escalate", "write a note about app.py")
    first, second, third, fourth = (request.body for request in playing.requests[:4])
    assert "delegate" in tools_of(first) and "code-reviewer: Reads a change and says" in first.decode()
    assert "heron" in second.decode() and "heron" not in first.decode() and "look at app.py" in second.decode()
    assert tools_of(second) == {"file_read", "file_search", "list_files", "outline"}
    assert "write a note" not in str(json.loads(second)["messages"][-1])
    assert "'file_write' is not a tool of this stage" in third.decode()
    assert "says the walrus" in fourth.decode() and "return number" not in str(json.loads(fourth)["messages"][-1])
    assert "the sub-agent code-reviewer works" in said.err and "walrus" not in said.out
    roles = [one["role"] for one in pawl.json("requests")["requests"]]
    assert {"artisan", "code-reviewer"} <= set(roles)
    said = pawl("ask", "-c", "--model", "scripted:nothing.toml", "and now?")
    assert said.code != 0
    with model(configured) as playing:
        pawl("do", "-c", "--approve", "never", "--no-escalate", "go on")
    assert "look at app.py" not in [str(one.get("content")) for one in json.loads(playing.requests[0].body)["messages"]]


@pytest.mark.spec("D1")
def test_what_a_sub_agent_writes_is_part_of_the_change_and_is_verified_with_it(
    project: Project, configured: Configured
):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    writes = Said(calls=(("t1", "file_write", '{"path": "NOTES.md", "content": "one note\\n"}'),), stop="calls")
    with model(configured, delegate("typist", "write NOTES.md"), writes, Said(text=("Written.",))) as playing:
        done = pawl.json("do", "--approve", "never", "--no-escalate", "write NOTES.md with one note")
    assert "stork" in playing.requests[1].body.decode()
    assert [one["path"] for one in done["changes"]] == ["NOTES.md"]
    assert (pawl.workspace / "NOTES.md").read_text() == "one note\n"


@pytest.mark.spec("D1", "F8")
def test_sub_agents_of_a_folder_that_is_not_trusted_do_not_exist_and_nobody_else_may_be_sent(
    project: Project, configured: Configured
):
    pawl = project(FILES)
    with model(configured) as playing:
        pawl("do", "--approve", "never", "--no-escalate", "write a note about app.py")
    assert "delegate" not in tools_of(playing.requests[0].body) and "heron" not in sent(playing)
    assert pawl.json("agents")["agents"] == []
    assert pawl("trust").code == 0
    with model(configured, delegate("planner", "plan it"), delegate("nobody", "do it")) as playing:
        pawl("do", "--approve", "never", "--no-escalate", "write a note about app.py")
    assert "may not delegate to 'planner'" in sent(playing) and "may not delegate to 'nobody'" in sent(playing)


@pytest.mark.spec("F8")
def test_sub_agents_are_listed_shown_and_checked(project: Project):
    wrong = {
        ".pawl/agents/planner.md": "---\ndescription: mine\n---\nText.\n",
        ".pawl/agents/empty.md": "---\ndescription: nothing\n---\n",
        ".pawl/agents/sly.md": "---\ndescription: sly\n---\n# Mode: agent\n",
    }
    pawl = project({**FILES, **wrong})
    assert pawl("trust").code == 0
    found = {one["name"]: one for one in pawl.json("agents")["agents"]}
    assert set(found) == {"code-reviewer", "typist"}
    assert "file_write" in found["typist"]["tools"] and "file_write" not in found["code-reviewer"]["tools"]
    assert "stork" in pawl("agents", "show", "typist").out
    said = pawl("agents", "check")
    assert said.code == 52
    for words in (
        "a role of Pawl's own",
        "needs a description and a text",
        "Pawl's own prompts",
        "no tool 'NotebookEdit'",
    ):
        assert words in said.out, said.out
    said = pawl("agents", "show", "nobody")
    assert said.code != 0 and "there is no sub-agent 'nobody'" in said.err


@pytest.mark.spec("D1", "F8")
def test_hooks_hear_of_a_sub_agent_and_may_send_it_on(project: Project, configured: Configured, tmp_path: Path):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    seen = tmp_path / "seen"
    seen.mkdir()
    keep = tmp_path / "keep"
    keep.write_text(
        f'#!/bin/sh\ncat > "{seen}/$(date +%s%N).json"\n'
        f'[ "$1" = SubagentStop ] && [ ! -e "{seen}/once" ] || exit 0\n'
        f'touch "{seen}/once"; echo "read it again" >&2; exit 2\n'
    )
    keep.chmod(0o755)
    hooks = "".join(
        f'[[hooks.{event}]]\nhooks = [{{ type = "command", command = "{keep}", args = ["{event}"], host = true }}]\n'
        for event in ("SubagentStart", "SubagentStop", "Stop")
    )
    answers = (delegate("code-reviewer", "look"), Said(text=("First look.",)), Said(text=("Second look.",)))
    with model(configured, *answers, settings=hooks) as playing:
        said = pawl("do", "--approve", "never", "--no-escalate", "write a note about app.py")
    assert "read it again" in playing.requests[2].body.decode(), said
    assert "Second look." in playing.requests[3].body.decode()
    heard = [json.loads(one.read_text()) for one in sorted(seen.glob("*.json"))]
    assert [one["hook_event_name"] for one in heard[:3]] == ["SubagentStart", "SubagentStop", "SubagentStop"]
    assert {one["agent_type"] for one in heard[:3]} == {"code-reviewer"}
    assert [one["stop_hook_active"] for one in heard[1:3]] == [False, True]
    assert heard[1]["last_assistant_message"] == "First look."


@pytest.mark.spec("F8")
def test_hooks_hear_of_a_dialogue_that_is_shortened_and_may_keep_it(
    project: Project, configured: Configured, tmp_path: Path
):
    long = "x = 1  # " + "word " * 400 + "\n"
    pawl = project({**SETTINGS, **{f"part{number}.py": long * 20 for number in range(6)}})
    seen = tmp_path / "seen.txt"
    keep = tmp_path / "keep"
    keep.write_text(f'#!/bin/sh\necho "$1" >> "{seen}"\ncat >> "{seen}"\n')
    keep.chmod(0o755)
    hooks = "".join(
        f'[[hooks.{event}]]\nhooks = [{{ type = "command", command = "{keep}", args = ["{event}"], host = true }}]\n'
        for event in ("PreCompact", "PostCompact")
    )
    reads = [
        Said(calls=((f"t{number}", "file_read", json.dumps({"path": f"part{number}.py"})),), stop="calls")
        for number in range(6)
    ]
    with model(configured, *reads, settings=hooks + CONTEXT) as playing:
        pawl("ask", "what is in the parts?")
    assert len(playing.requests) >= 4
    told = seen.read_text()
    assert told.startswith("PreCompact") and "PostCompact" in told and '"trigger": "auto"' in told


@pytest.mark.spec("D1", "C3")
def test_a_sub_agent_has_a_share_of_the_budget_and_answers_from_what_it_knows_when_it_is_used_up(
    project: Project, configured: Configured
):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    looks = [Said(calls=((f"t{at}", "file_read", '{"path": "app.py"}'),), stop="calls") for at in range(8)]
    turns = (delegate("code-reviewer", "look at app.py"), *looks)
    with model(configured, *turns) as playing:
        pawl("do", "--approve", "never", "--no-escalate", "--max-turns", "8", "write a note about app.py")
    own = [request.body for request in playing.requests if "heron" in request.body.decode()]
    assert len(own) == 2 and tools_of(own[0]) and not tools_of(own[1])


def test_the_example_of_a_folder_that_configures_pawl_is_sound(project: Project):
    pawl = project(FILES)
    shutil.copytree(Path(__file__).parents[3] / "examples/extending", pawl.workspace, dirs_exist_ok=True)
    assert pawl("trust").code == 0
    assert "sql-reviewer" in {one["name"] for one in pawl.json("agents")["agents"]}
    assert "release-notes" in {one["name"] for one in pawl.json("skills")["skills"]}
    assert pawl("skills", "check").code == 0
