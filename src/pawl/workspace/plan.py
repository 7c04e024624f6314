"""What it takes to bring a change set into the workspace as it stands now, or why that cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pawl.core.change import Change, ChangeSet, Kind, Node, is_directory, parents
from pawl.core.errors import Conflicted
from pawl.workspace.paths import depth
from pawl.workspace.standing import Standing, is_closed
from pawl.workspace.writer import Step

_NEW_FOLDER = Node.directory(0o755)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    steps: tuple[Step, ...]
    changes: ChangeSet
    """The same as a change set."""
    modes: Mapping[str, int]
    """Folders that have to be opened meanwhile and that the set does not speak of."""


@dataclass(slots=True)
class Planning:
    """The set as it can be written now: with the folders it needs and without what is already so."""

    standing: Standing
    wanted: ChangeSet
    steps: dict[str, Step] = field(default_factory=dict)
    conflicts: set[str] = field(default_factory=set)
    folders: dict[str, bool] = field(default_factory=dict)
    """Whether there will be a folder at these paths."""

    def plan(self) -> Plan:
        self.folders = {change.path: is_directory(change.after) for change in self.wanted}
        for change in self.wanted:
            if change.after is not None and not self._has_room(change.path):
                self.conflicts.add(change.path)
            else:
                self._add(change)
        self._keep_folders_in_use()
        if self.conflicts:
            raise Conflicted(
                f"changed meanwhile: {', '.join(repr(path) for path in sorted(self.conflicts))}",
                tuple(sorted(self.conflicts)),
                advice="nothing was written; look at the difference and try again",
            )
        steps = tuple(self.steps[path] for path in sorted(self.steps))
        changes = ChangeSet(tuple(Change(step.path, step.now, step.goal) for step in steps))
        return Plan(steps=steps, changes=changes, modes=self._locked_folders())

    def _add(self, change: Change) -> None:
        """The change as it starts from what stands there now; nothing when it is already so."""
        seen, now = self.standing.at(change.path)
        if now == change.after:
            return
        if is_directory(now) and change.before is None and is_directory(change.after):
            return  # The user made it meanwhile, so its mode is theirs.
        if now == change.before or (is_directory(now) and is_directory(change.before)):
            self.steps[change.path] = Step(change.path, now, change.after, seen)
        else:
            self.conflicts.add(change.path)

    def _has_room(self, path: str) -> bool:
        """Plans the folders above the path that are missing; a patch does not speak of them."""
        missing: list[str] = []
        is_room = True
        for above in parents(path):
            if above not in self.folders:
                seen = self.standing.tree.find(above)
                if seen is None:
                    missing.append(above)
                    continue
                self.folders[above] = seen.kind is Kind.DIRECTORY
            is_room = self.folders[above]
            break
        for above in missing:
            self.folders[above] = is_room
            if is_room:
                self.steps[above] = Step(above, None, _NEW_FOLDER, None)
        return is_room

    def _keep_folders_in_use(self) -> None:
        """A folder that holds something the set does not remove stays; one that must become a file is blocked."""
        gone = {step.path for step in self.steps.values() if step.goal is None}
        for step in sorted(self.steps.values(), key=lambda step: depth(step.path), reverse=True):
            if not is_directory(step.now) or is_directory(step.goal):
                continue
            if gone.issuperset(f"{step.path}/{name}" for name in self.standing.tree.names(step.path)):
                continue
            if step.goal is None:
                del self.steps[step.path]
                gone.discard(step.path)
            else:
                self.conflicts.add(step.path)

    def _locked_folders(self) -> Mapping[str, int]:
        above = {folder for path in self.steps for folder in parents(path)}
        locked: dict[str, int] = {}
        for path in above - self.steps.keys():
            seen, _ = self.standing.at(path)
            if seen is not None and is_closed(seen, 0o700):
                locked[path] = seen.mode
        return locked
