"""`pawl undo`, `redo` and `restore`."""

from __future__ import annotations

from pawl.app.reversals import OnConflict, Reversal, Wish
from pawl.app.workshop import Workshop
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.shapes import changes_json
from pawl.interfaces.screen.screen import brief

_CHOSEN = {
    OnConflict.STOP: "you changed the same place since; without --dry-run this stops here",
    OnConflict.KEEP: "you changed the same place since; left as it is",
    OnConflict.OVERWRITE: "you changed the same place since; your version is kept in this entry",
    OnConflict.MARK: "you changed the same place since; both are marked in the file",
}


def undo(shop: Workshop, call: Call) -> int:
    wish = _wish(shop, call)
    if call.options.id and call.options.id.startswith("r"):
        return _tell(shop, call, shop.undo_run(call.options.id, wish), wish)
    return _tell(shop, call, shop.undo(call.entry_number(), wish), wish)


def redo(shop: Workshop, call: Call) -> int:
    wish = Wish(on_conflict=OnConflict(call.options.on_conflict), dry_run=call.options.dry_run)
    return _tell(shop, call, shop.redo(wish), wish)


def restore(shop: Workshop, call: Call) -> int:
    wish = _wish(shop, call)
    return _tell(shop, call, shop.restore(call.options.name, wish), wish)


def _wish(shop: Workshop, call: Call) -> Wish:
    return Wish(
        files=call.files(shop.workspace),
        on_conflict=OnConflict(call.options.on_conflict),
        dry_run=call.options.dry_run,
    )


def _tell(shop: Workshop, call: Call, reversal: Reversal, wish: Wish) -> int:
    done = reversal.promotion
    conflicts = sorted(conflict.path for conflict in reversal.conflicts)
    if call.options.json:
        call.emit(
            {
                "title": reversal.title,
                "entry": done.entry if done else None,
                "changes": changes_json(reversal.changes, shop.store.blobs),
                "conflicts": conflicts,
                "notices": list(done.notices) if done else [],
            }
        )
        return 0
    call.out.say(f"{'' if done else 'would '}{brief(reversal.title)}", "bold")
    call.out.changes(reversal.changes, shop.store.blobs)
    call.out.marked([("!", path, _CHOSEN[wish.on_conflict]) for path in conflicts])
    if done is not None:
        for notice in done.notices:
            call.out.say(f"note: {notice}")
        call.out.hint(f"this is entry {done.entry}; take it back with: pawl undo {done.entry}")
    return 0
