"""Packages of hundreds of megabytes, which a registry may take longer to send than a test may wait."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SECONDS = 200


def install_or_skip(folder: Path, *packages: str) -> None:
    """Install them there; where they cannot be had the tests are skipped, and say so."""
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", *packages]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {', '.join(packages)} within {SECONDS} s")
    if done.returncode:
        pytest.skip(f"npm could not install {', '.join(packages)}: {done.stderr.strip()[:200]}")
