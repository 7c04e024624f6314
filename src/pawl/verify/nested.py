"""Parts of a workspace that are projects of their own, such as a front end in a folder: verified where they stand."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pawl.core.execution import Completed, Execution
from pawl.core.finding import Finding, Place, Standing, Verdict
from pawl.core.ports import CommandRunner
from pawl.verify.project import Folder
from pawl.verify.steps.step import Step, Subject

MARKS = ("package.json", "go.mod", "Cargo.toml")
"""A folder with one of these is a project."""
DEEPEST = 3
MOST = 8
_SKIPPED = frozenset(
    {"node_modules", "vendor", "dist", "build", "target", "fixtures", "testdata", "examples", "templates"}
)


def nested_projects(files: Folder) -> tuple[str, ...]:
    """Folders below the root that are projects and do not lie in one already found; a bounded number."""
    found: list[str] = []
    marked = {posixpath.dirname(path) for path in files.walk() if posixpath.basename(path) in MARKS}
    for folder in sorted(marked - {""}, key=lambda one: (one.count("/"), one)):
        parts = folder.split("/")
        inside = any(folder.startswith(f"{other}/") for other in found)
        if len(parts) <= DEEPEST and _SKIPPED.isdisjoint(parts) and not inside:
            found.append(folder)
    return tuple(found[:MOST])


@dataclass(frozen=True, slots=True)
class Within:
    """Fits `project.Folder`: a folder of another one, as if it were all there is."""

    files: Folder
    folder: str

    def read(self, path: str) -> bytes:
        return self.files.read(f"{self.folder}/{path}")

    def exists(self, path: str) -> bool:
        return self.files.exists(f"{self.folder}/{path}")

    def walk(self, under: str = "") -> Iterator[str]:
        top = f"{self.folder}/{under}".rstrip("/")
        return (path.removeprefix(f"{self.folder}/") for path in self.files.walk(top))


@dataclass(frozen=True, slots=True)
class _Inside:
    """Fits `ports.CommandRunner`: commands start in the folder."""

    runner: CommandRunner
    folder: str

    def run(self, execution: Execution) -> Completed:
        directory = posixpath.join(self.folder, execution.directory) if execution.directory else self.folder
        return self.runner.run(dataclasses.replace(execution, directory=directory))


def narrowed(subject: Subject, folder: str) -> Subject:
    inside = tuple(path.removeprefix(f"{folder}/") for path in subject.changed if path.startswith(f"{folder}/"))
    return dataclasses.replace(
        subject,
        files=Within(subject.files, folder),
        runner=_Inside(subject.runner, folder),
        workspace=posixpath.join(subject.workspace, folder) if subject.workspace else "",
        changed=inside,
        test_command=(),
        depth=subject.depth + folder.count("/") + 1,
    )


@dataclass(frozen=True, slots=True)
class Nested:
    """A step of a project in a folder; its findings are told from the workspace's root."""

    step: Step
    folder: str

    @property
    def name(self) -> str:
        return f"{self.step.name} in {self.folder}"

    def run(self, subject: Subject) -> Verdict:
        within = narrowed(subject, self.folder)
        if subject.changed and not within.changed:
            return Verdict(step=self.name, standing=Standing.SKIPPED, reason="nothing in it was changed")
        verdict = self.step.run(within)
        return dataclasses.replace(verdict, step=self.name, findings=tuple(self._placed(verdict.findings)))

    def _placed(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        for finding in findings:
            frames = tuple(Place(path=self._path(one.path), line=one.line, column=one.column) for one in finding.frames)
            yield dataclasses.replace(finding, path=self._path(finding.path), frames=frames)

    def _path(self, path: str) -> str:
        return path if not path or path.startswith("/") else posixpath.normpath(f"{self.folder}/{path}")
