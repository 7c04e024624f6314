"""`pawl loop`: climbs from the cheapest tier up until the checks accept what was made, or a limit is reached."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import PathRefused, UsageError
from pawl.core.run import Approval, Report, RunRequest
from pawl.ui.cli.call import Call, amount_of, check_range
from pawl.ui.cli.do import carry
from pawl.ui.cli.parser import (
    Command,
    CommandParser,
    accept_option,
    model_option,
    record_option,
    test_option,
    thinking_options,
)

if TYPE_CHECKING:
    from pawl.agent.session import Session
    from pawl.workspace.project import Project

LIKE_A_FILE = re.compile(r"\S*/\S*|\S*\w\.\w+")
"""A word that nobody begins a sentence with."""
TARGET = "name the file that is to change, or put what is wanted in quotes"


SIMPLE = 5


def loop_words(parser: ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="TARGET", help="the file to change (default: detected)")
    parser.add_argument("objective", nargs="*", metavar="OBJECTIVE", help="the aim (default: failing tests pass)")
    parser.add_argument(
        "--simple", nargs="?", type=int, const=SIMPLE, metavar="N", help="iterations of simple mode (default 5)"
    )
    parser.add_argument("--full", action="store_true", help="begin with full mode: librarian, artisan, critic")
    parser.add_argument("--no-escalate", action="store_true", help="stop after the first tier that asks a model")
    parser.add_argument("--no-reflex", action="store_true", help="skip the search without a model")
    parser.add_argument("--tiers", metavar="FILE", help="read the tiers from a YAML file, which overrides the flags")
    test_option(parser)
    parser.add_argument("--no-generate", action="store_true", help="do not write a test for a target that has none")
    parser.add_argument("--max-cost", metavar="USD", help="stop before a request that could cost more (default 5)")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens (default 5,000,000)")
    parser.add_argument("--max-minutes", type=float, metavar="N", help="overall time limit (default 240)")
    parser.add_argument("--max-iterations", type=int, metavar="N", help="iterations of all tiers (default 100)")
    parser.add_argument("--samples", type=int, metavar="N", help="attempts per iteration; the checks choose")
    parser.add_argument("--parallel", type=int, metavar="N", help="attempts side by side, each on its own bench")
    parser.add_argument("--chaos", action="store_true", help="attack a verified change before it counts")
    parser.add_argument(
        "--approve",
        choices=["final", "never"],
        default="never",
        help="ask before a verified change is promoted, or only above the guardrails' limits (default)",
    )
    accept_option(parser)
    model_option(parser)
    thinking_options(parser)
    parser.add_argument("--resume", nargs="?", const="", metavar="RUN", help="resume an interrupted loop")
    record_option(parser)
    parser.add_argument("--max-runtime", type=float, metavar="SECONDS", help="the same as --max-minutes, in seconds")
    parser.add_argument("--completion-promise", metavar="TEXT", help="accepted and ignored: the checks decide")


def audit_words(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="one run (default: the newest loop)")
    parser.add_argument("--list", action="store_true", help="list every loop")


def read(parser: CommandParser, words: list[str]) -> Namespace:
    """`--simple` before a word that is no number stands alone."""
    made: list[str] = []
    for number, word in enumerate(words):
        alone = word == "--simple" and not re.fullmatch(r"-?\d+", "".join(words[number + 1 : number + 2]))
        made.append(f"--simple={SIMPLE}" if alone else word)
    return parser.parse_intermixed_args(made)


DECLARED = {
    "loop": Command(
        words=loop_words,
        example="pawl loop\n  pawl loop src/cart.py 'prices are rounded once' --simple 3 --max-cost 0.50",
        read=read,
    ),
    "audit": Command(words=audit_words, example="pawl audit\n  pawl audit r4f1c09ab --json", reads=True),
}


def loop(shop: Project, call: Call) -> int:
    begin = partial(_started, shop=shop, call=call)
    return carry(shop, call, begin, thoughts=call.options.thoughts)


def after_reflex(shop: Project, call: Call, target: str) -> RunRequest:
    """A loop over what the reflex left, on the tiers above it."""
    from pawl.agent.escalation import MOST_COST, LadderWish, LoopWish, loop_of

    options = call.options
    wish = LoopWish(target=target, test_command=call.test_command, model=options.model or "")
    # The user is told the most that it may cost, so that this is a limit like one of his own.
    most = amount_of("--max-cost", options.max_cost)
    left = None if shop.stop is None else max(0.001, round(shop.stop.left / 60, 3))
    ladder = LadderWish(reflex=False, max_cost=most, allowed_cost=MOST_COST, max_minutes=left)
    order, _ = loop_of(shop, wish, ladder)
    return order


def _started(session: Session, shop: Project, call: Call) -> Report:
    if call.options.resume is not None:
        from pawl.agent.escalation import interrupted_loop

        return session.resume(call.options.resume or interrupted_loop(shop))
    order, warnings = _order(shop, call)
    for warning in warnings:
        call.aside.say(f"! {warning}", "yellow")
    return session.do(order, since=call.started)


def _order(shop: Project, call: Call) -> tuple[RunRequest, tuple[str, ...]]:
    from pawl.agent.escalation import LadderWish, LoopWish, loop_of

    options = call.options
    if options.max_tokens is not None:
        check_range("--max-tokens", options.max_tokens, 1, 10**12, "5,000,000 is usual")
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
        max_cost=amount_of("--max-cost", options.max_cost),
        max_minutes=minutes,
        max_iterations=options.max_iterations,
        samples=options.samples,
        parallel=options.parallel,
        chaos=options.chaos,
    )
    wish = LoopWish(
        objective=objective,
        target=target,
        test_command=call.test_command,
        generate=not options.no_generate,
        approval=Approval(options.approve),
        accept_unverified=options.accept_unverified,
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
        raise UsageError(f"{words[0]!r} is a folder", advice=TARGET)
    if not os.path.isfile(place):
        if LIKE_A_FILE.fullmatch(words[0]):
            raise UsageError(f"there is no file {words[0]!r}", advice=TARGET)
        return "", " ".join(words)
    return inside, " ".join(words[1:])


def audit(shop: Project, call: Call) -> int:
    from pawl.agent.climb_record import as_markdown, audited

    if call.options.list:
        return _list(shop, call)
    found = audited(shop, call.options.run)
    return call.answer(found, as_markdown(found).rstrip("\n"))


def _list(shop: Project, call: Call) -> int:
    from pawl.agent.climb_record import audited_runs

    if call.options.run is not None:
        raise UsageError("--list takes no run", advice="leave out one of them")
    runs = audited_runs(shop)
    if call.options.json:
        return call.emit({"runs": runs})
    for one in runs:
        call.out.lines(f"{one['run']}  {one['began']}  {one['why'] or 'under way':<10}  {one['objective']}")
    if not runs:
        call.out.say("no loop has run in this workspace yet")
    return 0
