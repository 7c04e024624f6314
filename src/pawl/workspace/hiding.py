"""Finding the secrets of a workspace that a command must not read, without searching all of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from pawl.core.change import Kind
from pawl.core.errors import PawlError
from pawl.core.guardrails import Guardrails
from pawl.workspace.surface import Surface

LEVELS = 12
MOST_NAMES = 5000
MOST_NAMES_OF_A_FOLDER = 1000
MOST_SECRETS = 200
NOT_ENTERED = frozenset(
    {"node_modules", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache"}
)
"""Folders of installed packages and caches: what looks like a key there, such as a list of certificates, is none."""


@dataclass(frozen=True, slots=True)
class Found:
    paths: tuple[str, ...]
    complete: bool
    """Whether everything within reach was looked at."""


def secret_files(surface: Surface, guardrails: Guardrails) -> Found:
    """The secret files of the workspace, the shallow ones first.

    At most 5,000 names are looked at, 1,000 of each folder, twelve levels deep, and 200 secrets found; the folders of
    installed packages, known caches and git's own are not entered. A secret out of reach is not hidden, which is said,
    and is still never stored.
    """
    search = _Search(surface, guardrails)
    level = [""]
    for _ in range(LEVELS):
        level = [below for folder in level for below in search.folder(folder)]
    return Found(tuple(sorted(search.found)), search.complete)


@dataclass(slots=True)
class _Search:
    surface: Surface
    guardrails: Guardrails
    found: list[str] = field(default_factory=list)
    looked: int = 0
    complete: bool = True

    def folder(self, folder: str) -> Iterator[str]:
        """Looks at the names in a folder; gives the folders in it that are worth entering."""
        most = min(MOST_NAMES_OF_A_FOLDER, MOST_NAMES - self.looked)
        if most <= 0:
            self.complete = False
            return
        try:
            kinds = self.surface.kinds(folder)
        except (PawlError, OSError):
            return
        self.looked += min(most, len(kinds))
        self.complete = self.complete and len(kinds) <= most
        for name, kind in itertools.islice(kinds.items(), most):
            path = f"{folder}/{name}" if folder else name
            if kind is Kind.FILE and self.guardrails.is_secret(path):
                if len(self.found) < MOST_SECRETS:
                    self.found.append(path)
                else:
                    self.complete = False
            elif kind is Kind.DIRECTORY and name not in NOT_ENTERED and not self.guardrails.never(path):
                if path.count("/") < LEVELS - 1:
                    yield path
                else:
                    self.complete = False
