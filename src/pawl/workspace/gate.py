"""The last gate: changes that no promotion brings into a workspace, whoever made them."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field

from pawl.core.change import REVERSALS, BlobReader, Change, ChangeSet, NewEntry, NodeKind, parents
from pawl.core.errors import PathRefused, ProtectedRefused
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import Tree
from pawl.settings.guardrails import Decision, Guardrails, Judge, folded, is_git
from pawl.workspace.paths import is_closed, nearest_folder, parent
from pawl.workspace.writer import STAGING_PREFIX

_MOST_LINKS = 40
_MOST_STEPS = 4_000_000
"""Names that are looked at for one change set; where links need more, none of the set is let through."""


class _TooMany(Exception):
    """The links take more steps than are worth it."""


@dataclass(frozen=True, slots=True)
class _Trail:
    """The way of one link."""

    leads_out: bool
    passed: frozenset[str] = frozenset()
    """Every place that was looked at."""
    by_itself: bool = False
    """The link at which it leaves would do so whatever the links on its way are."""


@dataclass(slots=True)
class LinkJudge:
    """Judges change sets over one workspace; the links that stand there are looked for once, and only if need be."""

    tree: Tree
    blobs: BlobReader
    _links: list[str] | None = None
    _closed: list[str] = field(default_factory=list)
    _stood: dict[str, str | None] = field(default_factory=dict)
    _words: dict[str, str] = field(default_factory=dict)
    _trails: dict[str, _Trail] = field(default_factory=dict)
    _left: float = _MOST_STEPS

    def faults(self, changes: ChangeSet, *, bringing_back: bool = False) -> dict[str, str]:
        """The changes that would make a link lead out of the workspace that does not now, each with the reason.

        A step back may put a link again where it stood that leads out by itself, as the user may have made one.
        """
        turning = frozenset(change.path for change in changes if turns_link(change))
        if not turning:
            return {}
        # A user waits for an undo, and what it brings back was judged once.
        self._left = math.inf if bringing_back else _MOST_STEPS
        try:
            return self._faults(changes, turning, bringing_back=bringing_back)
        except _TooMany:
            return dict.fromkeys(turning, "there are more links than can be checked")

    def _faults(self, changes: ChangeSet, turning: frozenset[str], *, bringing_back: bool) -> dict[str, str]:
        after = {change.path: change for change in changes}
        found = {}
        for path in sorted(turning):
            node = after[path].after
            if node is not None and node.kind is NodeKind.LINK:
                trail = self._follow(path, after)
                if trail.leads_out and not (bringing_back and trail.by_itself):
                    found[path] = "it leads out of the workspace"
        for path in self._passing(turning):
            if path in after or self._now(path).leads_out:
                continue
            trail = self._follow(path, after)
            if trail.leads_out:
                for cause in trail.passed & turning:
                    found.setdefault(cause, f"{path!r} would lead out of the workspace")
        if self._closed and not bringing_back:
            why = f"{self._closed[0]!r} cannot be opened, so the links in it cannot be checked"
            found = {**dict.fromkeys(turning, why), **found}
        return found

    def turned(self, changes: ChangeSet, guardrails: Guardrails) -> frozenset[str]:
        """The changed links on the way of a standing one that shows files under protected or secret names."""
        turning = frozenset(change.path for change in changes if turns_link(change))
        after = {change.path: change for change in changes} if turning else {}
        passing = [path for path in self._passing(turning) if path not in after] if turning else []
        sensitive = [path for path in passing if guardrails.leads_to_protected(path)]
        return turning & frozenset(place for path in sensitive for place in self._follow(path, after).passed)

    def _passing(self, turning: frozenset[str]) -> list[str]:
        """The standing links on whose way one of these lies; the way of another one stays as it is."""
        return [path for path in self._standing() if not self._now(path).passed.isdisjoint(turning)]

    def _now(self, path: str) -> _Trail:
        """The way of a standing link before any change."""
        if path not in self._trails:
            self._trails[path] = self._follow(path, {})
        return self._trails[path]

    def _standing(self) -> list[str]:
        if self._links is None:
            self._links = list(self._walk())
        return self._links

    def _walk(self) -> Iterator[str]:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                kinds = self.tree.kinds(folder)
            except PermissionError:
                seen = self.tree.find(folder)
                if seen is not None and is_closed(seen, 0o500):
                    self._closed.append(folder)
                continue
            except (FileNotFoundError, NotADirectoryError):
                continue
            for name, kind in kinds.items():
                path = f"{folder}/{name}" if folder else name
                if kind is NodeKind.LINK:
                    yield path
                elif kind is NodeKind.DIRECTORY and not is_git(name):
                    waiting.append(path)

    def _target(self, path: str, after: Mapping[str, Change]) -> str | None:
        """Where the link at the path points; None where no link stands. Each is read once."""
        if path in after:
            node = after[path].after
            if node is None or node.kind is not NodeKind.LINK or node.blob is None:
                return None
            if node.blob not in self._words:
                self._words[node.blob] = os.fsdecode(self.blobs.get(node.blob))
            return self._words[node.blob]
        if path not in self._stood:
            self._stood[path] = self._standing_target(path)
        return self._stood[path]

    def _standing_target(self, path: str) -> str | None:
        try:
            seen = self.tree.find(path)
            return os.fsdecode(self.tree.link_target(path)) if seen is not None and seen.kind is NodeKind.LINK else None
        except OSError:
            return None

    def _follow(self, path: str, after: Mapping[str, Change]) -> _Trail:
        """Folding the text of the target would not do: behind a link to the root, `link/..` is outside."""
        root = [name for name in self.tree.root.split("/") if name]
        done: list[str] = []
        waiting = [(name, "") for name in _names(path)]
        passed: set[str] = set()
        states: set[tuple[str, ...]] = set()
        while waiting:
            name, origin = waiting.pop()
            self._left -= 1
            if self._left < 0:
                raise _TooMany
            if name == "..":
                if not done:
                    words = self._target(origin, after) or ""
                    return _Trail(leads_out=True, passed=frozenset(passed), by_itself=_climbs(origin, words))
                done.pop()
                continue
            place = "/".join([*done, name])
            passed.add(place)
            target = self._target(place, after)
            if target is None:
                done.append(name)
                continue
            state = (place, *(one for one, _ in waiting))
            if state in states:
                break  # a circle leads nowhere
            states.add(state)
            if len(states) > _MOST_LINKS:
                return _Trail(leads_out=True, passed=frozenset(passed))
            inner = _names(target)
            if target.startswith("/"):
                if inner[::-1][: len(root)] != root:
                    return _Trail(leads_out=True, passed=frozenset(passed), by_itself=True)
                inner = inner[: len(inner) - len(root)]
                done = []
            waiting.extend((one, place) for one in inner)
        return _Trail(leads_out=False, passed=frozenset(passed))


def turns_link(change: Change) -> bool:
    """Whether the change makes, moves or removes a link."""
    return any(node is not None and node.kind is NodeKind.LINK for node in (change.before, change.after))


def _climbs(path: str, target: str) -> bool:
    """Whether the words of the target alone lead above the root."""
    left = 0 if target.startswith("/") else len(_names(parent(path)))
    for name in reversed(_names(target)):
        left += -1 if name == ".." else 1
        if left < 0:
            return True
    return False


def _names(path: str) -> list[str]:
    """The names of a path, last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


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


def refuse_changes(entry: NewEntry, changes: ChangeSet, tree: Tree, blobs: BlobReader, judge: Judge | None) -> None:
    """The last look before anything is written. Undo, redo and restore bring back what stood before: rules that deny
    and bits do not concern them, but they too turn no link outwards."""
    if entry.kind not in REVERSALS:
        for path in sorted(in_repositories(tree, changes)) if not entry.allows_protected else ():
            raise ProtectedRefused(
                f"{path!r} would be part of a repository of git's own, which is protected",
                advice="look at it, then repeat with --allow-protected",
            )
        for change in changes:
            if adds_bits(tree, change):
                raise ProtectedRefused(
                    f"{change.path!r} would get the setuid, setgid or sticky bit", advice="set it by hand: chmod"
                )
        if judge is not None:
            refuse_denied(changes, judge)
    refuse_links(LinkJudge(tree, blobs).faults(changes, bringing_back=entry.kind in REVERSALS))


def refuse_denied(changes: Iterable[Change], judge: Judge) -> None:
    for change in changes:
        said = judge(change)
        if said is not None and said.ruling is Decision.DENY:
            where = f" of {said.source}" if said.source else ""
            raise ProtectedRefused(
                f"{change.path!r} is denied by the rule {said.rule}{where}", advice="change it by hand, or the rule"
            )


def refuse_links(faults: Mapping[str, str]) -> None:
    for path, why in sorted(faults.items()):
        raise PathRefused(
            f"{path!r} cannot be written: {why}", advice="nothing was written; create or correct it by hand"
        )


def adds_bits(tree: Tree, change: Change) -> bool:
    """Whether the change sets a setuid, setgid or sticky bit that was not there and is not passed on by the folder."""
    after, before = change.after, change.before
    if after is None or after.kind is NodeKind.LINK:
        return False
    added = after.mode & ~(before.mode if before is not None and before.kind is after.kind else 0) & _SPECIAL_BITS
    if added == stat.S_ISGID and after.kind is NodeKind.DIRECTORY and before is None:
        # A folder may give its group to what is made in it.
        return not nearest_folder(tree, change.path).mode & stat.S_ISGID
    return bool(added)


_GITS_OWN = (
    "HEAD", "objects", "refs", "commondir", "config", "config.worktree", "hooks", "info", "packed-refs", "modules",
    "worktrees", "index", "logs", "gitdir", "shallow", "reftable",
)  # fmt: skip
_GITS_OWN_FOLDED = frozenset(map(folded, _GITS_OWN))


def in_repositories(tree: Tree, changes: Collection[Change] | ChangeSet) -> frozenset[str]:
    """The paths of the set in folders that git would take for a repository of its own once the set is there.

    Of a repository that stands there already only git's own files count: the rest git does not obey.
    """
    made = {(parent(one.path), folded(one.path.rpartition("/")[2])) for one in changes if one.after is not None}
    gone = {change.path for change in changes if change.after is None}
    known: dict[str, bool] = {}

    def there(folder: str, name: str) -> bool:
        with suppress(PermissionError):  # a folder that nobody may enter is no repository that git could use
            return tree.find(f"{folder}/{name}" if folder else name) is not None
        return False

    def has(folder: str, name: str) -> bool:
        path = f"{folder}/{name}" if folder else name
        return (folder, name.casefold()) in made or (path not in gone and there(folder, name))

    def is_repository(folder: str) -> bool:
        if folder not in known:
            known[folder] = has(folder, "HEAD") and (
                has(folder, "commondir") or (has(folder, "objects") and has(folder, "refs"))
            )
        return known[folder]

    def stands(folder: str) -> bool:
        here = {name for name in ("HEAD", "commondir", "objects", "refs") if there(folder, name)}
        return "HEAD" in here and ("commondir" in here or {"objects", "refs"} <= here)

    def counts(path: str, folder: str) -> bool:
        first = path[len(folder) :].lstrip("/").partition("/")[0]
        return is_repository(folder) and (not stands(folder) or folded(first) in _GITS_OWN_FOLDED)

    return frozenset(each.path for each in changes if any(counts(each.path, one) for one in (*parents(each.path), "")))
