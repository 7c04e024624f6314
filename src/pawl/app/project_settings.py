"""What a repository would configure: `.pawl/settings.toml` and `.pawl/hooks.json`, read without following any link."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pawl.core.errors import ConfigError

FOLDER = ".pawl"
SETTINGS = f"{FOLDER}/settings.toml"
HOOKS = f"{FOLDER}/hooks.json"
LARGEST_BYTES = 256 << 10

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The tables as they are written; who reads one checks it."""

    permissions: Table = field(default_factory=dict)
    hooks: Table = field(default_factory=dict)


def project_settings(workspace: str) -> ProjectSettings:
    """What the files say; `ConfigError` when they cannot be read as what they are."""
    table = _toml(read_inside(workspace, SETTINGS), SETTINGS)
    unknown = sorted(set(table) - {"permissions", "hooks"})
    if unknown:
        raise ConfigError(
            f"{SETTINGS!r} has {unknown[0]!r}, which a repository cannot set",
            advice="it takes [permissions] and [hooks]",
        )
    shared = hooks_of(read_inside(workspace, HOOKS), HOOKS)
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


def read_inside(workspace: str, path: str) -> str:
    """The text of a regular file of the workspace, without following links; empty when there is none."""
    *folders, name = path.split("/")
    held: list[int] = []
    try:
        held.append(os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for folder in folders:
            held.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1]))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        held.append(os.open(name, flags, dir_fd=held[-1]))
        if not stat.S_ISREG(os.fstat(held[-1]).st_mode):
            raise _unreadable(path, "it is not a regular file")
        return _text(held[-1], path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from error
    finally:
        for descriptor in held:
            with suppress(OSError):
                os.close(descriptor)


def _text(descriptor: int, path: str) -> str:
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise _unreadable(path, f"it is larger than {LARGEST_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is not UTF-8") from error


def _toml(text: str, name: str) -> Table:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name!r} is not TOML: {error}", advice="mend that line") from error


def _table(value: object, name: str) -> Table:
    if not isinstance(value, dict):
        raise ConfigError(f"{name!r} must be a table, not {value!r:.200}", advice="see docs/settings.md")
    return value


def _unreadable(path: str, why: str) -> ConfigError:
    return ConfigError(f"{path!r} cannot be read: {why}", advice="mend or remove the file")
