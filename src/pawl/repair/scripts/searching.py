"""Repairs of scripts by search: proposals tried in a warm Node, or one by one by the project's own runner."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources

from pawl.core.diagnostic import CheckResult, Diagnostic, Status
from pawl.core.execution import Execution
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
from pawl.repair.scripts.proposal import ScriptProposal
from pawl.repair.scripts.proposing import Proposed, proposed
from pawl.repair.scripts.session import ScriptGround, failing_files, is_script_test, lines_of, reached
from pawl.repair.stream import EventLines

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
    """What the seconds are counted in: of the clock, or of the CPU (`cpu`), for measurements on a busy machine."""

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
class Sought:
    """One search: for these failing tests, in these files of tests and of sources."""

    findings: tuple[Diagnostic, ...]
    files: tuple[str, ...]
    sources: dict[str, str]
    """What may be edited."""

    @property
    def tool(self) -> str:
        return self.findings[0].tool


@dataclass(slots=True)
class ScriptSearch:
    ground: ScriptGround
    tried: int = 0
    cpu_seconds: float = 0.0
    _found: Proposed = field(default_factory=Proposed)

    def run(self, findings: Sequence[Diagnostic]) -> RepairEnded:
        """One search for a patch that makes these tests pass, or as many of them as one patch can."""
        sought = self._sought(findings)
        if not sought.sources:
            return RepairEnded(status=RepairStatus.NO_SOURCES, seconds=0.0)
        self._found = proposed(sought.sources, lines_of(findings))
        if not self._found.proposals:
            return RepairEnded(status=RepairStatus.NOTHING_TO_EDIT, seconds=0.0)
        ended = self._warm(sought) if sought.files and sought.tool in _WARM else None
        if ended is None or ended.status in (RepairStatus.NOT_COLLECTED, RepairStatus.ENGINE_FAILED):
            ended = self._cold(sought)
        self.tried += ended.tried
        self.cpu_seconds += ended.cpu
        return ended

    def _sought(self, findings: Sequence[Diagnostic]) -> Sought:
        sources = self.ground.sources()
        files = failing_files(findings, sources)
        near = reached(files, sources)
        editable = set(self.ground.editable(list(sources)))
        frames = [frame.path for finding in findings for frame in finding.frames]
        paths = [path for path in dict.fromkeys((*frames, *near)) if path in editable][:MOST_FILES]
        return Sought(tuple(findings), files, {path: sources[path] for path in paths})

    def _warm(self, sought: Sought) -> RepairEnded | None:
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
            tests=sought.files,
            failing=tuple(finding.test for finding in sought.findings),
            framework=sought.tool,
            seconds=seconds,
            workers=self.ground.request.workers,
        )
        self.ground.bench.files.write(REQUEST_FILE, request.packed(self._found))
        limits = self.ground.shop.config.settings.limits(seconds + GRACE_SECONDS)
        self.ground.bench.run(Execution(argv=warm_command(root), limits=limits), on_output=EventLines(take).feed)
        return ended[0] if ended else None

    def _cold(self, sought: Sought) -> RepairEnded:
        """By the runner of the project, a run for each proposal: right everywhere, and slow."""
        started = time.monotonic()
        self.ground.listen(StageBegun(name="search", tests=len(sought.findings)))
        before = self._run(sought, self.ground.left)
        once = time.monotonic() - started
        failing = _failing(before)
        found: list[tuple[frozenset[str], ScriptProposal]] = []
        first = None
        tried = 0
        for one in self._found.proposals:
            full = [patch for mended, patch in found if mended == failing]
            late = first is not None and time.monotonic() - started > 2 * first + 10 * once
            if self.ground.left < 2 * once or late or len(full) > MOST_RIVALS:
                break
            if full and one.cost > full[0].cost + HORIZON:
                break
            after = self._with(one, sought, once)
            tried += 1
            still = _failing(after)
            usable = after.standing is not Status.SKIPPED and not _broke_off(after)
            if usable and still < failing and not _touched(after, before):
                found.append((failing - still, one))
                first = first or (time.monotonic() - started if not still else None)
            self.ground.listen(Progressed(tried=tried, cpu=0.0, plausible=len(found), left=self.ground.left))
        status = RepairStatus.OUT_OF_TIME if self.ground.left < 2 * once else RepairStatus.NO_PATCH
        ended = RepairEnded(status=status, seconds=time.monotonic() - started, tests=tuple(failing), tried=tried)
        return _chosen(ended, found) if found else ended

    def _run(self, sought: Sought, seconds: float) -> CheckResult:
        return self.ground.run_files(sought.tool, sought.files, max(5.0, seconds))

    def _with(self, one: ScriptProposal, sought: Sought, once: float) -> CheckResult:
        """What the runner says with the proposal, which is then taken away again."""
        assert not is_script_test(one.path)
        before = self.ground.bench.files.read(one.path)
        self.ground.bench.files.write(one.path, _patch(one, 0).applied(before))
        try:
            return self._run(sought, 5 * once)
        finally:
            self.ground.bench.files.write(one.path, before)


def _failing(verdict: CheckResult) -> frozenset[str]:
    return frozenset(finding.test for finding in verdict.findings if finding.test)


def _touched(after: CheckResult, before: CheckResult) -> bool:
    """Whether a test still fails and in another way: then the patch runs in it too, and fits the others by chance."""
    then = {finding.test: finding.message for finding in before.findings}
    return any(finding.message != then.get(finding.test) for finding in after.findings if finding.test)


def _broke_off(verdict: CheckResult) -> bool:
    """Whether tests are missing from the report, so that nothing is known of them."""
    return any(not finding.test for finding in verdict.findings)


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
    return RepairEnded(
        status=RepairStatus.REPAIRED,
        seconds=ended.seconds,
        patches=patches,
        agreement=agreement,
        reason=reason,
        margin=margin,
        tests=ended.tests,
        tried=ended.tried,
    )
