"""The delivery check: whether every part of the request is fulfilled, by a role that sees it and the diff, and has no
tools. Asked where the request has several parts or no test proves what it asks for; what it says stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pawl.agent.briefing import results_told, shown_diff
from pawl.agent.context import LoopEnd, TurnInput
from pawl.agent.delivery import UNCHANGED, doubt_unchecked, unchecked
from pawl.agent.demands import demanded, has_further_wish, leaves_tests, unclear, wishes
from pawl.agent.intents import (
    LONG,
    IntentGuess,
    is_question,
    listed_parts,
    mentioned,
    own_words,
    phrase_file,
    request_form,
)
from pawl.agent.nodes import PASSED_OVER, Workbench
from pawl.agent.record import Fulfilment
from pawl.agent.routes import NodeOutcome
from pawl.checks.evidence import is_prose
from pawl.checks.project_facts import text
from pawl.checks.test_commands import TreeFolder
from pawl.checks.verdict import MOST_TOLD, Evidence, failing
from pawl.code.languages import is_test
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import Verdict
from pawl.core.errors import SchemaUnmet
from pawl.core.events import Warned
from pawl.core.run import Approval, DeliveryState, Intent, RoleName, RunCursor, Stage, TaskOutcome, TaskState
from pawl.core.typed import typed

if TYPE_CHECKING:
    from pawl.agent import contract_models

_NUMBER = re.compile(r"\s*(?:(?:part|task)\s*)?#?(\d+)\b", re.IGNORECASE)


def check_delivery(bench: Workbench, place: RunCursor, changes: ChangeSet) -> NodeOutcome:
    """DONE where the work goes on to be shown, RETRY where the artisan has one more attempt at what remains."""
    record = bench.record
    data, parts = record.data, _parts(bench)
    # What the check itself found missing may be there by now.
    own = (UNCHANGED, *(data.fulfilment.remaining if data.fulfilment is not None else ()))
    failed = any(one.state is TaskState.FAILED and one.reason not in own for one in data.task_ends)
    several = len(parts) > 1 or has_further_wish(record.order.text)
    known = data.fulfilment is not None and data.fulfilment.digest == changes.digest
    # What it said of another state of the work is asked again.
    first = data.fulfilment is None
    if known or failed or not bench.talks.configured or (first and not (several or _is_unproved(bench))):
        return NodeOutcome.DONE
    found = _asked(bench, changes, parts)
    ends = _ends(data.task_ends, parts, found)
    record.keep(replace(record.data, fulfilment=found, task_ends=ends))
    record.note("delivery check", {"fulfilled": found.fulfilled, "remaining": list(found.remaining)})
    if found.fulfilled is None:
        if not found.several:
            bench.listen(Warned(unchecked(found.error)))
        doubt_unchecked(record)
    if found.fulfilled is not False or not first or data.climb is not None:
        return NodeOutcome.DONE
    talk = f"{place.task}.{place.attempt}"
    words = ["Of the request this remains:", *(f"- {one}" for one in found.remaining), "", "Do it, then end."]
    record.keep_talk(talk, replace(record.talk(talk), refused="\n".join(words)))
    bench.listen(Warned(f"not all of the request is done; the model continues: {'; '.join(found.remaining)}"))
    return NodeOutcome.RETRY


def answered(bench: Workbench) -> NodeOutcome:
    """Whether a request whose words ask for no change, and for which nothing was changed, has its answer.

    A question has; of the rest the check decides. NOTHING where the answer is all, DONE where it is not.
    """
    record = bench.record
    if record.data.ended != LoopEnd.ANSWERED:
        return NodeOutcome.DONE
    if not is_question(record.order.text):
        found = record.data.fulfilment or _asked(bench, EMPTY, ())
        record.keep(replace(record.data, fulfilment=found))
        if not found.fulfilled:
            return NodeOutcome.DONE
    record.keep(replace(record.data, intent=IntentGuess(intent=Intent.READ), exit_code=0))
    record.deliver(DeliveryState.DONE)
    return NodeOutcome.NOTHING


def _parts(bench: Workbench) -> tuple[str, ...]:
    plan = bench.record.data.plan
    if len(plan) > 1:
        return tuple(task.what.partition("\n\n")[0] for task in plan)
    request = own_words(bench.record.order.text)
    if (form := request_form(request)) is not None:
        return form.requirements
    # The sentences of a long text are no list, though there may be wishes among them.
    return listed_parts(request) or (wishes(request) if len(request) <= LONG else ())


def _is_unproved(bench: Workbench) -> bool:
    """Whether no test speaks for what was asked but those of the run, or tests fail that are perhaps to pass.

    Of text that no check reads the user judges, who is shown it; the check is made where nobody is.
    """
    data = bench.record.data
    if data.verdict is Verdict.NOTHING_TO_PROVE:
        return bench.record.order.approval is Approval.NEVER
    return not data.witnessed or data.own_only or bool(_left(bench)[0])


def _left(bench: Workbench) -> tuple[tuple[str, ...], str]:
    """Tests that still fail although some words, as far as they can be read, may want them to pass; and these words: of
    the request, or of a document that it names."""
    record = bench.record
    kept = record.evidence(record.data.verified)
    if kept is None or demanded(record.order.text).all_tests:
        return (), ""
    checked = typed(Evidence, kept).checked
    said = unclear(record.order.text) or next(_ordered(bench, checked.paths), "")
    return failing(one for suite in checked.suites for one in suite.old) if said else (), said


def _ordered(bench: Workbench, changed: Collection[str]) -> Iterator[str]:
    """What documents say of failing tests, where the request names them, says nothing of these itself, and they are not
    what was to be changed."""
    request = bench.record.order.text
    for path in () if leaves_tests(request) else mentioned(request):
        told = text(TreeFolder(bench.shop.tree), path) if is_prose(path) and path not in changed else ""
        demand = demanded(told)
        words = ", ".join(demand.files or demand.tests) or "all tests" if demand.all_tests or demand.files else ""
        if words := words or unclear(told):
            yield f"{path}: {words}"


def _asked(bench: Workbench, changes: ChangeSet, parts: tuple[str, ...]) -> Fulfilment:
    """The result of the check; `fulfilled` is None where it could not be made."""
    record = bench.record
    data = record.data
    lines = results_told(data)
    if len(parts) > 1:
        lines += ["the parts; begin each thing that remains with the number of its part:"]
        lines += [f"{number}. {part}" for number, part in enumerate(parts, 1)]
    fails, said = _left(bench) if changes else ((), "")
    if fails:
        lines += [f"tests that still fail, as before: {', '.join(fails[:MOST_TOLD])}; words on tests: {said!r}"]
    what = (
        ("the change:", shown_diff(bench.shop, changes))
        if changes
        else ("nothing was changed; the answer:", data.answer)
    )
    summary = "\n".join((*lines, *what))
    line = TurnInput(
        talk=f"delivery {changes.digest[:12]}",
        role=RoleName.REVIEWER,
        text="Is the request fulfilled?",
        stage=Stage.DELIVERY,
        summary=summary,
    )
    empty = Fulfilment(digest=changes.digest, several=len(parts) > 1 or has_further_wish(record.order.text))
    try:
        value: contract_models.Delivery = bench.talks.say(line).value  # type: ignore[assignment]
    except SchemaUnmet:
        return replace(empty, error="the model's answer is not in the form asked for")
    except PASSED_OVER as error:
        return replace(empty, error=error.message)
    remaining = tuple(value.remaining)
    if value.state == "DONE" and (untouched := tuple(_untouched(bench, parts, changes))):
        if data.fulfilment is not None:
            return replace(empty, error=f"it says that all is done, but: {'; '.join(untouched)}")
        remaining = untouched
    if value.state == "DONE" and fails and value.tests_left == "must pass":
        remaining += (f"{fails[0]} still fails",)
    done = value.state == "DONE" and not remaining
    if done and fails and value.tests_left == "none":
        told = f"{fails[0]} still fails, and nothing says whether it may: {said!r}"
        return replace(empty, error=told)
    open_ones = {match[1] if (match := _NUMBER.match(one)) else None for one in remaining}
    shown = len(parts) - len(open_ones) if len(parts) > 1 and None not in open_ones else 0
    return replace(empty, fulfilled=done, evidence=tuple(value.evidence), remaining=remaining, done=shown)


def _untouched(bench: Workbench, parts: tuple[str, ...], changes: ChangeSet) -> Iterator[str]:
    """The parts that ask for an edit of files of which nothing was changed, or for one that is not there, whatever is
    said of them."""
    files, words = TreeFolder(bench.shop.tree), phrase_file()["words"]
    verb = rf"(?:{words['wish']}|{words['change']}|{words['edit']}|{words['change_anywhere']})"
    for number, part in enumerate(parts if changes and len(parts) > 1 else (), 1):
        if not re.match(rf"{verb}\b|[把在]", part, re.IGNORECASE) or re.search(words["looks"], part, re.IGNORECASE):
            continue
        # Documents of a specification say what is to be done.
        stays = [one for one in mentioned(part) if not is_test(one) and not one.startswith("specs/")]
        named = [one for one in stays if files.exists(one)]
        made = (re.match(rf"{verb}{words['to_file']}{re.escape(one)}", part, re.IGNORECASE) for one in stays)
        named = named or [one for one, match in zip(stays, made, strict=True) if match]
        if named and not any(path == one or path.endswith(f"/{one}") for one in named for path in changes.paths):
            there = "nothing of {} was changed" if files.exists(named[0]) else "there is no {}"
            yield f"{number}. {there.format(named[0])}"


def _ends(known: tuple[TaskOutcome, ...], parts: tuple[str, ...], found: Fulfilment) -> tuple[TaskOutcome, ...]:
    """The states of the tasks as the check sees them; the parts of a single task are told like tasks."""
    if found.fulfilled is None or len(parts) < 2:
        return known
    left = {int(match[1]): one for one in found.remaining if (match := _NUMBER.match(one))}
    entries = {one.number: one.entry for one in known} if len(known) == len(parts) else {}
    return tuple(
        TaskOutcome(
            number=number,
            what=part,
            state=TaskState.FAILED if number in left else TaskState.DONE,
            reason=left.get(number, ""),
            entry=entries.get(number),
        )
        for number, part in enumerate(parts, 1)
    )
