"""scripts/spec_coverage reads markers wherever they may stand, and tells a wrong id from a missing test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "spec_coverage"

MARKED = """
import pytest

pytestmark = [pytest.mark.spec("F5")]

@pytest.mark.spec("B9", "F2")
def test_one(): ...

@pytest.mark.attack("A15")
class TestMany:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.attack("A16"))])
    async def test_two(self, x): ...
"""


def report(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments, str(folder)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "test_marked.py").write_text(MARKED)
    return tmp_path


def test_markers_of_functions_classes_modules_and_parameters_are_counted(marked: Path):
    done = report(marked)
    assert (done.returncode, done.stderr) == (0, "")
    assert "## Requirements: 3 of 84 have tests" in done.stdout
    assert "## Attack cases: 2 of 60 have tests" in done.stdout
    assert "| F. Beyond | F2 F5 | F1 F3 F4 F6 F7 F8 F9 F10 |" in done.stdout
    assert "| Local web server | – | A55 A56 A57 A58 A59 A60 |" in done.stdout


def test_the_tests_of_an_id_are_named_on_request(marked: Path):
    lines = report(marked, "--tests").stdout.splitlines()
    assert lines[lines.index("- B9") + 1] == "  - `store/test_marked.py::test_one`"
    assert lines[lines.index("- A16") + 1] == "  - `store/test_marked.py::TestMany::test_two`"
    assert lines[lines.index("- F5") + 1] == "  - `store/test_marked.py`"


@pytest.mark.parametrize(
    ("marker", "complaint"),
    [
        ('pytest.mark.spec("B99")', "test_wrong.py::test_it: there is no spec id 'B99'"),
        ('pytest.mark.attack("A1")', "test_wrong.py::test_it: there is no attack id 'A1'"),
        ("pytest.mark.spec(WHICH)", "test_wrong.py::test_it: the id of a spec marker is not written out"),
    ],
)
def test_a_marker_that_proves_nothing_is_reported(tmp_path: Path, marker: str, complaint: str):
    (tmp_path / "test_wrong.py").write_text(f"import pytest\n\n@{marker}\ndef test_it(): ...\n")
    done = report(tmp_path)
    assert (done.returncode, done.stderr.splitlines()) == (1, [complaint])


def test_the_markers_of_this_project_name_ids_that_exist():
    done = report(ROOT / "tests")
    assert (done.returncode, done.stderr) == (0, "")
