"""`pawl history` and `pawl diff`."""

from __future__ import annotations

import argparse

from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.errors import UsageError
from pawl.core.history import Entry, EntryState
from pawl.interfaces.cli.main import entry_number
from pawl.interfaces.cli.screen import brief, changes_json, emit, say, show_changes, show_patch, table


def history(shop: Workshop, options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit} shows nothing", advice="give a number above 0")
    every = shop.entries(run=options.run)
    shown = [entry for entry in every if options.all or entry.state is EntryState.DONE]
    part = shown[: options.limit]
    if options.json:
        emit({"entries": [entry_json(entry) for entry in part], "total": len(shown)})
        return 0
    if not part:
        say("nothing was promoted in this workspace yet" + ("" if not every else "; --all shows what was kept"))
        return 0
    table(
        ("id", "when", "what", "state", "files", "run"),
        [
            (
                str(entry.id),
                entry.created[:16].replace("T", " "),
                brief(entry.title),
                _standing(entry),
                str(entry.files),
                entry.run,
            )
            for entry in part
        ],
    )
    if len(shown) > len(part):
        say(f"… and {len(shown) - len(part)} older: --limit {len(shown)}")
    return 0


def diff(shop: Workshop, options: argparse.Namespace) -> int:
    entry = shop.entry(entry_number(options.id))
    changes = _chosen(shop.changes(entry), options.file)
    if options.json:
        emit({"entry": entry_json(entry), "changes": changes_json(changes, shop.store.blobs), "digest": changes.digest})
        return 0
    if options.stat:
        show_changes(changes, shop.store.blobs, most=len(changes))
    else:
        show_patch(changes, shop.store.blobs)
    return 0


def entry_json(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.id,
        "run": entry.run,
        "kind": entry.kind,
        "title": brief(entry.title),
        "reason": entry.reason,
        "created": entry.created,
        "state": entry.state,
        "files": entry.files,
        "reverses": entry.reverses,
        "reversed_by": entry.reversed_by,
        "pruned": entry.pruned,
    }


def _standing(entry: Entry) -> str:
    if entry.state is not EntryState.DONE:
        return str(entry.state)
    return f"undone by {entry.reversed_by}" if entry.reversed_by is not None else "done"


def _chosen(changes: ChangeSet, files: list[str]) -> ChangeSet:
    if not files:
        return changes
    part = ChangeSet.of(
        change for change in changes if any(change.path == file or change.path.startswith(f"{file}/") for file in files)
    )
    if not part:
        raise UsageError(f"that entry did not touch {', '.join(map(repr, files))}", advice="see it with --stat")
    return part
