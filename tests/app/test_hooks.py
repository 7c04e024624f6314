"""Hooks: the shared schema in and out, in parallel, ended as a tree, and a repository's only where it is trusted."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from world import lay

from pawl.app.config import Config, load
from pawl.app.hook_settings import HookEvent, hook_commands
from pawl.app.hooks import MOST_CHARACTERS, HookOutcome, Hooks, hook_environment, hooks_for
from pawl.app.trusting import trust
from pawl.core.errors import ConfigError
from pawl.core.permission import Permission, Ruling
from pawl.sandbox.cancel import CancelToken


@pytest.fixture
def config(tmp_path: Path) -> Config:
    home = tmp_path / "home"
    (home / ".config" / "pawl").mkdir(parents=True)
    environment = {"HOME": str(home), "PATH": "bin:/usr/bin:/bin:", "MY_API_KEY": "canary", "LANG": "C.UTF-8"}
    return load(environment)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return lay(tmp_path / "w", {"a.py": b"x"})


def hooks(workspace: Path, event: str, *scripts: str, matcher: str = "", **fields: object) -> Hooks:
    entries = [{"type": "command", "command": script, **fields} for script in scripts]
    commands = hook_commands({event: [{"matcher": matcher, "hooks": entries}]}, "config.toml")
    return Hooks(commands=commands, workspace=str(workspace), environment={"PATH": "/usr/bin:/bin"})


def written(body: object) -> str:
    return f"cat > /dev/null; printf '%s' '{json.dumps(body)}'"


CALL = {"tool_name": "run_command", "tool_input": {"command": "git status"}, "tool_use_id": "7"}


@pytest.mark.spec("F8", "B14")
def test_a_hook_gets_the_event_as_json(workspace: Path):
    ran = hooks(workspace, "PreToolUse", "cat > given.json; pwd > cwd").about(session_id="s", permission_mode="default")
    assert ran.run("PreToolUse", CALL) == HookOutcome()
    given = json.loads((workspace / "given.json").read_text())
    assert given == {
        **CALL,
        "session_id": "s",
        "permission_mode": "default",
        "cwd": str(workspace),
        "hook_event_name": "PreToolUse",
        "tool_names": ["run_command", "Bash", "Shell"],
    }
    assert (workspace / "cwd").read_text().strip() == str(workspace)


def test_exit_code_two_blocks_and_its_words_are_the_reason(workspace: Path):
    said = hooks(workspace, "PreToolUse", "echo no pushing >&2; exit 2").run(HookEvent.PRE_TOOL_USE, CALL)
    assert said == HookOutcome(blocked=True, reason="no pushing", permission=Ruling.DENY)
    said = hooks(workspace, "Stop", "echo tests first >&2; exit 2").run("Stop")
    assert said == HookOutcome(blocked=True, reason="tests first")
    said = hooks(workspace, "SessionEnd", "echo bye >&2; exit 2").run("SessionEnd")
    assert said == HookOutcome(messages=("bye",))


def test_another_exit_code_stops_nothing_and_is_told(workspace: Path):
    said = hooks(workspace, "PreToolUse", "echo broken >&2; exit 1").run("PreToolUse", CALL)
    assert not said.blocked and said.permission is None
    assert "broken" in said.notices[0] and "PreToolUse" in said.notices[0]
    missing = hooks(workspace, "Stop", "/no/such/program", args=[]).run("Stop")
    assert not missing.blocked and "cannot be started" in missing.notices[0]


@pytest.mark.parametrize(
    ("event", "body", "wanted"),
    [
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "r"}},
            HookOutcome(blocked=True, permission=Ruling.DENY, reason="r"),
        ),
        (
            "PreToolUse",
            {"decision": "block", "reason": "r"},
            HookOutcome(blocked=True, permission=Ruling.DENY, reason="r"),
        ),
        ("PreToolUse", {"decision": "approve"}, HookOutcome(permission=Ruling.ALLOW)),
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {"command": "ls"}}},
            HookOutcome(permission=Ruling.ASK, updated_input={"command": "ls"}),
        ),
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "deny", "updatedInput": {"command": "ls"}}},
            HookOutcome(blocked=True, permission=Ruling.DENY),
        ),
        (
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"a": 1}}}},
            HookOutcome(permission=Ruling.ALLOW, updated_input={"a": 1}),
        ),
        (
            "PostToolUse",
            {"decision": "block", "reason": "lint failed"},
            HookOutcome(blocked=True, reason="lint failed"),
        ),
        (
            "PostToolUse",
            {"hookSpecificOutput": {"additionalContext": "c", "updatedInput": {"x": 1}}, "systemMessage": "m"},
            HookOutcome(context=("c",), messages=("m",)),
        ),
        ("Stop", {"continue": False, "stopReason": "enough"}, HookOutcome(stop=True, stop_reason="enough")),
        ("Stop", {"continue": True, "stopReason": "x", "decision": 7, "hookSpecificOutput": []}, HookOutcome()),
        ("Notification", {"decision": "block"}, HookOutcome()),
    ],
)
def test_what_a_hook_writes_as_json_is_honoured(workspace: Path, event: str, body: dict, wanted: HookOutcome):
    assert hooks(workspace, event, written(body)).run(event, CALL) == wanted


def test_plain_output_is_for_the_model_at_two_events_only(workspace: Path):
    assert hooks(workspace, "SessionStart", "echo hello").run("SessionStart") == HookOutcome(context=("hello",))
    assert hooks(workspace, "UserPromptSubmit", "echo '{broken'").run("UserPromptSubmit").context == ("{broken",)
    assert hooks(workspace, "PreToolUse", "echo hello").run("PreToolUse", CALL) == HookOutcome()


def test_several_hooks_run_at_the_same_time_and_the_strictest_counts(workspace: Path):
    # Each waits for the other, so that one after the other would never end.
    meet = "touch {}; while [ ! -e {} ]; do :; done; "
    allow, deny = written({"decision": "approve", "systemMessage": "1"}), "echo no >&2; exit 2"
    said = hooks(workspace, "PreToolUse", meet.format("p", "q") + allow, meet.format("q", "p") + deny, timeout=20)
    outcome = said.run("PreToolUse", CALL)
    assert outcome == HookOutcome(blocked=True, permission=Ruling.DENY, reason="no", messages=("1",))


@pytest.mark.parametrize(
    ("matcher", "tool", "runs"),
    [
        ("", "run_command", True),
        ("*", "run_command", True),
        ("Bash", "run_command", True),
        ("run_command", "run_command", True),
        ("Edit|Write", "strict_patch", True),
        ("Edit, Bash", "run_command", True),
        ("Edit", "run_command", False),
        ("Bas", "run_command", False),
        ("Ba.*", "run_command", True),
        ("^comm", "run_command", False),
        ("mcp__docs__.*", "mcp__docs__search", True),
        ("mcp__docs", "mcp__docs__search", False),
    ],
)
def test_a_matcher_is_a_list_of_names_or_an_expression(workspace: Path, matcher: str, tool: str, runs: bool):
    said = hooks(workspace, "PreToolUse", "exit 2", matcher=matcher).run("PreToolUse", {"tool_name": tool})
    assert said.blocked is runs


def test_a_matcher_looks_at_what_the_event_is_about(workspace: Path):
    assert (
        hooks(workspace, "SessionStart", "echo x", matcher="resume").run("SessionStart", {"source": "startup"}).context
        == ()
    )
    assert (
        hooks(workspace, "SessionStart", "echo x", matcher="resume").run("SessionStart", {"source": "resume"}).context
    )
    assert hooks(workspace, "Stop", "exit 2", matcher="whatever").run("Stop").blocked


@pytest.mark.parametrize(
    ("command", "runs"),
    [("git push", True), ("ls && git push", True), ("ls $(x)", True), ("ls", False), ("env git push", True)],
)
def test_a_condition_is_a_permission_rule(workspace: Path, command: str, runs: bool):
    ran = hooks(workspace, "PreToolUse", "exit 2", **{"if": "Bash(git push *)"})
    assert ran.run("PreToolUse", {"tool_name": "run_command", "tool_input": {"command": command}}).blocked is runs
    assert not ran.run("PreToolUse", {"tool_name": "file_read", "tool_input": {"path": "a"}}).blocked


def test_arguments_go_to_the_program_without_a_shell(workspace: Path):
    said = hooks(workspace, "SessionStart", "echo", args=["$HOME", "a b;"]).run("SessionStart")
    assert said.context == ("$HOME a b;",)


def test_output_is_bounded(workspace: Path):
    said = hooks(workspace, "SessionStart", "head -c 3000000 /dev/zero | tr '\\0' x").run("SessionStart")
    assert len(said.context[0]) == MOST_CHARACTERS
    said = hooks(workspace, "Stop", "head -c 300000 /dev/zero | tr '\\0' x >&2; exit 2").run("Stop")
    assert len(said.reason) == MOST_CHARACTERS
    large = written({"systemMessage": "m" * 20_000})
    assert len(hooks(workspace, "Stop", large).run("Stop").messages[0]) == MOST_CHARACTERS


def alive(workspace: Path) -> list[int]:
    found = []
    for name in (workspace / "pids").read_text().split():
        try:
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append(int(name))
    return found


TREE = """
echo $$ >> pids
setsid sh -c 'echo $$ >> pids; while :; do sleep 60; done' &
(setsid sh -c 'echo $$ >> pids; while :; do sleep 60; done' > /dev/null 2>&1 &)
while [ $(wc -l < pids) -lt 3 ]; do :; done
touch up
sleep 60
"""


@pytest.mark.attack("A34")
def test_a_hook_that_takes_too_long_is_ended_with_its_whole_tree(workspace: Path):
    said = hooks(workspace, "PreToolUse", TREE, timeout=3).run("PreToolUse", CALL)
    assert "its time was up" in said.notices[0] and not said.blocked
    assert alive(workspace) == []


@pytest.mark.attack("A34")
def test_a_hook_that_is_stopped_by_the_user_is_ended_with_its_whole_tree(workspace: Path):
    token = CancelToken()
    ran = hooks(workspace, "PreToolUse", TREE)
    outcomes: list[HookOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(ran.run("PreToolUse", CALL, cancel=token)))
    thread.start()
    pause = threading.Event()
    while not (workspace / "up").exists() and thread.is_alive():
        pause.wait(0.01)
    token.request()
    thread.join(30)
    assert "it was stopped" in outcomes[0].notices[0]
    assert alive(workspace) == []


def test_what_a_hook_leaves_in_the_background_is_not_waited_for(workspace: Path):
    said = hooks(workspace, "SessionStart", "echo hello; sleep 30 & echo $! > pids").run("SessionStart")
    assert said.context == ("hello",)
    for pid in alive(workspace):
        os.kill(pid, 9)


@pytest.mark.parametrize(
    ("ruling", "firm", "permission", "wanted"),
    [
        ("ask", False, Ruling.ALLOW, "allow"),
        ("ask", True, Ruling.ALLOW, "ask"),
        ("deny", False, Ruling.ALLOW, "deny"),
        ("allow", False, Ruling.ASK, "ask"),
        ("ask", False, Ruling.DENY, "deny"),
        ("allow", False, Ruling.DENY, "deny"),
        ("allow", False, None, "allow"),
    ],
)
def test_a_hook_tightens_and_lifts_only_what_no_rule_has_said(ruling: str, firm: bool, permission: Ruling, wanted: str):
    given = Permission(ruling=Ruling(ruling), reason="r", firm=firm)
    assert HookOutcome(permission=permission).over(given).ruling == wanted


@pytest.mark.attack("A25", "A45")
def test_a_hook_gets_no_key_and_no_program_of_the_workspace(config: Config, workspace: Path):
    found = hook_environment(config.environment, str(workspace))
    assert "canary" not in str(found)
    assert found["PATH"] == "/usr/bin:/bin"
    assert found["PAWL_PROJECT_DIR"] == found["CLAUDE_PROJECT_DIR"] == str(workspace)


PROJECT = b'[[hooks.SessionStart]]\nhooks = [{ type = "command", command = "touch MARK" }]\n'


@pytest.mark.attack("A46", "A47")
@pytest.mark.spec("F8")
def test_the_hooks_of_a_repository_run_only_where_it_is_trusted_and_as_long_as_they_are_what_was_trusted(
    config: Config, workspace: Path
):
    lay(workspace, {".pawl/settings.toml": PROJECT})
    found = hooks_for(config, str(workspace))
    found.run("SessionStart")
    assert found.commands == () and "not trusted" in found.notices[0]
    assert not (workspace / "MARK").exists()
    trust(config, str(workspace))
    hooks_for(config, str(workspace)).run("SessionStart")
    assert (workspace / "MARK").exists()
    (workspace / "MARK").unlink()
    lay(workspace, {".pawl/settings.toml": PROJECT.replace(b"MARK", b"EVIL")})
    hooks_for(config, str(workspace)).run("SessionStart")
    assert not (workspace / "EVIL").exists() and not (workspace / "MARK").exists()


def test_the_users_hooks_come_from_the_settings_and_the_shared_file(config: Config, workspace: Path):
    entry = {"hooks": [{"type": "command", "command": "echo 1"}]}
    config = replace(config, tables=replace(config.tables, hooks={"SessionStart": [entry]}))
    shared = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo 2"}]}]}}
    (config.file.parent / "hooks.json").write_text(json.dumps(shared))
    assert hooks_for(config, str(workspace)).run("SessionStart").context == ("1", "2")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"PreToolUs": []}, "there is no event"),
        ({"Stop": {}}, "list of tables"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}, "'url' is not one"),
        ({"Stop": [{"hooks": [{"type": "prompt", "command": "x"}]}]}, "of the type 'prompt'"),
        ({"Stop": [{"hooks": [{"command": ""}]}]}, "empty"),
        ({"Stop": [{"hooks": [{"command": "x", "timeout": 0}]}]}, "timeout"),
        ({"Stop": [{"hooks": [{"command": "x", "args": "y"}]}]}, "args"),
        ({"Stop": [{"matcher": "(", "hooks": [{"command": "x"}]}]}, "matcher"),
        ({"Stop": [{"hooks": [{"command": "x", "if": "Bsh(x)"}]}]}, "no tool 'Bsh'"),
        ({"Stop": [{"hooks": [{"command": "x"}] * 65}]}, "too many"),
    ],
)
def test_a_hook_that_cannot_be_meant_is_refused(table: dict, why: str):
    with pytest.raises(ConfigError, match=r"config\.toml") as caught:
        hook_commands(table, "config.toml")
    assert why in caught.value.message
