"""What a command may see beside the workspace: system folders, toolchains, and the PATH that follows from them."""

from __future__ import annotations

import errno
import functools
import glob
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pawl.core.errors import SandboxUnavailable, UsageError
from pawl.core.execution import Execution, Network

SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
DEFAULT_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the sandbox has to know of the person who runs Pawl."""

    home: str
    path: str = ":".join(DEFAULT_PATH)
    extra_readonly: tuple[str, ...] = ()
    """Further folders to read from, such as the prefix of the active virtual environment."""
    private: tuple[str, ...] = ()
    """Folders that no command may see, such as Pawl's own state; a root that holds one is not shown."""


@dataclass(frozen=True, slots=True)
class Root:
    """Something shown for reading: `source` on this machine, seen at `path`."""

    path: str
    source: str


def real_path(path: str) -> str:
    """Where a path leads without links; itself where there are more links than even the kernel follows."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return os.path.abspath(path)
    return os.path.realpath(path)


def is_below(path: str, folder: str) -> bool:
    """Compares whole names: /w-old is not below /w."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@functools.cache
def _table() -> Mapping[str, tuple[str, ...]]:
    text = Path(__file__).with_name("toolchains.toml").read_text(encoding="utf-8")
    return {name: tuple(values) for name, values in tomllib.loads(text).items()}


@functools.cache
def system_files(network: Network) -> tuple[str, ...]:
    """The files below /etc that are shown, where they exist."""
    names = _table()["system_files"] + (_table()["network_files"] if network is Network.ON else ())
    return tuple(path for name in names for path in sorted(glob.glob(f"/etc/{name}")) if os.path.exists(path))


def readonly_roots(surroundings: Surroundings, workspace: str) -> tuple[Root, ...]:
    """The toolchains that exist here and hold no credentials; what lies in the workspace is part of the view."""
    homes = {surroundings.home.rstrip("/"), os.path.realpath(surroundings.home)}
    credentials = {_at_home(name, home) for name in _table()["credentials"] for home in homes}
    credentials |= _private(surroundings)
    roots: dict[str, Root] = {}
    for name in (*_table()["readonly"], *surroundings.extra_readonly):
        literal = os.path.normpath(_at_home(name, surroundings.home))
        if not os.path.isabs(literal) or not os.path.exists(literal):
            continue
        real = real_path(literal)
        if any(_shows_too_much(path, homes, credentials) for path in (literal, real)):
            continue
        if any(_is_shown_already(path, workspace) for path in (literal, real)):
            continue
        # Both spellings: a virtual environment may name its interpreter by either.
        for path in (literal, real):
            roots.setdefault(path, Root(path, real))
    return _outermost(roots)


def _private(surroundings: Surroundings) -> set[str]:
    """What must stay out of sight, by both its spellings; it cannot lie where every command looks."""
    private = {spelling for path in surroundings.private for spelling in (path, os.path.realpath(path))}
    for path in private:
        if any(is_below(path, folder) for folder in ("/usr", *SYSTEM_FOLDERS)):
            raise SandboxUnavailable(
                f"every command could read {path!r}, which is Pawl's own", advice="set PAWL_STATE to another folder"
            )
    return private


def _shows_too_much(path: str, homes: Iterable[str], credentials: Iterable[str]) -> bool:
    if any(is_below(home, path) for home in homes):
        return True
    return any(is_below(secret, path) or is_below(path, secret) for secret in credentials)


def _is_shown_already(path: str, workspace: str) -> bool:
    return any(is_below(path, folder) for folder in (workspace, "/usr", *SYSTEM_FOLDERS))


def _at_home(name: str, home: str) -> str:
    return home.rstrip("/") + name[1:] if name == "~" or name.startswith("~/") else name


def _outermost(roots: Mapping[str, Root]) -> tuple[Root, ...]:
    """Without those that lie in another one."""
    kept: list[Root] = []
    for path in sorted(roots):
        if not any(is_below(path, root.path) for root in kept):
            kept.append(roots[path])
    return tuple(kept)


def visible_path(surroundings: Surroundings, workspace: str, roots: Iterable[Root]) -> str:
    """The caller's PATH without what is relative or cannot be seen inside."""
    visible = ["/usr", *SYSTEM_FOLDERS, workspace, *(root.path for root in roots)]
    entries: list[str] = []
    for entry in (*surroundings.path.split(":"), *DEFAULT_PATH):
        if not os.path.isabs(entry):
            continue
        entry = os.path.normpath(entry)
        if entry not in entries and any(is_below(entry, folder) for folder in visible):
            entries.append(entry)
    return ":".join(entries)


_CLEAN = MappingProxyType(
    {
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
)


def command_environment(execution: Execution, *, home: str, temporary: str, path: str) -> Mapping[str, str]:
    # Compilers keep what they made in a cache, for which the home is too small.
    places = {"HOME": home, "TMPDIR": temporary, "XDG_CACHE_HOME": f"{temporary}/cache", "PATH": path}
    return {**_CLEAN, **places, **execution.environment}


def check_words(execution: Execution) -> None:
    """Refuses what no process can be started with."""
    if not execution.argv or not execution.argv[0]:
        raise UsageError("a command needs at least one word", advice="name the program to run")
    for word in execution.argv:
        if "\0" in word:
            raise UsageError(f"a command word holds a NUL byte: {word!r}", advice="remove it")
    for name, value in execution.environment.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise UsageError(f"not an environment variable: {name!r}", advice="use a name without = and NUL")
