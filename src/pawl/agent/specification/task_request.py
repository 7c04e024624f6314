"""The request that a task of a specification is: an ordinary one, in the form that bounds what it may change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pawl.agent.specification.spec_folder import SpecFolder, constitution
from pawl.agent.specification.task_list import SpecTask
from pawl.agent.works import is_there
from pawl.checks.test_ids import file_of
from pawl.checks.verdict import Requirements, Verification
from pawl.code.languages import is_test
from pawl.core.diagnostic import TestOutcome


def request_for(spec: SpecFolder, task: SpecTask, leave: str = "") -> str:
    """The request for the task; it may change its files and their tests, or whatever it needs where it names none,
    but not the one to `leave`."""
    places = sorted(task.touches)
    parts = [f"Task: {task.id}: {task.what}"]
    if places:
        parts.append("Scope:\n" + "\n".join(f"- {one}" for one in (*places, *["tests"] * (not task.red))))
    parts.append("Requirements:\n" + "\n".join(f"- {one}" for one in _requirements(spec, task, places, leave)))
    # A plan that says "Testing: pytest" does not mean that this task makes those of the others pass.
    parts.append("Constraints:\n- tests of other tasks: those may still fail")
    commands = [] if task.red else [one for one in task.proof if not is_path(one)]
    if commands:
        parts.append("Verification:\n" + "\n".join(f"- `{one}`" for one in commands))
    return "\n\n".join(parts)


def _requirements(spec: SpecFolder, task: SpecTask, places: list[str], leave: str) -> Iterator[str]:
    documents = [f"{spec.path}/{part}" for part in ("spec.md", "plan.md") if spec.has(part)]
    documents += filter(None, [constitution(spec.shop)])
    yield f"it is one task of {spec.name}; read {', '.join(documents) or spec.path} for the whole"
    yield from (f"create {one}" for one in places if not is_there(spec.shop, one))
    proofs = [one for one in tests_of(task) if not task.red]
    others = {path for one in spec.tasks().tasks if one.id != task.id and not one.done for path in one.touches}
    yield from (f"create {one}" for one in proofs if one not in {*places, *others} and not is_there(spec.shop, one))
    yield from (f"the tests in {one} must pass" for one in proofs)
    if leave:
        yield f"leave {leave} as it is, another task changes it at the same time: put what you have for it elsewhere"
    if task.red:
        yield "these tests must fail until the code for them is written, for want of it: write no code beside them"
    if task.test_first:
        yield "test first: the proof fails without the change and passes with it"


def is_path(proof: str) -> bool:
    """Whether a proof is a file rather than a command."""
    return " " not in proof and ("/" in proof or "." in proof)


def tests_of(task: SpecTask) -> tuple[str, ...]:
    """The files of tests among its proofs."""
    files = (one.partition("::")[0] for one in task.proof if is_path(one))
    return tuple(dict.fromkeys(one for one in files if is_test(one)))


def unshown(tasks: Iterable[SpecTask], checked: Verification) -> Iterator[tuple[str, str]]:
    """Tasks whose proof did not run, and why; where tests were not watched, those that ran are not known."""
    ran_at_all = (one for suite in checked.suites for one in suite.ran)
    passed = {one.id for one in ran_at_all if one.outcome is TestOutcome.PASSED}
    files = {file_of(one) for one in passed}
    for task in tasks:
        for proof in () if task.red else filter(is_path, task.proof):
            path = proof.partition("::")[0]
            ran = [
                one
                for one in files
                if one == path or one.startswith(f"{path.rstrip('/')}/") or path.endswith(f"/{one}")
            ]
            if not is_test(path):
                yield task.id, f"its proof {proof} is neither a test nor a command in backticks: nothing runs it"
            elif any(one.endswith(path[path.rfind(".") :]) for one in files) and not ran:
                yield task.id, f"no test of its proof {proof} passed"
            elif ran and path != proof and not any(one.partition("[")[0].startswith(proof) for one in passed):
                yield task.id, f"its proof {proof} did not pass"


def is_witnessed(task: SpecTask, checked: Verification) -> bool:
    """Whether something of the task's own was seen failing without the wave and passing with it."""
    places = (*task.proof, *task.touches)
    tests = (test.partition("[")[0] for test in (*checked.witnesses, *checked.own))
    return any(test == one or test.startswith((f"{one}::", f"{one} ")) for test in tests for one in places) or any(
        one in task.proof for one in checked.mended
    )


def wanted_of(tasks: tuple[SpecTask, ...], coming: frozenset[str] = frozenset()) -> Requirements:
    """The demands of tasks that are verified together; later ones write the files that are coming."""
    proofs = {one for task in tasks if not task.red for one in tests_of(task)}
    return Requirements(
        files=tuple(sorted(proofs)),
        witness=any(one.test_first for one in tasks),
        red=all(one.red for one in tasks),
        coming=coming,
    )


def commands_of(tasks: tuple[SpecTask, ...]) -> tuple[str, ...]:
    """The commands that prove them."""
    found = (one for task in tasks if not task.red for one in task.proof if not is_path(one))
    return tuple(dict.fromkeys(found))
