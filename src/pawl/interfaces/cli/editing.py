"""A patch that the user edited: in an editor, in a file, or through a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

from pawl.app.doing.session import Session
from pawl.core.errors import UsageError
from pawl.interfaces.screen.editing import MOST_BYTES, REMARKS, edited, read_text

_NOTHING = "#\n"
"""An empty patch is no patch: it must not be taken for an approval of everything."""


def edited_patch(session: Session, run: str) -> str:
    """What the user made of the patch in $VISUAL or $EDITOR."""
    return edited(f"{REMARKS}{session.patch(run)}", ".diff", session.shop.config.environment) or _NOTHING


def patch_from(name: str) -> str:
    """The patch in a file, or from stdin."""
    try:
        if name != "-":
            return read_text(Path(name)) or _NOTHING
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"--patch {name!r} cannot be read: {error.strerror}", advice="name the edited patch"
        ) from error
    if len(data) > MOST_BYTES:
        raise UsageError("the edited patch is too large", advice=f"at most {MOST_BYTES >> 20} MB")
    return data.decode("utf-8", "surrogateescape") or _NOTHING
