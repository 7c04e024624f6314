"""The user's word that a folder may configure Pawl: it holds for the files as they are, and lapses when one changes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pawl.app.config import Config
from pawl.app.project_settings import ProjectSettings, project_settings
from pawl.core.errors import ConfigError, UsageError
from pawl.policy.shell_words import read_shell
from pawl.workspace.lock import writer_lock

CONFIGURING = (".pawl", ".mcp.json", "mcp.json", ".agents", ".claude")
"""Files, and folders with all that they hold, by which a repository configures agents or has them execute something."""
WORDS = ".pawl/memory"
"""Text for models, which changes with the work and configures nothing."""
MOST_FILES = 2_000
MOST_BYTES = 32 << 20
FILE = "trust.json"

_PROJECT = re.compile(r"\$(?:\{(?:PAWL|CLAUDE)_PROJECT_DIR\}|(?:PAWL|CLAUDE)_PROJECT_DIR)/?")
_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)*")


class Standing(StrEnum):
    TRUSTED = "trusted"
    LAPSED = "lapsed"
    """It was trusted with other files."""
    UNKNOWN = "not trusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedFolder:
    """One folder that the user said to trust."""

    folder: str
    at: str
    files: Mapping[str, str]
    """What each file was: its digest, and whether it can be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrust:
    """How a workspace stands."""

    standing: Standing
    files: tuple[str, ...]
    """What configures or executes there now."""
    changed: tuple[str, ...] = ()
    """What has changed, come or gone since it was trusted."""


def folder_trust(config: Config, workspace: str) -> FolderTrust:
    """How the workspace stands, by its own files. One that has too many of them is never trusted."""
    try:
        now = _digests(workspace)
    except (UsageError, OSError):
        return FolderTrust(standing=Standing.UNKNOWN, files=())
    known = {one.folder: one for one in trusted_folders(config)}.get(workspace)
    if known is None:
        return FolderTrust(standing=Standing.UNKNOWN, files=tuple(now))
    changed = sorted(path for path in {*now, *known.files} if now.get(path) != known.files.get(path))
    standing = Standing.LAPSED if changed else Standing.TRUSTED
    return FolderTrust(standing=standing, files=tuple(now), changed=tuple(changed))


def trust(config: Config, workspace: str) -> FolderTrust:
    """Trusts the workspace as it is now."""
    now = _digests(workspace)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    _keep(config, workspace, TrustedFolder(folder=workspace, at=at, files=now))
    return FolderTrust(standing=Standing.TRUSTED, files=tuple(now))


def revoke(config: Config, workspace: str) -> bool:
    """Takes the trust back; whether there was any."""
    return _keep(config, workspace, None)


def trusted_folders(config: Config) -> tuple[TrustedFolder, ...]:
    """Every folder that was trusted by `pawl trust`. A file that others could have written counts for nothing."""
    path = config.state / FILE
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            return ()
        folders = json.loads(path.read_text("utf-8"))["folders"]
        return tuple(
            TrustedFolder(folder=folder, at=str(one["at"]), files=dict(one["files"])) for folder, one in folders.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def _keep(config: Config, workspace: str, entry: TrustedFolder | None) -> bool:
    """Puts the entry into the file, or takes it out; whether there was one."""
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with writer_lock(config.state / "locks", f"{config.state}/{FILE}"):
        folders = {one.folder: one for one in trusted_folders(config)}
        known = folders.pop(workspace, None) is not None
        if entry is not None:
            folders[workspace] = entry
        body = {name: {"at": one.at, "files": dict(one.files)} for name, one in sorted(folders.items())}
        _replace(config.state / FILE, json.dumps({"version": 1, "folders": body}, indent=1))
    return known


def _replace(path: Path, text: str) -> None:
    made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError:
        with suppress(OSError):
            made.unlink()
        raise


def _digests(workspace: str) -> dict[str, str]:
    """What every file that configures or executes is."""
    found: dict[str, str] = {}
    size = 0
    for path in sorted({*_configuring(workspace), *_executed(workspace)}):
        full = os.path.join(workspace, path)
        status = os.lstat(full)
        size += status.st_size
        if len(found) >= MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"{workspace!r} has more files that configure or execute than can be looked at",
                advice=f"at most {MOST_FILES} files and {MOST_BYTES >> 20} MB in {', '.join(CONFIGURING)}",
            )
        found[path] = _digest(full, status)
    return found


def _digest(full: str, status: os.stat_result) -> str:
    """The content and whether it can be executed; of a link both where it leads and what stands there."""
    if stat.S_ISLNK(status.st_mode):
        behind = hashlib.sha256(_content(full)).hexdigest() if os.path.isfile(full) else ""
        return f"link {os.readlink(full)} {behind}"
    if not stat.S_ISREG(status.st_mode):
        return "special"
    executable = " executable" if status.st_mode & 0o111 else ""
    return hashlib.sha256(_content(full)).hexdigest() + executable


def _content(full: str) -> bytes:
    with open(full, "rb") as file:
        return file.read(MOST_BYTES)


def _configuring(workspace: str) -> Iterator[str]:
    for name in CONFIGURING:
        full = os.path.join(workspace, name)
        if os.path.islink(full) or os.path.isfile(full):
            yield name
        for folder, folders, files in os.walk(full) if not os.path.islink(full) else ():
            folders[:] = [one for one in folders if os.path.relpath(os.path.join(folder, one), workspace) != WORDS]
            links = [one for one in folders if os.path.islink(os.path.join(folder, one))]
            yield from (os.path.relpath(os.path.join(folder, one), workspace) for one in (*files, *links))


def _executed(workspace: str) -> Iterator[str]:
    """The files of the workspace that its hooks name, so that what they run cannot be changed under them."""
    try:
        settings = project_settings(workspace)
    except ConfigError:
        settings = ProjectSettings()
    for text in _texts(settings.hooks):
        words = [word.text for one in read_shell(text).commands for word in (*one.words, *one.assignments)]
        for word in (text, *words, *text.split()):
            for path in _PATH.findall(_PROJECT.sub("", word)):
                plain = os.path.normpath(path)
                if not plain.startswith("..") and os.path.isfile(os.path.join(workspace, plain)):
                    yield plain


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
