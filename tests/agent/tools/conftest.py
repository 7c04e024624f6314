"""A small workspace with every tool over it: real files, and commands that run in that folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from folder import GUARDRAILS, FolderFiles

from pawl.agent.tools.tool_registry import Ports, ToolRegistry
from pawl.agent.tools.toolbox import TimedFiles, toolbox
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap
from pawl.core.execution import Captured, Completed, Ending, Execution


class FolderRunner:
    """Runs a command in a folder and remembers what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[Execution] = []

    def run(self, execution: Execution) -> Completed:
        self.asked.append(execution)
        try:
            ended = subprocess.run(
                execution.argv,
                cwd=self.root / execution.directory,
                capture_output=True,
                timeout=execution.limits.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return Completed(ending=Ending.TIMED_OUT, code=None, stdout=captured(error.stdout or b""))
        return Completed(
            ending=Ending.EXITED, code=ended.returncode, stdout=captured(ended.stdout), stderr=captured(ended.stderr)
        )


def captured(data: bytes) -> Captured:
    return Captured(head=data, total=len(data))


@pytest.fixture
def runner(workspace: Path) -> FolderRunner:
    return FolderRunner(workspace)


@pytest.fixture
def tools(workspace: Path, runner: FolderRunner) -> ToolRegistry:
    files = TimedFiles(lambda: FolderFiles(workspace), seconds=5.0)

    def dependencies() -> ImportMap:
        return ImportMap.of({path: files.read(path) for path in files.walk() if path.endswith(".py")})

    editor = BenchEditor(files, GUARDRAILS)
    return toolbox(
        Ports(
            files=files,
            editor=lambda: editor,
            runner=runner,
            dependencies=dependencies,
            guardrails=GUARDRAILS,
        )
    )
