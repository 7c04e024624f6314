"""`pawl audit`: what a ladder cost and came to, attempt by attempt."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pawl.app.looping.audit_report import as_markdown, audited, audited_runs
from pawl.app.workshop import Workshop
from pawl.core.errors import UsageError
from pawl.interfaces.cli.call import Call


def audit(shop: Workshop, call: Call) -> int:
    if call.options.list:
        return _list(shop, call)
    found = audited(shop, call.options.run)
    if call.options.json:
        call.emit(_plain(found))
    else:
        call.out.lines(as_markdown(found).rstrip("\n"))
    return 0


def _list(shop: Workshop, call: Call) -> int:
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
