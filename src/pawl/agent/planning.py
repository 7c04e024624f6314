"""Tasks out of a request: from its form or its words without a model, or from what a planner answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from pawl.agent.intents import RequestForm, is_command, request_form
from pawl.core.run import Task

MOST_TASKS = 10
LONG = 600
"""Characters of a request above which it is worth a plan."""
MANY_FILES = 3
_PATH = re.compile(r"(?<![\w./:@-])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}\b")
_NUMBERED = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+\S", re.MULTILINE)


def is_large(request: str) -> bool:
    """Whether a planner should cut the request into tasks; most are one."""
    named = set(_PATH.findall(request))
    return len(request) > LONG or len(named) > MANY_FILES or len(_NUMBERED.findall(request)) > 2


def from_form(request: str) -> tuple[Task, ...]:
    """The tasks of a request in the form; empty when it is not in that form."""
    form = request_form(request)
    if form is None:
        return ()
    return tuple(
        Task(number=number, what=_with_form(step, form), paths=_files(form.scope), creates=_files(form.scope))
        for number, step in enumerate(form.tasks[:MOST_TASKS], 1)
    )


def as_one(request: str) -> tuple[Task, ...]:
    return (Task(number=1, what=request),)


def from_plan(
    request: str, plan: Sequence[Mapping[str, object]], order: Callable[[Iterable[str]], tuple[str, ...]]
) -> tuple[Task, ...]:
    """One task for each file of a plan, imported files first; changes of one file are one task."""
    by_path: dict[str, list[Mapping[str, object]]] = {}
    for change in plan[:MOST_TASKS]:
        by_path.setdefault(str(change["path"]), []).append(change)
    if not by_path:
        return as_one(request)
    ordered = [path for path in order(by_path) if path in by_path]
    ordered += [path for path in by_path if path not in ordered]
    return tuple(
        Task(
            number=number,
            what="\n".join(str(change["what"]) for change in by_path[path]),
            paths=(path,),
            creates=(path,) if any(change["action"] == "create" for change in by_path[path]) else (),
        )
        for number, path in enumerate(ordered, 1)
    )


def to_json(tasks: Sequence[Task]) -> list[dict[str, object]]:
    return [{"what": one.what, "paths": list(one.paths), "creates": list(one.creates)} for one in tasks]


def from_json(body: object) -> tuple[Task, ...]:
    rows = body if isinstance(body, list) else []
    return tuple(
        Task(number=number, what=row["what"], paths=tuple(row["paths"]), creates=tuple(row["creates"]))
        for number, row in enumerate(rows, 1)
    )


def task_text(task: Task, request: str, count: int) -> str:
    """What a model is asked for one task of several; a single one is the request itself."""
    if count == 1:
        return task.what
    files = f"\nFiles: {', '.join(task.paths)}" if task.paths else ""
    return f"Task {task.number} of {count}: {task.what}{files}\n\nIt is part of this request:\n{request}"


def verification_of(request: str) -> tuple[str, ...]:
    """The commands that a request in the form names to decide; what is no command is left to the model."""
    form = request_form(request)
    return () if form is None else tuple(line for line in form.verification if is_command(line))


def _with_form(step: str, form: RequestForm) -> str:
    parts = [step]
    for head, items in (
        ("Scope", form.scope),
        ("Requirements", form.requirements),
        ("Constraints", form.constraints),
        ("Verification", form.verification),
    ):
        if items:
            parts.append(f"{head}:\n" + "\n".join(f"- {item}" for item in items))
    return "\n\n".join(parts)


def _files(scope: Iterable[str]) -> tuple[str, ...]:
    """What of the scope names a file, as opposed to a folder or to words."""
    return tuple(path for path in scope if "." in path.rpartition("/")[2] and not re.search(r"\s", path))
