"""Finds the parts of a git repository that a command may read but not write."""

from __future__ import annotations

import os
import stat

from pawl.sandbox.layers import Layers
from pawl.sandbox.surroundings import is_below

_POINTER = "gitdir: "
_LONGEST_POINTER = 8192


def has_git_folder(layers: Layers) -> bool:
    place = layers.stand(".git")
    return place is not None and place.is_folder


def linked_repository(layers: Layers) -> str | None:
    """The repository that a linked worktree belongs to, when that repository itself knows the worktree.

    The `.git` file of a hostile workspace can name any folder. It is believed only when the named folder is
    `<repository>/worktrees/<name>` and points back at this very file, which nobody can arrange in a folder that is
    not theirs to write.
    """
    place = layers.stand(".git")
    if place is None or not place.is_file:
        return None
    pointer = _first_line(place.host)
    if pointer is None or not pointer.startswith(_POINTER):
        return None
    folder = os.path.realpath(os.path.join(layers.workspace, pointer.removeprefix(_POINTER)))
    back = _first_line(os.path.join(folder, "gitdir"))
    common = _first_line(os.path.join(folder, "commondir"))
    if back is None or common is None:
        return None
    if os.path.realpath(os.path.join(folder, back)) != os.path.join(os.path.realpath(layers.workspace), ".git"):
        return None
    repository = os.path.realpath(os.path.join(folder, common))
    if os.path.dirname(folder) != os.path.join(repository, "worktrees") or is_below(repository, layers.workspace):
        return None
    return repository if os.path.isfile(os.path.join(repository, "HEAD")) else None


def _first_line(path: str) -> str | None:
    """Of a regular file; a pipe put there to make the reader wait is not one."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return os.fsdecode(os.read(file, _LONGEST_POINTER)).partition("\n")[0].rstrip("\r")
    finally:
        os.close(file)
