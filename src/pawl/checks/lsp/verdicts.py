"""Language servers asked on the bench, each with its limit, and what they find as verdicts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pawl.checks.ladder import Placed
from pawl.checks.lsp.servers import LIMIT_SECONDS, Server, server, used_by
from pawl.checks.project_facts import CheckKind, Folder
from pawl.checks.steps import Subject, amount, failed, skipped, stopped
from pawl.core.diagnostic import CheckResult, Diagnostic, Severity, Status
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_json
from pawl.workspace.benches import brought_along, own_python

MOST_FILES = 50
_SEVERITIES = {1: Severity.ERROR, 2: Severity.WARNING, 3: Severity.NOTE, 4: Severity.NOTE}
_NOT_OURS = frozenset({"node_modules", ".venv", "venv", "dist", "build", "vendor", "target"})
_GRACE_SECONDS = 4.0
"""Seconds beyond the server's limit, to start the process and to say why it is skipped."""
# By the package's own folder, because the one around it may be out of sight.
_INSIDE = """
import importlib.util, sys
folder = sys.argv.pop(1)
found = importlib.util.spec_from_file_location("pawl", f"{folder}/__init__.py", submodule_search_locations=[folder])
sys.modules["pawl"] = importlib.util.module_from_spec(found)
found.loader.exec_module(sys.modules["pawl"])
import importlib
importlib.import_module(sys.argv.pop(1)).main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The interpreter that can be started on the bench, and the folder of Pawl's package."""

    python: str
    package: str


def inside(host: Host, module: str, question: str) -> tuple[str, ...]:
    """The words that run a module of Pawl's on the bench."""
    return (host.python, "-I", "-S", "-B", "-c", _INSIDE, host.package, module, question)


def answered(
    subject: Subject, host: Host, chosen: Server, question: Mapping[str, Any], seconds: float = LIMIT_SECONDS
) -> dict[str, Any]:
    """The answer of a process on the bench that starts the server and ends with it."""
    programs = subject.programs(chosen.program)
    if chosen.folder != "python":
        names = subject.node_programs(chosen.program) if chosen.folder == "node" else [chosen.program]
        programs = [(name,) for name in names]
    whole = {
        "server": chosen.name,
        "programs": programs,
        "root": subject.workspace,
        "python": subject.interpreter() if chosen.folder == "python" else "",
        "seconds": seconds,
        **question,
    }
    limits = dataclasses.replace(subject.limits, seconds=seconds + _GRACE_SECONDS)
    words = inside(host, "pawl.checks.lsp.question", json.dumps(whole))
    completed = dataclasses.replace(subject, limits=limits).run(words)
    if completed is None:
        return {"skipped": f"{host.python!r} cannot be started"}
    try:
        answer = read_json(completed.stdout.text)
    except ValueError:
        said = completed.stderr.text.strip().splitlines()[-1:] or ["it printed nothing"]
        return {"skipped": stopped(completed) or said[0]}
    return answer if isinstance(answer, dict) else {"skipped": "its answer cannot be read"}


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
    """One server's findings in the files of its languages; skipped, and said so, where it does not answer in time."""
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
    notes = [amount(len(answer["diagnostics"]), "file") + " checked"]
    if late:
        notes.append(f"no answer in time about {amount(len(late), 'file')}")
    if len(own) > MOST_FILES:
        notes.append(f"{len(own) - MOST_FILES} more left out")
    if errors:
        return failed(chosen.name, "; ".join((amount(errors, "error"), *notes)), findings)
    return CheckResult(step=chosen.name, standing=Status.PASS, reason="; ".join(notes), findings=tuple(findings))


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
    """One server's word about the changed files, or about all."""

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
    """The program that runs the client on the bench."""
    python, (_, package) = own_python()
    return Host(python=python, package=package)


def readable() -> tuple[str, ...]:
    """Folders that a bench must show so that Pawl's own tools and language server client can run there."""
    return (*brought_along().values(), *own_python()[1])


def diagnostics_steps(files: Folder, kinds: Collection[CheckKind], wanted: Collection[str]) -> tuple[Placed, ...]:
    """A step for each server that the user names, or that says what no other step says."""
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
