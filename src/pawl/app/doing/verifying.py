"""Machine-run checks on benches: what the `check` tool asks for, and the verification that decides about a change."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pawl.app.environments import brought_along
from pawl.app.running import open_bench
from pawl.app.verifying.packages import Wanted, provide
from pawl.app.verifying.servers import host, readable
from pawl.app.workshop import Workshop
from pawl.core.change import EMPTY, ChangeSet, Kind, Node
from pawl.core.errors import Cancelled
from pawl.core.execution import Completed, Execution
from pawl.core.finding import Check, Finding, Severity, Standing, Verdict
from pawl.core.ports import Cancel, CommandRunner, Files
from pawl.verify.baseline import Baseline
from pawl.verify.ladder import Stop, climb
from pawl.verify.output import printed
from pawl.verify.runners import launched, shadowing
from pawl.verify.steps.step import Step, Subject
from pawl.verify.steps.suite import Tests
from pawl.workflow.evidence import Checked, counts_json, counts_of
from pawl.workflow.weakening import weakened
from pawl.workspace.bench import Bench

LAST_LINES = 40
"""Of the output of a command that the request names, when it fails."""
MOST_FINDINGS = 500


def readable_tools() -> tuple[str, ...]:
    """What a command must be able to read so that Pawl's own tools can run on a bench."""
    return readable()


def project_bench(shop: Workshop) -> Bench:
    """A bench on which the project's own tools can run, with its packages where there are any to be had."""
    opened = open_bench(shop, extra_readonly=readable_tools())
    try:
        provide(shop, opened, Wanted(only_ignored=True))
    except BaseException:
        opened.discard()
        raise
    return opened


def cheap_steps(shop: Workshop, files: Files, what: Check = Check.ALL) -> tuple[Step, ...]:
    """The steps of the project that a check stands for; what knows them is loaded when there is something to check."""
    from pawl.app.verifying.ladders import steps_for

    return steps_for(shop.config, files, what)


@dataclass(frozen=True, slots=True)
class BenchChecker:
    """Fits `ports.Checker`, for the bench that a role works on."""

    shop: Workshop
    files: Files
    runner: CommandRunner
    changed: Callable[[], Iterable[str]]

    def check(self, what: Check, *, seconds: float) -> Sequence[Verdict]:
        subject = self._subject(seconds)
        return climb(cheap_steps(self.shop, self.files, what), subject, stop=Stop.NEVER)

    def diagnose(self, paths: Sequence[str], *, seconds: float) -> Sequence[Verdict]:
        from pawl.verify.lsp.diagnosing import diagnosed, servers_for

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

    shop: Workshop
    test_command: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Those that the request names; each must succeed."""
    cancel: Cancel | None = None
    listen: Callable[[Verdict], None] = lambda verdict: None

    def tests(self, changes: ChangeSet = EMPTY) -> Verdict:
        """The tests of the workspace as it stands, or with these changes."""
        with self._bench() as bench:
            bench.apply(changes, self.shop.store.blobs)
            return climb((Tests(),), self._subject(bench, ()), stop=Stop.NEVER)[0]

    def verify(self, changes: ChangeSet, before: Verdict) -> Checked:
        with self._bench() as bench:
            bench.apply(changes, self.shop.store.blobs)
            paths = tuple(sorted(change.path for change in changes if _is_file(change.after)))
            subject = self._subject(bench, paths)
            cheap = climb(cheap_steps(self.shop, bench.files), subject, stop=Stop.NEVER) if paths else ()
            if any(verdict.standing is Standing.FAIL for verdict in cheap):
                baseline = self._baseline(changes)
                cheap = tuple(baseline.against(verdict) for verdict in cheap)
            for verdict in cheap:
                self.listen(verdict)
            whole = replace(subject, changed=())
            dear = climb((Tests(),), whole, stop=Stop.NEVER, baseline=Baseline.of([before]), on_verdict=self.listen)
            shadows = shadowing(changes, bench.files)
            asked = tuple(self._asked(command, whole) for command in self.commands)
        return Checked(
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
            subject = self._subject(bench, ())
            return subject.run(launched(subject.files, (subject.python, *words)))

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
            return Baseline.of(climb(cheap_steps(self.shop, clean.files), self._subject(clean, paths), stop=Stop.NEVER))

    def _asked(self, command: str, subject: Subject) -> Verdict:
        completed = subject.run(tuple(shlex.split(command)))
        if completed is None:
            verdict = Verdict(step=command, standing=Standing.FAIL, reason="there is no such command")
        elif completed.ok:
            verdict = Verdict(step=command, standing=Standing.PASS)
        else:
            tail = "\n".join(printed(completed).splitlines()[-LAST_LINES:])
            finding = Finding(tool=command, message=tail or "it failed without a word")
            verdict = Verdict(
                step=command, standing=Standing.FAIL, reason=f"exit code {completed.code}", findings=(finding,)
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

    def _subject(self, bench: Bench, changed: tuple[str, ...]) -> Subject:
        settings = self.shop.config.settings
        return Subject(
            files=bench.files,
            runner=_Stoppable(bench, self.cancel),
            workspace=self.shop.workspace,
            changed=changed,
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


def verdict_json(verdict: Verdict) -> dict[str, object]:
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


def verdict_of(body: object) -> Verdict | None:
    if not isinstance(body, dict):
        return None
    return Verdict(
        step=body["step"],
        standing=Standing(body["standing"]),
        reason=body["reason"],
        counts=counts_of(body["counts"]),
        findings=tuple(Finding(**row, severity=Severity.ERROR) for row in body["findings"]),
    )


def _is_file(node: Node | None) -> bool:
    return node is not None and node.kind is Kind.FILE


def _is_folder(node: Node | None) -> bool:
    return node is not None and node.kind is Kind.DIRECTORY
