"""What git says is changed in a workspace, read on a bench: nothing that the repository configures runs outside."""

from __future__ import annotations

from pawl.app.running import open_bench
from pawl.app.workshop import Workshop
from pawl.core.errors import GitFailed, NotFound, PathRefused, UsageError
from pawl.workspace.git import Git
from pawl.workspace.git_config import user_values
from pawl.workspace.repository import opened

MOST = 120_000
"""Characters of a diff that are sent."""
_REVIEW = """\
Review this change of the workspace as it stands, not committed yet. Say what is wrong or risky first, each with
`path:line` and how it could be mended; then what has no test; then what is fine, in one sentence. Read the files around
it where the diff is not enough. Change nothing.{words}

<diff>
{diff}
</diff>"""


def present_diff(shop: Workshop) -> str:
    """The change since the last commit, with files that are new."""
    try:
        with opened(shop.tree) as repository, open_bench(shop) as bench:
            settings = {**user_values(shop.config.environment), **repository.config}
            head = repository.head().commit
            return Git(run=bench.run, repository=repository, head=head, settings=settings).diff()
    except (NotFound, PathRefused) as error:
        raise UsageError(error.message, advice="name the files in a question instead") from error
    except GitFailed as error:
        raise UsageError(f"git cannot say what is changed: {error.message}", advice="see 'git diff'") from error


def review_request(diff: str, words: str = "") -> str:
    """The request for a model."""
    if not diff.strip():
        raise UsageError("git says that nothing is changed", advice="/diff shows what Pawl promoted")
    left_out = len(diff) - MOST
    shown = diff if left_out <= 0 else f"{diff[:MOST]}\n[… {left_out:,} characters left out …]"
    return _REVIEW.format(words=f" Look at this above all: {words}" if words else "", diff=shown)
