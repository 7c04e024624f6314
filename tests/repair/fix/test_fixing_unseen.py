"""`fix` where every test passes: sources that no test imports are read, and what is certain about them is mended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from repair.fix.projects import fixed, project

from pawl.repair.model import FixOutcome, FixReport, FixRequest

pytestmark = [
    pytest.mark.usefixtures("active_environment"),
    pytest.mark.spec("A12", "F1"),
    pytest.mark.timeout(300),
]

GREEN = {
    "prices.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
    "test_prices.py": "import unittest\n\nfrom prices import total\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n",
}
MENDED = {
    "missing_import.py": ("print(total([1]))\n", "from prices import total\n\nprint(total([1]))\n"),
    "misspelt_module.py": (
        "from pricse import total\n\nprint(total([1]))\n",
        "from prices import total\n\nprint(total([1]))\n",
    ),
    "misspelt_keyword.py": (
        "from prices import total\n\nprint(total(price=[1]))\n",
        "from prices import total\n\nprint(total(prices=[1]))\n",
    ),
    "indented.py": ("x = 1\n  y = 2\nprint(x + y)\n", "x = 1\ny = 2\nprint(x + y)\n"),
    "arrow.py": ("def f(a: list[int] -> int:\n    return a[0]\n", "def f(a: list[int]) -> int:\n    return a[0]\n"),
}
ENTRIES = {
    "missing_import.py": "python.undefined-name",
    "misspelt_module.py": "python.missing-module",
    "misspelt_keyword.py": "python.unexpected-keyword",
    "indented.py": "python.indentation",
    "arrow.py": "python.invalid-syntax",
}


def fixed_beside(root: Path, files: Mapping[str, str]) -> FixReport:
    """What comes of a project whose tests pass, with these files beside."""
    return fixed(project(root, GREEN | files), FixRequest(seconds=200))


@pytest.mark.whole
def test_what_no_test_sees_is_mended_by_name(tmp_path: Path) -> None:
    root = tmp_path / "project"
    report = fixed_beside(tmp_path, {name: before for name, (before, _) in MENDED.items()})
    assert (report.outcome, report.reason) == (FixOutcome.FIXED, "")
    assert {repair.path: repair.what for repair in report.repairs} == ENTRIES
    assert {name: (root / name).read_text() for name in MENDED} == {name: after for name, (_, after) in MENDED.items()}


@pytest.mark.whole
def test_a_source_that_no_recovery_makes_compile_is_told_and_left(tmp_path: Path) -> None:
    text = "@cached\nraise SystemExit\n"
    report = fixed_beside(tmp_path, {"broken.py": text})
    assert report.outcome is FixOutcome.NOT_FIXED
    assert report.reason.startswith("broken.py:2 does not compile: SyntaxError")
    assert (tmp_path / "project" / "broken.py").read_text() == text


OURS = """
[[verify.recovery]]
id = "ours.generated"
patterns = ["No module named '(?P<module>generated[\\\\w.]*)'"]
recovery = "say"
outside = true
advice = "make {module} with 'make codegen'"
examples = ["ModuleNotFoundError: No module named 'generated.api'"]
"""


@pytest.mark.whole
def test_what_an_entry_of_the_users_says_lies_outside_is_told_and_not_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text(OURS)
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    report = fixed_beside(tmp_path, {"prices.py": "def total(prices):\n    import generated\n    return sum(prices)\n"})
    assert (report.outcome, report.advice, report.tried) == (
        FixOutcome.NOT_FIXED,
        "make generated with 'make codegen'",
        0,
    )


@pytest.mark.whole
def test_what_only_a_test_could_decide_is_not_touched(tmp_path: Path) -> None:
    files = {
        "one.py": "def rate() -> int:\n    return 1\n",
        "two.py": "def rate() -> int:\n    return 2\n",
        "undecided.py": "print(rate())\n",
        "dynamic.py": "class Row:\n    price = 1\n\n\nrow = Row()\nsetattr(row, 'prize', 2)\nprint(row.prize)\n",
    }
    report = fixed_beside(tmp_path, files)
    assert (report.outcome, report.repairs) == (FixOutcome.NOTHING_FAILS, ())
    assert [note.split(":1 ")[0] for note in report.notes] == ["undecided.py"]
    assert "2 ways, and no test decides" in report.notes[0]
    assert {name: (tmp_path / "project" / name).read_text() for name in files} == files
