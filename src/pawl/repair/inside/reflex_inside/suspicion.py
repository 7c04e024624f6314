"""Which lines the failing tests point to (Ochiai), and in which functions they lie."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field

from reflex_inside.baseline import Baseline
from reflex_inside.program import Program
from reflex_inside.trace import Line, Observed

CRASH_BONUS = 1.3
INDIRECT = 0.5


@dataclass(slots=True)
class Suspicion:
    lines: dict[Line, float]
    functions: dict[int, dict[int, float]] = field(default_factory=dict)
    """By function index: the suspicious lines of its body."""
    globals: dict[str, dict[int, float]] = field(default_factory=dict)
    """By path: lines outside functions that suspicious functions depend on."""

    def ordered_functions(self) -> list[int]:
        return sorted(self.functions, key=lambda index: -max(self.functions[index].values()))

    def top(self, count: int) -> list[tuple[Line, float]]:
        return sorted(self.lines.items(), key=lambda item: (-item[1], item[0]))[:count]


def suspect(program: Program, baseline: Baseline, observed: Observed) -> Suspicion:
    """Scores each line that a failing test runs by how much it belongs to failing tests alone."""
    failed: dict[Line, int] = {}
    passed: dict[Line, int] = {}
    failing = [index for index in baseline.failing if index in observed.covered]
    for index, covered in observed.covered.items():
        counts = failed if index in failing else passed
        for line in covered:
            counts[line] = counts.get(line, 0) + 1
    scores = {line: count / math.sqrt(len(failing) * (count + passed.get(line, 0))) for line, count in failed.items()}
    for index in failing:
        crash = next((frame for frame in reversed(baseline.outcomes[index].frames) if frame in scores), None)
        if crash is not None and baseline.outcomes[index].kind != "AssertionError":
            scores[crash] = min(1.0, scores[crash] * CRASH_BONUS)
    suspicion = Suspicion(scores)
    for function in program.functions:
        body = range(function.node.body[0].lineno, function.last_line + 1)
        lines = {line: scores[function.path, line] for line in body if (function.path, line) in scores}
        if lines:
            suspicion.functions[function.index] = lines
    _spread_to_globals(program, suspicion)
    return suspicion


def _spread_to_globals(program: Program, suspicion: Suspicion) -> None:
    """A name that suspicious lines read makes the line that defines it suspicious too, though less."""
    used: dict[str, dict[str, float]] = {}
    for index, lines in suspicion.functions.items():
        function = program.functions[index]
        names = used.setdefault(function.path, {})
        for node in ast.walk(function.node):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name is not None:
                score = lines.get(getattr(node, "lineno", 0), 0.0) * INDIRECT
                names[name] = max(names.get(name, 0.0), score)
    for path, names in used.items():
        found: dict[int, float] = {}
        for statement in _definitions(program.sources[path].tree.body):
            targets = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            score = max((names.get(name, 0.0) for name in targets), default=0.0)
            if score:
                found[statement.lineno] = score
        if found:
            suspicion.globals[path] = found


def _definitions(body: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            found.extend(_definitions(statement.body))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            found.append(statement)
    return found
