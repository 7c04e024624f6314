"""Which tests a file has, what a new one is called, and examples of docstrings as tests."""

from __future__ import annotations

import pytest

from pawl.agent.generated_tests import (
    asserts_something,
    from_calls,
    from_examples,
    keeps_behaviour,
    known_tests,
    module_of,
    naming_of,
    new_test,
    scoped_command,
)
from pawl.checks.catalog import first_named

SOURCE = '''def after(number):
    """
    >>> start = 2
    >>> after(start)
    3
    >>> after("x")
    Traceback (most recent call last):
        ...
    TypeError: no number
    """


def plain():
    """Nothing to see."""
'''


@pytest.mark.spec("E7")
def test_tests_are_found_by_name_and_by_import_and_made_by_the_custom_of_the_language():
    assert known_tests("src/cart.py", ["tests/test_cart.py"], {}) == ("tests/test_cart.py",)
    assert known_tests("src/shop/cart.py", [], {"tests/test_all.py": "from shop.cart import total\n"}) == (
        "tests/test_all.py",
    )
    assert known_tests("src/cart.py", ["tests/test_carts.py"], {"t.py": "import cartography\n"}) == ()
    assert new_test("src/cart.py", ["tests/test_other.py"]) == "tests/test_cart.py"
    assert new_test("cart.py", []) == "test_cart.py"
    assert new_test("web/cart.ts", []) == "web/cart.test.ts"
    assert new_test("lib/cart.rb", ["spec/a_spec.rb"]) == "spec/cart_spec.rb"
    assert naming_of("src/cart.rs") is None, "Rust never"
    assert scoped_command("cart.py", "test_cart.py")[-1] == "test_cart.py"
    own = first_named("node --test")
    assert scoped_command("cart.js", "cart.test.js", own) == ("node", "--test", "--test-reporter=tap", "cart.test.js")
    assert scoped_command("cart.js", "cart.test.js") == ("npx", "jest", "cart.test.js"), "nothing says how"
    assert module_of("src/shop/cart.py") == "shop.cart"
    assert asserts_something("cart.py", "def test():\n    assert 1\n") and not asserts_something("cart.py", "pass\n")


@pytest.mark.spec("E7")
def test_examples_of_docstrings_become_assertions():
    made = from_examples("app.py", SOURCE)
    assert "from app import *" in made and "import pytest" in made
    assert "    start = 2\n    assert repr(after(start)) == '3'\n    with pytest.raises(TypeError):" in made
    compile(made, "test_app.py", "exec")
    assert from_examples("app.py", "def plain(): pass\n") == "" == from_examples("app.py", "def (")


@pytest.mark.spec("E7")
@pytest.mark.parametrize(
    ("objective", "keeps"),
    [
        ("simplify name in months.py", True),
        ("Refactor the cart", True),
        ("make it faster", True),
        ("use a table, without changing its behaviour", True),
        ("", False),
        ("January has 31 days", False),
        ("refactor it and fix the bug with leap years", False),
        ("rename name to label", False),
    ],
)
def test_only_an_objective_that_keeps_behaviour_lets_recorded_calls_decide(objective: str, keeps: bool):
    assert keeps_behaviour(objective) is keeps


@pytest.mark.spec("E7")
def test_recorded_calls_become_assertions():
    rows = [{"call": "after(1)", "value": "2", "root": "after"}, {"call": "Day(1).next()", "value": "2", "root": "Day"}]
    made = from_calls("src/app.py", rows)
    assert (
        "from app import Day, after\n" in made and "def test_calls_of_day():\n    assert Day(1).next() == 2\n" in made
    )
    assert from_calls("app.py", []) == ""
