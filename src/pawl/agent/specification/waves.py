"""Waves of tasks: which run side by side, and in which order. A pure function of the tasks and the import graph.

A task waits for those that it names, for the group before its own, and without `[P]` for every task above it. Of two
tasks that touch the same file, or of which one touches what the other's files import, the later waits for the earlier;
one that names no file runs alone.
"""

from __future__ import annotations

import functools
import heapq
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from pawl.agent.specification.task_list import SpecTask, TaskList
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass

TOKENS_PER_TASK = 20_000
"""For reading around, answering and correcting, whatever the task."""
TIMES_READ = 4
"""How often the files of a task are sent."""
PLAN = "execution-plan.md"
_WAVE = re.compile(r"^## Wave (?P<number>\d+)\b")
_LISTED = re.compile(r"^- (?P<id>T\d+)\b")
_ESTIMATE = re.compile(r"\bEstimate: (?P<tokens>\d[\d,]*) tokens")
_DIGEST = re.compile(r"^<!-- tasks: (?P<digest>[0-9a-f]{64}) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    task: SpecTask
    wave: int
    because: str = ""
    """Why it is not in an earlier wave."""
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPlan:
    tasks: tuple[PlannedTask, ...]

    @property
    def waves(self) -> tuple[tuple[PlannedTask, ...], ...]:
        found: dict[int, list[PlannedTask]] = defaultdict(list)
        for one in self.tasks:
            found[one.wave].append(one)
        return tuple(tuple(found[number]) for number in sorted(found))

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.tasks)


def planned(
    tasks: Sequence[SpecTask], importers: Mapping[str, Iterable[str]], size: Callable[[str], int] = lambda path: 0
) -> ExecutionPlan:
    """The tasks in waves; `importers` says for each file which import it, `size` how many bytes it has."""
    clashes = _clashes(tasks, importers)
    needs = _needs(tasks)
    wave: dict[int, int] = {}
    made: list[PlannedTask] = []
    for at in _in_order(tasks, needs):
        waits = [(wave[one], -one, why) for one, why in needs[at].items()]
        waits += [(wave[one], -one, why) for one in wave if (why := clashes(one, at))]
        last, other, why = max(waits, default=(0, 0, ""))
        wave[at] = last + 1
        because = f"{tasks[-other].id}: {why}" if why else ""
        tokens = TOKENS_PER_TASK + TIMES_READ * sum(size(path) for path in tasks[at].touches) // 4
        made.append(PlannedTask(task=tasks[at], wave=wave[at], because=because, tokens=tokens))
    place = {one.id: number for number, one in enumerate(tasks)}
    return ExecutionPlan(tasks=tuple(sorted(made, key=lambda one: (one.wave, place[one.task.id]))))


def _needs(tasks: Sequence[SpecTask]) -> list[dict[int, str]]:
    """For each task those that it waits for, with the reason."""
    place = {one.id: number for number, one in enumerate(tasks)}
    found: list[dict[int, str]] = []
    before: list[int] = []
    """Those that ran side by side just above the present ones, which are `beside`."""
    beside: list[int] = []
    gate = ""
    for at, task in enumerate(tasks):
        last = tasks[at - 1] if at else task
        if task.group != last.group or not (task.beside and last.beside):
            gate = "the phase before" if task.group != last.group else "in order, without [P]"
            before, beside = beside, []
        beside.append(at)
        found.append(dict.fromkeys(before, gate) | {place[one]: "depends on it" for one in task.after})
    return found


def _in_order(tasks: Sequence[SpecTask], needs: Sequence[Mapping[int, str]]) -> list[int]:
    """Each task after those that it waits for, else as they are listed; `UsageError` for a cycle."""
    followers: dict[int, list[int]] = defaultdict(list)
    for at, some in enumerate(needs):
        for one in some:
            followers[one].append(at)
    left = [len(some) for some in needs]
    ready = [at for at, number in enumerate(left) if not number]
    order: list[int] = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for one in followers[at]:
            left[one] -= 1
            if not left[one]:
                heapq.heappush(ready, one)
    if len(order) < len(tasks):
        names = " → ".join(tasks[at].id for at in _cycle(needs, {at for at, number in enumerate(left) if number}))
        raise UsageError(
            f"the tasks wait for each other: {names}",
            advice="a task waits for those above it; correct 'depends on' or their order in tasks.md",
        )
    return order


def _cycle(needs: Sequence[Mapping[int, str]], left: set[int]) -> list[int]:
    way = [min(left)]
    while True:
        following = next(one for one in sorted(needs[way[-1]], reverse=True) if one in left)
        if following in way:
            return [*way[way.index(following) :], following]
        way.append(following)


def _clashes(tasks: Sequence[SpecTask], importers: Mapping[str, Iterable[str]]) -> Callable[[int, int], str]:
    """Why two tasks do not run side by side; empty where they may."""
    touched = [one.touches for one in tasks]
    folders = [frozenset(one for one in some if one.endswith("/")) for some in touched]
    # A file that nothing imports may import what another task changes.
    files = importers.keys() | {path for some in importers.values() for path in some} if any(folders) else ()
    own = [
        some | {path for path in files if above and path.startswith(tuple(above))}
        for some, above in zip(touched, folders, strict=True)
    ]
    reached = _reached(own, importers)
    hit = [functools.reduce(operator.or_, (reached.get(path, 0) for path in some), 0) for some in own]

    def why(first: int, second: int) -> str:
        one, two = touched[first], touched[second]
        if tasks[first].red != tasks[second].red:
            return "tests that are to fail first have a wave of their own"
        if not one or not two:
            return "no file is named, so that nothing may run beside it"
        shared = one & two
        shared |= {path for path in one if path.startswith(tuple(folders[second]))}
        shared |= {path for path in two if path.startswith(tuple(folders[first]))}
        if shared:
            return f"both touch {min(shared)}"
        if hit[second] >> first & 1:
            return "it imports what that one changes"
        return "that one imports what it changes" if hit[first] >> second & 1 else ""

    return why


def _reached(own: Sequence[frozenset[str]], importers: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """For each file the tasks, as bits, that touch it or something that it imports, however far."""
    marks: dict[str, int] = defaultdict(int)
    for at, some in enumerate(own):
        for path in some:
            marks[path] |= 1 << at
    waiting = list(marks)
    while waiting:
        path = waiting.pop()
        mark = marks[path]
        for one in importers.get(path, ()):
            if marks[one] | mark != marks[one]:
                marks[one] |= mark
                waiting.append(one)
    return marks


def as_markdown(plan: ExecutionPlan, tasks: TaskList, name: str) -> str:
    """The plan as a file that people read and edit, and that `execute` follows."""
    waves = plan.waves
    lines = [
        f"# Execution plan: {name}",
        "",
        f"<!-- tasks: {tasks.digest} -->",
        "Made from tasks.md by `pawl spec orchestrate`, and followed by `pawl spec execute`: move a task into a later",
        "wave if you like. Change the tasks themselves in tasks.md, then make the plan again.",
        "",
        f"{len(plan.tasks)} tasks in {len(waves)} waves, at most {max(map(len, waves))} side by side. "
        f"Estimate: {plan.tokens:,} tokens",
        f"({TOKENS_PER_TASK:,} a task, and {TIMES_READ} times its files).",
    ]
    for number, wave in enumerate(waves, 1):
        phases = ", ".join(dict.fromkeys(one.task.phase for one in wave if one.task.phase))
        lines += ["", f"## Wave {number}" + (f" ({phases})" if phases else ""), ""]
        lines += [_line(one) for one in wave]
        lines += ["", f"Checkpoint: `{checkpoint(number)}`, about {sum(one.tokens for one in wave):,} tokens."]
    return "\n".join((*lines, ""))


def read_estimate(text: str) -> int:
    """The tokens that the plan says."""
    found = _ESTIMATE.search(text)
    return int(found["tokens"].replace(",", "")) if found else 0


def checkpoint(number: int) -> str:
    return f"[CHECKPOINT] Wave {number} Complete"


def _line(one: PlannedTask) -> str:
    task = one.task
    parts = [f"- {task.id} {task.what}"]
    parts += [f"files: {', '.join(sorted(task.touches))}"] * bool(task.touches)
    parts += [f"proof: {', '.join(task.proof)}"] * bool(task.proof)
    parts += ["its tests fail until a later wave"] * task.red
    parts += [f"after {one.because}"] * bool(one.because)
    return "; ".join(parts)


def read_waves(text: str, tasks: TaskList) -> tuple[tuple[SpecTask, ...], ...]:
    """The waves of a plan as it stands; `UsageError` where it does not fit the tasks."""
    advice = "make it again with 'pawl spec orchestrate'"
    digest = _DIGEST.search(text)
    if digest is None or digest["digest"] != tasks.digest:
        raise UsageError(f"{PLAN} does not match tasks.md as it is now", advice=advice)
    waves: dict[int, list[SpecTask]] = {}
    number = 0
    for line in text.splitlines():
        if head := _WAVE.match(line):
            number = int(head["number"])
            waves.setdefault(number, [])
        elif number and (listed := _LISTED.match(line)):
            waves[number].append(tasks.task(listed["id"]))
    wave = {one.id: at for at, some in waves.items() for one in some}
    listed_tasks = [one.id for some in waves.values() for one in some]
    wrong = sorted({one.id for one in tasks.tasks} ^ set(listed_tasks)) or sorted(
        one for one in wave if listed_tasks.count(one) > 1
    )
    if wrong:
        raise UsageError(f"{PLAN} does not have each task once: {', '.join(wrong[:5])}", advice=advice)
    early = [one for one in tasks.tasks for other in one.after if wave[other] >= wave[one.id]]
    if early:
        raise UsageError(f"{PLAN} has {early[0].id} before what it depends on", advice=advice)
    if sorted(waves) != list(range(1, len(waves) + 1)):
        raise UsageError(f"{PLAN} does not count its waves from 1", advice=advice)
    return tuple(tuple(waves[at]) for at in sorted(waves))
