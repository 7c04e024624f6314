"""What no promotion brings into a workspace, whoever made it, and what makes a folder a repository of git's."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

from pawl.core.change import Change, ChangeSet, Kind, parents
from pawl.core.errors import PathRefused, ProtectedRefused
from pawl.core.guardrails import folded, is_git
from pawl.core.history import REVERSALS, EntryKind
from pawl.core.permission import Judge, Ruling
from pawl.core.ports import BlobReader
from pawl.workspace.links import LinkJudge
from pawl.workspace.paths import parent
from pawl.workspace.staging_names import STAGING_PREFIX
from pawl.workspace.tree import Seen, Tree

_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


def refuse_own_ground(path: str) -> None:
    """Git's own folder, Pawl's staging, and what is no path inside."""
    names = path.split("/")
    if any(map(is_git, names)):
        raise ProtectedRefused(f"{path!r} is git's own; Pawl never writes it", advice="use git for that")
    if names[0].startswith(STAGING_PREFIX):
        raise ProtectedRefused(f"{path!r} is where Pawl stages what it writes", advice="choose another name")
    if os.path.isabs(path) or "\0" in path or {"", ".", ".."} & set(names):
        raise PathRefused(f"{path!r} is not a path inside the workspace", advice="give a path relative to it")


def refuse_changes(kind: EntryKind, changes: ChangeSet, tree: Tree, blobs: BlobReader, judge: Judge | None) -> None:
    """The last look before anything is written. Undo, redo and restore bring back what stood before: rules that deny
    and bits do not concern them, but they too turn no link outwards."""
    if kind not in REVERSALS:
        for change in changes:
            if adds_bits(tree, change):
                raise ProtectedRefused(
                    f"{change.path!r} would get the setuid, setgid or sticky bit", advice="set it by hand: chmod"
                )
        if judge is not None:
            refuse_denied(changes, judge)
    refuse_links(LinkJudge(tree, blobs).faults(changes, bringing_back=kind in REVERSALS))


def refuse_denied(changes: Iterable[Change], judge: Judge) -> None:
    for change in changes:
        said = judge(change)
        if said is not None and said.ruling is Ruling.DENY:
            where = f" of {said.source}" if said.source else ""
            raise ProtectedRefused(
                f"{change.path!r} is denied by the rule {said.rule}{where}", advice="change it by hand, or the rule"
            )


def refuse_links(faults: Mapping[str, str]) -> None:
    for path, why in sorted(faults.items()):
        raise PathRefused(f"{path!r} cannot be written: {why}", advice="nothing was written; make or mend it by hand")


def adds_bits(tree: Tree, change: Change) -> bool:
    """Whether the change sets a setuid, setgid or sticky bit that was not there and is not passed on by the folder."""
    after, before = change.after, change.before
    if after is None or after.kind is Kind.LINK:
        return False
    added = after.mode & ~(before.mode if before is not None and before.kind is after.kind else 0) & _SPECIAL_BITS
    if added == stat.S_ISGID and after.kind is Kind.DIRECTORY and before is None:
        return not _passes_on(tree, change.path)
    return bool(added)


def _passes_on(tree: Tree, path: str) -> bool:
    """Whether the folder that stands nearest above gives its group to what is made in it."""
    seen = next((seen for above in parents(path) if (seen := tree.find(above)) is not None), None)
    return bool((seen or Seen.of(os.fstat(tree.fd))).mode & stat.S_ISGID)


def in_repositories(tree: Tree, changes: ChangeSet) -> frozenset[str]:
    """The paths of the set in folders that git would take for a repository of its own once the set is there."""
    made = {
        (parent(change.path), folded(change.path.rpartition("/")[2])) for change in changes if change.after is not None
    }
    gone = {change.path for change in changes if change.after is None}
    known: dict[str, bool] = {}

    def has(folder: str, name: str) -> bool:
        path = f"{folder}/{name}" if folder else name
        return (folder, name.casefold()) in made or (path not in gone and tree.find(path) is not None)

    def is_repository(folder: str) -> bool:
        if folder not in known:
            known[folder] = has(folder, "HEAD") and (
                has(folder, "commondir") or (has(folder, "objects") and has(folder, "refs"))
            )
        return known[folder]

    return frozenset(change.path for change in changes if any(map(is_repository, (*parents(change.path), ""))))
