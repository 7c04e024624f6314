"""From a red suite to a promoted patch, or to a clear word about why not."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from pawl.checks.catalog import detect
from pawl.checks.climb import StopPolicy
from pawl.checks.packages import PackagePolicy, provide
from pawl.checks.project_facts import Folder, dependencies
from pawl.checks.steps import amount
from pawl.checks.verdict import Evidence, Requirements
from pawl.checks.verifier import Verifier
from pawl.checks.whole_suite import begin_whole_suite
from pawl.code.languages import is_test
from pawl.core.change import ChangeSet, EntryKind
from pawl.core.diagnostic import INCOMPLETE, CheckResult, Diagnostic, Location, Status
from pawl.core.errors import Conflicted, PromotionFailed, ProtectedRefused, Refused
from pawl.core.execution import Ending
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import plain
from pawl.repair.ground import ENDS, PythonGround, failing_tests, is_uncollected, shown, start_script
from pawl.repair.model import (
    Agreement,
    BaselineTaken,
    FixOutcome,
    FixReport,
    FixRequest,
    FoundPatch,
    LinesSuspected,
    Listener,
    RepairEnded,
    RepairEvent,
    RepairStatus,
    StageBegun,
    SuspiciousLine,
)
from pawl.repair.recovery import SAY, PythonRecoverer, UnseenRecoverer, beyond, recoveries_for
from pawl.repair.recovery_names import is_packages, meant_module, package_of, plugin_of
from pawl.repair.script_fixer import ScriptFixer
from pawl.repair.script_ground import ScriptGround
from pawl.repair.sources import Symbols, reaching, symbols_of, test_file
from pawl.repair.strategy import WHY_NOT, RepairStrategy, Told, suite_of, why_not
from pawl.workspace.bench import Bench, sweep
from pawl.workspace.benches import brought_along, open_bench, own_python
from pawl.workspace.paths import bench_places
from pawl.workspace.project import Project

MOST_ALONE = 4
"""How many failing tests of one group are tried one by one."""


def fix(shop: Project, request: FixRequest, listen: Listener) -> FixReport:
    """Repairs what fails, verifies the whole, and promotes it unless it is a dry run."""
    started = time.monotonic()
    for place in bench_places(shop.config):
        sweep(place)
    readable = (start_script().rsplit("/", 1)[0], *brought_along().values(), *own_python()[1])

    notes: list[str] = []
    wanted = PackagePolicy(install=request.install, say=lambda _: listen(StageBegun(name="install")))

    def bench() -> Bench:
        opened = open_bench(shop, extra_readonly=readable)
        try:
            opened.apply(request.ground, shop.store.blobs)
            notes.extend(one.note for one in provide(shop, opened, wanted))
        except BaseException:
            opened.discard()
            raise
        return opened

    with bench() as first:
        fixer: _Fixer | ScriptFixer
        if _is_script_project(first.files, request.test_command):
            fixer = ScriptFixer(ScriptGround(shop, first, request, listen, notes=list(notes)), bench)
        else:
            fixer = _Fixer(PythonGround(shop, first, request, listen), bench)
        report = fixer.work()
        changes = fixer.changes()
    report = replace(report, seconds=time.monotonic() - started)
    if changes:
        report = _landed(shop, report, changes, request)
    shop.note("fixed", {"outcome": report.outcome, "repairs": len(report.repairs), "seconds": round(report.seconds, 2)})
    return report


def _is_script_project(files: Folder, test_command: Sequence[str]) -> bool:
    """Whether the tests, or without any the sources, are TypeScript or JavaScript."""
    command = shlex.join(test_command) if test_command else None
    framework = detect(files, command).framework
    if framework is not None:
        return framework.language == "javascript"
    return command is None and (files.exists("package.json") or files.exists("tsconfig.json"))


def _landed(shop: Project, report: FixReport, changes: ChangeSet, request: FixRequest) -> FixReport:
    """Promotes what was accepted. What was not, or cannot be promoted, is kept as an entry, so that it is not lost."""
    titles = ", ".join(dict.fromkeys(repair.what for repair in report.repairs)) or "a patch that was not accepted"
    entry = shop.new_entry(EntryKind.EDIT, f"fix: {titles}", evidence=report.evidence)
    if report.outcome not in (FixOutcome.FIXED, FixOutcome.PARTLY):
        return report if request.dry_run else replace(report, kept=shop.keep(entry, changes))
    if request.dry_run:
        return replace(report, changes=changes)
    if request.keep:
        return replace(report, changes=changes, kept=shop.keep(entry, changes))
    try:
        protected = [change.path for change in changes if shop.guardrails.protects(change)]
        if protected:
            raise ProtectedRefused(f"{protected[0]!r} is protected", advice="look at the change before you promote it")
        if asked := shop.asked_about(changes):
            raise ProtectedRefused(asked[0], advice="look at the change before you promote it")
        if (rebased := shop.rebased(changes)).digest != changes.digest:
            # What the user changed meanwhile is merged, and the whole is verified anew.
            verifier = Verifier(shop=shop, test_command=request.test_command)
            checked, judgement = verifier.proved(rebased, Requirements(fixes=True))
            if not judgement.accepted:
                why = "; ".join((*judgement.refused, *judgement.unproved))
                raise Refused(f"with what you changed meanwhile it does not pass: {why}")
            entry, changes = replace(entry, evidence=plain(Evidence.of(checked, judgement))), rebased
        promotion = shop.promote(entry, changes, merge=False)
    except (Conflicted, PromotionFailed, Refused) as error:
        kept = shop.keep(entry, changes)
        raise PromotionFailed(
            f"the patch could not be promoted: {error.message}",
            advice=f"it is kept: see it with 'pawl diff {kept}', promote it with 'pawl promote {kept}'",
        ) from error
    told = begin_whole_suite(shop, promotion.entry)
    notes = (*report.notes, *((told,) if told else ()))
    return replace(report, promotion=promotion, changes=promotion.changes, notes=notes)


@dataclass(slots=True)
class _Fixer(RepairStrategy[PythonGround]):
    """For Python, with the engine."""

    suspicions: dict[tuple[str, int], SuspiciousLine] = field(default_factory=dict)
    unsteady: dict[str, str] = field(default_factory=dict)
    """Tests that pass or fail by chance or by their order, and which of the two."""
    reading: UnseenRecoverer = field(init=False)
    """Finds and mends although the tests pass."""

    def begin(self) -> FixReport | None:
        self.reading = UnseenRecoverer(self.ground)
        self.first = self.verdict = first = self.ground.first_run()
        self.ground.refuse_unknown(first)
        if first.standing is not Status.PASS and any(self.asked_for(finding) for finding in first.findings):
            return None
        if first.standing is Status.PASS and not self.ground.aim.tests:
            self.reading.read_and_mend()
            if self.found():
                return None
        self.ground.refuse_not_run()
        others = self.not_asked(first)
        notes = tuple(self.ground.notes)
        counts = first.counts
        return FixReport(outcome=FixOutcome.NOTHING_FAILS, reason=others, before=counts, after=counts, notes=notes)

    def found(self) -> tuple[Diagnostic, ...]:
        return (*shown(self.verdict), *self.reading.mended, *self.reading.unmended)

    def mend(self) -> Told:
        if self.verdict.standing is Status.PASS:
            self.repairs += self.reading.repairs
            return uncompiled(self.reading.unmended)
        recovering = PythonRecoverer(self.ground)
        self.verdict = recovering.run(self.first)
        self.repairs += recovering.repairs
        reason, advice = self._hopeless()
        if not reason:
            findings = [finding for finding in self.verdict.findings if self.asked_for(finding)]
            aside = [
                finding.test
                for finding in findings
                if finding.test and beyond(finding, recoveries_for(self.ground, "python"))
            ]
            self.ground.note_tests("set aside, what they need is missing", aside)
        if not reason and self.verdict.standing is not Status.PASS:
            reason, advice = self._why(self.searched())
        told = [advice] if advice else recovering.advice
        return reason, "; ".join(dict.fromkeys(filter(None, told)))

    def suspicious(self) -> tuple[SuspiciousLine, ...]:
        return tuple(sorted(self.suspicions.values(), key=lambda line: -line.score)[:10])

    def asked_for(self, finding: Diagnostic) -> bool:
        return self.ground.aim.wants(finding)

    def _hopeless(self) -> Told:
        """Why a search would be in vain, and what to do instead; empty where it may help."""
        if self.verdict.standing is Status.PASS:
            return "", ""
        if self.mendable():
            return too_slow(self.ground, self.first)
        unmended = [finding for finding in self.verdict.findings if self.asked_for(finding)]
        reason, advice = needs(self.ground, unmended, symbols_of(self.ground.sources()))
        return (reason, advice) if reason else uncollected(unmended)

    def _why(self, ended: RepairEnded | None) -> Told:
        """Why the search left something, and what to do about it."""
        if self.verdict.standing is Status.PASS:
            return "", ""
        left = [finding for finding in self.verdict.findings if self.asked_for(finding)]
        missing, advice = needs(self.ground, left, symbols_of(self.ground.sources()))
        broken = ended is not None and ended.status is RepairStatus.ENGINE_FAILED
        if broken and not advice:
            advice = "its tests may need their own runner; a model can work on them: pawl do 'make the tests pass'"
        late = self.ground.left <= 1 or (ended is not None and ended.status is RepairStatus.OUT_OF_TIME)
        if not advice and left and all(one.code in (ENDS, INCOMPLETE) for one in left):
            advice = "something ends the interpreter (os._exit, a crash): let it raise an error, then run this again"
        if late and not advice:
            advice = more_time(self.ground, self.first)
        odd = {finding.test: self.unsteady[finding.test] for finding in left if finding.test in self.unsteady}
        if ended is not None:
            reason = why_not(ended)
        elif late and self.mendable():
            reason = WHY_NOT[RepairStatus.OUT_OF_TIME]
        else:
            unloaded, mend = uncollected(left)
            unreached = WHY_NOT[RepairStatus.NO_SOURCES] if self.ground.aim.sources else self.verdict.reason
            reason, advice = missing or unloaded or unreached, advice or mend
        return reason, "; ".join(filter(None, (unsteady(odd), advice)))

    def mendable(self) -> list[Diagnostic]:
        wanted = (finding for finding in failing_tests(self.verdict) if self.asked_for(finding))
        known = recoveries_for(self.ground, "python")
        hopeful = (finding for finding in wanted if finding.code != ENDS and not is_uncollected(finding))
        return [finding for finding in hopeful if beyond(finding, known) is None]

    def near(self, failing: list[Diagnostic]) -> list[Diagnostic]:
        found = reaching(failing, self.ground.aim.sources, self.ground.sources())
        far = [finding.test for finding in failing if finding not in found]
        self.ground.note_tests("set aside, they do not reach what may be edited", far)
        return found

    def search_part(self, failing: list[Diagnostic]) -> tuple[RepairEnded, CheckResult | None]:
        """One search for the failures that belong together; where there is no patch for them all, for one by one."""
        ended = self._decided(self._search(failing, self.ground.left), len(failing))
        better = self.take(ended)
        if better is not None:
            return ended, better
        together = [finding for finding in failing if finding.test in ended.tests]
        if ended.status not in (RepairStatus.NO_PATCH, RepairStatus.OUT_OF_TIME) or len(together) < 2:
            return ended, None
        for part in self._parts(together):
            if self.ground.left < 2:
                break
            alone = self._decided(self._search(part, self.ground.left * 0.5), len(part))
            better = self.take(alone)
            if better is not None:
                return alone, better
        return ended, None

    def _parts(self, together: list[Diagnostic]) -> list[list[Diagnostic]]:
        """The tests of each file where sources are named, since not all may run them; else each test alone."""
        files: dict[str, list[Diagnostic]] = {}
        for finding in together:
            files.setdefault(test_file(finding, {}), []).append(finding)
        alone = [[finding] for finding in together]
        return [*(files.values() if self.ground.aim.sources and len(files) > 1 else ()), *alone][:MOST_ALONE]

    def _decided(self, ended: RepairEnded, asked: int) -> RepairEnded:
        """Where a search was for part of the failures, the others speak for the patch that mends the most of them."""
        ended = self.counted(ended)
        failing = failing_tests(self.verdict)
        if asked >= len(failing) or len(ended.patches) < 2:
            return ended
        mended = {patch: len(failing) - len(failing_tests(self._with(patch))) for patch in ended.patches}
        ranked = sorted(ended.patches, key=lambda patch: -mended[patch])
        best = ranked[0]
        rivals = [patch for patch in ranked if patch.group != best.group and mended[patch] == mended[best]]
        if rivals or mended[best] <= asked:
            return replace(ended, patches=tuple(ranked))
        reason = f"it fixes {mended[best]} failing tests, more than any patch that behaves differently"
        return replace(ended, patches=tuple(ranked), agreement=Agreement.DECIDED, reason=reason)

    def _with(self, patch: FoundPatch) -> CheckResult:
        """The suite's verdict with the patch, which is then taken away again."""
        with self.ground.trial({patch.path: self.patched(patch)}):
            return self.ground.run_tests()

    def _search(self, failing: Sequence[Diagnostic], seconds: float) -> RepairEnded:
        """One search for a patch that makes these tests pass."""
        ended: list[RepairEnded] = []
        tests = [finding.test for finding in failing]

        def take(event: RepairEvent) -> None:
            self._notice(event)
            if isinstance(event, RepairEnded):
                ended.append(event)
            else:
                self.ground.listen(event)

        done = self.ground.run_engine(self.ground.request_for(tests, max(1.0, seconds)), take)
        if not ended:
            status = RepairStatus.OUT_OF_TIME if done.ending is Ending.TIMED_OUT else RepairStatus.ENGINE_FAILED
            said = done.stderr.text.strip().splitlines()[-1:] or [f"it ended with code {done.code}"]
            return RepairEnded(status=status, seconds=done.seconds, error=said[0])
        if ended[0].status is RepairStatus.NOTHING_FAILS:
            self._note_unsteady("flaky", tests)
        return ended[0]

    def _notice(self, event: RepairEvent) -> None:
        if isinstance(event, LinesSuspected):
            self.suspicions.update({(line.path, line.line): line for line in event.lines})
        if isinstance(event, BaselineTaken):
            self._note_unsteady("flaky", event.flaky)
            self._note_unsteady("order-dependent", event.ordered)
            self.ground.note_tests("did not end in time", event.hanging)

    def _note_unsteady(self, word: str, tests: Sequence[str]) -> None:
        self.unsteady.update(dict.fromkeys(tests, word))
        self.ground.note_tests(word, tests)

    def verify(self) -> tuple[CheckResult, ...]:
        ground = self.ground
        stop = StopPolicy.AT_FIRST_FAILURE
        return ground.verify(self.bench, (self.first,), stop=stop, suite=lambda _: ground.run_tests())

    def left(self, verdicts: Sequence[CheckResult]) -> tuple[Diagnostic, ...]:
        return (*shown(suite_of(verdicts)), *self.reading.unmended)

    def not_asked(self, after: CheckResult) -> str:
        others = 0 if after.standing is Status.PASS and not after.old else len(shown(after))
        return f"{amount(others, 'other test')} {'fails' if others == 1 else 'fail'}, not asked for" if others else ""


_LOCKED = {"uv.lock": "uv add", "poetry.lock": "poetry add", "pdm.lock": "pdm add", "Pipfile.lock": "pipenv install"}
_SYNCED = {"uv.lock": "uv sync", "poetry.lock": "poetry install", "pdm.lock": "pdm sync", "Pipfile.lock": "pipenv sync"}
_MOST_NAMED = 3
_ROOM = 10
"""A search should have so many times as long as the suite takes."""


def uncompiled(findings: Iterable[Diagnostic]) -> tuple[str, str]:
    """Which sources do not compile although the tests pass, and what to do; empty when all do."""
    told = "; ".join(f"{one.path}:{one.line} does not compile: {_first(one)}" for one in findings)
    return (told, "correct that line and run this again") if told else ("", "")


def uncollected(findings: Iterable[Diagnostic]) -> tuple[str, str]:
    """Which test files cannot be loaded, by which error and where, and what to do; empty when all can."""
    told: dict[str, None] = {}
    advice = "correct that line and run this again"
    for finding in filter(is_uncollected, findings):
        place = finding.frames[-1] if finding.frames else Location(path=finding.path, line=finding.line)
        where = f" at {place.path}:{place.line}" if place.path else ""
        told[f"{finding.test} cannot be loaded: {_first(finding)}{where}"] = None
        if place.path and is_test(place.path):
            advice = f"Pawl does not edit tests: fix {place.path}:{place.line} and run this again"
    if not told:
        return "", ""
    more = f", and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return "; ".join(list(told)[:_MOST_NAMED]) + more, advice


def needs(ground: PythonGround, findings: Iterable[Diagnostic], symbols: Symbols) -> tuple[str, str]:
    """Needs of the tests that no patch can meet, and how to meet them; empty where it is the code."""
    reasons: dict[str, None] = {}
    advice: dict[str, None] = {}
    for finding in findings:
        found = beyond(finding, recoveries_for(ground, "python"))
        if found is None:
            continue
        entry, groups = found
        if "module" in groups and entry.recovery != SAY:
            reason, what = _module(ground, groups, symbols)
        elif plugin_of(groups.get("fixture", "")):
            plugin = plugin_of(groups["fixture"])
            reason = (
                f"the tests need the package {plugin!r}, which is not installed (for the fixture {groups['fixture']!r})"
            )
            what = _installed_by(ground, plugin)
        else:
            told = entry.advice.format(**groups)
            reason, what = f"what the tests need around the code is missing: {_first(finding)}", told
        reasons[reason] = advice[what] = None
    return "; ".join(reasons), "; ".join(advice)


def _first(finding: Diagnostic) -> str:
    return finding.message.strip().splitlines()[0]


def _module(ground: PythonGround, groups: Mapping[str, str], symbols: Symbols) -> tuple[str, str]:
    module = groups["module"]
    root = module.partition(".")[0]
    if root in symbols.modules:
        return (
            f"the module {module!r} of this project is not on the import path",
            "install the project into its environment, or set `pythonpath` in [tool.pytest.ini_options]",
        )
    if not is_packages(module, dependencies(ground.bench.files)):
        # A name that nothing confirms may be anybody's package.
        advice = "correct the name, or add the package that has it to the project's dependencies"
        return f"there is no module {module!r}, and no dependency of the project has it{meant_module(module)}", advice
    package = package_of(module)
    return f"the tests need the package {package!r}, which is not installed", _installed_by(ground, package)


def _installed_by(ground: PythonGround, package: str) -> str:
    files = ground.bench.files
    python = ground.subject.python.removeprefix(f"{ground.shop.workspace}/")
    locks = [name for name in _LOCKED if files.exists(name)]
    declared = package.lower() in dependencies(files)
    if locks:
        how = _SYNCED[locks[0]] if declared else f"{_LOCKED[locks[0]]} {package}"
    elif declared and files.exists("requirements.txt"):
        how = f"{python} -m pip install -r requirements.txt"
    else:
        how = f"{python} -m pip install {package}"
    # What the project requires can be had without touching the user's environment.
    benched = "pawl fix --install (on the bench), or in your environment: " if declared else ""
    return f"install it with: {benched}{how}"


def too_slow(ground: PythonGround, first: CheckResult) -> tuple[str, str]:
    """Whether the suite leaves no time for a search, and what would; empty when it does."""
    if first.seconds < ground.request.seconds:
        return "", ""
    return (
        f"the suite takes {first.seconds:.0f} s, more than the {ground.request.seconds:g} s of the search",
        more_time(ground, first),
    )


def more_time(ground: PythonGround, first: CheckResult) -> str:
    """Room for several runs of the suite, and more than was given."""
    seconds = math.ceil(max(first.seconds * _ROOM, ground.request.seconds * 2) / 10) * 10
    # unittest names modules instead of files.
    files = sorted(
        {one.test.partition("::")[0] for one in first.findings if "::" in one.test and ground.aim.wants(one)}
    )
    part = f"pytest {' '.join(files[:3])}" if files else "CMD"
    return f"give it more time, such as --seconds {seconds}, or run a part of the tests with --test '{part}'"


def unsteady(found: Mapping[str, str]) -> str:
    """Advice about tests that do not always end the same way."""
    words = set(found.values())
    parts = []
    if "flaky" in words:
        parts.append("a test that fails only sometimes cannot judge a patch: take chance and time out of it")
    if "order-dependent" in words:
        parts.append("a test that fails only after others shares state with them: reset that state before each test")
    return "; ".join(parts)
