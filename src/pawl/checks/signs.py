"""Signs in a project's files: that it has a check, or a dev server. Loaded before the first request."""

from __future__ import annotations

import itertools
import re

from pawl.checks.project_facts import Folder, dependencies, package_json, table, text
from pawl.checks.task_files import make_targets
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSigns:
    """The signs that a project has the check; one is enough."""

    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """Of a Makefile."""
    sections: tuple[tuple[str, re.Pattern[str]], ...] = ()

    def shown_by(self, files: Folder) -> str:
        """The sign that was found, in words; empty when there is none."""
        scripts = ((name, table(package_json(files), "scripts")) for name in self.scripts)
        found = (
            (f"{name} is there" for name in self.files if files.exists(name)),
            (f"package.json has the script {name!r}" for name, known in scripts if isinstance(known.get(name), str)),
            (f"{path} configures it" for path, line in self.sections if line.search(text(files, path))),
            (f"{name} is a dependency" for name in sorted(self.dependencies) if name in dependencies(files)),
            (f"the Makefile has the target {name!r}" for name in self.targets if name in make_targets(files)),
        )
        return next(itertools.chain(*found), "")


def shows_dev_server(files: Folder) -> bool:
    """Whether the project shows one of the dev servers that Pawl knows."""
    known = data_table("pawl.checks", "dev_servers.toml")["server"]
    return any(written(CheckSigns, one["when"]).shown_by(files) for one in known)
