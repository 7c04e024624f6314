"""The language servers as values, read from their TOML file."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.checks.lsp.client import LanguageServerStart
from pawl.checks.project import Folder, text
from pawl.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    name: str
    program: str
    arguments: tuple[str, ...]
    languages: Mapping[str, tuple[str, ...]]
    """The endings of files by the language's id."""
    folder: str
    """Where its program may stand beside the PATH: `python`, `node` or nowhere else."""
    configured: tuple[tuple[str, re.Pattern[str]], ...]
    covered: str
    """The kind of step that says the same."""
    imports: bool
    undefined: frozenset[str]
    silences: re.Pattern[str]
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    quiet: float
    says_ready: bool

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
    data = tomllib.loads((resources.files("pawl.checks.lsp") / "servers.toml").read_text(encoding="utf-8"))
    return tuple(
        Server(
            name=entry["name"],
            program=entry["program"],
            arguments=tuple(entry["arguments"]),
            languages={name: tuple(endings) for name, endings in entry["languages"].items()},
            folder=entry.get("folder", "python"),
            configured=tuple((path, re.compile(line, re.MULTILINE)) for path, line in entry.get("configured", ())),
            covered=entry.get("covered", ""),
            imports=entry["imports"],
            undefined=frozenset(entry["undefined"]),
            silences=re.compile(entry["silences"]),
            options=entry["options"],
            settings=entry["settings"],
            quiet=entry.get("quiet", 0.3),
            says_ready=entry.get("says_ready", False),
        )
        for entry in data["server"]
    )


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
