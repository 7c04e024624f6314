"""`make demo` runs, and what the README shows is what it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ui.cli.transcript import SCRIPT, blocks, normal

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()


@pytest.mark.whole
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("full_protection")
def test_the_demo_runs_and_the_transcript_of_the_readme_is_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAWL", str(SCRIPT))
    done = subprocess.run([ROOT / "scripts" / "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    shown = normal(done.stdout.decode())
    assert done.returncode == 0, shown
    assert shown.endswith("byte for byte, modes included.\n")
    transcript = blocks(README)
    assert len(transcript) == 3
    for block in transcript:
        assert block in shown
