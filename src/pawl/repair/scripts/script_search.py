"""Repairs of scripts by search: proposals tried in a warm Node, or one by one by the project's own runner."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
from pawl.repair.scripts.proposals import Proposed, proposed
from pawl.repair.scripts.script_ground import ScriptGround, failing_files, is_script_test, lines_of, reached_scripts
from pawl.repair.scripts.script_nodes import ScriptProposal
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
        assert not is_script_test(one.path)
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
