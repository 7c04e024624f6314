"""The shared fixtures keep their word: no test meets the developer's own home, and modes are what they say."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

FOLDERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")


def test_home_and_the_folders_below_it_are_not_the_developers():
    own = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert Path.home() != own
    assert all(Path(os.getenv(name, "/")).is_relative_to(Path.home()) for name in FOLDERS)


def test_git_commits_without_the_developers_settings(tmp_path: Path):
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    shown = subprocess.run(
        ["git", "log", "--format=%an %D"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert shown == "Test HEAD -> main\n"


def test_the_state_directory_is_private_and_new_files_are_not(state_directory: Path, workspace: Path):
    assert state_directory.stat().st_mode & 0o777 == 0o700
    (workspace / "new").touch()
    assert [(workspace / name).stat().st_mode & 0o777 for name in ("new", "run.sh")] == [0o644, 0o755]
