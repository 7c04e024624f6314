"""`pawl promote`: a kept entry brought into the workspace."""

from __future__ import annotations

from pawl.app.promoting import Kept, propose_entry
from pawl.app.workshop import Workshop
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.landing import hint_protected, tell_held
from pawl.interfaces.cli.shapes import changes_json, path_json


def promote(shop: Workshop, call: Call) -> int:
    entry = shop.entry(call.entry_number())
    kept = propose_entry(shop, entry, allow_protected=call.options.allow_protected)
    promotion = None
    if not call.options.dry_run:
        title = f"promote {entry.id}: {entry.title}"
        promotion = shop.promote(shop.new_entry(entry.kind, title, entry.reason), kept.changes)
    if call.options.json:
        call.emit(
            {
                "entry": promotion.entry if promotion else None,
                "from": entry.id,
                "changes": changes_json(promotion.changes if promotion else kept.changes, shop.store.blobs),
                "held": [{**path_json(one.path), "reason": one.reason, "rule": one.rule} for one in kept.held],
                "notices": list(promotion.notices) if promotion else [],
            }
        )
        return 0
    _tell(shop, call, kept, None if promotion is None else promotion.entry)
    hint_protected(call.out, kept.held, entry.id)
    for notice in promotion.notices if promotion else ():
        call.out.say(f"note: {notice}", "yellow")
    return 0


def _tell(shop: Workshop, call: Call, kept: Kept, number: int | None) -> None:
    call.out.say("would promote" if number is None else f"promoted as entry {number}", "bold")
    call.out.changes(kept.changes, shop.store.blobs)
    tell_held(call.out, kept.held)
    if number is not None:
        call.out.hint(f"take it back with: pawl undo {number}")
