"""The changes of a bench, sorted: to be promoted, ignored, held back, or in conflict with the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from enum import StrEnum

from pawl.core.change import EMPTY, BlobStore, Change, ChangeSet, Node, NodeKind
from pawl.core.errors import Conflicted, NotAFile, NotFound, PathRefused, TooLarge
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import Conflict, ConflictReason
from pawl.settings.files import LARGEST_BLOB, Seen
from pawl.settings.guardrails import Decision, Guardrails, Judge, is_git
from pawl.store.blobs import StagedBlobs
from pawl.workspace.gate import LinkJudge, adds_bits, in_repositories, turns_link
from pawl.workspace.ignore import Ignore
from pawl.workspace.paths import folders_of
from pawl.workspace.surface import Difference, Surface
from pawl.workspace.writer import STAGING_PREFIX

Tracked = Callable[[Sequence[str]], frozenset[str]]
"""Which of these paths, and of the paths below them, git tracks."""


DEEPEST = 500
"""Paths with more folders than this are held back: nothing but a fault or an attack makes them."""


class HeldReason(StrEnum):
    SECRET = "secret"
    PROTECTED = "protected"
    DENIED = "denied"
    ASKED = "asked about"
    BITS = "setuid, setgid or sticky"
    SPECIAL = "special file"
    GIT = "git's own"
    FORBIDDEN = "out of reach"
    LEAVES_TREE = "link out of the workspace"
    TOO_LARGE = "too large"
    TOO_DEEP = "too many folders deep"
    UNREADABLE = "unreadable"
    IN_THE_WAY = "a file that is kept is in the way"


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A path that is not part of the change set. The change is kept where its contents may be."""

    path: str
    reason: HeldReason
    change: Change | None = None
    rule: str = ""
    """The permission rule that denies it or asks about it."""

    @property
    def needs_yes(self) -> bool:
        """Whether the user's own yes is all that it waits for."""
        return self.reason in (HeldReason.PROTECTED, HeldReason.ASKED)

    @property
    def told(self) -> str:
        return f"{self.reason}: {self.rule}" if self.rule else str(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    changes: ChangeSet = EMPTY
    ignored: tuple[str, ...] = ()
    """The topmost ignored paths that changed; a folder ends with a slash."""
    held: tuple[HeldBack, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    """Paths whose base is unknown, because the user changed them after the bench was made and the bench did too.
    The bench's side (ours) is kept as a blob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRules:
    """Decides where a changed path goes."""

    blobs: BlobStore
    guardrails: Guardrails
    ignore: Ignore | None
    """None for a user who wants everything that a command left, caches included."""
    tracked: Tracked
    largest: int = LARGEST_BLOB
    judge: Judge | None = None


def capture(surface: Surface, rules: CaptureRules) -> Capture:
    """Reads what the bench changed. Contents are durable when it returns; those of secrets are never stored."""
    sorting = _Sorting(surface, rules)
    for difference in surface.differences():
        sorting.take(difference)
    sorting.take_back_tracked()
    with StagedBlobs(rules.blobs) as blobs:
        sorting.rules = replace(rules, blobs=blobs)
        for difference in sorting.open:
            sorting.read(difference)
    return sorting.settled()


@dataclass(slots=True)
class _Sorting:
    surface: Surface
    rules: CaptureRules
    open: list[Difference] = field(default_factory=list)
    changes: dict[str, Change] = field(default_factory=dict)
    ignored: dict[str, list[Difference]] = field(default_factory=dict)
    held: dict[str, HeldBack] = field(default_factory=dict)
    conflicts: dict[str, Conflict] = field(default_factory=dict)
    left: list[Difference] = field(default_factory=list)
    """Everything that is not promoted and not ignored."""
    spare: list[Change] = field(default_factory=list)
    """Folders that the user took away, made again only when something is put into them."""

    def take(self, difference: Difference) -> None:
        """Sorts by path and kind; nothing is read."""
        path = difference.path
        forbidden = self._forbidden(path)
        if forbidden is not None:
            self._hold(difference, forbidden[1], path=forbidden[0])
            return
        sides = [side.kind for side in (difference.after, difference.before) if side is not None]
        if None in sides:
            self._hold(difference, HeldReason.SPECIAL)
            return
        ignore = self.rules.ignore
        top = ignore.topmost(path, folder=sides[0] is NodeKind.DIRECTORY) if ignore is not None else None
        if top is not None and not (top == path and self.rules.guardrails.is_secret(path)):
            self.ignored.setdefault(top, []).append(difference)
        else:
            self.open.append(difference)

    def take_back_tracked(self) -> None:
        """Tracked files are not ignored, whatever the patterns say. Git is asked only about what was there before."""
        asked = [top for top, group in self.ignored.items() if any(one.before is not None for one in group)]
        tracked = self.rules.tracked([top.removesuffix("/") for top in sorted(asked)]) if asked else frozenset()
        for top in asked if tracked else ():
            group = self.ignored.pop(top)
            self.open.extend(one for one in group if one.path in tracked)
            rest = [one for one in group if one.path not in tracked]
            if rest:
                self.ignored[top] = rest

    def read(self, difference: Difference) -> None:
        """Compares the contents and decides."""
        try:
            try:
                self._read(difference)
            except (NotFound, NotAFile, PathRefused, Conflicted, FileNotFoundError, NotADirectoryError):
                # Only the workspace can change while this runs: the bench is locked.
                self._keep_aside(difference)
        except TooLarge:
            self._hold(difference, HeldReason.TOO_LARGE)
        except PermissionError:
            self._hold(difference, HeldReason.UNREADABLE)

    def _read(self, difference: Difference) -> None:
        if not self._differs(difference):
            return
        if self.rules.guardrails.is_secret(difference.path):
            self._hold(difference, HeldReason.SECRET)
        elif difference.stale:
            self._keep_aside(difference)
        else:
            self._decide(difference, self._change(difference))

    def settled(self) -> Capture:
        """The sorted parts, with nothing in the change set that needs what is left out of it."""
        self._protect_repositories()
        links = LinkJudge(self.surface.workspace, self.rules.blobs)
        turned = links.turned(ChangeSet.of(self.changes.values()), self.rules.guardrails)
        self._hold_changes(turned, HeldReason.PROTECTED)
        self._hold_what_is_blocked()
        faults: Iterable[str] = links.faults(ChangeSet.of(self.changes.values()))
        while faults:
            self._hold_changes(faults, HeldReason.LEAVES_TREE)
            self._hold_what_is_blocked()
            # What is held back may turn another link. Then no link is promoted, so that this ends at the second turn.
            left = ChangeSet.of(self.changes.values())
            faults = [change.path for change in left if turns_link(change)] if links.faults(left) else ()
        self._hold_emptied_folders()
        needed = folders_of(path for path, change in self.changes.items() if change.after is not None)
        for folder in self.spare:
            if folder.path in needed:
                self.changes[folder.path] = folder
        return Capture(
            changes=ChangeSet.of(self.changes.values()),
            ignored=tuple(sorted(self.ignored)),
            held=tuple(self.held[path] for path in sorted(self.held)),
            conflicts=tuple(self.conflicts[path] for path in sorted(self.conflicts)),
        )

    def _protect_repositories(self) -> None:
        """Also what a rule asks about, and what the user changed meanwhile, can make a folder a repository."""
        waiting = {one.path: one.change for one in self.held.values() if one.needs_yes and one.change is not None}
        aside = {one.path: Change(one.path, one.theirs, one.ours) for one in self.conflicts.values()}
        every = {**aside, **waiting, **self.changes}
        found = in_repositories(self.surface.workspace, every.values())
        self._hold_changes(found & self.changes.keys(), HeldReason.PROTECTED)
        for path in found & (waiting.keys() | aside.keys()):
            self.conflicts.pop(path, None)
            self.held[path] = HeldBack(path, HeldReason.PROTECTED, waiting.get(path))

    def _hold_emptied_folders(self) -> None:
        """New folders that only what is held back is in wait for it, or stay on the bench where nothing can lift it."""
        above = folders_of(self.held)
        made = {path for path, one in self.changes.items() if path in above and one.before is None}
        used = folders_of(path for path, one in self.changes.items() if one.after is not None and path not in made)
        for path in made - used:
            change = self.changes.pop(path)
            below = [one for one in self.held.values() if one.needs_yes and one.path.startswith(f"{path}/")]
            if below:
                why = min(below, key=lambda one: (one.reason is not HeldReason.ASKED, one.path))
                self.held[path] = HeldBack(path, why.reason, change, why.rule)

    def _forbidden(self, path: str) -> tuple[str, HeldReason] | None:
        """The topmost part of the path that nobody may change, such as a `.git` at any depth."""
        guardrails = self.rules.guardrails
        names = path.split("/")
        if len(names) > DEEPEST:
            return "/".join(names[: DEEPEST + 1]), HeldReason.TOO_DEEP
        if not guardrails.never(path) and not path.startswith(STAGING_PREFIX) and not any(map(is_git, names)):
            return None
        if names[0].startswith(STAGING_PREFIX):
            return names[0], HeldReason.FORBIDDEN
        for count, name in enumerate(names, 1):
            place = "/".join(names[:count])
            if is_git(name):
                return place, HeldReason.GIT
            if guardrails.never(place):
                return place, HeldReason.FORBIDDEN
        return None

    def _hold(
        self, difference: Difference, reason: HeldReason, change: Change | None = None, *, path: str = ""
    ) -> None:
        where = path or difference.path
        said = self.rules.judge(change) if change is not None and self.rules.judge is not None else None
        rule = said.rule if said is not None and reason in (HeldReason.DENIED, HeldReason.ASKED) else ""
        self.held.setdefault(where, HeldBack(where, reason, change, rule))
        self.left.append(difference)

    def _hold_changes(self, paths: Iterable[str], reason: HeldReason) -> None:
        """Holds back what was taken for part of the change set."""
        known = {one.path: one for one in self.open} if paths else {}
        for path in paths:
            self._hold(known[path], reason, self.changes.pop(path))

    def _differs(self, difference: Difference) -> bool:
        """Whether the two sides are really different: a touched or identically rewritten file is not."""
        before, after = difference.before, difference.after
        if before is None or after is None or before.kind is not after.kind:
            return True
        if before.kind is NodeKind.LINK:
            path = difference.path
            return self.surface.link_target(path) != self.surface.workspace.link_target(path)
        if before.mode != after.mode:
            return True
        if before.kind is NodeKind.DIRECTORY:
            return False
        if before.size != after.size:
            return True
        self._check_size(difference)
        return self.surface.node(difference.path) != self.surface.workspace.node(difference.path)

    def _check_size(self, difference: Difference) -> None:
        for side in (difference.before, difference.after):
            if side is not None and side.kind is NodeKind.FILE and side.size > self.rules.largest:
                raise TooLarge(f"{difference.path!r} has {side.size:,} bytes; the limit is {self.rules.largest:,}")

    def _change(self, difference: Difference) -> Change:
        """The change with its contents in the blob store."""
        self._check_size(difference)
        path, workspace = difference.path, self.surface.workspace
        before = None if difference.before is None else workspace.node(path, self.rules.blobs)
        if before is not None and before.kind is NodeKind.DIRECTORY and not _is_folder(difference.after):
            workspace.names(path)  # one that cannot be listed cannot be taken back either
        after = None if difference.after is None else self.surface.node(path, self.rules.blobs)
        if difference.before != workspace.find(path) and not _is_folder(difference.before):
            raise Conflicted(f"{path!r} changed while it was read")
        return Change(path, before, after)

    def _decide(self, difference: Difference, change: Change) -> None:
        reason = self._reason(change)
        if reason is None:
            self.changes[difference.path] = change
        else:
            self._hold(difference, reason, change)

    def _reason(self, change: Change) -> HeldReason | None:
        """Why the change is held back by itself, whatever else is changed."""
        said = self.rules.judge(change) if self.rules.judge is not None else None
        if said is not None and said.ruling is Decision.DENY:
            return HeldReason.DENIED
        if adds_bits(self.surface.workspace, change):
            return HeldReason.BITS
        if self.rules.guardrails.protects(change):
            return HeldReason.PROTECTED
        return None if said is None else HeldReason.ASKED

    def _keep_aside(self, difference: Difference) -> None:
        """A path whose base is unknown: the bench's version is kept, the workspace's is left alone."""
        if _is_folder(difference.after) and difference.before is None:
            assert difference.after is not None
            self.spare.append(Change(difference.path, None, Node.directory(difference.after.mode)))
            return
        if self.rules.guardrails.is_secret(difference.path):
            self._hold(difference, HeldReason.SECRET)
            return
        self._check_size(difference)
        bench = None if difference.after is None else self.surface.node(difference.path, self.rules.blobs)
        try:
            workspace = self.surface.workspace.node(difference.path)
        except (OSError, NotFound, NotAFile, PathRefused, Conflicted):
            workspace = None
        if bench == workspace:
            return
        reason = self._reason(Change(difference.path, workspace, bench))
        if reason not in (None, HeldReason.ASKED):
            self._hold(difference, reason)
        else:
            self.conflicts[difference.path] = Conflict(
                path=difference.path, base=None, ours=bench, theirs=workspace, reason=ConflictReason.MEANWHILE
            )
            self.left.append(difference)

    def _hold_what_is_blocked(self) -> None:
        stays = folders_of(one.path for one in self.left if one.before is not None)
        caches = (one for group in self.ignored.values() for one in group)
        quiet = folders_of(one.path for one in caches if one.before is not None)
        missing = {one.path for one in self.left if _is_folder(one.after) and not _is_folder(one.before)}
        for path, change in list(self.changes.items()):
            goes = _is_folder(change.before) and not _is_folder(change.after)
            if goes and path in quiet and path not in stays and change.after is None:
                # A folder that still holds ignored files stays with them, as git leaves it.
                del self.changes[path]
            elif (goes and (path in stays or path in quiet)) or (
                missing and change.after is not None and not missing.isdisjoint(folders_of([path]))
            ):
                self.held[path] = HeldBack(path, HeldReason.IN_THE_WAY, self.changes.pop(path))


def _is_folder(side: Seen | Node | None) -> bool:
    return side is not None and side.kind is NodeKind.DIRECTORY
