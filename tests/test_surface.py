"""The list of what users and programs can reach, by which two versions are compared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "surface"


def test_commands_options_settings_tools_events_and_exit_codes_are_listed_one_a_line():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(set(lines))
    assert {
        "command undo",
        "option undo --on-conflict {stop,keep,overwrite} = stop",
        "session /restore [NAME] [--dry-run]",
        "setting run_seconds",
        "setting [permissions] deny",
        "variable PAWL_MODEL",
        "tool file_read",
        "event NodeEntered",
        "hook PreToolUse",
        "exit 42 UsageError",
    } <= set(lines)
