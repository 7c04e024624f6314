"""Finding the secrets of a workspace that a command must not read, without searching all of it."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.change import Kind
from pawl.core.errors import PawlError
from pawl.core.guardrails import Guardrails
from pawl.workspace.ignore import Ignore
from pawl.workspace.surface import Surface

DEEPEST = 2
MOST_NAMES = 20_000
MOST_SECRETS = 200


@dataclass(frozen=True, slots=True)
class Found:
    paths: tuple[str, ...]
    complete: bool
    """Whether every folder within reach was looked at."""


def secret_files(surface: Surface, guardrails: Guardrails, ignore: Ignore) -> Found:
    """The secret files in the root and in two levels of folders below it.

    At most 20,000 names are looked at and 200 files found; ignored folders, where packages and builds live, and git's
    own are not entered. A secret that is deeper is not hidden, but its name still keeps it from being stored.
    """
    found: list[str] = []
    looked = 0
    level = [""]
    for depth in range(DEEPEST + 1):
        below: list[str] = []
        for folder in level:
            for path, kind in _inside(surface, folder):
                looked += 1
                if looked > MOST_NAMES or len(found) >= MOST_SECRETS:
                    return Found(tuple(found), complete=False)
                if kind is Kind.FILE and guardrails.is_secret(path):
                    found.append(path)
                elif kind is Kind.DIRECTORY and depth < DEEPEST and _is_entered(path, guardrails, ignore):
                    below.append(path)
        level = below
    return Found(tuple(found), complete=True)


def _inside(surface: Surface, folder: str) -> list[tuple[str, Kind | None]]:
    try:
        entries = surface.entries(folder)
    except (PawlError, OSError):
        return []
    return [(f"{folder}/{name}" if folder else name, seen.kind) for name, seen in entries.items()]


def _is_entered(path: str, guardrails: Guardrails, ignore: Ignore) -> bool:
    return not guardrails.never(path) and ignore.topmost(path, folder=True) is None
