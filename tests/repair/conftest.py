"""Small workspaces with a bug, and the reflex run on them in a process of its own."""

import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pawl.repair.ground import command, parse_event
from pawl.repair.model import BaselineTaken, ProblemFound, RepairEnded, RepairEvent, RepairRequest, StageBegun


@dataclass
class Repaired:
    """The events of one run, sorted by what they say."""

    root: Path
    events: list[RepairEvent] = field(default_factory=list)

    @property
    def ended(self) -> RepairEnded:
        last = self.events[-1]
        assert isinstance(last, RepairEnded)
        return last

    @property
    def baseline(self) -> BaselineTaken:
        return next(event for event in self.events if isinstance(event, BaselineTaken))

    @property
    def problems(self) -> list[ProblemFound]:
        return [event for event in self.events if isinstance(event, ProblemFound)]

    @property
    def stages(self) -> list[str]:
        return [event.name for event in self.events if isinstance(event, StageBegun)]

    def patched(self) -> str:
        """The text of the file that the chosen patch changes, with the patch applied."""
        patch = self.ended.chosen
        assert patch is not None, self.ended
        return patch.applied((self.root / patch.path).read_bytes()).decode()


Repair = Callable[..., Repaired]


@pytest.fixture
def repair(tmp_path: Path, project_environment: Path) -> Repair:
    """Writes the files and lets the reflex look for a patch."""

    def run(files: dict[str, str], **options: object) -> Repaired:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(textwrap.dedent(text).lstrip("\n").encode())
        seconds = float(options.pop("seconds", 60))  # type: ignore[arg-type]
        request = RepairRequest(root=str(tmp_path), seconds=seconds, **options)  # type: ignore[arg-type]
        words = command(request, str(project_environment / "bin/python"))
        lines = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False).stdout.splitlines()
        return Repaired(tmp_path, [parse_event(line) for line in lines if line.strip()])

    return run
