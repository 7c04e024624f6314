"""`pawl patch`: a change that comes as text."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pawl.app.patching import Proposal, propose_patch, propose_text
from pawl.app.workshop import Workshop
from pawl.core.errors import Refused, UsageError
from pawl.core.history import EntryKind
from pawl.interfaces.cli.screen import ask, changes_json, emit, is_terminal, say, show_changes


def patch(shop: Workshop, options: argparse.Namespace) -> int:
    proposal = _proposal(shop, options)
    if not options.dry_run:
        _within_guardrails(proposal, options)
    title = f"patch {options.path}" if options.path else f"patch {Path(options.patch or '-').name}"
    promotion = None
    if not options.dry_run:
        promotion = shop.promote(shop.new_entry(EntryKind.EDIT, title, options.reason), proposal.changes)
    changes = promotion.changes if promotion else proposal.changes
    if options.json:
        emit(
            {
                "entry": promotion.entry if promotion else None,
                "changes": changes_json(changes, shop.store.blobs),
                "breaches": [breach.message for breach in proposal.breaches],
                "notices": list(proposal.notices),
            }
        )
        return 0
    for notice in proposal.notices:
        say(f"note: {notice}")
    say(
        "would change"
        if promotion is None
        else f"promoted as entry {promotion.entry}; take it back with: pawl undo {promotion.entry}"
    )
    show_changes(changes, shop.store.blobs)
    return 0


def _proposal(shop: Workshop, options: argparse.Namespace) -> Proposal:
    if options.path is not None:
        if options.old is None or options.new is None or options.patch is not None:
            raise UsageError("--path needs --old and --new, and no patch file", advice="see 'pawl patch --help'")
        return propose_text(shop, options.path, options.old, options.new)
    if options.old is not None or options.new is not None:
        raise UsageError("--old and --new need --path", advice="name the file with --path")
    return propose_patch(shop, _text(options.patch), allow_protected=options.allow_protected)


def _text(name: str | None) -> bytes:
    if name is not None and name != "-":
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise UsageError(f"the patch {name!r} cannot be read: {error.strerror}", advice="check the path") from error
    if sys.stdin.isatty():
        raise UsageError("there is no patch", advice="name a file, or pipe one: git diff | pawl patch -")
    return sys.stdin.buffer.read()


def _within_guardrails(proposal: Proposal, options: argparse.Namespace) -> None:
    """Above the preset's limits the user is asked."""
    if not proposal.breaches or options.yes:
        return
    told = "; ".join(breach.message for breach in proposal.breaches)
    if not options.json and is_terminal() and sys.stdin.isatty():
        say(told)
        if ask("go on?", "ny") == "y":
            return
    raise Refused(told, advice="split the change, or repeat with --yes")
