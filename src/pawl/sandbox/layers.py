"""Looks at a view from outside: what stands at a path of the workspace, as the command will see it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from pawl.core.execution import OverlayView, View
from pawl.sandbox.surroundings import is_below

_MOST_LINKS = 40
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


@dataclass(frozen=True, slots=True)
class Place:
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

    def stand(self, path: str) -> Place | None:
        """What stands at a relative path whose own last name is not followed; its folders must not be links."""
        active = list(self._folders)
        place: Place | None = Place("", active[0], stat.S_IFDIR)
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
                    place = Place("/".join(names[: index + 1]), host, mode)
                if not stat.S_ISDIR(mode):
                    break
                below.append(host)
                if _is_opaque(host):
                    break
            if place is None:
                return None
            active = below if place.is_folder else []
        return place

    def follow(self, path: str) -> Place | None:
        """What a relative path leads to, with links followed inside the workspace."""
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
                    return Place(os.path.normpath("/".join([target, *reversed(waiting)])))
                target = os.path.relpath(os.path.normpath(target), self.workspace)
                done = []
            waiting.extend(part for part in reversed(target.split("/")) if part)
        return self.stand("/".join(done))

    def _outside(self, first: str, waiting: list[str]) -> Place:
        return Place(os.path.normpath("/".join([self.workspace, first, *reversed(waiting)])))


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
