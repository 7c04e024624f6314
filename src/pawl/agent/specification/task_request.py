"""The request that a task of a specification is: an ordinary one, in the form that bounds what it may change."""

from __future__ import annotations

from collections.abc import Iterator

from pawl.agent.specification.spec_folder import SpecFolder, constitution
from pawl.agent.specification.task_list import SpecTask
from pawl.agent.works import is_there
from pawl.checks.verdict import Requirements
from pawl.code.languages import is_test


def request_for(spec: SpecFolder, task: SpecTask) -> str:
    """The request for the task; it may change its files and their tests, or whatever it needs where it names none."""
    places = sorted(task.touches)
    parts = [f"Task: {task.id}: {task.what}"]
    if places:
        parts.append("Scope:\n" + "\n".join(f"- {one}" for one in (*places, *["tests"] * (not task.red))))
    parts.append("Requirements:\n" + "\n".join(f"- {one}" for one in _requirements(spec, task, places)))
    commands = [] if task.red else [one for one in task.proof if not is_path(one)]
    if commands:
        parts.append("Verification:\n" + "\n".join(f"- `{one}`" for one in commands))
    return "\n\n".join(parts)


def _requirements(spec: SpecFolder, task: SpecTask, places: list[str]) -> Iterator[str]:
    documents = [f"{spec.path}/{part}" for part in ("spec.md", "plan.md") if spec.has(part)]
    documents += filter(None, [constitution(spec.shop)])
    yield f"it is one task of {spec.name}; read {', '.join(documents) or spec.path} for the whole"
    yield from (f"create {one}" for one in places if not is_there(spec.shop, one))
    yield from (f"the tests in {one} must pass" for one in task.proof if is_path(one) and is_test(one) and not task.red)
    if task.red:
        yield "these tests must fail until the code for them is written, for want of it: write no code beside them"
    if task.test_first:
        yield "test first: the proof fails without the change and passes with it"


def is_path(proof: str) -> bool:
    """Whether a proof is a file rather than a command."""
    return " " not in proof and ("/" in proof or "." in proof)


def wanted_of(tasks: tuple[SpecTask, ...]) -> Requirements:
    """The demands of tasks that are verified together."""
    proofs = {one for task in tasks if not task.red for one in task.proof if is_path(one) and is_test(one)}
    return Requirements(
        files=tuple(sorted(proofs)),
        witness=any(one.test_first for one in tasks),
        red=all(one.red for one in tasks),
    )


def commands_of(tasks: tuple[SpecTask, ...]) -> tuple[str, ...]:
    """The commands that prove them."""
    found = (one for task in tasks if not task.red for one in task.proof if not is_path(one))
    return tuple(dict.fromkeys(found))
