"""Which folder is the workspace."""

from __future__ import annotations

import os
from pathlib import Path

from pawl.app.config import Config
from pawl.core.errors import UsageError

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
