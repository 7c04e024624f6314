"""A text in the user's own editor: in a private file that is gone afterwards."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pawl.core import bounded
from pawl.core.errors import UsageError

FALLBACKS = ("sensible-editor", "nano", "vi")
MOST_BYTES = 16 << 20
REMARKS = """\
# Edit the lines that begin with + and take out hunks; the counts are made anew. What is left is verified and promoted.
# Lines between files that begin with # are left out. Delete everything to change nothing.
"""


def edited(text: str, suffix: str, environment: Mapping[str, str]) -> str:
    """What the user left in the file."""
    words = editor_words(environment)
    with tempfile.TemporaryDirectory(prefix="pawl-") as folder:
        path = Path(folder) / f"change{suffix}"
        path.write_text(text, "utf-8", "surrogateescape", newline="")
        try:
            # Not where Pawl was started: an editor may read configuration of the folder that it stands in.
            done = subprocess.run([*words, str(path)], check=False, cwd=folder)
        except OSError as error:
            raise UsageError(
                f"the editor {words[0]!r} cannot be started: {error.strerror}", advice="set EDITOR to one that can"
            ) from error
        if done.returncode:
            raise UsageError(f"the editor {words[0]!r} ended with {done.returncode}", advice="nothing was answered")
        return read_text(path)


def read_text(path: Path) -> str:
    with bounded.opened(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UsageError("the edited text is too large", advice=f"at most {MOST_BYTES >> 20} MB")
    return data.decode("utf-8", "surrogateescape")


def editor_words(environment: Mapping[str, str]) -> list[str]:
    """The command of the user's editor."""
    named = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise UsageError(f"EDITOR is {named!r}, which cannot be read: {error}", advice="close the quotes") from error
    # A relative folder would be the workspace's to fill.
    path = ":".join(one for one in environment.get("PATH", "").split(":") if one.startswith("/"))
    for name in words[:1] or FALLBACKS:
        found = name if "/" in name else shutil.which(name, path=path)
        if found is not None:
            return [found, *words[1:]]
    if words:
        raise UsageError(f"the editor {words[0]!r} cannot be started: it is not on PATH", advice="set EDITOR anew")
    raise UsageError("there is no editor", advice="set EDITOR, such as EDITOR=nano, or use --patch FILE")
