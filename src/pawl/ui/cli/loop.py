"""`pawl loop`: climbs from the cheapest tier up until the checks accept what was made, or a limit is reached."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

from pawl.agent.audit import as_markdown, audited, audited_runs
from pawl.agent.escalation import MOST_COST, LadderWish, LoopWish, interrupted_loop, loop_of
from pawl.agent.session import Session
from pawl.core.errors import PathRefused, UsageError
from pawl.core.run import Approval, Report, RunRequest, RunState
from pawl.core.tiers import Attempt, AttemptEnd, EscalationState
from pawl.ui.cli.call import Call
from pawl.ui.cli.do import carry
from pawl.ui.cli.shapes import as_body, exit_code, words_of
from pawl.ui.screen.report import attempts, changes_of, show_waiting, tell
from pawl.ui.screen.talk import money
from pawl.workspace.project import Project

LIKE_A_FILE = re.compile(r"\S*/\S*|\S*\w\.\w+")
"""A word that nobody begins a sentence with."""
TARGET = "name the file that is to change, or put what is wanted in quotes"


def loop(shop: Project, call: Call) -> int:
    begin = partial(_started, shop=shop, call=call)
    return carry(shop, call, begin, finish=finish, thoughts=call.options.thoughts)


def after_reflex(shop: Project, call: Call, target: str) -> RunRequest:
    """What the reflex left, on the tiers above it."""
    options = call.options
    wish = LoopWish(target=target, test_command=words_of(options.test), model=options.model or "")
    # The user is told the most that it may cost, so that this is a limit like one of his own.
    ladder = LadderWish(reflex=False, max_cost=_money(options.max_cost), allowed_cost=MOST_COST)
    order, _ = loop_of(shop, wish, ladder)
    return order


def _started(session: Session, shop: Project, call: Call) -> Report:
    if call.options.resume is not None:
        return session.resume(call.options.resume or interrupted_loop(shop))
    order, warnings = order_of(shop, call)
    for warning in warnings:
        call.aside.say(f"! {warning}", "yellow")
    return session.do(order)


def order_of(shop: Project, call: Call) -> tuple[RunRequest, tuple[str, ...]]:
    options = call.options
    target, objective = _words(shop, call)
    minutes = options.max_minutes
    if minutes is None and options.max_runtime is not None:
        minutes = options.max_runtime / 60
    ladder = LadderWish(
        simple=options.simple,
        full=options.full,
        escalate=not options.no_escalate,
        reflex=not options.no_reflex,
        tiers=None if options.tiers is None else Path(options.tiers),
        max_cost=_money(options.max_cost),
        max_minutes=minutes,
        max_iterations=options.max_iterations,
        samples=options.samples,
        parallel=options.parallel,
        chaos=options.chaos,
    )
    wish = LoopWish(
        objective=objective,
        target=target,
        test_command=words_of(options.test),
        generate=not options.no_generate,
        approval=Approval(options.approve),
        model=options.model or "",
        reasoning=options.reasoning or "",
        max_tokens=options.max_tokens,
        record=options.record or "",
    )
    order, warnings = loop_of(shop, wish, ladder)
    if options.completion_promise is not None:
        warnings = (*warnings, "--completion-promise is not relied on: the checks decide when it is done")
    return order, warnings


def _words(shop: Project, call: Call) -> tuple[str, str]:
    """The first word is the target where it names a file of the workspace; everything else is the objective."""
    words = [word for word in (call.options.target, *call.options.objective) if word]
    if not words:
        return "", ""
    try:
        inside = call.inside(shop.workspace, words[0])
    except PathRefused as error:
        if words[0] == "." or ("/" in words[0] and " " not in words[0]):
            raise UsageError(error.message, advice=error.advice) from error
        return "", " ".join(words)
    place = os.path.join(shop.workspace, inside)
    if os.path.isdir(place):
        raise UsageError(
            f"{words[0]!r} is a folder", advice="name the file that is to change, or what is wanted in quotes"
        )
    if not os.path.isfile(place):
        if LIKE_A_FILE.fullmatch(words[0]):
            raise UsageError(f"there is no file {words[0]!r}", advice=TARGET)
        return "", " ".join(words)
    return inside, " ".join(words[1:])


def _money(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation as error:
        raise UsageError(f"--max-cost {text!r} is no amount", advice="give dollars such as 2.50") from error


def finish(shop: Project, report: Report, call: Call) -> int:
    changes = changes_of(shop, report)
    if call.options.json:
        call.emit({**as_body(shop, report, changes), "loop": loop_json(report.climb)})
        return exit_code(report)
    if report.state is RunState.WAITING and not call.can_ask:
        show_waiting(shop, report, call, changes)
    if report.climb is not None:
        _tell_tiers(report.climb, call)
    tell(shop, report, call, changes)
    return exit_code(report)


def _tell_tiers(climb: EscalationState, call: Call) -> None:
    """The report over all tiers."""
    left = {gate.tier: gate.reason for gate in climb.gates}
    for number, tier in enumerate(climb.ladder.tiers):
        made = climb.of_tier(number)
        if not made and number not in left:
            continue
        cost = sum((one.cost for one in made if one.cost is not None), Decimal(0))
        ended = "verified" if any(one.end is AttemptEnd.VERIFIED for one in made) else left.get(number, "not verified")
        call.out.say(f"tier      {tier.name}: {attempts(len(made))}, {money(cost)}, {ended}")


def loop_json(climb: EscalationState | None) -> dict[str, object] | None:
    if climb is None:
        return None
    return {
        "failing": list(climb.failing),
        "tiers": [{"name": tier.name, "mode": tier.mode, "iterations": tier.iterations} for tier in climb.ladder.tiers],
        "left": [{"tier": gate.tier, "reason": gate.reason} for gate in climb.gates],
        "attempts": [attempt_json(one) for one in climb.attempts],
    }


def attempt_json(one: Attempt) -> dict[str, object]:
    return {
        "tier": one.at.tier,
        "iteration": one.at.number,
        "sample": one.sample,
        "mode": one.mode,
        "model": one.model,
        "ended": one.end,
        "failing": None if one.failing is None else list(one.failing),
        "paths": list(one.paths),
        "refused": list(one.refused),
        "better": one.better,
        "cost_usd": None if one.cost is None else float(one.cost),
        "tokens": one.tokens,
        "seconds": one.seconds,
    }


def audit(shop: Project, call: Call) -> int:
    if call.options.list:
        return _list(shop, call)
    found = audited(shop, call.options.run)
    if call.options.json:
        call.emit(_plain(found))
    else:
        call.out.lines(as_markdown(found).rstrip("\n"))
    return 0


def _list(shop: Project, call: Call) -> int:
    if call.options.run is not None:
        raise UsageError("--list and a run cannot both be had", advice="leave out one of them")
    runs = audited_runs(shop)
    if call.options.json:
        call.emit({"runs": [_plain(one) for one in runs]})
        return 0
    for one in runs:
        call.out.lines(f"{one['run']}  {one['began']}  {one['why'] or 'under way':<10}  {one['objective']}")
    if not runs:
        call.out.say("no ladder was climbed in this workspace yet")
    return 0


def _plain(value: Any) -> Any:
    """As JSON has it: amounts of money are numbers."""
    match value:
        case Decimal():
            return float(value)
        case Mapping():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return value
