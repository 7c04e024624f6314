"""Syntax of JavaScript: every file must be readable by the Node that will run it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from pawl.core.finding import Finding, Verdict
from pawl.verify.project import dependencies
from pawl.verify.steps.step import Subject, amount, failed, passed, skipped, stopped

ENDINGS = (".js", ".mjs", ".cjs")
_NOT_OURS = frozenset({"node_modules", "dist", "build", "vendor", ".next", "coverage"})
_TRANSFORMED = frozenset({"react", "react-scripts", "next", "preact", "@babel/core", "flow-bin", "solid-js"})
"""With one of these a .js file may hold what only a build can read."""
_AT_ONCE = 300


@functools.cache
def _script() -> str:
    return (resources.files("pawl.verify.steps") / "node_syntax.cjs").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    name: str = "syntax (node)"

    def run(self, subject: Subject) -> Verdict:
        paths = [path for path in subject.changed or subject.files.walk() if _is_ours(path)]
        paths = [path for path in paths if subject.files.exists(path)]
        if not paths:
            return skipped(self.name, "no JavaScript file to look at")
        loose = "loose" if _TRANSFORMED & dependencies(subject.files) else "strict"
        findings: list[Finding] = []
        unread = 0
        for start in range(0, len(paths), _AT_ONCE):
            words = ("node", "--no-warnings", "--experimental-vm-modules", "-e", _script(), "--", loose)
            completed = subject.run((*words, *paths[start : start + _AT_ONCE]))
            if completed is None:
                return skipped(self.name, "node is not installed")
            if not completed.ok:
                reason = stopped(completed) or completed.stderr.text.strip()[-300:]
                return failed(self.name, f"node gave up: {reason}")
            for path, line, column, message in _read(completed.stdout.text):
                if message:
                    findings.append(
                        Finding(tool="node", message=message, path=path, line=line, column=column, code="SyntaxError")
                    )
                else:
                    unread += 1
        note = f"; {amount(unread, 'file')} left to the build, which transforms them" if unread else ""
        if findings:
            return failed(self.name, f"{amount(len(findings), 'file')} cannot be read{note}", findings)
        if unread == len(paths):
            return skipped(self.name, "every file is transformed by the build")
        return passed(self.name, f"{amount(len(paths) - unread, 'file')} read{note}")


def _is_ours(path: str) -> bool:
    return path.endswith(ENDINGS) and _NOT_OURS.isdisjoint(path.split("/"))


def _read(output: str) -> Iterator[tuple[str, int, int, str]]:
    for line in output.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            yield said["path"], int(said["line"]), int(said["column"]), str(said["message"])
