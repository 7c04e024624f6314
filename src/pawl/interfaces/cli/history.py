"""`pawl history` and `pawl diff`."""

from __future__ import annotations

from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.history import Entry, EntryState
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.shapes import changes_json, entry_json
from pawl.interfaces.screen.screen import brief
from pawl.interfaces.screen.when import when


def history(shop: Workshop, call: Call) -> int:
    options = call.options
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit} shows nothing", advice="give a number above 0")
    every = shop.entries(run=options.run)
    if options.run is not None and not every:
        raise UnknownEntry(f"there is no run {options.run!r} in this workspace", advice="'pawl history' lists them")
    shown = [entry for entry in every if options.all or entry.state is EntryState.DONE]
    part = shown[: options.limit]
    if options.json:
        call.emit({"entries": [entry_json(entry) for entry in part], "total": len(shown)})
        return 0
    if part:
        rows = [_cells(entry, live=call.out.is_terminal) for entry in part]
        call.out.table(("id", "when", "what", "state", "paths", "run"), rows, flexible=2)
    else:
        call.out.say("nothing was promoted in this workspace yet")
    if len(shown) > len(part):
        call.out.hint(f"… and {len(shown) - len(part)} older: --limit {len(shown)}")
    if len(every) > len(shown):
        call.out.hint(f"{len(every) - len(shown)} more not promoted: --all")
    return 0


def diff(shop: Workshop, call: Call) -> int:
    entry = shop.entry(call.entry_number())
    changes = _chosen(shop.changes(entry), call.files(shop.workspace))
    if call.options.json:
        described = changes_json(changes, shop.store.blobs)
        call.emit({"entry": entry_json(entry), "changes": described, "digest": changes.digest})
        return 0
    if call.options.stat:
        call.out.changes(changes, shop.store.blobs, most=len(changes))
    else:
        call.out.patch(changes, shop.store.blobs)
    return 0


def _cells(entry: Entry, *, live: bool) -> tuple[str, ...]:
    """In a terminal the table itself cuts the title to what fits."""
    title = brief(entry.title, 400 if live else 60)
    return (str(entry.id), when(entry.created, today=live), title, standing(entry), str(entry.files), entry.run)


def standing(entry: Entry) -> str:
    """What became of an entry, in a word or two."""
    match entry.state:
        case EntryState.DONE if entry.reversed_by is not None:
            word = f"undone by {entry.reversed_by}"
        case EntryState.DONE:
            word = "promoted"
        case EntryState.CAPTURED:
            word = "kept"
        case _:
            word = str(entry.state)
    return f"{word}, pruned" if entry.pruned else word


def _chosen(changes: ChangeSet, files: tuple[str, ...]) -> ChangeSet:
    if not files:
        return changes
    part = [
        change for change in changes if any(change.path == file or change.path.startswith(f"{file}/") for file in files)
    ]
    if not part:
        raise UsageError(
            f"that entry did not touch {', '.join(map(repr, files))}", advice="--stat says what it touched"
        )
    return ChangeSet.of(part)
