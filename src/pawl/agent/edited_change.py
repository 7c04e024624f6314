"""A change as the user edited it: the patch is read strictly, its counts anew, and every path is held to the rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pawl.code.patch_change import propose_patch
from pawl.core.change import ChangeSet
from pawl.core.dialogue import STANDS_FOR
from pawl.core.errors import GitFailed, NotFound, PathRefused, PawlError, UsageError
from pawl.workspace.benches import uncommitted
from pawl.workspace.project import Project

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$", re.DOTALL)
_FILE = "diff --git "


def edited(shop: Project, patch: str) -> ChangeSet:
    """The change set of an edited patch over the workspace as it stands; refused as a whole with the reason."""
    counted = recounted(patch)
    if not counted.strip():
        raise UsageError("the edited patch changes nothing", advice="reject it instead, with a reason")
    try:
        text = counted.encode("utf-8", "surrogateescape")
        proposal = propose_patch(shop, text, allow_protected=False)
    except PawlError as error:
        raise UsageError(
            f"the edited patch was not accepted: {error.message}", advice="edit it again; the run still waits"
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


MOST = 120_000
"""Characters of a diff that are sent."""
MOST_NAMED = 20
_REVIEW = """\
Review this change of the workspace as it stands, not committed yet. Say what is wrong or risky first, each with
`path:line` and how to fix it; then what has no test; then what is fine, in one sentence. Read the files around
it where the diff is not enough. Change nothing.{words}{left_out}

<diff>
{diff}
</diff>"""


def present_diff(shop: Project) -> tuple[str, tuple[str, ...]]:
    """The change since the last commit, with files that are new; and the hidden files that are left out of it."""
    try:
        gate = shop.read_gate()
        return uncommitted(shop, lambda path: not gate.shows(path))
    except (NotFound, PathRefused) as error:
        raise UsageError(error.message, advice="name the files in a question instead") from error
    except GitFailed as error:
        raise UsageError(f"git cannot say what is changed: {error.message}", advice="see 'git diff'") from error


def review_request(diff: str, words: str = "", left_out: Sequence[str] = ()) -> str:
    """The request for a model."""
    if not diff.strip():
        hidden = f" except in hidden files ({hidden_names(left_out)})" if left_out else ""
        raise UsageError(f"git shows no changes{hidden}", advice="/diff shows what Pawl promoted")
    cut = len(diff) - MOST
    shown = diff if cut <= 0 else f"{diff[:MOST]}\n[… {cut:,} characters left out …]"
    request = _REVIEW.format(
        words=f" Look at this above all: {words}" if words else "",
        left_out=f"\nNot in the diff, because they are hidden: {hidden_names(left_out)}." if left_out else "",
        diff=shown,
    )
    return f"{f'/review {words}'.rstrip()}{STANDS_FOR}{request}"


def hidden_names(paths: Sequence[str]) -> str:
    """The first of these paths, and how many more there are."""
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(map(repr, paths[:MOST_NAMED])) + more
