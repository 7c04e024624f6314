"""The ground of one repair: the bench, what is verified on it, what stood there before, and the engine on it."""

from __future__ import annotations

import difflib
import os
import shlex
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from importlib import resources
from typing import Any

from pawl.checks.catalog import Detection, detect
from pawl.checks.known_commands import TestCommand, known_commands
from pawl.checks.language_steps import lint_fixed
from pawl.checks.output import places
from pawl.checks.report import UNLISTED
from pawl.checks.runners import launched
from pawl.checks.steps import Subject, Tests, failed, stopped
from pawl.checks.test_choice import TestChoice
from pawl.checks.test_chooser import RUNS
from pawl.checks.verifier import Verifier
from pawl.code.reach import ChangedLines
from pawl.core.diagnostic import INCOMPLETE, CheckResult, Diagnostic, Status, TestCounts
from pawl.core.errors import CannotFix, NoTests, ParseFailed, PawlError, UsageError
from pawl.core.execution import Completed, Ending, Execution, Limits, Stream
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_json, typed
from pawl.repair.model import (
    BaselineTaken,
    ClockStarted,
    FixRequest,
    LinesSuspected,
    Listener,
    ProblemFound,
    Progressed,
    RepairEnded,
    RepairEvent,
    RepairRequest,
    StageBegun,
)
from pawl.repair.sources import FixTarget, aim_at
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench import Bench
from pawl.workspace.project import Project

PYTHON = ("pytest", "unittest")
GRACE_SECONDS = 30.0
"""Time for the engine beyond its budget, to collect and to end in order."""
MOST_SOURCES = 5000
HANGS = "hangs"
ENDS = "ends"
"""The code of a finding that stands for something that does not end."""
_LONGEST = 200
"""Of what a command printed."""
_MOST_ABOUT = 20
_SILENT_SHARE = 1 / 4
_SILENCE = (2.0, 15.0)


@dataclass(slots=True)
class RepairGround:
    """The bench, what is verified on it, and what stood there before."""

    shop: Project
    bench: Bench
    request: FixRequest
    listen: Listener
    originals: dict[str, bytes] = field(default_factory=dict)
    """The files that were edited, as they were."""
    notes: list[str] = field(default_factory=list)
    choice: TestChoice | None = None
    """The tests that are run where they are not all."""
    _began: float = field(default_factory=time.monotonic)
    _clock: float | None = None
    """When the suite had been run once."""

    @property
    def left(self) -> float:
        """Seconds that are left to search; where the whole is limited, the verification needs some of them."""
        left = self.request.seconds - (0.0 if self._clock is None else time.monotonic() - self._clock)
        stop = self.shop.stop
        if stop is None or self._clock is None:
            return left
        return min(left, stop.left - 1.5 * (self._clock - self._began))

    def choose(self, tests: Sequence[str], sources: Sequence[str]) -> None:
        """Of a suite that is too large those that are named, and what the sources or the work in progress reach."""
        about = [ChangedLines.of(path, self.bench.files.read(path), b"") for path in sources[:_MOST_ABOUT]]
        self.choice = self.verifier.of_uncommitted(tests, about, self.request.seconds / RUNS).choice

    @property
    def verifier(self) -> Verifier:
        return Verifier(shop=self.shop, test_command=self.request.test_command, choice=self.choice)

    @property
    def subject(self) -> Subject:
        return self.verifier.subject(self.bench.files, self.bench)

    @abstractmethod
    def run_tests(self) -> CheckResult:
        """The suite's verdict."""

    def start_clock(self, failing: int, suite: CheckResult) -> None:
        """The suite has been run once; the budget is spent from now on."""
        self.notes += [self.choice.told(suite)] if self.choice is not None else []
        self._clock = time.monotonic()
        self.listen(ClockStarted(seconds=self.request.seconds, failing=failing))

    def write(self, path: str, data: bytes | str) -> None:
        """Edits a file of the bench. Nothing but such edits is ever promoted: tests may write what they like."""
        self.originals.setdefault(path, self.bench.files.read(path))
        self.bench.files.write(path, data.encode("utf-8") if isinstance(data, str) else data)

    def write_all(self, files: Mapping[str, bytes | str]) -> None:
        for path, data in files.items():
            self.write(path, data)

    @contextmanager
    def trial(self, files: Mapping[str, bytes | str]) -> Iterator[None]:
        """With these contents of some files, which are then put back."""
        before = {path: self.bench.files.read(path) for path in files}
        self.write_all(files)
        try:
            yield
        finally:
            self.write_all(before)

    @property
    def edited(self) -> dict[str, bytes]:
        """The files that are not as they were."""
        now = {path: self.bench.files.read(path) for path in self.originals}
        return {path: data for path, data in now.items() if data != self.originals[path]}

    def texts(self, paths: Iterable[str]) -> dict[str, str]:
        """Files of the bench by path, without those that are no text."""
        found: dict[str, str] = {}
        for path in paths:
            try:
                found[path] = self.bench.files.read(path).decode("utf-8")
            except (PawlError, UnicodeDecodeError):
                continue
        return found

    @contextmanager
    def fresh(self, bench: Bench) -> Iterator[None]:
        """On a bench that holds the edits and nothing that a run of the tests has left behind."""
        used = self.bench
        for path, data in self.edited.items():
            bench.files.write(path, data)
        self.bench = bench
        try:
            yield
        finally:
            self.bench = used

    def tidy(self, verdicts: Sequence[CheckResult]) -> bool:
        """Lets the linter mend what it newly finds in the edited files; whether there was something."""
        found = [one for check in verdicts for one in check.findings if one.path in self.edited]
        fixed = lint_fixed(self.subject, found)
        self.write_all(fixed)
        return bool(fixed)

    def verify(self, opened: Callable[[], Bench], first: Sequence[CheckResult], **how: Any) -> tuple[CheckResult, ...]:
        """Runs every check; only what is new counts against the edits. `first` are results without them."""
        self.listen(StageBegun(name="verify"))
        verifier = replace(self.verifier, opened=opened, listen=self.listen, **how)
        return verifier.verify_bench(self.bench, tuple(self.edited), first)


@dataclass(slots=True)
class PythonGround(RepairGround):
    aim: FixTarget = field(init=False)
    detection: Detection = field(init=False)
    _apart: bool = False
    """The tests are run each for itself: one hangs, or ends the interpreter."""
    _completed: Completed | None = None
    """How the last run of the suite ended; None where it did not end by itself."""
    _script: tuple[str, ...] = ()
    """The script of the project's that ran the suite, with its words."""
    _command: tuple[str, ...] = ()
    """The words that ran the suite of pytest."""

    def __post_init__(self) -> None:
        self.aim = aim_at(self.request.targets, self.bench.files.walk(), self.bench.files.read)
        self.detection = self._detected()
        self.choose(self.aim.tests, self.aim.sources)

    @property
    def silence(self) -> float:
        """How long a suite may print nothing before it is looked into."""
        shortest, longest = _SILENCE
        return max(shortest, min(longest, self.request.seconds * _SILENT_SHARE))

    @property
    def framework(self) -> str:
        assert self.detection.framework is not None
        return "unittest" if self._script else self.detection.framework.name

    def limits(self, seconds: float) -> Limits:
        return self.shop.config.settings.limits(seconds)

    def request_for(self, mend: Sequence[str], seconds: float) -> RepairRequest:
        """Asks the engine to make these tests pass, or to look at all of them."""
        return RepairRequest(
            root=self.shop.workspace,
            targets=self.aim.sources,
            tests=_words(self.request.test_command or self._command, self.framework),
            script=self._script,
            seconds=seconds,
            workers=self.request.workers,
            memory_bytes=self.limits(seconds).memory_bytes // max(1, self.request.workers),
            framework=self.framework,
            mend=tuple(mend),
            words=(self.request.objective,) if self.request.objective else (),
        )

    def run_engine(self, request: RepairRequest, take: Take, cancel: CancelToken | None = None) -> Completed:
        """Starts the engine with the workspace's own interpreter; it has a little more time than it is asked for."""
        words = launched(self.bench.files, command(request, self.subject.python))
        variables = self.subject.variables(self._assigned, finds_packages=True)
        limits = self.limits(request.seconds + GRACE_SECONDS)
        execution = Execution(argv=words, limits=limits, environment=variables)
        return self.bench.run(execution, on_output=EventLines(take).feed, cancel=cancel)

    def _survey(self, request: RepairRequest) -> BaselineTaken | None:
        """How each test stands, by a run in which no test can hang; None when that cannot be told."""
        taken: list[BaselineTaken] = []
        cancel = CancelToken(above=self.bench.stop)

        def take(event: RepairEvent) -> None:
            if isinstance(event, BaselineTaken):
                taken.append(event)
                cancel.request()

        try:
            self.run_engine(request, take, cancel)
        finally:
            cancel.close()
        return taken[0] if taken else None

    def note_tests(self, word: str, tests: Sequence[str]) -> None:
        """Notes once what is odd about some tests."""
        note = f"{word}: {', '.join(tests[:3])}{' …' if len(tests) > 3 else ''}"
        if tests and note not in self.notes:
            self.notes.append(note)

    def first_run(self) -> CheckResult:
        """The suite before anything is changed. The budget is spent from then on."""
        self.listen(StageBegun(name="suite"))
        verdict = self.run_tests()
        if verdict.standing is Status.SKIPPED:
            raise self._cannot_start(verdict)
        if self._completed is not None and not self._apart and _shows_no_test(verdict):
            raise no_test_ran(self._completed, verdict, shlex.join(self.request.test_command))
        for finding in verdict.findings:
            if finding.code == INCOMPLETE and Ending.TIMED_OUT in finding.message:
                raise CannotFix(
                    f"the suite did not end within {self.subject.limits.seconds:.0f} seconds",
                    advice="name a faster part of it, such as --test 'pytest tests/unit -x'",
                )
            if finding.code == HANGS and not finding.test:
                raise CannotFix(
                    f"no test can run: {finding.message}",
                    advice="find out why it does not end, fix that, then run this again",
                )
        self.start_clock(len(failing_tests(verdict)), verdict)
        return verdict

    def run_tests(self) -> CheckResult:
        """The suite's verdict, also when it does not come to its end: then by test, in a run that none can stop."""
        started = time.perf_counter()
        verdict = self._surveyed() if self._apart else None
        if verdict is None:
            runner = StallGuard(self.bench, self.silence)
            verdict = Tests().run(replace(self.subject, runner=runner))
            self._command = verdict.command if self.framework == "pytest" else ()
            if any(finding.tool == "unittest" for finding in verdict.findings):
                self._script = _script(verdict.command)
            self._completed = None if runner.fell_silent else runner.completed
            if runner.fell_silent:
                verdict = self._surveyed() or Tests().run(self.subject)
            elif verdict.incomplete and self._completed is not None and not stopped(self._completed):
                verdict = self._surveyed() or verdict
        return replace(verdict, seconds=time.perf_counter() - started)

    def _surveyed(self) -> CheckResult | None:
        """How each test stands while some hang or end the interpreter; None when none does."""
        request = self.request_for((), self.request.seconds)
        where = where_it_hangs(self.subject, self.framework, request.tests, self.silence) if not self._script else ""
        if where:
            message = f"{where} does not end when it is imported"
            return failed("tests", message, [Diagnostic(tool=self.framework, message=message, code=HANGS)])
        taken = self._survey(request)
        if taken is None or not (taken.hanging or taken.ending):
            return None
        self._apart = True
        self.note_tests("did not end in time", taken.hanging)
        self.note_tests("ends the interpreter, skipped", taken.ending)
        words = dict(zip(taken.failing, taken.said, strict=True)) | dict.fromkeys(taken.hanging, "did not end")
        words |= dict.fromkeys(taken.ending, "it ends the interpreter")
        codes = dict.fromkeys(taken.hanging, HANGS) | dict.fromkeys(taken.ending, ENDS)
        findings = [
            Diagnostic(tool=self.framework, message=word, test=test, code=codes.get(test, ""))
            for test, word in words.items()
        ]
        counts = TestCounts(passed=taken.passed, failed=len(findings))
        odd = ((len(taken.hanging), "did not end"), (len(taken.ending), "ended the interpreter"))
        reason = ", ".join(f"{number} of the tests {what}" for number, what in odd if number)
        return failed("tests", reason, findings, counts)

    def sources(self) -> dict[str, str]:
        """The Python files of the workspace, as texts."""
        return self.texts(self.subject.python_files()[:MOST_SOURCES])

    def _detected(self) -> Detection:
        """The framework, which must be one that the reflex can work with."""
        command = shlex.join(self.request.test_command) if self.request.test_command else None
        detection = detect(self.bench.files, command)
        if detection.framework is None and command is None:
            # A command that the project names may say what no dependency and no file does.
            named = (*(one.shown for one in self.subject.candidates), "npm test")
            found = (detect(self.bench.files, one) for one in named)
            detection = next((one for one in found if one.framework), detection)
        if detection.framework is None:
            raise NoTests(f"no tests found: {detection.reason}", advice="name the command with --test 'CMD'")
        if detection.framework.name not in PYTHON:
            raise CannotFix(
                f"the tests are {detection.framework.name} tests, "
                f"in another language ({detection.framework.language}): "
                "repairing without a model is for Python, TypeScript and JavaScript",
                advice="a model can work on them: pawl do 'make the tests pass'",
            )
        return detection

    def refuse_unknown(self, verdict: CheckResult) -> None:
        """Refuses an id with parameters that are none of its test's; only the suite itself knows them."""
        failing = {finding.test for finding in verdict.findings}
        for test in self.aim.tests:
            if "[" not in test or test in failing or self.framework != "pytest":
                continue
            known = self._collected(test.partition("[")[0])
            if known and test not in known:
                close = difflib.get_close_matches(test, known, n=1, cutoff=0.0)
                raise UsageError(f"there is no test {test!r}", advice=f"did you mean {close[0]!r}?")

    def refuse_not_run(self) -> None:
        """`CannotFix` where tests that are named and not among the failures do not pass by themselves either.

        A suite may end before it comes to them, or leave them out.
        """
        for test in self.aim.tests:
            words = self._alone(test)
            if not words:
                continue
            verdict = Tests(framework=self.framework, command=words).run(replace(self.subject, test_command=()))
            if verdict.standing is not Status.PASS:
                said = next((one.message.splitlines()[0] for one in shown(verdict) if one.message), verdict.reason)
                how = "it fails" if verdict.standing is Status.FAIL else "it does not run"
                raise CannotFix(
                    f"{test!r} was not run, or passes only together with others; by itself {how}: {said[:_LONGEST]}",
                    advice=f"fix it alone: pawl fix {shlex.quote(test)} --test {shlex.quote(shlex.join(words))}",
                )

    @property
    def _assigned(self) -> tuple[str, ...]:
        """The variables that the tests are run with."""
        given = self.request.test_command
        return (TestCommand.of(given) if given else self.subject.likeliest).variables

    def _alone(self, test: str) -> tuple[str, ...]:
        """The command that runs nothing but this test; empty where there is none."""
        if self.framework == "pytest":
            return (*self._assigned, "pytest", test)
        path, *names = test.split("::")
        known = known_commands(self.shop.config).load(self.shop.workspace)
        if labelled := known and known.with_labels([path]):
            return (*labelled.variables, *labelled.with_python(self.subject.python))
        module = path.removesuffix(".py").replace("/", ".")
        words = (*self._assigned, self.subject.python, "-m", "unittest", ".".join((module, *names)))
        return words if path.endswith(".py") else ()

    def _collected(self, test: str) -> list[str]:
        """The ids of a test with each of its parameters."""
        words = (self.subject.python, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", test)
        variables = self.subject.variables(self._assigned, finds_packages=True)
        completed = self.subject.run(launched(self.bench.files, words), variables)
        lines = completed.stdout.text.splitlines() if completed is not None and completed.ok else ()
        return [line for line in lines if line.startswith(f"{test}[")]

    def _cannot_start(self, verdict: CheckResult) -> PawlError:
        if verdict.ran:
            advice = "let the tests report themselves"
            return CannotFix(f"nothing is known of the tests: {verdict.reason}", advice=advice)
        if "not installed" not in verdict.reason:
            advice = "write one in a file named test_*.py, or name the command that runs them with --test 'CMD'"
            return NoTests(f"no tests found: {self.framework} ran and found none", advice=advice)
        python = self.subject.python.removeprefix(f"{self.shop.workspace}/")
        advice = "name an installed command with --test 'CMD'"
        if not self.request.test_command:
            advice = f"install it with: {python} -m pip install {self.framework}; or {advice}"
        return CannotFix(f"the tests cannot run: {verdict.reason}", advice=advice)


def _shows_no_test(verdict: CheckResult) -> bool:
    """Whether neither a test nor a place in the workspace is to be seen."""
    counted = verdict.counts is not None and verdict.counts.total > 0
    timed_out = any(Ending.TIMED_OUT in finding.message for finding in verdict.findings)
    placed = any(finding.test or finding.path or finding.code == HANGS for finding in verdict.findings)
    return not (counted or placed or timed_out or UNLISTED in verdict.reason)


def no_test_ran(completed: Completed, verdict: CheckResult, command: str) -> PawlError:
    """Says what the command printed instead of a report, and how it ended."""
    told = [finding.message for finding in verdict.findings if finding.code != INCOMPLETE]
    lines = [line.strip() for line in f"{completed.stdout.text}\n{completed.stderr.text}".splitlines() if line.strip()]
    said = (told or lines[-1:] or [""])[0].splitlines()[:1]
    printed_it = f"printed {said[0][:_LONGEST]!r}" if said and said[0] else "printed nothing"
    ended = stopped(completed) or f"exited with code {completed.code}"
    message = f"no tests ran: {f'{command!r}' if command else 'the command of the suite'} {printed_it} and {ended}"
    if command:
        return NoTests(message, advice="name a command that runs the tests with --test 'CMD'")
    return CannotFix(message, advice="fix what it reports, or name the command that runs the tests with --test 'CMD'")


def failing_tests(verdict: CheckResult) -> tuple[Diagnostic, ...]:
    return tuple(finding for finding in verdict.findings if finding.test)


def shown(verdict: CheckResult) -> tuple[Diagnostic, ...]:
    """The findings for a person: that a report is not complete is news only where nothing else is."""
    every = (*verdict.findings, *verdict.old)
    return tuple(finding for finding in every if finding.code != INCOMPLETE) or every


def is_uncollected(finding: Diagnostic) -> bool:
    """Whether a finding stands for a whole file whose tests could not be loaded."""
    if finding.tool == "pytest":
        return bool(finding.test) and "::" not in finding.test
    return "_FailedTest" in finding.test


def _words(test_command: Sequence[str], framework: str) -> tuple[str, ...]:
    """The words that the user's command passes to the framework; none when it only leads to it."""
    words = shlex.split(test_command[0]) if len(test_command) == 1 else list(test_command)
    names = [word.rpartition("/")[2] for word in words]
    return next((tuple(words[at:]) for at, name in enumerate(names, 1) if name in (framework, "py.test")), ())


def _script(command: Sequence[str]) -> tuple[str, ...]:
    """The script that a command of Python runs, with its words; none where it runs a module."""
    known = (at for at, word in enumerate(command) if word in ("-m", "-c") or word.endswith(".py"))
    rest = command[next(known, len(command)) :]
    return tuple(rest) if rest and rest[0].endswith(".py") else ()


_COLLECT = {
    "pytest": """
import pytest
pytest.main(["--collect-only", "-q", "-s", "-p", "no:faulthandler", *sys.argv[2:]])
""",
    "unittest": """
import unittest
unittest.defaultTestLoader.discover(".")
""",
}
_OR_SAY_WHERE = """
import faulthandler, signal, sys
faulthandler.dump_traceback_later(float(sys.argv[1]), repeat=True)
signal.setitimer(signal.ITIMER_REAL, 2.5 * float(sys.argv[1]))
"""


class StallGuard:
    """Runs a command on a bench, and stops it when it prints nothing for too long."""

    def __init__(self, bench: Bench, silence: float) -> None:
        self.fell_silent = False
        self.completed: Completed | None = None
        """How the last command ended."""
        self._bench = bench
        self._silence = silence
        self._heard = 0.0

    def run(self, execution: Execution) -> Completed:
        cancel = CancelToken(above=self._bench.stop)
        self._heard = time.monotonic()
        self.fell_silent = False
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended, cancel), daemon=True)
        watcher.start()
        try:
            self.completed = self._bench.run(execution, on_output=self._listen, cancel=cancel)
            return self.completed
        finally:
            ended.set()
            watcher.join()
            cancel.close()

    def _listen(self, _: Stream, data: bytes) -> None:
        self._heard = time.monotonic()

    def _watch(self, ended: threading.Event, cancel: CancelToken) -> None:
        while not ended.wait(max(0.05, self._heard + self._silence - time.monotonic())):
            if time.monotonic() - self._heard >= self._silence:
                self.fell_silent = True
                cancel.request()
                return


def where_it_hangs(subject: Subject, framework: str, words: Sequence[str], seconds: float) -> str:
    """The place in the workspace where collecting the tests stands twice, that time apart; empty where it goes on."""
    script = _OR_SAY_WHERE + _COLLECT[framework]
    completed = subject.run(launched(subject.files, (subject.python, "-c", script, str(seconds), *words)))
    dumps = completed.stderr.text.split("Timeout (")[1:] if completed is not None else []
    tops = [place for dump in dumps for place in places(dump, subject.origin)[:1]]
    return f"{tops[0].path}:{tops[0].line}" if len(tops) > 1 == len({place.path for place in tops}) else ""


def start_script() -> str:
    """The engine's entry; its folder must be readable where the command runs."""
    return os.fspath(resources.files("pawl.repair") / "inside" / "start.py")  # type: ignore[call-overload, no-any-return]


def command(request: RepairRequest, python: str) -> tuple[str, ...]:
    """The words that run the engine with the workspace's own interpreter."""
    return (python, start_script(), request.to_json())


_EVENTS: dict[str, type[RepairEvent]] = {
    "stage": StageBegun,
    "problem": ProblemFound,
    "baseline": BaselineTaken,
    "suspicious": LinesSuspected,
    "progress": Progressed,
    "done": RepairEnded,
}


def parse_event(line: bytes) -> RepairEvent:
    try:
        values = read_json(line)
        event: RepairEvent = typed(_EVENTS[values.pop("event")], values)
        return event
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseFailed(f"not an event of the reflex: {line[:120]!r}", advice="run again with --explain") from error


Take = Callable[[RepairEvent], None]


class EventLines:
    """Puts the engine's output together into lines; anything that is no event is the project's own noise."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._rest = b""

    def feed(self, stream: Stream, data: bytes) -> None:
        if stream is not Stream.STDOUT:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'{"event"'):
                try:
                    self._take(parse_event(line))
                except ParseFailed:
                    continue
