"""Whether a patched program does what the reference does, judged on random inputs in a process of its own."""

from __future__ import annotations

import copy
import itertools
import json
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from repair_inputs import QUIXBUGS, graph_arguments, mutated

INPUTS = 350
SEEDS = 60
ENOUGH_SECONDS = 15.0


class TimeUp(BaseException):
    pass


def ring(number: int, frame: object) -> None:
    raise TimeUp


def outcome(function: Any, arguments: tuple[Any, ...], seconds: float) -> tuple[Any, ...]:
    """What a call ends with; a generator counts as the list it gives."""
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, 0.05)
        try:
            value = function(*arguments)
            if hasattr(value, "__next__"):
                value = list(itertools.islice(value, 2000))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TimeUp:
        return ("time",)
    except Exception as error:  # noqa: BLE001
        return ("raised", type(error).__name__)
    return ("value", value)


def same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    if first[0] == second[0] == "value" and isinstance(first[1], float) and isinstance(second[1], (int, float)):
        return abs(first[1] - second[1]) <= 1e-6 * max(1.0, abs(first[1])) or first[1] == second[1]
    return bool(first == second)


def load(source: str, name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), names)
    return names


def plain(name: str, ended: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outcome with node objects replaced by their values and free orders sorted."""
    if ended[0] != "value":
        return ended
    value = ended[1]
    if name == "reverse_linked_list":
        values = []
        while value is not None and len(values) < 50:
            values.append(value.value)
            value = value.successor
        return ("value", values)
    if name == "topological_ordering":
        return ("value", [node.value for node in value])
    if name in {"powerset", "get_factors"} and isinstance(value, list):
        return ("value", sorted(map(str, value)))
    return ended


def differences_quixbugs(data: Path, name: str, patched: str) -> dict[str, Any]:
    sys.path.insert(0, str(data / "python_programs"))
    from node import Node  # type: ignore[import-not-found]

    reference = load((data / "correct_python_programs" / f"{name}.py").read_text(), name)[name]
    function = load(patched, name)[name]
    compared = wrong = 0
    example = ""
    for number in range(INPUTS):
        if time.process_time() > ENOUGH_SECONDS:
            break
        pair = []
        for _ in range(2):
            rng = random.Random(1000 + number)
            pair.append(QUIXBUGS[name](rng) if name in QUIXBUGS else graph_arguments(name, rng, Node))
        shown = repr(pair[0])[:100]
        expected = plain(name, outcome(reference, pair[0], 0.5))
        if expected[0] != "value":
            continue
        compared += 1
        actual = plain(name, outcome(function, pair[1], 2.0))
        if name == "sqrt":
            goal, tolerance = pair[1]
            fits = actual[0] == "value" and abs(actual[1] ** 2 - goal) <= tolerance + 1e-9
        else:
            fits = same(expected, actual)
        if not fits:
            wrong += 1
            example = f"{shown}: {str(expected)[:60]} but {str(actual)[:60]}"
            if wrong > 20:
                break
    return {"compared": compared, "wrong": wrong, "example": example}


def differences_humanevalfix(row: dict[str, Any], patched: str) -> dict[str, Any]:
    source = row["prompt"].rstrip("\n") + "\n" + row["canonical_solution"].rstrip() + "\n"
    entry = row["entry_point"]
    reference, function = load(source, "reference"), load(patched, "patched")
    seeds: list[tuple[Any, ...]] = []

    def recording(*arguments: Any) -> Any:
        if len(seeds) < SEEDS:
            seeds.append(copy.deepcopy(arguments))
        return reference[entry](*arguments)

    names = load(source, "tests")
    names[entry] = recording
    exec(row["test"], names)
    rng = random.Random(7)
    compared = wrong = 0
    example = ""
    for number in range(INPUTS if seeds else 0):
        if time.process_time() > ENOUGH_SECONDS:
            break
        arguments = copy.deepcopy(seeds[number % len(seeds)])
        if number >= len(seeds):
            for _ in range(rng.randint(1, 3)):
                arguments = tuple(mutated(each, rng) if rng.random() < 0.8 else each for each in arguments)
        expected = outcome(reference[entry], copy.deepcopy(arguments), 0.3)
        if expected[0] != "value":
            continue
        compared += 1
        actual = outcome(function[entry], copy.deepcopy(arguments), 1.5)
        if not same(expected, actual):
            wrong += 1
            example = f"{str(arguments)[:100]}: {str(expected)[:60]} but {str(actual)[:60]}"
            if wrong > 20:
                break
    return {"compared": compared, "wrong": wrong, "example": example}


def judged(kind: str, data: Path, name: str, patched: str) -> dict[str, Any]:
    """The comparison, made by this file in a process of its own."""
    words = [sys.executable, __file__, kind, str(data), name]
    try:
        ended = subprocess.run(words, input=patched, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return {"compared": 0, "wrong": 1, "example": "the comparison took too long"}
    lines = ended.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else {"compared": 0, "wrong": 1, "example": ended.stderr[-200:]}


def main() -> None:
    kind, data, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    patched = sys.stdin.read()
    signal.signal(signal.SIGPROF, ring)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    if kind == "quixbugs":
        found = differences_quixbugs(data, name, patched)
    else:
        rows = [json.loads(line) for line in data.read_text().splitlines()]
        found = differences_humanevalfix(next(row for row in rows if row["task_id"] == name), patched)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
