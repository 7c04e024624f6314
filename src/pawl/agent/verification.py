"""Machine-run checks on benches: what the `check` tool asks for, and the verification that decides about a change."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pawl.agent.evidence import Verification, counts_json, counts_of
from pawl.agent.weakening import weakened
from pawl.checks.baseline import Baseline, StopPolicy, climb
from pawl.checks.lsp.diagnosing import host, readable
from pawl.checks.output import printed
from pawl.checks.packages import PackagePolicy, provide
from pawl.checks.runners import launched, shadowing
from pawl.checks.steps import CheckStep, Subject, Tests
from pawl.core.change import EMPTY, ChangeSet, Node, NodeKind
from pawl.core.diagnostic import Check, CheckResult, Diagnostic, Severity, Status
from pawl.core.errors import Cancelled
from pawl.core.execution import Completed, Execution
from pawl.core.ports import Cancel, CommandRunner, Files
from pawl.workspace.bench import Bench
from pawl.workspace.commands import open_bench
from pawl.workspace.environments import brought_along
from pawl.workspace.project import Project

LAST_LINES = 40
"""Of the output of a command that the request names, when it fails."""
MOST_FINDINGS = 500


def readable_tools() -> tuple[str, ...]:
    """What a command must be able to read so that Pawl's own tools can run on a bench."""
    return readable()


def project_bench(shop: Project) -> Bench:
    """A bench on which the project's own tools can run, with its packages where there are any to be had."""
    opened = open_bench(shop, extra_readonly=readable_tools())
    try:
        provide(shop, opened, PackagePolicy(only_ignored=True))
    except BaseException:
        opened.discard()
        raise
    return opened


def cheap_steps(shop: Project, files: Files, what: Check = Check.ALL) -> tuple[CheckStep, ...]:
    """The steps of the project that a check stands for; what knows them is loaded when there is something to check."""
    from pawl.checks.verifier import steps_for

    return steps_for(shop.config, files, what)


@dataclass(frozen=True, slots=True)
class BenchChecker:
    """Fits `ports.Checker`, for the bench that a role works on."""

    shop: Project
    files: Files
    runner: CommandRunner
    changed: Callable[[], Iterable[str]]

    def check(self, what: Check, *, seconds: float) -> Sequence[CheckResult]:
        subject = self._subject(seconds)
        return climb(cheap_steps(self.shop, self.files, what), subject, stop=StopPolicy.NEVER)

    def diagnose(self, paths: Sequence[str], *, seconds: float) -> Sequence[CheckResult]:
        from pawl.checks.lsp.diagnosing import diagnosed, servers_for

        subject = self._subject(seconds)
        asked = [one for one in servers_for(self.files) if any(one.language(path) for path in paths)]
        return [diagnosed(subject, host(), one, paths, seconds) for one in asked]

    def _subject(self, seconds: float) -> Subject:
        return Subject(
            files=self.files,
            runner=self.runner,
            workspace=self.shop.workspace,
            changed=tuple(self.changed()),
            spare=brought_along(),
            limits=self.shop.config.settings.limits(seconds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Verifies change sets, each on a bench of its own, so that nothing counts but what would be promoted."""

    shop: Project
    test_command: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Those that the request names; each must succeed."""
    cancel: Cancel | None = None
    listen: Callable[[CheckResult], None] = lambda verdict: None

    def tests(self, changes: ChangeSet = EMPTY) -> CheckResult:
        """The tests of the workspace as it stands, or with these changes."""
        with self._bench() as bench:
            bench.apply(changes, self.shop.store.blobs)
            return climb((Tests(),), self._subject(bench, (), changes), stop=StopPolicy.NEVER)[0]

    def verify(self, changes: ChangeSet, before: CheckResult) -> Verification:
        with self._bench() as bench:
            bench.apply(changes, self.shop.store.blobs)
            paths = tuple(sorted(change.path for change in changes if _is_file(change.after)))
            subject = self._subject(bench, paths, changes)
            cheap = climb(cheap_steps(self.shop, bench.files), subject, stop=StopPolicy.NEVER) if paths else ()
            if any(verdict.standing is Status.FAIL for verdict in cheap):
                baseline = self._baseline(changes)
                cheap = tuple(baseline.against(verdict) for verdict in cheap)
            for verdict in cheap:
                self.listen(verdict)
            whole = replace(subject, changed=())
            dear = climb(
                (Tests(),), whole, stop=StopPolicy.NEVER, baseline=Baseline.of([before]), on_verdict=self.listen
            )
            shadows = shadowing(changes, bench.files)
            asked = tuple(self._asked(command, whole) for command in self.commands)
        return Verification(
            digest=changes.digest,
            before=before,
            verdicts=(*cheap, *dear, *asked),
            weakened=tuple(line for change in changes for line in self._weakened(change.path, changes)),
            shadowing=shadows,
        )

    def run_python(self, changes: ChangeSet, words: Sequence[str], files: Mapping[str, bytes]) -> Completed | None:
        """Runs the workspace's interpreter on a bench with these changes and files, which is then thrown away."""
        with self._bench() as bench:
            bench.apply(changes, self.shop.store.blobs)
            for path, data in files.items():
                bench.files.write(path, data)
            subject = self._subject(bench, (), changes)
            return subject.run(launched(subject.files, (subject.python, *words), subject.added))

    def lacks_program(self) -> bool:
        """Whether the test command names a program that is nowhere where the command would look for it."""
        program = next(iter(self.test_command), "")
        # pytest is run as a module too, and what has a folder in its name may be what the run is to write.
        if not program or "/" in program or program in ("pytest", "py.test"):
            return False
        with self._bench() as bench:
            looked = ("/bin/sh", "-c", 'command -v "$1" || exit 127', "sh", program)
            return self._subject(bench, ()).run(looked) is None

    def _baseline(self, changes: ChangeSet) -> Baseline:
        """What the cheap steps say about the same files without the change."""
        paths = tuple(sorted(change.path for change in changes if _is_file(change.before)))
        if not paths:
            return Baseline()
        with self._bench() as clean:
            return Baseline.of(
                climb(cheap_steps(self.shop, clean.files), self._subject(clean, paths), stop=StopPolicy.NEVER)
            )

    def _asked(self, command: str, subject: Subject) -> CheckResult:
        completed = subject.run(tuple(shlex.split(command)))
        if completed is None:
            verdict = CheckResult(step=command, standing=Status.FAIL, reason="there is no such command")
        elif completed.ok:
            verdict = CheckResult(step=command, standing=Status.PASS)
        else:
            tail = "\n".join(printed(completed).splitlines()[-LAST_LINES:])
            finding = Diagnostic(tool=command, message=tail or "it failed without a word")
            verdict = CheckResult(
                step=command, standing=Status.FAIL, reason=f"exit code {completed.code}", findings=(finding,)
            )
        self.listen(verdict)
        return verdict

    def _weakened(self, path: str, changes: ChangeSet) -> tuple[str, ...]:
        change = changes.get(path)
        assert change is not None
        if _is_folder(change.before) or _is_folder(change.after):
            return ()
        return weakened(path, self._text(change.before), self._text(change.after))

    def _text(self, node: Node | None) -> str | None:
        if node is None or node.blob is None:
            return None
        return self.shop.store.blobs.get(node.blob).decode("utf-8", "replace")

    def _bench(self) -> Bench:
        return project_bench(self.shop)

    def _subject(self, bench: Bench, changed: tuple[str, ...], changes: ChangeSet = EMPTY) -> Subject:
        settings = self.shop.config.settings
        return Subject(
            files=bench.files,
            runner=_Stoppable(bench, self.cancel),
            workspace=self.shop.workspace,
            changed=changed,
            added=frozenset(change.path for change in changes if change.before is None),
            test_command=self.test_command,
            spare=brought_along(),
            limits=settings.limits(settings.run_seconds),
        )


@dataclass(frozen=True, slots=True)
class _Stoppable:
    """Fits `ports.CommandRunner`: the bench, until the user stops it."""

    bench: Bench
    cancel: Cancel | None

    def run(self, execution: Execution) -> Completed:
        completed = self.bench.run(execution, cancel=self.cancel)
        if self.cancel is not None and self.cancel.requested:
            raise Cancelled("stopped by the user")
        return completed


def verdict_json(verdict: CheckResult) -> dict[str, object]:
    """A verdict for the record, so that it need not be had twice."""
    rows = [
        {
            "tool": one.tool,
            "message": one.message,
            "path": one.path,
            "line": one.line,
            "code": one.code,
            "test": one.test,
        }
        for one in verdict.findings[:MOST_FINDINGS]
    ]
    return {
        "step": verdict.step,
        "standing": verdict.standing,
        "reason": verdict.reason,
        "counts": counts_json(verdict.counts),
        "findings": rows,
    }


def verdict_of(body: object) -> CheckResult | None:
    if not isinstance(body, dict):
        return None
    return CheckResult(
        step=body["step"],
        standing=Status(body["standing"]),
        reason=body["reason"],
        counts=counts_of(body["counts"]),
        findings=tuple(Diagnostic(**row, severity=Severity.ERROR) for row in body["findings"]),
    )


def _is_file(node: Node | None) -> bool:
    return node is not None and node.kind is NodeKind.FILE


def _is_folder(node: Node | None) -> bool:
    return node is not None and node.kind is NodeKind.DIRECTORY
