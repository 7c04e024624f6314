"""The words of a request decide which tests must pass, in any wording and place and in the languages people write."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pawl.agent.demands import demanded, unclear
from pawl.checks.verdict import Requirements, to_pass
from pawl.core.diagnostic import Diagnostic, Severity

BLIND = tomllib.loads((Path(__file__).parent / "blind_demands.toml").read_text("utf-8"))
UNREAD = tomllib.loads((Path(__file__).parent / "unread_demands.toml").read_text("utf-8"))
WORDINGS = tomllib.loads((Path(__file__).parents[1] / "scenarios" / "demands.toml").read_text("utf-8"))


@pytest.mark.spec("G2")
def test_wordings_in_many_languages_demand_what_they_say():
    wrong = []
    for language, rows in WORDINGS.items():
        wrong += [(language, text) for text in rows.get("all", ()) if not demanded(text).all_tests]
        for text in rows.get("none", ()):
            demand = demanded(text)
            wrong += [(language, text)] * bool(demand.all_tests or demand.files or demand.tests)
        for row in rows.get("named", ()):
            demand = demanded(row["text"])
            wrong += [(language, row["text"])] * (demand.all_tests or list(demand.tests) != row["tests"])
    assert not wrong


@pytest.mark.spec("G2")
def test_sentences_that_were_written_blind_demand_what_they_say():
    wrong = []
    for text, want in ((text, want) for rows in BLIND.values() for text, want in rows.items()):
        demand = demanded(text)
        found = {*(["all"] if demand.all_tests else ()), *demand.files, *demand.tests}
        meant = {"none": [set()], "ordinary": [set(), {"all"}]}.get(want, [{want}])
        if want != "question" and found not in meant:
            wrong.append((text, want, found))
    assert not wrong


@pytest.mark.spec("G2")
def test_a_demand_that_is_not_read_is_unclear_and_no_wish_without_one_is():
    def read(text: str) -> bool:
        demand = demanded(text)
        return bool(demand.all_tests or demand.files or demand.tests)

    rows = [(text, want == "demand") for part in UNREAD.values() for text, want in part.items()]
    assert [text for text, wants in rows if wants and not (read(text) or unclear(text))] == []
    assert [text for text, wants in rows if not wants and (read(text) or unclear(text))] == []
    known = [(text, want) for part in BLIND.values() for text, want in part.items()]
    known += [(text, "all") for part in WORDINGS.values() for text in part["all"]]
    kinds = ("none", "ordinary", "question")
    assert [text for text, want in known if want not in kinds and not (read(text) or unclear(text))] == []


def test_a_demand_may_stand_anywhere_and_what_is_piped_demands_nothing():
    assert demanded("Task: round it\nScope: cart.py\nRequirements:\n- use decimal\n- all tests pass").all_tests
    assert demanded("Rename total.\n\nThen go on with the docs, and keep at it until\nall tests\npass.").all_tests
    assert not demanded("rename total\n\n<stdin>\nall tests must pass\n</stdin>").all_tests
    assert demanded("All tests except test_slow must pass").left_out == ("test_slow",)
    assert demanded("test_a may still fail, all other tests must pass").left_out == ("test_a",)
    for text in ("make tests/test_cart.py pass", "the tests in tests/test_cart.py must pass"):
        assert (demanded(text).all_tests, demanded(text).files) == (False, ("tests/test_cart.py",)), text
    assert demanded("Fix tests/test_cart.py so that all tests pass").all_tests


TESTS = ("tests/test_cart.py::test_total", "tests/test_cart.py::TestTax::test_rate[de]", "tests/test_tax.py::test_rate")
JAVASCRIPT = ("cart.test.js > cart > adds two prices", "cart.test.js > cart > empty")


@pytest.mark.parametrize(
    ("request_", "meant"),
    [
        ("tests/test_cart.py::test_total must pass", TESTS[:1]),
        ("test_total in tests/test_cart.py fails, fix it", TESTS[:1]),
        ("make test_rate pass", TESTS[1:]),
        ("TestTax::test_rate has to pass", TESTS[1:2]),
        ("fix TestTax", TESTS[1:2]),
        ("all tests in test_cart.py must pass", TESTS[:2]),
        ("add a docstring to tests/test_cart.py", ()),
        ("add a test like test_total_of_two", ()),
        ("all tests must pass, but ignore test_rate", (TESTS[0], *JAVASCRIPT)),
        ("the test 'adds two prices' is to pass", JAVASCRIPT[:1]),
        ("fix the test `empty`", JAVASCRIPT[1:]),
        ("an empty cart costs nothing", ()),
    ],
)
def test_a_named_test_means_that_test_and_not_its_file(request_: str, meant: tuple[str, ...]):
    demand = demanded(request_)
    wanted = Requirements(
        all_tests=demand.all_tests,
        tests=demand.tests,
        files=demand.files,
        left_out=demand.left_out,
        named=demand.words,
    )
    failing = [Diagnostic(tool="t", severity=Severity.ERROR, message="", test=one) for one in (*TESTS, *JAVASCRIPT)]
    assert tuple(one.test for one in to_pass(failing, wanted)) == meant
