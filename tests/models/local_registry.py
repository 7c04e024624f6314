"""Local models of a test: one for each file and settings, ended together."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from pawl.models.local_form import ConstrainedTools
from pawl.models.local_gguf import LocalModel
from pawl.models.providers import LocalSettings


class LocalModels(ExitStack):
    def __init__(self, *command: str) -> None:
        super().__init__()
        self._command = {"command": command} if command else {}
        self._models: dict[tuple[Path, LocalSettings], LocalModel] = {}

    def open(self, path: Path, settings: LocalSettings | None = None) -> ConstrainedTools:
        return ConstrainedTools(self.opened(path, settings))

    def opened(self, path: Path, settings: LocalSettings | None = None) -> LocalModel:
        """The same without tools."""
        key = (path, settings or LocalSettings())
        if key not in self._models:
            self._models[key] = self.enter_context(LocalModel(*key, **self._command))
        return self._models[key]

    def running(self) -> dict[str, int]:
        """The process of each model that is in memory now."""
        return {one.name: one.process_id for one in self._models.values() if one.process_id is not None}
