"""Hooks: the shared schema in and out, in the sandbox, on the host only where the user says so and it is safe."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sandbox.site import processes_with, until
from world import lay

from pawl.core.errors import ConfigError
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import Config, load
from pawl.settings.guardrails import Decision, Permission
from pawl.settings.hook_settings import HookEvent, hook_commands
from pawl.settings.trust import trust
from pawl.workspace.bench import Bench
from pawl.workspace.benches import open_bench
from pawl.workspace.hook_runner import IN_SANDBOX, MOST_CHARACTERS, HookOutcome, Hooks, hooks_for, host_environment
from pawl.workspace.project import Project


@pytest.fixture
def config(tmp_path: Path) -> Config:
    home = tmp_path / "home"
    (home / ".config" / "pawl").mkdir(parents=True)
    environment = {"HOME": str(home), "PATH": "bin:/usr/bin:/bin:", "MY_API_KEY": "canary", "LANG": "C.UTF-8"}
    return load(environment)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return lay(tmp_path / "w", {"a.py": b"x"})


@pytest.fixture
def shop(config: Config, workspace: Path) -> Iterator[Project]:
    with Project.open(config, workspace) as opened:
        yield opened


@dataclass
class OnBench:
    """Hooks that run on a bench of their own, which stands until the test ends."""

    hooks: Hooks
    bench: Bench

    def run(self, event: str, payload: Mapping[str, object] | None = None, cancel: CancelToken | None = None):
        return self.hooks.run(event, payload, bench=lambda: nullcontext(self.bench), cancel=cancel)

    def about(self, **common: object) -> OnBench:
        return replace(self, hooks=self.hooks.about(**common))

    def read(self, name: str) -> str:
        return self.bench.files.read(name).decode()


Make = Callable[..., OnBench]


@pytest.fixture
def hooks(shop: Project) -> Iterator[Make]:
    with ExitStack() as closing:

        def make(event: str, *scripts: str, matcher: str = "", **fields: object) -> OnBench:
            entries = [{"type": "command", "command": script, **fields} for script in scripts]
            commands = hook_commands({event: [{"matcher": matcher, "hooks": entries}]}, "config.toml", own=True)
            found = Hooks(
                commands=commands,
                workspace=shop.workspace,
                home=str(shop.config.home),
                environment=shop.config.environment,
            )
            return OnBench(found, closing.enter_context(open_bench(shop)))

        yield make


@pytest.fixture
def on_host(hooks: Make, config: Config) -> Make:
    """A hook of the user's settings that is a script in the user's home."""

    def make(event: str, script: str, **fields: object) -> OnBench:
        program = config.home / "bin" / "hook"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(0o755)
        return hooks(event, str(program), host=True, **fields)

    return make


def written(body: object) -> str:
    return f"cat > /dev/null; printf '%s' '{json.dumps(body)}'"


CALL = {"tool_name": "run_command", "tool_input": {"command": "git status"}, "tool_use_id": "7"}


@pytest.mark.spec("F8", "B14")
def test_a_hook_gets_the_event_as_json(hooks: Make):
    ran = hooks("PreToolUse", "cat > given.json; pwd > cwd").about(session_id="s", permission_mode="default")
    assert ran.run("PreToolUse", CALL) == HookOutcome()
    given = json.loads(ran.read("given.json"))
    assert given == {
        **CALL,
        "session_id": "s",
        "permission_mode": "default",
        "cwd": ran.bench.workspace,
        "hook_event_name": "PreToolUse",
        "tool_names": ["run_command", "Bash", "Shell"],
    }
    assert ran.read("cwd").strip() == ran.bench.workspace
    assert not os.path.exists(os.path.join(ran.bench.workspace, "cwd"))


def test_exit_code_two_blocks_and_its_words_are_the_reason(hooks: Make):
    said = hooks("PreToolUse", "echo no pushing >&2; exit 2").run(HookEvent.PRE_TOOL_USE, CALL)
    assert said == HookOutcome(blocked=True, reason="no pushing", permission=Decision.DENY)
    said = hooks("Stop", "echo tests first >&2; exit 2").run("Stop")
    assert said == HookOutcome(blocked=True, reason="tests first")
    said = hooks("SessionEnd", "echo bye >&2; exit 2").run("SessionEnd")
    assert said == HookOutcome(messages=("bye",))


def test_another_exit_code_stops_nothing_and_is_told(hooks: Make):
    said = hooks("PreToolUse", "echo broken >&2; exit 1").run("PreToolUse", CALL)
    assert not said.blocked and said.permission is None
    assert "broken" in said.notices[0] and "PreToolUse" in said.notices[0]
    missing = hooks("Stop", "/no/such/program", args=[]).run("Stop")
    assert not missing.blocked and "ended with 127" in missing.notices[0] and IN_SANDBOX in missing.notices[0]


@pytest.mark.parametrize(
    ("event", "body", "wanted"),
    [
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "r"}},
            HookOutcome(blocked=True, permission=Decision.DENY, reason="r"),
        ),
        (
            "PreToolUse",
            {"decision": "block", "reason": "r"},
            HookOutcome(blocked=True, permission=Decision.DENY, reason="r"),
        ),
        ("PreToolUse", {"decision": "approve", "reason": "r"}, HookOutcome()),
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {"command": "ls"}}},
            HookOutcome(permission=Decision.ASK, updated_input={"command": "ls"}),
        ),
        (
            "PreToolUse",
            {"hookSpecificOutput": {"permissionDecision": "deny", "updatedInput": {"command": "ls"}}},
            HookOutcome(blocked=True, permission=Decision.DENY),
        ),
        (
            "PermissionRequest",
            {"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"a": 1}}}},
            HookOutcome(updated_input={"a": 1}),
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
def test_what_a_hook_writes_as_json_is_honoured(hooks: Make, event: str, body: dict, wanted: HookOutcome):
    assert hooks(event, written(body)).run(event, CALL) == wanted


def test_plain_output_is_for_the_model_at_two_events_only(hooks: Make):
    assert hooks("SessionStart", "echo hello").run("SessionStart") == HookOutcome(context=("hello",))
    assert hooks("UserPromptSubmit", "echo '{broken'").run("UserPromptSubmit").context == ("{broken",)
    assert hooks("PreToolUse", "echo hello").run("PreToolUse", CALL) == HookOutcome()


def test_several_hooks_run_one_after_the_other_on_one_bench_and_the_strictest_counts(hooks: Make):
    allow, deny = written({"systemMessage": "1"}), "grep -q first order && echo no >&2; exit 2"
    outcome = hooks("PreToolUse", f"echo first > order; {allow}", deny).run("PreToolUse", CALL)
    assert outcome == HookOutcome(blocked=True, permission=Decision.DENY, reason="no", messages=("1",))


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
def test_a_matcher_is_a_list_of_names_or_an_expression(hooks: Make, matcher: str, tool: str, runs: bool):
    said = hooks("PreToolUse", "exit 2", matcher=matcher).run("PreToolUse", {"tool_name": tool})
    assert said.blocked is runs


def test_a_matcher_looks_at_what_the_event_is_about(hooks: Make):
    assert hooks("SessionStart", "echo x", matcher="resume").run("SessionStart", {"source": "startup"}).context == ()
    assert hooks("SessionStart", "echo x", matcher="resume").run("SessionStart", {"source": "resume"}).context
    assert hooks("Stop", "exit 2", matcher="whatever").run("Stop").blocked


@pytest.mark.parametrize(
    ("command", "runs"),
    [("git push", True), ("ls && git push", True), ("ls $(x)", True), ("ls", False), ("env git push", True)],
)
def test_a_condition_is_a_permission_rule(hooks: Make, command: str, runs: bool):
    ran = hooks("PreToolUse", "exit 2", **{"if": "Bash(git push *)"})
    assert ran.run("PreToolUse", {"tool_name": "run_command", "tool_input": {"command": command}}).blocked is runs
    assert not ran.run("PreToolUse", {"tool_name": "file_read", "tool_input": {"path": "a"}}).blocked


def test_arguments_go_to_the_program_without_a_shell(hooks: Make):
    said = hooks("SessionStart", "echo", args=["$HOME", "a b;"]).run("SessionStart")
    assert said.context == ("$HOME a b;",)


def test_output_is_bounded(hooks: Make):
    said = hooks("SessionStart", "head -c 3000000 /dev/zero | tr '\\0' x").run("SessionStart")
    assert len(said.context[0]) == MOST_CHARACTERS
    said = hooks("Stop", "head -c 300000 /dev/zero | tr '\\0' x >&2; exit 2").run("Stop")
    assert len(said.reason) == MOST_CHARACTERS
    large = written({"systemMessage": "m" * 20_000})
    assert len(hooks("Stop", large).run("Stop").messages[0]) == MOST_CHARACTERS


def alive(folder: Path) -> list[int]:
    found = []
    for name in (folder / "pids").read_text().split():
        try:
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append(int(name))
    return found


TREE = """
cd $HOME
echo $$ >> pids
setsid sh -c 'echo $$ >> pids; while :; do sleep 60; done' &
(setsid sh -c 'echo $$ >> pids; while :; do sleep 60; done' > /dev/null 2>&1 &)
while [ $(wc -l < pids) -lt 3 ]; do :; done
touch up
sleep 60
"""


@pytest.mark.attack("A34")
def test_a_hook_that_takes_too_long_is_ended_with_its_whole_tree(hooks: Make, on_host: Make, config: Config):
    said = on_host("PreToolUse", TREE, timeout=3).run("PreToolUse", CALL)
    assert "it timed out" in said.notices[0] and said.blocked and said.permission is Decision.DENY
    assert alive(config.home) == []
    said = on_host("PreToolUse", "yes", timeout=1).run("PreToolUse", CALL)
    assert "it timed out" in said.notices[0]
    word = f"pawl-{uuid.uuid4().hex}"
    said = hooks("PreToolUse", f"setsid sh -c 'sleep 60; : {word}' & sleep 60", timeout=1).run("PreToolUse", CALL)
    assert "it timed out" in said.notices[0] and said.blocked and said.permission is Decision.DENY
    assert until(lambda: not processes_with(word))


@pytest.mark.attack("A34")
@pytest.mark.parametrize("host", [True, False])
def test_a_hook_that_is_stopped_by_the_user_is_ended(hooks: Make, on_host: Make, config: Config, host: bool):
    token = CancelToken()
    word = f"pawl-{uuid.uuid4().hex}"
    ran = on_host("PreToolUse", f"{TREE} # {word}") if host else hooks("PreToolUse", f"sleep 60; : {word}")
    outcomes: list[HookOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(ran.run("PreToolUse", CALL, cancel=token)))
    thread.start()
    pause = threading.Event()
    while not (processes_with(word) or (config.home / "up").exists()) and thread.is_alive():
        pause.wait(0.01)
    token.request()
    thread.join(30)
    assert "it was stopped" in outcomes[0].notices[0]
    assert until(lambda: not processes_with(word)) and (not host or alive(config.home) == [])


def test_what_a_hook_leaves_in_the_background_is_not_waited_for(hooks: Make, on_host: Make, config: Config):
    assert hooks("SessionStart", "echo hello; sleep 30 &").run("SessionStart").context == ("hello",)
    said = on_host("SessionStart", "echo hello; cd $HOME; sleep 30 & echo $! > pids").run("SessionStart")
    assert said.context == ("hello",)
    for pid in alive(config.home):
        os.kill(pid, 9)


@pytest.mark.spec("F8")
def test_a_hook_on_this_machine_has_the_schema_of_every_other_and_may_lift_a_question(on_host: Make, config: Config):
    ran = on_host("PreToolUse", f"cat > $HOME/given; pwd > $HOME/cwd; {written({'decision': 'approve'})[17:]}")
    said = ran.run("PreToolUse", CALL)
    assert said.permission is Decision.ALLOW and not said.notices
    assert "runs on this machine" in said.remarks[0]
    assert json.loads((config.home / "given").read_text())["tool_input"] == CALL["tool_input"]
    assert (config.home / "cwd").read_text() == "/\n"


@pytest.mark.parametrize(
    ("ruling", "firm", "permission", "wanted"),
    [
        ("ask", False, Decision.ALLOW, "allow"),
        ("ask", True, Decision.ALLOW, "ask"),
        ("deny", False, Decision.ALLOW, "deny"),
        ("allow", False, Decision.ASK, "ask"),
        ("ask", False, Decision.DENY, "deny"),
        ("allow", False, Decision.DENY, "deny"),
        ("allow", False, None, "allow"),
    ],
)
def test_a_hook_tightens_and_lifts_only_what_no_rule_has_said(
    ruling: str, firm: bool, permission: Decision, wanted: str
):
    given = Permission(ruling=Decision(ruling), reason="r", firm=firm)
    assert HookOutcome(permission=permission).over(given).ruling == wanted


@pytest.mark.attack("A25", "A45")
def test_a_hook_on_this_machine_gets_no_key_no_code_and_no_folder_of_the_workspace(config: Config, workspace: Path):
    lay(workspace, {"bin/sh": b"x"})
    (config.home / "linked").symlink_to(workspace / "bin")
    given = {
        **config.environment,
        "PATH": f"bin:{workspace}/bin:{config.home}/linked:/usr/bin:/bin:",
        "PYTHONPATH": str(workspace),
        "LD_PRELOAD": "x.so",
    }
    assert host_environment(given, str(workspace)) == {
        "HOME": str(config.home),
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "PAWL_PROJECT_DIR": str(workspace),
        "CLAUDE_PROJECT_DIR": str(workspace),
    }


def test_a_hook_in_the_sandbox_gets_nothing_of_the_users_variables(hooks: Make):
    said = hooks("SessionStart", "env; ls -a ~").run("SessionStart").context[0]
    assert "canary" not in said and "CLAUDE_PROJECT_DIR=" in said


@pytest.mark.attack("A45")
@pytest.mark.parametrize(
    ("prepare", "command", "why"),
    [
        ("cp /bin/true w/tool", "w/tool", "leads through the workspace"),
        ("ln -s /bin/true w/tool", "w/tool", "leads through the workspace"),
        ("cp /bin/true w/tool; ln -s ../w/tool home/tool", "home/tool", "leads through the workspace"),
        ("ln -s /bin/true w/tool; ln -s ../w/tool home/tool", "home/tool", "leads through the workspace"),
        ("ln -s ../w home/f; cp /bin/true w/tool", "home/f/tool", "leads through the workspace"),
        ("cp /bin/true home/tool", "home/../w/../home/tool", "leads through the workspace"),
        ("cp /bin/true home/tool; chmod 777 home/tool", "home/tool", "others can write"),
        ("mkdir home/f; cp /bin/true home/f/tool; chmod 777 home/f", "home/f/tool", "others can put another program"),
        ("mkfifo home/tool", "home/tool", "is not a program"),
        ("mkdir home/tool", "home/tool", "is not a program"),
        ("echo x > home/tool", "home/tool", "is not a program"),
        ("true", "home/tool --quiet", "no shell reads it"),
    ],
)
def test_a_program_that_an_agent_or_another_user_could_replace_is_not_started(
    hooks: Make, tmp_path: Path, prepare: str, command: str, why: str
):
    subprocess.run(["sh", "-c", prepare], cwd=tmp_path, check=True)
    said = hooks("Stop", f"{tmp_path}/{command}", host=True).run("Stop")
    assert why in said.notices[0] and "cannot be started" in said.notices[0]


def test_a_hook_on_this_machine_is_not_given_a_path_of_the_workspace(hooks: Make, workspace: Path, tmp_path: Path):
    (tmp_path / "way").symlink_to(workspace)
    for word in (f"{workspace}/x.sh", f"--file={workspace}", f"{tmp_path}/way/x.sh"):
        said = hooks("Stop", "/bin/sh", args=[word], host=True).run("Stop")
        assert "leads into the workspace" in said.notices[0]


@pytest.mark.attack("A48")
def test_a_repository_cannot_ask_for_this_machine(config: Config, workspace: Path):
    lay(
        workspace,
        {".pawl/settings.toml": b'[[hooks.Stop]]\nhooks = [{ command = "/bin/true", host = true }]\n'},
    )
    trust(config, str(workspace))
    with pytest.raises(ConfigError, match="not a repository's to say"):
        hooks_for(config, str(workspace))


PROJECT = b'[[hooks.SessionStart]]\nhooks = [{ type = "command", command = "echo ran" }]\n'


@pytest.mark.attack("A46", "A47")
@pytest.mark.spec("F8")
def test_the_hooks_of_a_repository_run_only_where_it_is_trusted_and_as_long_as_they_are_what_was_trusted(
    config: Config, shop: Project, workspace: Path
):
    def context() -> tuple[str, ...]:
        return hooks_for(config, str(workspace)).run("SessionStart", bench=lambda: open_bench(shop)).context

    lay(workspace, {".pawl/settings.toml": PROJECT})
    assert context() == () and "not trusted" in hooks_for(config, str(workspace)).notices[0]
    trust(config, str(workspace))
    assert context() == ("ran",)
    lay(workspace, {".pawl/settings.toml": PROJECT.replace(b"ran", b"evil")})
    assert context() == ()


def test_the_users_hooks_come_from_the_settings_and_the_shared_file(config: Config, shop: Project, workspace: Path):
    entry = {"hooks": [{"type": "command", "command": "echo 1"}]}
    config = replace(config, tables=replace(config.tables, hooks={"SessionStart": [entry]}))
    shared = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo 2"}]}]}}
    (config.file.parent / "hooks.json").write_text(json.dumps(shared))
    found = hooks_for(config, str(workspace)).run("SessionStart", bench=lambda: open_bench(shop))
    assert found.context == ("1", "2")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"PreToolUs": []}, "no event"),
        ({"Stop": {}}, "must be a list"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}, "url"),
        ({"Stop": [{"hooks": [{"type": "prompt", "command": "x"}]}]}, "'prompt'"),
        ({"Stop": [{"hooks": [{"command": ""}]}]}, "empty"),
        ({"Stop": [{"hooks": [{"command": "x", "timeout": 0}]}]}, "timeout"),
        ({"Stop": [{"hooks": [{"command": "x", "args": "y"}]}]}, "args"),
        ({"Stop": [{"hooks": [{"command": "/bin/x", "host": 1}]}]}, "host must be true or false"),
        ({"Stop": [{"hooks": [{"command": "make lint", "host": True}]}]}, "needs an absolute program"),
        ({"Stop": [{"hooks": [{"command": "./x", "host": True}]}]}, "needs an absolute program"),
        ({"Stop": [{"matcher": "(", "hooks": [{"command": "x"}]}]}, "matcher"),
        ({"Stop": [{"hooks": [{"command": "x", "if": "Bsh(x)"}]}]}, "no tool 'Bsh'"),
        ({"Stop": [{"hooks": [{"command": "x"}] * 65}]}, "too many"),
    ],
)
def test_a_hook_that_cannot_be_meant_is_refused(table: dict, why: str):
    with pytest.raises(ConfigError, match=r"config\.toml") as caught:
        hook_commands(table, "config.toml")
    assert why in caught.value.message
