"""`pawl patch`: a change that comes as text."""

from __future__ import annotations

import sys
from pathlib import Path

from pawl.app.patching import Proposal, propose_patch, propose_text
from pawl.app.workshop import Workshop
from pawl.core import bounded
from pawl.core.errors import Refused, UsageError
from pawl.core.history import EntryKind
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.shapes import changes_json


def patch(shop: Workshop, call: Call) -> int:
    proposal = _proposal(shop, call)
    promotion = None
    if not call.options.dry_run:
        _within_guardrails(shop, call, proposal)
        entry = shop.new_entry(EntryKind.EDIT, _title(shop, call), call.options.reason)
        promotion = shop.promote(entry, proposal.changes)
    changes = promotion.changes if promotion else proposal.changes
    if call.options.json:
        call.emit(
            {
                "entry": promotion.entry if promotion else None,
                "changes": changes_json(changes, shop.store.blobs),
                "breaches": list(proposal.breaches),
                "notices": [*proposal.notices, *(promotion.notices if promotion else ())],
            }
        )
        return 0
    call.out.say(f"promoted as entry {promotion.entry}" if promotion else "would change", "bold")
    call.out.changes(changes, shop.store.blobs)
    for notice in (*proposal.notices, *(promotion.notices if promotion else ())):
        call.out.say(f"note: {notice}")
    if promotion is not None:
        call.out.hint(f"take it back with: pawl undo {promotion.entry}")
        return 0
    for breach in proposal.breaches:
        call.out.say(f"note: {breach}; --yes goes over it")
    return 0


def _title(shop: Workshop, call: Call) -> str:
    if call.options.path is not None:
        return f"patch {call.inside(shop.workspace, call.options.path)}"
    name = call.options.patch
    return "patch from stdin" if name in (None, "-") else f"patch {Path(name).name}"


def _proposal(shop: Workshop, call: Call) -> Proposal:
    options = call.options
    if options.path is not None:
        if options.old is None or options.new is None or options.patch is not None:
            raise UsageError("--path needs --old and --new, and no patch file", advice="see 'pawl patch --help'")
        path = call.inside(shop.workspace, options.path)
        return propose_text(shop, path, options.old, options.new, allow_protected=options.allow_protected)
    if options.old is not None or options.new is not None:
        raise UsageError("--old and --new need --path", advice="name the file with --path")
    return propose_patch(shop, _text(options.patch), allow_protected=options.allow_protected)


def _text(name: str | None) -> bytes:
    if name is not None and name != "-":
        try:
            return bounded.read_bytes(name, bounded.LARGEST_DATA)
        except OSError as error:
            raise UsageError(f"the patch {name!r} cannot be read: {error.strerror}", advice="check the path") from error
    if sys.stdin.isatty():
        raise UsageError("there is no patch", advice="name a file, or pipe one: git diff | pawl patch -")
    text = sys.stdin.buffer.read(bounded.LARGEST_DATA + 1)
    if len(text) > bounded.LARGEST_DATA:
        raise UsageError(f"the patch has more than {bounded.LARGEST_DATA >> 20} MB", advice="split it")
    return text


def _within_guardrails(shop: Workshop, call: Call, proposal: Proposal) -> None:
    """Above the preset's limits the user is asked."""
    if not proposal.breaches or call.options.yes:
        return
    if call.can_ask:
        call.aside.changes(proposal.changes, shop.store.blobs)
        for breach in proposal.breaches:
            call.aside.say(breach)
        if call.aside.ask("go on?", "ny", "y/N") == "y":
            return
    told = "; ".join(proposal.breaches)
    raise Refused(told, advice="split the change, or repeat with --yes")
