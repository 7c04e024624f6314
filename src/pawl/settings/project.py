"""What a repository would configure: `.pawl/settings.toml` and `.pawl/hooks.json`, read without following any link."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pawl.core.errors import ConfigError, UsageError
from pawl.core.formats import Unreadable, read_json, read_toml
from pawl.settings.config import Config
from pawl.settings.project_files import ProjectFiles, read_text

FOLDER = ".pawl"
SETTINGS = f"{FOLDER}/settings.toml"
HOOKS = f"{FOLDER}/hooks.json"

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The tables as they are written; who reads one checks it."""

    permissions: Table = field(default_factory=dict)
    hooks: Table = field(default_factory=dict)


def project_settings(workspace: str, trusted: ProjectFiles | None = None) -> ProjectSettings:
    """What the files say, read now or as they were trusted; `ConfigError` when they are not what they should be."""
    text = partial(read_text, workspace) if trusted is None else trusted.text
    table = _toml(text(SETTINGS), SETTINGS)
    unknown = sorted(set(table) - {"permissions", "hooks"})
    if unknown:
        raise ConfigError(
            f"{SETTINGS!r} has {unknown[0]!r}, which a repository cannot set",
            advice="it takes [permissions] and [hooks]",
        )
    shared = hooks_of(text(HOOKS), HOOKS)
    own = _table(table.get("hooks", {}), f"{SETTINGS}: hooks")
    permissions = _table(table.get("permissions", {}), f"{SETTINGS}: permissions")
    return ProjectSettings(permissions, joined_hooks(own, shared))


def hooks_of(text: str, name: str) -> Table:
    """The events of a file in the form that agents share, `{"hooks": {…}}`."""
    if not text.strip():
        return {}
    try:
        found = read_json(text)
    except Unreadable as error:
        raise ConfigError(f"{name!r} is not JSON: {error}", advice="mend that line") from error
    body = _table(found, name)
    return _table(body.get("hooks", {}), f"{name}: hooks")


def joined_hooks(first: Table, second: Table) -> Table:
    """The hooks of both, those of the first before."""
    joined: dict[str, object] = dict(first)
    for event, groups in second.items():
        before = joined.get(event, [])
        both = isinstance(before, list) and isinstance(groups, list)
        joined[event] = [*before, *groups] if both and isinstance(before, list) and isinstance(groups, list) else groups
    return joined


def _toml(text: str, name: str) -> Table:
    try:
        return read_toml(text)
    except Unreadable as error:
        raise ConfigError(f"{name!r} is not TOML: {error}", advice="mend that line") from error


def _table(value: object, name: str) -> Table:
    if not isinstance(value, dict):
        raise ConfigError(f"{name!r} must be a table, not {value!r:.200}", advice="see docs/settings.md")
    return value


MARKS = (".git", ".pawl")


def find_workspace(start: Path, config: Config, *, exact: bool, reads: bool = False) -> Path:
    """The nearest folder upwards that is a repository, or `start` itself; `exact` takes `start` as it is.

    What only reads does so in a folder that may not be written, too.

    A folder that holds the user's home or Pawl's own state is refused: every command could read and change it. So is
    one inside that state, such as a bench.
    """
    try:
        folder = start.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"there is no folder {str(start)!r}", advice="check the path given with -C") from error
    if not folder.is_dir():
        raise UsageError(f"{str(start)!r} is not a folder", advice="give the folder of your project with -C")
    if not exact:
        folder = _repository(folder, config) or folder
    for name, inner in (("your home folder", config.home), ("Pawl's own state", config.state)):
        if _holds(folder, inner):
            raise UsageError(
                f"{str(folder)!r} holds {name}, so it cannot be a workspace",
                advice="change to your project's folder, or name it with -C",
            )
    if _holds(config.state.resolve(), folder):
        raise UsageError(f"{str(folder)!r} lies in Pawl's own state", advice="change to your project's folder")
    if not reads and not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the workspace {str(folder)!r} is not writable", advice="mend its permissions")
    return folder


def _repository(folder: Path, config: Config) -> Path | None:
    for candidate in (folder, *folder.parents):
        if _holds(candidate, config.home):
            return None
        if any(os.path.exists(candidate / mark) for mark in MARKS):
            return candidate
    return None


def _holds(folder: Path, inner: Path) -> bool:
    resolved = inner.resolve()
    return folder == resolved or folder in resolved.parents
