"""Patches that pass the tests while nothing decides between them: told apart by content, kept, offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pawl.app.fixing.ground import Ground
from pawl.app.fixing.report import Rival
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.history import EntryKind
from pawl.repair.model import Agreement, FoundPatch, RepairEnded

DEAR = 4.0
FEW_TESTS = 3


@dataclass(frozen=True, slots=True)
class Dispute:
    """A search that ended in patches to choose from, and what the files held then: later edits move places."""

    ended: RepairEnded
    contents: dict[str, bytes]

    @classmethod
    def on(cls, ground: Ground, ended: RepairEnded) -> Dispute:
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


def rivals_of(ground: Ground, dispute: Dispute) -> tuple[Rival, ...]:
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
            Rival(
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
