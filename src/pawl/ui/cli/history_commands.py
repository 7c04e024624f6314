"""The history: `history` and `diff` show it; `undo`, `redo`, `checkpoint` and `restore` move in it."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.core.change import ChangeSet, Checkpoint, Entry, EntryState
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.run import RunRow, RunState
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import changes_json, checkpoint_json, entry_json, picked
from pawl.ui.cli.parser import Command, dry_run_option
from pawl.ui.screen.screen import brief, counted, when

if TYPE_CHECKING:
    from pawl.workspace.project import Project
    from pawl.workspace.reversal import Reversal, Wish


def history_words(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also show what was kept, rolled back or left in conflict")
    parser.add_argument("--run", metavar="RUN", help="only this run")
    parser.add_argument("--runs", action="store_true", help="list runs instead: what was asked, and where each stands")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default: 20)")


def diff_words(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the entry (default: the newest)")
    _file_option(parser)
    parser.add_argument("--stat", action="store_true", help="names and counts only")
    parser.add_argument("--evidence", action="store_true", help="what its verdict rests on: commands, tests, digests")


def undo_words(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="entry number or run (default: the newest entry)")
    redo_words(parser)


def restore_words(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="name or number (default: the newest)")
    parser.add_argument("--entry", type=int, metavar="ID", help="back to after this entry, instead of a checkpoint")
    redo_words(parser)


def redo_words(parser: ArgumentParser) -> None:
    _file_option(parser)
    parser.add_argument(
        "--on-conflict",
        choices=("stop", "keep", "overwrite"),
        default="stop",
        help="where you changed the same place since: stop (default), keep yours, or overwrite it (undo brings it "
        "back)",
    )
    dry_run_option(parser)


def checkpoint_words(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="its name (default: checkpoint-1, -2, …)")
    parser.add_argument("--list", action="store_true", help="list the checkpoints instead")


def _file_option(parser: ArgumentParser) -> None:
    parser.add_argument("--file", action="append", default=[], metavar="F", help="only this file or folder; repeatable")


DECLARED = {
    "history": Command(words=history_words, example="pawl history --all", reads=True, rescue=True),
    "diff": Command(
        words=diff_words, example="pawl diff 3 --file src\n  pawl diff 3 --evidence", reads=True, rescue=True
    ),
    "undo": Command(words=undo_words, example="pawl undo\n  pawl undo 3 --file src/app.py", rescue=True),
    "redo": Command(words=redo_words, example="pawl redo\n  pawl redo --file src/app.py", rescue=True),
    "checkpoint": Command(words=checkpoint_words, example="pawl checkpoint before-upgrade"),
    "restore": Command(words=restore_words, example="pawl restore before-upgrade --dry-run", rescue=True),
}


def history(shop: Project, call: Call) -> int:
    options = call.options
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit} shows nothing", advice="give a number above 0")
    if options.runs:
        return _runs(shop, call)
    every = shop.entries(run=options.run)
    if options.run is not None and not every:
        raise UnknownEntry(f"there is no run {options.run!r} in this workspace", advice="'pawl history' lists them")
    shown = [entry for entry in every if options.all or entry.state is EntryState.DONE]
    part = shown[: options.limit]
    if options.json:
        told = [{**entry_json(one), "changed": list(shop.store.journal.paths(one.id))} for one in part]
        return call.emit({"entries": told, "total": len(shown)})
    if part:
        suites = shop.store.journal.whole_suites()
        rows = [_cells(entry, suites.get(entry.id, ""), live=call.out.is_terminal) for entry in part]
        call.out.table(("id", "when", "what", "state", "paths", "run"), rows, flexible=2)
    else:
        call.out.say("nothing was promoted in this workspace yet")
    if len(shown) > len(part):
        call.out.hint(f"… and {len(shown) - len(part)} older: --limit {len(shown)}")
    if len(every) > len(shown):
        call.out.hint(f"{counted(len(every) - len(shown), 'entry', 'entries')} not promoted: pawl history --all")
    return 0


def _runs(shop: Project, call: Call) -> int:
    every = shop.store.runs.list(shop.workspace)
    part = [one for one in every if call.options.run in (None, one.id)][: call.options.limit]
    if call.options.json:
        runs = [
            {**picked(one, "id created state delivery"), "node": one.place.at, "request": one.order.text}
            for one in part
        ]
        return call.emit({"runs": runs, "total": len(every)})
    live = call.out.is_terminal
    rows = [
        (one.id, when(one.created, today=live), run_standing(one), brief(one.order.text, 400 if live else 60))
        for one in part
    ]
    if not rows:
        call.out.say("no run was started in this workspace yet")
        return 0
    call.out.table(("run", "when", "state", "request"), rows, flexible=3)
    if len(every) > len(part):
        call.out.hint(f"… and {len(every) - len(part)} older: --limit {len(every)}")
    if any(one.state is RunState.WORKING for one in part):
        call.out.hint("resume one that stopped with: pawl do --resume RUN")
    return 0


def run_standing(run: RunRow) -> str:
    """The state of a run, in a word or two."""
    match run.state:
        case RunState.WAITING:
            return "waits"
        case RunState.WORKING:
            return "stopped"
        case _:
            return str(run.delivery or "ended").lower().replace("_", " ")


def diff(shop: Project, call: Call) -> int:
    entry = shop.entry(call.entry_number())
    if call.options.evidence:
        return _evidence(shop, call, entry)
    changes = _chosen(shop.changes(entry), call.files(shop.workspace))
    if call.options.json:
        described = changes_json(changes, shop.store.blobs)
        return call.emit({"entry": entry_json(entry), "changes": described, "digest": changes.digest})
    if call.options.stat:
        call.out.changes(changes, shop.store.blobs, most=len(changes))
    else:
        call.out.patch(changes, shop.store.blobs, exact=call.asks)
    return 0


def _evidence(shop: Project, call: Call, entry: Entry) -> int:
    from pawl.agent.record import evidence_of

    kept = evidence_of(shop, entry)
    if kept is None:
        raise UnknownEntry(
            f"entry {entry.id} keeps no evidence",
            advice="what do, fix, loop and promote verified has some; commands, patches and undo are not verified",
        )
    if call.options.json:
        return call.emit({"entry": entry_json(entry), "evidence": kept})
    for line in kept.lines():
        call.out.say(line)
    return 0


def _cells(entry: Entry, suite: str, *, live: bool) -> tuple[str, ...]:
    """In a terminal the table itself cuts the title to what fits."""
    title = brief(entry.title, 400 if live else 60)
    state = standing(entry) + (f"; whole suite: {suite.partition(',')[0]}" if suite else "")
    return (str(entry.id), when(entry.created, today=live), title, state, str(entry.files), entry.run)


def standing(entry: Entry) -> str:
    """The state of an entry, in a word or two."""
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


_CHOSEN = {
    "stop": "without --dry-run this stops here",
    "keep": "left as it is",
    "overwrite": "that version is kept in this entry",
}


def undo(shop: Project, call: Call) -> int:
    wish = _wish(shop, call)
    if call.options.id and call.options.id.startswith("r"):
        return _tell(shop, call, shop.undo_run(call.options.id, wish), wish)
    return _tell(shop, call, shop.undo(call.entry_number(), wish), wish)


def redo(shop: Project, call: Call) -> int:
    wish = _wish(shop, call)
    return _tell(shop, call, shop.redo(wish), wish)


def restore(shop: Project, call: Call) -> int:
    if call.options.name and call.options.entry is not None:
        raise UsageError("a checkpoint and --entry cannot be used together", advice="leave one of them out")
    wish = _wish(shop, call)
    return _tell(shop, call, shop.restore(call.options.name, wish, entry=call.options.entry), wish)


def _wish(shop: Project, call: Call) -> Wish:
    from pawl.workspace.reversal import OnConflict, Wish

    files = call.files(shop.workspace)
    return Wish(files=files, on_conflict=OnConflict(call.options.on_conflict), dry_run=call.options.dry_run)


def _tell(shop: Project, call: Call, reversal: Reversal, wish: Wish) -> int:
    done = reversal.promotion
    conflicts = sorted(conflict.path for conflict in reversal.conflicts)
    if call.options.json:
        return call.emit(
            {
                "title": reversal.title,
                "entry": done.entry if done else None,
                "changes": changes_json(reversal.changes, shop.store.blobs),
                "conflicts": conflicts,
                "notices": done.notices if done else [],
            }
        )
    call.out.say(f"{'' if done else 'would '}{brief(reversal.title)}", "bold")
    call.out.changes(reversal.changes, shop.store.blobs)
    # Who it was can be told as long as nothing is written.
    who = {path: "it was changed" if done else shop.changed_by((path,)) for path in conflicts}
    choice = _CHOSEN[wish.on_conflict]
    call.out.marked([("!", path, f"{who[path]} since, in the same place; {choice}") for path in conflicts])
    if done is not None:
        call.out.notes(done.notices)
        call.out.hint(f"this is entry {done.entry}; undo with: pawl undo {done.entry}")
    return 0


def checkpoint(shop: Project, call: Call) -> int:
    if call.options.list:
        return _list(shop, call)
    made = shop.checkpoint(call.options.name)
    if call.options.json:
        return call.emit(checkpoint_json(made))
    call.out.say(f"checkpoint {made.name}, {_place(made)}")
    call.out.hint(f"come back with: pawl restore {made.name if _is_plain(made.name) else made.id}")
    return 0


def _list(shop: Project, call: Call) -> int:
    if call.options.name is not None:
        raise UsageError("--list takes no name", advice="leave one of them out")
    every = shop.checkpoints()
    if call.options.json:
        call.emit({"checkpoints": [checkpoint_json(one) for one in every]})
    elif every:
        rows = [(str(one.id), when(one.created, today=call.out.is_terminal), one.name, _place(one)) for one in every]
        call.out.table(("id", "when", "name", "where"), rows, flexible=2)
    else:
        call.out.say("there is no checkpoint yet")
    return 0


def _is_plain(name: str) -> bool:
    """Whether a shell takes the name as it is, and as the name."""
    return re.fullmatch(r"[\w.+:@-]+", name, re.ASCII) is not None and not name.startswith("-")


def _place(one: Checkpoint) -> str:
    place = f"after entry {one.after_entry}" if one.after_entry else "before the first entry"
    task = (
        f", task {one.progress.get('task')} of {one.progress.get('of')} {one.verification.get('verdict')}"
        if one.run
        else ""
    )
    return f"{place}{task}"
