"""`pawl undo`, `redo`, `checkpoint` and `restore`."""

from __future__ import annotations

import argparse

from pawl.app.workshop import OnConflict, Reversal, Wish, Workshop
from pawl.core.history import Checkpoint
from pawl.interfaces.cli.main import entry_number
from pawl.interfaces.cli.screen import brief, changes_json, emit, say, show_changes, table


def undo(shop: Workshop, options: argparse.Namespace) -> int:
    wish = _wish(options)
    if options.id and options.id.startswith("r"):
        return _tell(shop, shop.undo_run(options.id, wish), options)
    return _tell(shop, shop.undo(entry_number(options.id), wish), options)


def redo(shop: Workshop, options: argparse.Namespace) -> int:
    return _tell(shop, shop.redo(_wish(options)), options)


def restore(shop: Workshop, options: argparse.Namespace) -> int:
    return _tell(shop, shop.restore(options.name, _wish(options)), options)


def checkpoint(shop: Workshop, options: argparse.Namespace) -> int:
    if options.list:
        every = shop.checkpoints()
        if options.json:
            emit({"checkpoints": [_checkpoint_json(one) for one in every]})
        elif every:
            rows = [(str(one.id), one.created[:16].replace("T", " "), one.name, str(one.after_entry)) for one in every]
            table(("id", "when", "name", "after entry"), rows)
        else:
            say("there is no checkpoint yet")
        return 0
    made = shop.checkpoint(options.name)
    if options.json:
        emit(_checkpoint_json(made))
    else:
        say(f"checkpoint {made.name}, after entry {made.after_entry}; come back with: pawl restore {made.name}")
    return 0


def _wish(options: argparse.Namespace) -> Wish:
    return Wish(
        files=tuple(file.rstrip("/").removeprefix("./") for file in getattr(options, "file", ())),
        on_conflict=OnConflict(options.on_conflict),
        dry_run=options.dry_run,
    )


def _tell(shop: Workshop, reversal: Reversal, options: argparse.Namespace) -> int:
    done = reversal.promotion
    kept = sorted(conflict.path for conflict in reversal.conflicts)
    if options.json:
        body = {
            "title": reversal.title,
            "entry": done.entry if done else None,
            "changes": changes_json(reversal.changes, shop.store.blobs),
            "conflicts": kept,
        }
        emit(body)
        return 0
    say(f"{'would ' if done is None else ''}{brief(reversal.title)}")
    show_changes(reversal.changes, shop.store.blobs)
    for path in kept:
        say(f"  ! {path}  you changed the same place ({options.on_conflict})")
    if done is not None:
        say(f"entry {done.entry}; take this back with: pawl undo {done.entry}")
        for notice in done.notices:
            say(f"note: {notice}")
    return 0


def _checkpoint_json(one: Checkpoint) -> dict[str, object]:
    return {
        "id": one.id,
        "name": one.name,
        "created": one.created,
        "after_entry": one.after_entry,
        "changes": [change.path for change in one.changes],
        "progress": dict(one.progress),
        "verification": dict(one.verification),
        "policy": {"automatic_on_error": one.policy.automatic_on_error, "depth": one.policy.depth},
    }
