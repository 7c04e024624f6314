"""`pawl memory`: what Pawl remembers of the workspace, to be seen, added to and forgotten."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.ui.cli.call import Call, number_of
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import Command, mixed
from pawl.ui.screen.screen import brief, counted, when

if TYPE_CHECKING:
    from pawl.store.memories import Memory
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    actions = ["list", "show", "add", "forget", "session"]
    help = "list, show, add, forget or session"
    parser.add_argument("action", nargs="?", choices=actions, default="list", metavar="ACTION", help=help)
    parser.add_argument("words", nargs="*", metavar="WORD", help="words to search for, a number, or what to remember")
    parser.add_argument("--tier", choices=["fact", "decision", "outcome"], help="list only these, or add it as one")
    parser.add_argument("--all", action="store_true", help="forget everything, stored answers too")


DECLARED = {
    "memory": Command(
        words=words,
        example="pawl memory add 'tests run with: make test'\n  pawl memory list parser\n  pawl memory forget 3",
        reads=frozenset({"list", "show", "session"}),
        read=mixed,
    )
}


def memory(shop: Project, call: Call) -> int:
    call.refuse_others({"list": "tier", "add": "tier", "forget": "all"}, {})
    return _ACTIONS[call.options.action](shop, call)


def _list(shop: Project, call: Call) -> int:
    from pawl.agent import workspace_memory as remembering
    from pawl.store.memories import MemoryTier

    options = call.options
    sought = " ".join(options.words)
    found = remembering.memories(shop, sought, MemoryTier(options.tier) if options.tier else None)
    kept = remembering.persistent(shop)
    gone, estimates = remembering.taken_back(shop, found), remembering.estimates(shop)
    if options.json:
        conversations = [one.id for one in kept.conversations]
        others = {"answers": kept.answers, "files": len(kept.files), "conversations": conversations}
        errors = {name: {"requests": one.requests, "ratio": round(one.ratio, 3)} for name, one in estimates.items()}
        return call.emit({"memories": [_json(one, gone) for one in found], **others, "estimates": errors})
    if found:
        rows = [
            (str(one.id), when(one.created), one.tier, one.source, f"{_mark(one, gone)}{brief(one.text, 400)}")
            for one in found
        ]
        call.out.table(("id", "when", "tier", "from", "what"), rows, flexible=4)
        if call.out.is_terminal:
            call.out.hint("pawl memory show ID · pawl memory forget ID")
    else:
        call.out.say("no memory matches" if sought or options.tier else "nothing is remembered yet")
    if not sought and not options.tier and (kept.answers or kept.conversations):
        talks = counted(len(kept.conversations), "conversation")
        call.out.hint(f"also kept: {counted(kept.answers, 'answer')} about {counted(len(kept.files), 'file')}, {talks}")
        for name, one in estimates.items():
            times = counted(one.requests, "request")
            call.out.hint(f"{name} counts {one.ratio:.2f} times the tokens that Pawl estimates ({times})")
    return 0


def _session(shop: Project, call: Call) -> int:
    """Shows what a conversation has seen and touched."""
    from pawl.agent import workspace_memory as remembering

    named = call.options.words
    if len(named) > 1:
        raise UsageError("'pawl memory session' takes one conversation", advice="without one it shows the last")
    number, one = remembering.session(shop, *named)
    if call.options.json:
        return call.emit(
            {
                "conversation": number,
                "exchanges": [picked(said, "question answer") for said in one.exchanges],
                "seen": [seen.path for seen in one.seen],
                "accessed": [picked(access, "path kind") for access in one.accessed],
                "edits": [picked(edit, "path what entry") for edit in one.edits],
            }
        )
    call.out.say(f"conversation {number}")
    parts = {
        "exchanges": [f"{brief(said.question)} → {brief(said.answer)}" for said in one.exchanges],
        "files seen": [seen.path for seen in one.seen],
        "files accessed": [f"{access.path} ({access.kind})" for access in one.accessed],
        "edits": [f"{edit.path}: {brief(edit.what)} (entry {edit.entry})" for edit in one.edits],
    }
    for name, lines in parts.items():
        call.out.say(f"{name}: {len(lines)}" if lines else f"{name}: none")
        for line in lines:
            call.out.say(f"  {line}")
    return 0


def _show(shop: Project, call: Call) -> int:
    from pawl.agent import workspace_memory as remembering

    one = shop.store.memories.get(shop.workspace, _number(call))
    gone = remembering.taken_back(shop, [one])
    if call.options.json:
        return call.emit(_json(one, gone))
    call.out.say(f"{_mark(one, gone)}{one.text}")
    run = f", run {one.run}" if one.run else ""
    call.out.hint(f"memory {one.id} · {one.tier} · from the {one.source}{run} · {when(one.created)}")
    return 0


def _add(shop: Project, call: Call) -> int:
    from pawl.agent import workspace_memory as remembering
    from pawl.store.memories import MemoryTier

    options = call.options
    kept = remembering.add(shop, " ".join(options.words), MemoryTier(options.tier or "fact"))
    return call.answer(_json(kept), f"remembered as {kept.id}")


def _forget(shop: Project, call: Call) -> int:
    from pawl.agent import workspace_memory as remembering

    options = call.options
    if options.all:
        if options.words:
            raise UsageError("--all forgets everything; it takes no number", advice="leave out one of them")
        gone = remembering.forget_all(shop)
        forgot = f"forgot {counted(gone.memories, 'memory', 'memories')} and {counted(gone.answers, 'answer')}"
        return call.answer(picked(gone, "memories answers"), forgot)
    one = remembering.forget(shop, _number(call))
    return call.answer({"forgotten": _json(one)}, f"forgot {one.id}: {brief(one.text)}")


def _number(call: Call) -> int:
    """The memory as a person names it."""
    action, given = call.options.action, call.options.words
    if len(given) != 1:
        raise UsageError(f"'pawl memory {action}' takes one number", advice="'pawl memory list' lists them")
    return number_of(given[0], "a memory", "pawl memory list")


def _mark(one: Memory, gone: Collection[int]) -> str:
    return "(taken back) " if one.id in gone else ""


def _json(one: Memory, gone: Collection[int] = ()) -> Json:
    return {**picked(one, "id tier text source run created"), "taken_back": one.id in gone}


_ACTIONS: dict[str, Callable[[Project, Call], int]] = {
    "list": _list,
    "show": _show,
    "add": _add,
    "forget": _forget,
    "session": _session,
}
