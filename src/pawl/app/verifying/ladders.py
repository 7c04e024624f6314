"""The ladder of a workspace, for everyone who climbs it: `pawl verify`, `pawl do`, `pawl fix` and the `check` tool."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pawl.app.config import Config
from pawl.app.verifying.settings import verify_settings
from pawl.core.finding import Check
from pawl.verify.choosing import Placed, choose
from pawl.verify.kinds import CHEAP, ORDER, Kind
from pawl.verify.project import Folder

CHECKS: Mapping[Check, tuple[Kind, ...]] = {
    Check.BUILD: (Kind.SYNTAX, Kind.BUILD),
    Check.LINT: (Kind.LINT,),
    Check.TYPECHECK: (Kind.TYPES, Kind.DIAGNOSTICS),
    Check.ALL: CHEAP,
}
"""Which kinds of steps a check stands for."""


def steps_of(
    config: Config, files: Folder, *, kinds: Iterable[Kind] = ORDER, test_command: Collection[str] = ()
) -> tuple[Placed, ...]:
    """The steps of the project, with the user's own."""
    return choose(files, verify_settings(config).wishes, test_command=test_command, kinds=tuple(kinds))


def steps_for(config: Config, files: Folder, what: Check) -> tuple[Placed, ...]:
    """The steps that a check stands for."""
    return steps_of(config, files, kinds=CHECKS[what])
