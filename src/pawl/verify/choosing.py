"""Which steps a project has: told by its files, with the user's wishes, in the order of the ladder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from pawl.core.errors import ConfigError
from pawl.core.finding import Verdict
from pawl.verify.detect import detect, frameworks_of
from pawl.verify.installers import installer_of
from pawl.verify.kinds import ORDER, Kind
from pawl.verify.nested import Nested, Within, nested_projects
from pawl.verify.project import Folder, package_json
from pawl.verify.rungs import EVERYTHING, Rung, built_in
from pawl.verify.steps.command import CommandStep
from pawl.verify.steps.node_syntax import ENDINGS, NodeSyntax
from pawl.verify.steps.project_files import NAMES, ProjectFiles, unreadable
from pawl.verify.steps.ruff import Ruff
from pawl.verify.steps.step import Step, Subject, skipped
from pawl.verify.steps.suite import Tests
from pawl.verify.steps.syntax import Syntax
from pawl.verify.steps.typecheck import Types

_PYTHON_CONFIG = ("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "*.lock", "*.ini", "*.toml")
_ABSENT = {
    Kind.SYNTAX: "no language whose syntax can be checked by itself",
    Kind.TYPES: "the project has no type checker",
    Kind.DIAGNOSTICS: "no language server is asked here",
    Kind.LINT: "the project has no linter",
    Kind.BUILD: "the project has no build",
    Kind.SERVER: "the project has no dev server that is known",
}
_NO_TESTS = "no test specified"
"""What a new package.json has in the place of a test command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user configures about the ladder."""

    skip: frozenset[str] = frozenset()
    """Kinds or names of steps that are left out."""
    own: tuple[Rung, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """Fits `Step`: a step with its place on the ladder and the files that decide about it."""

    step: Step
    kind: Kind
    inputs: tuple[str, ...] = (EVERYTHING,)

    @property
    def name(self) -> str:
        return self.step.name

    def run(self, subject: Subject) -> Verdict:
        return self.step.run(subject)


@dataclass(frozen=True, slots=True)
class Absent:
    """A step that the project does not have; says so, so that nobody takes it for passed."""

    name: str
    reason: str

    def run(self, subject: Subject) -> Verdict:
        return skipped(self.name, self.reason)


@dataclass(slots=True)
class _Choice:
    files: Folder
    wishes: Wishes
    steps: list[Placed] = field(default_factory=list)

    def rungs(self, folder: str = "") -> None:
        """The commands that one project has."""
        files = Within(self.files, folder) if folder else self.files
        shown = [(rung, why) for rung in self._known(folder) if (why := rung.signs.shown_by(files) or _asked(rung))]
        replaced = {name for rung, _ in shown for name in rung.instead_of}
        kept = [(rung, why) for rung, why in shown if rung.name not in replaced]
        for rung, why in kept:
            others = [other for other, _ in kept if other.kind is rung.kind and not other.fallback]
            if rung.fallback and (others or any(one.kind is rung.kind for one in self.steps if not folder)):
                continue
            step: Step = CommandStep(rung, why)
            self.steps.append(Placed(Nested(step, folder) if folder else step, rung.kind, rung.inputs))

    def _known(self, folder: str) -> tuple[Rung, ...]:
        """The user's own steps are the workspace's; one with a known name takes its place."""
        own = () if folder else self.wishes.own
        names = {rung.name for rung in self.wishes.own}
        return (*own, *(rung for rung in built_in() if rung.name not in names))

    def tests(self, test_command: Collection[str]) -> None:
        if test_command:
            self.steps.append(Placed(Tests(), Kind.TESTS))
            return
        self.steps.append(Placed(Tests(command=_script(self.files)), Kind.TESTS))
        first = detect(self.files).framework
        others = frameworks_of(self.files) if first else ()
        for framework in others:
            if first is not None and framework.language != first.language:
                step = Tests(name=f"tests ({framework.name})", framework=framework.name)
                self.steps.append(Placed(step, Kind.TESTS))


def _asked(rung: Rung) -> str:
    """A step of the user's own without a sign is for every project."""
    signs = rung.signs
    bare = not (signs.files or signs.scripts or signs.dependencies or signs.targets or signs.sections)
    return "configured by the user" if bare else ""


def choose(
    files: Folder, wishes: Wishes | None = None, *, test_command: Collection[str] = (), kinds: Iterable[Kind] = ORDER
) -> tuple[Placed, ...]:
    """The steps of the project, cheapest kind first."""
    wishes = wishes or Wishes()
    choice = _Choice(files, wishes)
    paths = list(files.walk())
    nested = nested_projects(files)
    if unreadable(files, ("", *nested)):
        choice.steps.append(Placed(ProjectFiles(("", *nested)), Kind.SYNTAX, NAMES))
    if any(path.endswith((".py", ".pyi")) for path in paths):
        choice.steps += _python()
    outside = [path for path in paths if not any(path.startswith(f"{folder}/") for folder in nested)]
    if any(path.endswith(ENDINGS) for path in outside):
        choice.steps.append(Placed(NodeSyntax(), Kind.SYNTAX, ("*.js", "*.mjs", "*.cjs", "package.json")))
    choice.rungs()
    for folder in nested:
        choice.rungs(folder)
        if any(path.startswith(f"{folder}/") and path.endswith(ENDINGS) for path in paths):
            choice.steps.append(Placed(Nested(NodeSyntax(), folder), Kind.SYNTAX, ("*.js", "*.mjs", "*.cjs", "*.json")))
    choice.tests(test_command)
    if not test_command:
        choice.steps += _nested_tests(files, nested)
    _check_skipped(wishes, choice.steps)
    return in_order((one for one in choice.steps if one.kind in kinds), wishes)


def in_order(steps: Iterable[Placed], wishes: Wishes) -> tuple[Placed, ...]:
    """The steps that the user does not leave out, cheapest kind first."""
    wanted = [one for one in steps if not {one.kind, one.name} & wishes.skip]
    return tuple(sorted(wanted, key=lambda one: ORDER.index(one.kind)))


def _check_skipped(wishes: Wishes, steps: Iterable[Placed]) -> None:
    known = {*ORDER, *(one.name for one in steps), *(rung.name for rung in (*built_in(), *wishes.own))}
    for name in sorted(one for one in wishes.skip - known if not one.startswith(f"{Kind.DIAGNOSTICS} (")):
        raise ConfigError(
            f"the settings skip {name!r}, which is no step", advice=f"kinds of steps are {', '.join(ORDER)}"
        )


def with_absent(steps: Iterable[Placed], wishes: Wishes) -> tuple[Placed, ...]:
    """The steps, with a word for each kind of which the project has none or which the user leaves out."""
    present = list(steps)
    kinds = {one.kind for one in present}
    for kind in ORDER:
        if kind not in kinds:
            reason = "left out by the settings" if kind in wishes.skip else _ABSENT.get(kind, "there is none")
            present.append(Placed(Absent(kind, reason), kind))
    return tuple(sorted(present, key=lambda one: ORDER.index(one.kind)))


def _python() -> Iterator[Placed]:
    code = ("*.py", "*.pyi", *_PYTHON_CONFIG)
    yield Placed(Syntax(), Kind.SYNTAX, ("*.py", "*.pyi", "pyproject.toml"))
    yield Placed(Types(), Kind.TYPES, (*code, "pyrightconfig.json"))
    yield Placed(Ruff(), Kind.LINT, (*code, ".gitignore"))


def _nested_tests(files: Folder, nested: Iterable[str]) -> Iterator[Placed]:
    for folder in nested:
        inside = Within(files, folder)
        if frameworks_of(inside) or _script(inside):
            yield Placed(Nested(Tests(command=_script(inside)), folder), Kind.TESTS)


def _script(files: Folder) -> tuple[str, ...]:
    """The package's own test command where no framework can be told; empty where there is none."""
    scripts = package_json(files).get("scripts")
    test = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(test, str) or _NO_TESTS in test or detect(files).framework is not None:
        return ()
    return (*installer_of(files).run, "test")
