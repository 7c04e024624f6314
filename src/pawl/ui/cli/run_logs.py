"""`pawl requests` and `pawl scores`: the logs that runs leave of what was asked of models, and of what came of it."""

from __future__ import annotations

from argparse import ArgumentParser
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.errors import UnknownEntry
from pawl.ui.cli.call import Call, check_range
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import Command
from pawl.ui.screen.screen import brief, counted, money, when

if TYPE_CHECKING:
    from pawl.core.run import RequestRecord
    from pawl.workspace.project import Project

_MOST = 100_000


def log_words(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="only this run (default: every run of the workspace)")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many, the newest (default: 20)")


DECLARED = {
    "requests": Command(words=log_words, example="pawl requests r4f1c09ab", reads=True, rescue=True),
    "scores": Command(words=log_words, example="pawl scores --limit 5", reads=True, rescue=True),
}


def requests(shop: Project, call: Call) -> int:
    run, limit = _wish(shop, call)
    lines = shop.store.requests.lines(shop.workspace, run=run)
    part = lines[-limit:]
    unpriced = any(one.cost is None for _, one in lines)
    spent = None if unpriced else sum((one.cost or Decimal(0) for _, one in lines), Decimal(0))
    read, written = (sum(getattr(one, name) for _, one in lines) for name in ("input_tokens", "output_tokens"))
    if call.options.json:
        totals = {"requests": len(lines), "input_tokens": read, "output_tokens": written, "cost_usd": spent}
        return call.emit({"requests": [_request_json(time, one) for time, one in part], "total": totals})
    if not lines:
        call.out.say("no model was asked in this workspace yet")
        return 0
    heads = ("when", "run", "stage", "role", "model", "tools", "in", "out", "cost", "seconds", "ended")
    rows = [_request_cells(time, one, live=call.out.is_terminal) for time, one in part]
    call.out.table(heads, rows, flexible=4)
    call.out.say(f"{counted(len(lines), 'request')}, {read:,} tokens in, {written:,} out, {money(spent)}")
    if len(lines) > len(part):
        call.out.hint(f"… and {len(lines) - len(part)} older: --limit {len(lines)}")
    return 0


def scores(shop: Project, call: Call) -> int:
    run, limit = _wish(shop, call)
    every = [one for one in shop.store.runs.evaluations(shop.workspace) if run in (None, one["run"])]
    part = every[-limit:]
    if call.options.json:
        return call.emit({"scores": part, "total": len(every)})
    if not every:
        call.out.say("no run was scored in this workspace yet")
        return 0
    live = call.out.is_terminal
    rows = [
        (when(str(one["time"]), today=live), str(one["run"]), str(one["score"]), str(one["judge"]), str(one["reason"]))
        for one in part
    ]
    call.out.table(("when", "run", "score", "by", "reason"), rows, flexible=4)
    if len(every) > len(part):
        call.out.hint(f"… and {len(every) - len(part)} older: --limit {len(every)}")
    return 0


def _wish(shop: Project, call: Call) -> tuple[str | None, int]:
    """The run, which must be one of this workspace, and how many lines."""
    run, limit = call.options.run, call.options.limit
    check_range("--limit", limit, 1, _MOST, "give how many lines to show")
    if run is not None:
        try:
            shop.store.runs.get(shop.workspace, run)
        except UnknownEntry:
            # A question of an older version has requests and no run.
            if not shop.store.requests.records(shop.workspace, run=run, limit=1):
                raise
    return run, limit


def _request_json(time: str, one: RequestRecord) -> Json:
    names = "conversation run mode stage role model reasoning tools input_tokens output_tokens cached_tokens estimated"
    return {
        "time": time,
        **picked(one, names),
        "cost_usd": one.cost,
        **picked(one, "seconds first_token_seconds attempts ended"),
    }


def _request_cells(time: str, one: RequestRecord, *, live: bool) -> tuple[str, ...]:
    return (
        when(time, today=live),
        one.run,
        one.stage,
        one.role,
        brief(one.model, 400 if live else 40),
        str(len(one.tools)),
        f"{one.input_tokens:,}",
        f"{one.output_tokens:,}",
        money(one.cost),
        f"{one.seconds:.1f}",
        one.ended,
    )
