"""Where symbolic links lead in the workspace as it will stand after a change set, name by name as the kernel goes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pawl.core.change import Change, ChangeSet, Kind
from pawl.core.guardrails import is_git
from pawl.core.ports import BlobReader
from pawl.workspace.paths import parent
from pawl.workspace.standing import is_closed
from pawl.workspace.tree import Tree

_MOST_LINKS = 40


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

    def faults(self, changes: ChangeSet, *, bringing_back: bool = False) -> dict[str, str]:
        """The changes that would make a link lead out of the workspace that does not now, each with the reason.

        A step back may put a link again where it stood that leads out by itself, as the user may have made one.
        """
        turning = frozenset(change.path for change in changes if _is_link(change))
        if not turning:
            return {}
        after = {change.path: change for change in changes}
        found = {}
        for path in sorted(turning):
            node = after[path].after
            if node is not None and node.kind is Kind.LINK:
                trail = self._follow(path, after)
                if trail.leads_out and not (bringing_back and trail.by_itself):
                    found[path] = "it leads out of the workspace"
        for path in self._standing():
            if path in after:
                continue
            trail = self._follow(path, after)
            if trail.leads_out and not self._follow(path, {}).leads_out:
                for cause in trail.passed & turning:
                    found.setdefault(cause, f"{path!r} would lead out of the workspace")
        if self._closed and not bringing_back:
            why = f"{self._closed[0]!r} is closed, so that the links in it cannot be judged"
            found = {**dict.fromkeys(turning, why), **found}
        return found

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
                if kind is Kind.LINK:
                    yield path
                elif kind is Kind.DIRECTORY and not is_git(name):
                    waiting.append(path)

    def _target(self, path: str, after: Mapping[str, Change]) -> str | None:
        """Where the link at the path points; None where no link stands."""
        if path in after:
            node = after[path].after
            if node is None or node.kind is not Kind.LINK or node.blob is None:
                return None
            return os.fsdecode(self.blobs.get(node.blob))
        try:
            seen = self.tree.find(path)
            return os.fsdecode(self.tree.link_target(path)) if seen is not None and seen.kind is Kind.LINK else None
        except OSError:
            return None

    def _follow(self, path: str, after: Mapping[str, Change]) -> _Trail:
        """Folding the text of the target would not do: behind a link to the root, `link/..` is outside."""
        root = [name for name in self.tree.root.split("/") if name]
        done: list[str] = []
        waiting = [(name, "") for name in _names(path)]
        passed: set[str] = set()
        links = 0
        while waiting:
            name, origin = waiting.pop()
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
            links += 1
            if links > _MOST_LINKS:
                break
            inner = _names(target)
            if target.startswith("/"):
                if inner[::-1][: len(root)] != root:
                    return _Trail(leads_out=True, passed=frozenset(passed), by_itself=True)
                inner = inner[: len(inner) - len(root)]
                done = []
            waiting.extend((one, place) for one in inner)
        return _Trail(leads_out=False)


def _is_link(change: Change) -> bool:
    return any(node is not None and node.kind is Kind.LINK for node in (change.before, change.after))


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
