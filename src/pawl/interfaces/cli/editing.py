"""The patch in the user's editor: written to a private file, edited, and read back."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from pawl.app.doing.session import Session
from pawl.core.errors import UsageError

MOST_BYTES = 16 << 20
REMARKS = """\
# Edit the lines that begin with + and take out hunks; the counts are made anew. What is left is verified and promoted.
# Lines between files that begin with # are left out. Delete everything to change nothing.
"""


def edited_patch(session: Session, run: str) -> str:
    """What the user made of the patch in $VISUAL or $EDITOR."""
    environment = session.shop.config.environment
    editor = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    try:
        words = shlex.split(editor)
    except ValueError as error:
        raise UsageError(f"EDITOR is {editor!r}, which cannot be read: {error}", advice="set EDITOR") from error
    with tempfile.TemporaryDirectory(prefix="pawl-") as folder:
        path = Path(folder) / "change.diff"
        path.write_text(f"{REMARKS}{session.patch(run)}", "utf-8", "surrogateescape")
        try:
            done = subprocess.run([*words, str(path)], check=False)
        except OSError as error:
            raise UsageError(
                f"the editor {editor!r} cannot be started: {error.strerror}", advice="set EDITOR, or use --patch FILE"
            ) from error
        if done.returncode:
            raise UsageError(f"the editor {editor!r} ended with {done.returncode}", advice="nothing was approved")
        return patch_from(str(path))


def patch_from(name: str) -> str:
    """The patch in a file, or from stdin; empty ones are refused where they are read."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"--patch {name!r} cannot be read: {error.strerror}", advice="name the edited patch"
        ) from error
    if len(data) > MOST_BYTES:
        raise UsageError("the edited patch is too large", advice=f"at most {MOST_BYTES >> 20} MB")
    # An empty patch is no patch: it must not be taken for an approval of everything.
    return data.decode("utf-8", "surrogateescape") or "#\n"
