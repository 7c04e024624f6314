"""Reading what somebody else wrote: JSON, TOML, Python and front matter as they are, and dataclasses by the types
of their fields. Text that cannot be read is `Unreadable`; whatever does not fit a field is named with its place."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import math
import re
import tomllib
import types
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from importlib import resources
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pawl.core.errors import ConfigError
from pawl.core.lazy_dataclass import dataclass

LARGEST = 16 << 20
"""Characters or bytes of one text."""


class Unreadable(ValueError):
    """The text is not what it should be."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def read_json(text: str | bytes) -> Any:
    _check(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(error.msg, error.lineno, error.colno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(_why(error)) from error


def read_toml(text: str) -> dict[str, Any]:
    _check(text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(_why(error)) from error


@functools.cache
def data_table(package: str, name: str) -> Mapping[str, Any]:
    """A table that comes with Pawl, as a file beside the code that it belongs to."""
    return tomllib.loads((resources.files(package) / name).read_text("utf-8"))


def read_python(source: str | bytes, *, mode: str = "exec", version: tuple[int, int] | None = None) -> Any:
    """The syntax tree: a module, or an expression in the mode "eval"."""
    _check(source)
    with warnings.catch_warnings():
        # A doubtful escape sequence is a warning of that file, not of Pawl.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source, mode=mode, feature_version=version)
        except SyntaxError as error:
            raise Unreadable(f"{type(error).__name__}: {error.msg}", error.lineno or 0, error.offset or 0) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise Unreadable(_why(error)) from error


_FRONT = re.compile(r"\A---\r?\n(?P<head>.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The fields between two rows of dashes that a text begins with, one to a line, and the rest of the text."""
    front = _FRONT.match(text)
    if front is None:
        return {}, text
    lines = (line.partition(":") for line in front["head"].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}, text[front.end() :]


def _check(text: str | bytes) -> None:
    if len(text) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST:,} bytes")


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else "it is nested too deeply"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A bound of a number, as an annotation of its field."""

    value: float

    def mistake(self, given: float) -> str:
        return "" if self.value <= given < math.inf else f"must be at least {self.value:g}"


@dataclass(frozen=True, slots=True)
class Above:
    value: float

    def mistake(self, given: float) -> str:
        return "" if self.value < given < math.inf else f"must be above {self.value:g}"


@dataclass(frozen=True, slots=True)
class AtMost:
    value: float

    def mistake(self, given: float) -> str:
        return "" if given <= self.value else f"must not be above {self.value:g}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The texts that a field takes."""

    choices: tuple[str, ...]


def plain(value: object, *, sparse: bool = False) -> Any:
    """The value as JSON can hold it; a sparse one is without the fields that are empty and can be left out."""
    match value:
        case str():
            return str(value)
        case bool() | int() | float() | None:
            return value
        case Decimal():
            return str(value)
        case Mapping():
            return {str(key): plain(inner, sparse=sparse) for key, inner in value.items()}
        case list() | tuple() | frozenset():
            return [plain(inner, sparse=sparse) for inner in value]
    held = ((field, getattr(value, field.name)) for field in dataclasses.fields(cast("Any", value)))
    kept = ((field, inner) for field, inner in held if not (sparse and _can_be_left_out(field, inner)))
    return {field.name: plain(inner, sparse=sparse) for field, inner in kept}


def typed(kind: type[T], given: object) -> T:
    """The value that such JSON stands for; `ValueError` names what is wrong. Unknown names are passed over."""
    reader = _Stored()
    value = reader.value(kind, given, "")
    if reader.mistakes:
        raise ValueError("; ".join(reader.mistakes))
    return cast("T", value)


def written(kind: type[T], given: object) -> T:
    """The value that a table of a data file stands for; `ValueError` names what is wrong, unknown names included."""
    reader = Reader()
    value = reader.table(kind, given, "")
    if value is None or reader.mistakes:
        raise ValueError("; ".join(reader.mistakes))
    return value


class Reader:
    """Reads what people write. What is wrong goes into `mistakes`, and the field counts as left out."""

    words: ClassVar[Mapping[object, str]] = {
        str: "a text in quotes",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
    }
    joint, table_word, whole = " ", "a table", "the whole"
    unknown, missing, there_are = "is not a field", "is missing", "there are"

    def __init__(self, mistakes: list[str] | None = None) -> None:
        self.mistakes: list[str] = [] if mistakes is None else mistakes

    def table(self, kind: type[T], given: object, where: str, base: T | None = None) -> T | None:
        """The dataclass; what is left out, or wrong, is as in `base` or by default. None where that is not enough."""
        if not isinstance(given, Mapping):
            self.wrong(where, f"must be {self.table_word}, not {shown(given)}")
            return base
        fields: _Fields = _fields(kind)  # type: ignore[arg-type]
        self._pass(given, fields, where)
        values: dict[str, Any] = {}
        for key, (field, hint) in fields.items():
            place = f"{where}.{key}" if where else key
            if key in given:
                before = len(self.mistakes)
                value = self.value(hint, given[key], place)
                if value is not None or len(self.mistakes) == before:
                    values[field.name] = value
            elif base is None and _is_required(field):
                self.wrong(place, self.missing)
        if base is not None:
            return cast("T", dataclasses.replace(cast("Any", base), **values))
        complete = all(field.name in values or not _is_required(field) for field, _ in fields.values())
        return kind(**values) if complete else None

    def value(self, hint: Any, given: object, where: str) -> Any:
        """A value by its type; None where it does not fit. Of a list or a table, the parts that fit."""
        origin, inner = get_origin(hint), get_args(hint)
        if origin is None:
            return self._plain(hint, given, where)
        if origin is Annotated:
            return self._annotated(inner, given, where)
        if origin in (tuple, frozenset):
            return self._listed(origin, inner, given, where)
        if origin is Literal:
            return self._choice(inner, given, where, " or ".join(map(repr, inner)))
        if origin is re.Pattern:
            return self._pattern(inner[0], given, where)
        if origin in (Union, types.UnionType):
            (kind,) = (one for one in inner if one is not types.NoneType)
            return None if given is None else self.value(kind, given, where)
        return self._mapping(inner[1], given, where)

    def _plain(self, hint: Any, given: object, where: str) -> Any:
        if hint in (object, Any):
            return given
        if hint is Decimal:
            return self._amount(given, where)
        if hint in self.words:
            return self._scalar(hint, given, where)
        if issubclass(hint, StrEnum):
            choices = [str(one) for one in hint if one.value]
            found = self._choice(choices, given, where, f"one of {', '.join(choices)}")
            return None if found is None else hint(found)
        return self.table(hint, given, where)

    def check(self, what: str, advice: str = "docs/settings.md has all fields") -> None:
        """One error that names all mistakes, if there are any."""
        if self.mistakes:
            raise ConfigError(f"{what!r}: " + "; ".join(self.mistakes), advice=advice)

    def wrong(self, where: str, what: str) -> None:
        self.mistakes.append(f"{where or self.whole}{self.joint}{what}")

    def _pass(self, given: Mapping[str, object], known: Iterable[str], where: str) -> None:
        """Names that no field has are mistakes too."""
        names = list(known)
        for name in given:
            if name not in names:
                meant = near(name, names) or f"; {self.there_are} {', '.join(names)}"
                self.wrong(f"{where}.{name}" if where else str(name), f"{self.unknown}{meant}")

    def _annotated(self, inner: tuple[Any, ...], given: object, where: str) -> Any:
        hint, *notes = inner
        for note in notes:
            if isinstance(note, OneOf):
                return self._choice(note.choices, given, where, f"one of {', '.join(note.choices)}")
        before = len(self.mistakes)
        value = self.value(hint, given, where)
        bounds = [note for note in notes if isinstance(note, AtLeast | Above | AtMost)]
        if isinstance(value, int | float) and len(self.mistakes) == before:
            wrong = next(filter(None, (bound.mistake(value) for bound in bounds)), "")
            if wrong:
                self.wrong(where, f"{wrong}, not {value!r}")
                return None
        return value

    def _scalar(self, hint: type, given: object, where: str) -> object:
        if hint is float and type(given) is int:
            return float(given)
        if not isinstance(given, hint) or (isinstance(given, bool) and hint is not bool):
            self.wrong(where, f"must be {self.words[hint]}, not {shown(given)}")
            return None
        return given

    def _amount(self, given: object, where: str) -> Decimal | None:
        """Exact: a number as it is written, or a text of one."""
        try:
            amount = Decimal("NaN") if isinstance(given, bool) else Decimal(str(given))
        except InvalidOperation:
            amount = Decimal("NaN")
        if amount.is_finite() and amount >= 0:
            return amount
        self.wrong(where, f"must be an amount from 0 on, not {shown(given)}")
        return None

    def _pattern(self, kind: type, given: object, where: str) -> re.Pattern[Any] | None:
        """Of several lines; of bytes where the field says so."""
        try:
            text = self._scalar(str, given, where)
            return re.compile(text if kind is str else text.encode(), re.MULTILINE) if isinstance(text, str) else None
        except re.error as error:
            self.wrong(where, f"is not a regular expression: {error}")
            return None

    def _choice(self, choices: Sequence[str], given: object, where: str, words: str) -> object:
        if given in choices:
            return given
        meant = near(given, choices) if isinstance(given, str) else ""
        self.wrong(where, f"must be {words}, not {shown(given)}{meant}")
        return None

    def _listed(self, origin: Any, inner: tuple[Any, ...], given: object, where: str) -> Any:
        size = len(inner) if origin is tuple and inner[-1] is not Ellipsis else None
        if not isinstance(given, list | tuple) or (size is not None and len(given) != size):
            self.wrong(where, f"must be a list, not {shown(given)}")
            return None
        kinds = inner if size is not None else inner[:1] * len(given)
        before = len(self.mistakes)
        found = [self.value(kinds[at], one, f"{where}[{at}]") for at, one in enumerate(given)]
        if len(self.mistakes) > before:
            return None if size is not None else origin(one for one in found if one is not None)
        return origin(found)

    def _mapping(self, kind: Any, given: object, where: str) -> Mapping[str, object] | None:
        if not isinstance(given, Mapping):
            self.wrong(where, f"must be {self.table_word}, not {shown(given)}")
            return None
        before = len(self.mistakes)
        found = {str(name): self.value(kind, one, f"{where}.{name}") for name, one in given.items()}
        if len(self.mistakes) > before:
            return {name: one for name, one in found.items() if one is not None}
        return found


class _Stored(Reader):
    """Reads what Pawl has written. Later versions may have more fields; a list may stand for the fields in order."""

    def _pass(self, given: Mapping[str, object], known: Iterable[str], where: str) -> None:
        pass

    def table(self, kind: type[T], given: object, where: str, base: T | None = None) -> T | None:
        fields: _Fields = _fields(kind)  # type: ignore[arg-type]
        if isinstance(given, list):
            given = dict(zip(fields, given, strict=False))
        if isinstance(given, Mapping):
            texts = {name: "" for name, (field, hint) in fields.items() if hint is str and _is_required(field)}
            given = {**texts, **given}
        return super().table(kind, given, where, base)


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that may have been meant."""
    import difflib  # Only mistakes pay for it.

    found = difflib.get_close_matches(str(word).lower(), [str(one) for one in known], 1)
    return found[0] if found else None


def near(word: object, known: Iterable[str]) -> str:
    """The end of a sentence that says what may have been meant; empty where nothing is near."""
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


_Fields = Mapping[str, tuple[dataclasses.Field[Any], Any]]


@functools.cache
def _fields(kind: type) -> _Fields:
    """The fields of a dataclass by their names in a file, with their types.

    The metadata of a field has another `key`, or `own` where no file has it.
    """
    hints = get_type_hints(kind, include_extras=True)
    known = (one for one in dataclasses.fields(kind) if not one.metadata.get("own"))
    return {str(one.metadata.get("key", one.name)): (one, hints[one.name]) for one in known}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _can_be_left_out(field: dataclasses.Field[Any], value: object) -> bool:
    """Whether the value is empty, and so is the default; an empty text always is as good as none."""
    if value == "":
        return _is_required(field) or field.default == ""
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return not value and type(value) is not int and bool(value == default)


class TableReader(Reader):
    """For tables in which None counts as left out, no number is below 0, and a text stands for a list of one, or for a
    table of its first field."""

    words: ClassVar[Mapping[object, str]] = {**Reader.words, str: "a text"}

    def table(self, kind: type[T], given: object, where: str, base: T | None = None) -> T | None:
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


def read_settings(base: T, name: str, table: Mapping[str, object]) -> T:
    """The table of that name over `base`; one error names every mistake."""
    mistakes: list[str] = []
    read = read_table(type(base), table, where=name, mistakes=mistakes, base=base)
    raise_mistakes(f"the table [{name}] is wrong", mistakes, advice=f"[{name}] takes {names_of(type(base))}")
    return read or base


def read_table(kind: type[T], given: object, *, where: str, mistakes: list[str], base: T | None = None) -> T | None:
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
