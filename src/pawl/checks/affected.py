"""The files that a change can make a difference to: itself, and those that import it over few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice

from pawl.checks.project_facts import Folder
from pawl.code.languages import is_test
from pawl.code.librarian import everything, open_librarian
from pawl.core.errors import PawlError
from pawl.workspace.project import Project

LARGE = 1000
"""Files of a workspace that is looked at as a whole."""
MOST = 100


def is_large(files: Folder) -> bool:
    return next(islice(files.walk(), LARGE, None), None) is not None


def affected(shop: Project, paths: Iterable[str]) -> frozenset[str]:
    """The changed files and a bounded number of others, the nearest first, and code before tests, which are run."""
    found = dict.fromkeys(paths)
    most = len(found) + MOST
    with suppress(PawlError), open_librarian(shop, shows=everything) as librarian:
        librarian.refresh()
        importers = librarian.graph().importers
        waiting = list(found)
        while waiting and len(found) < most:
            fresh = [path for path in importers.get(waiting.pop(0), ()) if path not in found]
            fresh = sorted(fresh, key=lambda path: (is_test(path), path))[: most - len(found)]
            found |= dict.fromkeys(fresh)
            waiting += fresh
    return frozenset(found)


def outside(shop: Project, paths: Iterable[str]) -> Callable[[str], bool]:
    """Whether a file is not affected by a change of these; the index is asked with the first file."""
    changed = tuple(paths)
    known: list[frozenset[str]] = []

    def is_outside(path: str) -> bool:
        if changed and not known:
            known.append(affected(shop, changed))
        return not changed or path not in known[0]

    return is_outside
