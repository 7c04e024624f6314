"""`pawl spec` leads from an idea to code: specification, plan, tasks, waves, each in files that people edit."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command, dry_run_option, mixed
from pawl.ui.screen.screen import counted, money

if TYPE_CHECKING:
    from pawl.agent.specification.spec_folder import SpecFolder
    from pawl.workspace.project import Project


def spec_words(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=list(_ACTIONS), metavar="STEP", help=f"one of {', '.join(_ACTIONS)}")
    parser.add_argument("words", nargs="*", metavar="WORDS", help="for specify: the idea")
    parser.add_argument("--spec", metavar="NAME", help="the specification, by name or number (default: the newest)")
    dry_run_option(parser)


def spec(shop: Project, call: Call) -> int:
    return _ACTIONS[call.options.action](shop, call)


def _found(shop: Project, call: Call) -> SpecFolder:
    from pawl.agent.specification.spec_folder import found_spec

    if call.options.words:
        raise UsageError(
            f"'pawl spec {call.options.action}' takes no {call.options.words[0]!r}", advice="name another with --spec"
        )
    return found_spec(shop, call.options.spec or "")


def _analyze(shop: Project, call: Call) -> int:
    from pawl.agent.specification.analysis import FindingLevel, analyzed

    one = _found(shop, call)
    found = analyzed(one)
    wrong = sum(each.level is FindingLevel.ERROR for each in found)
    code = 1 if wrong else 0
    if call.options.json:
        return call.emit({"spec": one.name, "findings": found, "errors": wrong}, code)
    for each in found:
        call.out.lines(f"{each.level:<7}  {each.where}: {each.what}")
    warnings = counted(len(found) - wrong, "warning")
    call.out.say(f"{one.name}: {counted(wrong, 'error')}, {warnings}" if found else f"{one.name}: nothing to say")
    return code


def _orchestrate(shop: Project, call: Call) -> int:
    from pawl.agent.specification.waves import PLAN, as_markdown

    one = _found(shop, call)
    tasks = one.tasks()
    plan = one.planned(tasks)
    text = as_markdown(plan, tasks, one.name)
    entry = None if call.options.dry_run else one.write({PLAN: text}, f"{PLAN} of {one.name}")
    waves = [[each.task.id for each in wave] for wave in plan.waves]
    body = {"spec": one.name, "waves": waves, "estimated_tokens": plan.tokens, "entry": entry}
    if call.options.json:
        return call.emit(body)
    for number, wave in enumerate(waves, 1):
        call.out.lines(f"wave {number}: {', '.join(wave)}")
    where = "not written: --dry-run" if call.options.dry_run else f"{one.path}/{PLAN}"
    call.out.say(f"{counted(len(plan.tasks), 'task')}, about {plan.tokens:,} tokens; {where}")
    return 0


def _status(shop: Project, call: Call) -> int:
    from pawl.agent.specification.spec_state import TaskStanding, status_of

    found = status_of(_found(shop, call))
    done = found.count(TaskStanding.PROVED, TaskStanding.DONE)
    if call.options.json:
        rows = [{"id": one.task.id, "what": one.task.what, **picked(one, "standing wave run")} for one in found.tasks]
        names = "name parts waves drift estimated_tokens tokens cost next_step trouble"
        return call.emit({**picked(found, names), "tasks": rows})
    call.out.say(f"{found.name}: {', '.join(found.parts) or 'nothing written yet'}")
    for one in found.tasks:
        call.out.lines(f"  {one.task.id}  wave {one.wave or '–'}  {one.standing:<14}  {one.task.what}")
    if found.tasks:
        proved = found.count(TaskStanding.PROVED)
        call.out.say(f"{done} of {counted(len(found.tasks), 'task')} done, {proved} proved")
        cost = "cost unknown" if found.cost is None else money(found.cost)
        call.out.say(f"{found.tokens:,} tokens of about {found.estimated_tokens:,} estimated, {cost}")
    for each in found.drift:
        call.out.say(f"! {each.where}: {each.what}", "yellow")
    if found.trouble:
        call.out.say(f"! {found.trouble}", "yellow")
    call.out.hint(f"next: {found.next_step}")
    return 0


_ACTIONS: dict[str, Callable[[Project, Call], int]] = {
    "analyze": _analyze,
    "orchestrate": _orchestrate,
    "status": _status,
}

DECLARED = {
    "spec": Command(
        words=spec_words,
        example="pawl spec orchestrate\n  pawl spec status --spec 2",
        reads=frozenset({"analyze", "status"}),
        read=mixed,
    )
}
