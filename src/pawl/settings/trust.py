"""The files by which a workspace configures Pawl, read once and used as they were read, and whether the user trusts it.

Regular files only, through no link, and bounded: a link, a FIFO, a socket or a device is refused and never opened.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from pawl.core.change import NodeKind
from pawl.core.errors import ConfigError, NotFound, PathRefused, PawlError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import register
from pawl.core.typed import Reader, Unreadable, read_json, read_toml
from pawl.settings import files as bounded
from pawl.settings.config import LARGEST_ENV, Config, env_text, may_come_from_workspace, parse_env, read_env
from pawl.settings.files import Tree, writer_lock

SKILLS = (".pawl/skills", ".agents/skills", ".claude/skills")
"""Folders of skills; the first goes before the others. Other agents read the last two as well: links in them are
common, and are passed over."""
AGENTS = (".pawl/agents", ".agents/agents", ".claude/agents")
"""Folders of sub-agents; the first goes before the others."""
MCP_FILE = ".mcp.json"
"""The MCP servers of a repository, in the form that agents share."""
_SHARED = (".claude/commands", ".agents/skills", ".claude/skills", ".agents/agents", ".claude/agents", MCP_FILE)
CONFIGURING = (".pawl", *_SHARED)
"""Files and folders, with all that they hold, by which a repository configures Pawl."""
WORDS = ".pawl/memory"
"""Text for models, which changes with the work and configures nothing."""
MOST_FILES = 2_000
MOST_BYTES = 32 << 20
LARGEST_TEXT = 256 << 10


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A folder with the contents of its files, by their paths in it."""

    name: str
    files: Mapping[str, bytes]


Folder = Path | ReadFolder


def files_of(folder: Folder, suffix: str) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Its files of that ending, sorted: the path in the folder, the path to show, and what reads the text."""
    if isinstance(folder, Path):
        for path in sorted(folder.rglob(f"*{suffix}")):
            yield path.relative_to(folder).as_posix(), str(path), partial(bounded.read_text, path)
        return
    for name, data in sorted(folder.files.items()):
        if name.endswith(suffix):
            yield name, f"{folder.name}/{name}", partial(data.decode, "utf-8")


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Their contents by path, and why others were not read."""

    contents: Mapping[str, bytes]
    executable: frozenset[str]
    refused: Mapping[str, str]

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each file, and whether it can be executed."""
        found = {
            path: hashlib.sha256(data).hexdigest() + (" executable" if path in self.executable else "")
            for path, data in self.contents.items()
        }
        return dict(sorted({**found, **dict.fromkeys(self.refused, "refused")}.items()))

    def check(self) -> None:
        """`ConfigError` where something stands that is not a regular file."""
        for path, why in sorted(self.refused.items()):
            raise _unreadable(path, why)

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        for place, why in self.refused.items():
            if path == place or path.startswith(f"{place}/"):
                raise _unreadable(place, why)
        return _text(self.contents.get(path, b""), path)

    def folder(self, path: str) -> ReadFolder:
        """All that a folder holds; `ConfigError` where something on the way to it, or in it, was refused."""
        for place, why in self.refused.items():
            if f"{path}/".startswith(f"{place}/") or place.startswith(f"{path}/"):
                raise _unreadable(place, why)
        start = f"{path}/"
        return ReadFolder(
            path, {name[len(start) :]: data for name, data in self.contents.items() if name.startswith(start)}
        )


def configures(path: str) -> bool:
    """Whether the path is one of those that Pawl reads, or leads to one."""
    return any(f"{path}/".startswith(f"{one}/") or one.startswith(f"{path}/") for one in CONFIGURING)


def project_files(workspace: str) -> ProjectFiles:
    """Reads all that configures Pawl; `UsageError` where that is too much."""
    reading = _Reading(workspace)
    with Tree(workspace) as tree:
        for place in CONFIGURING:
            reading.read(tree, place)
    return ProjectFiles(reading.contents, frozenset(reading.executable), reading.refused)


def read_text(workspace: str, path: str, most: int = LARGEST_TEXT) -> str:
    """The text of one file of the workspace; empty where there is none, `ConfigError` where it cannot be read."""
    try:
        with Tree(workspace) as tree:
            return _text(tree.read(path, most), path)
    except NotFound:
        return ""
    except (PawlError, OSError) as error:
        raise _unreadable(path, _why(error)) from error


@dataclass(slots=True)
class _Reading:
    workspace: str
    contents: dict[str, bytes] = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    count: int = 0
    size: int = 0

    def read(self, tree: Tree, place: str) -> None:
        waiting = [place]
        while waiting:
            path = waiting.pop()
            self.count += 1
            if self.count > MOST_FILES or self.size > MOST_BYTES:
                raise UsageError(
                    f"{self.workspace!r} has more files that configure agents than can be looked at",
                    advice=f"at most {MOST_FILES} files and {MOST_BYTES >> 20} MB in {', '.join(CONFIGURING)}",
                )
            try:
                waiting += self._one(tree, path)
            except (PawlError, OSError) as error:
                if not (place in (*SKILLS, *AGENTS) and isinstance(error, PathRefused)):
                    self.refused[path] = _why(error)

    def _one(self, tree: Tree, path: str) -> list[str]:
        """Keeps a file; the names in a folder."""
        seen = tree.look(path)
        if seen is None or path == WORDS:
            return []
        if seen.kind is NodeKind.DIRECTORY:
            with _folder(tree, path) as entries:
                return [f"{path}/{entry.name}" for entry in itertools.islice(entries, MOST_FILES + 1)]
        if seen.kind is NodeKind.LINK:
            raise PathRefused("it is a symbolic link", advice="")
        if seen.kind is None:
            raise PathRefused("it is a FIFO, a socket or a device", advice="")
        data, seen = tree.read_with(path, MOST_BYTES)
        self.size += len(data)
        self.contents[path] = data
        if seen.mode & 0o111:
            self.executable.add(path)
        return []


@contextmanager
def _folder(tree: Tree, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    descriptor = tree.open_folder(path)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def _text(data: bytes, path: str) -> str:
    if len(data) > LARGEST_TEXT:
        raise _unreadable(path, f"it is larger than {LARGEST_TEXT} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # The error itself would show bytes of the file.
        raise _unreadable(path, "it is not UTF-8") from None


def _why(error: PawlError | OSError) -> str:
    return error.message if isinstance(error, PawlError) else error.strerror or "it cannot be opened"


def _unreadable(path: str, why: str) -> ConfigError:
    return ConfigError(f"{path!r} cannot be read: {why}", advice="put a regular file or folder there, or remove it")


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
    """The settings of a repository, read now or as they were trusted; `ConfigError` when they are wrong."""
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
        raise ConfigError(f"{name!r} is not JSON: {error}", advice="correct that line") from error
    body = _table(found, name)
    return _table(body.get("hooks", {}), f"{name}: hooks")


def joined_hooks(first: Table, second: Table) -> Table:
    """The hooks of both, those of the first before."""
    joined: dict[str, object] = dict(first)
    for event, groups in second.items():
        before = joined.get(event)
        joined[event] = [*before, *groups] if isinstance(before, list) and isinstance(groups, list) else groups
    return joined


def _toml(text: str, name: str) -> Table:
    try:
        return read_toml(text)
    except Unreadable as error:
        raise ConfigError(f"{name!r} is not TOML: {error}", advice="correct that line") from error


def _table(value: object, name: str) -> Table:
    if not isinstance(value, dict):
        raise ConfigError(f"{name!r} must be a table, not {value!r:.200}", advice="see docs/settings.md")
    return value


FILE = "trust.json"
MOST_NAMED = 5


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


def unread(config: Config, workspace: str) -> str:
    """The files that are not used until the folder is trusted; empty where there are none, or they were told before."""
    found = None if is_listed(config, workspace) else folder_trust(config, workspace)
    if found is None or found.standing is TrustStatus.TRUSTED:
        return ""
    names = [*found.files, *(["the keys in .env"] if has_unread_keys(config, workspace) else [])]
    told = json.dumps([workspace, names, {} if found.held is None else found.held.digests])
    mark = config.state / "unread" / hashlib.sha256(told.encode()).hexdigest()[:32]
    try:
        if not names:
            return ""
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    why = "has changed since you trusted it" if found.standing is TrustStatus.LAPSED else "is not trusted"
    shown = f"{', '.join(names[:MOST_NAMED])}{more}"
    but = " (except rules that deny)" if found.files else ""
    return f"not used{but}, because this folder {why}: {shown}; trust it with: pawl trust"


def has_unread_keys(config: Config, workspace: str) -> bool:
    """Whether the workspace brings keys that are not read, because it is not trusted."""
    with suppress(ConfigError):
        keys = parse_env(read_text(workspace, ".env", LARGEST_ENV), ".env", wanted=may_come_from_workspace)
        return bool(keys) and not is_trusted(config, workspace)
    return False


def is_listed(config: Config, workspace: str) -> bool:
    """Whether [trust] lists the workspace under `folders`, or a folder above it; of what Pawl fetched, itself."""
    reader = Reader()
    listed = reader.table(TrustSettings, config.tables.trust, "trust") or TrustSettings()
    reader.check(str(config.file), 'write folders = ["/home/you/project"]')
    trusted = [os.path.realpath(Path(one).expanduser()) for one in listed.folders if one]
    own = not workspace.startswith(tuple(f"{os.path.realpath(one)}/" for one in (config.state, config.clones)))
    return any(workspace == one or (own and workspace.startswith(f"{one.rstrip('/')}/")) for one in trusted)


def may_have_servers(config: Config, workspace: str) -> bool:
    """Whether MCP servers can be configured here; where not, nothing of MCP is loaded."""
    return bool(config.tables.mcp) or os.path.lexists(os.path.join(workspace, MCP_FILE))


SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
"""The values of variables whose names hold one of these are never sent, stored nor shown, whatever they look like."""


_SECRET_PARTS = re.compile(r"(?:.*_)?(?:JWT|PAT|PASS)(?:_.*)?|.*_PWD", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:(?P<whole>(?P<first>[^\s@]+)(?:@[^\s@/]+)*)@")
"""The password of an address; one that holds an @ itself is also taken whole."""


def is_secret_name(name: str) -> bool:
    return any(word in name.upper() for word in SECRET_WORDS) or _SECRET_PARTS.fullmatch(name) is not None


def register_secrets(config: Config, workspace: str) -> None:
    """Makes them known before anything is stored or said. A file that cannot be read is told by who needs it."""
    files = [config.file.parent / ".env"]
    own = Path(workspace) / ".env"
    with suppress(ConfigError):
        if own.exists() and is_trusted(config, workspace):
            files.append(own)
    found = [config.environment]
    texts = list(config.environment.values())
    for path in files:
        with suppress(ConfigError):
            texts.append(env_text(path))
            found.append(read_env(path, wanted=is_secret_name))
    values = (value for several in found for name, value in several.items() if is_secret_name(name))
    register(*(value for value in values if not _is_a_place(value)), *_url_passwords(texts))


def _url_passwords(texts: Iterable[str]) -> Iterator[str]:
    """The passwords of addresses such as `postgres://user:password@host/name`, as written and as they are meant."""
    for found in (found for text in texts for found in _URL_PASSWORD.finditer(text)):
        for password in {found["first"], found["whole"]}:
            yield from {password, unquote(password)}


def _is_a_place(value: str) -> bool:
    """A path of this machine, such as that of a file with keys, is no secret; it would be hidden from every message."""
    return value.startswith("/") and os.path.exists(value)
