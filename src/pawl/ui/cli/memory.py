"""`pawl memory`: what Pawl remembers of the workspace, to be seen, added to and forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pawl.agent import learning as remembering
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.memory import Memory, MemoryTier, SessionMemory
from pawl.ui.cli.call import Call
from pawl.ui.screen.screen import brief, when
from pawl.workspace.project import Project

_LONGEST_NUMBER = 18


def memory(shop: Project, call: Call) -> int:
    options = call.options
    if options.all and options.action != "forget":
        raise UsageError(f"'pawl memory {options.action}' takes no --all", advice="forget does")
    if options.tier and options.action not in ("list", "add"):
        raise UsageError(f"'pawl memory {options.action}' takes no --tier", advice="list and add do")
    return _ACTIONS[options.action](shop, call)


def _list(shop: Project, call: Call) -> int:
    options = call.options
    words = " ".join(options.words)
    found = remembering.memories(shop, words, MemoryTier(options.tier) if options.tier else None)
    kept = remembering.persistent(shop)
    gone, estimates = remembering.taken_back(shop, found), remembering.estimates(shop)
    if options.json:
        conversations = [one.id for one in kept.conversations]
        others = {"answers": kept.answers, "files": len(kept.files), "conversations": conversations}
        errors = {name: {"requests": one.requests, "ratio": round(one.ratio, 3)} for name, one in estimates.items()}
        call.emit({"memories": [_json(one, gone) for one in found], **others, "estimates": errors})
        return 0
    if found:
        rows = [
            (str(one.id), when(one.created), one.tier, one.source, f"{_mark(one, gone)}{brief(one.text, 400)}")
            for one in found
        ]
        call.out.table(("id", "when", "tier", "from", "what"), rows, flexible=4)
        if call.out.is_terminal:
            call.out.hint("pawl memory show ID · pawl memory forget ID")
    else:
        call.out.say("nothing is remembered of that" if words or options.tier else "nothing is remembered yet")
    if not words and not options.tier and (kept.answers or kept.conversations):
        talks = _count(len(kept.conversations), "conversation")
        call.out.hint(f"also kept: {_count(kept.answers, 'answer')} about {_count(len(kept.files), 'file')}, {talks}")
        for name, one in estimates.items():
            times = _count(one.requests, "request")
            call.out.hint(f"{name} counts {one.ratio:.2f} times the tokens that Pawl estimates ({times})")
    return 0


def _session(shop: Project, call: Call) -> int:
    """What a conversation has seen and touched."""
    words = call.options.words
    if len(words) > 1:
        raise UsageError("'pawl memory session' takes one conversation", advice="without one it shows the last")
    number, one = remembering.session(shop, *words)
    if call.options.json:
        call.emit({"conversation": number, **_session_json(one)})
        return 0
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


def _session_json(one: SessionMemory) -> dict[str, object]:
    return {
        "exchanges": [{"question": said.question, "answer": said.answer} for said in one.exchanges],
        "seen": [seen.path for seen in one.seen],
        "accessed": [{"path": access.path, "kind": access.kind} for access in one.accessed],
        "edits": [{"path": edit.path, "what": edit.what, "entry": edit.entry} for edit in one.edits],
    }


def _show(shop: Project, call: Call) -> int:
    one = shop.store.memories.get(shop.workspace, _number(call))
    gone = remembering.taken_back(shop, [one])
    if call.options.json:
        call.emit(_json(one, gone))
        return 0
    call.out.say(f"{_mark(one, gone)}{one.text}")
    run = f", run {one.run}" if one.run else ""
    call.out.hint(f"memory {one.id} · {one.tier} · from the {one.source}{run} · {when(one.created)}")
    return 0


def _add(shop: Project, call: Call) -> int:
    options = call.options
    kept = remembering.add(shop, " ".join(options.words), MemoryTier(options.tier or MemoryTier.FACT))
    if options.json:
        call.emit(_json(kept))
    else:
        call.out.say(f"remembered as {kept.id}")
    return 0


def _forget(shop: Project, call: Call) -> int:
    options = call.options
    if options.all:
        if options.words:
            raise UsageError("--all forgets everything; it takes no number", advice="leave out one of them")
        gone = remembering.forget_all(shop)
        if options.json:
            call.emit({"memories": gone.memories, "answers": gone.answers})
        else:
            call.out.say(f"forgot {_count(gone.memories, 'memory', 'memories')} and {_count(gone.answers, 'answer')}")
        return 0
    one = remembering.forget(shop, _number(call))
    if options.json:
        call.emit({"forgotten": _json(one)})
    else:
        call.out.say(f"forgot {one.id}: {brief(one.text)}")
    return 0


def _number(call: Call) -> int:
    """The memory as a person names it."""
    action, words = call.options.action, call.options.words
    if len(words) != 1:
        raise UsageError(f"'pawl memory {action}' takes one number", advice="'pawl memory list' lists them")
    text = words[0]
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{text!r} is not the number of a memory", advice="'pawl memory list' lists them")
    if len(text) > _LONGEST_NUMBER:
        raise UnknownEntry(f"there is no memory {text}", advice="'pawl memory list' lists them")
    return int(text)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _mark(one: Memory, gone: Collection[int]) -> str:
    return "(taken back) " if one.id in gone else ""


def _json(one: Memory, gone: Collection[int] = ()) -> dict[str, object]:
    return {
        "id": one.id,
        "tier": one.tier,
        "text": one.text,
        "source": one.source,
        "run": one.run,
        "created": one.created,
        "taken_back": one.id in gone,
    }


_ACTIONS: dict[str, Callable[[Project, Call], int]] = {
    "list": _list,
    "show": _show,
    "add": _add,
    "forget": _forget,
    "session": _session,
}
