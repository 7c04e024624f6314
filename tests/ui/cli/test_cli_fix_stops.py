"""`pawl fix` under way: what is watched, and what is left when it is stopped or when the user works on meanwhile."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ui.cli.console import PATIENCE, PAWL, Pawl
from ui.cli.projects import RIGHT, UNITTEST, WRONG, Project
from world import snapshot

pytestmark = [pytest.mark.spec("F1", "F2"), pytest.mark.timeout(120)]

NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
BROKEN = {"app.py": WRONG, "test_app.py": UNITTEST}
STUCK = {"app.py": RIGHT, "test_app.py": UNITTEST.replace("self.assert", "while True: self.assert", 1)}
SCRIPT = {
    "slow.js": "module.exports = (a, b) => { let n = 0; for (let i = 0; i < a; i++) { n += b * i - a; } return n; };\n",
    "slow.test.js": "require('node:test').test('never', () => {\n  const end = Date.now() + 50;\n"
    "  while (Date.now() < end);\n  require('assert').equal(require('./slow.js')(4, 3), 'quite another');\n});\n",
}
"""Every candidate takes its time, and none is right."""


@contextmanager
def fixing(pawl: Pawl, until: str) -> Iterator[subprocess.Popen[str]]:
    """`pawl fix` after it has said that."""
    process = subprocess.Popen([*PAWL, "fix"], cwd=pawl.workspace, stdout=-1, stderr=-1, text=True)
    try:
        assert any(line.startswith(until) for line in process.stderr), until
        yield process
    finally:
        process.kill()
        process.communicate()


def processes(word: Path) -> list[str]:
    """The commands of this machine that have to do with a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        found += [words] if str(word) in words and "pytest" not in words else []
    return found


@pytest.mark.whole
@pytest.mark.parametrize(
    ("files", "until", "number", "code"),
    [
        (STUCK, "running the suite", signal.SIGINT, 130),
        (BROKEN, "searching", signal.SIGINT, 130),
        (BROKEN, "verifying", signal.SIGTERM, 143),
        pytest.param(SCRIPT, "searching", signal.SIGINT, 130, marks=NODE),
    ],
)
def test_a_signal_leaves_everything_as_it_was(project: Project, state_directory: Path, files, until, number, code):
    pawl = project(files)
    before = snapshot(pawl.workspace)
    with fixing(pawl, until) as process:
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
        assert process.stderr.read().endswith("\n      nothing was left half done\n")
    assert snapshot(pawl.workspace) == before
    assert list((state_directory / "benches").iterdir()) == []
    assert processes(pawl.workspace) == []
    assert pawl("history", "--all").lines[0].startswith("nothing was promoted")


@pytest.mark.whole
def test_after_a_kill_the_tree_is_as_it_was_and_the_next_start_removes_the_bench(
    project: Project, state_directory: Path
):
    pawl = project(BROKEN)
    before = snapshot(pawl.workspace)
    with fixing(pawl, "searching") as process:
        process.kill()
        process.wait(PATIENCE)
    assert snapshot(pawl.workspace) == before
    (left,) = (state_directory / "benches").iterdir()
    assert pawl("fix").code == 0
    assert not left.exists()
    assert (pawl.workspace / "app.py").read_text() == RIGHT


@pytest.mark.whole
def test_ctrl_c_in_a_terminal_clears_the_live_line_and_leaves_the_cursor(project: Project):
    with project(STUCK).terminal("fix") as terminal:
        terminal.expect("running the suite")
        terminal.type("\x03")
        assert terminal.finish() == 130
    assert "\x1b[?25l" not in terminal.raw
    assert terminal.text.endswith("pawl: interrupted\n      nothing was left half done\n")


@pytest.mark.whole
def test_what_is_watched_fits_the_terminal_and_is_gone_at_the_end(project: Project):
    columns = 90
    with project(BROKEN).terminal("fix", columns=columns) as terminal:
        assert terminal.finish() == 0
    drawn = re.split(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n", terminal.text)
    assert {"running the suite · $0.00", "searching for a patch · $0.00"} <= set(drawn)
    assert max(map(len, drawn)) <= columns
    assert drawn[-2].startswith("fixed in ")


@pytest.mark.whole
def test_what_the_user_changes_meanwhile_is_merged_or_the_patch_is_kept(project: Project):
    more = "\n\ndef before(number):\n    return number - 1\n"
    pawl = project({**BROKEN, "app.py": WRONG + more})
    with fixing(pawl, "verifying") as process:
        (pawl.workspace / "app.py").write_text(f"{WRONG}{more}\n\nMINE = 1\n")
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (pawl.workspace / "app.py").read_text() == f"{RIGHT}{more}\n\nMINE = 1\n"

    (pawl.workspace / "app.py").write_text(WRONG)
    mine = WRONG.replace("2", "7")
    with fixing(pawl, "verifying") as process:
        (pawl.workspace / "app.py").write_text(mine)
        err = process.communicate(timeout=PATIENCE)[1]
    assert (process.returncode, (pawl.workspace / "app.py").read_text()) == (1, mine)
    assert "pawl: the patch could not be promoted: you changed 'app.py' meanwhile, in the same place" in err
    assert "it is kept: see it with 'pawl diff 2', promote it with 'pawl promote 2'" in err
    assert "+    return number + 1" in pawl("diff", "2").out


@pytest.mark.slow
@pytest.mark.usefixtures("active_environment")
def test_an_engine_that_does_not_come_to_its_end_has_run_out_of_time(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text("fix_seconds = 2\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    held = "import sys\nimport threading\n\nif 'reflex_inside' in sys.modules:\n    threading.Event().wait()\n"
    pawl = project({**BROKEN, "conftest.py": held, "pytest.ini": "[pytest]\n"})
    told = pawl.json("fix", code=1)
    assert told["reason"] == "time ran out before a patch was found", told
