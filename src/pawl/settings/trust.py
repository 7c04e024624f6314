"""Which workspaces the user trusts: only there may the repository's own files configure Pawl."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Reader
from pawl.settings.config import Config
from pawl.settings.files import writer_lock
from pawl.settings.project_files import ProjectFiles, configures, project_files

FILE = "trust.json"


@dataclass(frozen=True, slots=True)
class TrustSettings:
    """The table [trust]."""

    folders: tuple[str, ...] = ()


class TrustStatus(StrEnum):
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
    """The digest of each file then, and whether it could be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrust:
    """How a workspace stands."""

    standing: TrustStatus
    files: tuple[str, ...]
    """The files that configure there now."""
    changed: tuple[str, ...] = ()
    """The files that changed, came or went since it was trusted."""
    held: ProjectFiles | None = field(default=None, compare=False, repr=False)
    """The contents that this was said of."""


def folder_trust(config: Config, workspace: str) -> FolderTrust:
    """How the workspace stands, by its own files. One that has too many of them is never trusted."""
    try:
        held = project_files(workspace)
    except (UsageError, OSError):
        return FolderTrust(standing=TrustStatus.UNKNOWN, files=())
    now = held.digests
    known = {one.folder: one for one in trusted_folders(config)}.get(workspace)
    if known is None:
        return FolderTrust(standing=TrustStatus.UNKNOWN, files=tuple(now), held=held)
    # Records of earlier versions also speak of files that Pawl does not read.
    then = {path: digest for path, digest in known.files.items() if configures(path)}
    changed = sorted(path for path in {*now, *then} if now.get(path) != then.get(path))
    standing = TrustStatus.LAPSED if changed or held.refused else TrustStatus.TRUSTED
    return FolderTrust(standing=standing, files=tuple(now), changed=tuple(changed), held=held)


def trust(config: Config, workspace: str, usable: Callable[[ProjectFiles], object] = lambda held: None) -> FolderTrust:
    """Trusts the workspace as it is now; `ConfigError` where a link or anything but a file would configure Pawl, or
    where `usable` finds that the contents cannot be used."""
    held = project_files(workspace)
    held.check()
    usable(held)
    now = held.digests
    at = datetime.now(UTC).isoformat(timespec="seconds")
    _keep(config, workspace, TrustedFolder(folder=workspace, at=at, files=now))
    return FolderTrust(standing=TrustStatus.TRUSTED, files=tuple(now), held=held)


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


def is_trusted(config: Config, workspace: str) -> bool:
    """Whether the user's settings list it, or `pawl trust` was said of its files as they are now."""
    return trusted_files(config, workspace) is not None


def trusted_files(config: Config, workspace: str) -> ProjectFiles | None:
    """The very contents that are trusted, to be used instead of reading again; None where the folder is not trusted."""
    if is_listed(config, workspace):
        return project_files(workspace)
    found = folder_trust(config, workspace)
    return found.held if found.standing is TrustStatus.TRUSTED else None


def is_listed(config: Config, workspace: str) -> bool:
    """Whether the workspace, or a folder above it, is listed under `folders` in the table [trust]."""
    reader = Reader()
    listed = reader.table(TrustSettings, config.tables.trust, "trust") or TrustSettings()
    reader.check(str(config.file), 'write folders = ["/home/you/project"]')
    trusted = [os.path.realpath(Path(one).expanduser()) for one in listed.folders if one]
    return any(workspace == one or workspace.startswith(f"{one.rstrip('/')}/") for one in trusted)
