"""Values a little different from given ones."""

from __future__ import annotations

import random
from typing import Any


def mutated(value: Any, rng: random.Random) -> Any:
    """A value of the same type, near the given one; what is not understood stays as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, 0, 1, value * 2, value // 2, rng.randint(0, 20), value))
    if isinstance(value, float):
        return rng.choice((value + 1.0, value - 0.5, -value, 0.0, value * 2, round(value), value))
    if isinstance(value, str):
        return _text(value, rng)
    if isinstance(value, (list, tuple)):
        return type(value)(_items(list(value), rng)) if type(value) in {list, tuple} else value
    if isinstance(value, dict) and type(value) is dict:
        return _mapping(dict(value), rng)
    if isinstance(value, set):
        return set(_items(sorted(value, key=repr), rng))
    return value


def _text(value: str, rng: random.Random) -> str:
    place = rng.randint(0, max(0, len(value) - 1))
    letter = rng.choice(value or "ab ")
    return rng.choice(
        (
            value[:place] + value[place + 1 :],
            value[:place] + letter + value[place:],
            "".join(rng.sample(value, len(value))),
            value[::-1],
            value + value[:place],
            value.swapcase(),
            value[: place + 1],
            "",
        )
    )


def _items(items: list[Any], rng: random.Random) -> list[Any]:
    if not items:
        return items
    place = rng.randrange(len(items))
    choice = rng.randint(0, 7)
    if choice == 0:
        del items[place]
    elif choice == 1:
        items.insert(place, mutated(items[place], rng))
    elif choice == 2:
        rng.shuffle(items)
    elif choice == 3:
        items.append(rng.choice(items))
    elif choice == 4:
        items = items[: place + 1]
    elif choice == 5:
        items.reverse()
    else:
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(items))
            items[place] = mutated(items[place], rng)
    return items


def _mapping(items: dict[Any, Any], rng: random.Random) -> dict[Any, Any]:
    if not items:
        return items
    key = rng.choice(list(items))
    choice = rng.randint(0, 2)
    if choice == 0:
        del items[key]
    elif choice == 1:
        items[key] = mutated(items[key], rng)
    else:
        items[mutated(key, rng)] = items[key]
    return items
