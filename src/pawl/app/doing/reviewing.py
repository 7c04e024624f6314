"""What git says is changed in a workspace, read on a bench: nothing that the repository configures runs outside."""

from __future__ import annotations

from pawl.app.running import RunRequest, run_on_bench
from pawl.app.workshop import Workshop
from pawl.core.errors import UsageError
from pawl.core.ports import Cancel

_SCRIPT = (
    "git rev-parse --is-inside-work-tree >/dev/null || exit 3; "
    "git add --all --intent-to-add . >/dev/null 2>&1; "
    "if git rev-parse --verify --quiet HEAD >/dev/null; then base=HEAD; "
    "else base=$(git hash-object -t tree /dev/null); fi; "
    "exec git -c core.fsmonitor=false --no-pager diff --no-ext-diff --no-textconv --no-color $base"
)
MOST = 120_000
"""Characters of a diff that are sent."""
_REVIEW = """\
Review this change of the workspace as it stands, not committed yet. Say what is wrong or risky first, each with
`path:line` and how it could be mended; then what has no test; then what is fine, in one sentence. Read the files around
it where the diff is not enough. Change nothing.{words}

<diff>
{diff}
</diff>"""


def present_diff(shop: Workshop, cancel: Cancel | None = None) -> str:
    """The change since the last commit, with files that are new."""
    ran = run_on_bench(shop, RunRequest(argv=("/bin/sh", "-c", _SCRIPT), seconds=60.0), cancel=cancel)
    done = ran.completed
    if done.code == 3 or done.code == 127:
        raise UsageError("this workspace is no git repository", advice="name the files in a question instead")
    if done.code:
        said = done.stderr.text.strip().splitlines()
        raise UsageError(
            f"git cannot say what is changed: {said[-1] if said else done.ending}", advice="see 'git diff'"
        )
    return done.stdout.text


def review_request(diff: str, words: str = "") -> str:
    """The request for a model."""
    if not diff.strip():
        raise UsageError("git says that nothing is changed", advice="/diff shows what Pawl promoted")
    left_out = len(diff) - MOST
    shown = diff if left_out <= 0 else f"{diff[:MOST]}\n[… {left_out:,} characters left out …]"
    return _REVIEW.format(words=f" Look at this above all: {words}" if words else "", diff=shown)
