"""Verdicts kept by the content of what decided about them, so that an unchanged step is not run twice."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pawl.core.errors import PawlError
from pawl.core.execution import Ending
from pawl.core.finding import Standing, Verdict
from pawl.verify.choosing import Placed
from pawl.verify.kinds import Kind
from pawl.verify.project import Folder
from pawl.verify.rungs import EVERYTHING, is_named
from pawl.verify.steps.step import Subject

FORM = 1
"""Changes when steps judge otherwise than before."""
KEPT = "unchanged since it last ran"
_PASSING = (Ending.TIMED_OUT, Ending.MEMORY_LIMIT, Ending.PROCESS_LIMIT, Ending.DISK_LIMIT, Ending.CANCELLED)
"""How commands end for reasons that lie outside of the files."""


class Shelf(Protocol):
    """Where verdicts are kept."""

    def get(self, key: str) -> Verdict | None: ...

    def put(self, key: str, verdict: Verdict) -> None: ...


@dataclass(slots=True)
class Keeper:
    """Answers steps from the shelf during one climb."""

    shelf: Shelf
    environment: str
    """A digest of what decides beside the project's files: tools, installed packages, ignored files."""
    contents: Mapping[str, str]
    """The project's files when the climb began, by path, as hashes."""
    kept: list[str] = field(default_factory=list)
    """The names of the steps that did not run."""
    unbuilt: list[Placed] = field(default_factory=list)
    """Builds that did not run; what comes after may need what they make."""

    def around(self, steps: Iterable[Placed]) -> tuple[Placed, ...]:
        return tuple(dataclasses.replace(one, step=_Kept(one, self)) for one in steps)

    def key(self, step: Placed, subject: Subject) -> str:
        whole = EVERYTHING in step.inputs
        files = [(path, digest) for path, digest in self.contents.items() if whole or is_named(path, step.inputs)]
        parts = [
            FORM,
            step.name,
            repr(step.step),
            self.environment,
            files,
            subject.changed,
            subject.test_command,
            [subject.limits.seconds, subject.limits.memory_bytes, subject.limits.processes],
        ]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Kept:
    """Fits `Step`."""

    placed: Placed
    keeper: Keeper

    @property
    def name(self) -> str:
        return self.placed.name

    def run(self, subject: Subject) -> Verdict:
        keeper = self.keeper
        key = keeper.key(self.placed, subject)
        found = keeper.shelf.get(key)
        if found is not None:
            keeper.kept.append(self.name)
            if self.placed.kind is Kind.BUILD and found.standing is Standing.PASS:
                keeper.unbuilt.append(self.placed)
            return dataclasses.replace(found, reason="; ".join(filter(None, (found.reason, KEPT))))
        if self.placed.kind in (Kind.SERVER, Kind.TESTS):
            while keeper.unbuilt:
                keeper.unbuilt.pop().run(subject)
        verdict = self.placed.run(subject)
        if _is_lasting(verdict):
            keeper.shelf.put(key, verdict)
        return verdict


def _is_lasting(verdict: Verdict) -> bool:
    """Whether the files decided: a missing tool, a limit or a run that broke off may be otherwise the next time."""
    if verdict.standing is Standing.SKIPPED or any(f"stopped: {one.value}" in verdict.reason for one in _PASSING):
        return False
    return all(finding.code != "incomplete" for finding in verdict.findings) and "gave up" not in verdict.reason


def contents_of(files: Folder, paths: Iterable[str] | None = None) -> dict[str, str]:
    """The hash of each file, by default of all that are not ignored; one that may not be read counts by its name."""
    found: dict[str, str] = {}
    for path in files.walk() if paths is None else paths:
        try:
            found[path] = hashlib.sha256(files.read(path)).hexdigest()
        except PawlError as error:
            found[path] = type(error).__name__
    return found
