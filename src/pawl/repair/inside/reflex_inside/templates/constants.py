"""Wrong constants: numbers, strings, flags."""

from __future__ import annotations

import ast

from reflex_inside.facts import NUMBERS, SIZED
from reflex_inside.templates.site import Proposals, Site

COMMON_INTEGERS = (0, 1, 2, -1, 3, 10, 100, 26, 32, 97, 65, 48)
COMMON_STRINGS = ("", " ", ",", ", ", "_", "-", ".", ":", "\n", "0", "1")


def constants(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, bool):
        yield from site.replace(1.5, "flipped flag", str(not value))
        yield from site.replace(3.6, "constant", "None")
        for name in site.scope:
            yield from site.replace(3.3, "constant for a variable", name)
    elif isinstance(value, int):
        yield from _integers(site, value)
    elif isinstance(value, float):
        for number in (value + 1, value - 1, -value, value * 2, value / 2, value * 10, value / 10, 0.0, 1.0, 0.5):
            yield from site.replace(2.6, "wrong number", repr(number))
    elif isinstance(value, str) and len(value) < 80:
        yield from _strings(site, value)
    elif value is None:
        for other in ["[]", "0", "True", "False", "''", "{}", "-1", "1", *site.scope]:
            yield from site.replace(3.0, "constant", other)


def _integers(site: Site, value: int) -> Proposals:
    for other in (value + 1, value - 1):
        yield from site.replace(1.9 if other >= 0 else 2.5, "off by one", str(other))
    for other in dict.fromkeys((*site.facts.integers,)):
        yield from site.replace(2.7, "wrong number", str(other))
    scaled = (-value, value * 2, value // 2, value * 10, value // 10, value + 2, value - 2)
    for other in dict.fromkeys((*COMMON_INTEGERS, *scaled)):
        yield from site.replace(2.9, "wrong number", str(other))
    for name in site.scope:
        types = site.facts.type_of(name)
        if not types or types & NUMBERS:
            yield from site.replace(3.3, "constant for a variable", name)
        if types & SIZED:
            yield from site.replace(3.8, "constant for a length", f"len({name})")
    for other_text in ("None", "True", "False", "float('inf')", "-float('inf')", "0.5"):
        yield from site.replace(4.2, "constant", other_text)


def _strings(site: Site, value: str) -> Proposals:
    for other in site.facts.texts:
        yield from site.replace(2.5, "wrong string", repr(other))
    variants = (
        value[:-1], value[1:], value.strip(), value.lower(), value.upper(), value.capitalize(), value + " ",
        " " + value, value[:1], value[::-1], value.swapcase(), value.replace(" ", ""), value + value,
        *COMMON_STRINGS,
    )  # fmt: skip
    for other in dict.fromkeys(variants):
        yield from site.replace(3.1, "wrong string", repr(other))
    for other in site.facts.strings:
        yield from site.replace(3.8, "string from the tests", repr(other))
    for name in site.scope:
        types = site.facts.type_of(name)
        if not types or "str" in types:
            yield from site.replace(3.6, "constant for a variable", name)
    if 2 < len(value) <= 30:
        for position in range(len(value)):
            yield from site.replace(4.2, "string without a character", repr(value[:position] + value[position + 1 :]))
        for character in _neighbours(value):
            yield from site.replace(4.4, "string with another character", repr(value + character))


def _neighbours(value: str) -> list[str]:
    """Characters that an alphabet-like string could miss: those between its smallest and largest, and its cases."""
    letters = sorted(value)
    low, high = ord(letters[0]), ord(letters[-1])
    between = [chr(code) for code in range(max(32, low - 1), min(126, high + 1) + 1)] if high - low < 64 else []
    cases = [character.swapcase() for character in value]
    return [each for each in dict.fromkeys(between + cases) if each not in value]
