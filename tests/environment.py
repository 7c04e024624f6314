"""A project's own environment: an interpreter with pytest and nothing else."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import venv
from pathlib import Path


def make(folder: Path) -> Path:
    """Makes it there: the one that runs these tests has plugins that triple what each start of pytest costs."""
    venv.create(folder, symlinks=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        files = importlib.metadata.files(name) or []
        for file in files:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), packages / file)
    # Compiled once here, not by each process in a sandbox that cannot write there.
    subprocess.run([folder / "bin/python", "-m", "compileall", "-q", str(packages)], check=True)
    (folder / "bin/pytest").write_text(f"#!{folder}/bin/python\nfrom pytest import console_main\nconsole_main()\n")
    (folder / "bin/pytest").chmod(0o755)
    return folder
