"""The one decision on a change: verified, failed, unverified or nothing to prove, from what ran before and with it.

The checks count, the words of a model do not. Tests that were edited prove nothing, nor do tests that did not run.
"""

from __future__ import annotations

import platform
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from pawl.checks.red_tests import red_notes, red_refusals
from pawl.checks.report import UNLISTED
from pawl.checks.second_look import PASSES_ALONE
from pawl.checks.test_ids import TITLES, file_of, is_among, without_parameters
from pawl.core import __version__
from pawl.core.diagnostic import INCOMPLETE, CheckResult, Diagnostic, Status, TestCounts, TestOutcome, TestRun, Verdict
from pawl.core.lazy_dataclass import dataclass

MOST_TOLD = 20
MOST_OWN = 5
MOST_CHARACTERS = 6_000
"""Of what a model is told about a failed verification."""
_MESSAGE_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The results of the checks with and without a change, and what became of the tests themselves."""

    digest: str
    """Of the change set that was verified."""
    before: CheckResult
    """Of the tests, without the change."""
    others: tuple[CheckResult, ...] = ()
    """Of the other suites that the change concerns, without it."""
    verdicts: tuple[CheckResult, ...]
    weakened: tuple[str, ...] = ()
    shadowing: tuple[str, ...] = ()
    """Changes that take the place of what runs the tests: whatever these then say, it proves nothing."""
    out_of_scope: tuple[str, ...] = ()
    """Changes of files that the request does not let change."""
    text_only: bool = False
    """Only text that no check reads was changed."""
    inert: bool = False
    """Nothing that runs was changed."""
    edited: tuple[str, ...] = ()
    """Tests in files of the product, such as examples in docstrings, that expect something else than before."""
    reaching: tuple[str, ...] = ()
    """Code of the product that reaches for what tests it, a line each."""
    paths: tuple[str, ...] = ()
    """Those of the change set; none stands for all."""
    reached: bool = True
    """Whether anything links the tests that ran to the change."""
    asked: tuple[str, ...] = ()
    """Checks that run a command of the user's own: its exit code counts though it shows no tests."""
    as_they_were: tuple[CheckResult, ...] | None = None
    """The tests as they stood before the run, with the rest of the change; None where it changes no tests."""
    alone: tuple[CheckResult, ...] | None = None
    """The tests of the run without the rest of the change; None where they need not prove anything."""
    mended: tuple[str, ...] = ()
    """Commands that the request names, and in a fix other checks, that fail without the change and pass with it."""
    silenced: tuple[str, ...] = ()
    """Checks that pass only because the change takes something out of them, a line each."""

    @property
    def suites(self) -> tuple[CheckResult, ...]:
        """The results of every check that runs tests."""
        return tuple(one for one in self.verdicts if runs_tests(one.step))

    @property
    def tests(self) -> CheckResult | None:
        return next((one for one in self.verdicts if one.step == TESTS), None)

    @property
    def measure(self) -> tuple[CheckResult, ...]:
        """The suites that count for what stood there before: with the tests as they were."""
        return self.suites if self.as_they_were is None else self.as_they_were

    @property
    def witnesses(self) -> tuple[str, ...]:
        """Tests that were seen failing before and passing with the change, as they were before it."""
        found: list[str] = []
        for before in (self.before, *self.others):
            now = next((one for one in self.measure if one.step == before.step), None)
            if now is None or now.standing is Status.SKIPPED:
                continue
            passed = {one.id for one in now.ran if one.outcome is TestOutcome.PASSED}
            failed = failing((*now.findings, *now.old))
            left = (test for test in failing(before.findings) if test not in failed and test not in self.edited)
            found += [test for test in left if not passed or is_among(test, passed)]
        return tuple(dict.fromkeys(found))

    @property
    def changed_expectations(self) -> tuple[str, ...]:
        """Tests that fail as they were with the change, or were edited in the product, and pass as they are now."""
        now = set(failing(finding for suite in self.suites for finding in (*suite.findings, *suite.old)))
        then = failing(finding for suite in self.as_they_were or () for finding in (*suite.findings, *suite.old))
        return tuple(test for test in dict.fromkeys((*then, *self.edited)) if test not in now)

    @property
    def own(self) -> tuple[str, ...]:
        """Tests that the run wrote, which failed without the rest of its change and pass with it."""
        now = set(failing(finding for suite in self.suites for finding in (*suite.findings, *suite.old)))
        known = set(failing(finding for one in (self.before, *self.others) for finding in one.findings))
        without = failing(finding for suite in self.alone or () for finding in (*suite.findings, *suite.old))
        return tuple(test for test in without if test not in now and test not in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of an entry, as it is kept: bounded, and without the messages of failures."""

    verdict: Verdict
    reasons: tuple[str, ...]
    checked: Verification
    environment: Mapping[str, str]
    whole_suite: str = ""
    """How the whole suite ended, where it ran afterwards."""

    @classmethod
    def of(cls, checked: Verification, judgement: ChangeVerdict) -> Evidence:
        """With at most `MOST_KEPT` tests of each run."""
        system = {"pawl": __version__, "system": f"{platform.system()} {platform.release()} {platform.machine()}"}

        def kept(result: CheckResult) -> CheckResult:
            findings, old = (tuple(replace(one, message=one.first_line, frames=()) for one in several[:MOST_TOLD])
                             for several in (result.findings, result.old))  # fmt: skip
            return replace(result, findings=findings, old=old, ran=result.ran[:MOST_KEPT])

        def several(results: tuple[CheckResult, ...] | None) -> tuple[CheckResult, ...] | None:
            return None if results is None else tuple(map(kept, results))

        smaller = replace(
            checked,
            before=kept(checked.before),
            others=tuple(map(kept, checked.others)),
            verdicts=tuple(map(kept, checked.verdicts)),
            as_they_were=several(checked.as_they_were),
            alone=several(checked.alone),
        )
        reasons = (*judgement.refused, *judgement.unproved, *judgement.notes)
        return cls(verdict=judgement.verdict, reasons=reasons, checked=smaller, environment=system)

    def lines(self) -> Iterator[str]:
        """For a person to read."""
        checked = self.checked
        yield f"verdict      {self.verdict}"
        yield from (f"! {reason}" for reason in self.reasons)
        if self.whole_suite:
            yield f"whole suite  {self.whole_suite}"
        yield f"digest       {checked.digest}"
        yield from (f"{name:<12} {value}" for name, value in self.environment.items())
        runs = {
            "before": (checked.before, *checked.others),
            "with it": checked.verdicts,
            "as they were": checked.as_they_were or (),
            "alone": checked.alone or (),
        }
        for name, results in runs.items():
            for one in results:
                command = f" [{shlex.join(one.command)}]" if one.command else ""
                yield f"{name:<12} {one.step}: {one.standing}, {one.reason or '-'} ({one.seconds:.2f} s){command}"
        yield from (f"witness      {test}: failed before, passes unedited" for test in checked.witnesses)
        yield from (f"witness      {check}: failed before, passes" for check in checked.mended)
        yield from (f"own          {test}: written in the run, fails without the change" for test in checked.own)
        for suite in checked.suites:
            for test in suite.ran:
                looked = {True: ", its assertions ran", False: ", none of its assertions ran"}.get(test.checked, "")  # type: ignore[arg-type]
                yield f"ran          {test.id} {test.outcome} ({test.seconds:.3f} s){looked}"


MOST_KEPT = 2_000
"""Tests of a run."""

TESTS = "tests"
"""The name of the check that runs the workspace's own suite; others begin with it (`tests in web`)."""
_NESTED = " in "


def runs_tests(step: str) -> bool:
    return step.partition(" ")[0] == TESTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The demands of the request on the checks, beyond that nothing gets worse."""

    all_tests: bool = False
    """Every test is to pass, also those that failed before."""
    tests: tuple[str, ...] = ()
    """Tests that are to pass, by name or id as the request has them: each means that test, not its file."""
    files: tuple[str, ...] = ()
    """Files of tests whose tests are all to pass."""
    left_out: tuple[str, ...] = ()
    """Tests that the request lets fail."""
    named: str = ""
    """The words of the request: a failing test whose title they hold is to pass."""
    fixes: bool = False
    """Something is to be fixed: what tests expect is right, and is not to be changed."""
    witness: bool = False
    """The words ask for a fix: something has to fail without the change, also where all tests pass."""
    tests_may_change: bool = False
    red: bool = False
    """The tests that are written are to fail: the code for them comes later, in files that are `coming` if known."""
    coming: frozenset[str] = frozenset()

    @property
    def least(self) -> Requirements:
        """Nothing gets worse, and that is all."""
        return replace(self, all_tests=False, tests=(), files=(), named="", witness=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeVerdict:
    verdict: Verdict
    refused: tuple[str, ...] = ()
    """Why it failed."""
    unproved: tuple[str, ...] = ()
    """Why nothing proves it."""
    notes: tuple[str, ...] = ()
    """Remarks that the user should see all the same."""
    findings: tuple[Diagnostic, ...] = ()
    witnessed: bool = False
    """A test, another check or a command of the user's speaks for the change, not only that nothing got worse."""
    own_only: bool = False
    """Only tests do that the run wrote itself: for what it made, and perhaps not for what was asked."""

    @property
    def accepted(self) -> bool:
        """It may be promoted without a person's word."""
        return self.verdict in (Verdict.VERIFIED, Verdict.NOTHING_TO_PROVE)


def decide(checked: Verification, wanted: Requirements) -> ChangeVerdict:
    """The verdict on the change."""
    case = _Case(checked, wanted)
    for step in (case.checks, case.expectations, *((case.red,) if wanted.red else (case.proof, case.reach))):
        step()
    unproved = case.unproved
    if case.refused:
        verdict = Verdict.FAILED
    elif checked.text_only and not checked.witnesses and not case.wants_more_than_text():
        verdict, unproved = Verdict.NOTHING_TO_PROVE, []
    else:
        verdict = Verdict.UNVERIFIED if unproved else Verdict.VERIFIED
    known = bool(checked.witnesses or checked.mended or case.turned())
    return ChangeVerdict(
        verdict=verdict,
        refused=tuple(case.refused),
        unproved=tuple(unproved) if verdict is Verdict.UNVERIFIED else (),
        notes=tuple(case.notes),
        findings=tuple(case.findings),
        witnessed=known or bool(checked.own),
        own_only=bool(checked.own) and not known,
    )


_CODE_NAMED = re.compile(r"\w\.(?:py|[cm]?[jt]sx?|go|rs|rb)\b")
_ABOUT_TEXT = re.compile(
    r"comment|komment|coment|docs?\b|docstring|do[ck]ument|explain|erkl|descri|beschreib|note|typo|tippfehler|spell|"
    r"word|header|licen[cs]|copyright|todo|fixme|format|indent|white ?space|blank|line|style|sort|order|reflow|wrap|"
    r"clean|tidy|\bput\b|\bmark",
    re.IGNORECASE,
)
"""A request for what does not run: comments, blank lines, the form of code."""
NO_WITNESS = "no test fails without the change: the tests only show that nothing got worse"


@dataclass(slots=True)
class _Case:
    """Collect what speaks against a change, and what nothing proves."""

    checked: Verification
    wanted: Requirements
    refused: list[str] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)

    def checks(self) -> None:
        """New failures; a run that was cut off says nothing about the rest."""
        self.refused += [*self.checked.out_of_scope, *self.checked.shadowing]
        for result in self.checked.verdicts:
            red = red_notes(result, self.checked.paths, self.wanted.coming) if self.wanted.red else None
            if result.standing is Status.FAIL and runs_tests(result.step) and not self._is_comparable(result):
                self.unproved.append(f"{result.step} did not finish: {result.incomplete}")
            elif result.standing is Status.FAIL and result.advisory and self.checked.witnesses:
                found = (f"{result.reason}: {one.place} {one.first_line}" for one in result.findings[:MOST_OWN])
                self.notes += [f"{result.step}: {one}" for one in found]
            elif result.standing is Status.FAIL and red is not None:
                self.notes += red
            elif result.standing is Status.FAIL:
                before = f"; {len(result.old)} of them failed before" if result.old and runs_tests(result.step) else ""
                self.refused.append(f"{result.step}: {result.reason}{before}")
                self.findings += result.findings
        for suite in self.checked.suites:
            left = to_pass(suite.old, self.wanted)
            many = f"{_amount(len(left or suite.old), 'test')} that failed before"
            if left and suite.standing is not Status.FAIL:
                self.refused.append(f"{suite.step}: {many} still {'fail' if left[1:] else 'fails'}")
                self.findings += left
            elif suite.old:
                told = f"{_amount(len(suite.old), 'test')} failed before"
                self.notes.append(f"{told} and still {'fail' if suite.old[1:] else 'fails'}")

    def red(self) -> None:
        failed = failing(one for suite in self.checked.suites for one in suite.findings)
        self.refused += red_refusals(failed, self.checked.paths)

    def _is_comparable(self, suite: CheckResult) -> bool:
        """Whether its failures are known to be new ones, or such as the request wants gone."""
        if not suite.incomplete:
            return True
        cut_now = any(finding.code == INCOMPLETE for finding in suite.findings)
        before = self.checked.before
        unknown = bool(before.incomplete) or before.standing is Status.SKIPPED
        cut_before = not cut_now or (suite.step == before.step and unknown)
        named = any(finding.test for finding in suite.findings)
        wants = self.wanted.fixes or self.wanted.all_tests or bool(to_pass(suite.findings, self.wanted))
        return named and (not cut_before or (wants and not cut_now))

    def expectations(self) -> None:
        """Tests that are gone, skipped, weaker or expect something else than before the run."""
        checked, wanted = self.checked, self.wanted
        gone = (line for before in (checked.before, *checked.others) for line in self._gone(before))
        fewer = [*gone, *checked.weakened]
        changed = [
            f"{test}: changed expectation, it {'was edited' if test in checked.edited else 'fails unedited'}"
            for test in checked.changed_expectations
            if not (wanted.tests_may_change and _is_named(test, wanted))
        ]
        if wanted.tests_may_change:
            self.notes += fewer
            self.unproved += changed
        else:
            self.refused += fewer
            (self.refused if wanted.fixes else self.unproved).extend(changed)
        for suite in checked.as_they_were or ():
            if suite.incomplete and suite.standing is not Status.SKIPPED:
                self.unproved.append(f"{suite.step} with the tests from before did not finish: {suite.incomplete}")

    def _gone(self, before: CheckResult) -> list[str]:
        now = next((one for one in self.checked.measure if one.step == before.step), None)
        if before.incomplete or (now is not None and now.incomplete and now.standing is Status.FAIL):
            return []
        if now is not None and before.ran and now.ran:
            return _not_run(before, now)
        return _fewer(before, now.counts if now else None)

    def proof(self) -> None:
        """Checks that should have run and did not, and runs that prove nothing."""
        checked = self.checked
        proved = [one for one in checked.suites if proves(one)]
        decided = self.answered()
        for suite in checked.suites:
            if not proves(suite) and suite not in decided:
                concerns = self._concerns(suite.step)
                if suite.incomplete and suite.standing is Status.SKIPPED and (concerns or self.wanted.all_tests):
                    self.unproved.append(f"{suite.step} could not run: {suite.incomplete}")
                elif suite.standing is Status.PASS and concerns:
                    self.unproved.append(f"{suite.step}: {suite.incomplete or f'no test passed: {suite.reason}'}")
        none_ran = not proved and not decided and not self.unproved
        if none_ran:
            reasons = "; ".join(dict.fromkeys(one.reason for one in checked.suites if one.reason))
            self.unproved.append(f"no test was run: {reasons or 'there is none'}")
        self._beside(proved)
        failed = [finding for one in (checked.before, *checked.others) for finding in one.findings]
        wants = self.wanted.witness or (self.wanted.fixes and failing(failed))
        if wants and not self._has_witness() and not checked.inert:
            none = ("no test was seen failing before and passing now",) if failing(failed) else (NO_WITNESS,)
            self.unproved += checked.silenced or (none if failing(failed) or not none_ran else ())
        if not (checked.witnesses or checked.own):
            self.notes += [f"{name}, which the request names, did not run" for name in self._missing()]
        self.unproved += [f"{path}, which the request names, did not run" for path in self._files_missing()]
        about_text = not self.wanted.named or _ABOUT_TEXT.search(self.wanted.named)
        if checked.inert and (self.wanted.fixes or checked.witnesses or not about_text):
            chance = "; what passes now may pass by chance" if checked.witnesses else ""
            self.unproved.append(f"no code that runs was changed{chance}")
        others = checked.before.counts is not None and checked.before.counts.passed > 0
        if proved and checked.alone is not None and not (checked.own or checked.witnesses or others):
            self.unproved.append("the only tests that pass were written in the run, and pass without the change too")
        self.notes += [f"{test} was written in the run: it fails without the change" for test in checked.own[:MOST_OWN]]
        self.unproved += checked.reaching
        idle = {one.id for suite in checked.measure for one in suite.ran if one.checked is False}
        self.unproved += [
            f"{test} passes, but none of its assertions ran" for test in checked.witnesses if test in idle
        ]

    def _beside(self, proved: Sequence[CheckResult]) -> None:
        """Tests of nested projects alone say nothing of code beside them."""
        if proved and not self.checked.witnesses and all(_NESTED in one.step for one in proved):
            folders = tuple(f"{one.step.partition(_NESTED)[2]}/" for one in proved)
            beside = [path for path in self.checked.paths if _CODE_NAMED.search(path) and not path.startswith(folders)]
            self.unproved += [f"no test that ran covers {path}" for path in beside[:MOST_OWN]]

    def _has_witness(self) -> bool:
        """Whether something that failed without the change passes with it, or the user's own command says so."""
        checked = self.checked
        if checked.witnesses or checked.own:
            return True
        failed = [finding for one in (checked.before, *checked.others) for finding in one.findings]
        return not failing(failed) and bool(checked.mended or self.turned())

    def reach(self) -> None:
        """How much of the suite ran, and whether that is enough."""
        checked = self.checked
        for line in (line for suite in checked.suites for line in suite.flaky):
            # In company it fails with the change and passed without: nothing says that the change is innocent.
            (self.unproved if line.endswith(PASSES_ALONE) else self.notes).append(line)
        for suite in checked.suites:
            self._left_out(suite)
        parts = [suite.part for suite in checked.suites if suite.part]
        self.notes += parts
        if self.wanted.all_tests and not checked.witnesses:
            self.unproved += [f"all tests must pass: {part}" for part in parts]
        if not checked.reached and not checked.witnesses and not checked.own:
            self.unproved.append("no test that ran is known to cover the change")

    def _left_out(self, suite: CheckResult) -> None:
        """Tests that code of the project keeps from running prove nothing; those of before the change are its way."""
        tests = suite.left_out
        if tests:
            more = f" and {len(tests) - 1} more" if tests[1:] else ""
            line = f"{suite.step}: code of the project (conftest.py, a plugin) leaves out {tests[0]}{more}"
            before = [one for run in (self.checked.before, *self.checked.others) for one in run.left_out]
            (self.notes if set(tests) <= set(before) else self.unproved).append(line)

    def wants_more_than_text(self) -> bool:
        """Whether something that tests show, or a file of code that is named, is to be fixed, and the request names no
        text that was changed."""
        failed = failing(finding for one in (self.checked.before, *self.checked.others) for finding in one.findings)
        names = {path.rpartition("/")[2].partition(".")[0].lower() for path in self.checked.paths}
        code = bool(failed) or (self.wanted.witness and _CODE_NAMED.search(self.wanted.named) is not None)
        return self.wanted.fixes and code and not any(name in self.wanted.named.lower() for name in names)

    def _missing(self) -> list[str]:
        """Names of tests to be fixed that no test has which ran; empty where it is not known which did."""
        ran = {one.id for suite in self.checked.suites for one in suite.ran}
        known = {part for test in (*ran, *failing(self.findings)) for part in _SEPARATORS.split(test.partition("[")[0])}
        named = self.wanted.tests if self.wanted.fixes and ran else ()
        return [name for name in named if _SEPARATORS.split(name.partition("[")[0])[-1] not in known]

    def _files_missing(self) -> list[str]:
        """Files whose tests are to pass and of which none ran, as far as it is known which did."""
        tests = (test for one in self.checked.suites for test in (*(run.id for run in one.ran), *failing(one.old)))
        known = {f"/{file_of(test)}" for test in (*tests, *failing(self.findings))}
        files = [one for one in self.wanted.files if any(path.endswith(one[one.rfind(".") :]) for path in known)]
        return [one for one in files if not any(f"/{one}".endswith(path) or path.endswith(one) for path in known)]

    def answered(self) -> list[CheckResult]:
        """Commands of the user's own that say it by their exit code."""
        return [one for one in self.checked.verdicts if one.step in self.checked.asked and self._answers(one)]

    def turned(self) -> bool:
        """Whether the user's test command failed before and succeeds now; other commands are among those mended."""
        return any(one.step == TESTS for one in self.answered())

    def _answers(self, result: CheckResult) -> bool:
        """A command that the user named says by its exit code what it has to say, where it said otherwise before."""
        turned = result.step != TESTS or self.checked.before.standing is Status.FAIL
        return result.standing is Status.PASS and turned

    def _concerns(self, step: str) -> bool:
        """Whether the suite is about what was changed: that of a nested project about its folder."""
        folder = step.partition(_NESTED)[2]
        nested = [f"{one.step.partition(_NESTED)[2]}/" for one in self.checked.suites if _NESTED in one.step]
        if not self.checked.paths:
            return True
        if folder:
            return any(path.startswith(f"{folder}/") for path in self.checked.paths)
        outside = [path for path in self.checked.paths if not path.startswith(tuple(nested))]
        # Another framework beside that of Python is about the rest.
        return bool(outside) and (step == TESTS or any(not path.endswith(".py") for path in outside))


def proves(suite: CheckResult) -> bool:
    """Whether a test is known to have passed."""
    if suite.standing is Status.SKIPPED or suite.incomplete or suite.counts is None:
        return False
    return suite.counts.passed > 0 or UNLISTED in suite.reason


def _not_run(before: CheckResult, now: CheckResult) -> list[str]:
    """Tests that ran and do not any more, or are skipped; those of a file that cannot be loaded are told as such.

    Parameters and subtests are counted, not compared: what stands in an id may differ from run to run.
    """
    broken = {finding.test for finding in (*now.findings, *now.old) if finding.test == file_of(finding.test)}
    then, ran = _counted(before.ran), _counted(now.ran)
    then_run, run = (
        _counted(one for one in each.ran if one.outcome is not TestOutcome.SKIPPED) for each in (before, now)
    )
    # A title of JavaScript may be made anew in each run; then another stands in its place.
    spare = Counter(file_of(test) for test in ran if test not in then and TITLES in test)
    gone = []
    files = {file_of(test) for test in ran}
    for test in then:
        # A file that could not be loaded was listed as one test; its own tests stand for it now.
        if ran[test] < then[test] and file_of(test) not in broken and not (test == file_of(test) and test in files):
            if TITLES in test and spare[file_of(test)] > 0:
                spare[file_of(test)] -= 1
            else:
                gone.append(test)
    skipped = [test for test in then_run if test not in gone and run[test] < then_run[test] and ran[test] >= then[test]]
    return [
        *(f"{now.step}: {test} ran before and is not run now" for test in gone),
        *(f"{now.step}: {test} is skipped now" for test in skipped),
    ]


def _counted(tests: Iterable[TestRun]) -> Counter[str]:
    # unittest calls a file that it cannot load a test of its loader; once it loads, its own tests stand for it.
    return Counter(without_parameters(one.id) for one in tests if "_FailedTest." not in one.id)


def told(judgement: ChangeVerdict) -> str:
    """Tell a model what to repair: the reasons, then the findings, bounded and in whole lines."""
    lines = ["The checks refuse this work:", *(f"- {reason}" for reason in judgement.refused), ""]
    for finding in judgement.findings[:MOST_TOLD]:
        lines += _finding(finding)
    if len(judgement.findings) > MOST_TOLD:
        lines.append(f"[{len(judgement.findings) - MOST_TOLD} more findings]")
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append("[the rest is left out]")
            break
        kept.append(line)
    return "\n".join((*kept, "", "Fix the cause. Do not remove, skip or weaken tests."))


def failing(findings: Iterable[Diagnostic]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.test for finding in findings if finding.test))


def to_pass(findings: Iterable[Diagnostic], wanted: Requirements) -> Sequence[Diagnostic]:
    """Those of failing tests that the request is about."""
    failed = [one for one in findings if one.test and not any(_is_meant(one.test, name) for name in wanted.left_out)]
    return [one for one in failed if wanted.all_tests or _is_named(one.test, wanted)]


_SEPARATORS = re.compile(r"::|\.py\b|[./#]|\s[>›]\s")
_TITLE = re.compile(r"\s[>›]\s|::")


def _is_named(test: str, wanted: Requirements) -> bool:
    """Whether a test is meant by its id, its name, its file or its title."""
    path = file_of(test)
    if any(_is_meant(test, name) for name in wanted.tests):
        return True
    if any(path == file or path.endswith(f"/{file}") for file in wanted.files):
        return True
    title = re.escape(_TITLE.split(test)[-1])
    # A title of one word is also a word of prose: it counts in quotes, or beside the word test.
    one_word = rf"[\"']{title}[\"']|\btests?\s+{title}\b|\b{title}\s+tests?\b"
    return re.search(rf"(?<!\w){title}(?!\w)" if " " in title else one_word, wanted.named) is not None


def _is_meant(test: str, name: str) -> bool:
    """`test_a`, `TestX::test_a` and `tests/test_x.py::test_a` are each a name of the test with the longest id."""
    whole = test if "[" in name else test.partition("[")[0]
    parts, said = ([part for part in _SEPARATORS.split(one) if part] for one in (whole, name))
    rest = iter(parts)
    in_order = bool(said) and all(part in rest for part in said)
    return in_order and (said[-1] == parts[-1] or said[-1][:1].isupper())


def _fewer(measured: CheckResult, after: TestCounts | None) -> list[str]:
    step, before = measured.step, measured.counts
    if before is None or not before.total:
        return []
    if after is None or not after.total:
        return [f"{step}: {before.total} before, none is run now"]
    found = []
    # Where a file cannot be loaded its tests are one error, and a test whose clean-up fails counts twice: the rest is
    # what certainly stood there. New errors are told as such.
    sure = before.total - before.errors
    if after.total < sure and after.errors <= before.errors:
        gone = sure - after.total
        found.append(f"{step}: {before.total} before, {after.total} now; {gone} {'is' if gone == 1 else 'are'} gone")
    if after.skipped > before.skipped:
        found.append(f"{step}: {after.skipped} skipped, {before.skipped} before")
    return found


def _finding(finding: Diagnostic) -> list[str]:
    place = f"({finding.place})" if finding.test and finding.place else finding.place
    head = " ".join(filter(None, (finding.test, place, finding.label)))
    return [f"{finding.tool}: {head}", *(f"    {one}" for one in finding.message.strip().splitlines()[:_MESSAGE_LINES])]


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
