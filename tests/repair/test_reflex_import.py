"""The reflex mends what breaks while the program is imported, and finds statements that are missing."""

import pytest

TEST_TABLE = """
    from table import PRICES

    def test_first():
        assert PRICES["a"] == 1

    def test_last():
        assert PRICES["c"] == 3
"""


@pytest.mark.spec("F1")
def test_a_bug_that_keeps_all_tests_from_being_collected_is_mended(repair):
    source = """
        def checked(function):
            if callable(function):
                raise TypeError("a function is needed")
            return function


        @checked
        def double(number):
            return number * 2
    """
    tests = """
        from numbers_twice import double

        def test_three():
            assert double(3) == 6
    """
    repaired = repair({"numbers_twice.py": source, "test_twice.py": tests})
    assert [problem.kind for problem in repaired.problems] == ["TypeError"]
    assert repaired.ended.status == "repaired"
    assert "if not callable(function)" in repaired.patched()


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.parametrize("conftest", ["", "import table\n"])
def test_a_function_that_did_its_work_at_import_is_repaired(repair, conftest):
    source = """
        PRICES = {}


        def fill(names):
            for place, name in enumerate(names):
                PRICES[name] = place + 2


        fill(["a", "b", "c"])
    """
    repaired = repair({"table.py": source, "test_table.py": TEST_TABLE, "conftest.py": conftest})
    assert repaired.ended.status == "repaired"
    assert "place + 1" in repaired.patched()


@pytest.mark.spec("F1")
def test_a_statement_that_is_missing_is_taken_from_its_siblings(repair):
    source = """
        class Account:
            def __init__(self, owner, balance):
                self.owner = owner
                pass
                self.log = []

            def pay(self, amount):
                self.balance = self.balance + amount
                self.log.append(amount)
                return self.balance

            def draw(self, amount):
                self.balance = self.balance - amount
                self.log.append(-amount)
                return self.balance
    """
    tests = """
        from account import Account

        def test_pay():
            assert Account("Ada", 3).pay(4) == 7

        def test_draw():
            assert Account("Ada", 3).draw(1) == 2

        def test_owner():
            assert Account("Ada", 3).owner == "Ada"
    """
    repaired = repair({"account.py": source, "test_account.py": tests})
    assert repaired.ended.status == "repaired"
    assert "        self.balance = balance\n        self.log" in repaired.patched()


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_a_name_that_nobody_binds_is_bound(repair):
    source = """
        def words(text):
            parts = text.split()
            return parts


        def longest(text):
            best = ""
            for part in parts:
                if len(part) > len(best):
                    best = part
            return best
    """
    tests = """
        from text import longest

        def test_two():
            assert longest("a bc") == "bc"

        def test_none():
            assert longest("") == ""

        def test_three():
            assert longest("one three two") == "three"
    """
    repaired = repair({"text.py": source, "test_text.py": tests})
    assert repaired.ended.status == "repaired"
    patched = repaired.patched()
    assert "parts = text.split()\n    for" in patched or "parts = words(text)\n" in patched or "words(text):" in patched
