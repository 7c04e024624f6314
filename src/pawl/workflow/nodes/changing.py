"""A task: what it needs is there, a role works on it, and machine-run checks say whether that is done."""

from __future__ import annotations

from dataclasses import asdict

from pawl.core.errors import Conflicted, TaskValidationError
from pawl.core.finding import Standing
from pawl.core.run import RoleName
from pawl.core.runs import Intent, Place, Task
from pawl.workflow import planning
from pawl.workflow.evidence import Checked, Judgement, Wanted, counts_json, failing, judged, to_pass, told
from pawl.workflow.intents import tests_may_change
from pawl.workflow.routing import RETRIES, Outcome
from pawl.workflow.seat import Ended
from pawl.workflow.workbench import Line, Unanswered, Workbench


def prove(bench: Workbench, place: Place) -> Outcome:
    """Checks what the task needs, all of it, and takes the baseline that the change will be held against."""
    task = _task(bench, place)
    unmet = bench.works.unmet(task)
    if unmet:
        raise TaskValidationError(
            f"task {task.number} cannot be done: " + "; ".join(unmet), unmet, advice="mend the request or the workspace"
        )
    record = bench.record
    if record.value("before") is None:
        before = bench.works.before()
        record.put(
            "before",
            {
                "counts": counts_json(before.counts),
                "standing": before.standing,
                "reason": before.reason,
                "failing": list(failing(before.findings)),
            },
        )
        record.note("baseline", {"standing": before.standing, "counts": counts_json(before.counts)})
    return Outcome.DONE


def act(bench: Workbench, place: Place) -> Outcome:
    """A role works on the task with the tools, on the bench, within its limits."""
    record = bench.record
    tasks = planning.from_json(record.value("plan"))
    name = f"{place.task}.{place.attempt}"
    if place.attempt == 1:
        text = planning.task_text(tasks[place.task - 1], record.order.text, len(tasks)) + _failing_now(bench)
        first = place.task == 1
        history = bench.talks.earlier() if first else bench.talks.history(_last_talk(bench, place.task - 1))
    else:
        refused = record.value(f"refused {place.task}.{place.attempt - 1}")
        text = str(refused)
        history = bench.talks.history(f"{place.task}.{place.attempt - 1}")
    try:
        spoken = bench.talks.say(Line(talk=name, role=RoleName.ARTISAN, text=text, history=history))
    except Unanswered as waiting:
        record.put("question", asdict(waiting.question))
        return Outcome.ASK
    record.put("answer", spoken.text)
    record.put("ended", spoken.ended)
    record.put("last talk", {**_talks(bench), str(place.task): name})
    return Outcome.DONE


def verify(bench: Workbench, place: Place) -> Outcome:
    """The checks decide. What they say is recorded, and told to the role if it is to try again."""
    record = bench.record
    try:
        work = bench.works.now()
    except Conflicted as error:
        record.put("refused", [error.message])
        return Outcome.GIVE_UP
    record.keep_work("shown", work.changes)
    record.put("held", [[one.path, one.reason] for one in work.held])
    if not work.changes:
        return _unchanged(bench, place)
    checked = bench.works.verify(work.changes)
    judgement = judged(checked, wanted(bench))
    _keep(bench, checked, judgement)
    if judgement.accepted:
        if record.value("ended") in (Ended.OUT_OF_TIME, Ended.OUT_OF_TURNS, Ended.STUCK):
            # What is there holds, but the role says itself that it is not all.
            return Outcome.GIVE_UP
        bench.works.settle(place.task)
        return Outcome.NEXT if place.task < len(planning.from_json(record.value("plan"))) else Outcome.DONE
    return _again(bench, place, told(judgement))


def _unchanged(bench: Workbench, place: Place) -> Outcome:
    """Nothing was changed: fine where nothing had to be, and no success where something fails that should pass."""
    record = bench.record
    wishes, before = wanted(bench), bench.works.before()
    checked = Checked(digest="", before=before, verdicts=())
    left = to_pass(before.findings, wishes)
    if left and before.standing is Standing.FAIL:
        reason = f"tests: {before.reason}; nothing was changed"
        _keep(bench, checked, Judgement(refused=(reason,), findings=tuple(left)))
        return _again(bench, place, told(Judgement(refused=(reason,), findings=tuple(left))))
    if place.task < len(planning.from_json(record.value("plan"))):
        return Outcome.NEXT
    return Outcome.NOTHING


def _again(bench: Workbench, place: Place, words: str) -> Outcome:
    """Another attempt with the errors as context, as long as attempts, time and a model are left."""
    record = bench.record
    record.put(f"refused {place.task}.{place.attempt}", words)
    out = record.value("ended") in (Ended.OUT_OF_TIME, Ended.OUT_OF_TURNS, Ended.REFUSED)
    if place.attempt > RETRIES and not out and bench.climber is not None and record.order.loop.get("escalate"):
        return Outcome.ESCALATE
    if place.attempt > RETRIES or out or not bench.talks.configured:
        return Outcome.GIVE_UP
    return Outcome.RETRY


def _keep(bench: Workbench, checked: Checked, judgement: Judgement) -> None:
    record, tests = bench.record, checked.tests
    record.put("verified", checked.digest)
    record.put("verdicts", [[one.step, one.standing, one.reason] for one in checked.verdicts])
    record.put("after", counts_json(tests.counts) if tests else None)
    record.put("before counts", counts_json(checked.before.counts))
    record.put("refused", list(judgement.refused))
    record.put("notes", list(judgement.notes))
    record.note(
        "verified",
        {
            "accepted": judgement.accepted,
            "verdicts": {one.step: one.standing for one in checked.verdicts},
            "refused": list(judgement.refused),
        },
    )


def _task(bench: Workbench, place: Place) -> Task:
    return planning.from_json(bench.record.value("plan"))[place.task - 1]


def wanted(bench: Workbench) -> Wanted:
    """What the request wants of the checks."""
    order = bench.record.order
    known = bench.record.value("intent")
    mends = isinstance(known, dict) and known["intent"] in (Intent.MEND, Intent.LOOP)
    return Wanted(
        all_tests=mends,
        named=order.text,
        tests_may_change=tests_may_change(order.text),
        tests_must_run=bool(order.test_command),
    )


def _failing_now(bench: Workbench) -> str:
    """What the baseline already knows, so that the role need not run the tests to learn it."""
    before = bench.record.value("before")
    names = before.get("failing") if isinstance(before, dict) else None
    if not names:
        return ""
    shown = "\n".join(f"- {name}" for name in names[:10])
    more = f"\n- and {len(names) - 10} more" if len(names) > 10 else ""
    return f"\n\n[tests that fail now, before any change:\n{shown}{more}]"


def _talks(bench: Workbench) -> dict[str, str]:
    known = bench.record.value("last talk")
    return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}


def _last_talk(bench: Workbench, task: int) -> str:
    return _talks(bench).get(str(task), f"{task}.1")
