"""`pawl spec` leads from an idea to code: specification, plan, tasks, waves, each in files that people edit."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.core.run import DeliveryState, RunRequest
from pawl.settings import files as bounded
from pawl.ui.cli.call import Call, check_range, given_bytes
from pawl.ui.cli.do import carry, piped_input, spending
from pawl.ui.cli.encoder import EXIT_CODES, EXIT_WAITING, picked
from pawl.ui.cli.parser import (
    Command,
    accept_option,
    dry_run_option,
    install_option,
    mixed,
    model_option,
    spending_options,
    test_option,
    thinking_options,
)
from pawl.ui.screen.screen import counted, money

if TYPE_CHECKING:
    from decimal import Decimal

    from pawl.agent.specification.spec_folder import SpecFolder
    from pawl.agent.specification.task_list import SpecTask
    from pawl.agent.specification.wave_executor import WaveReport
    from pawl.workspace.project import Project

MOST_BYTES = 4 << 20
PARTLY, UNVERIFIED = EXIT_CODES[DeliveryState.PARTLY], EXIT_CODES[DeliveryState.UNVERIFIED]
"""Exit codes."""


def spec_words(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=list(_ACTIONS), metavar="STEP", help=f"one of {', '.join(_ACTIONS)}")
    parser.add_argument(
        "words", nargs="*", metavar="WORDS", help="new, specify: the idea; issues: export or import, and a file"
    )
    parser.add_argument("--spec", metavar="NAME", help="name or number of the specification (default: the newest)")
    parser.add_argument("--wave", type=int, metavar="N", help="execute: only this wave")
    parser.add_argument("--task", metavar="ID", help="execute: only this task, such as T012")
    parser.add_argument("--resume", action="store_true", help="execute: continue where it was interrupted")
    parser.add_argument(
        "--parallel", type=int, metavar="N", help="execute: tasks at once (default: as the machine allows)"
    )
    parser.add_argument("--queued", action="store_true", help="execute: let workers of the queue do the tasks")
    parser.add_argument("--github", action="store_true", help="issues: those of the repository's host, through gh")
    dry_run_option(parser)
    accept_option(parser)
    test_option(parser)
    install_option(parser)
    model_option(parser)
    thinking_options(parser)
    spending_options(parser)


def spec(shop: Project, call: Call) -> int:
    return _ACTIONS[call.options.action](shop, call)


def _found(shop: Project, call: Call) -> SpecFolder:
    from pawl.agent.specification.spec_folder import found_spec

    if call.options.words:
        raise UsageError(
            f"'pawl spec {call.options.action}' takes no {call.options.words[0]!r}", advice="name another with --spec"
        )
    return found_spec(shop, call.options.spec or "")


def _specify(shop: Project, call: Call) -> int:
    from pawl.agent.specification.spec_folder import found_spec
    from pawl.agent.specification.spec_steps import spec_for

    idea = piped_input(call, " ".join(call.options.words))
    if not idea.strip():
        raise UsageError("there is no idea", advice="pawl spec specify 'a command that counts words'")
    known = call.options.spec
    return _step(found_spec(shop, known) if known else spec_for(shop, idea), "specify", idea, call)


def _step_with_words(shop: Project, call: Call) -> int:
    from pawl.agent.specification.spec_folder import found_spec

    one, words = found_spec(shop, call.options.spec or ""), piped_input(call, " ".join(call.options.words))
    ticked = _ticked(one)
    code = _step(one, call.options.action, words, call)
    if code == 0 and call.options.action in ("tasks", "converge") and not call.options.dry_run:
        return _held_to_the_code(one, ticked, call)
    return code


def _ticked(one: SpecFolder) -> set[str]:
    with suppress(UsageError):
        return {each.id for each in one.tasks().tasks if each.done}
    return set()


def _held_to_the_code(one: SpecFolder, ticked: set[str], call: Call) -> int:
    """Tell now what cannot be read, not when it is to be executed; a tick is no model's to give; and that nothing is
    missing does not stand where a ticked task has no files, or a requirement was passed over."""
    from pawl.agent.specification.analysis import unheld

    if given := _ticked(one) - ticked:
        one.write({"tasks.md": one.tasks().reopened(given)}, f"tasks of {one.name}")
        call.aside.say(f"! open again, as only 'pawl spec execute' ticks: {', '.join(sorted(given))}", "yellow")
    left = tuple(unheld(one, one.tasks())) if call.options.action == "converge" else ()
    for each in left:
        call.aside.say(f"! {each.where}: {each.what}", "yellow")
    return 1 if left else 0


def _step(one: SpecFolder, step: str, words: str, call: Call) -> int:
    from pawl.agent.specification.spec_steps import request_of, step_run

    options = call.options
    text = request_of(one, step, words)
    if options.dry_run:
        return call.answer({"spec": one.name, "request": text}, text)
    order = RunRequest(
        text=text,
        model=options.model or "",
        reasoning=options.reasoning or "",
        budget=spending(call),
        attended=call.can_ask,
    )

    def resuming(run: str) -> None:
        call.aside.say(f"{step} continues the run {run}, which had not ended")

    return carry(
        one.shop, call, lambda session: step_run(session, one, step, order, resuming), thoughts=options.thoughts
    )


def _clarify(shop: Project, call: Call) -> int:
    from pawl.agent.specification import spec_steps

    one = _found(shop, call)
    if not spec_steps.told_answers(one):
        code = _step(one, "clarify", "", call)
        if code or not spec_steps.told_answers(one):
            return code
    left = spec_steps.take_answers(one, ())
    if call.can_ask and not call.options.dry_run:
        left = spec_steps.take_answers(one, [call.line(f"{each.text}\n> ") or "" for each in left])
    if left:
        where = f"{one.path}/{spec_steps.QUESTIONS}"
        call.aside.say(f"{counted(len(left), 'question')} open in {where}: answer there, then call it again")
        return EXIT_WAITING
    code = 0 if spec_steps.are_worked_in(one) else _step(one, "answers", spec_steps.told_answers(one), call)
    if code == 0 and not call.options.dry_run:
        spec_steps.close_questions(one)
    return code


def _analyze(shop: Project, call: Call) -> int:
    from pawl.agent.specification.analysis import FindingLevel, analyzed

    one = _found(shop, call)
    found = analyzed(one)
    wrong = sum(each.level is FindingLevel.ERROR for each in found)
    code = int(wrong > 0)
    if call.options.json:
        return call.emit({"spec": one.name, "findings": found, "errors": wrong}, code)
    for each in found:
        call.out.lines(f"{each.level:<7}  {each.where}: {each.what}")
    warnings = counted(len(found) - wrong, "warning")
    call.out.say(f"{one.name}: {counted(wrong, 'error')}, {warnings}" if found else f"{one.name}: nothing to say")
    return code


def _orchestrate(shop: Project, call: Call) -> int:
    from pawl.agent.specification.spec_state import SpecState, documents, estimated_cost
    from pawl.agent.specification.waves import PLAN, as_markdown

    one = _found(shop, call)
    tasks = one.tasks()
    plan = one.planned(tasks)
    text = as_markdown(plan, tasks, one.name)
    entry = None if call.options.dry_run else one.write({PLAN: text}, f"{PLAN} of {one.name}")
    if not call.options.dry_run:
        # Where no step of Pawl has read them, this is what the tasks are held against.
        state = SpecState.of(one)
        state.with_documents({**documents(one, "tasks"), **state.taken_in}).keep(one)
    waves = [[each.task.id for each in wave] for wave in plan.waves]
    cost = estimated_cost(one, plan.tokens)
    estimate = {"estimated_tokens": plan.tokens, "estimated_cost": cost}
    if call.options.json:
        return call.emit({"spec": one.name, "waves": waves, **estimate, "entry": entry})
    for number, wave in enumerate(waves, 1):
        call.out.lines(f"wave {number}: {', '.join(wave)}")
    where = "not written: --dry-run" if call.options.dry_run else f"{one.path}/{PLAN}"
    call.out.say(f"{counted(len(plan.tasks), 'task')}, about {plan.tokens:,} tokens{_in_money(cost)}; {where}")
    return 0


def _status(shop: Project, call: Call) -> int:
    from pawl.agent.specification.spec_folder import spec_names
    from pawl.agent.specification.spec_state import TaskStanding, status_of
    from pawl.agent.specification.spec_steps import take_answers

    folder = _found(shop, call)
    found, asked = status_of(folder), [each.text for each in take_answers(folder, ())]
    done = found.count(TaskStanding.PROVED, TaskStanding.DONE)
    if call.options.json:
        rows = [{"id": one.task.id, "what": one.task.what, **picked(one, "standing wave run")} for one in found.tasks]
        names = "name parts waves drift estimated_tokens estimated_cost tokens task_tokens cost next_step trouble"
        more = {"tasks": rows, "questions": asked, "specs": spec_names(shop)}
        return call.emit({**picked(found, names), **more})
    call.out.say(f"{found.name}: {', '.join(found.parts) or 'nothing written yet'}")
    for one in found.tasks:
        call.out.lines(f"  {one.task.id}  wave {one.wave or '–'}  {one.standing:<14}  {one.task.what}")
    if found.tasks:
        proved = found.count(TaskStanding.PROVED)
        call.out.say(f"{done} of {counted(len(found.tasks), 'task')} done, {proved} proved")
        cost = "cost unknown" if found.cost is None else money(found.cost)
        of = (
            f" of about {found.estimated_tokens:,}{_in_money(found.estimated_cost)} estimated"
            if found.estimated_tokens
            else ""
        )
        call.out.say(f"{found.task_tokens:,} tokens for the tasks{of}; {found.tokens:,} with the documents, {cost}")
    for each in found.drift:
        call.out.say(f"! {each.where}: {each.what}", "yellow")
    if found.trouble:
        call.out.say(f"! {found.trouble}", "yellow")
    if asked:
        call.out.say(f"! {counted(len(asked), 'question')} open in questions.md", "yellow")
    call.out.hint(f"next: {found.next_step}")
    return 0


def _in_money(cost: Decimal | None) -> str:
    return f" ({money(cost)})" if cost else ""


def _execute(shop: Project, call: Call) -> int:
    from pawl.agent.queue.job_queue import opened_queue, server_of
    from pawl.agent.specification.wave_executor import ExecutionWish, WaveExecutor, order_of
    from pawl.agent.specification.wave_jobs import WaveJobs

    options = call.options
    if options.parallel is not None:
        check_range("--parallel", options.parallel, 1, 64, "without it, as many as suit the machine")
    if sum((options.wave is not None, bool(options.task), options.resume)) > 1:
        raise UsageError("--wave, --task and --resume cannot be used together", advice="give one of them")
    if options.queued and options.parallel is not None:
        raise UsageError("--parallel is not for --queued", advice="the setting queue.together says how many at once")
    order = order_of(
        model=options.model or "",
        test_command=call.test_command,
        accept_unverified=options.accept_unverified,
        install=options.install,
        reasoning=options.reasoning or "",
        budget=spending(call),
    )
    wish = ExecutionWish(
        wave=options.wave, task=options.task or "", resume=options.resume, order=order, parallel=options.parallel or 0
    )
    one = _found(shop, call)
    with ExitStack() as open_, call.interruptions.stopping() as cancel:
        executor = WaveExecutor(spec=one, wish=wish, tell=partial(_progress, call), cancel=cancel)
        if options.queued:
            queue = open_.enter_context(opened_queue(shop.config, shop.store, server_of(shop.config, None)))
            executor.jobs = WaveJobs(shop=shop, queue=queue)
            call.aside.hint("  tasks are carried out by a 'pawl worker'")
        if options.dry_run:
            return _planned(one, executor.chosen(), call)
        reports = executor.execute()
    code = _exit_code(reports)
    if call.options.json:
        call.emit({"spec": one.name, "waves": reports}, code)
    elif not reports:
        call.out.say(_nothing_left(one))
    elif code == 0:
        call.out.say(f"{one.name}: {counted(len(reports), 'wave')} committed")
    else:
        last = reports[-1]
        call.out.say(f"{one.name}: wave {last.number} {last.end}; the workspace is as the last checkpoint left it")
        call.out.hint(f"next: pawl spec execute{' --resume' if last.end == 'stopped' else ''}")
    if call.interruptions.heard is not None and code:
        raise call.interruptions.heard
    return code


def _issues(shop: Project, call: Call) -> int:
    from pawl.agent.specification import task_issues
    from pawl.agent.specification.spec_folder import found_spec

    options = call.options
    action, *rest = options.words or [""]
    if action not in ("export", "import") or len(rest) > 1 or bool(rest) == options.github:
        raise UsageError(
            "it takes 'export' or 'import' and a file, or --github", advice="pawl spec issues export issues.json"
        )
    one = found_spec(shop, options.spec or "")
    tasks = one.tasks()
    if action == "export":
        if options.github:
            made = task_issues.HostedIssues(spec=one).export(tasks)
            return call.answer({"spec": one.name, "created": made}, "\n".join(made) or "every task has an issue")
        found = task_issues.issues_of(one, tasks)
        markdown = rest[0].endswith((".md", ".markdown"))
        text = (task_issues.as_markdown if markdown else task_issues.as_json)(one, found)
        bounded.write_given(Path(rest[0]), text.encode("utf-8", "replace"), shop.workspace)
        return call.answer(
            {"spec": one.name, "file": rest[0], "issues": len(found)}, f"{counted(len(found), 'issue')} in {rest[0]}"
        )
    if options.github:
        issues = task_issues.HostedIssues(spec=one).listed()
    else:
        text = given_bytes(rest[0], MOST_BYTES, "the file of issues").decode("utf-8", "replace")
        issues = task_issues.read_issues(text, rest[0], one.name)
    news = task_issues.imported(tasks, issues)
    entry = None if options.dry_run else one.write({"tasks.md": news.text}, f"issues of {one.name}")
    ids = {"ticked": news.ticked, "reopened": news.reopened, "new": news.new}
    told = "; ".join(f"{name}: {', '.join(some) or 'none'}" for name, some in ids.items())
    return call.answer({"spec": one.name, **ids, "entry": entry}, told)


def _progress(call: Call, line: str) -> None:
    if not call.options.json:
        call.out.lines(line)


def _planned(one: SpecFolder, waves: Sequence[tuple[int, Sequence[SpecTask]]], call: Call) -> int:
    named = [(number, [each.id for each in some]) for number, some in waves]
    text = "\n".join(f"wave {number}: {', '.join(tasks)}" for number, tasks in named)
    body = {"spec": one.name, "waves": [{"number": number, "tasks": tasks} for number, tasks in named]}
    return call.answer(body, text or _nothing_left(one))


def _nothing_left(one: SpecFolder) -> str:
    from pawl.agent.specification.spec_state import TaskStanding, status_of

    unproved = [each.task.id for each in status_of(one).tasks if each.standing is TaskStanding.DONE]
    told = f"{one.name}: every task asked for is ticked"
    return f"{told}, and not proved by Pawl: {', '.join(unproved)}" if unproved else told


def _exit_code(reports: Sequence[WaveReport]) -> int:
    from pawl.agent.specification.wave_executor import WaveEnd

    if not reports or reports[-1].end is WaveEnd.DONE:
        return 0
    last = reports[-1]
    if last.end is WaveEnd.STOPPED:
        return last.trouble.exit_code if last.trouble is not None else 1
    if len(reports) > 1:
        return PARTLY
    return UNVERIFIED if last.end is WaveEnd.UNVERIFIED else 1


_ACTIONS: dict[str, Callable[[Project, Call], int]] = {
    "new": _specify,
    "specify": _specify,
    "clarify": _clarify,
    "plan": _step_with_words,
    "tasks": _step_with_words,
    "analyze": _analyze,
    "orchestrate": _orchestrate,
    "execute": _execute,
    "converge": _step_with_words,
    "status": _status,
    "issues": _issues,
}

DECLARED = {
    "spec": Command(
        words=spec_words,
        example="pawl spec specify 'a command that counts words'\n  pawl spec execute --wave 2",
        reads=frozenset({"analyze", "status"}),
        read=mixed,
    )
}
