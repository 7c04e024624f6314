"""The ground of one repair of TypeScript or JavaScript, and the search on it: in a warm Node, or by the own runner."""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import resources

from pawl.checks import catalog as commands
from pawl.checks.catalog import named
from pawl.checks.project_facts import CheckKind
from pawl.checks.steps import Tests
from pawl.code.import_map import Resolver
from pawl.code.languages import is_test
from pawl.core.diagnostic import INCOMPLETE, CheckResult, Diagnostic, Status
from pawl.core.errors import CannotFix, NoTests, UsageError
from pawl.core.execution import Execution
from pawl.core.lazy_dataclass import dataclass
from pawl.repair.ground import EventLines, RepairGround
from pawl.repair.model import (
    Agreement,
    FoundPatch,
    Progressed,
    RepairEnded,
    RepairEvent,
    RepairStatus,
    StageBegun,
    TextEdit,
)
from pawl.repair.recovery_texts import ENDINGS
from pawl.repair.script_nodes import ScriptProposal
from pawl.repair.script_proposals import Proposed, proposed
from pawl.repair.sources import files_of, reached

MOST_SOURCES = 3000
_CONFIGURATION = ("vitest.", "jest.", "vite.config", "eslint.config")
"""Scripts that say how others are run and checked, never edited."""
_READ = (CheckKind.SYNTAX, CheckKind.TYPES)


@dataclass(slots=True)
class ScriptGround(RepairGround):
    def __post_init__(self) -> None:
        known = tuple(self.bench.files.walk()) if self.request.targets else ()
        for target in self.request.targets:
            if not any(path.endswith(ENDINGS) for path in files_of(target, known)):
                raise UsageError(
                    f"{target!r} holds no TypeScript or JavaScript", advice="name sources that may be edited, or tests"
                )
        tests = [one for one in self.request.targets if is_test(one)]
        self.choose(tests, [path for one in self.request.targets for path in files_of(one, known) if not is_test(path)])

    def first_runs(self) -> tuple[tuple[CheckResult, ...], CheckResult]:
        """The verdicts of compilers and suite before anything is changed; the budget is spent from then on."""
        self.listen(StageBegun(name="suite"))
        read = self.read()
        tests = self.run_tests()
        if tests.standing is Status.SKIPPED and not findings_of(read):
            if "missing" in tests.reason or "installed" in tests.reason:
                raise CannotFix(
                    f"the tests cannot run: {tests.reason}",
                    advice="; ".join(self.notes) or "install them with: npm install",
                )
            raise NoTests(f"no tests found: {tests.reason}", advice="name the command with --test 'CMD'")
        if tests.standing is Status.FAIL and not findings_of((*read, tests)):
            said = tests.findings[0].message if tests.findings else tests.reason
            raise CannotFix(
                f"the tests cannot run: {said.splitlines()[0] if said else 'their command fails'}",
                advice="fix what their command reports, or name another one with --test 'CMD'",
            )
        self.start_clock(len(findings_of((*read, tests))), tests)
        return read, tests

    def read(self) -> tuple[CheckResult, ...]:
        """The compilers' verdicts on the sources."""
        return self.verifier.check_bench(_READ, self.bench.files, self.bench)

    def run_tests(self, seconds: float | None = None) -> CheckResult:
        """The suite, also where only a script of the package says how it runs."""
        results = self.verifier.check_bench((CheckKind.TESTS,), self.bench.files, self.bench, seconds=seconds)
        return results[0] if results else Tests().run(self.subject)

    def run_files(self, framework: str, paths: Sequence[str], seconds: float) -> CheckResult:
        """The project's own runner on some test files; on the whole suite where it runs in its own way."""
        if self.request.test_command or not paths or not self.bench.files.exists("package.json"):
            return self.run_tests(seconds)
        words = commands.of_files(named(framework), paths)
        subject = self.verifier.subject(self.bench.files, self.bench, seconds)
        return Tests(framework=framework, command=words).run(subject)

    def sources(self) -> dict[str, str]:
        return self.texts([path for path in self.bench.files.walk() if path.endswith(ENDINGS)][:MOST_SOURCES])

    def editable(self, sources: Sequence[str]) -> tuple[str, ...]:
        """The sources that may be edited: no tests, and only what the user points at, if they do."""
        wanted = [one for one in self.request.targets if not is_test(one)]
        inside = [
            path for path in sources if not wanted or any(path == one or path.startswith(f"{one}/") for one in wanted)
        ]
        return tuple(
            path
            for path in inside
            if not (is_test(path) or path.endswith(".d.ts") or path.rpartition("/")[2].startswith(_CONFIGURATION))
        )


def findings_of(verdicts: Sequence[CheckResult]) -> list[Diagnostic]:
    """The findings that count; equal ones as often as they are found."""
    return [one for verdict in verdicts for one in verdict.findings if one.code != INCOMPLETE]


_IMPORTED = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*['"]([^'"\n]+)['"]""")


def failing_files(findings: Iterable[Diagnostic], sources: Mapping[str, str]) -> tuple[str, ...]:
    """The test files of failing tests; every test file where one cannot be told."""
    found: dict[str, None] = {}
    for finding in findings:
        places = (finding.test.split(" > ")[0], finding.path, *(frame.path for frame in finding.frames))
        file = next((path for path in places if path in sources and is_test(path)), "")
        if not file:
            return tuple(path for path in sources if is_test(path))
        found[file] = None
    return tuple(found)


def reached_scripts(tests: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """The files that the tests import, directly or not, the nearest first."""
    resolver = Resolver(sources)

    def imported(path: str) -> Iterator[str]:
        names = _IMPORTED.findall(sources.get(path, ""))
        return filter(None, (_target(name, path, sources, resolver) for name in names))

    return [path for path in reached(tests, imported) if path not in tests]


def lines_of(findings: Iterable[Diagnostic]) -> dict[str, list[int]]:
    """The lines that the stacks lead through, by file."""
    found: dict[str, list[int]] = {}
    for finding in findings:
        for frame in finding.frames:
            found.setdefault(frame.path, []).append(frame.line)
    return found


def _target(name: str, path: str, sources: Mapping[str, str], resolver: Resolver) -> str:
    """The source that an import names, by its place or by an alias such as `@/cart`; empty for a package."""
    if name.startswith("."):
        return next(iter(resolver.targets(path, name, ())), "")
    head, _, inner = name.partition("/")
    if not inner or (head.startswith("@") and len(head) > 1 and "/" not in inner):
        return ""
    endings = ("", *ENDINGS, *(f"/index{end}" for end in ENDINGS))
    found = [one for one in sources if any(f"/{one}".endswith(f"/{inner}{end}") for end in endings)]
    return min(found, key=len) if found else ""


REQUEST_FILE = ".pawl-search.json.gz"
"""Where the request lies, in the root; Node removes it as soon as it is read."""
MOST_BYTES = 1_000_000
"""A file of a bench may have a little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRequest:
    root: str
    """The folder as Node sees it; on a bench, the workspace's own path."""
    tests: tuple[str, ...]
    """The test files to load, relative to the root."""
    failing: tuple[str, ...]
    """The tests that fail in them: where they do not fail in a warm Node, its word is not taken."""
    framework: str = "node"
    seconds: float = 60.0
    workers: int = 2
    counted: str = "wall"
    """Seconds of the clock (`wall`), or of the CPU (`cpu`), for measurements on a busy machine."""

    def packed(self, found: Proposed) -> bytes:
        """The request as it is written; of too many proposals the likeliest."""
        most = len(found.proposals)
        while True:
            proposals = [one._asdict() for one in found.proposals[:most]]
            text = json.dumps({**asdict(self), "marks": found.marks, "proposals": proposals})
            data = gzip.compress(text.encode(), 5, mtime=0)
            if len(data) <= MOST_BYTES or not most:
                return data
            most //= 2


def warm_command(root: str) -> tuple[str, ...]:
    """The words that run the search on a request that lies in its place."""
    script = os.fspath(resources.files("pawl.repair") / "inside" / "node" / "start.cjs")  # type: ignore[call-overload]
    return ("node", script, f"{root}/{REQUEST_FILE}")


GRACE_SECONDS = 15.0
HORIZON = 1.2
"""How much dearer than the first patch a rival may be."""
CLEAR = 0.75
"""A difference of cost that decides where nothing says how rivals behave."""
MOST_RIVALS = 4
MOST_FILES = 40
_WARM = frozenset({"node", "mocha", "jest", "vitest"})


@dataclass(frozen=True, slots=True)
class ScriptSearch:
    """One search: for these failing tests, in these files of tests, by these proposals."""

    ground: ScriptGround
    findings: Sequence[Diagnostic]
    files: tuple[str, ...]
    proposed: Proposed

    @property
    def tool(self) -> str:
        return self.findings[0].tool

    def warm(self) -> RepairEnded | None:
        """In processes that stay up and load the tests again for each proposal; None when they said nothing."""
        ended: list[RepairEnded] = []

        def take(event: RepairEvent) -> None:
            if isinstance(event, RepairEnded):
                ended.append(event)
            else:
                self.ground.listen(event)

        root = self.ground.shop.workspace
        seconds = max(1.0, self.ground.left)
        request = WarmRequest(
            root=root,
            tests=self.files,
            failing=tuple(finding.test for finding in self.findings),
            framework=self.tool,
            seconds=seconds,
            workers=self.ground.request.workers,
        )
        self.ground.bench.files.write(REQUEST_FILE, request.packed(self.proposed))
        limits = self.ground.shop.config.settings.limits(seconds + GRACE_SECONDS)
        self.ground.bench.run(Execution(argv=warm_command(root), limits=limits), on_output=EventLines(take).feed)
        return ended[0] if ended else None

    def cold(self) -> RepairEnded:
        """By the runner of the project, a run for each proposal: right everywhere, and slow."""
        started = time.monotonic()
        self.ground.listen(StageBegun(name="search", tests=len(self.findings)))
        before = self._run(self.ground.left)
        once = time.monotonic() - started
        failing = _failing(before)
        found: list[tuple[frozenset[str], ScriptProposal]] = []
        first = None
        tried = 0
        for one in self.proposed.proposals:
            full = [patch for mended, patch in found if mended == failing]
            late = first is not None and time.monotonic() - started > 2 * first + 10 * once
            if self.ground.left < 2 * once or late or len(full) > MOST_RIVALS:
                break
            if full and one.cost > full[0].cost + HORIZON:
                break
            after = self._with(one, once)
            tried += 1
            still = _failing(after)
            # Of tests that are missing from the report nothing is known.
            usable = after.standing is not Status.SKIPPED and all(finding.test for finding in after.findings)
            if usable and still < failing and not _touched(after, before):
                found.append((failing - still, one))
                first = first or (time.monotonic() - started if not still else None)
            self.ground.listen(Progressed(tried=tried, cpu=0.0, plausible=len(found), left=self.ground.left))
        status = RepairStatus.OUT_OF_TIME if self.ground.left < 2 * once else RepairStatus.NO_PATCH
        ended = RepairEnded(status=status, seconds=time.monotonic() - started, tests=tuple(failing), tried=tried)
        return _chosen(ended, found) if found else ended

    def _run(self, seconds: float) -> CheckResult:
        return self.ground.run_files(self.tool, self.files, max(5.0, seconds))

    def _with(self, one: ScriptProposal, once: float) -> CheckResult:
        """The runner's verdict with the proposal, which is then taken away again."""
        assert not is_test(one.path)
        patched = _patch(one, 0).applied(self.ground.bench.files.read(one.path))
        with self.ground.trial({one.path: patched}):
            return self._run(5 * once)


def search(ground: ScriptGround, findings: Sequence[Diagnostic]) -> RepairEnded:
    """One search for a patch that makes these tests pass, or as many of them as one patch can."""
    sources = ground.sources()
    files = failing_files(findings, sources)
    editable = set(ground.editable(list(sources)))
    frames = [frame.path for finding in findings for frame in finding.frames]
    near = dict.fromkeys((*frames, *reached_scripts(files, sources)))
    paths = [path for path in near if path in editable][:MOST_FILES]
    if not paths:
        return RepairEnded(status=RepairStatus.NO_SOURCES, seconds=0.0)
    found = proposed({path: sources[path] for path in paths}, lines_of(findings))
    if not found.proposals:
        return RepairEnded(status=RepairStatus.NOTHING_TO_EDIT, seconds=0.0)
    one = ScriptSearch(ground, findings, files, found)
    ended = one.warm() if files and one.tool in _WARM else None
    if ended is None or ended.status in (RepairStatus.NOT_COLLECTED, RepairStatus.ENGINE_FAILED):
        return one.cold()
    return ended


def _failing(verdict: CheckResult) -> frozenset[str]:
    return frozenset(finding.test for finding in verdict.findings if finding.test)


def _touched(after: CheckResult, before: CheckResult) -> bool:
    """Whether a test still fails and in another way: then the patch runs in it too, and fits the others by chance."""
    then = {finding.test: finding.message for finding in before.findings}
    return any(finding.message != then.get(finding.test) for finding in after.findings if finding.test)


def _patch(one: ScriptProposal, group: int) -> FoundPatch:
    return FoundPatch(
        path=one.path,
        edits=(TextEdit(one.start, one.end, one.text),),
        template=one.template,
        function=one.function,
        line=one.line,
        cost=one.cost,
        group=group,
    )


def _chosen(ended: RepairEnded, found: list[tuple[frozenset[str], ScriptProposal]]) -> RepairEnded:
    """Those that mend the most; how they behave is not known here, so that only their cost can decide."""
    most = min(found, key=lambda each: (-len(each[0]), each[1].cost))[0]
    best = sorted((one for mended, one in found if mended == most), key=lambda one: one.cost)
    patches = tuple(_patch(one, number) for number, one in enumerate(best[: MOST_RIVALS + 1]))
    margin = best[1].cost - best[0].cost if len(best) > 1 else 99.0
    agreement, reason = Agreement.SOLE, "no other patch was found that passes the tests"
    if len(best) > 1 and margin >= CLEAR:
        agreement, reason = Agreement.DECIDED, "it is a clearly smaller change than its rivals"
    elif len(best) > 1:
        agreement, reason = Agreement.DISPUTED, "nothing tells whether they behave alike"
    return replace(
        ended,
        status=RepairStatus.REPAIRED,
        patches=patches,
        agreement=agreement,
        reason=reason,
        margin=margin,
    )
