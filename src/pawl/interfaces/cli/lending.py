"""Commands of the command line for other interfaces: the same words, the same code, shown elsewhere."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.parser import WrongWords, read
from pawl.interfaces.screen.screen import Screen

if TYPE_CHECKING:
    from pawl.app.workshop import Workshop

Find = Callable[[argparse.Namespace], Callable[["Workshop", Call], int]]


def run_words(shop: Workshop, words: Sequence[str], out: Screen, find: Find) -> int:
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
