"""Trees of a repository with some of their paths changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pawl.core.errors import GitFailed
from pawl.workspace.git import Entry
from pawl.workspace.repository import Repository
from pawl.workspace.repository_writing import put_object

FOLDER = "040000"
_SUBMODULE = "160000"


def folders_above(paths: Iterable[str]) -> list[str]:
    """Every folder that a path lies in, below the root, sorted."""
    found: set[str] = set()
    for path in paths:
        while path := path.rpartition("/")[0]:
            found.add(path)
    return sorted(found)


def edited_tree(repository: Repository, held: Mapping[str, Entry], changed: Mapping[str, Entry | None]) -> str:
    """The name of the tree in which the changed paths stand as given; `held` is what their folders hold."""
    inside: dict[str, dict[str, Entry]] = {folder: {} for folder in ("", *folders_above(changed))}
    for path, entry in held.items():
        if entry.mode == _SUBMODULE and path in inside:
            raise GitFailed(f"{path!r} is a submodule", advice="commit there by hand")
        folder, _, name = path.rpartition("/")
        if folder in inside and changed.get(path, entry) is not None:
            inside[folder][name] = entry
    put: dict[str, dict[str, Entry]] = {folder: {} for folder in inside}
    for path, wanted in changed.items():
        if wanted is not None:
            put[path.rpartition("/")[0]][path.rpartition("/")[2]] = wanted
    # The deepest first, so that each folder finds the new names of those in it.
    for folder in sorted(put.keys() - {""}, key=lambda one: one.count("/"), reverse=True):
        entries = _merged(folder, inside[folder], put[folder])
        outer, _, name = folder.rpartition("/")
        if entries:
            inside[outer][name] = Entry(FOLDER, put_object(repository, "tree", _content(entries)))
        elif name in inside[outer] and inside[outer][name].mode == FOLDER:
            del inside[outer][name]
    return put_object(repository, "tree", _content(_merged("", inside[""], put[""])))


def _merged(folder: str, held: Mapping[str, Entry], put: Mapping[str, Entry]) -> dict[str, Entry]:
    for name in put:
        if name in held and held[name].mode == FOLDER:
            path = f"{folder}/{name}".lstrip("/")
            raise GitFailed(f"{path!r} is a folder with other files in HEAD", advice="commit it by hand")
    return {**held, **put}


def _content(entries: Mapping[str, Entry]) -> bytes:
    """In git's order, in which a folder's name ends with a slash."""
    rows = {os.fsencode(name): entry for name, entry in entries.items()}
    ordered = sorted(rows, key=lambda name: name + b"/" if rows[name].mode == FOLDER else name)
    return b"".join(
        b"%s %s\0%s" % (rows[name].mode.lstrip("0").encode(), name, bytes.fromhex(rows[name].name)) for name in ordered
    )
