"""Putting a change set onto a bench, if every path of it stands where the set starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pawl.core.change import Change, ChangeSet, Kind, Node
from pawl.core.errors import Conflicted, NotAFile, PathRefused
from pawl.core.ports import BlobReader
from pawl.workspace.bench_files import told
from pawl.workspace.gate import refuse_own_ground
from pawl.workspace.paths import depth, parent
from pawl.workspace.surface import Surface

_OPEN_FOLDER = 0o700


def apply(surface: Surface, changes: ChangeSet, blobs: BlobReader) -> None:
    """Writes the set; `Conflicted` with the paths in the way, and nothing written, where the bench differs."""
    steps = _planned(surface, changes)
    contents = {
        change.path: blobs.get(change.after.blob)
        for change in steps
        if change.after is not None and change.after.blob is not None
    }
    upwards = sorted(steps, key=lambda change: depth(change.path), reverse=True)
    closed = _opened(surface, steps)
    for change in upwards:
        if change.before is not None and (change.after is None or change.after.kind is not change.before.kind):
            with _at(change.path):
                surface.remove(change.path)
    for change in reversed(upwards):
        with _at(change.path):
            _put(surface, change, contents.get(change.path, b""))
    modes = {path: mode for path, mode in closed.items() if path not in changes.paths}
    modes |= {change.path: change.after.mode for change in upwards if change.after and _is_folder(change.after)}
    for path in sorted(modes, key=depth, reverse=True):
        with _at(path):
            surface.set_mode(path, modes[path])


def _put(surface: Surface, change: Change, content: bytes) -> None:
    match change.after:
        case Node(kind=Kind.DIRECTORY) if not _is_folder(change.before):
            surface.make_folder(change.path, _OPEN_FOLDER)
        case Node(kind=Kind.LINK):
            surface.put_link(change.path, content)
        case Node(kind=Kind.FILE, mode=mode):
            surface.put_file(change.path, content, mode)


@contextmanager
def _at(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise told(error, path) from error


def _opened(surface: Surface, steps: list[Change]) -> dict[str, int]:
    """Opens the folders whose mode keeps even their owner from changing their entries; gives their modes."""
    closed: dict[str, int] = {}
    for path in sorted({parent(change.path) for change in steps} - {""}, key=depth):
        with suppress(PathRefused):
            seen = surface.look(path)
            if seen is not None and seen.kind is Kind.DIRECTORY and seen.mode & 0o700 != 0o700 and os.geteuid() != 0:
                closed[path] = seen.mode
                surface.set_mode(path, seen.mode | 0o700)
    return closed


def _planned(surface: Surface, changes: ChangeSet) -> list[Change]:
    """The changes that are not already so; a folder may have any mode before, and be gone already."""
    steps: list[Change] = []
    conflicts: list[str] = []
    for change in changes:
        refuse_own_ground(change.path)
        try:
            now = surface.node(change.path)
        except PathRefused:
            now = None  # what lies behind a link is not there
        except NotAFile:
            conflicts.append(change.path)
            continue
        if now == change.after:
            continue
        if now == change.before or (_is_folder(now) and _is_folder(change.before)):
            steps.append(Change(change.path, now, change.after))
        else:
            conflicts.append(change.path)
    if conflicts:
        raise Conflicted(
            f"the bench has something else at {', '.join(map(repr, sorted(conflicts)))}",
            tuple(sorted(conflicts)),
            advice="nothing was written; rebase the change set over what the bench has",
        )
    return steps


def _is_folder(node: Node | None) -> bool:
    return node is not None and node.kind is Kind.DIRECTORY
