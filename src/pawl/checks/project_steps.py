"""The checks of a project with the user's own, the language servers and the dev server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pawl.checks.dev_servers import ServerAnswers, found_in
from pawl.checks.ladder import Placed, choose, in_order
from pawl.checks.lsp.verdicts import diagnostics_steps, host
from pawl.checks.project_facts import ORDER, CheckKind, Folder, ListedFolder
from pawl.checks.settings import verify_settings
from pawl.checks.steps import Subject
from pawl.core.errors import CommandNotFound
from pawl.core.execution import Completed, Execution
from pawl.settings.config import Config


def steps_of(
    config: Config, files: Folder, *, kinds: Iterable[CheckKind] = ORDER, test_command: Sequence[str] = ()
) -> tuple[Placed, ...]:
    """The project's checks with the user's own, the language servers and the dev server, the cheapest kind first."""
    settings = verify_settings(config)
    wanted = tuple(kinds)
    files = ListedFolder(files)
    steps = choose(files, settings.wishes, test_command=test_command, kinds=ORDER)
    if CheckKind.DIAGNOSTICS in wanted and CheckKind.DIAGNOSTICS not in settings.skip:
        present = {step.kind for step in steps}
        steps = in_order((*steps, *diagnostics_steps(files, present, settings.servers)), settings.wishes)
    own = settings.dev_server
    if CheckKind.SERVER in wanted and found_in(Subject(files=files, runner=NoCommands()), own) is not None:
        server = ServerAnswers(host(), settings.dev_services, own)
        steps = in_order((*steps, Placed(server, CheckKind.SERVER)), settings.wishes)
    return tuple(step for step in steps if step.kind in wanted)


class NoCommands:
    """Fits `CommandRunner` where a project is only looked at."""

    def run(self, execution: Execution) -> Completed:
        raise CommandNotFound(f"{execution.argv[0]!r} is not run here", advice="look at the files only")
