"""From a dataclass to the JSON schema of its fields, and from JSON to the dataclass, with every mistake named."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pawl.core.errors import BadArguments
from pawl.core.typed import Reader

T = TypeVar("T")

_SCALARS: Mapping[object, tuple[str, str]] = {
    str: ("string", "text"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
}


def schema(kind: type, unsaid: frozenset[str] = frozenset()) -> dict[str, object]:
    """The JSON schema of a dataclass. Strings in a field's annotation describe it.

    Every request carries the schemas. Defaults and lower bounds are left out, and so are the fields that `kind.UNSAID`
    names, its parts' too: they are understood, and not offered.
    """
    hints = get_type_hints(kind, include_extras=True)
    unsaid |= getattr(kind, "UNSAID", frozenset())
    fields = [field for field in dataclasses.fields(kind) if field.name not in unsaid]
    required = [field.name for field in fields if _is_required(field)]
    return {
        "type": "object",
        "properties": {field.name: _of(hints[field.name], unsaid, field) for field in fields},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


class _Arguments(Reader):
    words: ClassVar[Mapping[object, str]] = {kind: word for kind, (_, word) in _SCALARS.items()}
    joint, table_word, whole = ": ", "an object", "arguments"
    unknown, missing, there_are = "no such field", "missing", "the fields are"


def decode(kind: type[T], given: object) -> T:
    """The dataclass from what a model sent; `BadArguments` names every field that is wrong, missing or unknown."""
    reader = _Arguments()
    value = reader.value(kind, given, "")
    if reader.mistakes:
        raise BadArguments("; ".join(reader.mistakes), advice="correct the arguments as the tool describes them")
    return cast("T", value)


def _of(hint: object, unsaid: frozenset[str], field: dataclasses.Field[object] | None = None) -> dict[str, object]:
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        text = " ".join(note for note in notes if isinstance(note, str))
        return _of(inner, unsaid, field) | ({"description": text} if text else {})
    if hint in _SCALARS:
        return {"type": _SCALARS[hint][0]}
    optional = _optional(hint)
    if optional is not None:
        inner = _of(optional, unsaid)
        # What may be left out need not be offered as null too; null is still understood.
        return inner if field is not None and field.default is None else {"anyOf": [inner, {"type": "null"}]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _of(get_args(hint)[0], unsaid)}
    assert isinstance(hint, type)
    if issubclass(hint, StrEnum):
        return {"type": "string", "enum": [member.value for member in hint]}
    return schema(hint, unsaid)


def _optional(hint: object) -> object | None:
    """The type that may also be None, for a union of that form."""
    if get_origin(hint) not in (Union, types.UnionType):
        return None
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
    assert len(kinds) == 1, "an input field is one type, or one type or None"
    return cast("object", kinds[0])


def _is_required(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
