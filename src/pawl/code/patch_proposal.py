"""Changes that come as text: a patch file, or one text to be replaced by another."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.code.editor import BenchEditor
from pawl.code.patch_reader import read_patch
from pawl.code.patch_resolver import resolve
from pawl.core.change import Change, ChangeSet, Node, NodeKind
from pawl.core.errors import Conflicted, ProtectedRefused, SecretRefused, TooLarge
from pawl.core.guardrails import Touched
from pawl.core.patch import summary
from pawl.workspace.commands import open_bench
from pawl.workspace.gate import LinkJudge, in_repositories, refuse_denied, refuse_links
from pawl.workspace.paths import clean
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchProposal:
    """A change that is ready to be promoted, and what the user should be asked about."""

    changes: ChangeSet
    breaches: tuple[str, ...]
    """Guardrails and rules by which the user is asked first."""
    notices: tuple[str, ...] = ()


def propose_patch(shop: Project, text: bytes, *, allow_protected: bool) -> PatchProposal:
    """The change set of a patch against the workspace as it stands; refused as a whole when one path is refused."""
    patches = read_patch(text)
    for patch in patches:
        for path in {patch.old_path, patch.new_path}:
            check_path(shop, path, allow_protected=allow_protected)

    def node(path: str) -> Node | None:
        return shop.tree.node(path, shop.store.blobs) if shop.tree.look(path) is not None else None

    resolved = resolve(patches, node, shop.store.blobs)
    for change in resolved.changes:
        check_path(shop, change.path, allow_protected=allow_protected)
        _check_size(shop, change)
    refuse_denied(resolved.changes, shop.judge_changes())
    links = LinkJudge(shop.tree, shop.store.blobs)
    refuse_links(links.faults(resolved.changes))
    if not allow_protected:
        linked = {change.path for change in resolved.changes if shop.guardrails.protects(change)}
        linked |= links.turned(resolved.changes, shop.guardrails)
        for path in sorted(linked | in_repositories(shop.tree, resolved.changes)):
            raise _protected(path)
    return _proposal(shop, resolved.changes, resolved.notices)


def propose_text(shop: Project, path: str, old: str, new: str, *, allow_protected: bool) -> PatchProposal:
    """A strict patch, made on a bench: `old` occurs exactly once and becomes `new`. The file may be an ignored one."""
    check_path(shop, path, allow_protected=allow_protected)
    with open_bench(shop, include_ignored=True) as bench:
        editor = BenchEditor(bench.files, shop.guardrails, allowed=(clean(path),))
        editor.read(path)
        editor.patch(path, old, new)
        captured = bench.capture()
    if captured.conflicts:
        raise Conflicted(f"you changed {path!r} meanwhile", captured.conflicts, advice="nothing was written; try again")
    refuse_denied((one.change for one in captured.held if one.change), shop.judge_changes())
    allowed = ChangeSet.of(one.change for one in captured.held if one.change and one.needs_yes)
    return _proposal(shop, captured.changes.then(allowed), ())


def check_path(shop: Project, path: str, *, allow_protected: bool) -> None:
    """Refuses a path that may not be written."""
    name = clean(path)
    if shop.guardrails.never(name):
        raise ProtectedRefused(f"{name!r} is git's own; Pawl never writes it", advice="use git for that")
    if shop.guardrails.is_secret(name):
        raise SecretRefused(f"{name!r} holds secrets; Pawl never writes it", advice="change it by hand")
    if shop.guardrails.is_protected(name) and not allow_protected:
        raise _protected(name)


def _protected(path: str) -> ProtectedRefused:
    return ProtectedRefused(
        f"{path!r} configures or executes things and is protected",
        advice="look at it closely, then repeat with --allow-protected",
    )


def _check_size(shop: Project, change: Change) -> None:
    for node in (change.before, change.after):
        if node is None or node.kind is not NodeKind.FILE or node.blob is None or change.after is None:
            continue
        size, most = len(shop.store.blobs.get(node.blob)), shop.guardrails.file_bytes
        if size > most:
            raise TooLarge(
                f"{change.path!r} has {size:,} bytes; {most:,} is the most", advice="change it with a command: pawl run"
            )


def _proposal(shop: Project, changes: ChangeSet, notices: tuple[str, ...]) -> PatchProposal:
    rows = summary(changes, shop.store.blobs)
    touched = [Touched(path=row.path, changed_lines=row.added + row.removed) for row in rows if row.what != "directory"]
    breaches = (*(breach.message for breach in shop.guardrails.check(touched)), *shop.asked_about(changes))
    return PatchProposal(changes=changes, breaches=breaches, notices=notices)
