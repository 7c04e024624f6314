"""A real front end with its packages installed once from the lock file."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ui.cli.console import Pawl

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The storefront with its node_modules."""
    root = tmp_path_factory.mktemp("npm") / "storefront"
    shutil.copytree(HERE / "storefront", root)
    home = os.path.expanduser("~")
    command = ["npm", "ci", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=root, check=True, capture_output=True, env={**os.environ, "HOME": home})  # noqa: TID251
    return root


@pytest.fixture
def storefront(
    installed: Path, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Pawl]:
    """Makes a storefront with some texts replaced, each by file, old and new text."""
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("TERM", "xterm-256color")

    def make(*edits: tuple[str, str, str]) -> Pawl:
        root = tmp_path / "storefront"
        # Links instead of copies: a bench never writes to them.
        subprocess.run(["cp", "-al", str(installed), str(root)], check=True)
        for name, old, new in edits:
            path = root / name
            text = path.read_text()
            assert old in text, (name, old)
            path.unlink()
            path.write_text(text.replace(old, new, 1))
        return Pawl(root)

    return make
