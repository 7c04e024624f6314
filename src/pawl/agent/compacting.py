"""A conversation made shorter: it goes on as a new one that begins with a summary; the whole one stays as it was."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace

from pawl.agent import planning
from pawl.agent.compression import CompressionState, KeptWords, compress
from pawl.agent.context import TurnInput
from pawl.agent.monitor import MonitorMarks, WorkingContext
from pawl.agent.record import RunRecord
from pawl.agent.works import BENCH
from pawl.core.dialogue import Speaker, dialogue_tokens
from pawl.core.errors import PawlError, UsageError
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    conversation: str
    """The one to go on with: the same when nothing was gained."""
    before_tokens: int
    after_tokens: int
    why_not: str = ""
    """Why it is as it was; empty when it is not."""


def compact(shop: Project, conversation: str) -> Compacted:
    """No model is asked: what was decided, read and done is summarized by rule, and the last turns stay as they are."""
    messages = [said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again]
    if not messages:
        raise UsageError("there is nothing to compact yet", advice="say something first")
    request = max((at for at, one in enumerate(messages) if one.speaker is Speaker.USER), default=0)
    made = compress(messages, KeptWords(request=request), CompressionState(), too_long=True)
    if made.why_not:
        return Compacted(
            conversation=conversation,
            before_tokens=made.before_tokens,
            after_tokens=made.after_tokens,
            why_not=made.why_not,
        )
    other = f"c{secrets.token_hex(4)}"
    with shop.store.together():
        for message in made.messages:
            shop.store.transcripts.append(shop.workspace, other, message, run=shop.run_id)
    shop.note("compacted", {"conversation": conversation, "as": other, "tokens": made.after_tokens})
    return Compacted(conversation=other, before_tokens=made.before_tokens, after_tokens=made.after_tokens)


def sent_again(shop: Project, conversation: str) -> tuple[int, int]:
    """How many messages of a conversation are sent again with the next request, and about how many tokens that is."""
    messages = [said.message for said in shop.store.transcripts.messages(conversation) if said.sent_again]
    return len(messages), dialogue_tokens(messages)


ROOM = 20_000
"""Tokens of what is at hand, so that most of the new context is free."""


def afresh(line: TurnInput, record: RunRecord, files: Files) -> TurnInput:
    """The same line, or, past the critical mark, one that leaves what this run said before and tells what is at hand.

    What was said before the run is shortened, not left. The new line is kept: the bench will have changed when an
    interrupted talk is taken up again.
    """
    tokens = dialogue_tokens(line.history)
    if line.stage is not None or tokens <= MonitorMarks().critical or record.value("last talk") is None:
        return line
    name = f"afresh {line.talk}"
    known = record.value(name)
    if not isinstance(known, str):
        known = f"{line.text}\n\n{at_hand(record, files).text}"
        record.put(name, known)
        record.note("began afresh", {"talk": line.talk, "tokens left behind": tokens})
    return replace(line, text=known, history=())


def later_tasks(line: TurnInput, record: RunRecord) -> list[str]:
    """The tasks of the plan that come after the one that the talk is about."""
    number = line.talk.partition(".")[0]
    tasks = planning.from_json(record.value("plan")) if number.isdigit() else ()
    return [task.what for task in tasks if task.number > int(number)]


def at_hand(record: RunRecord, files: Files) -> WorkingContext:
    """The request, the tasks, what the checks said last, and the files that are changed or to be changed."""
    tasks = planning.from_json(record.value("plan"))
    begun = record.value("last talk")
    context = WorkingContext(most_tokens=ROOM).with_task(record.order.text, critical=True)
    for task in tasks:
        state = "worked on" if isinstance(begun, dict) and str(task.number) in begun else "to do"
        context = context.with_task(f"{task.number}. {task.what} ({state})")
    refused = record.value("refused")
    if isinstance(refused, list):
        context = context.with_diagnostics("", *map(str, refused))
    changed = record.work(BENCH)
    paths = [path for task in tasks for path in task.paths]
    for path in dict.fromkeys((*paths, *(sorted(changed.paths) if changed else ()))):
        with suppress(PawlError, OSError):
            data = files.read(path)
            context = context.with_file(path, hashlib.sha256(data).hexdigest(), data.decode("utf-8", "replace"))
    return context
