"""The language servers as values, read from their TOML file."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from pawl.checks.project_facts import Folder, text
from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written

LIMIT_SECONDS = 10.0
"""The time limit of one question to a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageServerStart:
    """How a server is started."""

    name: str
    words: tuple[str, ...]
    root: str
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    quiet: float = 0.3
    """A server that pushes diagnostics is done when nothing has come for so many seconds."""
    says_ready: bool = False
    """It tells when it has read the project, and what it says before that is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    name: str
    program: str
    arguments: tuple[str, ...]
    languages: Mapping[str, tuple[str, ...]]
    """The endings of files by the language's id."""
    imports: bool
    undefined: frozenset[str]
    silences: re.Pattern[str]
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    folder: str = "python"
    """Where its program may stand beside the PATH: `python`, `node` or nowhere else."""
    configured: tuple[tuple[str, re.Pattern[str]], ...] = ()
    covered: str = ""
    """The kind of step that says the same."""
    quiet: float = 0.3
    says_ready: bool = False

    def start(self, program: Sequence[str], root: str, python: str) -> LanguageServerStart:
        """How the server is started in a folder."""
        return LanguageServerStart(
            name=self.name,
            words=(*program, *self.arguments),
            root=root,
            options=self.options,
            settings=self.settings_for(python),
            quiet=self.quiet,
            says_ready=self.says_ready,
        )

    def language(self, path: str) -> str | None:
        """The id of the file's language, if the server knows it."""
        return next((name for name, endings in self.languages.items() if path.endswith(endings)), None)

    def settings_for(self, python: str) -> dict[str, Any]:
        """The settings with the workspace's interpreter in its place; where it is unknown, the server finds its own."""
        filled = _filled(self.settings, python)
        return filled if isinstance(filled, dict) else {}


def _filled(value: Any, python: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, python) for key, inner in value.items() if python or inner != "{python}"}
    return python if value == "{python}" else value


@functools.cache
def servers() -> tuple[Server, ...]:
    data = data_table("pawl.checks.lsp", "servers.toml")
    return tuple(written(Server, entry) for entry in data["server"])


def server(name: str) -> Server:
    for known in servers():
        if known.name == name:
            return known
    names = ", ".join(known.name for known in servers())
    raise ConfigError(f"there is no language server {name!r}", advice=f"known are {names}")


def used_by(files: Folder) -> tuple[Server, ...]:
    """The servers that the project uses or that suit every project."""
    return tuple(
        known
        for known in servers()
        if not known.configured
        or any(files.exists(path) and line.search(text(files, path)) for path, line in known.configured)
    )
