"""Real folders, real commands and captured reports for the tests of verification."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pawl.checks.steps import Subject
from pawl.core.change import blob_digest
from pawl.core.execution import Captured, Completed, Ending

FIXTURES = Path(__file__).parent / "fixtures"


class RealFolder:
    """A folder on the disk as verification looks at it."""

    def __init__(self, root):
        self.root = Path(root)

    def read(self, path):
        return (self.root / path).read_bytes()

    def digest(self, path):
        return blob_digest(self.read(path))

    def exists(self, path):
        return (self.root / path).exists()

    def walk(self, under=""):
        return sorted(
            str(path.relative_to(self.root))
            for path in (self.root / under).rglob("*")
            if path.is_file() and ".git" not in path.parts and "__pycache__" not in path.parts
        )


class RealCommands:
    """Runs commands in a folder with a PATH of its own; a missing program ends as a shell would end it."""

    def __init__(self, root, path=()):
        self.root = Path(root)
        self.path = os.pathsep.join([*map(str, path), "/usr/bin", "/bin"])
        self.ran = []

    def run(self, execution):
        self.ran.append(execution.argv)
        started = time.monotonic()
        environment = {"PATH": self.path, "HOME": str(self.root), "LANG": "C.UTF-8"}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        program = shutil.which(execution.argv[0], path=self.path)
        if program is None and not (self.root / execution.argv[0]).exists():
            return Completed(ending=Ending.EXITED, code=127)
        try:
            done = subprocess.run(
                [program or execution.argv[0], *execution.argv[1:]],
                cwd=self.root / execution.directory,
                env=environment | dict(execution.environment),
                capture_output=True,
                timeout=execution.limits.seconds,
            )
        except subprocess.TimeoutExpired as late:
            seconds = time.monotonic() - started
            out = late.stdout or b""
            return Completed(
                ending=Ending.TIMED_OUT, code=None, stdout=Captured(head=out, total=len(out)), seconds=seconds
            )
        return Completed(
            ending=Ending.EXITED,
            code=done.returncode,
            stdout=Captured(head=done.stdout, total=len(done.stdout)),
            stderr=Captured(head=done.stderr, total=len(done.stderr)),
            seconds=time.monotonic() - started,
        )


def write(root, files):
    for path, content in files.items():
        target = Path(root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def folder(tmp_path):
    """Makes a folder with these files."""

    def make(files=None, **named):
        write(tmp_path, {**(files or {}), **named})
        return RealFolder(tmp_path)

    return make


@pytest.fixture
def subject(tmp_path):
    """Makes a project that can be verified, with the tools of the environment that runs the tests."""

    def make(files, *, tools=True, **settings):
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        write(root, files)
        bin_folder = [Path(sys.executable).parent] if tools else []
        runner = RealCommands(root, bin_folder)
        return Subject(files=RealFolder(root), runner=runner, workspace=str(root), **settings)

    return make


@pytest.fixture
def captured():
    """A report that a real tool printed."""

    def read(name):
        return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")

    return read
