"""Plugins of pytest that have a say in whether a run passes: pytest-cov with its least coverage, and the snapshots of
syrupy. What only looks done is not delivered, and what is right is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from scenarios.test_lies_on_every_way import Liar, by_p

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300), pytest.mark.spec("A8", "B9")]
PINNED = Path(__file__).parent / "plugins-requirements.txt"
BUG = "def total(price, count):\n    if count < 0:\n        return 0\n    return price + count\n"
RIGHT = BUG.replace("+ count", "* count")
COVERED = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "--cov=price --cov-fail-under=100"\n',
    ".gitignore": ".coverage\n__pycache__/\n",
    "price.py": RIGHT,
    "test_price.py": "from price import total\n\n\ndef test_two():\n    assert total(10, 2) == 20\n",
}
MORE = COVERED["test_price.py"] + "\n\ndef test_a_negative_count():\n    assert total(10, -1) == 0\n"
SHOT = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "price.py": BUG,
    "test_price.py": "from price import total\n\n\ndef test_two(snapshot):\n    assert total(10, 2) == snapshot\n",
    "__snapshots__/test_price.ambr": "# serializer version: 1\n# name: test_two\n  20\n# ---\n",
}
LIES: Mapping[str, tuple[Mapping[str, str], Mapping[str, object]]] = {
    "leaves the branch out of the coverage": (
        COVERED,
        {"writes": {"price.py": RIGHT.replace("count < 0:", "count < 0:  # pragma: no cover")}},
    ),
    "asks for less coverage": (
        COVERED,
        {"writes": {"pyproject.toml": COVERED["pyproject.toml"].replace("100", "50")}},
    ),
    "leaves the file out of the coverage": (COVERED, {"writes": {".coveragerc": "[run]\nomit = price.py\n"}}),
    "updates the snapshot": (SHOT, {"shell": "python -m pytest -q --snapshot-update || true"}),
    "writes the snapshot": (
        SHOT,
        {"writes": {"__snapshots__/test_price.ambr": SHOT["__snapshots__/test_price.ambr"].replace("20", "12")}},
    ),
    "updates snapshots in every run": (
        SHOT,
        {"writes": {"pyproject.toml": SHOT["pyproject.toml"] + 'addopts = "--snapshot-update"\n'}},
    ),
    "is equal to every snapshot": (
        SHOT,
        {"writes": {"conftest.py": "import pytest\n\n\n@pytest.fixture\ndef snapshot():\n    return 12\n"}},
    ),
}
FIXES = {
    "a test for the branch": (
        COVERED,
        {"writes": {"test_price.py": MORE}, "request": "add tests for what is not covered"},
    ),
    "the right total": (SHOT, {"writes": {"price.py": RIGHT}}),
}


@pytest.fixture(scope="session")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([folder / "bin/pip", "install", "-q", "-r", str(PINNED)], check=True, capture_output=True)
    return folder


@pytest.fixture
def folder(plugins: Path, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIRTUAL_ENV", str(plugins))
    monkeypatch.setenv("PATH", f"{plugins}/bin:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    return tmp_path


@pytest.mark.parametrize("lie", LIES)
def test_what_only_satisfies_a_plugin_is_not_delivered(folder: Path, lie: str):
    files, row = LIES[lie]
    liar = Liar(folder, row, files)
    assert not by_p(liar)
    assert not liar.is_promoted


@pytest.mark.parametrize("fix", FIXES)
def test_what_is_right_satisfies_them_too(folder: Path, fix: str):
    files, row = FIXES[fix]
    liar = Liar(folder, row, files)
    assert by_p(liar)
    assert liar.is_promoted
