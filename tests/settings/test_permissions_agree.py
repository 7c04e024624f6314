"""`pawl permissions check` and the tools of a run are of one mind, whatever the command, the preset and the trust."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from pawl.agent.policy import rules_of
from pawl.agent.session import Session
from pawl.core.run import Approval, Mode, RunRequest, RunState
from pawl.settings.config import load
from pawl.settings.guardrails import Decision
from pawl.settings.permissions import SandboxMode, asked, permissions_of, permit_of
from pawl.settings.trust import trust
from pawl.workspace.project import Project

pytestmark = pytest.mark.spec("F8")

WORDS = ["ls", "cat", "rm -rf x", "git push", "git reset --hard", "make", "sudo", "env", "sh -c 'rm -r x'", "find .",
    "-delete", ".env", "src/app.py", "../x", "*", "$HOME", "$(id)", "`id`", "'", '"', "\\", "> out", ">> .git/config",
    "<<X", "\n", " ; ", " && ", " | ", "&", "(", ")", "{a,b}", "\u202e", "\t", "x" * 300, "), Bash(ls"]  # fmt: skip
PATHS = ["app.py", ".env", "a/.env", "keys/id_rsa", ".git/config", "../out", "/etc/passwd", "~/x", "Makefile", ".ENV"]
THEIRS = '[permissions]\ndeny = ["Bash(make *)"]\nask = ["Edit(src/**)"]\nallow = ["Bash(git push *)"]\n'


def commands(seed: int, many: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(f"{chance.choice(WORDS)} " for _ in range(chance.randint(1, 7))) for _ in range(many)]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    workspace = tmp_path / "project"
    (workspace / ".pawl").mkdir(parents=True)
    (workspace / ".pawl/settings.toml").write_text(THEIRS)
    (workspace / "app.py").write_text("x = 1\n")
    (workspace / ".env").write_text("A_KEY=1\n")
    monkeypatch.setenv("PAWL_STATE", str(tmp_path / "state"))

    def opened(preset: str, *, trusted: bool) -> Project:
        (tmp_path / "config.toml").write_text(f'[permissions]\npreset = "{preset}"\nask = ["Bash(cat *)"]\n')
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
        config = load()
        if trusted:
            trust(config, str(workspace))
        return Project.open(config, workspace)

    return opened


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("preset", ["caged", "standard", "strict"])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_check_says_what_the_tools_are_told(shop, preset: str, trusted: bool, mode: Mode):
    seed = random.randrange(1 << 32)
    with shop(preset, trusted=trusted) as opened:
        checked = permit_of(
            permissions_of(opened.config, opened.workspace, mode=mode, cage=SandboxMode.CLOSED), opened.guardrails
        )
        told = rules_of(opened, mode)
        for command in commands(seed, 150):
            expected = told("run_command", {"command": command})
            assert asked(checked, f"Bash({command})") == expected, f"seed {seed}: {command!r}"
        for path in PATHS:
            assert asked(checked, f"Edit({path})") == told("file_write", {"path": path, "content": "x"}), path
            assert asked(checked, f"Read({path})").ruling == told("file_read", {"path": path}).ruling, path


@pytest.mark.attack("A40")
@pytest.mark.parametrize(
    ("tool", "arguments", "call", "ruling"),
    [
        ("run_command", {"command": "true"}, "Bash(true)", Decision.ALLOW),
        ("run_command", {"command": "rm -rf x"}, "Bash(rm -rf x)", Decision.ALLOW),
        ("run_command", {"command": "cat app.py"}, "Bash(cat app.py)", Decision.ASK),
        ("run_command", {"command": "make all"}, "Bash(make all)", Decision.DENY),
        ("run_command", {"command": "true; make all"}, "Bash(true; make all)", Decision.DENY),
        ("file_read", {"path": "app.py"}, "Read(app.py)", Decision.ALLOW),
        ("file_read", {"path": ".env"}, "Read(.env)", Decision.DENY),
        ("file_write", {"path": ".env", "content": "x"}, "Edit(.env)", Decision.DENY),
        ("file_write", {"path": ".git/config", "content": "x"}, "Edit(.git/config)", Decision.DENY),
    ],
)
def test_a_run_does_what_the_check_says(shop, tmp_path: Path, tool: str, arguments, call: str, ruling: Decision):
    turns = [{"answer": {"text": "", "calls": [{"name": tool, "arguments": arguments}]}}, {"answer": {"text": "done"}}]
    (tmp_path / "model.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    with shop("caged", trusted=False) as opened:
        permit = permit_of(permissions_of(opened.config, opened.workspace), opened.guardrails)
        assert asked(permit, call).ruling is ruling
        order = RunRequest(
            text="clean up app.py", approval=Approval.FINAL, model=f"scripted:{tmp_path / 'model.jsonl'}"
        )
        report = Session(opened).do(order)
        waits = report.state is RunState.WAITING and report.question is not None and report.question.kind == "call"
        assert waits is (ruling is Decision.ASK)
        assert bool(report.denials) is (ruling is Decision.DENY)
