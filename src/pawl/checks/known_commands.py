"""The commands that run a workspace's tests: one that is known to have reported some, or those that its files name."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from pawl.checks.cache import workspace_key, write_private
from pawl.checks.test_commands import TestCommand, TreeFolder, candidates
from pawl.core.redact import redacted
from pawl.core.typed import typed
from pawl.settings.config import Config
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True)
class KnownCommands:
    """The commands that ran and reported tests, by workspace."""

    folder: Path

    def save(self, workspace: str, command: TestCommand) -> None:
        line = json.dumps(dataclasses.asdict(command))
        if redacted(line) == line:
            write_private(self._path(workspace), line)

    def load(self, workspace: str) -> TestCommand | None:
        try:
            return typed(TestCommand, json.loads(self._path(workspace).read_text("utf-8")))
        except (OSError, ValueError):
            return None

    def _path(self, workspace: str) -> Path:
        return self.folder / f"{workspace_key(workspace)}.json"


def test_commands(shop: Project) -> tuple[TestCommand, ...]:
    """The commands that may run the tests of a workspace: one that is known to, then those of its files."""
    found = candidates(TreeFolder(shop.tree))
    known = known_commands(shop.config).load(shop.workspace)
    return tuple(sorted(found, key=lambda one: known is None or one.words != known.words))


def known_commands(config: Config) -> KnownCommands:
    return KnownCommands(config.state / "runners")
