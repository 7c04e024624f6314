"""The work of a run on its bench and its way into the workspace: captured, rebased, verified, promoted once or kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from pawl.agent.record import RunRecord, WorkName
from pawl.agent.request_scope import programs_of
from pawl.agent.skill_library import listed, own_folders
from pawl.agent.tools.toolbox import LateBench, ToolSession
from pawl.checks.early_tests import EarlyTests
from pawl.checks.signs import shows_dev_server
from pawl.code.librarian import source_files
from pawl.core.change import EMPTY, Change, ChangeSet, Checkpoint, EntryKind, EntryState, NewEntry, Node, NodeKind
from pawl.core.diagnostic import CheckBegun, CheckResult, Verdict, counts_json
from pawl.core.errors import Conflicted, PawlError, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.patch import content, hunks, select, summary
from pawl.core.redact import redacted, without_known
from pawl.core.run import Mode, Task
from pawl.core.text import one_line
from pawl.sandbox.cancel import raise_if_stopped
from pawl.settings.guardrails import Touched
from pawl.workspace.bench_files import Files, GatedFiles, UnopenedSurface
from pawl.workspace.paths import clean
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.checks.bench_checker import BenchChecker
    from pawl.checks.bench_server import BenchServer
    from pawl.checks.verdict import Verification
    from pawl.checks.verifier import Verifier
    from pawl.workspace.bench import Bench
    from pawl.workspace.capture import HeldBack
    from pawl.workspace.git import CommandRunner


LONGEST_TITLE, LONGEST_WHAT = 72, 200
BASELINE_SECONDS = 5.0
"""How long a check of the tests waits for those without the change, to tell what is older."""
MOST_FINDINGS = 500
"""Of the baseline, for the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The changes that stand on the bench, over the workspace as it stands now."""

    changes: ChangeSet
    held: tuple[HeldBack, ...] = ()
    spare: ChangeSet = EMPTY
    """The changes that are held back and could be kept."""


@dataclass(slots=True)
class BenchWorks:
    """The work on the bench of a run and its way into the workspace."""

    shop: Project
    record: RunRecord
    opened_verifier: Callable[[], Verifier]
    """Called when something is to be checked."""
    desk: ToolSession = field(init=False)
    early: EarlyTests = field(init=False)
    """The tests without any change, begun while the model is asked."""
    _verifier: Verifier | None = None
    _before: CheckResult | None = None

    def __post_init__(self) -> None:
        self.early = EarlyTests(self.shop, self._tested)
        skills = listed(self.shop.config, self.shop.workspace, self.record.order.text, self.shop.read_gate().shows)
        if self.record.order.mode is Mode.CHAT:
            # Who only reads needs neither the packages of the project nor its checks.
            self.desk = ToolSession(self.shop, skills=skills)
        else:
            bench = LateBench(self.shop, partial(_opened, install=self.record.order.install))
            server = self._server if self._has_server() else None
            self.desk = ToolSession(self.shop, bench=bench, checker=self._checker, server=server, skills=skills)

    @property
    def verifier(self) -> Verifier:
        if self._verifier is None:
            self._verifier = self.opened_verifier()
        return self._verifier

    def close(self) -> None:
        try:
            self.known_before()
        finally:
            self.early.close()
            self.desk.__exit__()

    def restore(self) -> None:
        """A bench as the run left it: what it had changed is put onto it again, over what the user changed since.

        Where there is nothing to put there, it is opened by the first who needs it.
        """
        if self.desk.bench.is_open:
            return
        known = self.record.work(WorkName.BENCH)
        if known:
            changes = self.shop.rebased(known)
            self.desk.bench.bench.apply(changes, self.shop.store.blobs)

    def standing(self) -> ChangeSet:
        """The state of the bench, held back or not, so that an interrupted run can resume with it."""
        changes, held = self._captured()
        return changes.then(_spare(held).without(changes.paths))

    def unmet(self, tasks: Sequence[Task]) -> tuple[str, ...]:
        """Every precondition of the tasks that does not hold; what one creates is there for those after it."""
        found = dict[str, None]()
        made: set[str] = set()
        for task in tasks:
            made |= set(task.creates)
            found |= dict.fromkeys(line for path in task.paths for line in self._unmet_path(path, made))
        programs = programs_of(self.record.order.text)
        missing = [one for one in programs if "/" in one and not is_there(self.shop, one)]
        missing += self.verifier.missing_programs(programs) if programs else ()
        return (*found, *(f"there is no command {one!r}" for one in missing))

    def _unmet_path(self, path: str, made: Collection[str]) -> Iterator[str]:
        try:
            name = clean(path.rstrip("/"), root=self.shop.workspace)
        except PawlError as error:
            yield error.message
            return
        if self.shop.guardrails.is_secret(name):
            yield f"{name!r} holds secrets and is never read or written"
        elif self.shop.guardrails.never(name):
            yield f"{name!r} is out of reach"
        elif path not in made and self.shop.tree.look(name) is None:
            yield f"there is no {name!r}"

    def order(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Imported files before their importers."""
        wanted = tuple(paths)
        if all(path.endswith(".py") for path in wanted):
            return self.desk.dependencies().order(wanted)
        from pawl.code.librarian import workspace_import_graph

        return workspace_import_graph(self.shop).order(wanted)

    def unjustified(self, changes: ChangeSet, words: str) -> tuple[str, ...]:
        """The files of a change that neither the words nor an import explain (A7)."""
        from pawl.code.editor import unexplained

        paths = {change.path for change in changes}
        if all(path.endswith(".py") for path in paths):
            return tuple(unexplained(paths, words, self.desk.dependencies()))
        from pawl.code.librarian import workspace_import_graph

        graph = workspace_import_graph(self.shop)
        # The graph is that of the workspace: of new files it knows nothing.
        return tuple(unexplained(paths & graph.imported.keys(), words, graph))

    def before(self) -> CheckResult:
        """The tests without any change; run once."""
        known = self.known_before()
        return self._measured(self.early.result()) if known is None else known

    def known_before(self, seconds: float = 0.0) -> CheckResult | None:
        """The same as far as it is there, waited for so long at most."""
        if self._before is None:
            self._before = self.record.data.baseline
        if self._before is None and (result := self.early.ready(seconds)) is not None:
            self._measured(result)
        return self._before

    def _tested(self, shop: Project) -> CheckResult:
        """Run the tests of a project that another thread has opened; what is told belongs to the thread of the run."""
        # The interpreters are those of the verifier that looks at the change.
        return replace(self.verifier, shop=shop, listen=lambda verdict: None).tests()

    def _measured(self, result: CheckResult) -> CheckResult:
        self._before = result
        self.record.keep(replace(self.record.data, baseline=shortened(result)))
        self.record.note("baseline", {"standing": result.standing, "counts": counts_json(result.counts)})
        return result

    def now(self) -> Work:
        """`Conflicted` where the user has changed the same place meanwhile."""
        self.restore()
        if not self.desk.bench.is_open:
            return Work(changes=EMPTY)
        captured, kept = self._captured()
        changes, spare = self.shop.rebased(captured) if captured else EMPTY, _spare(kept)
        if spare:
            self.record.keep_work(WorkName.SPARE, spare)
        return Work(changes=changes, held=kept, spare=spare)

    def verify(self, changes: ChangeSet) -> Verification:
        """On a fresh bench that holds nothing but these changes."""
        # Before anything is loaded for it.
        raise_if_stopped(self.shop.stop)
        ground = self._ground()
        if self.record.data.ground not in ("", ground):
            # Somebody changed files since: what was measured without the change is of another workspace.
            self._measured(self.verifier.tests())
        if self.known_before() is None:
            self.verifier.listen(CheckBegun("the tests without the change"))
        checked = self.verifier.evidence(changes, self.before())
        self.record.keep(replace(self.record.data, ground=ground))
        return checked

    def has_moved(self) -> bool:
        """Whether a file of the workspace was changed since the work was verified."""
        return self.record.data.ground not in ("", self._ground())

    def _ground(self) -> str:
        return hashlib.sha256(repr(source_files(self.shop).stamps()).encode()).hexdigest()

    def adopt(self, changes: ChangeSet) -> None:
        """Put a change set onto the bench."""
        known = self.record.work(WorkName.BENCH)
        if known is None or not known.paths >= changes.paths:
            self.desk.bench.bench.apply(changes, self.shop.store.blobs)
            self.record.keep_work(WorkName.BENCH, self.standing())

    def merge(self, changes: ChangeSet, ground: ChangeSet) -> None:
        """Put onto the bench what another bench, which began with `ground`, has made of it; all of it or nothing."""
        made, blobs = ground.inverted().then(changes), self.shop.store.blobs
        if not made:
            return
        from pawl.core.merge import rebase

        result = rebase(made, ground.inverted().then(self.standing()), blobs)
        if result.conflicts:
            where = "; ".join(f"{one.path}: {one.reason}" for one in result.conflicts)
            raise Conflicted(where, result.conflicts)
        self.desk.bench.bench.apply(result.changes, blobs)

    def clear(self) -> None:
        """Throw away what stands on the bench."""
        self.desk.bench.close()
        self.record.keep_work(WorkName.BENCH, EMPTY)

    def settle(self, task: int) -> None:
        """The task is verified: a checkpoint holds the bench as it stands, which is what the next one falls back to."""
        data, changes = self.record.data, self.record.work(WorkName.SHOWN) or EMPTY
        if self.desk.bench.is_open:
            self.record.keep_work(WorkName.BENCH, self.standing())
        known = self.checkpoints()
        if not known or known[0].changes.digest != changes.digest:
            what = data.plan[task - 1].what[:LONGEST_WHAT] if data.plan else ""
            tests = None if data.after is None else counts_json(data.after)
            checks = {step: standing for step, standing, _ in data.verdicts}
            self.shop.run_checkpoint(
                changes,
                progress={"task": task, "of": len(data.plan), "what": what},
                verification={"verdict": data.verdict, "digest": data.verified, "checks": checks, "tests": tests},
            )
        self.record.note("task verified", {"task": task})

    @property
    def settled(self) -> ChangeSet:
        """The changes of the newest checkpoint of the run."""
        known = self.checkpoints()
        return known[0].changes if known else EMPTY

    def roll_back(self, *, accepted: bool = False) -> Checkpoint | None:
        """Fall back to the newest checkpoint of the run that still fits the workspace, as far as its policy allows;
        with `accepted`, to one that needs no person's yes.

        Its changes are what stands on the bench then; None where there is nothing to fall back to.
        """
        for number, one in enumerate(self.checkpoints()):
            if not one.policy.automatic_on_error or number >= one.policy.depth:
                break
            if accepted and one.verification["verdict"] == Verdict.UNVERIFIED:
                continue
            with suppress(Conflicted):
                changes = self.shop.rebased(one.changes)
                self.clear()
                self.adopt(changes)
                self.record.note("rolled back", {"checkpoint": one.id, "name": one.name})
                return replace(one, changes=changes)
        return None

    def checkpoints(self) -> list[Checkpoint]:
        """Those of the run, newest first."""
        return [one for one in self.shop.checkpoints() if one.run == self.record.run]

    def breaches(self, changes: ChangeSet) -> tuple[str, ...]:
        """Limits of the guardrails that the changes go over, so that the user is asked."""
        rows = summary(changes, self.shop.store.blobs)
        files = [one for one in rows if not one.binary and one.kind is not NodeKind.DIRECTORY]
        touched = [Touched(path=one.path, changed_lines=one.added + one.removed) for one in files]
        leaks = tuple(
            f"{change.path!r} would hold the value of one of your variables that is a secret"
            for change in changes
            if self._holds_known(change.after) and not self._holds_known(change.before)
        )
        asked = self.shop.asked_about(changes)
        return (*(breach.message for breach in self.shop.guardrails.check(touched)), *asked, *leaks)

    def _holds_known(self, node: Node | None) -> bool:
        text = content(node, self.shop.store.blobs).decode("utf-8", "surrogateescape")
        return without_known(text) != text

    def select(self, changes: ChangeSet, hunks: Sequence[int]) -> ChangeSet:
        return select(changes, chosen_hunks(self.shop, changes, hunks), self.shop.store.blobs)

    def stale(self, changes: ChangeSet) -> tuple[str, ...]:
        """The paths that no longer stand where the changes start."""
        now = self.shop.promoter.nodes(changes.paths, changes.blobs)
        return tuple(change.path for change in changes if now[change.path] != change.before)

    def promoted(self, changes: ChangeSet) -> int | None:
        """The entry by which this run has already promoted the changes."""
        for entry in self.shop.entries(run=self.record.run):
            # What already stood there was left out of the entry.
            made = self.shop.changes(entry) if entry.state is EntryState.DONE else EMPTY
            if made and all(changes.get(change.path) == change for change in made):
                return entry.id
        return None

    def promote(self, changes: ChangeSet, title: str) -> int:
        """As it was shown, with no merge in between."""
        return self.shop.promote(self._entry(title, "", changes.digest), changes, merge=False).entry

    def commit(self, changes: ChangeSet, title: str) -> tuple[str, tuple[str, ...]]:
        """The commit of what was promoted, empty where the user wants none, and notes on it.

        `GitFailed` where it cannot be made.
        """
        settings, order = self.shop.config.settings, self.record.order
        if (order.commit or settings.commit) != "on":
            return "", ()
        from pawl.workspace.git import GitLog

        base = self.record.data.base
        if base is None:
            base = GitLog(self.shop.tree, _commit_runner(self.shop)).head()
            self.record.keep(replace(self.record.data, base=base))
        records = self.shop.store.requests.records(self.shop.workspace, run=self.record.run)
        signed = trailer(settings.attribution, records[-1].model if records else "")
        return commit_changes(self.shop, changes, f"{_subject(title)}\n{signed}", base)

    def keep(self, changes: ChangeSet, title: str, reason: str, verified: str = "") -> int:
        """Keep the changes as an entry; `verified` is the digest of what its verdict is about, if not of them alone."""
        for entry in self.shop.entries(run=self.record.run):
            if entry.state is EntryState.CAPTURED and self.shop.changes(entry).digest == changes.digest:
                return entry.id
        return self.shop.keep(self._entry(title, reason, verified or changes.digest), changes)

    def _entry(self, title: str, reason: str, verified: str) -> NewEntry:
        evidence = self.record.evidence(verified)
        return self.shop.new_entry(EntryKind.EDIT, f"do: {_subject(title)}", reason, evidence=evidence)

    def _captured(self) -> tuple[ChangeSet, tuple[HeldBack, ...]]:
        """The changes of the bench, and those that are held back. What a rule asks about is asked with the rest. Where
        the user has changed the same file since, the record knows what it was before."""
        # With all of a bench: nothing of it is needed for the first request.
        from pawl.workspace.capture import HeldBack, HeldReason

        captured = self.desk.bench.bench.capture()
        known = self.record.work(WorkName.BENCH) or EMPTY
        asked = (one.change for one in captured.held if one.reason is HeldReason.ASKED and one.change is not None)
        changes = {change.path: change for change in (*captured.changes, *asked)}
        for conflict in captured.conflicts:
            first = known.get(conflict.path)
            if first is None:
                raise Conflicted(
                    f"{self.shop.changed_by((conflict.path,))} meanwhile, in the same place",
                    (conflict,),
                    advice="nothing was written",
                )
            if first.before != conflict.ours:
                changes[conflict.path] = Change(conflict.path, first.before, conflict.ours)
        kept = (HeldReason.PROTECTED, HeldReason.DENIED)
        dropped = (
            HeldReason.SECRET,
            HeldReason.TOO_LARGE,
            HeldReason.LEAVES_TREE,
            HeldReason.UNREADABLE,
            HeldReason.BITS,
        )
        held = [one for one in captured.held if one.reason in (*kept, *dropped)]
        gated = self.desk.gated
        for path in [one.path for one in changes.values() if gated.was_hidden and one.before and one.after]:
            # A command changed a file that it was shown empty.
            if rule := gated.refusal(path):
                held.append(HeldBack(path, HeldReason.DENIED, None, rule))
                del changes[path]
        return ChangeSet.of(changes.values()).without_empty_folders, tuple(held)

    def _checker(self, files: Files, runner: CommandRunner) -> BenchChecker:
        from pawl.checks.bench_checker import BenchChecker

        return BenchChecker(self.verifier, files, runner, self._work, partial(self.known_before, BASELINE_SECONDS))

    def _has_server(self) -> bool:
        own = self.shop.config.tables.verify.get("dev_server")
        return bool(own) or shows_dev_server(UnopenedSurface(self.shop.tree).files(self.shop.guardrails))

    def _server(self, gated: GatedFiles) -> BenchServer:
        from pawl.checks.bench_server import BenchServer

        return BenchServer(lambda: self.verifier, self._work, lambda: gated.hides)

    def _work(self) -> ChangeSet:
        with suppress(Conflicted):
            return self._captured()[0]
        return EMPTY


def is_there(shop: Project, path: str) -> bool:
    """Whether the workspace has something of that name."""
    with suppress(PawlError):
        return shop.tree.look(clean(path.rstrip("/"), root=shop.workspace)) is not None
    return False


def shortened(result: CheckResult) -> CheckResult:
    """With as many findings as the record keeps."""
    return replace(result, findings=result.findings[:MOST_FINDINGS], old=result.old[:MOST_FINDINGS])


def _subject(request: str) -> str:
    """The first line of a request, as the title of its entry and of its commit."""
    return one_line(redacted(request).strip().partition("\n")[0], LONGEST_TITLE)


def trailer(attribution: str, model: str) -> str:
    """The last line of a commit's message, as the user wants it."""
    name = f"Pawl ({model})" if model else "Pawl"
    words = {"co-authored-by": f"Co-authored-by: {name} <noreply@pawl.invalid>", "assisted-by": f"Assisted-by: {name}"}
    return f"\n{words[attribution]}\n" if attribution in words else ""


def chosen_hunks(shop: Project, changes: ChangeSet, numbers: Sequence[int]) -> list[str]:
    """The ids of hunks by their numbers, counted from 1 over the whole change set."""
    every = [hunk.id for change in changes for hunk in hunks(change, shop.store.blobs)]
    wrong = [number for number in numbers if not 1 <= number <= len(every)]
    if wrong and not every:
        raise UsageError("what is asked about has no hunks", advice="answer it as a whole: --yes, or --reject REASON")
    if wrong:
        raise UsageError(f"there is no hunk {wrong[0]}", advice=f"the hunks are 1 to {len(every)}")
    return [every[number - 1] for number in numbers]


def _opened(shop: Project, *, install: bool) -> Bench:
    """A bench on which the project's own tools can run, with its packages where they are no change of the project."""
    from pawl.checks.lsp.verdicts import readable
    from pawl.checks.packages import PackagePolicy, provide
    from pawl.workspace.benches import open_bench

    opened = open_bench(shop, extra_readonly=(*readable(), *map(str, own_folders(shop.config))))
    try:
        provide(shop, opened, PackagePolicy(install=install, only_ignored=True))
    except BaseException:
        opened.discard()
        raise
    return opened


def _spare(held: Iterable[HeldBack]) -> ChangeSet:
    return ChangeSet.of(one.change for one in held if one.change is not None)


def _commit_runner(shop: Project) -> Callable[[], Bench]:
    """Commits are made of promoted work, whatever the time is."""
    from pawl.workspace.benches import open_bench

    return partial(open_bench, replace(shop, stop=None))


def commit_changes(
    shop: Project, changes: ChangeSet, message: str, base: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """Commit promoted changes by themselves onto `base`, or onto HEAD; the commit, and notes on it."""
    from pawl.workspace.commits import Committer
    from pawl.workspace.git import GitLog

    runner = _commit_runner(shop)
    commits = Committer(
        workspace=shop.tree,
        environment=shop.config.environment,
        blobs=shop.store.blobs,
        runner=runner,
        since=GitLog(shop.tree, runner).head() if base is None else base,
    )
    return commits.commit(changes, message)
