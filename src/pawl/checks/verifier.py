"""The one verifier: the checks of a project, run on a bench with a change or as the workspace stands."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import partial
from math import inf

from pawl.checks.affected import affected, is_large, outside
from pawl.checks.cache import Baselines, Keeper, VerdictShelf, contents_of, surroundings
from pawl.checks.change_scope import ChangeScope
from pawl.checks.climb import Baseline, Prepared, StopPolicy, climb
from pawl.checks.command_step import EVERYTHING, run_asked
from pawl.checks.early_tests import EarlyTests
from pawl.checks.evidence import (
    adds_tests_only,
    data_of_tests,
    deciding_files,
    eased,
    edited_tests,
    hollow_answers,
    is_inert,
    is_of_types,
    is_prose,
    is_text_only,
    of_tests,
    reaching_for_tests,
    renamed_in,
    script_of,
    settings_of_commands,
    silencing,
    taken_away,
    weaker_tests,
)
from pawl.checks.known_commands import TestCommand, known_commands
from pawl.checks.ladder import Absent, Placed, with_absent
from pawl.checks.lsp.verdicts import readable
from pawl.checks.packages import PackagePolicy, Provided, provide
from pawl.checks.project_facts import ORDER, CheckKind, Folder, is_named
from pawl.checks.project_steps import steps_of
from pawl.checks.runners import SHELL, shadowing
from pawl.checks.second_look import RunTests, SecondLook
from pawl.checks.settings import verify_settings
from pawl.checks.steps import NONE_CHOSEN, CheckStep, Subject, Tests, for_tests, skipped
from pawl.checks.suite_record import suite_records
from pawl.checks.test_choice import TestChoice
from pawl.checks.test_chooser import TestChooser, changed_lines
from pawl.checks.test_commands import test_commands, told_places
from pawl.checks.verdict import TESTS, ChangeVerdict, Requirements, Verification, decide, failing, runs_tests
from pawl.checks.verify_report import BaselinePolicy, VerifyReport
from pawl.code.languages import is_test
from pawl.code.librarian import source_files
from pawl.code.reach import ChangedLines, changed_in
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import CheckBegun, CheckResult, Status, TestOutcome
from pawl.core.errors import GitFailed, NotFound, PathRefused, SandboxUnavailable
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.bench import Bench
from pawl.workspace.benches import brought_along, last_commit, open_bench, take_back_work, uncommitted
from pawl.workspace.environments import found_environment
from pawl.workspace.git import CommandRunner
from pawl.workspace.masks import hidden_note
from pawl.workspace.project import Project

_OF_FILES = (CheckKind.SYNTAX, CheckKind.TYPES, CheckKind.LINT)
"""Checks whose findings are each of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Verifies a project on benches of its own, so that nothing counts but the change and the workspace."""

    shop: Project
    test_command: tuple[str, ...] = ()
    """The user's own; empty lets the project decide."""
    commands: tuple[str, ...] = ()
    """Those that the request names; each must succeed."""
    scope: ChangeScope = field(default_factory=ChangeScope)
    """Where the request lets files change."""
    stop: StopPolicy = StopPolicy.NEVER
    choice: TestChoice | None = None
    """The tests to run; None for all."""
    full: bool = False
    """The whole suite is run, however long it takes."""
    mends: bool = False
    """Something is to be fixed: where no test shows it, another check may."""
    words: str = ""
    """Those of the request, which may name tests."""
    kinds: tuple[CheckKind, ...] = ORDER
    """Those of the checks that are run."""
    present: tuple[str, ...] | None = None
    """The paths of uncommitted work; None where nothing tells them."""
    cached: bool = False
    """Results are taken from the cache where nothing that decides about them has changed."""
    packages: PackagePolicy = field(default_factory=PackagePolicy)
    opened: Callable[[], Bench] | None = None
    """Opens a bench in place of the verifier's own way."""
    suite: Callable[[Subject], CheckResult] | None = None
    """Runs the workspace's suite in place of the check `tests`."""
    listen: Callable[[CheckBegun | CheckResult], None] = lambda event: None
    interpreters: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Those that were asked for their path, for all benches of a run."""
    beside: EarlyTests | None = None
    """The tests without the change, where they run beside those with it."""
    patience: float | None = None
    """Seconds that a step may take, where the settings allow more: for one of many tries."""
    seen: dict[object, Verification] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Earlier results, by the change and the workspace; a verifier with other settings begins without any."""

    def __post_init__(self) -> None:
        if not self.test_command:
            object.__setattr__(self, "test_command", verify_settings(self.shop.config).test)

    def verify(
        self,
        changes: ChangeSet = EMPTY,
        known: Iterable[CheckResult] = (),
        policy: BaselinePolicy = BaselinePolicy.MEASURED,
    ) -> VerifyReport:
        """Runs every check; the workspace is not touched. `known` are results without the change."""
        started, known = time.monotonic(), tuple(known)
        with self.bench(changes) as (bench, provided):
            keeper = self._keeper(bench, provided) if self.cached else None
            verdicts, has_baseline = self._judged(bench, changes, known, policy, keeper)
            known = known if self.beside is None else (self.beside.result(),)
            asked = [run_asked(command, self.subject(bench.files, bench)) for command in self.commands]
            for one in asked:
                self.listen(one)
            shadows = shadowing(changes, bench.files)
            data = data_of_tests(changes, self.shop.store.blobs, bench.files)
            failed, fail = (failing(one for each in several for one in (*each.findings, *each.old))
                            for several in (known, verdicts))  # fmt: skip
            answers = hollow_answers(changes, self.shop.store.blobs, set(failed) - set(fail), bench.files)
            answers += settings_of_commands(changes, (self.test_command, *self.commands), bench.files, self.words)
            hidden = "" if policy is BaselinePolicy.MEASURED else hidden_note(self.shop.tree, self.shop.guardrails)
            if hidden:
                self.packages.say(hidden)
        if policy is BaselinePolicy.SET:
            self._baselines.save(self.shop.workspace, verdicts)
        return VerifyReport(
            digest=changes.digest,
            verdicts=(*verdicts, *asked),
            kept=tuple(keeper.kept) if keeper is not None else (),
            has_baseline=has_baseline,
            shadowing=shadows,
            data=data,
            answers=answers,
            notes=(*(one.note for one in provided), *((hidden,) if hidden else ())),
            asked=(TESTS,) if self.test_command else (),
            seconds=time.monotonic() - started,
        )

    def evidence(
        self, changes: ChangeSet, before: CheckResult, ground: ChangeSet = EMPTY, patience: float | None = None
    ) -> Verification:
        """Verifies the change; `before` are the tests without it. Tests that it changes are also run as they were.

        `ground` is the part of the change that stood there when `before` was measured, such as a test that was made.
        """
        key = (changes.digest, ground.digest, before, *source_files(self.shop).stamps())
        if key in self.seen:
            for one in self.seen[key].verdicts:
                self.listen(one)
            return self.seen[key]
        chosen = self.choosing(changes, failing(before.findings))
        checking = replace(chosen, patience=patience)
        if chosen.choice is not None and before.part != chosen.choice.told(before):
            part = chosen.choice.part_of(before)
            before, checking = (part, checking) if part is not None else (before, checking._measuring(chosen, ground))
        elif chosen.choice is None and (before.part or before.reason.startswith(NONE_CHOSEN)):
            checking = checking._measuring(replace(self, full=True), ground)
        try:
            checked = checking._evidence(changes, before, ground)
        finally:
            if checking.beside is not None:
                checking.beside.close()
        if not any(one.incomplete for one in checked.verdicts):
            self.seen[key] = checked
        return checked

    def _measuring(self, like: Verifier, ground: ChangeSet) -> Verifier:
        """The verifier beside which the tests run without the change, as the other runs them."""

        def run(shop: Project) -> CheckResult:
            return replace(like, shop=shop, cached=not ground, listen=lambda event: None).tests(ground)

        beside = EarlyTests(self.shop, run)
        beside.hurry.set()
        beside.begin()
        return replace(self, beside=beside)

    def choosing(self, changes: ChangeSet, first: Iterable[str] = ()) -> Verifier:
        """The verifier that runs the tests which the change reaches; itself where all are run."""
        if self.choice is not None or self.full or self.test_command or self.opened is not None:
            return self
        lines = changed_lines(changes, self.shop.store.blobs)
        return replace(self, choice=TestChooser.of(self.shop).choice(lines, first, self.words))

    def of_uncommitted(self, first: Iterable[str] = (), of: Sequence[ChangedLines] = (), cut: float = inf) -> Verifier:
        """Of the workspace as it stands: uncommitted work decides, or what is given; `cut` are the most seconds."""
        whole = self.full or self.test_command or CheckKind.TESTS not in self.kinds
        chooser = TestChooser.of(self.shop)
        try:
            lines = changed_in(uncommitted(self.shop)[0])
            # Without any work the last commit is what there is to choose by.
            known = None if whole or chooser.fits() else of or lines or changed_in(last_commit(self.shop))
        except (NotFound, PathRefused, GitFailed, SandboxUnavailable):
            return self
        choice = None if known is None else replace(chooser, budget=min(chooser.budget, cut)).choice(known, first)
        return replace(self, present=tuple(one.path for one in lines), choice=choice)

    def _evidence(self, changes: ChangeSet, before: CheckResult, ground: ChangeSet) -> Verification:
        report, blobs = self.verify(changes, () if self.beside else (before,)), self.shop.store.blobs
        before = before if self.beside is None else self.beside.result()
        own = ChangeSet.of(one for one in changes if ground.get(one.path) != one)
        ran = (*(one.id for one in before.ran), *failing(before.findings))
        tests = of_tests(own, blobs, ran) | (report.data & own.paths)
        tests -= frozenset() if self.mends else renamed_in(own, tests, blobs)
        suites = [one for one in report.verdicts if runs_tests(one.step) and one.standing is not Status.SKIPPED]
        names = tuple(one.step for one in suites)
        asked = [tuple(shlex.split(command)) for command in self.commands]
        scripts = [one.command[2].partition("; ")[2] for one in suites if one.command[:2] == SHELL]
        scripts += [script_of(self.test_command), *(script_of(one, self.words) for one in asked)]
        passed = [one.id for suite in suites for one in suite.ran if one.outcome is TestOutcome.PASSED]
        rest = changes.without(tests)
        # Tests of the ground, such as a generated one, reach for their runner as all do.
        laid = {path for path in of_tests(rest, blobs, ran) if is_test(path)}
        mended = set(failing(before.findings)) - set(failing(one for suite in suites for one in suite.old))
        looks = (self.mends or self.commands) and not failing(before.findings)
        fixed, silenced = self._mended(report.verdicts, changes) if looks else ((), ())
        as_they_were = alone = None
        with _Before(self, ()) as without:
            measured = [without.baseline.measure(name) for name in names if self._is_other(name, before, changes)]
        if names and tests and (mended or not adds_tests_only(changes.only(tests))):
            as_they_were = self.suites(rest, names) if rest or names != (TESTS,) else (before,)
        if names and tests and rest:
            alone = self._alone(changes.only(tests), names, before, witnessed=bool(mended))
        return Verification(
            digest=report.digest,
            mended=fixed,
            silenced=silenced,
            before=before,
            others=tuple(one for one in measured if one is not None),
            verdicts=report.verdicts,
            weakened=weaker_tests(changes, blobs, passed),
            shadowing=report.shadowing,
            out_of_scope=self.scope.offences(changes),
            text_only=is_text_only(changes) and not tests,
            inert=is_inert(changes, blobs),
            edited=edited_tests(own.without(tests), blobs, ran),
            reaching=(
                *reaching_for_tests(rest.without(laid), blobs, self.words, exits=bool(asked) or not before.ran),
                *(taken_away(rest.without(laid), blobs, self.words) if self.mends else ()),
                *report.answers,
                *eased(changes, as_they_were or (), suites),
                *deciding_files(
                    changes.without(laid), (self.test_command, before.command, *asked), scripts, self.words
                ),
            ),
            paths=tuple(sorted(changes.paths)),
            reached=self.choice is None or self.choice.reaches,
            asked=(*self.commands, *((TESTS,) if self.test_command else ())),
            as_they_were=as_they_were,
            alone=alone,
        )

    def proved(self, changes: ChangeSet, wanted: Requirements) -> tuple[Verification, ChangeVerdict]:
        """Verifies changes of which nothing is known, the tests without them included."""
        checked = self.evidence(changes, self.tests())
        return checked, decide(checked, wanted)

    @staticmethod
    def _is_other(name: str, before: CheckResult, changes: ChangeSet) -> bool:
        """Whether the suite was not measured yet and is about what is changed."""
        folder = f"{name.partition(' in ')[2]}/"
        return name != before.step and (folder == "/" or any(path.startswith(folder) for path in changes.paths))

    def _mended(self, verdicts: Sequence[CheckResult], changes: ChangeSet) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The checks beside the tests, and commands of the request, that fail without the change and find nothing with
        it, also none old; and why some that seem to be do not count."""
        clean = [one.step for one in verdicts if one.standing is Status.PASS and not one.old]
        commands = [name for name in clean if name in self.commands]
        names = [name for name in clean if self.mends and not runs_tests(name) and name not in commands]
        silenced = list[str]()
        for types in (False, True):
            silent = silencing(changes, self.shop.store.blobs, types=types)
            looked = [one for one in (*names, *commands) if is_of_types(one) is types and (types or one in names)]
            if not silent or not looked:
                continue
            with self.bench(changes.without(silent)) as (bench, _):
                prepared = Prepared(steps_of(self.shop.config, bench.files))
                scope = self._scope(bench.files, sorted(changes.paths))
                subject = replace(self.subject(bench.files, bench), changed=scope)
                found = [run_asked(one, subject) if one in commands else prepared.run(one, subject) for one in looked]
            passing = {one.step for one in found if one is not None and one.standing is Status.PASS}
            names, commands = (
                [one for one in each if one not in looked or one in passing] for each in (names, commands)
            )
            why = f"what {', '.join(sorted(silent))} excludes from the check"
            silenced += [f"{one} passes only because of {why}" for one in looked if one not in passing]
        with self.bench() as (bench, _), _Before(self, (), self._scope(bench.files, sorted(changes.paths))) as without:
            found = [without.baseline.measure(name) for name in names]
            subject = self.subject(bench.files, bench)
            found += [run_asked(command, subject) for command in commands]
        return tuple(one.step for one in found if one is not None and one.standing is Status.FAIL), tuple(silenced)

    def _alone(
        self, tests: ChangeSet, names: tuple[str, ...], before: CheckResult, *, witnessed: bool
    ) -> tuple[CheckResult, ...] | None:
        """The tests of a run without the rest of its change: whether they fail without it, as far as that is cheap."""
        files = sorted(one.path for one in tests if one.after and is_test(one.path) and one.path.endswith(".py"))
        if before.counts is None or not before.counts.passed:
            return self.suites(tests, names)
        if files and not self.test_command and before.command[1:3] == ("-m", "pytest"):
            variables = next((one.variables for one in test_commands(self.shop)), ())
            return replace(self, test_command=(*variables, "pytest", *files)).suites(tests, (TESTS,))
        return None if witnessed else self.suites(tests, names)

    def verify_bench(
        self, bench: Bench, changed: Sequence[str], known: Iterable[CheckResult]
    ) -> tuple[CheckResult, ...]:
        """Runs every check on a bench that holds a change already."""
        with _Before(self, known) as before:
            return self._climbed(self._steps(bench.files, changed), bench, EMPTY, before.baseline, tuple(changed))

    def tests(self, changes: ChangeSet = EMPTY) -> CheckResult:
        """The workspace's own suite, as it stands or with these changes.

        Of one that takes longer than its budget only tests that are named or failed last; the change decides later.
        """
        suites = self.choosing(EMPTY).suites(changes, (TESTS,))
        return next(iter(suites), skipped(TESTS, "left out by the settings"))

    def failing_tests(self, changes: ChangeSet = EMPTY) -> CheckResult:
        """The workspace's own suite, all of it, or where it does not fail the first other one that does."""
        own = replace(self, full=True).tests(changes)
        if own.standing is Status.FAIL or self.test_command:
            return own
        with self.bench(changes) as (bench, _):
            steps = steps_of(self.shop.config, bench.files, kinds=(CheckKind.TESTS,))
        others = self.suites(changes, [one.name for one in steps if one.name != TESTS]) if steps[1:] else ()
        return next((one for one in others if one.standing is Status.FAIL), own)

    def suites(self, changes: ChangeSet, names: Sequence[str]) -> tuple[CheckResult, ...]:
        """The checks of these names that run tests, with the changes."""
        with self.bench(changes) as (bench, provided):
            steps = steps_of(self.shop.config, bench.files, test_command=self.test_command)
            keeper = self._keeper(bench, provided) if self.cached else None
            prepared = Prepared(keeper.around(steps) if keeper is not None else steps)
            subject = replace(self.subject(bench.files, bench), added=added_by(changes))
            if "syntax" in {one.name for one in prepared.steps}:
                # Mostly beside the model: the checks after the change need not ask any more.
                subject.interpreter()
            results = [prepared.run(name, subject) for name in names]
            return self._noted(one for one in results if one is not None)

    def check(self, kinds: Iterable[CheckKind]) -> tuple[CheckResult, ...]:
        """The checks of some kinds, of the workspace as it stands."""
        with self.bench() as (bench, _):
            return self.check_bench(kinds, bench.files, bench)

    def check_bench(
        self,
        kinds: Iterable[CheckKind],
        files: Folder,
        runner: CommandRunner,
        changed: Iterable[str] = (),
        seconds: float | None = None,
    ) -> tuple[CheckResult, ...]:
        """The checks of some kinds on an open bench; of the changed files, where they are given."""
        subject = replace(self.subject(files, runner, seconds), changed=tuple(changed))
        steps = steps_of(self.shop.config, files, kinds=kinds, test_command=self.test_command)
        return climb(steps, subject, stop=StopPolicy.NEVER)

    def missing_programs(self, programs: Iterable[str]) -> tuple[str, ...]:
        """Those that a command on a bench does not find."""
        # pytest is run as a module too, and what has a folder in its name may be what the run is to write.
        looked = [one for one in programs if one and "/" not in one and one not in ("pytest", "py.test")]
        if not looked:
            return ()
        with self.bench() as (bench, _):
            subject, words = self.subject(bench.files, bench), ("/bin/sh", "-c", 'command -v "$1" || exit 127', "sh")
            return tuple(one for one in looked if subject.run((*words, one)) is None)

    def subject(self, files: Folder, runner: CommandRunner, seconds: float | None = None) -> Subject:
        """An open bench as the checks see it, within the limits of the settings or these seconds."""
        settings = verify_settings(self.shop.config)
        limit = min(settings.seconds, self.patience or settings.seconds) if seconds is None else seconds
        return Subject(
            files=files,
            runner=runner,
            workspace=self.shop.workspace,
            test_command=self.test_command,
            chosen=self.choice,
            services=settings.service,
            spare=brought_along(),
            environment=found_environment(self.shop.config, self.shop.workspace),
            candidates=test_commands(self.shop),
            places=told_places(self.shop, self.words),
            believe=self._believe,
            interpreters=self.interpreters,
            limits=self.shop.config.settings.limits(limit),
        )

    def _believe(self, command: TestCommand) -> None:
        if self.opened is None:
            known_commands(self.shop.config).save(self.shop.workspace, command)

    @contextmanager
    def bench(self, changes: ChangeSet = EMPTY) -> Iterator[tuple[Bench, tuple[Provided, ...]]]:
        """A bench with the changes, on which the project's own tools can run."""
        if self.opened is not None:
            with self.opened() as bench:
                bench.apply(changes, self.shop.store.blobs)
                yield bench, ()
            return
        with open_bench(self.shop, extra_readonly=readable()) as bench:
            bench.apply(changes, self.shop.store.blobs)
            provided = provide(self.shop, bench, self.packages)
            for one in provided:
                self.packages.say(one.note)
            yield bench, provided

    @property
    def _baselines(self) -> Baselines:
        return Baselines(self.shop.config.state / "baselines")

    def _judged(
        self,
        bench: Bench,
        changes: ChangeSet,
        known: Iterable[CheckResult],
        policy: BaselinePolicy,
        keeper: Keeper | None,
    ) -> tuple[tuple[CheckResult, ...], bool]:
        """The results, and whether there was a baseline to hold them against."""
        changed = tuple(sorted(changes.paths))
        steps = self._steps(bench.files, changed or self.present or ())
        steps = keeper.around(steps) if keeper is not None else steps
        if policy is BaselinePolicy.MEASURED:
            with _Before(self, known, self._scope(bench.files, changed)) as before:
                baseline = replace(before.baseline, again=self._second_look(changes))
                return self._climbed(steps, bench, changes, baseline), True
        if self.present == () and policy is BaselinePolicy.STORED and is_large(bench.files):
            old = "there are no uncommitted changes, and findings in committed files count as old"
            steps = tuple(replace(one, step=Absent(one.name, old)) if one.kind in _OF_FILES else one for one in steps)
        steps = with_absent(steps, verify_settings(self.shop.config).wishes, self.kinds)
        stored = self._baselines.load(self.shop.workspace) if policy is BaselinePolicy.STORED else ()
        baseline = replace(Baseline.of(stored), again=self._second_look(changes))
        if self.present is None or policy is not BaselinePolicy.STORED:
            return self._climbed(steps, bench, changes, baseline), bool(stored)
        names = {one.name for one in steps if one.kind in (CheckKind.TYPES, CheckKind.LINT) and self.present}
        with _Before(self, (), self._scope(bench.files, self.present)) as before:
            baseline = replace(baseline, measure=lambda one: before.baseline.measure(one) if one in names else None)
            baseline = replace(baseline, unchanged=outside(self.shop, self.present))
            return self._climbed(steps, bench, changes, baseline), bool(stored)

    def _steps(self, files: Folder, changed: Sequence[str]) -> tuple[Placed, ...]:
        """The project's checks, without those that the change cannot concern."""
        steps = steps_of(self.shop.config, files, kinds=self.kinds, test_command=self.test_command)
        if self.suite is not None:
            suite = _Suite(self.suite)
            steps = tuple(replace(one, step=suite) if one.name == TESTS else one for one in steps)
        unread = "nothing that it checks was changed"
        return tuple(one if _concerns(one, changed) else replace(one, step=Absent(one.name, unread)) for one in steps)

    def _climbed(
        self,
        steps: Sequence[CheckStep],
        bench: Bench,
        changes: ChangeSet,
        baseline: Baseline | None,
        changed: tuple[str, ...] = (),
    ) -> tuple[CheckResult, ...]:
        first = changed or tuple(sorted(changes.paths)) or self.present or ()
        subject = replace(
            self.subject(bench.files, bench),
            first=first,
            changed=self._scope(bench.files, first),
            added=added_by(changes),
        )
        return self._noted(climb(steps, subject, stop=self.stop, baseline=baseline, listen=self.listen))

    def _second_look(self, changes: ChangeSet) -> Callable[[CheckResult], CheckResult]:
        """Runs new failures of the workspace's own suite again, where its framework can run tests by their ids."""

        def again(changes: ChangeSet) -> RunTests:
            def run(tests: Sequence[str]) -> CheckResult:
                with self.bench(changes) as (bench, _):
                    alone = for_tests(self.subject(bench.files, bench), tests)
                    return Tests().run(alone) if alone else skipped(TESTS, "they cannot be run alone")

            return run

        def look(result: CheckResult) -> CheckResult:
            if result.step != TESTS or self.test_command or self.opened is not None or self.suite is not None:
                return result
            records = suite_records(self.shop.config)
            remember, known = partial(records.remember, self.shop.workspace), records.load(self.shop.workspace).flaky
            if not changes:
                return SecondLook(again(changes), remember, known=known)(result)
            fresh = replace(self, cached=False, beside=None)
            whole = partial(fresh.suites, EMPTY, (TESTS,))
            return SecondLook(again(changes), remember, again(EMPTY), lambda: whole()[0], known)(result)

        return look

    def _scope(self, files: Folder, changed: Sequence[str]) -> tuple[str, ...]:
        """The files in which types, lint and syntax are checked: of a large workspace those that the change affects."""
        return tuple(sorted(affected(self.shop, changed))) if changed and is_large(files) else ()

    def _noted(self, results: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
        """The results; what those of the workspace's own suite tell about its tests is kept."""
        noted = tuple(results)
        if not self.test_command and self.opened is None:
            suite_records(self.shop.config).note(self.shop.workspace, noted)
        return noted

    def _keeper(self, bench: Bench, provided: Sequence[Provided]) -> Keeper | None:
        subject = self.subject(bench.files, bench)
        contents = contents_of(bench.files)
        found = found_environment(self.shop.config, self.shop.workspace)
        environment = surroundings(subject, contents.keys(), self.shop.config.search_path, self.shop.stop)
        if environment is None:
            return None
        environment += "".join((*(one.key for one in provided), *found.variables))
        return Keeper(VerdictShelf(self.shop.config.state / "verdicts"), environment, contents)


def _concerns(step: Placed, changed: Sequence[str]) -> bool:
    """Whether a change can make a difference to a check: one of the files that decide about it is among the changed."""
    if step.kind is CheckKind.SERVER and changed and all(is_test(path) or is_prose(path) for path in changed):
        return False
    return not changed or EVERYTHING in step.inputs or any(is_named(path, step.inputs) for path in changed)


@dataclass(frozen=True, slots=True)
class _Suite:
    """Fits `CheckStep`: the workspace's suite, run in another way."""

    runs: Callable[[Subject], CheckResult]
    name: str = TESTS

    def run(self, subject: Subject) -> CheckResult:
        return self.runs(subject)


class _Before:
    """The workspace without the change, or without uncommitted work, on a bench that is opened when a check fails."""

    def __init__(self, verifier: Verifier, known: Iterable[CheckResult], scope: tuple[str, ...] = ()) -> None:
        self._verifier = verifier
        self._scope = scope
        self.baseline = Baseline({one.step: one for one in known}, self._measured)
        self._closing = ExitStack()
        self._ready: tuple[Prepared, Subject] | None = None

    def __enter__(self) -> _Before:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _measured(self, name: str) -> CheckResult | None:
        verifier = self._verifier
        if name == TESTS and verifier.beside is not None:
            return verifier.beside.result()
        if self._ready is None:
            bench, provided = self._closing.enter_context(verifier.bench())
            try:
                if verifier.present:
                    take_back_work(verifier.shop, bench)
            except GitFailed:
                return None
            steps = steps_of(verifier.shop.config, bench.files, test_command=verifier.test_command)
            keeper = verifier._keeper(bench, provided) if verifier.opened is None else None
            steps = keeper.around(steps) if keeper is not None else steps
            self._ready = Prepared(steps), replace(verifier.subject(bench.files, bench), changed=self._scope)
        prepared, subject = self._ready
        return prepared.run(name, subject)


def added_by(changes: ChangeSet) -> frozenset[str]:
    """The paths that stand there only with the changes."""
    return frozenset(change.path for change in changes if change.before is None)
