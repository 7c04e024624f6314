"""What stays of a run when it has ended: memories by their rules, the memory bank, the edits of the session."""

from __future__ import annotations

import shlex
from contextlib import suppress

from pawl.app import remembering
from pawl.app.doing.record import RunRecord
from pawl.app.workshop import Workshop
from pawl.context.answers import are_similar
from pawl.core.errors import PawlError, StoreError
from pawl.core.memory import MemoryTier
from pawl.core.run import DeliveryState
from pawl.core.session_memory import SessionMemory
from pawl.workflow.evidence import counts_of

MOST_EARLIER = 3
MOST_LOOKED_AT = 20
_LONGEST_REQUEST = 160
_MOST_PATHS = 6


def learnt(shop: Workshop, record: RunRecord) -> None:
    """Written once for each run that ends. It is no reason to fail: what was delivered stands."""
    if record.value("learnt") is not None:
        return
    try:
        _learn(shop, record)
        record.put("learnt", True)
    except (PawlError, OSError) as error:
        shop.note_if_possible("not remembered", {"error": str(error)})


def _learn(shop: Workshop, record: RunRecord) -> None:
    entry, work = record.value("entry"), record.work("shown")
    if record.delivery is DeliveryState.DONE and isinstance(entry, int) and work is not None:
        paths = sorted(work.paths)
        outcome, fact = _outcome(record, paths), _fact(record)
        facts = [(MemoryTier.FACT, fact)] if fact else []
        remembering.remember(shop, [(MemoryTier.OUTCOME, outcome), *facts], succeeded=True)
        remembering.add_to_bank(shop, done=f"{outcome} (entry {entry})", fact=fact)
        _note_edits(shop, record, paths, entry)
    elif record.value("rejected"):
        decision = f"The user refused {_short(record.order.text)!r}: {record.value('rejected')}"
        remembering.remember(shop, [(MemoryTier.DECISION, decision)], succeeded=False, decided=True)


def earlier_attempts(shop: Workshop, record: RunRecord) -> tuple[str, ...]:
    """What earlier runs with much the same request came to that were not delivered, the newest first."""
    found: list[str] = []
    for row in shop.store.runs.list(shop.workspace, limit=MOST_LOOKED_AT):
        if row.id == record.run or row.delivery is not DeliveryState.NEEDS_WORK:
            continue
        if not are_similar(row.order.text, record.order.text):
            continue
        refused, rejected = (shop.store.runs.value(row.id, name) for name in ("refused", "rejected"))
        reasons = [f"the user refused it: {rejected}"] if rejected else []
        reasons += [str(reason) for reason in refused] if isinstance(refused, list) else []
        if reasons:
            found.append(f"- run {row.id}, not delivered: " + "; ".join(reasons))
    return tuple(found[:MOST_EARLIER])


def _outcome(record: RunRecord, paths: list[str]) -> str:
    shown = ", ".join(paths[:_MOST_PATHS]) + (
        f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    )
    counts = counts_of(record.value("after"))
    tests = f"; {counts.passed} tests pass" if counts is not None and counts.passed else ""
    return f"{_short(record.order.text)}: changed {shown}{tests}"


def _fact(record: RunRecord) -> str:
    command = record.order.test_command
    return f"The tests are run with `{shlex.join(command)}`." if command else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REQUEST else f"{line[: _LONGEST_REQUEST - 1]}…"


def _note_edits(shop: Workshop, record: RunRecord, paths: list[str], entry: int) -> None:
    """The session of the conversation knows what was edited in it."""
    conversation = record.value("conversation")
    if not isinstance(conversation, str):
        return
    session = SessionMemory()
    with suppress(ValueError):
        kept = shop.store.snapshots.get(shop.workspace, conversation, remembering.SESSION)
        session = SessionMemory.from_json(kept or {})
    for path in paths:
        session = session.with_edit(path, _short(record.order.text), entry)
    with suppress(StoreError):
        shop.store.snapshots.put(shop.workspace, conversation, remembering.SESSION, session.to_json())
