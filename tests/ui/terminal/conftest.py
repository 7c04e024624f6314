"""A small project with a bug, a scripted model that mends it, and sessions in a terminal or through pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import nursery
import pytest
from ui.terminal.emulator import Emulator

FILES = {
    "app.py": "def after(number):\n    return number + 2\n",
    "notes.txt": "first\n",
    "deep/er/thing.py": "x = 1\n",
}
FIX = """
[[turn]]
match = { user = "fix the bug", answered = [] }
answer = { text = "I look at `app.py`.", calls = [{ name = "file_read", arguments = { path = "app.py" } }] }
[[turn]]
match = { answered = ["file_read"] }
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } }] }
[[turn]]
match = { answered = ["strict_patch"] }
answer = "One is added **now**."
"""

Open = Callable[..., Emulator]


class Place:
    """A workspace with Pawl's state beside it."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.script = workspace.parent / "script.toml"

    def model(self, text: str) -> str:
        self.script.write_text(text)
        return f"scripted:{self.script}"

    def open(self, *words: str, columns: int = 80, rows: int = 30) -> Emulator:
        return Emulator(words, self.workspace, columns=columns, rows=rows)

    def piped(self, *lines: str, words: tuple[str, ...] = (), ends: int = 0) -> str:
        """What a session says to lines that come through a pipe; its errors come with it."""
        given = "".join(f"{line}\n" for line in lines).encode()
        code, out, _ = nursery.run(words, self.workspace, given, joined=True)
        said = out.decode("utf-8", "replace")
        assert code == ends, said
        return said


@pytest.fixture
def place(tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("COLUMNS", "LINES", "EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    workspace = tmp_path / "project"
    for name, text in FILES.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Place(workspace)
