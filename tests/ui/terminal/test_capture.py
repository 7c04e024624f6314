"""The picture in the docs is the session as it is played now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.whole
@pytest.mark.usefixtures("full_protection")
def test_the_picture_of_the_session_is_drawn_anew_and_is_the_same(tmp_path: Path):
    subprocess.run([sys.executable, ROOT / "scripts" / "capture", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "session.svg").read_text() == (ROOT / "docs/images/session.svg").read_text()
