"""Tables that people write, read into dataclasses: each field by its type, every mistake gathered with its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from pawl.core.errors import ConfigError
from pawl.core.typed import Reader, shown

Read = TypeVar("Read")


class TableReader(Reader):
    """For tables in which None counts as left out, no number is below 0, and a text stands for a list of one, or for a
    table of its first field."""

    words: ClassVar[Mapping[object, str]] = {**Reader.words, str: "a text"}

    def table(self, kind: type[Read], given: object, where: str, base: Read | None = None) -> Read | None:
        if isinstance(given, Mapping):
            given = {name: value for name, value in given.items() if value is not None}
        return super().table(kind, given, where, base)

    def _plain(self, hint: Any, given: object, where: str) -> Any:
        if isinstance(given, str) and is_dataclass(hint):
            given = {fields(hint)[0].name: given}
        return super()._plain(hint, given, where)

    def _scalar(self, hint: type, given: object, where: str) -> object:
        if hint is float and isinstance(given, Decimal):
            given = float(given)
        before, value = len(self.mistakes), super()._scalar(hint, given, where)
        if isinstance(value, int | float) and len(self.mistakes) == before and not 0 <= value < math.inf:
            least = "at least 0" if hint is int else "a number from 0 on"
            self.wrong(where, f"must be {least}, not {shown(given)}")
            return None
        return value

    def _listed(self, origin: Any, inner: tuple[Any, ...], given: object, where: str) -> Any:
        given = [given] if isinstance(given, str) else given
        if inner[0] is not str:
            return super()._listed(origin, inner, given, where)
        if isinstance(given, list | tuple) and all(isinstance(one, str) and one for one in given):
            return origin(given)
        self.wrong(where, f"must be a list of texts, not {shown(given)}")
        return None


def read_settings(base: Read, name: str, table: Mapping[str, object]) -> Read:
    """The table of that name over `base`; one error names every mistake."""
    mistakes: list[str] = []
    read = read_table(type(base), table, where=name, mistakes=mistakes, base=base)
    raise_mistakes(f"the table [{name}] is wrong", mistakes, advice=f"[{name}] takes {names_of(type(base))}")
    return read or base


def read_table(
    kind: type[Read], given: object, *, where: str, mistakes: list[str], base: Read | None = None
) -> Read | None:
    """The table as a `kind`, over `base` where there is one; None when a required field has no value."""
    return TableReader(mistakes).table(kind, given, where, base)


def read_value(hint: Any, value: object, *, where: str, mistakes: list[str]) -> Any:
    """One value by its type; None when it does not fit."""
    return TableReader(mistakes).value(hint, value, where)


def raise_mistakes(what: str, mistakes: Sequence[str], *, advice: str) -> None:
    """One error that names them all, if there are any."""
    if mistakes:
        raise ConfigError(f"{what}: " + "; ".join(mistakes), advice=advice)


def names_of(kind: type) -> str:
    """The fields that a table of this kind takes, for advice."""
    return ", ".join(one.name for one in fields(kind) if not one.metadata.get("own"))
