"""The first nodes of a run: what is asked for, and what needs no change of ours: a question, a command, an undo."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pawl.agent.answers import AnswerShelf, citations
from pawl.agent.briefing import line_count
from pawl.agent.context import LoopEnd, TurnInput, Unanswered
from pawl.agent.intents import (
    IntentGuess,
    as_one,
    command_of,
    examples,
    from_plan,
    is_large,
    own_words,
    phrase_file,
    understood,
)
from pawl.agent.nodes import Workbench
from pawl.agent.own_extensions import own_phrases_of
from pawl.agent.record import ReflexResult, WorkName
from pawl.agent.request_scope import from_form
from pawl.agent.routes import NodeOutcome
from pawl.agent.tools.toolbox import OutputLines
from pawl.agent.works import is_there
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import Check, CheckResult, Diagnostic, Status, Verdict
from pawl.core.errors import CannotFix, HookRefused, NoTests, SchemaUnmet, UsageError
from pawl.core.events import CommandPrinted, TasksPlanned, Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import DeliveryState, Intent, Mode, RoleName, RunCursor, RunRequest, Stage
from pawl.settings.guardrails import Decision
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent import contract_models


COMMAND_TOOL = "run_command"
NOTHING_FAILS = "nothing fails"
MOST_SHOWN = 20
MOST_OUTPUT = 20_000
EXIT = {LoopEnd.ANSWERED: 0, LoopEnd.OUT_OF_TURNS: 53, LoopEnd.OUT_OF_TIME: 53}
"""Of a question by how its talk ended; 1 for every other end."""
MAIN = "main"
_CHECKS = {"tests": None, "lint": Check.LINT, "types": Check.TYPECHECK}
ABOUT = {
    Intent.READ: "answers questions about the workspace, from its files",
    Intent.EDIT: "changes code on a bench, verifies it, shows it, promotes it when you say so",
    Intent.FIX: "repairs failing tests by search, with no model; a model works on what is left",
    Intent.RUN: "runs tests, linters and commands in a sandbox",
    Intent.UNDO: "undoes what it did",
    Intent.PROFILE: "says what it can do",
}


def intent(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Plain words tell what is asked for. Everything else goes to the agent, which may simply answer; no model is
    asked only to sort a request."""
    record = bench.record
    if record.data.intent is not None:
        return NodeOutcome(record.data.intent.intent.value)
    found = intended(bench.shop, record.order)
    record.keep(replace(record.data, intent=found))
    record.note("intent", {"intent": found.intent})
    return NodeOutcome(found.intent.value)


def intended(shop: Project, order: RunRequest) -> IntentGuess:
    """What the request asks for, by the command that it came by or its plain words."""
    chat = order.mode is Mode.CHAT
    named = Intent.LOOP if order.loop.get("ladder") else order.intent
    if named is not None:
        found = IntentGuess(intent=named)
    else:
        unsaid = IntentGuess(intent=Intent.READ if chat else Intent.EDIT, unsaid=not chat)
        found = understood(order.text, own_phrases_of(shop.config, shop.workspace)) or unsaid
    changes = found.intent in (Intent.EDIT, Intent.FIX, Intent.UNDO)
    return replace(found, intent=Intent.READ) if chat and changes else found


def read(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Answers from the files, in chat mode; an answer that was given before and still holds will do."""
    record, talks, files = bench.record, bench.talks, bench.works.desk.files
    if record.data.exit_code is not None:
        return NodeOutcome.DONE
    order = record.order
    line = TurnInput(talk="read", role=RoleName.ARTISAN, text=order.text, mode=Mode.CHAT, history=talks.earlier())
    shelf = None
    if not (line.history or order.fresh or order.record or order.pictures):
        shelf = AnswerShelf.of(bench.shop, talks.terms, order.text, talks.standing)
    kept = None if shelf is None else shelf.standing(files)
    try:
        spoken = talks.say(line) if kept is None else talks.repeat(line, kept.text)
    except Unanswered as waiting:
        record.keep(replace(record.data, question=waiting.question, response=None))
        return NodeOutcome.ASK
    cited = citations(spoken.text, lambda path: line_count(files, path))
    answered = spoken.ended is LoopEnd.ANSWERED and all(one.holds for one in cited)
    # What another model said in the place of this one is not kept as its answer, nor what was read before a stop.
    if shelf is not None and kept is None and answered and not (talks.heard.fell_back or talks.heard.replayed):
        shelf.keep(spoken.text, files)
    code = EXIT.get(spoken.ended, 1)
    came = replace(
        record.data,
        answer=spoken.text,
        ended=spoken.ended,
        exit_code=code,
        asked_model=talks.terms.model,
        cached="" if kept is None else kept.created,
        citations=cited,
        fell_back=tuple((one.model, one.to, one.why) for one in talks.heard.fell_back),
    )
    record.keep(came)
    record.deliver(DeliveryState.NEEDS_WORK if code else DeliveryState.DONE)
    return NodeOutcome.DONE


def run(bench: Workbench, place: RunCursor) -> NodeOutcome:
    known = bench.record.data.intent
    return _done(bench, lambda: _ran(bench, known.command if known is not None else ""))


def undo(bench: Workbench, place: RunCursor) -> NodeOutcome:
    return _done(bench, lambda: _undone(bench))


def profile(bench: Workbench, place: RunCursor) -> NodeOutcome:
    return _done(bench, _profile)


def mend(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """The cheapest thing that works goes first: a search without a model. What it leaves goes to one."""
    record = bench.record
    known = record.data.mend
    if known is None:
        bench.talks.warn_of_models(())
        known, changes = _reflex(bench)
        if changes:
            record.keep_work(WorkName.MENDED, changes)
        record.keep(replace(record.data, mend=known))
        record.note("mend", {"found": known.found, "reason": known.reason})
    mended = record.work(WorkName.MENDED)
    if known.found and mended is not None:
        bench.works.adopt(mended)
        plan, answer = as_one(record.order.text), "The reflex found the fix; no model was asked."
        record.keep(replace(record.data, plan=plan, answer=answer))
        return NodeOutcome.DONE
    if bench.talks.configured and known.reason != NOTHING_FAILS:
        bench.listen(Warned(f"the reflex found no patch ({known.reason}): a model is asked"))
        return NodeOutcome.EDIT
    state = DeliveryState.DONE if known.reason == NOTHING_FAILS else DeliveryState.NEEDS_WORK
    record.keep(replace(record.data, answer="\n".join(filter(None, (known.reason, known.advice)))))
    record.deliver(state)
    return NodeOutcome.NOTHING


def _reflex(bench: Workbench) -> tuple[ReflexResult, ChangeSet | None]:
    """The reflex's changes; without any, why it found none and what to do about it."""
    from pawl.checks.verdict import proves
    from pawl.repair.fixer import fix
    from pawl.repair.model import FixOutcome, FixRequest
    from pawl.repair.strategy import kept_rivals

    request = FixRequest(
        test_command=bench.record.order.test_command,
        seconds=bench.within(bench.shop.config.settings.fix_seconds),
        dry_run=True,
        objective=bench.record.order.text,
    )
    record = bench.record
    try:
        report = fix(bench.shop, request, bench.listen)
    except (NoTests, CannotFix) as error:
        return ReflexResult(found=False, reason=error.message, advice=error.advice), None
    if report.outcome is FixOutcome.NOTHING_FAILS:
        left = bench.works.verifier.failing_tests()
        fails = left.standing is Status.FAIL or not proves(left)
        return ReflexResult(found=False, reason=f"{left.step}: {left.reason}" if fails else NOTHING_FAILS), None
    if report.outcome is not FixOutcome.FIXED:
        reason = report.reason or str(report.outcome)
        if report.rivals:
            record.keep(replace(record.data, alternatives=kept_rivals(bench.shop, report.rivals, EMPTY)))
        return ReflexResult(found=False, reason=reason, advice=report.advice), None
    return ReflexResult(found=bool(report.changes)), report.changes


def plan(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """One task where the request is small; the form's own steps; else what a planner makes of it."""
    record = bench.record
    if record.data.plan:
        return NodeOutcome.DONE
    bench.talks.check_model()
    request = record.order.text
    tasks = from_form(request, bench.shop.workspace, partial(is_there, bench.shop))
    if not tasks and is_large(own_words(request)):
        line = TurnInput(
            talk="plan", role=RoleName.PLANNER, text=request, stage=Stage.PLAN, history=bench.talks.earlier()
        )
        try:
            value: contract_models.PlannedChanges = bench.talks.say(line).value  # type: ignore[assignment]
            tasks = from_plan(request, [one.model_dump() for one in value.plan], bench.works.order)
        except SchemaUnmet as error:
            record.note("no plan", {"error": error.code})
            bench.listen(Warned("the planner's answer cannot be used; the request is done as one task"))
    tasks = tasks or as_one(request)
    record.keep(replace(record.data, plan=tasks))
    if len(tasks) > 1:
        bench.listen(TasksPlanned(tuple(task.what.partition("\n")[0] for task in tasks)))
    record.note("plan", {"tasks": [task.what[:200] for task in tasks]})
    return NodeOutcome.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The result of a request that needs no change of ours and no model."""

    text: str
    exit_code: int = 0
    verdicts: tuple[CheckResult, ...] = ()
    verdict: Verdict | None = None
    """On the workspace as it stands, where its tests were run."""
    unproved: tuple[str, ...] = ()
    kept: int | None = None
    entry: int | None = None


def _done(bench: Workbench, act: Callable[[], Action]) -> NodeOutcome:
    """It is done once; what came of it is the answer, and whether it succeeded the delivery."""
    record = bench.record
    if record.data.exit_code is None:
        came = act()
        done = replace(
            record.data,
            answer=came.text,
            exit_code=came.exit_code,
            kept=came.kept,
            entry=came.entry,
            verdicts=tuple((one.step, str(one.standing), one.reason) for one in came.verdicts),
            verdict=came.verdict,
            unproved=came.unproved,
            after=next((one.counts for one in came.verdicts if one.counts), None),
        )
        record.keep(done)
        state = DeliveryState.UNVERIFIED if came.verdict is Verdict.UNVERIFIED else DeliveryState.NEEDS_WORK
        record.deliver(DeliveryState.DONE if came.exit_code == 0 else state)
    return NodeOutcome.DONE


def _ran(bench: Workbench, command: str) -> Action:
    """With the hooks that a model's call of the same would have."""
    command = _main_program(bench) if command == MAIN else command
    given, call = {"command": command}, f"{bench.record.run}.run"
    outcome = bench.hooking.before_tool(COMMAND_TOOL, given, call)
    if outcome is not None:
        if outcome.blocked or outcome.permission is Decision.DENY:
            raise HookRefused(f"a hook denies {command!r}: {outcome.reason}", advice="see [hooks] in settings.md")
        command = str((outcome.updated_input or given).get("command", command))
    if command in _CHECKS:
        done = _told_of(_checked(bench, _CHECKS[command]))
        done = _judged(bench, done) if command == "tests" else done
    else:
        done = _command(bench, command)
    failed = done.exit_code != 0
    told = bench.hooking.after_tool(COMMAND_TOOL, {"command": command}, done.text, failed=failed, call=call)
    return replace(done, text=f"{done.text}{told}") if told else done


def _main_program(bench: Workbench) -> str:
    names = phrase_file()["words"][MAIN]
    found = next((name for name in names if is_there(bench.shop, name)), None)
    if found is None:
        raise UsageError(f"there is no {names[0]}, nor another main file", advice="name the file, as in: run app.py")
    return command_of(found)


def _checked(bench: Workbench, check: Check | None) -> tuple[CheckResult, ...]:
    from pawl.checks.bench_checker import CHECKS
    from pawl.checks.project_facts import CheckKind

    return bench.works.verifier.check((CheckKind.TESTS,) if check is None else CHECKS[check])


def _command(bench: Workbench, command: str) -> Action:
    """In the sandbox; what it changed is kept as an entry and not promoted."""
    from pawl.checks.output import printed
    from pawl.workspace.benches import CommandRequest, keep, run_on_bench

    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be read: {error}", advice="close the quotes") from error
    if not words:
        raise UsageError("it is not clear what to run", advice="name the command, such as 'run main.py'")
    seconds = bench.within(bench.shop.config.settings.run_seconds)
    # A shell reads it, as it would for the user; it is confined like any other command.
    request = CommandRequest(argv=words if _is_plain(command) else ("/bin/sh", "-c", command), seconds=seconds)
    lines = OutputLines(lambda line: bench.listen(CommandPrinted(line)))
    ran = run_on_bench(bench.shop, request, on_output=lines.feed)
    landing = keep(bench.shop, ran)
    code = ran.completed.code if ran.completed.code is not None else 1
    return Action(text=printed(ran.completed)[-MOST_OUTPUT:], exit_code=code, kept=landing.kept)


def _undone(bench: Workbench) -> Action:
    from pawl.workspace.reversal import Wish

    reversal = bench.shop.undo(None, Wish())
    paths = ", ".join(sorted(reversal.changes.paths))
    entry = None if reversal.promotion is None else reversal.promotion.entry
    return Action(text=f"{reversal.title}: {paths}", entry=entry)


def _profile() -> Action:
    lines = ["Pawl changes code on a bench, promotes what was verified, and undoes anything.", ""]
    said: dict[Intent, str] = {}
    for intent, example in examples():
        said.setdefault(intent, example)
    lines += [f"- {about}, such as {said[intent]!r}" for intent, about in ABOUT.items()]
    lines += ["", "Commands: pawl --help. Models: pawl models. What each role may do: pawl policy."]
    return Action(text="\n".join(lines))


def _is_plain(command: str) -> bool:
    return not any(sign in command for sign in "|&;<>$`*?(){}~\n")


def _told_of(verdicts: tuple[CheckResult, ...]) -> Action:
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.step}: {verdict.reason or verdict.standing}")
        lines += [_line(finding) for finding in verdict.findings[:MOST_SHOWN]]
        if len(verdict.findings) > MOST_SHOWN:
            lines.append(f"  … and {len(verdict.findings) - MOST_SHOWN} more")
    bad = not verdicts or any(verdict.standing is not Status.PASS for verdict in verdicts)
    return Action(text="\n".join(lines) or "the project has no such check", exit_code=int(bad), verdicts=verdicts)


def _judged(bench: Workbench, ran: Action) -> Action:
    """With the verdict that `pawl verify` has on the same results."""
    from pawl.checks.verdict import TESTS
    from pawl.checks.verify_report import VerifyReport

    asked = (TESTS,) if bench.works.verifier.test_command else ()
    verdict = VerifyReport(digest="", verdicts=ran.verdicts, seconds=0.0, asked=asked).judgement
    lines = (ran.text, f"verdict   {verdict.verdict}", *(f"! {one}" for one in verdict.unproved), *verdict.notes)
    code = {Verdict.VERIFIED: 0, Verdict.UNVERIFIED: 6}.get(verdict.verdict, 1)
    return replace(ran, text="\n".join(lines), exit_code=code, verdict=verdict.verdict, unproved=verdict.unproved)


def _line(finding: Diagnostic) -> str:
    parts = (finding.test or finding.place, finding.label, finding.first_line)
    return "  " + " ".join(part for part in parts if part)
