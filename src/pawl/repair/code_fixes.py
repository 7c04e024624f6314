"""Asks the project's own TypeScript, on the bench, for the code fixes that the recovery map allows."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from pawl.checks.steps import Subject, stopped
from pawl.core.formats import read_json
from pawl.repair.recovery_map import RecoveryEntry

SECONDS = 60.0
MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFix:
    path: str
    line: int
    code: int
    fix: str
    why: str
    texts: Mapping[str, str] = field(default_factory=dict)
    """Of a rival: the files with it, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFixes:
    """What was mended in memory: the new texts by path, and why; or why nothing could be asked."""

    fixes: tuple[CodeFix, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    rivals: tuple[CodeFix, ...] = ()
    """Ways to mend one more diagnostic that mean different things; each stands on what was changed."""
    skipped: str = ""


@functools.cache
def _script() -> str:
    return (resources.files("pawl.repair") / "code_fixes.cjs").read_text(encoding="utf-8")


def code_fixes(subject: Subject, entries: Iterable[RecoveryEntry], editable: Sequence[str]) -> CodeFixes:
    """Each fix makes its diagnostic go away and brings nothing new, in the files that it touches."""
    rules = [
        # Named groups are written otherwise there.
        {"patterns": [one.pattern.replace("(?P<", "(?<").replace("(?i)", "") for one in entry.patterns]}
        | {"fixes": entry.fixes}
        for entry in entries
        if entry.fixes
    ]
    question = {"rules": rules, "editable": list(editable), "seconds": SECONDS, "most": MOST}
    limits = dataclasses.replace(subject.limits, seconds=SECONDS * 2)
    completed = dataclasses.replace(subject, limits=limits).run(("node", "-e", _script(), "--", json.dumps(question)))
    if completed is None:
        return CodeFixes(skipped="node is not installed")
    try:
        answer = read_json(completed.stdout.text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = completed.stderr.text.strip().splitlines()[-1:] or ["it said nothing"]
        return CodeFixes(skipped=stopped(completed) or said[0])
    if "skipped" in answer:
        return CodeFixes(skipped=answer["skipped"])
    fixes, rivals = (tuple(CodeFix(**one) for one in answer[name]) for name in ("repairs", "rivals"))
    return CodeFixes(fixes=fixes, changed=answer["changed"], rivals=rivals)
