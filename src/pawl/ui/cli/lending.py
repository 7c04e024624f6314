"""Commands of the command line for other interfaces: the same words, the same code, shown elsewhere."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.ui.cli.call import Call
from pawl.ui.cli.parser import WrongWords, read
from pawl.ui.screen.opening import Opening
from pawl.ui.screen.screen import Screen

if TYPE_CHECKING:
    from pawl.settings.config import Config
    from pawl.workspace.project import Project


Find = Callable[[argparse.Namespace], Callable[["Project", Call], int]]


def run_words(shop: Project, words: Sequence[str], out: Screen, find: Find) -> int:
    """Carries out a command with nobody to ask; what it says goes to that screen."""
    help_text = io.StringIO()
    try:
        with redirect_stdout(help_text):
            options = read(words)
    except WrongWords as error:
        raise UsageError(error.message, advice=error.hint) from error
    except SystemExit:  # The help of the command.
        out.lines(help_text.getvalue().rstrip())
        return 0
    if options.json:
        raise UsageError("--json is for programs", advice="leave it out here")
    return find(options)(shop, Call(options, out, out, asks=False))


FindCommand = Callable[[argparse.Namespace], Callable[["Project", Call], int]]


def opening_of(
    config: Config, workspace: Path, call: Call, find: FindCommand, tell_recovery: Callable[[Project, Screen], None]
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
