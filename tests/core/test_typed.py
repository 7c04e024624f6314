"""Dataclasses as JSON and back: nothing is lost, and whatever does not fit is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

import pytest

from pawl.core.typed import Above, AtLeast, AtMost, Reader, plain, typed


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    name: str
    size: int = 0


@dataclass(frozen=True)
class Outer:
    name: str
    inners: tuple[Inner, ...] = ()
    colour: Colour | None = None
    cost: Decimal | None = None
    pairs: tuple[tuple[str, float], ...] = ()
    free: Mapping[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] | None = None
    loud: bool = False


WHOLE = Outer("a", (Inner("b", 1),), Colour.BLUE, Decimal("0.10"), (("x", 0.5),), {"y": [1, None]}, {}, True)


@pytest.mark.parametrize("value", [WHOLE, Outer("")])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_value_comes_back_from_json(value: Outer, sparse: bool):
    assert typed(Outer, json.loads(json.dumps(plain(value, sparse=sparse)))) == (value if value is WHOLE else Outer(""))


def test_what_is_empty_is_left_out_of_a_sparse_one():
    assert plain(Outer("a"), sparse=True) == {"name": "a"}


def test_a_list_stands_for_the_fields_and_names_of_later_versions_are_passed_over():
    assert typed(Outer, {"name": "a", "inners": [["b", 2]], "mood": "good"}).inners == (Inner("b", 2),)


def test_stored_values_that_do_not_fit_are_all_named():
    with pytest.raises(ValueError, match=r"inners\[0\].size must be a whole number.*colour must be one of red, blue"):
        typed(Outer, {"name": "a", "inners": [{"size": "b"}], "colour": "green"})


@dataclass(frozen=True)
class Table:
    word: Literal["on", "off"] = "on"
    count: Annotated[int, AtLeast(1)] = 1
    seconds: Annotated[float, Above(0), AtMost(60)] = 5.0
    names: tuple[str, ...] = ()
    cost: Decimal | None = None
    inner: Mapping[str, Inner] = field(default_factory=dict)


def test_every_mistake_of_a_table_is_told_with_its_place():
    reader = Reader()
    given = {"word": "no", "count": 0, "seconds": 61, "names": 3, "cost": -1, "inner": {"a": {"nam": "x"}}, "cuont": 1}
    assert reader.table(Table, given, "table") == Table()
    assert [mistake.partition(", not")[0] for mistake in reader.mistakes] == [
        "table.cuont is not a field; did you mean 'count'?",
        "table.word must be 'on' or 'off'",
        "table.count must be at least 1",
        "table.seconds must not be above 60",
        "table.names must be a list",
        "table.cost must be an amount from 0 on",
        "table.inner.a.nam is not a field; did you mean 'name'?",
        "table.inner.a.name is missing",
    ]


def test_what_is_left_out_is_as_in_the_base():
    reader = Reader()
    assert reader.table(Table, {"names": ["a"], "seconds": 7}, "", Table(count=3)) == Table(
        count=3, names=("a",), seconds=7.0
    )
    assert reader.mistakes == []


@pytest.mark.parametrize("given", [True, float("inf"), float("nan"), "7"])
def test_numbers_are_finite_and_not_words(given: object):
    reader = Reader()
    assert reader.table(Table, {"seconds": given}, "") == Table() and len(reader.mistakes) == 1
