"""Copies of values at a moment, and fingerprints by which expressions with equal values are recognised."""

from __future__ import annotations

import copy
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from reflex_inside.caught import Caught

PLAIN = (int, float, bool, str, bytes, complex, type(None))
KEPT = (ModuleType, FunctionType, BuiltinFunctionType, type)
LARGEST = 4000
LONGEST_SHOWN = 600


class Failure:
    """Stands for the value of an expression that raises."""

    def __repr__(self) -> str:
        return "failure"


FAILURE = Failure()


def size_of(value: Any, room: int) -> int:
    """About how many parts the value has, counted until there is no more room."""
    if isinstance(value, (str, bytes)):
        return 1 + len(value) // 200
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    else:
        return 1
    total = 1
    for part in parts:
        total += size_of(part, room - total)
        if total > room:
            break
    return total


def snapshot(names: dict[str, Any]) -> dict[str, Any]:
    """The variables as they are now; what cannot be copied is left out."""
    kept: dict[str, Any] = {}
    memo: dict[int, Any] = {}
    for name, value in names.items():
        if isinstance(value, PLAIN + KEPT):
            kept[name] = value
        elif not hasattr(value, "__next__") and size_of(value, LARGEST) <= LARGEST:
            with Caught():
                kept[name] = copy.deepcopy(value, memo)
    return kept


def fingerprint(value: Any) -> Any:
    """Equal for values that a program can hardly tell apart."""
    if isinstance(value, PLAIN):
        # The last digits of a float depend on the order of the steps, which is no difference in behaviour.
        return (type(value), f"{value:.10g}") if isinstance(value, float) else (type(value), value)
    if value is FAILURE:
        return FAILURE
    shown: Any = id(value)
    with Caught():
        if isinstance(value, (set, frozenset)):
            shown = repr(sorted(value, key=repr))[:LONGEST_SHOWN]
        else:
            shown = repr(value)[:LONGEST_SHOWN]
    return (type(value), shown)


def fingerprints(values: list[Any]) -> tuple[Any, ...]:
    return tuple(fingerprint(value) for value in values)


def equal(first: Any, second: Any) -> bool:
    """Equality as an assertion would see it, with some room for floats."""
    with Caught():
        if isinstance(first, float) and isinstance(second, (int, float)):
            return bool(first == second or abs(first - second) <= 1e-9 * max(1.0, abs(first)))
        return bool(first == second)
    return False
