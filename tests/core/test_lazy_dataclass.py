"""Dataclasses whose methods are written at first use are like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field, replace
from typing import ClassVar

import pytest

from pawl.core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    unit: ClassVar[str] = "mm"
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    name: str = ""
    y: int = 3


@dataclass(slots=True)
class Counter:
    count: int
    seen: set[int] = field(init=False, default_factory=set, repr=False)
    last: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.last = self.count


@dataclass(frozen=True, slots=True, order=True)
class Version:
    major: int
    minor: int = 0


def test_values_are_compared_hashed_shown_and_replaced_by_their_fields():
    assert Point(x=1, names=["a"]) == Point(x=1, y=2) != Point(x=2)
    assert len({Point(x=1), Point(x=1), Named(x=1, y=2)}) == 2
    assert repr(replace(Named(x=1), name="b")) == "Named(x=1, y=3, names=[], name='b')"
    assert [one.name for one in dataclasses.fields(Named)] == ["x", "y", "names", "name"]
    assert dataclasses.asdict(Point(x=1)) == {"x": 1, "y": 2, "names": []}
    assert (Point.unit, Point(x=1).names is Point(x=1).names) == ("mm", False)


def test_nothing_can_be_added_to_a_value_or_changed_in_a_frozen_one():
    with pytest.raises(FrozenInstanceError):
        Point(x=1).x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del Point(x=1).x
    with pytest.raises(AttributeError):
        Counter(1).other = 2  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(Counter(1))


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(x=1, z=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Point(1)  # type: ignore[call-arg,misc]


def test_what_is_made_after_the_fields_is_made_and_order_and_patterns_follow_the_fields():
    counter = Counter(4)
    assert (counter.last, counter.seen, repr(counter)) == (4, set(), "Counter(count=4, last=4)")
    assert sorted([Version(2), Version(1, 5), Version(1)]) == [Version(1), Version(1, 5), Version(2)]
    match Version(1, 5):
        case Version(major, minor):
            assert (major, minor) == (1, 5)


def test_a_copy_and_a_stored_value_are_the_same_value():
    value = Named(x=1, names=["a"], name="n")
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    assert copy.copy(value).names is value.names


def test_many_threads_may_be_the_first():
    for _ in range(50):

        @dataclass(frozen=True, slots=True)
        class Fresh:
            a: int
            b: str = "b"

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(Fresh, range(8)))
        assert [one.a for one in made] == list(range(8)) and {one.b for one in made} == {"b"}
