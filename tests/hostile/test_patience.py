"""The watch over hostile workspaces itself: what hangs is told, though the command is busy with itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile.partners import Other, browser, editor
from hostile.patience import CORES, Clock

pytestmark = pytest.mark.hostile

SILENT = "import signal; print('ready', flush=True); signal.pause()"
SERVER = (
    "import http.server, json, signal, socket, sys\n"
    "s = socket.create_server(('127.0.0.1', 0))\n"
    "print(json.dumps({'url': f'http://127.0.0.1:{s.getsockname()[1]}/#token=x'}), flush=True)\nsignal.pause()\n"
)


@contextmanager
def started(*words: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, start_new_session=True, **options)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def other(process: subprocess.Popen[bytes], out: Path) -> Other:
    return Other(process.pid, process.stdin.fileno() if process.stdin else -1, out, patience=0.2)


def test_an_editor_that_is_not_answered_tells_of_a_hang(tmp_path: Path):
    with (tmp_path / "out").open("wb") as out, started("cat", stdin=subprocess.PIPE, stdout=out) as process:
        os.kill(process.pid, signal.SIGSTOP)
        at = other(process, tmp_path / "out")
        editor((("initialize", {}), ("session/new", {})))(at)
    assert [problem[:9] for problem in at.problems] == ["hung for "]
    assert "'id 1'" in at.problems[0]


@pytest.mark.parametrize(("code", "named"), [(SILENT, "'url'"), (SERVER, "'GET /api/state'")])
def test_a_browser_that_is_not_answered_tells_of_a_hang(code: str, named: str, tmp_path: Path):
    with (tmp_path / "out").open("wb") as out, started(sys.executable, "-c", code, stdout=out) as process:
        at = other(process, tmp_path / "out")
        at.patience = 3.0  # until an interpreter has started
        browser(("GET", "/api/state", None), ("GET", "/api/files", None))(at)
    assert [problem[:9] for problem in at.problems] == ["hung for "]
    assert named in at.problems[0]


def test_a_partner_of_a_command_that_ends_tells_of_no_hang(tmp_path: Path):
    with (tmp_path / "out").open("wb") as out, started("true", stdin=subprocess.PIPE, stdout=out) as process:
        at = other(process, tmp_path / "out")
        at.patience = 60.0
        editor((("initialize", {}),))(at)
        browser(("GET", "/api/state", None))(at)
    assert at.problems == []


def test_what_the_children_of_a_command_take_from_each_other_is_its_own_time():
    line = "for n in $(seq 12); do while :; do :; done & done; wait"
    with started("nice", "-n", "5", "sh", "-c", line) as process:
        clock, computed = Clock(process.pid), 0.0
        while computed < 1.0:
            clock.until(patience=clock.had + 0.01)
            computed = sum(each[0] for each in clock.tasks.values()) / 1e9
    assert clock.had > computed / CORES / 2
