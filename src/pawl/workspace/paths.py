"""Which folder is a workspace, and which paths a tool may name; judged by components, never by a string prefix."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from pawl.core.errors import PathRefused, UsageError
from pawl.settings.config import Config

LONGEST_PATH = 4096
LONGEST_NAME = 255
_MOST_LINKS = 40

_ADVICE = "give a path relative to the workspace, such as 'src/app.py'"


def clean(path: str, *, root: str | None = None) -> str:
    """The path in its one form: relative to the workspace, `/` between names.

    An absolute path is accepted only when `root` is given and the path lies below it.
    """
    _refuse_odd_text(path)
    if path.startswith(("~", "file:")) or "://" in path:
        raise PathRefused(f"{path!r} is not a path inside the workspace", advice=_ADVICE)
    names = path.split("/")
    if path.startswith("/"):
        names = _below(path, root)
    while names and names[0] == ".":
        names = names[1:]
    if not names:
        raise PathRefused(f"{path!r} names the workspace itself, not a file in it", advice=_ADVICE)
    for name in names:
        _refuse_odd_name(name, path)
    return "/".join(names)


def _refuse_odd_text(path: str) -> None:
    if not path:
        raise PathRefused("the path is empty", advice=_ADVICE)
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise PathRefused(f"the path {path!r} is not valid UTF-8", advice="rename the file first") from error
    if size > LONGEST_PATH:
        raise PathRefused(f"the path {path[:60]!r}… has {size} bytes; {LONGEST_PATH} is the most", advice=_ADVICE)
    for character in path:
        if unicodedata.category(character) == "Cc":
            raise PathRefused(f"the path {path!r} holds a control character", advice=_ADVICE)


def _refuse_odd_name(name: str, path: str) -> None:
    if name in ("", ".", ".."):
        raise PathRefused(f"{path!r} has the component {name!r}, which could leave the workspace", advice=_ADVICE)
    if len(name.encode("utf-8")) > LONGEST_NAME:
        raise PathRefused(f"a name in {path[:60]!r}… is over {LONGEST_NAME} bytes", advice=_ADVICE)


def _below(path: str, root: str | None) -> list[str]:
    """The components of an absolute path after those of the root."""
    names = path.split("/")[1:]
    wanted = root.split("/")[1:] if root else None
    if wanted is None or names[: len(wanted)] != wanted:
        where = f" {root!r}" if root else ""
        raise PathRefused(f"{path!r} is outside the workspace{where}", advice=_ADVICE)
    return names[len(wanted) :]


def depth(path: str) -> int:
    return path.count("/")


def parent(path: str) -> str:
    """The folder a path is in; empty for the workspace's root."""
    return path.rpartition("/")[0]


def folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder below the root that any of the paths lies in."""
    found: set[str] = set()
    for path in paths:
        while (path := parent(path)) and path not in found:
            found.add(path)
    return found


def way_of(path: str) -> list[str]:
    """Every place that the kernel passes on its way to what the path names, each without links above it."""
    passed, left, at = [], path.split("/")[::-1], "/"
    links = 0
    while left:
        name = left.pop()
        at = os.path.dirname(at) if name == ".." else os.path.join(at, name) if name not in ("", ".") else at
        passed.append(at)
        if os.path.islink(at):
            links += 1
            if links > _MOST_LINKS:
                break
            target = os.readlink(at)
            at = "/" if target.startswith("/") else os.path.dirname(at)
            left += target.split("/")[::-1]
    return passed


MARKS = (".git", ".pawl")


def find_workspace(start: Path, config: Config, *, exact: bool, reads: bool = False, anywhere: bool = False) -> Path:
    """The nearest folder upwards that is a repository, or `start` itself; `exact` takes `start` as it is.

    What only reads does so in a folder that may not be written, too.

    A folder that holds the user's home or Pawl's own state is refused: every command could read and change it. So is
    one inside that state, such as a bench. Whoever runs no command works `anywhere`.
    """
    try:
        folder = start.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"there is no folder {str(start)!r}", advice="check the path given with -C") from error
    if not folder.is_dir():
        raise UsageError(f"{str(start)!r} is not a folder", advice="give the folder of your project with -C")
    if not exact:
        folder = _repository(folder, config) or folder
    if not anywhere:
        _check_apart(folder, config)
    if not reads and not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the workspace {str(folder)!r} is not writable", advice="mend its permissions")
    return folder


def _check_apart(folder: Path, config: Config) -> None:
    for name, inner in (("your home folder", config.home), ("Pawl's own state", config.state)):
        if inner.resolve().is_relative_to(folder):
            raise UsageError(
                f"{str(folder)!r} holds {name}, so it cannot be a workspace",
                advice="change to your project's folder, or name it with -C",
            )
    if folder.is_relative_to(config.state.resolve()):
        raise UsageError(f"{str(folder)!r} lies in Pawl's own state", advice="change to your project's folder")


def _repository(folder: Path, config: Config) -> Path | None:
    for candidate in (folder, *folder.parents):
        if config.home.resolve().is_relative_to(candidate):
            return None
        if is_repository(candidate):
            return candidate
    return None


def is_repository(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in MARKS)


def bench_places(config: Config) -> tuple[Path, ...]:
    """Where benches can stand: beside the store, or in memory where that cannot hold an overlay."""
    memory = Path("/dev/shm")
    beside = config.state / "benches"
    return (beside, memory / f"pawl-{os.getuid()}") if memory.is_dir() else (beside,)
