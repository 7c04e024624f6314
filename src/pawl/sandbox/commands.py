"""Finds the program that a command names, as it will be found inside the sandbox."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pawl.core.errors import CommandNotFound, NotAFile, NotFound, PathRefused, PermissionDenied
from pawl.sandbox.layers import Layers, Place
from pawl.sandbox.surroundings import SYSTEM_FOLDERS, Root, is_below


@dataclass(frozen=True, slots=True)
class Scenery:
    """What can be seen inside: the view, and the roots around it."""

    layers: Layers
    roots: tuple[Root, ...]
    path: str
    """The PATH inside."""

    def place(self, path: str) -> Place | None:
        """What an absolute path leads to inside; None when nothing stands there or it cannot be seen."""
        for _ in range(2):
            if is_below(path, self.layers.workspace):
                found = self.layers.follow(os.path.relpath(path, self.layers.workspace))
                if found is None or not found.is_outside:
                    return found
                path = found.path
            here = self._on_this_machine(path)
            if not os.path.lexists(here):
                return None
            real = os.path.realpath(here)
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
    close = difflib.get_close_matches(name, sorted(set(_programs(scenery))), n=3)
    close += [other for other in (f"{name}3",) if other not in close and other in set(_programs(scenery))]
    if close:
        return f"did you mean {', '.join(close)}?"
    return "install it, or add its folder to the toolchains that a command may read"


def _programs(scenery: Scenery) -> Iterator[str]:
    for folder in _existing(scenery.path.split(":")):
        yield from os.listdir(folder)


def _existing(folders: Iterable[str]) -> Iterator[str]:
    return (folder for folder in folders if os.path.isabs(folder) and os.access(folder, os.R_OK | os.X_OK))


def _stat(path: str, real: str) -> Place | None:
    try:
        return Place(path, real, os.stat(real).st_mode)
    except OSError:
        return None
