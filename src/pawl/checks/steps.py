"""The common part of checks: their subject, how they run a tool, how they report."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import posixpath
import re
import secrets
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Protocol

from pawl.checks import catalog as commands
from pawl.checks.catalog import Detection, Framework, detect, first_named, named, read
from pawl.checks.known_commands import TestCommand
from pawl.checks.output import Origin, printed
from pawl.checks.project_facts import Folder, missing_modules, package_json, text
from pawl.checks.python_packages import offer
from pawl.checks.report import UNLISTED, TestReport
from pawl.checks.runners import SHELL, own_packages, own_runner, starts_runner, watched
from pawl.checks.services import NOT_SERVED, TestService, not_served, served, without_services
from pawl.checks.test_choice import TestChoice, file_of
from pawl.core.diagnostic import INCOMPLETE, CheckResult, Diagnostic, Status, TestCounts, TestOutcome, TestRun
from pawl.core.errors import CommandNotFound, PathRefused, SandboxUnavailable
from pawl.core.execution import Completed, Ending, Execution, Limits
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.environments import Environment
from pawl.workspace.git import CommandRunner
from pawl.workspace.paths import clean

_NOT_FOUND = (126, 127)
_LOOK_SECONDS = 5.0
_FIFO = "FIFO "
_ENVIRONMENTS = (".venv", "venv", "env")
_IMPORT_PATH = "PYTHONPATH"
_NOT_OURS = frozenset({*_ENVIRONMENTS, "node_modules", ".tox", ".nox", "build", "dist", ".git", "site-packages"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of verification: a workspace as it stands on a bench."""

    files: Folder
    runner: CommandRunner
    workspace: str = ""
    """Its absolute path as commands see it."""
    changed: tuple[str, ...] = ()
    """The paths that were changed; empty stands for the whole workspace."""
    added: frozenset[str] = frozenset()
    """The paths that a run added."""
    first: tuple[str, ...] = ()
    """The paths to begin with where not all are looked at."""
    test_command: tuple[str, ...] = ()
    """The user's own; empty lets the framework decide."""
    chosen: TestChoice | None = None
    """The tests to run; None for all."""
    services: tuple[TestService, ...] = ()
    """Those that are started around the tests."""
    spare: Mapping[str, str] = field(default_factory=dict)
    """Programs by name that Pawl brings along, for workspaces that have none of their own."""
    environment: Environment = field(default_factory=Environment)
    candidates: tuple[TestCommand, ...] = ()
    """Commands of the project's that may run its tests, the likeliest first."""
    places: tuple[str, ...] = ()
    """What pytest is told to look at, where its settings leave out tests that count."""
    believe: Callable[[TestCommand], None] = lambda _: None
    """Told of a command that has reported tests."""
    interpreters: dict[str, str] = field(default_factory=dict)
    """Their paths, of those that were asked: what stands on the PATH may be a script that looks for one."""
    limits: Limits = field(default_factory=lambda: Limits(seconds=600.0))
    depth: int = 0
    """How many folders the subject lies below the workspace's own."""

    @property
    def origin(self) -> Origin:
        return Origin(workspace=self.workspace, files=frozenset(self.files.walk()))

    @property
    def python(self) -> str:
        """The interpreter of the project's environment where it has one."""
        return self.tool("python") or "python3"

    def tool(self, name: str) -> str | None:
        """A program of the project's environment, by a path that commands can run; one on the bench goes first."""
        for environment in _ENVIRONMENTS:
            path = f"{environment}/bin/{name}"
            if self.files.exists(path):
                return posixpath.join(self.workspace or ".", path)
        return self.environment.program(name) or None

    def programs(self, name: str) -> list[tuple[str, ...]]:
        """Words that may start a tool: the workspace's own, one on the PATH, Pawl's, or the interpreter's module."""
        own, spare = self.tool(name), self.spare.get(name)
        named = [(own,)] if own else []
        return [*named, (name,), (spare,) if spare else (self.python, "-I", "-m", name)]

    def node_programs(self, name: str) -> list[str]:
        """Candidates for a program of node_modules: of the folder itself, of one above it, or on the PATH."""
        own = f"node_modules/.bin/{name}"
        if self.files.exists(own):
            return [posixpath.join(self.workspace or ".", own)]
        return [*("../" * up + own for up in range(1, self.depth + 1)), name]

    def interpreter(self) -> str:
        """The absolute path of the workspace's interpreter; empty when it cannot be run."""
        known = self.python if posixpath.isabs(self.python) else self.interpreters.get(self.python, "")
        if known:
            return known
        completed = self.run((self.python, "-I", "-c", "import sys; print(sys.executable)"))
        found = completed.stdout.text.strip() if completed is not None and completed.ok else ""
        self.interpreters[self.python] = found
        return found

    def python_files(self) -> tuple[str, ...]:
        """The Python files to look at: those changed, or all."""
        paths = self.changed or tuple(self.files.walk())
        ours = (path for path in paths if _NOT_OURS.isdisjoint(path.split("/")))
        return tuple(path for path in ours if path.endswith((".py", ".pyi")) and self.files.exists(path))

    @property
    def likeliest(self) -> TestCommand:
        """The command that is known to run the tests, or the first that may."""
        return next(iter(self.candidates), TestCommand(words=()))

    def variables(self, assigned: Iterable[str], *, finds_packages: bool) -> dict[str, str]:
        """Those of a test command, with one by which its Pythons import the project's packages from the workspace where
        the command does not see to that by itself."""
        found = dict(one.split("=", 1) for one in assigned)
        folders = [] if finds_packages else list(own_packages(self.files))
        folders += [one for one in found.pop(_IMPORT_PATH, "").split(":") if one and not one.startswith(("/", ".."))]
        places = [posixpath.normpath(posixpath.join(self.workspace, folder)) for folder in folders]
        given = self.environment.variables.get(_IMPORT_PATH, "")
        path = {_IMPORT_PATH: ":".join((*places, *filter(None, (given,))))} if places and self.workspace else {}
        return {**found, **path}

    def run(self, argv: Sequence[str], variables: Mapping[str, str] | None = None) -> Completed | None:
        """How the command ended; None when its program is not there."""
        try:
            completed = self.runner.run(Execution(argv=tuple(argv), limits=self.limits, environment=variables or {}))
        except CommandNotFound:
            return None
        if completed.ending is Ending.TIMED_OUT:
            return self._held_up(completed)
        return None if completed.ending is Ending.EXITED and completed.code in _NOT_FOUND else completed

    def _held_up(self, completed: Completed) -> Completed:
        """With the FIFO that a command of the bench may have waited for, where one stands there."""
        words = ("find", ".", "-xdev", "-type", "p", "-print", "-quit")
        try:
            limits = dataclasses.replace(self.limits, seconds=_LOOK_SECONDS)
            found = self.runner.run(Execution(argv=words, limits=limits)).stdout.text.strip()
        except (CommandNotFound, SandboxUnavailable):
            return completed
        return dataclasses.replace(completed, notices=(*completed.notices, _FIFO + found)) if found else completed

    def run_first(
        self, candidates: Iterable[Sequence[str]], variables: Mapping[str, str] | None = None
    ) -> Completed | None:
        """The first command whose program is there; `python -m` without the module counts as missing."""
        for argv in candidates:
            completed = self.run(argv, variables)
            if completed is not None and not _lacks_module(argv, completed):
                return completed
        return None


def _lacks_module(argv: Sequence[str], completed: Completed) -> bool:
    if "-m" not in argv[:-1]:
        return False
    module = argv[argv.index("-m") + 1]
    return not completed.ok and f"No module named {module}" in completed.stderr.text


class CheckStep(Protocol):
    """One rung of verification."""

    @property
    def name(self) -> str: ...

    def run(self, subject: Subject) -> CheckResult: ...


def skipped(step: str, reason: str) -> CheckResult:
    return CheckResult(step=step, standing=Status.SKIPPED, reason=reason)


def passed(step: str, reason: str = "", counts: TestCounts | None = None) -> CheckResult:
    return CheckResult(step=step, standing=Status.PASS, reason=reason, counts=counts)


def failed(
    step: str, reason: str, findings: Iterable[Diagnostic] = (), counts: TestCounts | None = None
) -> CheckResult:
    return CheckResult(step=step, standing=Status.FAIL, reason=reason, findings=tuple(findings), counts=counts)


STOPPED = "the command was stopped"


def stopped(completed: Completed) -> str:
    """Why a command did not exit by itself; empty when it did."""
    if completed.ending is Ending.EXITED:
        return ""
    detail = f" {completed.signal}" if completed.signal else ""
    fifo = next((one.removeprefix(_FIFO) for one in completed.notices if one.startswith(_FIFO)), "")
    why = f"; the FIFO {fifo!r} is there, which blocks whatever reads it: remove it" if fifo else ""
    return f"{STOPPED}: {completed.ending.value}{detail} after {completed.seconds:.0f} s{why}"


def amount(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


NONE_RAN = "no tests ran"
_LACKED = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
NONE_CHOSEN = "none of its tests was chosen"


def for_tests(subject: Subject, tests: Sequence[str]) -> Subject | None:
    """The subject with the command for these tests, ids or files; None where they cannot be run by name."""
    framework = detect(subject.files).framework
    labelled = next((one for command in subject.candidates if (one := command.with_labels(tests))), None)
    files = tuple(dict.fromkeys(map(file_of, tests)))
    variables = (labelled or subject.likeliest).variables
    if labelled is not None:
        words = labelled.with_python(subject.python)
    elif framework is None:
        words = ()
    elif not framework.commands.select.each and any(subject.files.exists(test) for test in tests):
        words = commands.of_files(framework, files, subject.files, python=subject.python)
    else:
        words = commands.some_tests(framework, tests, python=subject.python)
    given = (*variables, *words)
    return dataclasses.replace(subject, test_command=given, chosen=TestChoice(files=files)) if words else None


@dataclass(frozen=True, slots=True)
class Tests:
    __test__ = False

    name: str = "tests"
    framework: str = ""
    """The one to run; empty lets the project's files decide."""
    command: tuple[str, ...] = ()
    """The command that runs the tests where no framework is found."""

    def run(self, subject: Subject) -> CheckResult:
        """The first command that reports tests decides; where none does, the user's own or the framework's."""
        usual = Detection(framework=None, reason="") if subject.test_command else self._detected(subject, None)
        last = skipped(self.name, usual.reason)
        chosen = self._chosen(subject, usual.framework)
        if chosen == () and subject.chosen is not None:
            return skipped(self.name, f"{NONE_CHOSEN}; {subject.chosen.rest}")
        for command in chosen or self._commands(subject, usual.framework):
            argv = command.with_python(subject.python)
            told = command.given in (subject.test_command, self.command) or command.source
            detection = self._detected(subject, shlex.join(argv)) if told else usual
            last = self._ran(subject, command, detection) or self._missing(subject, argv)
            if chosen and subject.chosen is not None and last.standing is not Status.SKIPPED:
                last = dataclasses.replace(last, part=subject.chosen.told(last))
            elif last.counts is not None and last.counts.total and not (subject.test_command or subject.places):
                subject.believe(dataclasses.replace(command, tests=last.counts.total))
            if last.counts is not None and (last.counts.total or last.incomplete.startswith(STOPPED)):
                return last
        return last

    def _chosen(self, subject: Subject, framework: Framework | None) -> tuple[TestCommand, ...] | None:
        """The commands for the chosen tests, none where none is chosen; None where the whole suite is run."""
        choice = subject.chosen
        if choice is None or framework is None or subject.test_command or self.command:
            return None
        ours = [
            path for path in choice.files if commands.tests_language(framework, path) and subject.files.exists(path)
        ]
        if not ours:
            return ()
        changed = [path for path in choice.changed if subject.files.exists(path)]
        found = [] if self.framework else [one.with_labels(ours) for one in subject.candidates]
        usual = commands.of_files(framework, ours, subject.files, changed=changed, python=subject.python)
        variables = subject.likeliest.variables
        return (*(one for one in found if one is not None), TestCommand(words=usual, variables=variables))

    def _commands(self, subject: Subject, framework: Framework | None) -> Iterator[TestCommand]:
        """The user's own alone, or those that the project's files name and then its framework's."""
        if subject.test_command:
            yield TestCommand.of(subject.test_command)
            return
        usual = self.command or (
            _script(framework, subject) or commands.all_tests(framework, python=subject.python) if framework else ()
        )
        if usual and subject.places and framework and framework.name == "pytest":
            yield TestCommand(words=(*usual, *subject.places), variables=subject.likeliest.variables)
            return
        if not self.framework and (framework is None or framework.language == "python"):
            yield from (one for one in subject.candidates if one.variables or one.with_python(subject.python) != usual)
        if usual:
            yield TestCommand.of(usual)

    def _ran(self, subject: Subject, command: TestCommand, detection: Detection) -> CheckResult | None:
        """How the command ended; None where its program is not there."""
        argv, asked = command.with_python(subject.python), command.given in (subject.test_command, self.command)
        if argv[:2] == _NPX and detection.framework is not None and (subject.chosen is not None or not asked):
            argv = (*argv[:3], *_own_options(detection.framework, subject), *argv[3:])
        if argv[:2] == ("go", "test") and "-json" not in argv:
            # Its events name every test and how it ended.
            argv = ("go", "test", "-json", *argv[2:])
        # A bare `pytest` as a module of the workspace's interpreter: only so is the workspace on the import path.
        module = [(subject.python, "-m", "pytest", *argv[1:])] if argv[0] in ("pytest", "py.test") else []
        for words in (*module, *_without_npx(argv, subject)):
            # Not to be guessed by what is tested.
            sign = f"pawl-{secrets.token_hex(8)}"
            guarded = watched(subject.files, words, subject.added, sign)
            env = subject.variables(command.variables, finds_packages=starts_runner(words))
            if subject.chosen is not None and detection.framework is not None:
                env = {**env, **detection.framework.commands.part}
            completed = subject.run_first([served(subject.services, guarded or words)], env)
            if guarded and completed and completed.code == _BAD_OPTION and "bad option" in printed(completed):
                guarded, completed = (), subject.run_first([served(subject.services, words)], env)
            if completed is not None and completed.code == NOT_SERVED and subject.services:
                why = not_served(subject.services, printed(completed))
                return dataclasses.replace(skipped(self.name, why), incomplete=why, command=words)
            if completed is not None:
                output, seen = watched_tests(printed(completed), sign)
                found = read(output, detection, subject.origin)
                unseen = bool(guarded) and (seen is None or _left_early(seen.ran, detection, subject))
                result = verdict(self.name, completed, found, asked=asked, unseen=unseen)
                if guarded and result.standing is Status.PASS and (own := own_runner(subject.files)):
                    why = f"the project is {own}, and a test runner cannot verify itself"
                    result = dataclasses.replace(result, incomplete=why, reason=f"{result.reason}; {why}")
                result = seen.applied(result) if seen else dataclasses.replace(result, ran=found.ran)
                result = without_services(_with_offer(result, output, subject.files))
                return dataclasses.replace(result, command=words, seconds=completed.seconds)
        return None

    def _missing(self, subject: Subject, argv: tuple[str, ...]) -> CheckResult:
        program = argv[2] if argv[0] in (subject.python, "npx") else argv[0]
        offered = "" if subject.test_command else offer(subject.files)
        why = missing_modules(subject.files) or f"{program!r} is not installed{offered}"
        return dataclasses.replace(skipped(self.name, why), incomplete=why, command=argv)

    def _detected(self, subject: Subject, command: str | None) -> Detection:
        if self.framework:
            return Detection(framework=named(self.framework), reason=f"the project uses {self.framework}")
        return detect(subject.files, command)


def _with_offer(result: CheckResult, output: str, files: Folder) -> CheckResult:
    """Names the modules that a run lacks and that are not the project's own, with how they are installed."""
    names = dict.fromkeys(name.partition(".")[0] for name in _LACKED.findall(output))
    own = {name for names in own_packages(files).values() for name in names}
    away = [one for one in names if one not in own and not any(map(files.exists, (one, f"{one}.py")))]
    if result.standing is Status.PASS or not away:
        return result
    told = f"{', '.join(away)} not installed{offer(files)}"
    return dataclasses.replace(result, reason="; ".join(filter(None, (result.reason, told))))


def _left_early(seen: Iterable[TestRun], detection: Detection, subject: Subject) -> bool:
    """Whether a file that is written for the framework ran and showed none of its tests."""
    marks = detection.framework.detect.marks if detection.framework else ()
    passed = (one.id for one in seen if one.outcome is TestOutcome.PASSED)
    files = (name for name in passed if _is_path(name) and subject.files.exists(name))
    return any(mark.search(text(subject.files, path)) for path in files for mark in marks)


def _is_path(name: str) -> bool:
    """Whether a test's id can be that of a file: parameters may hold anything."""
    with suppress(PathRefused):
        return "::" not in name and clean(name) == name
    return False


def _script(framework: Framework, subject: Subject) -> tuple[str, ...]:
    """The project's own script where it builds what is tested before the runner starts; what it lints is left out."""
    found = package_json(subject.files).get("scripts") if framework.language == "javascript" else None
    scripts = found if isinstance(found, dict) else {}
    parts = [
        part.strip()
        for name in ("pretest", "test")
        for part in re.split(r"&&|;", str(scripts.get(name) or ""))
        if part.strip() and not _NO_BUILD.search(part)
    ]
    runs = [index for index, part in enumerate(parts) if first_named(part) == framework]
    if not runs or (runs[0] == 0 and not _LOADS.search(parts[0])):
        return ()
    runner = " ".join((parts[runs[0]], *(word for word in framework.commands.all[3:] if word != "run")))
    bins = ":".join(f"$PWD/{'../' * up}node_modules/.bin" for up in range(subject.depth + 1))
    return (*SHELL, f'PATH="{bins}:$PATH"; {" && ".join((*parts[: runs[0]], runner))}')


_NO_BUILD = re.compile(r"lint|prettier|biome|\bstandard\b|\bxo\b|--noEmit|type-?check|check-types|\baudit\b")
_LOADS = re.compile(r"\bnode\b.*\s(?:--import|--loader|--experimental-loader|--require|-r)\b")
"""Options of Node that bring in what reads another language."""
_BAD_OPTION = 9
"""The exit code of a Node that does not know an option by which its tests are watched."""
_NPX = ("npx", "--no-install")


def _own_options(framework: Framework, subject: Subject) -> list[str]:
    """What the project's script sets its tests up by (`jest --config tests/jest.config.js`)."""
    scripts = package_json(subject.files).get("scripts")
    named = sorted((scripts if isinstance(scripts, dict) else {}).items(), key=lambda one: one[0] != "test")
    for name, script in named:
        for part in re.split(r"&&|;", str(script)) if name.startswith("test") else ():
            if first_named(part) == framework:
                pairs = itertools.pairwise((*re.split(r"[\s=\"']+", part), ""))
                return [word for pair in pairs if pair[0] in framework.commands.own for word in pair]
    return []


def _without_npx(argv: tuple[str, ...], subject: Subject) -> list[tuple[str, ...]]:
    """The program itself in the place of `npx`, which asks the network for one that is not there."""
    if argv[:2] != _NPX:
        return [argv]
    return [(program, *argv[3:]) for program in subject.node_programs(argv[2])]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """A run of tests as `inside/launch.py` or `inside/node_watch.mjs` saw it."""

    ran: tuple[TestRun, ...] = ()
    moved: tuple[tuple[str, str, str], ...] = ()
    """Folders of the project's packages that were put first: the folder, the package, and where else it was found."""
    elsewhere: tuple[tuple[str, str], ...] = ()
    """The project's packages that were imported from outside of the workspace, with where."""
    left_out: tuple[str, ...] = ()
    """Tests that code of the project took out of the run."""
    deselected: int = 0
    """Tests that the options of the runner leave out."""
    forged: str = ""
    """How code of the project makes reports of its own; empty where it does not."""

    def applied(self, result: CheckResult) -> CheckResult:
        """The result with what was seen. Tests of another copy of the project prove nothing about this one."""
        other = (
            f"they imported {name} from {posixpath.dirname(at)}, not from the workspace" for name, at in self.elsewhere
        )
        for why in (*other, *filter(None, [self.forged])):
            return dataclasses.replace(skipped(result.step, why), incomplete=why, counts=result.counts, ran=self.ran)
        told = [
            f"{folder or 'the project'} was put first on the import path: {name} is "
            + (f"also in {posixpath.dirname(posixpath.dirname(place))}" if place else "not installed")
            for folder, name, place in self.moved
        ]
        if self.deselected:
            told.insert(0, f"{self.deselected} deselected by options of the runner")
        reason = "; ".join(filter(None, (result.reason, *told)))
        return dataclasses.replace(result, ran=self.ran, left_out=self.left_out, reason=reason)


def watched_tests(output: str, sign: str) -> tuple[str, WatchedRun | None]:
    """The output without the last line of a run that is watched, and what that says; None where it is not there."""
    before, found, rest = output.rpartition(f"\n{sign} ")
    if not found:
        return output, None
    line, _, after = rest.partition("\n")
    try:
        body = json.loads(zlib.decompress(base64.b64decode(line)))
        seen = tuple(
            TestRun(id=str(name), outcome=TestOutcome(outcome), seconds=float(seconds), checked=checked)
            for name, outcome, seconds, checked in body["ran"]
        )
        moved = tuple((str(folder), str(name), str(place)) for folder, name, place in body.get("moved", ()))
        elsewhere = tuple((str(name), str(place)) for name, place in body.get("elsewhere", ()))
        forged = "; ".join(
            f"code of the project (conftest.py, a plugin) reports {one} as passed, {how}"
            for key, how in (("forged", "although it raised an error"), ("unexecuted", "although none of it ran"))
            for one in map(str, body.get(key, ()))
        )
        left_out, deselected = tuple(map(str, body.get("left_out", ()))), int(body.get("deselected", 0))
    except (ValueError, KeyError, TypeError, zlib.error):
        return output, None
    return f"{before}\n{after}", WatchedRun(
        ran=seen, moved=moved, elsewhere=elsewhere, left_out=left_out, deselected=deselected, forged=forged
    )


LEFT_EARLY = "the runner exited early, whatever it printed"
SHOWS_NONE = "the command succeeded, but reported no tests"


def verdict(
    step: str, completed: Completed, found: TestReport, *, asked: bool = False, unseen: bool = False
) -> CheckResult:
    """Passed only when the command says so, a test ran and none failed; what could not be read counts against it.

    The exit code of a command that the user or the project `asked` for counts where it shows no tests. A watched runner
    whose end was `unseen` has proved nothing.
    """
    counts = found.counts
    said = ", ".join(
        amount(number, word) if word == "error" else f"{number} {word}"
        for number, word in (
            (counts.passed, "passed"),
            (counts.failed, "failed"),
            (counts.errors, "error"),
            (counts.skipped, "skipped"),
        )
        if number
    )
    notes = "; ".join(found.notes)
    reason = "; ".join(filter(None, (stopped(completed), said, notes)))
    unlisted = any(note.startswith(UNLISTED) for note in found.notes)
    if found.complete and not found.failed and not counts.total and not unlisted:
        return skipped(step, NONE_RAN)
    # A runner that leaves in the middle of its tests proves nothing, whatever its exit code says.
    broke_off = unseen or (found.broke_off and (counts.total > 0 or not asked))
    if completed.ok and not found.failed and not broke_off:
        if counts.total or unlisted:
            return passed(step, reason, counts)
        return passed(step, SHOWS_NONE, counts)
    findings = list(found.findings)
    if broke_off or not found.complete:
        findings.append(_incomplete(completed, found))
    early = LEFT_EARLY if broke_off and completed.ok else ""
    incomplete = stopped(completed) or early or ("; ".join(found.notes) if found.stopped or broke_off else "")
    code = (
        ""
        if found.failed or completed.ok or early or incomplete
        else f"the command failed with exit code {completed.code}"
    )
    said = "; ".join(filter(None, (reason or early, code))) or f"exit code {completed.code}"
    return dataclasses.replace(failed(step, said, findings, counts), incomplete=incomplete)


def _incomplete(completed: Completed, found: TestReport) -> Diagnostic:
    """Stands for what the report does not show, so that known failures alone never excuse a run that broke off."""
    why = stopped(completed) or "; ".join(found.notes) or f"exit code {completed.code} without a report"
    return Diagnostic(tool="tests", message=f"the report is not complete: {why}", code=INCOMPLETE)
