"""A window that changes its size, in a terminal that folds its lines anew and keeps a history: tmux."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ui.terminal.conftest import FIX, Place

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
TYPED = "what does app.py do, and which of the other files of this folder would notice if it did something else?"


class Window:
    """A window of a tmux server of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._folder = folder  # The name of a socket may have 107 bytes, wherever the folder is.
        self.tmux("new-session", "-d", "-s", "it", "-x", "100", "-y", "24", *words)

    def tmux(self, *words: str) -> str:
        server = ("tmux", "-f", "/dev/null", "-S", "tmux")
        return subprocess.run((*server, *words), cwd=self._folder, check=True, capture_output=True, text=True).stdout

    def shows(self, text: str) -> str:
        """All that was printed and stands, once the text is in it; both without blanks, which folding moves."""
        wanted, end = "".join(text.split()), time.monotonic() + 60
        while wanted not in (shown := "".join(self.tmux("capture-pane", "-p", "-S", "-", "-t", "it").split())):
            assert time.monotonic() < end, shown
        return shown


@pytest.fixture
def window(place: Place, tmp_path: Path) -> Iterator[Window]:
    pawl = (sys.executable, "-m", "pawl", "-C", str(place.workspace), "--model", place.model(FIX))
    found = Window(tmp_path, *pawl)
    yield found
    found.tmux("kill-server")


def test_a_window_that_is_made_smaller_and_larger_holds_one_copy_of_what_is_drawn_again(window: Window):
    window.shows("asks at the end · $0.00 · /help")
    window.tmux("send-keys", "-t", "it", "/help", "Enter")  # The screen is full, as it is most of the day.
    window.shows("Ctrl-D leave")
    window.tmux("send-keys", "-t", "it", "-l", TYPED)
    window.shows("something else?")
    for columns in (80, 60, 45, 44, 43, 70, 100):
        window.tmux("resize-window", "-t", "it", "-x", str(columns), "-y", "24")
        window.tmux("send-keys", "-t", "it", "-l", str(columns))
        shown = window.shows(f"{columns}scripted:script.toml")
    assert shown.count("whatdoesapp.pydo") == shown.count("scripted:script.toml") == 1, shown
