"""The ladder of a workspace, for everyone who climbs it: `pawl verify`, `pawl do`, `pawl fix` and the `check` tool."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from pawl.app.config import Config
from pawl.app.verifying.servers import diagnostics_steps, host
from pawl.app.verifying.settings import verify_settings
from pawl.core.errors import CommandNotFound
from pawl.core.execution import Completed, Execution
from pawl.core.finding import Check
from pawl.verify.choosing import Placed, choose, in_order
from pawl.verify.dev_servers import found_in
from pawl.verify.kinds import CHEAP, ORDER, Kind
from pawl.verify.project import Folder
from pawl.verify.server_answers import ServerAnswers
from pawl.verify.steps.step import Subject

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
    """The steps of the project, with the user's own, and with the language servers that add to them."""
    settings = verify_settings(config)
    wanted = tuple(kinds)
    steps = choose(files, settings.wishes, test_command=test_command, kinds=ORDER)
    if Kind.DIAGNOSTICS in wanted and Kind.DIAGNOSTICS not in settings.skip:
        present = {step.kind for step in steps}
        steps = in_order((*steps, *diagnostics_steps(files, present, settings.servers)), settings.wishes)
    own = settings.dev_server
    if Kind.SERVER in wanted and found_in(Subject(files=files, runner=NoCommands()), own) is not None:
        # Loaded by those who start a server.
        from pawl.sandbox.forwarding import Forwarder

        joining = partial(Forwarder, settings.dev_services)
        steps = in_order((*steps, Placed(ServerAnswers(host(), joining, own), Kind.SERVER)), settings.wishes)
    return tuple(step for step in steps if step.kind in wanted)


class NoCommands:
    """Fits `ports.CommandRunner` where a project is only looked at."""

    def run(self, execution: Execution) -> Completed:
        raise CommandNotFound(f"{execution.argv[0]!r} is not run here", advice="look at the files only")


def steps_for(config: Config, files: Folder, what: Check) -> tuple[Placed, ...]:
    """The steps that a check stands for."""
    return steps_of(config, files, kinds=CHECKS[what])
