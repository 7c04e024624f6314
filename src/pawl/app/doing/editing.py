"""A change as the user edited it: the patch is read strictly, its counts anew, and every path is held to the rules."""

from __future__ import annotations

import re

from pawl.app.patching import propose_patch
from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.errors import PawlError, UsageError

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$", re.DOTALL)
_FILE = "diff --git "


def edited(shop: Workshop, patch: str) -> ChangeSet:
    """The change set of an edited patch over the workspace as it stands; refused as a whole with the reason."""
    counted = recounted(patch)
    if not counted.strip():
        raise UsageError("the edited patch changes nothing", advice="reject it instead, with a reason")
    try:
        text = counted.encode("utf-8", "surrogateescape")
        proposal = propose_patch(shop, text, allow_protected=False)
    except PawlError as error:
        raise UsageError(
            f"the edited patch is not taken: {error.message}", advice="edit it again; the run still waits"
        ) from error
    except UnicodeEncodeError as error:
        raise UsageError("the edited patch is not text", advice="edit it again; the run still waits") from error
    return proposal.changes


def recounted(patch: str) -> str:
    """The patch with the counts that its hunks have now. Lines that begin with # between files are remarks."""
    made: list[str] = []
    hunk: list[str] = []
    offset = 0

    def finish() -> None:
        nonlocal offset
        if not hunk:
            return
        found = _HUNK.match(hunk[0])
        assert found is not None
        old = sum(line[:1] in (" ", "-") for line in hunk[1:])
        new = sum(line[:1] in (" ", "+") for line in hunk[1:])
        if old != new or any(line[:1] in ("+", "-") for line in hunk[1:]):
            start = int(found[1])
            moved = start + offset + (not old) - (not new)
            made.append(f"@@ -{start},{old} +{max(moved, 0)},{new} @@{found[5]}")
            made.extend(hunk[1:])
            offset += new - old
        hunk.clear()

    for line in patch.splitlines(keepends=True):
        if line.startswith(_FILE):
            finish()
            offset = 0
            made.append(line)
        elif _HUNK.match(line):
            finish()
            hunk.append(line)
        elif hunk and line[:1] in (" ", "+", "-", "\\"):
            hunk.append(line)
        elif hunk and not line.strip("\r\n"):
            # Editors take the space away that stands for an empty line.
            hunk.append(f" {line}")
        elif not line.startswith("#"):
            finish()
            made.append(line)
    finish()
    return "".join(made)
