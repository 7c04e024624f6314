"""Special files in the place of others: no command of Pawl's waits for a FIFO, and none reads a device to its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from ui.cli.test_hidden_secrets import Place
from users import NAMES, become

pytestmark = pytest.mark.hostile

READ = (
    ".gitignore", ".agentignore", ".git/info/exclude", ".git/config", ".git/HEAD", "pyproject.toml", "package.json",
    "setup.cfg", "ruff.toml", "tsconfig.json", "AGENTS.md", "CLAUDE.md", "Makefile", ".venv/pyvenv.cfg",
    ".pawl/config.toml", ".pawl/hooks.json", ".pawl/prompts/planner.md", ".pawl/roles/artisan.toml",
    ".pawl/intents.toml", ".pawl/commands/x.md", ".pawl/memory/project.md", ".env", "conftest.py",
)  # fmt: skip
COMMANDS = (
    ("run", "--", "true"),
    ("locate", "anything"),
    ("permissions", "check", "Bash(ls)"),
    ("history",),
    ("patch", "tier.yaml"),
    ("loop", "--tiers", "tier.yaml", "x"),
    ("do", "--model", "scripted:tier.yaml", "x"),
    ("verify",),
)


@pytest.fixture(params=NAMES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    user = become(request.param)
    with user.folder() as folder:
        (folder / "workspace").mkdir()
        yield Place(user, folder)


@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_no_command_waits_for_a_special_file(place: Place, kind: str):
    place.lay("main.py", text="x = 1\n")
    for name in (*READ, "tier.yaml"):
        path = place.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
    place.user.own(place.folder)
    for words in COMMANDS:
        said = pawl(place, *words)
        assert "Traceback" not in said.stderr, (words, said.stderr)
        assert "MemoryError" not in said.stderr, (words, said.stderr)


LONG = 300_000
LONG_LINES = {
    "Makefile": f"test{' ' * LONG}",
    "justfile": "w-" * (LONG // 2),
    "test_blank.py": "\n" * LONG,
    "blank.test.js": "\n" * LONG,
    "specs/001-x/spec.md": "# x\n" + "\n" * LONG,
    "specs/001-x/checklists/x.md": "\n" * LONG,
    "specs/001-x/tasks.md": f"# Tasks\n## A{' ' * LONG}x\n- [ ] T001 x in a.txt\n",
    "issue.md": f"## T001 x{' ' * LONG}y\nFiles: a{' ' * LONG}y\n",
}


def test_no_long_line_holds_a_command_up(place: Place):
    for name, text in LONG_LINES.items():
        place.lay(name, text=text)
    place.user.own(place.folder)
    for line in ("verify", "fix --dry-run --seconds 5", "spec status", "spec analyze", "spec issues import issue.md"):
        assert "Traceback" not in pawl(place, *line.split()).stderr


def pawl(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    """A command with a deadline that none comes near to, and with memory that a device would use up."""
    line = ["prlimit", f"--as={4 << 30}", place.user.python, "-B", "-m", "pawl", *words]
    return subprocess.run(
        place.user.words(line),
        env=place.user.environment(place.folder),
        cwd=place.workspace,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_pipe_of_the_callers_own_shell_is_read(place: Place):
    place.lay("a.txt", text="one\n")
    place.user.own(place.folder)
    patch = "--- a/a.txt\\n+++ b/a.txt\\n@@ -1 +1 @@\\n-one\\n+two\\n"
    said = subprocess.run(
        place.user.words(["bash", "-c", f"{place.user.python} -B -m pawl patch <(printf -- '{patch}')"]),
        env=place.user.environment(place.folder),
        cwd=place.workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, (place.workspace / "a.txt").read_text()) == (0, "two\n"), said.stderr
