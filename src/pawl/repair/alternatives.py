"""Patches that pass the tests while nothing decides between them: told apart by content, kept, offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from pawl.core.change import Change, ChangeSet, Node
from pawl.core.diagnostic import CheckResult, Status
from pawl.core.errors import UsageError
from pawl.core.history import EntryKind
from pawl.repair.model import Agreement, Alternative, FixRequest, FoundPatch, Repair, RepairEnded
from pawl.workspace.bench import Bench
from pawl.workspace.project import Project

DEAR = 4.0
FEW_TESTS = 3


class TrialBench(Protocol):
    """Where patches are tried: for Python and for scripts alike."""

    @property
    def shop(self) -> Project: ...

    @property
    def bench(self) -> Bench: ...

    @property
    def request(self) -> FixRequest: ...


@dataclass(frozen=True, slots=True)
class Dispute:
    """A search that ended in patches to choose from, and what the files held then: later edits move places."""

    ended: RepairEnded
    contents: dict[str, bytes]

    @classmethod
    def on(cls, ground: TrialBench, ended: RepairEnded) -> Dispute:
        return cls(ended, {patch.path: ground.bench.files.read(patch.path) for patch in ended.patches})


def distinct(ended: RepairEnded, read: Callable[[str], bytes]) -> RepairEnded:
    """Without patches that come to the same text as one before them."""
    found: dict[tuple[str, bytes], FoundPatch] = {}
    for patch in ended.patches:
        found.setdefault((patch.path, patch.applied(read(patch.path))), patch)
    patches = tuple(found.values())
    if ended.agreement is Agreement.DISPUTED and len(patches) == 1:
        return replace(ended, patches=patches, agreement=Agreement.SOLE, reason="no other patch passes the tests")
    return replace(ended, patches=patches)


def is_doubtful(ended: RepairEnded) -> bool:
    """Whether patches disagree, or the patch was built to fit a few examples and may fail on other inputs."""
    patch = ended.chosen
    guessed = patch is not None and "grown" in patch.template and patch.cost >= DEAR and len(ended.tests) < FEW_TESTS
    return ended.agreement is Agreement.DISPUTED or guessed


def picked(ended: RepairEnded, pick: int) -> FoundPatch:
    """The patch that the user picks, of those that are offered."""
    if not 1 <= pick <= len(ended.patches):
        raise UsageError(f"--pick {pick}: there are {len(ended.patches)} patches", advice="give one of their numbers")
    return ended.patches[pick - 1]


def repair_of(patch: FoundPatch, ended: RepairEnded) -> Repair:
    """The patch as it is reported, with what speaks for it."""
    why = f"{patch.function or patch.path}, line {patch.line}" + (f"; {ended.reason}" if ended.reason else "")
    return Repair(
        path=patch.path,
        line=patch.line,
        what=patch.template,
        why=why,
        rivals=len(ended.patches) - 1,
        agreement=ended.agreement,
    )


def is_progress(after: CheckResult, before: CheckResult) -> bool:
    """Fewer tests fail, and none that did not fail before."""
    if after.standing is Status.PASS:
        return True
    now = {finding.test or finding.key for finding in after.findings}
    then = {finding.test or finding.key for finding in before.findings}
    return now < then


def rivals_of(ground: TrialBench, dispute: Dispute) -> tuple[Alternative, ...]:
    """Every patch as a change set of its own, on top of what was mended before it, kept as an entry."""
    shop = ground.shop
    rivals = []
    patches = dispute.ended.patches
    for number, patch in enumerate(patches, 1):
        before = dispute.contents[patch.path]
        seen = shop.tree.look(patch.path)
        mode = seen.mode if seen else 0o644
        nodes = [Node.file(shop.store.blobs.put(data), mode) for data in (before, patch.applied(before))]
        changes = ChangeSet.of([Change(patch.path, *nodes)])
        entry = None
        if not ground.request.dry_run:
            entry = shop.keep(shop.new_entry(EntryKind.EDIT, f"fix, rival {number}: {patch.template}"), changes)
        rivals.append(
            Alternative(
                number=number,
                entry=entry,
                path=patch.path,
                line=patch.line,
                what=patch.template,
                changes=changes,
                behaves_like_first=patch.group == patches[0].group,
            )
        )
    return tuple(rivals)
