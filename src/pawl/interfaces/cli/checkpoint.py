"""`pawl checkpoint`."""

from __future__ import annotations

import re

from pawl.app.workshop import Workshop
from pawl.core.errors import UsageError
from pawl.core.history import Checkpoint
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.shapes import checkpoint_json
from pawl.interfaces.screen.when import when


def checkpoint(shop: Workshop, call: Call) -> int:
    if call.options.list:
        return _list(shop, call)
    made = shop.checkpoint(call.options.name)
    if call.options.json:
        call.emit(checkpoint_json(made))
        return 0
    call.out.say(f"checkpoint {made.name}, {_place(made)}")
    call.out.hint(f"come back with: pawl restore {made.name if _is_plain(made.name) else made.id}")
    return 0


def _list(shop: Workshop, call: Call) -> int:
    if call.options.name is not None:
        raise UsageError("--list takes no name", advice="leave one of them out")
    every = shop.checkpoints()
    if call.options.json:
        call.emit({"checkpoints": [checkpoint_json(one) for one in every]})
    elif every:
        rows = [(str(one.id), when(one.created, today=call.out.is_terminal), one.name, _place(one)) for one in every]
        call.out.table(("id", "when", "name", "where"), rows, flexible=2)
    else:
        call.out.say("there is no checkpoint yet")
    return 0


def _is_plain(name: str) -> bool:
    """Whether a shell takes the name as it is, and as the name."""
    return re.fullmatch(r"[\w.+:@-]+", name, re.ASCII) is not None and not name.startswith("-")


def _place(one: Checkpoint) -> str:
    return f"after entry {one.after_entry}" if one.after_entry else "before the first entry"
