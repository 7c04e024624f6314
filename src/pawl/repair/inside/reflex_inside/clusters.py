"""Which failing tests belong together: several bugs are mended one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from reflex_inside.baseline import Baseline
from reflex_inside.program import Program
from reflex_inside.trace import Observed


def clusters(program: Program, baseline: Baseline, observed: Observed) -> list[list[int]]:
    """The failing tests in groups that share no suspicious function, the largest first.

    A function that more passing than failing tests run joins nobody: it is common ground. A test of which no trace
    tells what it ran (one that hangs, say) joins the largest group.
    """
    ran = {index: _functions(program, observed, index) for index in (*baseline.failing, *baseline.passing)}
    failed = _counted([ran[index] for index in baseline.failing])
    passed = _counted([ran[index] for index in baseline.passing])
    groups: list[tuple[set[int], list[int]]] = []
    untold = [index for index in baseline.failing if not ran[index]]
    for index in baseline.failing:
        if not ran[index]:
            continue
        origin = _origin(program, baseline, index)
        telling = {function for function in ran[index] if failed[function] >= passed.get(function, 0)} or ran[index]
        # Two tests that broke at the same line broke for the same reason, whoever else runs it.
        telling = telling | ({origin} if origin is not None else set())
        joined = [group for group in groups if not group[0].isdisjoint(telling)]
        functions = telling.union(*(group[0] for group in joined))
        tests = [test for group in joined for test in group[1]] + [index]
        groups = [group for group in groups if group not in joined] + [(functions, tests)]
    ordered = sorted((sorted(tests) for _, tests in groups), key=lambda tests: (-len(tests), tests))
    if not ordered:
        return [untold]
    return [sorted(ordered[0] + untold), *ordered[1:]]


def _origin(program: Program, baseline: Baseline, index: int) -> int | None:
    """The function of the program in which the test's exception was raised."""
    frames = [frame for frame in baseline.outcomes[index].frames if frame[0] in program.sources]
    function = program.function_at(*frames[-1]) if frames else None
    return function.index if function is not None else None


def _functions(program: Program, observed: Observed, index: int) -> set[int]:
    lines = observed.covered.get(index, frozenset())
    return {
        function.index
        for function in program.functions
        if any((function.path, line) in lines for line in range(function.node.body[0].lineno, function.last_line + 1))
    }


def _counted(sets: Sequence[set[int]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for functions in sets:
        for function in functions:
            counts[function] = counts.get(function, 0) + 1
    return counts
