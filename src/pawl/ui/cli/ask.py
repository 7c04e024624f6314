"""`pawl ask`: a question about the workspace, answered by a model that may only read."""

from __future__ import annotations

import os
import stat
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.dialogue import FellBack
from pawl.core.errors import Cancelled, UsageError
from pawl.core.events import RunEvent
from pawl.core.run import Reasoning
from pawl.ui.cli.call import Call, amount_of
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import (
    Command,
    continue_option,
    model_option,
    record_option,
    spending_options,
    thinking_options,
)
from pawl.ui.screen.renderer import EventRenderer
from pawl.ui.screen.report import ENDED
from pawl.ui.screen.screen import counted, money, when

if TYPE_CHECKING:
    from pawl.agent.asking import AskRequest, Replied
    from pawl.workspace.project import Project

MOST_INPUT = 200_000
"""Bytes of stdin that are sent: as many from its start as from its end, where errors stand."""
LONGEST_INPUT = 64 << 20
"""Bytes of stdin that are read; what never ends is left there."""


def words(parser: ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", metavar="QUESTION", help="your question; piped input is sent with it")
    model_option(parser)
    thinking_options(parser)
    spending_options(parser)
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
EXIT = {"answered": 0, "cut_off": 1, "empty": 1, "refused": 1, "stuck": 1, "out_of_turns": 53, "out_of_time": 53}


def ask(shop: Project, call: Call) -> int:
    from pawl.agent import asking

    question = _question(call)
    renderer = EventRenderer(call, call.meter, raw=not call.out.is_terminal, thoughts=call.options.thoughts)
    fell_back: list[FellBack] = []

    def listen(event: RunEvent) -> None:
        if isinstance(event, FellBack):
            fell_back.append(event)
        if not call.options.json:
            renderer.hear(event)

    with call.interruptions.stopping() as cancel:
        try:
            replied = asking.ask(shop, question, listen, cancel)
        except Cancelled:
            heard = call.interruptions.heard
            if heard is None:
                raise
            raise heard from None
        finally:
            renderer.finish()
    if call.options.json:
        call.emit(_json(replied, fell_back))
    else:
        _tell(replied, call)
    return EXIT[replied.spoken.ended]


def _question(call: Call) -> AskRequest:
    from pawl.agent.asking import AskRequest

    options = call.options
    return AskRequest(
        text=piped_input(call, " ".join(options.question)),
        model=options.model or "",
        reasoning=Reasoning(options.reasoning) if options.reasoning else None,
        budget=spending(call),
        conversation=options.conversation or "",
        latest=options.go_on,
        record=Path(options.record) if options.record else None,
        cache=not options.no_cache,
    )


def piped_input(call: Call, words: str) -> str:
    """The words with what comes through a pipe or from a file; alone or as `-` they stand for the input itself."""
    words = words.strip()
    piped = _stdin(call)
    if words in ("", "-"):
        return piped
    return f"{words}\n\n<stdin>\n{piped}\n</stdin>" if piped.strip() else words


def _stdin(call: Call) -> str:
    """Empty for a terminal or a device, which is not waited for."""
    if sys.stdin is None:
        return ""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    data = sys.stdin.buffer.read(LONGEST_INPUT)
    left_out = len(data) - MOST_INPUT
    if left_out <= 0:
        return data.decode("utf-8", "replace")
    call.aside.say(f"! the input is long: {left_out:,} bytes in its middle are not sent", "bold yellow")
    start, end = data[: MOST_INPUT // 2], data[-MOST_INPUT // 2 :]
    return f"{start.decode('utf-8', 'replace')}\n[… {left_out:,} bytes left out …]\n{end.decode('utf-8', 'replace')}"


def spending(call: Call) -> dict[str, object]:
    """The limits that the options set."""
    options = call.options
    budget: dict[str, object] = {}
    if (amount := amount_of("--max-budget-usd", options.max_budget_usd)) is not None:
        budget["money"] = str(amount)
    for name, value in (("tokens", options.max_tokens), ("turns", options.max_turns)):
        if value is not None:
            if value < 1:
                raise UsageError(f"--max-{name} {value} is below 1", advice="give a whole number from 1 on")
            budget[name] = value
    return budget


def _tell(replied: Replied, call: Call) -> None:
    spoken = replied.spoken
    if replied.notice:
        call.aside.say(f"! {replied.notice}", "bold yellow")
    wrong = [f"{one.path}:{one.line}" for one in replied.citations if not one.holds]
    if wrong:
        call.aside.say(f"! the answer cites what is not there: {', '.join(wrong)}", "bold yellow")
    if replied.cached:
        call.aside.hint(
            f"{replied.model} · the answer of {when(replied.cached)}; what it rests on has not changed · $0.00 · "
            "ask again with: --no-cache"
        )
        return
    if spoken.ended in ENDED:
        call.aside.say(f"! {ENDED[spoken.ended]}", "bold yellow")
    usage = spoken.usage
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    about = "about " if usage.estimated else ""
    requests = counted(spoken.requests, "request")
    call.aside.hint(
        f"{replied.model} · {requests} · {about}{usage.input:,} tokens in{cached}, {usage.output:,} out · "
        f"{money(spoken.cost)}{'' if spoken.ended == 'empty' else ' · go on with: pawl ask -c'}"
    )


def _json(replied: Replied, fell_back: Sequence[FellBack]) -> Json:
    spoken, usage = replied.spoken, replied.spoken.usage
    return {
        "answer": spoken.text,
        "ended": spoken.ended,
        **picked(replied, "model asked_model run conversation"),
        "cached": bool(replied.cached),
        "requests": spoken.requests,
        "usage": {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cached_tokens": usage.cached,
            "estimated": usage.estimated,
        },
        "cost_usd": spoken.cost,
        "citations": replied.citations,
        "fell_back": fell_back,
        "notices": [replied.notice] if replied.notice else [],
    }
