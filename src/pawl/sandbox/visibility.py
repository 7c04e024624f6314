"""A command's sight: the view of its workspace, and the system folders and toolchains around it.

Everything is looked at from outside, before a process is started.
"""

from __future__ import annotations

import difflib
import errno
import functools
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from types import MappingProxyType

from pawl.core.errors import (
    CommandNotFound,
    NotAFile,
    NotFound,
    PathRefused,
    PermissionDenied,
    SandboxUnavailable,
    UsageError,
)
from pawl.core.execution import Execution, Network, OverlayView, View
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table
from pawl.settings import files as bounded

SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
DEFAULT_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The user's machine, as far as the sandbox has to know it."""

    home: str
    path: str = ":".join(DEFAULT_PATH)
    extra_readonly: tuple[str, ...] = ()
    """Further folders to read from, such as the prefix of the active virtual environment."""
    private: tuple[str, ...] = ()
    """Folders that no command may see, such as Pawl's own state; a root that holds one is not shown."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """For every command; their paths may lie in the workspace."""


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
    return {name: tuple(values) for name, values in data_table("pawl.sandbox", "toolchains.toml").items()}


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
    """The folders that must stay out of sight, by both spellings; they cannot lie where every command looks."""
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
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
)


_OFFLINE = MappingProxyType({"PIP_RETRIES": "0", "npm_config_fetch_retries": "0"})
"""Without a network, trying again only costs time."""


def command_environment(
    execution: Execution, around: Mapping[str, str], *, home: str, temporary: str, path: str
) -> Mapping[str, str]:
    # Compilers keep what they made in a cache, for which the home is too small.
    places = {"HOME": home, "TMPDIR": temporary, "XDG_CACHE_HOME": f"{temporary}/cache", "PATH": path}
    offline = _OFFLINE if execution.network is Network.OFF else {}
    return {**_CLEAN, **offline, **around, **places, **execution.environment}


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


_MOST_LINKS = 40
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Where a path leads once every link is followed."""

    path: str
    """Relative to the workspace; absolute when it leads out of it."""
    host: str = ""
    """Where this machine keeps it; empty outside."""
    mode: int = 0

    @property
    def is_outside(self) -> bool:
        return os.path.isabs(self.path)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_executable(self) -> bool:
        return self.is_file and bool(self.mode & 0o111)


class Layers:
    def __init__(self, view: View) -> None:
        self.workspace = view.workspace
        self._folders = (view.upper, view.workspace) if isinstance(view, OverlayView) else (view.copy,)

    def stand(self, path: str) -> ResolvedPath | None:
        """Looks at a relative path whose own last name is not followed; its folders must not be links."""
        active = list(self._folders)
        place: ResolvedPath | None = ResolvedPath("", active[0], stat.S_IFDIR)
        names = [name for name in path.split("/") if name]
        for index, name in enumerate(names):
            place = None
            below: list[str] = []
            for folder in active:
                found = _look(folder, name)
                if found is None:
                    continue
                host, mode = found
                if _is_whiteout(host, mode):
                    break
                if place is None:
                    place = ResolvedPath("/".join(names[: index + 1]), host, mode)
                if not stat.S_ISDIR(mode):
                    break
                below.append(host)
                if _is_opaque(host):
                    break
            if place is None:
                return None
            active = below if place.is_folder else []
        return place

    def follow(self, path: str) -> ResolvedPath | None:
        """Follows a relative path, through links inside the workspace."""
        waiting = [name for name in reversed(path.split("/")) if name]
        done: list[str] = []
        links = 0
        while waiting:
            name = waiting.pop()
            if name == ".":
                continue
            if name == "..":
                if not done:
                    return self._outside("..", waiting)
                done.pop()
                continue
            place = self.stand("/".join([*done, name]))
            if place is None:
                return None
            if not stat.S_ISLNK(place.mode):
                done.append(name)
                continue
            links += 1
            target = os.readlink(place.host)
            if links > _MOST_LINKS:
                return None
            if os.path.isabs(target):
                if not is_below(os.path.normpath(target), self.workspace):
                    return ResolvedPath(os.path.normpath("/".join([target, *reversed(waiting)])))
                target = os.path.relpath(os.path.normpath(target), self.workspace)
                done = []
            waiting.extend(part for part in reversed(target.split("/")) if part)
        return self.stand("/".join(done))

    def _outside(self, first: str, waiting: list[str]) -> ResolvedPath:
        return ResolvedPath(os.path.normpath("/".join([self.workspace, first, *reversed(waiting)])))


def _look(folder: str, name: str) -> tuple[str, int] | None:
    host = os.path.join(folder, name)
    try:
        return host, os.lstat(host).st_mode
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _is_whiteout(host: str, mode: int) -> bool:
    return stat.S_ISCHR(mode) and os.lstat(host).st_rdev == 0


def _is_opaque(host: str) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(host, name, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False


_POINTER = "gitdir: "
_LONGEST_POINTER = 8192


def has_git_folder(layers: Layers) -> bool:
    place = layers.stand(".git")
    return place is not None and place.is_folder


_SHOWN = ("HEAD", "config", "packed-refs", "shallow", "objects", "refs", "logs", "info/attributes", "info/exclude")
"""The files of a repository that git reads; whatever else lies there stays unseen: hooks, keys, other worktrees."""


def linked_repository(layers: Layers) -> tuple[str, ...]:
    """Parts of the repository that a linked worktree belongs to, its own first, when that repository knows it."""
    place = layers.stand(".git")
    found = linked_worktree(layers.workspace, _first_line(place.host)) if place is not None and place.is_file else None
    if found is None:
        return ()
    folder, repository = found
    parts = (os.path.join(repository, name) for name in _SHOWN)
    return (folder, *(part for part in parts if os.path.exists(part)))


def linked_worktree(workspace: str, pointer: str | None) -> tuple[str, str] | None:
    """The folder that the `.git` file of a linked worktree names, and its repository; None if they do not know it.

    The file of a hostile workspace can name any folder. It is believed only when the named folder is
    `<repository>/worktrees/<name>` and points back at this very file, which nobody can arrange in a folder that is
    not theirs to write.
    """
    if pointer is None or not pointer.startswith(_POINTER) or "\0" in pointer:
        return None
    folder = real_path(os.path.join(workspace, pointer.removeprefix(_POINTER)))
    back = _first_line(os.path.join(folder, "gitdir"))
    common = _first_line(os.path.join(folder, "commondir"))
    if back is None or common is None or "\0" in back + common:
        return None
    if real_path(os.path.join(folder, back)) != os.path.join(real_path(workspace), ".git"):
        return None
    repository = real_path(os.path.join(folder, common))
    if os.path.dirname(folder) != os.path.join(repository, "worktrees") or is_below(repository, real_path(workspace)):
        return None
    return (folder, repository) if os.path.isfile(os.path.join(repository, "HEAD")) else None


def _first_line(path: str) -> str | None:
    """Of a regular file; a pipe put there to make the reader wait is not one."""
    try:
        with bounded.opened(path) as file:
            return os.fsdecode(file.read(_LONGEST_POINTER)).partition("\n")[0].rstrip("\r")
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Scenery:
    """Everything that can be seen inside: the view, and the roots around it."""

    layers: Layers
    roots: tuple[Root, ...]
    path: str
    """The PATH inside."""

    def place(self, path: str) -> ResolvedPath | None:
        """Follows an absolute path inside; None when nothing stands there or it cannot be seen."""
        for _ in range(2):
            if is_below(path, self.layers.workspace):
                found = self.layers.follow(os.path.relpath(path, self.layers.workspace))
                if found is None or not found.is_outside:
                    return found
                path = found.path
            here = self._on_this_machine(path)
            if not os.path.lexists(here):
                return None
            real = real_path(here)
            if not is_below(real, self.layers.workspace):
                return _stat(path, real) if self._is_visible(real) else None
            path = real
        return None

    def _on_this_machine(self, path: str) -> str:
        for root in self.roots:
            if is_below(path, root.path):
                return root.source + path[len(root.path) :]
        return path

    def _is_visible(self, real: str) -> bool:
        sources = (root.source for root in self.roots)
        return any(is_below(real, folder) for folder in ("/usr", "/etc/alternatives", *SYSTEM_FOLDERS, *sources))


def check_directory(scenery: Scenery, directory: str) -> str:
    """The absolute path of the folder a command starts in."""
    path = os.path.normpath(os.path.join(scenery.layers.workspace, directory))
    if os.path.isabs(directory) or not is_below(path, scenery.layers.workspace):
        raise PathRefused(f"{directory!r} is outside the workspace", advice="name a folder inside it")
    place = scenery.layers.follow(os.path.relpath(path, scenery.layers.workspace))
    if place is None:
        raise NotFound(f"there is no folder {directory!r} in the workspace", advice="check the spelling")
    if place.is_outside:
        raise PathRefused(f"{directory!r} leads out of the workspace", advice="name a folder inside it")
    if not place.is_folder:
        raise NotAFile(f"{directory!r} is not a folder", advice="name the folder that holds it")
    return path


def check_command(scenery: Scenery, name: str, directory: str) -> None:
    """Raises before anything is started when the program is not there to be started."""
    if "/" in name:
        place = scenery.place(os.path.normpath(os.path.join(directory, name)))
        if place is None:
            raise CommandNotFound(
                f"there is no program {name!r}", advice="give a path relative to where the command runs"
            )
        if place.is_file and not place.is_executable:
            raise PermissionDenied(f"{name!r} is not executable", advice=f"run `chmod +x {name}` first")
        return
    if not any(_is_program(scenery, folder, name) for folder in scenery.path.split(":")):
        raise CommandNotFound(f"no program {name!r} on the PATH {scenery.path!r}", advice=_advice(scenery, name))


def _is_program(scenery: Scenery, folder: str, name: str) -> bool:
    # A relative entry that the execution's own environment put there is left to the shell inside.
    if not os.path.isabs(folder):
        return True
    place = scenery.place(os.path.join(folder, name))
    return place is not None and place.is_executable


def _advice(scenery: Scenery, name: str) -> str:
    every = set(_programs(scenery))
    close = difflib.get_close_matches(name, sorted(every), n=3)
    if f"{name}3" in every and f"{name}3" not in close:
        close.append(f"{name}3")
    if close:
        return f"did you mean {', '.join(close)}?"
    return "install it, or add its folder to the toolchains that a command may read"


def _programs(scenery: Scenery) -> Iterator[str]:
    for folder in scenery.path.split(":"):
        if os.path.isabs(folder) and os.access(folder, os.R_OK | os.X_OK):
            yield from os.listdir(folder)


def _stat(path: str, real: str) -> ResolvedPath | None:
    try:
        return ResolvedPath(path, real, os.stat(real).st_mode)
    except OSError:
        return None
