"""Runs in the project's own interpreter, on a bench: calls changed functions with inputs nobody wrote down.

Inputs come from the calls that the tests make, changed a little, and from annotations where the project has hypothesis.
A counterexample is an input for which the code before the change gave a value and the code with it crashes or hangs.
Standard library only; the last line of the output is JSON.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import json
import random
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

CRASHES = (
    ArithmeticError, AttributeError, LookupError, NameError, RecursionError, TypeError, UnboundLocalError,
)  # fmt: skip
MOST_RECORDED, MOST_TRIED, MOST_FOUND = 40, 400, 3
SECONDS = 1.0
PLAIN = (int, float, str, bytes, bool, type(None), list, tuple, dict, set, frozenset)


class Caught:
    """Lets foreign code raise what it likes; an exit or an interrupt goes on."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Exception)


class TookTooLong(Exception):
    """The call did not end in time."""


def main(order: dict[str, Any]) -> list[dict[str, str]]:
    sys.path[:0] = [".", "src"]
    found: list[dict[str, str]] = []
    for one in order["functions"]:
        with Caught():
            new = importlib.import_module(one["module"])
            old = types.ModuleType(f"{one['module']}_before")
            old.__dict__["__package__"] = new.__package__
            exec(compile(one["before"], one["path"], "exec"), old.__dict__)
            pair = getattr(old, one["name"]), getattr(new, one["name"])
            found += attacked(one, pair, order["tests"], one.get("inputs", []))
    return found


def attacked(one: dict[str, Any], pair: tuple[Any, Any], tests: list[str], given: list[str]) -> list[dict[str, str]]:
    calls = recorded(pair[1], tests)
    chance = random.Random(20)
    tried: set[str] = set()
    found: list[dict[str, str]] = []
    for arguments in inputs(calls, pair[1], chance, given):
        shown = ", ".join(map(repr, arguments))
        if shown in tried or len(shown) > 300:
            continue
        tried.add(shown)
        before = outcome(pair[0], arguments)
        after = outcome(pair[1], arguments)
        if before.startswith("value") and after.startswith("crash"):
            found.append({"name": one["name"], "module": one["module"], "input": shown, "error": after[6:]})
        if len(found) >= MOST_FOUND or len(tried) >= MOST_TRIED:
            break
    return found


def recorded(function: Any, tests: list[str]) -> list[tuple[Any, ...]]:
    """The arguments with which the tests call the function."""
    calls: list[tuple[Any, ...]] = []
    code = getattr(function, "__code__", None)

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code and len(calls) < MOST_RECORDED:
            names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
            values = tuple(frame.f_locals[name] for name in names)
            if all(isinstance(value, PLAIN) for value in values):
                with Caught():
                    calls.append(copy.deepcopy(values))

    with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
        import pytest

        sys.setprofile(watch)
        try:
            pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests])
        finally:
            sys.setprofile(None)
    return calls


def inputs(
    calls: list[tuple[Any, ...]], function: Any, chance: random.Random, given: list[str]
) -> Iterator[tuple[Any, ...]]:
    for text in given:
        with Caught():
            value = eval(f"({text},)", {"__builtins__": {}})
            yield value
    for _ in range(MOST_TRIED // max(1, len(calls))):
        for values in calls:
            yield tuple(changed(value, chance) if chance.random() < 0.6 else copy.deepcopy(value) for value in values)
    yield from imagined(function)


def imagined(function: Any) -> Iterator[tuple[Any, ...]]:
    """By annotations, where the project has hypothesis."""
    with Caught():
        import typing
        import warnings

        from hypothesis import strategies

        hints = typing.get_type_hints(function)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        made = [strategies.from_type(hints[name]) for name in names]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(50):
                yield tuple(strategy.example() for strategy in made)


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


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    said = "refused"  # What it raises on purpose is its own affair.
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    with Caught(), contextlib.redirect_stdout(io.StringIO()):
        try:
            function(*copy.deepcopy(arguments))
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
