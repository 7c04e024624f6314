"""`pawl acp`: editors use Pawl over the Agent Client Protocol, on stdin and stdout."""

from __future__ import annotations

import os
import stat
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.settings.installation import with_extra
from pawl.ui.cli.parser import Command

if TYPE_CHECKING:
    from pawl.settings.config import Config


def acp_words(parser: ArgumentParser) -> None:
    """It has no options of its own: the editor chooses."""


DECLARED = {"acp": Command(words=acp_words, example="pawl acp")}


def acp(config: Config) -> int:
    try:
        from pawl.ui.editor.acp_agent import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "acp":
            raise
        raise UsageError(
            "'pawl acp' needs the package agent-client-protocol", advice=f"install it with: {with_extra('acp')}"
        ) from error
    if not all(map(_is_pipe, (0, 1))):
        raise UsageError(
            "'pawl acp' speaks with an editor through pipes, and has none here",
            advice="let your editor start it (docs/editors.md); in a terminal, 'pawl' opens a session",
        )
    serve(config)
    return 0


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
