"""Runs in the project's own interpreter, on a bench: calls functions with inputs nobody wrote down, or records calls.

An attack takes its inputs from the calls that the tests make, changed a little, and from annotations where the project
has hypothesis. A counterexample is an input for which the code before the change gave a value and the code with it
crashes or hangs. A recording tells which calls the tests and the examples make and what comes back, the same each time.
Standard library only; the last line of the output is JSON.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import inspect
import io
import itertools
import json
import random
import runpy
import signal
import sys
import types
from collections.abc import Iterator
from typing import Any

CRASHES = (
    ArithmeticError, AttributeError, LookupError, NameError, RecursionError, TypeError, UnboundLocalError,
)  # fmt: skip
MOST_RECORDED, MOST_TRIED, MOST_FOUND, MOST_WRITTEN = 40, 400, 3, 12
LONGEST = 300
SECONDS = 1.0
PLAIN = (int, float, str, bytes, bool, type(None), list, tuple, dict, set, frozenset)

Given = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The arguments of the constructor, none for what needs no instance, and those of the call."""


class Caught:
    """Lets foreign code raise what it likes; an interrupt goes on."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Exception | SystemExit)


class TookTooLong(Exception):
    """The call did not end in time."""


class Target:
    """A function, or a method of a class of its module, in the code as it is now."""

    def __init__(self, one: dict[str, Any], module: types.ModuleType) -> None:
        self.one = one
        self.owner, self.name = one["owner"], one["name"]
        self.module = module
        holder = getattr(module, self.owner) if self.owner else module
        found = inspect.getattr_static(holder, self.name)
        self.is_bound = isinstance(found, types.FunctionType) and bool(self.owner)
        """Whether it needs an instance."""
        plain = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        self.skipped = int(self.is_bound or isinstance(found, classmethod))
        self.function = plain if isinstance(plain, types.FunctionType) else None
        self.code = getattr(plain, "__code__", None)
        self.makes = getattr(getattr(holder, "__init__", None), "__code__", None) if self.is_bound else None
        self.calls: list[Given] = []

    @property
    def left_out(self) -> str:
        if self.function is None or self.code is None:
            return "it is no plain function"
        if inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function):
            return "it is asynchronous"
        return ""

    @property
    def label(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name

    def called(self, module: types.ModuleType, given: Given) -> Any:
        made, arguments = copy.deepcopy(given)
        holder: Any = getattr(module, self.owner) if self.owner else module
        result = getattr(holder(*made) if self.is_bound else holder, self.name)(*arguments)
        return list(itertools.islice(result, 1000)) if inspect.isgenerator(result) else result

    def shown(self, given: Given) -> str:
        made, arguments = (", ".join(map(repr, values)) for values in given)
        holder = f"{self.owner}({made})." if self.is_bound else f"{self.owner}." if self.owner else ""
        return f"{holder}{self.name}({arguments})"


def main(order: dict[str, Any]) -> dict[str, Any]:
    sys.path[:0] = [".", "src"]
    left: list[str] = []
    targets: list[Target] = []
    for one in order["functions"]:
        label = f"{one['owner']}.{one['name']}" if one["owner"] else one["name"]
        left.append(f"{label}: its module cannot be loaded")
        with Caught():
            target = Target(one, importlib.import_module(one["module"]))
            left.pop()
            targets.append(target)
    left += [f"{target.label}: {target.left_out}" for target in targets if target.left_out]
    targets = [target for target in targets if not target.left_out]
    record(targets, order["tests"], order.get("scripts", []))
    if order.get("record"):
        return {"calls": [row for target in targets for row in written(target)], "left": left}
    found: list[dict[str, str]] = []
    for target in targets:
        with Caught():
            new, left_count = attacked(target, before(target.one))
            found += new
            left += [f"{target.label}: no input for it is known"] if not left_count else []
    return {"found": found, "left": left}


def before(one: dict[str, Any]) -> types.ModuleType:
    """The module as it was before the change."""
    old = types.ModuleType(f"{one['module']}_before")
    old.__dict__["__package__"] = sys.modules[one["module"]].__package__
    sys.modules[old.__name__] = old  # Dataclasses look their module up.
    exec(compile(one["before"], one["path"], "exec"), old.__dict__)
    return old


def attacked(target: Target, old: types.ModuleType) -> tuple[list[dict[str, str]], int]:
    """The counterexamples, and how many inputs were tried."""
    chance = random.Random(20)
    tried: set[str] = set()
    found: list[dict[str, str]] = []
    for given in inputs(target, chance):
        shown = target.shown(given)
        if shown in tried or len(shown) > LONGEST:
            continue
        tried.add(shown)
        if outcome(target, old, given).startswith("value"):
            after = outcome(target, target.module, given)
            if after.startswith("crash"):
                found.append(
                    {
                        "name": target.name,
                        "module": target.one["module"],
                        "root": target.owner or target.name,
                        "call": shown,
                        "error": after[6:],
                    }
                )
        if len(found) >= MOST_FOUND or len(tried) >= MOST_TRIED:
            break
    return found, len(tried)


def record(targets: list[Target], tests: list[str], scripts: list[str]) -> None:
    """Runs the tests and the scripts once, and keeps the arguments of the calls of each target."""
    by_code = {target.code: target for target in targets}
    makers = {target.makes for target in targets if target.makes is not None}
    made: dict[int, tuple[Any, ...]] = {}
    alive: list[Any] = []

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code in makers and len(alive) < MOST_TRIED and (kept := arguments(frame, 1)) is not None:
            alive.append(frame.f_locals[code.co_varnames[0]])
            made[id(alive[-1])] = kept
        target = by_code.get(code)
        if target is None or len(target.calls) >= MOST_RECORDED:
            return
        first = frame.f_locals.get(code.co_varnames[0]) if target.is_bound and code.co_varnames else None
        constructed: tuple[Any, ...] | None = made.get(id(first)) if target.makes is not None else ()
        given = arguments(frame, target.skipped)
        if given is not None and constructed is not None:
            target.calls.append((constructed, given))

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sys.setprofile(watch)
        try:
            with Caught():
                import pytest

                pytest.main(["-q", "-p", "no:cacheprovider", *tests])
            for script in scripts:
                with Caught():
                    runpy.run_path(script, run_name="__main__")
        finally:
            sys.setprofile(None)


def arguments(frame: types.FrameType, skipped: int) -> tuple[Any, ...] | None:
    """Those of a call, as they were when it began; None where one is more than plain data."""
    names = frame.f_code.co_varnames[skipped : frame.f_code.co_argcount]
    values = tuple(frame.f_locals[name] for name in names)
    if all(isinstance(value, PLAIN) for value in values):
        with Caught():
            return copy.deepcopy(values)
    return None


def written(target: Target) -> list[dict[str, str]]:
    """The calls that give the same plain value each time, with it."""
    rows: dict[str, dict[str, str]] = {}
    for given in target.calls:
        shown = target.shown(given)
        if shown in rows or len(shown) > LONGEST or len(rows) >= MOST_WRITTEN:
            continue
        with Caught(), contextlib.redirect_stdout(io.StringIO()):
            values = [target.called(target.module, given) for _ in range(2)]
            value = repr(values[0])
            ast.parse(shown, mode="eval")
            if len(value) <= LONGEST and value == repr(values[1]) and ast.literal_eval(value) == values[0]:
                rows[shown] = {"call": shown, "value": value, "root": target.owner or target.name}
    return list(rows.values())


def inputs(target: Target, chance: random.Random) -> Iterator[Given]:
    for made, given in target.one.get("inputs", []):
        with Caught():
            yield ast.literal_eval(made), ast.literal_eval(given)
    for _ in range(MOST_TRIED // max(1, len(target.calls))):
        for call in target.calls:
            made, values = copy.deepcopy(call)
            yield made, tuple(changed(value, chance) if chance.random() < 0.6 else value for value in values)
    yield from imagined(target)


def imagined(target: Target) -> Iterator[Given]:
    """By annotations, where the project has hypothesis; an instance is one that the tests make, or a bare one."""
    with Caught():
        import typing
        import warnings

        from hypothesis import strategies

        assert target.code is not None
        hints = typing.get_type_hints(target.function)
        names = target.code.co_varnames[target.skipped : target.code.co_argcount]
        strategy = [strategies.from_type(hints[name]) for name in names]
        made = [call[0] for call in target.calls] or [()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(50):
                yield made[number % len(made)], tuple(one.example() for one in strategy)


def changed(value: Any, chance: random.Random) -> Any:
    """Another value of the same type: boundaries, empty, longer, in another order."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return chance.choice([0, 1, -1, value + 1, value - 1, -value, value * 2, 2**31])
    if isinstance(value, float):
        return chance.choice([0.0, -value, value + 0.5, 1e-9, 1e9])
    if isinstance(value, str):
        return chance.choice(["", value[::-1], value + value, value[:1], value[:-1], value.upper(), " " + value])
    if isinstance(value, list | tuple):
        items = list(value)
        others = [[], items[::-1], items + items, items[:1], items[:-1], [changed(item, chance) for item in items]]
        return type(value)(chance.choice(others))
    if isinstance(value, dict):
        inner = {key: changed(one, chance) for key, one in value.items()}
        return chance.choice([{}, dict(list(value.items())[:1]), inner])
    return type(value)()


def outcome(target: Target, module: types.ModuleType, given: Given) -> str:
    said = "refused"  # What it raises on purpose is its own affair.
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    with Caught(), contextlib.redirect_stdout(io.StringIO()):
        try:
            target.called(module, given)
            said = "value"
        except CRASHES as error:
            said = f"crash {type(error).__name__}: {error}"
        except TookTooLong:
            said = f"crash no end within {SECONDS:g} s"
    signal.setitimer(signal.ITIMER_REAL, 0)
    return said


def _late(*_: object) -> None:
    raise TookTooLong


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _late)
    with open(sys.argv[1], encoding="utf-8") as file:
        wanted = json.load(file)
    sys.stdout.write("\n" + json.dumps(main(wanted)) + "\n")
