"""Which steps a project has: told by its files, with the user's wishes, in the order of the ladder."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field

from pawl.checks.catalog import detect, frameworks_of
from pawl.checks.command_step import EVERYTHING, CommandCheck, CommandStep, built_in
from pawl.checks.language_steps import ENDINGS, NAMES, NodeSyntax, ReadableFiles, Ruff, Syntax, Types, unreadable
from pawl.checks.project_facts import ORDER, CheckKind, Folder, Within, installer_of, nested_projects, package_json
from pawl.checks.steps import CheckStep, Subject, Tests, skipped
from pawl.checks.test_ids import file_of
from pawl.core.diagnostic import CheckResult, Diagnostic, Location, Status
from pawl.core.errors import ConfigError
from pawl.core.execution import Completed, Execution
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.git import CommandRunner


@dataclass(frozen=True, slots=True)
class _Inside:
    """Fits `CommandRunner`: commands start in the folder."""

    runner: CommandRunner
    folder: str

    def run(self, execution: Execution) -> Completed:
        directory = posixpath.join(self.folder, execution.directory) if execution.directory else self.folder
        return self.runner.run(dataclasses.replace(execution, directory=directory))


def narrowed(subject: Subject, folder: str) -> Subject:
    inside, first = (
        tuple(path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/"))
        for paths in (subject.changed, subject.first)
    )
    return dataclasses.replace(
        subject,
        files=Within(subject.files, folder),
        runner=_Inside(subject.runner, folder),
        workspace=posixpath.join(subject.workspace, folder) if subject.workspace else "",
        changed=inside,
        first=first,
        test_command=(),
        candidates=(),
        believe=lambda _: None,
        chosen=subject.chosen and subject.chosen.inside(folder),
        depth=subject.depth + folder.count("/") + 1,
    )


@dataclass(frozen=True, slots=True)
class Nested:
    """A step of a project in a folder; its findings are told from the workspace's root."""

    step: CheckStep
    folder: str

    @property
    def name(self) -> str:
        return f"{self.step.name} in {self.folder}"

    def run(self, subject: Subject) -> CheckResult:
        within = narrowed(subject, self.folder)
        if subject.changed and not within.changed:
            return CheckResult(step=self.name, standing=Status.SKIPPED, reason="nothing in it was changed")
        verdict = self.step.run(within)
        ids = {*(one.test for one in verdict.findings), *(one.id for one in verdict.ran)}
        there = {file for file in map(file_of, ids) if file and within.files.exists(file)}
        names = {test: f"{self.folder}/{test}" for test in ids if file_of(test) in there}
        ran = tuple(dataclasses.replace(one, id=names.get(one.id, one.id)) for one in verdict.ran)
        findings = tuple(self._placed(verdict.findings, names))
        return dataclasses.replace(verdict, step=self.name, findings=findings, ran=ran)

    def _placed(self, findings: Iterable[Diagnostic], names: Mapping[str, str]) -> Iterator[Diagnostic]:
        for finding in findings:
            frames = tuple(
                Location(path=self._path(one.path), line=one.line, column=one.column) for one in finding.frames
            )
            test = names.get(finding.test, finding.test)
            yield dataclasses.replace(finding, path=self._path(finding.path), test=test, frames=frames)

    def _path(self, path: str) -> str:
        return path if not path or path.startswith("/") else posixpath.normpath(f"{self.folder}/{path}")


_PYTHON_CONFIG = ("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "*.lock", "*.ini", "*.toml")
_ABSENT = {
    CheckKind.SYNTAX: "no language whose syntax can be checked on its own",
    CheckKind.TYPES: "the project has no type checker",
    CheckKind.DIAGNOSTICS: "no language server is used here",
    CheckKind.LINT: "the project has no linter",
    CheckKind.BUILD: "the project has no build",
    CheckKind.SERVER: "the project has no dev server that Pawl knows",
}
_NO_TESTS = "no test specified"
"""The placeholder for a test command in a new package.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """The user's settings for the checks."""

    skip: frozenset[str] = frozenset()
    """Kinds or names of steps that are left out."""
    own: tuple[CommandCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A step with its place on the ladder and the files that decide about it."""

    step: CheckStep
    kind: CheckKind
    inputs: tuple[str, ...] = (EVERYTHING,)

    @property
    def name(self) -> str:
        return self.step.name

    def run(self, subject: Subject) -> CheckResult:
        return self.step.run(subject)


@dataclass(frozen=True, slots=True)
class Absent:
    """A step that is not run and says why, so that nobody takes it for passed."""

    name: str
    reason: str

    def run(self, subject: Subject) -> CheckResult:
        return skipped(self.name, self.reason)


@dataclass(slots=True)
class _Choice:
    files: Folder
    wishes: CheckSettings
    steps: list[Placed] = field(default_factory=list)

    def rungs(self, folder: str = "") -> None:
        """The commands that one project has."""
        files = Within(self.files, folder) if folder else self.files
        shown = [(rung, why) for rung in self._known(folder) if (why := rung.when.shown_by(files) or _asked(rung))]
        replaced = {name for rung, _ in shown for name in rung.instead_of}
        kept = [(rung, why) for rung, why in shown if rung.name not in replaced]
        for rung, why in kept:
            others = [other for other, _ in kept if other.kind is rung.kind and not other.fallback]
            if rung.fallback and (others or any(one.kind is rung.kind for one in self.steps if not folder)):
                continue
            step: CheckStep = CommandStep(rung, why)
            self.steps.append(Placed(Nested(step, folder) if folder else step, rung.kind, rung.inputs))

    def _known(self, folder: str) -> tuple[CommandCheck, ...]:
        """The user's own steps are the workspace's; one with a known name takes its place."""
        own = () if folder else self.wishes.own
        names = {rung.name for rung in self.wishes.own}
        return (*own, *(rung for rung in built_in() if rung.name not in names))

    def tests(self, test_command: Collection[str]) -> None:
        if test_command:
            self.steps.append(Placed(Tests(), CheckKind.TESTS))
            return
        self.steps.append(Placed(Tests(command=_script(self.files)), CheckKind.TESTS))
        first = detect(self.files).framework
        others = frameworks_of(self.files) if first else ()
        for framework in others:
            if first is not None and framework.language != first.language:
                step = Tests(name=f"tests ({framework.name})", framework=framework.name)
                self.steps.append(Placed(step, CheckKind.TESTS))


def _asked(rung: CommandCheck) -> str:
    """A step of the user's own without a sign is for every project."""
    signs = rung.when
    bare = not (signs.files or signs.scripts or signs.dependencies or signs.targets or signs.sections)
    return "configured by the user" if bare else ""


def choose(
    files: Folder,
    wishes: CheckSettings | None = None,
    *,
    test_command: Collection[str] = (),
    kinds: Iterable[CheckKind] = ORDER,
) -> tuple[Placed, ...]:
    """The steps of the project, cheapest kind first."""
    wishes = wishes or CheckSettings()
    choice = _Choice(files, wishes)
    paths = list(files.walk())
    nested = nested_projects(files)
    if unreadable(files, ("", *nested)):
        choice.steps.append(Placed(ReadableFiles(("", *nested)), CheckKind.SYNTAX, NAMES))
    if any(path.endswith((".py", ".pyi")) for path in paths):
        choice.steps += _python()
    outside = [path for path in paths if not any(path.startswith(f"{folder}/") for folder in nested)]
    if any(path.endswith(ENDINGS) for path in outside):
        choice.steps.append(Placed(NodeSyntax(), CheckKind.SYNTAX, ("*.js", "*.mjs", "*.cjs", "package.json")))
    choice.rungs()
    for folder in nested:
        choice.rungs(folder)
        if any(path.startswith(f"{folder}/") and path.endswith(ENDINGS) for path in paths):
            choice.steps.append(
                Placed(Nested(NodeSyntax(), folder), CheckKind.SYNTAX, ("*.js", "*.mjs", "*.cjs", "*.json"))
            )
    choice.tests(test_command)
    if not test_command:
        choice.steps += _nested_tests(files, nested)
    _check_skipped(wishes, choice.steps)
    return in_order((one for one in choice.steps if one.kind in kinds), wishes)


def in_order(steps: Iterable[Placed], wishes: CheckSettings) -> tuple[Placed, ...]:
    """The steps that the user does not leave out, cheapest kind first."""
    wanted = [one for one in steps if not {one.kind, one.name} & wishes.skip]
    return tuple(sorted(wanted, key=lambda one: ORDER.index(one.kind)))


def _check_skipped(wishes: CheckSettings, steps: Iterable[Placed]) -> None:
    known = {*ORDER, *(one.name for one in steps), *(rung.name for rung in (*built_in(), *wishes.own))}
    for name in sorted(one for one in wishes.skip - known if not one.startswith(f"{CheckKind.DIAGNOSTICS} (")):
        raise ConfigError(
            f"the settings skip {name!r}, which is not a step", advice=f"kinds of steps are {', '.join(ORDER)}"
        )


def with_absent(
    steps: Iterable[Placed], wishes: CheckSettings, wanted: Collection[CheckKind] = ORDER
) -> tuple[Placed, ...]:
    """The steps, with a word for each kind of which the project has none or which the user leaves out."""
    present = list(steps)
    kinds = {one.kind for one in present}
    for kind in ORDER:
        if kind not in kinds:
            left_out = "left out by the settings" if kind in wishes.skip else _ABSENT.get(kind, "there is none")
            reason = left_out if kind in wanted else "left out by --only"
            present.append(Placed(Absent(kind, reason), kind))
    return tuple(sorted(present, key=lambda one: ORDER.index(one.kind)))


def _python() -> Iterator[Placed]:
    code = ("*.py", "*.pyi", *_PYTHON_CONFIG)
    yield Placed(Syntax(), CheckKind.SYNTAX, ("*.py", "*.pyi", "pyproject.toml"))
    yield Placed(Types(), CheckKind.TYPES, (*code, "pyrightconfig.json"))
    yield Placed(Ruff(), CheckKind.LINT, (*code, ".gitignore"))


def _nested_tests(files: Folder, nested: Iterable[str]) -> Iterator[Placed]:
    for folder in nested:
        inside = Within(files, folder)
        if frameworks_of(inside) or _script(inside):
            yield Placed(Nested(Tests(command=_script(inside)), folder), CheckKind.TESTS)


def _script(files: Folder) -> tuple[str, ...]:
    """The package's own test command where no framework can be told; empty where there is none."""
    scripts = package_json(files).get("scripts")
    test = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(test, str) or _NO_TESTS in test or detect(files).framework is not None:
        return ()
    return (*installer_of(files).run, "test")
