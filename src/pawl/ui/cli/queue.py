"""`pawl queue` keeps requests for workers and tells what became of them; `pawl worker` carries them out."""

from __future__ import annotations

import subprocess
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import BudgetExceeded, UnknownEntry, UsageError
from pawl.core.job import CRITICAL, Job, JobOutcome, JobState
from pawl.core.run import Approval, RunRequest
from pawl.settings import files as bounded
from pawl.ui.cli.call import Call, amount_of, check_range, given_bytes
from pawl.ui.cli.do import piped_input, spending
from pawl.ui.cli.encoder import EXIT_WAITING, Json, as_json, picked
from pawl.ui.cli.parser import (
    Command,
    accept_option,
    install_option,
    mixed,
    model_option,
    spending_options,
    test_option,
)
from pawl.ui.screen.screen import brief, counted, money, when

if TYPE_CHECKING:
    from pawl.agent.queue.job_queue import JobQueue, JobWish
    from pawl.workspace.project import Project

MOST_BYTES = 64 << 20
WATCH_SECONDS = 0.5
MOST_ENDED = 1000
"""How many of the newest jobs are listed also when they have ended."""
RESTARTS = 20
"""Workers that died by a signal and are started again, in one `pawl queue run`."""
_CODES = {JobOutcome.FAILED: 1, JobOutcome.PARTLY: 5, JobOutcome.UNVERIFIED: 6}


def queue_words(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=list(_ACTIONS), metavar="ACTION", help=", ".join(_ACTIONS)
    )
    parser.add_argument("words", nargs="*", metavar="WORDS", help="add: the request; others: numbers of jobs, or runs")
    parser.add_argument("--after", action="append", default=[], metavar="JOB", help="add: begin when this one is done")
    parser.add_argument(
        "--if-failed",
        action="append",
        default=[],
        metavar="JOB",
        help="add: begin if this one fails, before all others",
    )
    parser.add_argument("--priority", metavar="N", help="add: higher goes first, or 'critical' (default 0)")
    parser.add_argument("--workspace", dest="place", metavar="DIR|URL@REF", help="add: the project it is about")
    parser.add_argument("--each", metavar="GLOB", help="add: a job for each file; {file} stands for its name")
    parser.add_argument("--from", dest="lines", metavar="FILE", help="add: a job for each line of JSON; '-' for stdin")
    parser.add_argument(
        "--approve", choices=["final", "never"], default="never", help="add: ask before promoting, or not (default)"
    )
    accept_option(parser)
    test_option(parser)
    install_option(parser)
    model_option(parser)
    parser.add_argument(
        "--budget",
        dest="max_budget_usd",
        metavar="USD",
        help="add: for the job; run: for all workers from now on ('none': no limit)",
    )
    spending_options(parser)
    parser.add_argument(
        "--all", action="store_true", help="pause, resume: the whole queue; list, cancel, retry: every job"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="run: processes (default: the setting queue.workers)")
    parser.add_argument("--export", metavar="FILE", help="list: write every job as JSON; '-' for stdout")
    parser.add_argument(
        "--require", action="append", default=[], metavar="LABEL", help="add: only a worker that has this label"
    )
    _server_options(parser)


def worker_words(parser: ArgumentParser) -> None:
    parser.add_argument("--drain", action="store_true", help="end when nothing is left to do")
    parser.add_argument("--shares", type=int, default=1, metavar="N", help="workers that share the budget (default 1)")
    _server_options(parser)


def _server_options(parser: ArgumentParser) -> None:
    parser.add_argument("--queue", metavar="URL", help="a queue for many machines: postgres://USER@HOST/DATABASE")
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="LABEL",
        help="run, worker: a label of the worker, besides those it finds itself",
    )


def queue(shop: Project, call: Call) -> int:
    options = call.options
    call.refuse_others(_TAKES, _SHOWN)
    given = (options.place, options.lines, options.export, options.max_budget_usd, options.queue)
    if not call.asks and (options.action in ("run", "watch") or any(one is not None for one in given)):
        # A session and the page show and change the queue; they neither wait for it nor reach other files with it.
        raise UsageError("a session cannot do that", advice="run 'pawl queue' in another terminal")
    with _opened(shop, call) as jobs:
        return _ACTIONS[options.action](shop, jobs, call)


_SPENDING = "max_budget_usd max_tokens max_turns seconds"
_TAKES = {
    "add": f"words after if_failed priority place each lines approve accept_unverified test install model {_SPENDING}"
    " require",
    "list": "all export",
    "show": "words",
    **dict.fromkeys(("pause", "resume", "cancel", "retry"), "words all"),
    "run": "max_budget_usd workers label",
}
_SHOWN = {"place": "workspace", "lines": "from", "max_budget_usd": "budget"}


def _opened(shop: Project, call: Call) -> AbstractContextManager[JobQueue]:
    from pawl.agent.queue.job_queue import opened_queue, server_of

    return opened_queue(shop.config, shop.store, server_of(shop.config, call.options.queue))


def worker(shop: Project, call: Call) -> int:
    check_range("--shares", call.options.shares, 1, 1000, "as many as workers share the budget")
    with _opened(shop, call) as jobs:
        began = jobs.now()
        _work(shop, jobs, call, drains=call.options.drain, shares=call.options.shares)
        ended = jobs.list(ended_since=began)
    if call.interruptions.heard is not None:
        raise call.interruptions.heard
    return _ended(ended)


def _ended(jobs: Sequence[Job]) -> int:
    """The exit code for what became of them."""
    return next((code for outcome, code in _CODES.items() if any(one.outcome is outcome for one in jobs)), 0)


def _work(shop: Project, jobs: JobQueue, call: Call, *, drains: bool, shares: int = 1) -> None:
    from pawl.agent.queue.job_queue import queue_settings
    from pawl.agent.queue.worker import QueueWorker

    def tell(job: Job, what: str) -> None:
        if not call.options.json:
            call.out.say(f"job {job.id}: {what}")

    with call.interruptions.stopping() as stop:
        settings = queue_settings(shop.config)
        QueueWorker(
            config=shop.config,
            queue=jobs,
            stop=stop,
            settings=settings,
            tell=tell,
            warn=call.aside.say,
            shares=shares,
            labels=_labels(shop, call),
        ).work(drains=drains)


def _labels(shop: Project, call: Call) -> frozenset[str]:
    from pawl.agent.queue.job_queue import queue_settings
    from pawl.agent.queue.labels import labels_here

    return labels_here(shop, (*queue_settings(shop.config).labels, *call.options.label))


def _add(shop: Project, jobs: JobQueue, call: Call) -> int:
    place = call.options.place
    if place is None:
        return _add_to(shop, jobs, call)
    if not place:
        raise UsageError("--workspace names no folder", advice="leave it out for this project")
    from pawl.agent.queue.job_queue import beside
    from pawl.workspace.paths import find_workspace
    from pawl.workspace.project import Project

    if "://" in place:
        from pawl.workspace.transplant import fetched

        folder, outside = fetched(shop.config, place)
        place = str(folder)
        call.aside.say(f"  the workspace is {place}")
        if outside:
            call.aside.say(f"  left out, leading out of it: {brief(', '.join(outside), 200)}")
    with Project.open(shop.config, find_workspace(Path(place), shop.config, exact=True)) as other:
        return _add_to(other, beside(jobs, other.store), call)


def _add_to(shop: Project, jobs: JobQueue, call: Call) -> int:
    from pawl.agent.queue.job_queue import add, add_lines, for_each_file

    options, wish = call.options, _wish(call)
    if options.lines is not None:
        if options.each is not None or options.words:
            raise UsageError("--from brings its own requests", advice="leave out --each and the words")
        data = given_bytes(options.lines, MOST_BYTES, "the jobs").decode("utf-8", "replace")
        added = add_lines(shop, jobs, wish, data)
    else:
        text = " ".join(options.words) if options.each is not None else piped_input(call, " ".join(options.words))
        texts = for_each_file(shop, options.each, text) if options.each is not None else [text] if text.strip() else []
        added = add(shop, jobs, wish, texts)
    if call.options.json:
        return call.emit({"jobs": added, "workspace": shop.workspace})
    many = f"jobs {added[0]} to {added[-1]}" if len(added) > 1 else f"job {added[0]}" if added else "nothing"
    call.out.say(f"{many} queued")
    call.aside.hint("  carried out by 'pawl queue run', or by a 'pawl worker'")
    return 0


def _wish(call: Call) -> JobWish:
    from pawl.agent.queue.job_queue import HIGHEST, JobWish

    options, priority = call.options, None
    if options.priority == "critical":
        priority = CRITICAL
    elif options.priority is not None:
        digits = options.priority.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 4 and int(digits) <= HIGHEST):
            raise UsageError(
                f"--priority {options.priority!r} is not a priority", advice=f"a number up to {HIGHEST}, or critical"
            )
        priority = int(options.priority)
    return JobWish(
        order=RunRequest(
            text="",
            approval=Approval(options.approve),
            model=options.model or "",
            test_command=call.test_command,
            accept_unverified=options.accept_unverified,
            attended=False,
            install=options.install,
            budget=spending(call),
        ),
        priority=priority,
        after=tuple(options.after),
        if_failed=tuple(options.if_failed),
        requires=tuple(options.require),
    )


def _named(shop: Project, jobs: JobQueue, call: Call, *, most: int | None = None) -> list[int]:
    """The jobs that the words name, by number or run."""
    found = []
    for word in call.options.words:
        number = jobs.number_of(word)
        if number is None:
            raise UnknownEntry(f"there is no job {word!r}", advice="'pawl queue list' lists them")
        if number not in found:
            found.append(jobs.get(number).id)
    if not found and not call.options.all:
        or_all = "" if most else ", or --all"
        raise UsageError(f"'pawl queue {call.options.action}' names no job", advice=f"give its number{or_all}")
    if found and (call.options.all or (most is not None and len(found) > most)):
        raise UsageError("that is more than one", advice="name one job")
    return found


def job_json(job: Job) -> Json:
    names = "id standing state outcome verdict entry reason run attempts sent_back priority workspace provider requires"
    return {
        **picked(job, names),
        "request": job.order.text,
        "model": job.order.model,
        **picked(job, "created started ended not_before worker"),
        "cost_usd": job.cost,
    }


def _list(shop: Project, jobs: JobQueue, call: Call) -> int:
    shortened = call.options.export is None and not call.options.all
    every = jobs.list(newest=MOST_ENDED if shortened else None)
    state = jobs.state()
    if call.options.export is not None:
        return _export(shop, jobs, call, every)
    if call.options.json:
        return call.emit({"jobs": [job_json(one) for one in every], "paused": state.paused})
    if not every:
        call.out.say("the queue is empty")
        return 0
    rows = [_cells(one, live=call.out.is_terminal) for one in every]
    call.out.table(("job", "state", "priority", "project", "run", "verdict", "cost", "request"), rows, flexible=7)
    for one in every:
        if one.reason and one.standing != JobOutcome.DONE:
            call.out.say(f"! job {one.id}: {one.reason}", "yellow")
    call.out.say(_summary(every) + ("; the queue is paused" if state.paused else ""))
    if shortened and len(every) >= MOST_ENDED:
        call.out.hint("older ones that have ended are shown by: pawl queue list --all")
    return 0


def _cells(job: Job, *, live: bool) -> tuple[str, ...]:
    priority = "critical" if job.priority == CRITICAL else str(job.priority)
    return (
        str(job.id),
        job.standing,
        priority,
        Path(job.workspace).name,
        job.run or "-",
        job.verdict or "-",
        money(job.cost),
        brief(job.order.text, 400 if live else 60),
    )


def _summary(jobs: Sequence[Job]) -> str:
    from pawl.agent.queue.job_queue import stats

    counts = stats(jobs)
    parts = ", ".join(f"{number} {word}" for word, number in counts.states.items())
    return f"{counted(counts.jobs, 'job')}: {parts}; {money(counts.cost)}"


def _export(shop: Project, jobs: JobQueue, call: Call, every: Sequence[Job]) -> int:
    """Everything there is of the queue."""
    from pawl.agent.queue.job_queue import stats

    body = {
        "jobs": [{**job_json(one), "after": jobs.after(one.id), "terms": one.order} for one in every],
        "state": jobs.state(),
        "stats": stats(every),
    }
    if call.options.export == "-":
        return call.emit(body)
    path = Path(call.options.export)
    bounded.write_given(path, f"{as_json(body)}\n".encode(), shop.workspace)
    return call.answer({"exported": str(path), "jobs": len(every)}, f"{counted(len(every), 'job')} written to {path}")


def _show(shop: Project, jobs: JobQueue, call: Call) -> int:
    job = jobs.get(_named(shop, jobs, call, most=1)[0])
    after = [str(one.job or one.run) + (" (if it fails)" if one.failed else "") for one in jobs.after(job.id)]
    if call.options.json:
        return call.emit({**job_json(job), "after": jobs.after(job.id)})
    lines = [f"job {job.id}: {job.standing}", f"request: {job.order.text}", f"workspace: {job.workspace}"]
    lines += [f"after: {', '.join(after)}"] if after else []
    lines += [f"requires: {', '.join(job.requires)}"] if job.requires else []
    lines += [f"run: {job.run} (attempt {job.attempts})"] if job.run else []
    lines += ["sent back: once, because it conflicted with what was promoted meanwhile"] if job.sent_back else []
    lines += [f"verdict: {job.verdict}"] if job.verdict else []
    lines += [f"entry: {job.entry}"] if job.entry is not None else []
    lines += [f"reason: {job.reason}"] if job.reason else []
    times = [(name, getattr(job, name)) for name in ("created", "started", "ended")]
    lines += [f"{name}: {when(str(time))}" for name, time in times if time]
    call.out.lines("\n".join((*lines, f"cost: {money(job.cost)}")))
    return 0


def _pause(shop: Project, jobs: JobQueue, call: Call) -> int:
    numbers, paused = _named(shop, jobs, call), call.options.action == "pause"
    jobs.pause(numbers, paused=paused)
    what = ", ".join(f"job {one}" for one in numbers) or "the queue"
    return call.answer({"paused": paused, "jobs": numbers}, f"{what} {'paused' if paused else 'resumed'}")


def _each(shop: Project, jobs: JobQueue, call: Call) -> int:
    """Cancel or retry."""
    cancels = call.options.action == "cancel"
    numbers = _named(shop, jobs, call)
    if call.options.all:
        unwanted = (JobOutcome.DONE, JobOutcome.CANCELLED)
        ended = (one for one in jobs.list() if (one.state is JobState.ENDED) is not cancels)
        numbers = [one.id for one in ended if cancels or one.outcome not in unwanted]
    with jobs.together():
        for one in numbers:
            jobs.cancel(one) if cancels else jobs.retry(one)
    what = ", ".join(f"job {one}" for one in numbers) or "nothing"
    word = "cancelled" if cancels else "queued"
    return call.answer({"jobs": numbers, "what": word}, f"{what} {word}{' again' if not cancels and numbers else ''}")


def _watch(shop: Project, jobs: JobQueue, call: Call) -> int:
    """Tells each change of a job until nothing is left to do."""
    known: dict[int, str] = {}
    pause = threading.Event()
    while True:
        every = jobs.list()
        for one in every:
            if known.get(one.id) != one.standing and not call.options.json:
                why = f": {one.reason}" if one.reason and one.state is JobState.ENDED else ""
                call.out.say(f"job {one.id}  {one.standing}  {brief(one.order.text, 60)}{why}")
            known[one.id] = one.standing
        if jobs.is_idle():
            break
        pause.wait(WATCH_SECONDS)
    return call.answer({"jobs": [job_json(one) for one in every]}, _summary(every))


def _stats(shop: Project, jobs: JobQueue, call: Call) -> int:
    from pawl.agent.queue.job_queue import stats

    found, state = stats(jobs.list()), jobs.state()
    if call.options.json:
        return call.emit({"stats": found, "state": state})
    states = ", ".join(f"{number} {word}" for word, number in found.states.items()) or "none"
    lines = [f"jobs: {found.jobs} ({states}) in {counted(found.workspaces, 'project')}"]
    lines += [f"attempts: {found.attempts}", f"cost: {money(found.cost)}"]
    if state.budget is not None:
        lines += [f"budget: {money(state.budget)}, {money(state.spent)} spent, {money(state.reserved)} reserved"]
    lines += [f"throughput: {found.per_hour:g} jobs an hour"] if found.per_hour else []
    for name, both in (("waited", found.waited_seconds), ("worked", found.worked_seconds)):
        lines += [f"{name}: {both[0]:g} s (half of the jobs), {both[1]:g} s (nine in ten)"] if both else []
    call.out.lines("\n".join(lines))
    return 0


def _run(shop: Project, jobs: JobQueue, call: Call) -> int:
    """Carry out what there is, and tell what came of it."""
    from pawl.agent.queue.job_queue import queue_settings

    workers = queue_settings(shop.config).workers if call.options.workers is None else call.options.workers
    check_range("--workers", workers, 1, 64, "one for each processor is plenty")
    began = jobs.now()
    budget = call.options.max_budget_usd
    if budget is not None:
        # Without it the limit stays that somebody has set, perhaps on another machine.
        jobs.allow(None if budget == "none" else amount_of("--budget", budget))
    if workers == 1:
        _work(shop, jobs, call, drains=True)
    else:
        _work_together(shop, call, workers)
    if call.interruptions.heard is not None:
        raise call.interruptions.heard
    state, ended = jobs.state(), jobs.list(ended_since=began)
    waits = jobs.list(state=JobState.WAITING)
    code = _ended(ended)
    # Paused meanwhile, or its workers died: what was not carried out is not done.
    left = sorted((*jobs.list(state=JobState.QUEUED), *jobs.list(state=JobState.RUNNING)), key=lambda one: one.id)
    code = code or (EXIT_WAITING if waits else 0 if all(one.blocked for one in left) else _CODES[JobOutcome.PARTLY])
    if state.left is not None and state.left <= 0 and not jobs.is_idle():
        raise BudgetExceeded(
            f"the budget of the queue is used up: {money(state.spent)} of {money(state.budget)}",
            advice="what is left stays queued: 'pawl queue run --budget USD' continues, or '--budget none'",
        )
    body = {"jobs": [job_json(one) for one in (*ended, *waits)], "left": [one.id for one in left], "exit_code": code}
    every = (*ended, *waits, *left)
    told = _summary(every) + ("; the queue is paused" if state.paused else "") if every else "nothing to do"
    for one in () if call.options.json or state.paused else left:
        if one.standing == JobState.QUEUED and (lacking := sorted({*one.requires} - _labels(shop, call) - {"files"})):
            call.out.say(f"! job {one.id} is left for a worker that has {', '.join(lacking)}", "yellow")
    return call.answer(body, told, code)


def _work_together(shop: Project, call: Call, many: int) -> None:
    """So many processes; one that dies by a signal is replaced, and its job taken over by another."""
    from pawl.agent.queue.job_queue import VARIABLE, server_of

    words = [sys.executable, "-P", "-m", "pawl", "-C", shop.workspace, "worker", "--drain", "--shares", str(many)]
    words += [word for label in call.options.label for word in ("--label", label)]
    # Not among the words, which every user of this machine can read.
    environment = {**shop.config.environment, VARIABLE: server_of(shop.config, call.options.queue)}
    out = subprocess.DEVNULL if call.options.json else None

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, env=environment)

    working, restarts = [started() for _ in range(many)], RESTARTS
    with call.interruptions.stopping() as stop:
        while working:
            for one in list(working):
                if one.poll() is None:
                    continue
                working.remove(one)
                if one.returncode < 0 and restarts and not stop.requested:
                    restarts -= 1
                    working.append(started())
            if stop.requested:
                for one in working:
                    one.terminate()
                for one in working:
                    one.wait()
                return
            threading.Event().wait(0.1)


_ACTIONS = {
    "add": _add,
    "list": _list,
    "show": _show,
    "pause": _pause,
    "resume": _pause,
    "cancel": _each,
    "retry": _each,
    "watch": _watch,
    "run": _run,
    "stats": _stats,
}
DECLARED = {
    "queue": Command(
        words=queue_words,
        example="pawl queue add 'make the tests pass'\n  pawl queue run --workers 2",
        reads=frozenset(_ACTIONS) - {"add"},
        read=mixed,
    ),
    "worker": Command(words=worker_words, example="pawl worker", reads=True),
}
