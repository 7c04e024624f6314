"""Sub-agents: whom a model may send, with what, and what comes back; and the hooks that hear of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from models.wire_scripts import Said
from ui.cli.console import PAWL, Pawl
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


@pytest.mark.whole
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


@pytest.mark.whole
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


@pytest.mark.whole
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


def head(fields: str) -> str:
    return f"---\ndescription: one\n{fields}---\nText.\n"


@pytest.mark.spec("F8", "D5")
def test_the_fields_of_a_sub_agent_are_read_as_yaml_and_one_that_cannot_be_read_gives_it_nothing(project: Project):
    agents = {
        "listed": head("tools:\n  - Read\n  - Grep\n"),
        "inline": head("tools: [Read, 'Grep']\n"),
        "none": head("tools: []\n"),
        "without": head("disallowedTools:\n  - Bash\n  - Edit\n  - WebFetch\n  - WebSearch\n"),
        "plans": head("permissionMode: plan\n"),
        "block": "---\ndescription: |\n  Two lines,\n  one text.\ntools: Read\n---\nText.\n",
        "starred": head("tools: *\n"),
    }
    wrong = {
        "mapping": head("tools: {Read: true}\n"),
        "empty": head("tools:\n"),
        "table": head("disallowedTools:\n  Bash: true\n"),
        "broken": head("color: [\ndisallowedTools: >-\n  Bash\n"),
        "turns": head("maxTurns: some\n"),
    }
    notes = {
        "noted": head(
            "tools: Bash(git diff *), Read\nisolation: worktree\npermissionMode: acceptEdits\nskills: nosuch\n"
        )
    }
    every = {**agents, **wrong, **notes}
    pawl = project({**SETTINGS, **{f".claude/agents/{name}.md": text for name, text in every.items()}})
    assert pawl("trust").code == 0
    found = {one["name"]: one for one in pawl.json("agents")["agents"]}
    assert set(found) == {*agents, *notes}
    tools = {name: set(one["tools"]) for name, one in found.items()}
    reads = {"file_read", "file_search", "list_files", "outline"}
    assert reads <= tools["listed"] == tools["inline"] and tools["none"] == set()
    changing = {"run_command", "file_write", "strict_patch"}
    assert changing <= tools["starred"]
    for name in ("listed", "without", "plans", "block"):
        assert reads <= tools[name] and not tools[name] & changing, name
    assert found["block"]["description"] == "Two lines, one text."
    faults = {(Path(one["path"]).stem, one["what"]) for one in pawl.json("agents", "check", code=52)["faults"]}
    assert {name for name, _ in faults} == {*wrong, *notes, "starred"}
    said = " ".join(what for name, what in faults if name == "noted")
    assert reads <= tools["noted"] and "run_command" not in tools["noted"]
    for words in ("it works without Bash", "'isolation' has no", "permissionMode 'acceptEdits'", "no skill 'nosuch'"):
        assert words in said, said


@pytest.mark.spec("F8", "D1")
def test_a_sub_agent_begins_with_its_skills_and_has_no_more_turns_than_its_file_says(
    project: Project, configured: Configured
):
    skill = "---\nname: form\ndescription: How notes look.\n---\nNotes are short. Canary: ibis.\n"
    reviewer = REVIEWER.replace("model: sonnet", "skills: [form]\nmaxTurns: 2")
    pawl = project({**FILES, ".claude/agents/code-reviewer.md": reviewer, ".claude/skills/form/SKILL.md": skill})
    assert pawl("trust").code == 0
    looks = [Said(calls=((f"t{at}", "file_read", '{"path": "app.py"}'),), stop="calls") for at in range(4)]
    with model(configured, delegate("code-reviewer", "look at app.py"), *looks) as playing:
        pawl("do", "--approve", "never", "--no-escalate", "write a note about app.py")
    own = [request.body for request in playing.requests if "heron" in request.body.decode()]
    assert len(own) == 2 and tools_of(own[0]) and not tools_of(own[1])
    assert all("ibis" in body.decode() for body in own) and "ibis" not in playing.requests[0].body.decode()


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
        for event in (
            "SessionStart",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
        )
    )
    reads = Said(calls=tuple((f"t{at}", "file_read", f'{{"path": "{at}pp.py"}}') for at in "ab"), stop="calls")
    answers = (delegate("code-reviewer", "look"), reads, Said(text=("First look.",)), Said(text=("Second look.",)))
    with model(configured, *answers, settings=hooks) as playing:
        said = pawl("do", "--approve", "never", "--no-escalate", "write a note about app.py")
    assert "read it again" in playing.requests[3].body.decode(), said
    assert "Second look." in playing.requests[4].body.decode()
    every = [json.loads(one.read_text()) for one in sorted(seen.glob("*.json"))]
    reads_of = [one for one in every if one.get("tool_name") == "file_read" and "agent_type" in one]
    assert [(one["hook_event_name"], one["agent_type"]) for one in reads_of] == [
        (event, "code-reviewer") for event in ("PreToolUse", "PostToolUse", "PreToolUse", "PostToolUseFailure")
    ]
    assert reads_of[-1]["is_interrupt"] is False and "agent_type" not in every[0]
    assert every[0]["hook_event_name"] == "SessionStart" and every[0]["model"] == "here/m"
    heard = [one for one in every[1:] if "tool_name" not in one]
    assert [one["hook_event_name"] for one in heard[:3]] == ["SubagentStart", "SubagentStop", "SubagentStop"]
    assert {one["agent_type"] for one in heard[:3]} == {"code-reviewer"}
    assert [one["stop_hook_active"] for one in heard[1:3]] == [False, True]
    assert heard[1]["last_assistant_message"] == "First look." and heard[1]["agent_transcript_path"] == ""


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
    assert json.loads(told.rpartition("PostCompact\n")[2].splitlines()[0])["compact_summary"]


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


TOGETHER = {
    **FILES,
    ".pawl/agents/clerk.md": "---\ndescription: Keeps lists.\n---\nYou keep lists. Canary: crane.\n",
}
SENT = """\
[[turn]]
match = { user = "write the notes", tools = ["delegate"], step = 0 }
answer = { calls = [
    { name = "delegate", arguments = { role = "typist", task = "write your note" } },
    { name = "delegate", arguments = { role = "clerk", task = "write your list" } },
] }
[[turn]]
match = { system = "stork", step = 0 }
answer = { calls = [{ name = "file_write", arguments = { path = "%(typist)s", content = "a note\\n" } }] }
[[turn]]
match = { system = "stork", step = 1 }
answer = "The note is written."
[[turn]]
match = { system = "crane", step = 0 }
answer = { calls = [
    { name = "file_search", arguments = { query = "a note" } },
    { name = "file_write", arguments = { path = "%(clerk)s", content = "a list\\n" } },
] }
[[turn]]
match = { system = "crane", step = 1, tool_regex = "no match|nothing|0 " }
answer = "The list is written."
[[turn]]
times = 0
match = { tool_regex = "%(then)s" }
answer = "Both are back."
[[turn]]
times = 0
match = { schema = true }
answer = '{"parts": []}'
"""
MEETS = """\
#!/bin/sh
told=$(cat)
case $told in
    *typist*) echo here > "$1/one" && cat "$1/two" > /dev/null && echo typist >> "$1/met" ;;
    *clerk*) cat "$1/one" > /dev/null && echo here > "$1/two" && echo clerk >> "$1/met" ;;
esac
"""


def together(project: Project, tmp_path: Path, *, clerk: str = "LIST.md", then: str = "The list is written") -> Pawl:
    pawl = project(TOGETHER)
    assert pawl("trust").code == 0
    (tmp_path / "sent.toml").write_text(SENT % {"typist": "NOTES.md", "clerk": clerk, "then": then})
    return pawl


def written(pawl: Pawl, tmp_path: Path) -> dict:
    words = ("do", "--approve", "never", "--no-escalate", "--model", f"scripted:{tmp_path / 'sent.toml'}")
    return pawl.json(*words, "write the notes NOTES.md and LIST.md")


@pytest.mark.whole
@pytest.mark.spec("D1", "D2")
def test_sub_agents_of_one_answer_work_at_the_same_time_on_benches_of_their_own(
    project: Project, configured: Configured, tmp_path: Path
):
    pawl = together(project, tmp_path)
    meets = tmp_path / "meets"
    meets.write_text(MEETS)
    meets.chmod(0o755)
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    hook = f'{{ type = "command", command = "{meets}", args = ["{tmp_path}"], host = true, timeout = 60 }}'
    configured(f"[[hooks.SubagentStart]]\nhooks = [{hook}]\n")
    done = written(pawl, tmp_path)
    assert sorted((tmp_path / "met").read_text().split()) == ["clerk", "typist"], "each waited for the other in vain"
    assert [one["path"] for one in done["changes"]] == ["LIST.md", "NOTES.md"]
    roles = [one["role"] for one in pawl.json("requests")["requests"]]
    assert roles.count("typist") == roles.count("clerk") == 2


@pytest.mark.whole
@pytest.mark.spec("D2")
def test_of_two_sub_agents_that_change_the_same_place_the_later_one_is_not_taken_and_both_sides_are_told(
    project: Project, tmp_path: Path
):
    pawl = together(project, tmp_path, clerk="NOTES.md", then="nothing of its change was taken. It said: The list")
    said = pawl(
        *("do", "--approve", "never", "--no-escalate", "--model", f"scripted:{tmp_path / 'sent.toml'}"),
        "write the notes NOTES.md",
    )
    assert "the change of clerk was not taken: NOTES.md: both created it, differently" in said.err, said
    assert (pawl.workspace / "NOTES.md").read_text() == "a note\n"


@pytest.mark.whole
@pytest.mark.spec("D2", "B9")
def test_a_run_that_is_killed_while_sub_agents_work_goes_on_with_what_each_has_done(
    project: Project, configured: Configured, tmp_path: Path
):
    pawl = together(project, tmp_path)
    kills = tmp_path / "kills"
    kills.write_text(f'#!/bin/sh\n[ -e "{tmp_path}/killed" ] || {{ touch "{tmp_path}/killed"; kill -9 $PPID; }}\n')
    kills.chmod(0o755)
    hook = f'{{ type = "command", command = "{kills}", host = true }}'
    configured(f'[[hooks.SubagentStop]]\nmatcher = "clerk"\nhooks = [{hook}]\n')
    words = ("do", "--approve", "never", "--no-escalate", "--model", f"scripted:{tmp_path / 'sent.toml'}")
    killed = subprocess.run([*PAWL, *words, "write the notes NOTES.md and LIST.md"], cwd=pawl.workspace, check=False)
    assert killed.returncode == -9
    done = pawl.json("do", "--resume")
    assert [one["path"] for one in done["changes"]] == ["LIST.md", "NOTES.md"]
    roles = [one["role"] for one in pawl.json("requests")["requests"]]
    assert roles.count("typist") == roles.count("clerk") == 2


def several(count: int, call: str) -> str:
    """A script in which one answer sends so many typists, each with a number; each calls this."""
    sends = ",\n".join(
        f'    {{ name = "delegate", arguments = {{ role = "typist", task = "note number {at}" }} }}'
        for at in range(count)
    )
    first = 'match = { user = "write the notes", tools = ["delegate"], step = 0 }'
    turns = [f"[[turn]]\n{first}\nanswer = {{ calls = [\n{sends}\n] }}"]
    for at in range(count):
        who = f'system = "stork", user = "note number {at}"'
        turns.append(f"[[turn]]\nmatch = {{ {who}, step = 0 }}\nanswer = {{ calls = [{call % {'at': at}}] }}")
        turns.append(f'[[turn]]\ntimes = 0\nmatch = {{ {who} }}\nanswer = "Note {at} is written."')
    turns.append("[[turn]]\ntimes = 0\nmatch = { schema = true }\nanswer = '{\"parts\": []}'")
    turns.append('[[turn]]\ntimes = 0\nanswer = "All are back."')
    return "\n".join(turns)


WRITES = '{ name = "file_write", arguments = { path = "note%(at)s.md", content = "note %(at)s\\n" } }'
DATES = '{ name = "run_command", arguments = { command = "date +%%Y-%(at)s > note%(at)s.md; cat note%(at)s.md" } }'
WAITS = '{ name = "run_command", arguments = { command = "sleep 60" } }'


@pytest.mark.whole
@pytest.mark.spec("D2")
def test_of_more_than_four_sub_agents_four_work_at_a_time_and_all_are_merged(
    project: Project, configured: Configured, tmp_path: Path
):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    script = tmp_path / "sent.toml"
    script.write_text(several(5, WRITES))
    counts = tmp_path / "counts"
    counts.write_text(f'#!/bin/sh\ncat > /dev/null; printf "$1" >> {tmp_path}/working\n')
    counts.chmod(0o755)
    hook = f'hooks = [{{ type = "command", command = "{counts}", args = ["%s"], host = true }}]'
    events = (("SubagentStart", "+"), ("SubagentStop", "-"))
    configured("".join(f'[[hooks.{event}]]\nmatcher = "typist"\n{hook % word}\n' for event, word in events))
    words = ("do", "--approve", "never", "--no-escalate", "--model", f"scripted:{script}")
    notes = [f"note{at}.md" for at in range(5)]
    done = pawl.json(*words, f"write the notes {', '.join(notes)}")
    assert [one["path"] for one in done["changes"]] == notes
    heard = (tmp_path / "working").read_text()
    working = [heard[: at + 1].count("+") - heard[: at + 1].count("-") for at in range(len(heard))]
    assert heard.count("+") == heard.count("-") == 5 and max(working) <= 4


@pytest.mark.whole
@pytest.mark.spec("D1", "G4")
@pytest.mark.parametrize("count", [1, 2])
def test_a_question_of_a_sub_agent_waits_for_the_user_and_each_goes_on_with_the_answer(
    project: Project, configured: Configured, tmp_path: Path, count: int
):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    configured('[permissions]\nask = ["Bash(date *)"]\n')
    script = tmp_path / "sent.toml"
    script.write_text(several(count, DATES))
    answers = "y\n" * (count + 1)
    lines = f"write the notes note0.md and note1.md\n{answers}/quit\n".encode()
    said = pawl("session", "--model", f"scripted:{script}", stdin=lines)
    for at in range(count):
        assert f"date +%Y-{at}" in said.out, said
        assert (pawl.workspace / f"note{at}.md").read_text().endswith(f"-{at}\n"), said


@pytest.mark.whole
@pytest.mark.spec("D1", "C3")
def test_a_sub_agent_that_works_beyond_the_time_of_the_run_ends_with_it(
    project: Project, configured: Configured, tmp_path: Path
):
    pawl = project(FILES)
    assert pawl("trust").code == 0
    script = tmp_path / "sent.toml"
    script.write_text(several(2, WAITS))
    words = ("do", "--approve", "never", "--no-escalate", "--seconds", "4", "--model", f"scripted:{script}")
    said = pawl(*words, "write the notes note0.md and note1.md")
    assert said.code == 53 and "no time was left (--seconds)" in said.out, said
