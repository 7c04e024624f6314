"""Scope, Constraints and "do not touch X" are read from a request and held against its change."""

from __future__ import annotations

import pytest

from pawl.agent import request_scope, workplace
from pawl.agent.demands import wishes
from pawl.agent.intents import listed_parts
from pawl.agent.request_scope import from_form, programs_of, scope_of
from pawl.checks.change_scope import ChangeScope
from pawl.core.change import Change, ChangeSet, Node, NodeKind

THERE = {"src", "tests", "docs", "src/cart.py", "api.py"}
FILE = Node(kind=NodeKind.FILE, mode=0o644, blob="0" * 64)
OTHER = Node(kind=NodeKind.FILE, mode=0o644, blob="1" * 64)


def read(request: str) -> ChangeScope:
    return scope_of(request, "/home/u/shop", THERE.__contains__)


@pytest.mark.parametrize(
    ("request_", "untouched", "tests"),
    [
        ("fix total, but do not touch tests/ or config.py", ("tests", "config.py"), False),
        ("Fix it without touching src/api.py, docs and the tests.", ("src/api.py", "docs"), True),
        ("leave `config.py` alone and fix total", ("config.py",), False),
        ("api.py must stay unchanged", ("api.py",), False),
        ("fix total; api.py is off limits", ("api.py",), False),
        ("fix total. api.py must stay as it is", ("api.py",), False),
        ("nothing in src may change, fix total", ("src",), False),
        ("fix total; you may not change api.py", ("api.py",), False),
        ("fix total; exclude api.py from your changes", ("api.py",), False),
        ("Please refrain from changing api.py", ("api.py",), False),
        ("fix total; api.py is generated, don't edit it", ("api.py",), False),
        ("Korrigiere total, api.py darf nicht verändert werden", ("api.py",), False),
        ("fix total; api.py is read-only", ("api.py",), False),
        ("the tests are read-only, fix total", (), True),
        ("Treat src/ as read-only and fix total", ("src",), False),
        ("leave api.py as it is", ("api.py",), False),
        ("fix total. docs should be left alone.", ("docs",), False),
        ("stay out of src and fix total", ("src",), False),
        ("fix total; api.py shall not be changed", ("api.py",), False),
        ("Korrigiere total, Finger weg von api.py", ("api.py",), False),
        ("corrige total, api.py est en lecture seule", ("api.py",), False),
        ("make the property total of api.py read-only", (), False),
        ("after a save api.py is not changed: fix that", (), False),
        ("Ändere total, aber fass api.py nicht an", ("api.py",), False),
        ("Korrigiere total, ohne die Tests zu ändern", (), True),
        ("Ne touche pas aux tests", (), True),
        ("no toques config.py ni los tests", ("config.py",), True),
        ("不要修改 config.py", ("config.py",), False),
        ("api.py を変更しないで", ("api.py",), False),
        ("Don't change the behaviour of total in cart.py", (), False),
        ("do not rename anything in cart.py", (), False),
        ("change total in api.py", (), False),
    ],
)
def test_hands_off_is_understood_of_places_and_tests(request_: str, untouched: tuple[str, ...], tests: bool):
    found = read(request_)
    assert (found.untouched, found.tests_untouched, found.allowed) == (untouched, tests, ())


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        ("Task: x\nScope: src, `docs/*.md`\nConstraints: y", ("src", "docs/*.md")),
        ("Task: x\nScope: only src/cart.py\nConstraints: y", ("src/cart.py",)),
        ("Task: x\nScope: src/cart.py, the documentation\nConstraints: y", ()),
        ("Task: x\nScope: the smallest place in /home/u/shop that does it; one file\nConstraints: y", ()),
        ("only change src/cart.py", ("src/cart.py",)),
        ("Don't touch anything outside src/", ("src",)),
        ("rename total", ()),
    ],
)
def test_a_scope_is_enforced_where_it_names_places(request_: str, allowed: tuple[str, ...]):
    assert read(request_).allowed == allowed


def test_every_file_that_may_not_change_is_told_by_name():
    changes = ChangeSet.of(
        (
            Change("src/cart.py", FILE, OTHER),
            Change("tests/test_cart.py", FILE, OTHER),
            Change("tests/test_new.py", None, OTHER),
            Change("setup.py", FILE, None),
        )
    )
    scope = read("Task: x\nScope: src/cart.py and its tests\nConstraints: no changed tests, no tidying")
    told = scope.offences(changes)
    assert len(told) == 2 and "'setup.py'" in told[0] and "'tests/test_cart.py'" in told[1]
    assert read("x").offences(changes) == ()


@pytest.mark.spec("A14", "G2")
def test_a_form_keeps_all_of_its_tasks_and_says_what_is_to_be_there():
    steps = "\n".join(f"{number}. step {number}" for number in range(1, 13))
    assert len(from_form(f"Task:\n{steps}\nScope: src", "/work", THERE.__contains__)) == 12
    request = (
        "Task: add a module weeks with a test\nScope: weeks.py, nope.py, tests/test_weeks.py, src/*.py\n"
        "Verification:\n- `nosuch x`\n- pytset -q\n- by eye"
    )
    (task,) = from_form(request, "/work", THERE.__contains__)
    assert task.paths == ("weeks.py", "nope.py", "tests/test_weeks.py")
    assert task.creates == ("weeks.py", "tests/test_weeks.py")
    assert programs_of(request) == ("nosuch", "pytset")


@pytest.mark.spec("B9")
@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        ("(1) add a (2) add b", ("add a", "add b")),
        ("1) add a; 2) add b", ("add a", "add b")),
        ("Step 1: add a\nStep 2: add b", ("add a", "add b")),
        ("a) add x\nb) add y", ("add x", "add y")),
        ("First add a(). Then add b().", ("First add a().", "Then add b().")),
        ("update to 2. Then 4. Go on", ()),
    ],
)
def test_the_parts_of_a_request_are_seen_however_they_are_listed(request_: str, parts: tuple[str, ...]):
    assert listed_parts(request_) == parts


@pytest.mark.spec("A14", "G2")
@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        ("Fix total. Rename greet to hello.", ("Fix total", "Rename greet to hello")),
        ("Add a --quiet option, and document it", ("Add a --quiet option", "document it")),
        ("rename a to b, move b, then delete d", ("rename a to b", "move b", "delete d")),
        ("Behebe den Fehler in a.py und füge eine Zeile an", ("Behebe den Fehler in a.py", "füge eine Zeile an")),
        ("fix total and make all tests pass", ("fix total",)),
        ("The parser is slow. Make it fast, the update must stay.", ("Make it fast, the update must stay",)),
        ("fix the failing tests", ()),
        ("what does total return, and why?", ()),
    ],
)
def test_wishes_that_prose_strings_together_are_parts(request_: str, parts: tuple[str, ...]):
    assert wishes(request_) == parts


@pytest.mark.parametrize("sign", ["@", "+", "a.", "../", "*", "-"])
def test_a_long_row_of_signs_is_read_in_time_that_grows_with_its_length(sign: str):
    """Ten times as long took a hundred times as long; now the limit of the test would be met only by that."""
    assert request_scope._TOKEN.findall(f"x {sign * 300_000} src/app.py")[-1] == "src/app.py"
    assert workplace._SUSPECT.findall(f"x {sign * 300_000} src/app.py:7")[-1] == ("src/app.py", "7")
