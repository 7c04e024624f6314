"""`pawl` alone: what a session in the terminal is opened with."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.lending import run_words
from pawl.interfaces.screen.opening import Opening
from pawl.interfaces.screen.screen import Screen

if TYPE_CHECKING:
    from pawl.app.config import Config
    from pawl.app.workshop import Workshop

Find = Callable[[argparse.Namespace], Callable[["Workshop", Call], int]]


def opening_of(
    config: Config, workspace: Path, call: Call, find: Find, tell_recovery: Callable[[Workshop, Screen], None]
) -> Opening:
    """`find` finds the command that the session lets the command line carry out."""
    options = call.options
    return Opening(
        config=config,
        workspace=workspace,
        out=call.out,
        aside=call.aside,
        run_command=lambda shop, words, out: run_words(shop, words, out, find),
        tell_recovery=tell_recovery,
        stopping=call.interruptions.stopping,
        request=" ".join(options.request).strip(),
        go_on=options.go_on,
        resume=options.resume,
        fork=options.fork_session,
        model=options.model or "",
        mode=options.mode,
        approval=options.approve,
    )
