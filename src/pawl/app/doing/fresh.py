"""Starting a talk afresh: a dialogue that fills the context is left, and what is at hand is told instead."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace

from pawl.app.doing.record import RunRecord
from pawl.app.doing.works import BENCH
from pawl.context.monitor import MonitorMarks
from pawl.context.working import WorkingContext
from pawl.core.dialogue_size import dialogue_tokens
from pawl.core.errors import PawlError
from pawl.core.ports import Files
from pawl.workflow import planning
from pawl.workflow.workbench import Line

ROOM = 20_000
"""Tokens of what is at hand, so that most of the new context is free."""


def afresh(line: Line, record: RunRecord, files: Files) -> Line:
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


def later_tasks(line: Line, record: RunRecord) -> list[str]:
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
