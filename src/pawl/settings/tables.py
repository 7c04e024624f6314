"""Tables that people write, read into dataclasses: each field by its type, every mistake gathered with its place."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from types import UnionType
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_origin, get_type_hints

from pawl.core.errors import ConfigError


class DataclassInstance(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Read = TypeVar("Read", bound=DataclassInstance)
Limits = Mapping[Any, Any]
_NONE: Limits = {}


class _Wrong(Exception):
    """Why a value does not fit its field."""


def read_settings(base: Read, name: str, table: Mapping[str, object]) -> Read:
    """The table of that name over `base`; one error names every mistake."""
    mistakes: list[str] = []
    read = read_table(type(base), table, where=name, mistakes=mistakes, base=base)
    raise_mistakes(f"the table [{name}] is wrong", mistakes, advice=f"[{name}] takes {names_of(type(base))}")
    return read or base


def read_table(
    kind: type[Read], given: object, *, where: str, mistakes: list[str], base: Read | None = None
) -> Read | None:
    """The table as a `kind`, over `base` where there is one; None when a required field has no value.

    Mistakes go into `mistakes`, and the field counts as left out. The metadata of a field has the `least` whole number
    (0 unless set), the `most` and the `choices` that it takes, or `own` where no table has it.
    """
    if not isinstance(given, Mapping):
        mistakes.append(f"{where} must be a table, not {_shown(given)}")
        return base
    known = {one.name: _hints(kind)[one.name] for one in _readable(kind)}
    prefix = f"{where}." if where else ""
    values: dict[str, Any] = {}
    is_whole = True
    for one in _readable(kind):
        place, value = prefix + one.name, given.get(one.name)
        if value is not None:
            value = read_value(known[one.name], value, where=place, mistakes=mistakes, limits=one.metadata)
        if value is not None:
            values[one.name] = value
        elif base is None and one.default is MISSING and one.default_factory is MISSING:
            is_whole = False
            if given.get(one.name) is None:
                mistakes.append(f"{place} is missing")
    for name in given:
        if name not in known:
            meant = _near(name, known) or f"; there are {', '.join(sorted(known))}"
            mistakes.append(f"{prefix}{name} is not a field{meant}")
    if base is not None:
        return replace(base, **values)
    return kind(**values) if is_whole else None


def read_value(hint: Any, value: object, *, where: str, mistakes: list[str], limits: Limits = _NONE) -> Any:
    """One value by its type; None when it does not fit."""
    try:
        return _read(hint, value, where, mistakes, limits)
    except _Wrong as wrong:
        mistakes.append(f"{where} {wrong}")
        return None


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: object, place: str, mistakes: list[str], limits: Limits) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return _read(inner[0], value, place, mistakes, limits)
    if origin is tuple:
        return _listed(inner[0], value, place, mistakes)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise _Wrong(f"must be a table, not {_shown(value)}")
        if inner[1] is object:
            return value
        named = {
            name: read_value(inner[1], one, where=f"{place}.{name}", mistakes=mistakes) for name, one in value.items()
        }
        return {name: one for name, one in named.items() if one is not None}
    if is_dataclass(hint) and isinstance(hint, type):
        # A text stands for a table of its first field.
        table = {fields(hint)[0].name: value} if isinstance(value, str) else value
        return read_table(hint, table, where=place, mistakes=mistakes)
    return value if hint is object else _leaf(origin or hint, value, limits)


def _listed(hint: Any, value: object, place: str, mistakes: list[str]) -> tuple[Any, ...]:
    """One text stands for a list of one."""
    values: object = [value] if isinstance(value, str) else value
    kind = "a list of texts" if hint is str else "a list"
    if not isinstance(values, list | tuple) or (
        hint is str and not all(isinstance(one, str) and one for one in values)
    ):
        raise _Wrong(f"must be {kind}, not {_shown(value)}")
    found = (read_value(hint, one, where=f"{place}[{at}]", mistakes=mistakes) for at, one in enumerate(values))
    return tuple(one for one in found if one is not None)


def _leaf(kind: type, value: object, limits: Limits) -> object:
    if kind is bool:
        return _of(bool, value, "true or false")
    if kind is int:
        number = _of(int, value, "a whole number")
        if number < (least := limits.get("least", 0)):
            raise _Wrong(f"must be at least {least}, not {number}")
        return number
    if kind is float:
        return _number(value, limits.get("most", math.inf))
    if kind is Decimal:
        return _money(value)
    text = _of(str, value, "a text")
    if issubclass(kind, StrEnum):
        return kind(_choice([member.value for member in kind if member.value], text))
    if "choices" in limits:
        return _choice(limits["choices"], text)
    if kind is re.Pattern:
        try:
            return re.compile(text, re.MULTILINE)
        except re.error as error:
            raise _Wrong(f"is no regular expression: {error}") from None
    return text


Leaf = TypeVar("Leaf", bool, int, str)


def _of(kind: type[Leaf], value: object, words: str) -> Leaf:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _Wrong(f"must be {words}, not {_shown(value)}")
    return value


def _choice(choices: Sequence[str], text: str) -> str:
    if text not in choices:
        raise _Wrong(f"must be one of {', '.join(choices)}, not {text!r}{_near(text, choices)}")
    return text


def _number(value: object, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value < math.inf:
        raise _Wrong(f"must be a number from 0 on, not {_shown(value)}")
    if value > most:
        raise _Wrong(f"must not be above {most:g}, but is {value:g}")
    return float(value)


def _money(value: object) -> Decimal:
    """An amount that is exact: a number as it is written, or a text of one."""
    try:
        amount = Decimal("NaN") if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise _Wrong(f"must be an amount from 0 on, not {_shown(value)}")
    return amount


def raise_mistakes(what: str, mistakes: Sequence[str], *, advice: str) -> None:
    """One error that names them all, if there are any."""
    if mistakes:
        raise ConfigError(f"{what}: " + "; ".join(mistakes), advice=advice)


def names_of(kind: type[DataclassInstance]) -> str:
    """The fields that a table of this kind takes, for advice."""
    return ", ".join(one.name for one in _readable(kind))


def _readable(kind: type[DataclassInstance]) -> list[Field[Any]]:
    return [one for one in fields(kind) if not one.metadata.get("own")]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that may have been meant."""
    found = difflib.get_close_matches(word.lower(), [str(one) for one in known], 1)
    return found[0] if found else None


def _near(word: str, known: Iterable[str]) -> str:
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
