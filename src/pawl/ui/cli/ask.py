"""`pawl ask`: a question about the workspace, answered by a model that may only read: a run in chat mode."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.core.errors import Cancelled, UsageError
from pawl.core.run import Approval, Intent, Mode, Report, RunRequest
from pawl.ui.cli.call import Call
from pawl.ui.cli.do import chosen_conversation, piped_input, shown_session, spending
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import (
    Command,
    continue_option,
    model_option,
    record_option,
    spending_options,
    thinking_options,
)
from pawl.ui.screen.run_report import tell_ended
from pawl.ui.screen.screen import counted, money, when

if TYPE_CHECKING:
    from pawl.agent.session import Session
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", metavar="QUESTION", help="your question; piped input is sent with it")
    model_option(parser)
    thinking_options(parser)
    spending_options(parser, seconds=1800)
    continue_option(parser)
    parser.add_argument("--conversation", metavar="ID", help="continue this conversation")
    parser.add_argument("--no-cache", action="store_true", help="ask again even if a stored answer still holds")
    record_option(parser)


DECLARED = {
    "ask": Command(
        words=words,
        example="pawl ask 'where are orders priced?'\n  git diff | pawl ask --model ollama/qwen3-coder 'is it right?'",
        reads=True,
    )
}


def ask(shop: Project, call: Call) -> int:
    with shown_session(shop, call, thoughts=call.options.thoughts) as session:
        order = _order(session, call)
        report = session.do(order, since=call.started)
        error, heard = session.error, call.interruptions.heard
        if isinstance(error, Cancelled) and heard is not None:
            raise heard from None
        if error is not None:
            raise error
    if call.options.json:
        call.emit(_json(report))
    else:
        _tell(report, call)
    return report.exit_code or 0


def _order(session: Session, call: Call) -> RunRequest:
    options = call.options
    text = piped_input(call, " ".join(options.question))
    if not text.strip():
        raise UsageError("there is no question", advice="pawl ask 'where is the configuration read?'")
    return RunRequest(
        text=text,
        mode=Mode.CHAT,
        intent=Intent.READ,
        approval=Approval.NEVER,
        attended=False,
        model=options.model or "",
        reasoning=options.reasoning or "",
        budget=spending(call),
        conversation=chosen_conversation(session, call),
        record=options.record or "",
        fresh=options.no_cache,
    )


def _tell(report: Report, call: Call) -> None:
    for notice in report.notices:
        call.aside.say(f"! {notice}", "bold yellow")
    wrong = [f"{one.path}:{one.line}" for one in report.citations if not one.holds]
    if wrong:
        call.aside.say(f"! the answer cites what does not exist: {', '.join(wrong)}", "bold yellow")
    if report.cached:
        call.aside.hint(
            f"{report.model} · answered {when(report.cached)}; nothing it depends on has changed · $0.00 · "
            "ask again with: --no-cache"
        )
        return
    tell_ended(report.ended, call.aside)
    cached = f" ({report.cached_tokens:,} cached)" if report.cached_tokens else ""
    about = "about " if report.estimated else ""
    call.aside.hint(
        f"{report.model} · {counted(report.requests, 'request')} · {about}{report.input_tokens:,} tokens in{cached}, "
        f"{report.output_tokens:,} out · {money(report.cost)}"
        f"{'' if report.ended == 'empty' else ' · continue with: pawl ask -c'}"
    )


def _json(report: Report) -> Json:
    return {
        **picked(report, "answer ended model asked_model run conversation"),
        "cached": bool(report.cached),
        "requests": report.requests,
        "usage": picked(report, "input_tokens output_tokens cached_tokens estimated"),
        "cost_usd": report.cost,
        "citations": report.citations,
        "fell_back": [{"model": model, "to": to, "why": why} for model, to, why in report.fell_back],
        "notices": report.notices,
    }
