"""A dataclass whose methods are written when it is first used.

The standard library compiles six functions for each class when its module is loaded. For the 500 classes that a run
loads this is half of the time until the first request, and most of them are not used before it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, slots: bool, **options: bool) -> Callable[[type], type]:
        """The standard library's decorator, for classes with slots."""
        assert slots
        return lambda source: _slotted(_Unwritten(source, **options))


_lock = RLock()


class _Unwritten:
    """The methods that a class does not have yet; its source has no slots and still holds the defaults."""

    __slots__ = ("frozen", "kw_only", "made", "names", "source")
    made: Any

    def __init__(self, source: type, *, frozen: bool = False, kw_only: bool = False, order: bool = False) -> None:
        self.source = source
        self.frozen = frozen
        self.kw_only = kw_only
        names = ["__init__", "__match_args__", "__dataclass_fields__", "__dataclass_params__", "__eq__"]
        names += ["__hash__"] if frozen else []
        names += ["__lt__", "__le__", "__gt__", "__ge__"] if order else []
        self.names = [name for name in names if source.__dict__.get(name) is None]

    def write(self) -> None:
        with _lock:
            if not self.names:
                return
            # A class without a text is given its signature, which costs more than all the rest.
            self.source.__doc__ = self.source.__doc__ or self.source.__name__
            options = {"init": False, "repr": False, "eq": False, "kw_only": self.kw_only}
            known: Any = dataclasses.dataclass(**options)(self.source)
            fields = dataclasses.fields(known)
            compared = [one.name for one in fields if one.compare]
            written = {name: getattr(known, name) for name in self.names if name.startswith(("__match", "__data"))}
            written |= _comparisons(operator.attrgetter(*compared) if compared else lambda _: ())
            written["__init__"] = _init(fields, frozen=self.frozen, post=hasattr(known, "__post_init__"))
            for name in reversed(self.names):
                setattr(self.made, name, written[name])
            self.names = []


class _Member:
    """Stands for a member until somebody asks for it."""

    __slots__ = ("missing", "name")

    def __init__(self, missing: _Unwritten, name: str) -> None:
        self.missing = missing
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        self.missing.write()
        found = self.missing.made.__dict__[self.name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def _slotted(missing: _Unwritten) -> type:
    source = missing.source
    held = {name for base in source.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    annotations: dict[str, object] = source.__dict__.get("__annotations__", {})  # noqa: RUF063
    names = [name for name, kind in annotations.items() if "ClassVar" not in str(kind)]
    left = {*names, "__dict__", "__weakref__"}
    space = {name: value for name, value in source.__dict__.items() if name not in left}
    space = {"__repr__": _repr, **(_FROZEN if missing.frozen else {"__hash__": None}), **space}
    space |= {name: _Member(missing, name) for name in missing.names}
    space["__slots__"] = tuple(name for name in names if name not in held)
    made = missing.made = type(source)(source.__name__, source.__bases__, space)
    made.__qualname__ = source.__qualname__
    return made


def _init(fields: Iterable[Field[Any]], *, frozen: bool, post: bool) -> Callable[..., None]:
    """Writes the method that takes the fields."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": MISSING}
    heads: dict[bool, list[str]] = {False: ["self"], True: []}
    body = []
    for one in fields:
        name = value = one.name
        absent = ""
        if one.default_factory is not MISSING:
            known[f"_new_{name}"] = one.default_factory
            absent = f"_new_{name}()"
            value = f"{absent} if {name} is _absent else {name}"
        elif one.default is not MISSING:
            known[f"_new_{name}"] = one.default
            absent = f"_new_{name}"
        if one.init:
            given = "_absent" if one.default_factory is not MISSING else absent
            heads[one.kw_only is True].append(f"{name}={given}" if absent else name)
        elif not (value := absent):
            continue
        body.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    body += [" self.__post_init__()"] if post else []
    words = [*heads[False], *(["*", *heads[True]] if heads[True] else [])]
    exec("\n".join([f"def __init__({', '.join(words)}):", *(body or [" pass"])]), known)
    return known["__init__"]  # type: ignore[no-any-return]


def _comparisons(compared: Callable[[object], Any]) -> dict[str, object]:
    def against(comparison: Callable[[Any, Any], bool]) -> Callable[[object, object], object]:
        def compare(self: object, other: object) -> object:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return comparison(compared(self), compared(other))

        return compare

    signs = {f"__{sign}__": against(getattr(operator, sign)) for sign in ("eq", "lt", "le", "gt", "ge")}
    return {**signs, "__hash__": lambda self: hash(compared(self))}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change the field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _restore}
