"""Packages of hundreds of megabytes, which a registry may take longer to send than a test may wait."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SECONDS = 200


def install_or_skip(folder: Path, *packages: str) -> None:
    """Install them there, from npm's cache if it has them; tests that cannot have them are skipped, and say so."""
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", *packages]
    for kept in (["--offline"], []):
        try:
            done = subprocess.run(
                [*command, *kept], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install {', '.join(packages)} within {SECONDS} s")
        if not done.returncode:
            return
    pytest.skip(f"npm could not install {', '.join(packages)}: {done.stderr.strip()[:200]}")
