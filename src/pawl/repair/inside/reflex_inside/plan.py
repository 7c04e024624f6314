"""What a search is to be judged by, and what the failing tests say in words."""

from __future__ import annotations

import ast
import inspect
import json
import os
import statistics
import textwrap
from dataclasses import dataclass, fields
from typing import Any

from reflex_inside.judge import Plan
from reflex_inside.limits import Caught
from reflex_inside.program import Program
from reflex_inside.suite import Baseline, Suite
from reflex_inside.templates.diagnostics import Diagnosis
from reflex_inside.trace import Observed, Suspicion

SHORTEST_LIMIT = 0.03


def make_plan(program: Program, suite: Suite, baseline: Baseline, observed: Observed, suspicion: Suspicion) -> Plan:
    seconds = {index: outcome.seconds for index, outcome in baseline.outcomes.items()}
    failing = sorted(baseline.failing, key=lambda index: (baseline.outcomes[index].timed_out, seconds[index]))
    passing: dict[int, list[int]] = {}
    # A test that depends on what ran before it cannot judge out of turn. Where it stands far from all that fail, the
    # whole suite hears it at the end; near them, every judgement runs the suite in its own order.
    near = {suite.cases[index].path for index in baseline.failing}
    isolated = any(suite.cases[index].path in near for index in baseline.ordered)
    steady = [index for index in baseline.passing if isolated or index not in baseline.ordered]
    lines_of = {index: observed.covered.get(index, frozenset()) for index in steady}
    for function in (program.functions[index] for index in suspicion.functions):
        places = {(function.path, line) for line in range(function.node.body[0].lineno, function.last_line + 1)}
        running = [index for index, lines in lines_of.items() if not places.isdisjoint(lines)]
        passing[function.index] = sorted(running, key=lambda index: baseline.outcomes[index].wall)
    passing[-1] = sorted(steady, key=lambda index: baseline.outcomes[index].wall)
    usual = statistics.median([seconds[index] for index in baseline.passing] or [0.0])
    limit = max(SHORTEST_LIMIT, min(5 * usual, 2.0))
    return Plan(failing, passing, seconds, limit, isolated=isolated, steady=frozenset(baseline.passing))


def diagnoses_of(baseline: Baseline) -> list[Diagnosis]:
    found = [Diagnosis(baseline.outcomes[index].kind, baseline.outcomes[index].message) for index in baseline.failing]
    return list(dict.fromkeys(found))


def strings_of(suite: Suite, failing: list[int]) -> list[str]:
    """Short strings that the failing tests mention."""
    found: dict[str, None] = {}
    for index in failing[:20]:
        function = suite.cases[index].function
        with Caught():
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 30:
                    found[node.value] = None
    return list(found)


@dataclass(frozen=True, kw_only=True)
class Request:
    root: str
    targets: tuple[str, ...] = ()
    """Files that may be edited, relative to the root; empty means every source that the tests import."""
    tests: tuple[str, ...] = ()
    """Words for pytest after its options: files, folders, ids; also options of the workspace's own."""
    seconds: float = 60.0
    workers: int = 2
    memory: int = 3 << 30
    seed: int = 0
    framework: str = "pytest"
    paths: tuple[str, ...] = ()
    """Folders put on the import path, relative to the root."""
    mend: tuple[str, ...] = ()
    """The failing tests to be mended, by their ids; other failures are left alone. Empty means all of them."""

    @classmethod
    def parse(cls, text: str) -> Request:
        given = json.loads(text)
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
        }
        return cls(**{name: value for name, value in values.items() if name in known})


class Wire:
    """Writes events to a descriptor of its own, so that what tests print cannot mix with them."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, event: str, /, **values: Any) -> None:
        line = json.dumps({"event": event, **values}, separators=(",", ":")) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self.descriptor, data) :]
