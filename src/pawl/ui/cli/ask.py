"""`pawl ask`: a question about the workspace, answered by a model that may only read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pawl.agent import asking
from pawl.agent.asking import AskRequest, Replied
from pawl.core.dialogue import FellBack
from pawl.core.errors import Cancelled, UsageError
from pawl.core.events import RunEvent
from pawl.core.run import Reasoning
from pawl.ui.cli.call import Call
from pawl.ui.screen.screen import when
from pawl.ui.screen.talk import EventRenderer, money
from pawl.workspace.project import Project

MOST_INPUT = 200_000
"""Bytes of stdin that are sent: as many from its start as from its end, where errors stand."""
LONGEST_INPUT = 64 << 20
"""Bytes of stdin that are read; what never ends is left there."""

EXIT = {"answered": 0, "cut_off": 1, "empty": 1, "refused": 1, "stuck": 1, "out_of_turns": 53, "out_of_time": 53}
ENDED = {
    "cut_off": "the answer was cut off at its longest",
    "empty": "the model gave no answer, also when it was asked again",
    "refused": "the model refused to answer",
    "stuck": "the model went round in circles and was stopped",
    "out_of_turns": "no turns were left; the answer is from what was known by then (--max-turns)",
    "out_of_time": "no time was left; the answer is from what was known by then",
}


def ask(shop: Project, call: Call) -> int:
    question = _question(call)
    talk = EventRenderer(call.out, call.aside, quiet=call.options.json, show_thoughts=call.options.thoughts)
    fell_back: list[FellBack] = []

    def listen(event: RunEvent) -> None:
        if isinstance(event, FellBack):
            fell_back.append(event)
        talk.take(event)

    with call.interruptions.stopping() as cancel:
        try:
            replied = asking.ask(shop, question, listen, cancel)
        except Cancelled:
            heard = call.interruptions.heard
            if heard is None:
                raise
            raise heard from None
        finally:
            talk.close()
    if call.options.json:
        call.emit(_json(replied, fell_back))
    else:
        _tell(replied, call)
    return EXIT[replied.spoken.ended]


def _question(call: Call) -> AskRequest:
    options = call.options
    words = " ".join(options.question).strip()
    if words == "-":
        words = ""
    piped = piped_input(call)
    if words and piped.strip():
        words = f"{words}\n\n<stdin>\n{piped}\n</stdin>"
    return AskRequest(
        text=words or piped,
        model=options.model or "",
        reasoning=Reasoning(options.reasoning) if options.reasoning else None,
        budget=spending(call),
        conversation=options.conversation or "",
        latest=options.go_on,
        record=Path(options.record) if options.record else None,
        cache=not options.no_cache,
    )


def piped_input(call: Call) -> str:
    """What comes through a pipe or from a file; a terminal or a device is not waited for."""
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
    """What the user lets it spend, as far as the options say."""
    options = call.options
    budget: dict[str, object] = {}
    if options.max_budget_usd is not None:
        try:
            amount = Decimal(options.max_budget_usd)
        except InvalidOperation:
            amount = Decimal(-1)
        if not amount.is_finite() or amount < 0:
            said = options.max_budget_usd
            raise UsageError(f"--max-budget-usd {said!r} is not an amount", advice="US dollars, such as 0.50")
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
    requests = f"{spoken.requests} request{'s' if spoken.requests != 1 else ''}"
    call.aside.hint(
        f"{replied.model} · {requests} · {about}{usage.input:,} tokens in{cached}, {usage.output:,} out · "
        f"{money(spoken.cost)}{'' if spoken.ended == 'empty' else ' · go on with: pawl ask -c'}"
    )


def _json(replied: Replied, fell_back: Sequence[FellBack]) -> dict[str, object]:
    spoken = replied.spoken
    return {
        "answer": spoken.text,
        "ended": spoken.ended,
        "model": replied.model,
        "asked_model": replied.asked_model,
        "run": replied.run,
        "conversation": replied.conversation,
        "cached": bool(replied.cached),
        "requests": spoken.requests,
        "usage": {
            "input_tokens": spoken.usage.input,
            "output_tokens": spoken.usage.output,
            "cached_tokens": spoken.usage.cached,
            "estimated": spoken.usage.estimated,
        },
        "cost_usd": None if spoken.cost is None else float(spoken.cost),
        "citations": [{"path": one.path, "line": one.line, "holds": one.holds} for one in replied.citations],
        "fell_back": [{"model": one.model, "to": one.to, "why": one.why} for one in fell_back],
        "notices": [replied.notice] if replied.notice else [],
    }
