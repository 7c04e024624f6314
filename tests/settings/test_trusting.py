"""Trust is said of a folder with its files as they are, and lapses when what configures or executes there changes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from world import lay

from pawl.agent.own_commands import own_commands
from pawl.agent.policy import prompts
from pawl.core.errors import ConfigError, UsageError
from pawl.core.run import Mode
from pawl.settings.config import Config, load
from pawl.settings.guardrails import Decision
from pawl.settings.permissions import SandboxMode, permission_settings, permissions_of
from pawl.settings.trust import (
    FILE,
    FolderTrust,
    TrustStatus,
    folder_trust,
    is_trusted,
    project_files,
    project_settings,
    read_text,
    revoke,
    trust,
    trusted_files,
    trusted_folders,
)
from pawl.workspace.hook_runner import hooks_for


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "home").mkdir()
    return load({"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return lay(tmp_path / "w", {"a.py": b"x", ".pawl/prompts/base.md": b"p", ".mcp.json": b"{}"})


def with_rules(config: Config, **table: object) -> Config:
    return replace(config, tables=replace(config.tables, permissions=table))


@pytest.mark.spec("F8")
def test_a_folder_is_trusted_until_it_is_revoked(config: Config, workspace: Path):
    place = str(workspace)
    files = (".mcp.json", ".pawl/prompts/base.md")
    assert folder_trust(config, place) == FolderTrust(standing=TrustStatus.UNKNOWN, files=files)
    assert not is_trusted(config, place)
    assert trust(config, place).files == files
    assert is_trusted(config, place)
    assert not is_trusted(config, str(workspace.parent))
    assert [one.folder for one in trusted_folders(config)] == [place]
    assert revoke(config, place) and not revoke(config, place)
    assert not is_trusted(config, place)


def test_the_record_is_the_users_alone(config: Config, workspace: Path):
    trust(config, str(workspace))
    path = config.state / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)
    assert not is_trusted(config, str(workspace))
    path.chmod(0o600)
    assert is_trusted(config, str(workspace))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"folders": 3}', '{"folders": {"/x": {}}}', '{"folders": {"/x": null}}']
)
def test_a_damaged_record_trusts_nothing_and_can_be_written_anew(config: Config, workspace: Path, text: str):
    config.state.mkdir(parents=True)
    (config.state / FILE).write_text(text)
    (config.state / FILE).chmod(0o600)
    assert not is_trusted(config, str(workspace))
    trust(config, str(workspace))
    assert is_trusted(config, str(workspace))


HOOK = b'[[hooks.Stop]]\nhooks = [{ command = "\\"$PAWL_PROJECT_DIR\\"/scripts/check.sh --all" }]\n'
CHANGES = {
    "a file was changed": {".pawl/prompts/base.md": b"q"},
    "a file came": {".pawl/new": b""},
    "a command came": {".claude/commands/x.md": b"x"},
    "a link came": {".pawl/link": "../a.py"},
}


@pytest.mark.attack("A46", "A48", "A49")
@pytest.mark.parametrize("change", CHANGES)
def test_trust_lapses_when_what_configures_or_executes_changes(config: Config, workspace: Path, change: str):
    lay(workspace, {".pawl/settings.toml": HOOK, "scripts/check.sh": b"good"})
    trust(config, str(workspace))
    others = {"a.py": b"y", ".pawl/memory/notes.md": b"m", ".env": b"A_API_KEY=1", "scripts/check.sh": b"on a bench"}
    lay(workspace, others)
    assert is_trusted(config, str(workspace))
    lay(workspace, CHANGES[change])
    found = folder_trust(config, str(workspace))
    assert (found.standing, found.changed) == (TrustStatus.LAPSED, tuple(CHANGES[change]))
    assert not is_trusted(config, str(workspace))


def test_trust_lapses_when_a_file_goes_or_may_be_executed(config: Config, workspace: Path):
    lay(workspace, {".pawl/run": b"x", ".pawl/gone": b""})
    trust(config, str(workspace))
    (workspace / ".pawl/run").chmod(0o755)
    (workspace / ".pawl/gone").unlink()
    assert folder_trust(config, str(workspace)).changed == (".pawl/gone", ".pawl/run")


SPECIAL = {
    "the folder is a link": ("rm -r .pawl && mkdir cfg && ln -s cfg .pawl", ".pawl"),
    "a folder in it is a link": ("rm -r .pawl/prompts && mkdir p && ln -s ../p .pawl/prompts", ".pawl/prompts"),
    "a file is a link": ("ln -sf ../../a.py .pawl/prompts/base.md", ".pawl/prompts/base.md"),
    "a link leads nowhere": ("ln -s nowhere .claude", ".claude/commands"),
    "a link leads to a device": ("ln -s /dev/zero .pawl/settings.toml", ".pawl/settings.toml"),
    "a FIFO": ("mkfifo .pawl/settings.toml", ".pawl/settings.toml"),
    "a FIFO in a folder": ("mkdir -p .claude/commands && mkfifo .claude/commands/x.md", ".claude/commands/x.md"),
    "a socket": (
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\".pawl/hooks.json\")'",
        ".pawl/hooks.json",
    ),
}


def commands(config: Config, workspace: Path) -> list[str]:
    """Of files, and not of the skills that come with Pawl."""
    found = own_commands(config, str(workspace))
    return [one.name for one in found if not one.source.startswith("comes with Pawl")]


@pytest.mark.attack("A09", "A10", "A46")
@pytest.mark.parametrize("case", SPECIAL)
def test_nothing_but_regular_files_is_trusted_and_what_was_trusted_lapses(config: Config, workspace: Path, case: str):
    trust(config, str(workspace))
    prepare, path = SPECIAL[case]
    subprocess.run(["sh", "-c", prepare], cwd=workspace, check=True)
    found = folder_trust(config, str(workspace))
    assert found.standing is TrustStatus.LAPSED and path in found.changed
    assert trusted_files(config, str(workspace)) is None
    with pytest.raises(ConfigError, match=re.escape(repr(path))):
        trust(config, str(workspace))
    hooks_for(config, str(workspace))
    permissions_of(config, str(workspace))
    assert commands(config, workspace) == []


def test_what_pawl_does_not_read_is_neither_refused_nor_part_of_the_trust(config: Config, workspace: Path):
    lay(workspace, {".claude/skills/x": "../../shared", ".agents": "nowhere", ".claude/commands/c.md": b"c"})
    os.mkfifo(workspace / "mcp.json")
    assert trust(config, str(workspace)).files == (".claude/commands/c.md", ".mcp.json", ".pawl/prompts/base.md")
    lay(workspace, {".claude/settings.json": b"{}"})
    assert is_trusted(config, str(workspace))
    lay(workspace, {".mcp.json": b'{"mcpServers": {}}'})
    assert not is_trusted(config, str(workspace))


@pytest.mark.parametrize("used", [True, False])
def test_a_record_of_an_earlier_version_holds_where_what_is_used_is_equal(config: Config, workspace: Path, used: bool):
    digests = {**project_files(str(workspace)).digests, ".cursor/mcp.json": "0" * 64, ".claude/hooks/x": "link ../x "}
    digests |= {".pawl/prompts/base.md": "0" * 64} if used else {}
    config.state.mkdir(parents=True)
    record = {"version": 1, "folders": {str(workspace): {"at": "then", "files": digests}}}
    (config.state / FILE).write_text(json.dumps(record))
    (config.state / FILE).chmod(0o600)
    found = folder_trust(config, str(workspace))
    assert (found.standing is TrustStatus.TRUSTED, found.changed) == (not used, (".pawl/prompts/base.md",) * used)


@pytest.mark.attack("A09")
def test_a_record_of_a_link_that_was_trusted_once_counts_no_more(config: Config, workspace: Path):
    lay(workspace, {".claude": "cfg"})
    (config.state).mkdir(parents=True)
    digests = {**project_files(str(workspace)).digests, ".claude": "link cfg "}
    record = {"version": 1, "folders": {str(workspace): {"at": "then", "files": digests}}}
    (config.state / FILE).write_text(json.dumps(record))
    (config.state / FILE).chmod(0o600)
    assert folder_trust(config, str(workspace)).standing is TrustStatus.LAPSED


@pytest.mark.attack("A09")
@pytest.mark.parametrize("case", SPECIAL)
def test_a_folder_of_the_settings_uses_regular_files_only_too(config: Config, workspace: Path, case: str):
    listed = replace(config, tables=replace(config.tables, trust={"folders": [str(workspace)]}))
    prepare, path = SPECIAL[case]
    subprocess.run(["sh", "-c", prepare], cwd=workspace, check=True)
    if path == ".agents":
        assert commands(listed, workspace) == []
        return
    with pytest.raises(ConfigError, match=re.escape(repr(path))):
        (prompts(listed, str(workspace)), hooks_for(listed, str(workspace)), own_commands(listed, str(workspace)))


@pytest.mark.attack("A46")
def test_what_is_used_is_what_was_looked_at_whatever_is_put_there_meanwhile(config: Config, workspace: Path):
    lay(workspace, {".pawl/settings.toml": b'[permissions]\nallow = ["Bash(make *)"]\n'})
    trust(config, str(workspace))
    held = trusted_files(config, str(workspace))
    lay(workspace, {".pawl/settings.toml": b'[permissions]\nallow = ["Bash(*)"]\n'})
    assert project_settings(str(workspace), held).permissions == {"allow": ["Bash(make *)"]}


@pytest.mark.attack("A09")
def test_a_link_in_the_place_of_a_key_file_is_not_followed(config: Config, workspace: Path):
    lay(workspace, {"other": b"A_API_KEY=1\n", ".env": "other"})
    with pytest.raises(ConfigError, match="symbolic link"):
        read_text(str(workspace), ".env")


@pytest.mark.attack("A09", "A10")
def test_what_cannot_be_looked_at_is_not_trusted_and_hangs_nothing(config: Config, workspace: Path):
    os.mkfifo(workspace / ".pawl/pipe")
    lay(workspace, {".pawl/settings.toml": "/dev/zero", ".pawl/device": "/dev/zero"})
    assert folder_trust(config, str(workspace)).standing is TrustStatus.UNKNOWN
    lay(workspace, {f".claude/commands/{at}": b"" for at in range(2_001)})
    with pytest.raises(UsageError, match="more files"):
        trust(config, str(workspace))
    assert not is_trusted(config, str(workspace))


def test_folders_of_the_settings_count_without_any_record(config: Config, workspace: Path):
    listed = replace(config, tables=replace(config.tables, trust={"folders": [str(workspace.parent)]}))
    assert is_trusted(listed, str(workspace))
    lay(workspace, {".pawl/new": b""})
    assert is_trusted(listed, str(workspace))


def project(workspace: Path, **lists: list[str]) -> None:
    text = "[permissions]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lists.items())
    lay(workspace, {".pawl/settings.toml": text.encode()})


@pytest.mark.attack("A48")
@pytest.mark.spec("F8")
def test_a_repository_may_only_tighten_unless_it_is_trusted(config: Config, workspace: Path):
    project(
        workspace, deny=["Bash(make deploy *)"], ask=["Edit(migrations/**)"], allow=["Bash(make *)"], preset="caged"
    )
    # The user is asked about commands, and the repository would have it otherwise.
    config = replace(config, tables=replace(config.tables, permissions={"preset": "standard"}))
    found = permissions_of(config, str(workspace))
    tried = [{"command": one} for one in ("make deploy", "make test")]
    assert [found.permissions.permit("run_command", one).ruling for one in tried] == [Decision.DENY, Decision.ASK]
    assert found.permissions.permit("file_write", {"path": "migrations/1.sql"}).ruling is Decision.ASK
    assert [("preset" in one, "not trusted" in one) for one in found.notices] == [(True, False), (False, True)]
    trust(config, str(workspace))
    found = permissions_of(config, str(workspace))
    assert [found.permissions.permit("run_command", one).ruling for one in tried] == [Decision.DENY, Decision.ALLOW]
    assert found.permissions.permit("run_command", {"command": "pytest"}).ruling is Decision.ASK
    assert found.permissions.permit("run_command", {"command": "make test"}).source == ".pawl/settings.toml"


@pytest.mark.parametrize(
    "text",
    [
        "[permissions]\ndeny = 3",
        "x",
        "[sandbox]\noff = true",
        "[permissions]\ndeny = ['Bsh(x)']",
        "\0",
        "[permissions]\nx = 1",
    ],
)
def test_a_mistake_of_a_repository_stops_nobody_who_does_not_trust_it(config: Config, workspace: Path, text: str):
    lay(workspace, {".pawl/settings.toml": text.encode()})
    assert len(permissions_of(config, str(workspace)).notices) == 1
    trust(config, str(workspace))
    with pytest.raises(ConfigError):
        permissions_of(config, str(workspace))


def test_the_users_rules_come_from_the_settings(config: Config, workspace: Path):
    rules = with_rules(config, preset="caged", deny=["Read(~/.ssh/**)", "mcp__x"], allow=["fetch_page"])
    found = permissions_of(rules, str(workspace), tools=["fetch_page"]).permissions
    assert found.permit("run_command", {"command": "make"}).ruling is Decision.ALLOW
    assert found.permit("file_read", {"path": f"{config.home}/.ssh/id"}).ruling is Decision.DENY
    assert found.permit("fetch_page", {}).ruling is Decision.ALLOW
    opened = permissions_of(rules, str(workspace), cage=SandboxMode.OPEN, tools=["fetch_page"]).permissions
    assert opened.permit("run_command", {"command": "make"}).ruling is Decision.ASK
    chat = permissions_of(rules, str(workspace), mode=Mode.CHAT, tools=["fetch_page"]).permissions
    assert chat.permit("run_command", {"command": "make"}).ruling is Decision.DENY


def test_every_mistake_of_the_table_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        permission_settings({"preset": "loose", "deny": "x", "alow": []}, "config.toml")
    assert all(word in caught.value.message for word in ("'loose'", "deny must be", "alow"))
