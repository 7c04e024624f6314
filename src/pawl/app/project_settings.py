"""What a repository would configure: `.pawl/settings.toml` and `.pawl/hooks.json`, read without following any link."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pawl.app.project_files import ProjectFiles, read_text
from pawl.core.errors import ConfigError

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
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
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
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name!r} is not TOML: {error}", advice="mend that line") from error


def _table(value: object, name: str) -> Table:
    if not isinstance(value, dict):
        raise ConfigError(f"{name!r} must be a table, not {value!r:.200}", advice="see docs/settings.md")
    return value
