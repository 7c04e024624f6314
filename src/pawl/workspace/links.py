"""Where a symbolic link of a bench leads, followed name by name as the kernel would."""

from __future__ import annotations

import os

from pawl.core.change import Kind
from pawl.workspace.surface import Surface

_MOST_LINKS = 40


def leads_out(surface: Surface, path: str) -> bool:
    """Whether the link at this path leads out of the workspace, directly or through other links.

    Folding the text of the target would not do: behind a link to the root, `link/..` is outside.
    """
    root = [name for name in surface.workspace.root.split("/") if name]
    done: list[str] = []
    waiting = [*_names(path)]
    links = 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            if not done:
                return True
            done.pop()
            continue
        place = "/".join([*done, name])
        seen = surface.look(place)
        if seen is None or seen.kind is not Kind.LINK:
            done.append(name)
            continue
        links += 1
        if links > _MOST_LINKS:
            return False
        target = os.fsdecode(surface.link_target(place))
        inner = _names(target)
        if target.startswith("/"):
            if inner[::-1][: len(root)] != root:
                return True
            inner = inner[: len(inner) - len(root)]
            done = []
        waiting.extend(inner)
    return False


def _names(path: str) -> list[str]:
    """The names of a path, last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
