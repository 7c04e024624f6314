"""From a dataclass to the JSON schema of its fields, and from JSON to the dataclass, with every mistake named."""

from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pawl.core.errors import BadArguments

T = TypeVar("T")

_SCALARS: Mapping[object, tuple[str, str]] = {
    str: ("string", "text"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
}


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A bound of a number, as an annotation of its field."""

    value: float


def schema(kind: type) -> dict[str, object]:
    """The JSON schema of a dataclass. Strings in a field's annotation describe it."""
    hints = get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    required = [field.name for field in fields if _is_required(field)]
    return {
        "type": "object",
        "properties": {field.name: _of(hints[field.name], field) for field in fields},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def decode(kind: type[T], given: object) -> T:
    """The dataclass from what a model sent; `BadArguments` names every field that is wrong, missing or unknown."""
    mistakes: list[str] = []
    value = _decoded(kind, given, "", mistakes)
    if mistakes:
        raise BadArguments("; ".join(mistakes), advice="correct the arguments as the tool describes them")
    return cast("T", value)


def _of(hint: object, field: dataclasses.Field[object] | None = None) -> dict[str, object]:
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        described = _of(inner, field)
        text = " ".join(note for note in notes if isinstance(note, str))
        if text:
            described["description"] = text
        for note in notes:
            if isinstance(note, AtLeast):
                described["minimum"] = note.value
        return described
    result = _of_plain(hint, field)
    # Every request carries the schemas, so that a default which goes without saying is left out.
    default = None if field is None else field.default
    if isinstance(default, str | int | float) and default and not isinstance(default, StrEnum):
        result["default"] = default
    return result


def _of_plain(hint: object, field: dataclasses.Field[object] | None = None) -> dict[str, object]:
    if hint in _SCALARS:
        return {"type": _SCALARS[hint][0]}
    optional = _optional(hint)
    if optional is not None:
        inner = _of(optional)
        # What may be left out need not be offered as null too; null is still understood.
        return inner if field is not None and field.default is None else {"anyOf": [inner, {"type": "null"}]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _of(get_args(hint)[0])}
    assert isinstance(hint, type)
    if issubclass(hint, StrEnum):
        return {"type": "string", "enum": [member.value for member in hint]}
    return schema(hint)


def _decoded(hint: object, given: object, where: str, mistakes: list[str]) -> object:
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        value = _decoded(inner, given, where, mistakes)
        for note in notes:
            if isinstance(note, AtLeast) and isinstance(value, int | float) and value < note.value:
                mistakes.append(f"{where}: must be at least {note.value:g}, not {value!r}")
        return value
    optional = _optional(hint)
    if optional is not None:
        return None if given is None else _decoded(optional, given, where, mistakes)
    if get_origin(hint) is tuple:
        return _decoded_list(get_args(hint)[0], given, where, mistakes)
    if hint in _SCALARS:
        return _decoded_scalar(hint, given, where, mistakes)
    assert isinstance(hint, type)
    if issubclass(hint, StrEnum):
        return _decoded_choice(hint, given, where, mistakes)
    return _decoded_object(hint, given, where, mistakes)


def _decoded_scalar(hint: object, given: object, where: str, mistakes: list[str]) -> object:
    if hint is float and type(given) is int:
        return float(given)
    if type(given) is not hint:
        mistakes.append(f"{where}: must be {_SCALARS[hint][1]}, not {_shown(given)}")
    return given


def _decoded_choice(hint: type[StrEnum], given: object, where: str, mistakes: list[str]) -> object:
    choices = [member.value for member in hint]
    if given not in choices:
        mistakes.append(f"{where}: must be one of {', '.join(choices)}, not {_shown(given)}")
        return None
    return hint(given)


def _decoded_list(hint: object, given: object, where: str, mistakes: list[str]) -> object:
    if not isinstance(given, list | tuple):
        mistakes.append(f"{where}: must be a list, not {_shown(given)}")
        return ()
    return tuple(_decoded(hint, item, f"{where}[{place}]", mistakes) for place, item in enumerate(given))


def _decoded_object(hint: type, given: object, where: str, mistakes: list[str]) -> object:
    if not isinstance(given, Mapping):
        mistakes.append(f"{where or 'arguments'}: must be an object, not {_shown(given)}")
        return None
    before = len(mistakes)
    hints = get_type_hints(hint, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(hint)}
    prefix = f"{where}." if where else ""
    for name in given:
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, 1)
            known = f"did you mean {near[0]!r}?" if near else f"the fields are {', '.join(fields)}"
            mistakes.append(f"{prefix}{name}: no such field; {known}")
    values = {}
    for name, field in fields.items():
        if name in given:
            values[name] = _decoded(hints[name], given[name], prefix + name, mistakes)
        elif _is_required(field):
            mistakes.append(f"{prefix}{name}: missing")
    return hint(**values) if len(mistakes) == before else None


def _optional(hint: object) -> object | None:
    """The type that may also be None, for a union of that form."""
    if get_origin(hint) not in (Union, types.UnionType):
        return None
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
    assert len(kinds) == 1, "an input field is one type, or one type or None"
    return cast("object", kinds[0])


def _is_required(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
