"""What language servers find in some files, as verdicts: asked on the bench, each with its limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pawl.checks.lsp.client import LIMIT_SECONDS
from pawl.checks.lsp.host import Host, answered
from pawl.checks.lsp.servers import Server, server, used_by
from pawl.checks.project import CheckKind, Folder
from pawl.checks.steps import Subject, amount, failed, passed, skipped
from pawl.core.diagnostic import CheckResult, Diagnostic, Severity, Status
from pawl.workspace.environments import brought_along, own_python

if TYPE_CHECKING:
    from pawl.checks.choosing import Placed


MOST_FILES = 50
_SEVERITIES = {1: Severity.ERROR, 2: Severity.WARNING, 3: Severity.NOTE, 4: Severity.NOTE}
_NOT_OURS = frozenset({"node_modules", ".venv", "venv", "dist", "build", "vendor", "target"})


def servers_for(files: Folder, wanted: Collection[str] = ()) -> tuple[Server, ...]:
    """The servers to ask: those named, or those that the project uses."""
    return tuple(server(name) for name in wanted) if wanted else used_by(files)


def uncovered(files: Folder, kinds: Collection[CheckKind]) -> tuple[Server, ...]:
    """The servers that say what no step of the ladder says."""
    found = [one for one in used_by(files) if not one.covered or one.covered not in kinds]
    paths = list(files.walk())
    return tuple(one for one in found if any(one.language(path) for path in paths))


def diagnosed(
    subject: Subject, host: Host, chosen: Server, paths: Sequence[str], seconds: float = LIMIT_SECONDS
) -> CheckResult:
    """What one server finds in the files of its languages; skipped, and said so, where it does not answer in time."""
    own = [path for path in paths if chosen.language(path) and subject.files.exists(path)]
    if not own:
        return skipped(chosen.name, "no file of its languages")
    answer = answered(subject, host, chosen, {"paths": own[:MOST_FILES]}, seconds)
    if "skipped" in answer:
        return skipped(chosen.name, str(answer["skipped"]))
    late = answer["late"]
    if len(late) == len(own[:MOST_FILES]):
        return skipped(chosen.name, f"it did not answer within {seconds:g} s")
    findings = list(_findings(chosen, answer["diagnostics"]))
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    notes = [amount(len(answer["diagnostics"]), "file") + " looked at"]
    if late:
        notes.append(f"no answer in time about {amount(len(late), 'file')}")
    if len(own) > MOST_FILES:
        notes.append(f"{len(own) - MOST_FILES} more left out")
    if errors:
        return failed(chosen.name, "; ".join((amount(errors, "error"), *notes)), findings)
    verdict = passed(chosen.name, "; ".join(notes))
    return CheckResult(step=chosen.name, standing=Status.PASS, reason=verdict.reason, findings=tuple(findings))


def _findings(chosen: Server, diagnostics: Mapping[str, list[dict[str, Any]]]) -> Iterator[Diagnostic]:
    for path, found in diagnostics.items():
        for one in found:
            severity = _SEVERITIES.get(one["severity"], Severity.NOTE)
            if severity is not Severity.NOTE:
                yield Diagnostic(
                    tool=chosen.name,
                    message=one["message"],
                    path=path,
                    line=one["line"],
                    column=one["column"],
                    severity=severity,
                    code=one["code"],
                )


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Fits `Step`: one server's word about the changed files, or about all."""

    server: Server
    host: Host

    @property
    def name(self) -> str:
        return f"diagnostics ({self.server.name})"

    def run(self, subject: Subject) -> CheckResult:
        every = subject.changed or dict.fromkeys((*subject.first, *subject.files.walk()))
        paths = [path for path in every if _NOT_OURS.isdisjoint(path.split("/"))]
        verdict = diagnosed(subject, self.host, self.server, paths)
        errors = tuple(finding for finding in verdict.findings if finding.severity is Severity.ERROR)
        return CheckResult(step=self.name, standing=verdict.standing, reason=verdict.reason, findings=errors)


def host() -> Host:
    """What runs the client on the bench."""
    from pawl.checks.lsp.host import Host

    python, (_, package) = own_python()
    return Host(python=python, package=package)


def readable() -> tuple[str, ...]:
    """What a bench must show so that Pawl's own tools and its client for language servers can run there."""
    return (*brought_along().values(), *own_python()[1])


def diagnostics_steps(files: Folder, kinds: Collection[CheckKind], wanted: Collection[str]) -> tuple[Placed, ...]:
    """A step for each server that the user names, or that says what no other step says."""
    from pawl.checks.choosing import Placed
    from pawl.checks.project import CheckKind

    chosen = servers_for(files, wanted) if wanted else uncovered(files, kinds)
    endings = ("*.json", "*.toml", "*.mod", "*.sum")
    return tuple(
        Placed(
            Diagnostics(one, host()),
            CheckKind.DIAGNOSTICS,
            (*(f"*{ending}" for group in one.languages.values() for ending in group), *endings),
        )
        for one in chosen
    )
