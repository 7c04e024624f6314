"""Reading tables that people write: each field by its kind, every mistake gathered with its place."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from pawl.core.errors import ConfigError


class Fields:
    """One table. What is wrong goes into `mistakes`, and the field counts as left out."""

    def __init__(self, where: str, given: object, mistakes: list[str]) -> None:
        self.where = where
        self.mistakes = mistakes
        self._known: list[str] = []
        self._given: Mapping[str, object] = {}
        if isinstance(given, Mapping):
            self._given = given
        else:
            mistakes.append(f"{where} must be a table, not {_shown(given)}")

    def has(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str, default: str = "", *, choices: Sequence[str] = ()) -> str:
        value = self._of(name, str, "a text")
        if not isinstance(value, str):
            return default
        if choices and value not in choices:
            self.wrong(name, f"must be one of {', '.join(choices)}, not {value!r}{_near(value, choices)}")
            return default
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts; one text stands for a list of one."""
        value = self._any(name)
        if value is None:
            return default
        values = [value] if isinstance(value, str) else value
        if isinstance(values, list | tuple) and all(isinstance(one, str) and one for one in values):
            return tuple(values)
        self.wrong(name, f"must be a list of texts, not {_shown(value)}")
        return default

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._of(name, bool, "true or false")
        return value if isinstance(value, bool) else default

    def whole(self, name: str, *, least: int = 0) -> int | None:
        value = self._of(name, int, "a whole number")
        if not isinstance(value, int):
            return None
        if value < least:
            self.wrong(name, f"must be at least {least}, not {value}")
            return None
        return value

    def seconds(self, name: str) -> float | None:
        value = self._any(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value < math.inf:
            self.wrong(name, f"must be a number from 0 on, not {_shown(value)}")
            return None
        return float(value)

    def money(self, name: str) -> Decimal | None:
        """An amount that is exact: a number as it is written, or a text of one."""
        value = self._any(name)
        if value is None:
            return None
        try:
            amount = Decimal("NaN") if isinstance(value, bool) else Decimal(str(value))
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or amount < 0:
            self.wrong(name, f"must be an amount from 0 on, not {_shown(value)}")
            return None
        return amount

    def table(self, name: str) -> Mapping[str, object]:
        value = self._of(name, Mapping, "a table")
        return value if isinstance(value, Mapping) else {}

    def inner(self, name: str) -> Fields | None:
        """The table in this field; None when it is left out."""
        value = self._any(name)
        return None if value is None else Fields(self._place(name), value, self.mistakes)

    def any(self, name: str) -> object:
        """Whatever stands there; None when it is left out."""
        return self._any(name)

    def sequence(self, name: str) -> tuple[object, ...]:
        value = self._of(name, list, "a list")
        return tuple(value) if isinstance(value, list) else ()

    def wrong(self, name: str, what: str) -> None:
        self.mistakes.append(f"{self._place(name)} {what}")

    def close(self) -> None:
        """Names that nobody asked for are mistakes too."""
        for name in self._given:
            if name not in self._known:
                known = _near(name, self._known) or f"; there are {', '.join(sorted(set(self._known)))}"
                self.mistakes.append(f"{self._place(name)} is not a field{known}")

    def _any(self, name: str) -> object:
        self._known.append(name)
        return self._given.get(name)

    def _of(self, name: str, kind: type, words: str) -> object:
        value = self._any(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.wrong(name, f"must be {words}, not {_shown(value)}")
            return None
        return value

    def _place(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name


def raise_mistakes(what: str, mistakes: Sequence[str], *, advice: str) -> None:
    """One error that names them all, if there are any."""
    if mistakes:
        raise ConfigError(f"{what}: " + "; ".join(mistakes), advice=advice)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """What may have been meant."""
    found = difflib.get_close_matches(word.lower(), [str(one) for one in known], 1)
    return found[0] if found else None


def _near(word: str, known: Iterable[str]) -> str:
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
