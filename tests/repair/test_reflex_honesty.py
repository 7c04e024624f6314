"""What the reflex says when things are not as they should be, and what it never does."""

import pytest

from pawl.core.errors import ParseFailed
from pawl.repair.ground import parse_event
from pawl.repair.model import Agreement, FoundPatch, RepairStatus, TextEdit

GOOD = """
    def add(first, second):
        return first + second
"""
BAD = """
    def add(first, second):
        return first - second
"""
TEST = """
    from sums import add

    def test_add():
        assert add(2, 3) == 5

    def test_zero():
        assert add(4, 0) == 4
"""


@pytest.mark.spec("F1")
def test_a_green_suite_has_nothing_to_repair(repair):
    assert repair({"sums.py": GOOD, "test_sums.py": TEST}).ended.status is RepairStatus.NOTHING_FAILS


@pytest.mark.spec("F1")
def test_a_folder_without_tests_says_so(repair):
    assert repair({"sums.py": GOOD}).ended.status is RepairStatus.NO_TESTS


@pytest.mark.spec("F1")
def test_a_missing_package_is_named(repair):
    repaired = repair({"sums.py": "import no_such_package\n", "test_sums.py": TEST})
    assert repaired.ended.status is RepairStatus.NOT_COLLECTED
    assert "no_such_package" in [problem.package for problem in repaired.problems]


@pytest.mark.spec("F1")
def test_a_suite_that_cannot_be_imported_is_a_collection_error(repair):
    repaired = repair({"sums.py": GOOD, "test_sums.py": "from sums import ad\n\ndef test_add():\n    assert ad\n"})
    assert repaired.ended.status is RepairStatus.NOT_COLLECTED
    assert any(problem.kind == "ImportError" for problem in repaired.problems)


@pytest.mark.spec("F1")
def test_a_bug_in_the_tests_themselves_is_not_repaired_in_the_tests(repair):
    tests = """
        def helper(value):
            return value + 1

        def test_helper():
            assert helper(1) == 1
    """
    repaired = repair({"test_own.py": tests})
    assert repaired.ended.status is RepairStatus.NO_SOURCES
    assert repaired.ended.patches == ()


@pytest.mark.spec("F1")
def test_what_lies_beside_the_tests_in_their_folder_belongs_to_them(repair):
    repaired = repair(
        {
            "chain.py": """
                def length(node):
                    count = 1
                    while node.following:
                        count += 2
                        node = node.following
                    return count
            """,
            "unit_testcases/link.py": """
                class Link:
                    def __init__(self, following=None):
                        self.following = following
            """,
            "unit_testcases/test_chain.py": """
                from chain import length
                from link import Link

                def test_one():
                    assert length(Link()) == 1

                def test_three():
                    assert length(Link(Link(Link()))) == 3
            """,
        }
    )
    assert {patch.path for patch in repaired.ended.patches} == {"chain.py"}


def test_only_the_given_targets_are_edited(repair):
    files = {
        "sums.py": BAD,
        "outer.py": "from sums import add\n\n\ndef total(first, second):\n    return add(first, second)\n",
        "test_outer.py": """
            from outer import total

            def test_total():
                assert total(2, 3) == 5

            def test_more():
                assert total(7, 1) == 8
        """,
    }
    repaired = repair(files, targets=("outer.py",))
    assert {patch.path for patch in repaired.ended.patches} <= {"outer.py"}


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_a_test_that_hangs_is_said_and_can_be_repaired(repair):
    source = """
        def countdown(number):
            steps = 0
            while number > 0:
                number += 1
                steps += 1
            return steps
    """
    tests = """
        from count import countdown

        def test_three():
            assert countdown(3) == 3

        def test_none():
            assert countdown(0) == 0
    """
    repaired = repair({"count.py": source, "test_count.py": tests})
    assert repaired.baseline.hanging == ("test_count.py::test_three",)
    assert "number -= 1" in repaired.patched()


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_a_flaky_test_is_said_and_does_not_count(repair):
    tests = """
        import pathlib
        from sums import add

        def test_add():
            assert add(2, 3) == 5

        def test_zero():
            assert add(4, 0) == 4

        def test_every_other_time():
            marker = pathlib.Path(__file__).with_name("marker")
            seen = marker.exists()
            marker.unlink() if seen else marker.write_text("")
            assert seen
    """
    repaired = repair({"sums.py": BAD, "test_sums.py": tests})
    assert repaired.baseline.flaky == ("test_sums.py::test_every_other_time",)
    assert "first + second" in repaired.patched()


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_tests_that_depend_on_their_order_are_said_and_run_in_it(repair):
    tests = """
        from sums import add

        seen = []

        def test_first():
            seen.append(1)
            assert len(seen) == 1

        def test_add():
            assert seen and add(2, 3) == 5

        def test_more():
            assert seen and add(4, 1) == 5
    """
    repaired = repair({"sums.py": BAD, "test_sums.py": tests})
    assert "test_sums.py::test_first" in repaired.baseline.ordered
    assert "first + second" in repaired.patched()


@pytest.mark.spec("F1")
@pytest.mark.parametrize("framework", ["pytest", "unittest"])
def test_suites_of_the_standard_library_are_repaired(repair, framework):
    tests = """
        import unittest

        from sums import add


        class AddTest(unittest.TestCase):
            def setUp(self):
                self.base = 2

            def test_add(self):
                self.assertEqual(add(self.base, 3), 5)

            def test_zero(self):
                self.assertEqual(add(4, 0), 4)

            @unittest.skip("not now")
            def test_later(self):
                self.fail()
    """
    repaired = repair({"sums.py": BAD, "test_sums.py": tests}, framework=framework)
    assert "first + second" in repaired.patched()


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_patches_that_behave_differently_are_told_apart(repair):
    source = """
        def fare(age):
            if age < 0:
                return 1
            return 2
    """
    tests = """
        from fares import fare

        def test_child():
            assert fare(5) == 1

        def test_adult():
            assert fare(30) == 2
    """
    repaired = repair({"fares.py": source, "test_fares.py": tests})
    assert repaired.ended.agreement is Agreement.DISPUTED
    assert len({patch.group for patch in repaired.ended.patches}) > 1


@pytest.mark.spec("F1")
def test_a_documented_example_decides_between_patches(repair):
    source = '''
        def below(changes):
            """Whether the sum is ever below zero.

            >>> below([1, 2, -5, 9])
            True
            >>> below([1, -1])
            False
            """
            total = 0
            for change in changes:
                total += change
                if total == 0:
                    return True
            return False
    '''
    tests = """
        from level import below

        def test_never():
            assert below([1, 2, -3, 1, 2, -3]) is False

        def test_once():
            assert below([1, 2, -4, 5, 6]) is True
    """
    repaired = repair({"level.py": source, "test_level.py": tests})
    names: dict = {}
    exec(repaired.patched(), names)
    assert names["below"]([1, 2, -5, 9]) is True
    assert names["below"]([1, -1]) is False


@pytest.mark.spec("F1")
def test_what_tests_print_does_not_mix_with_events(repair):
    noisy = TEST.replace("assert add(2, 3) == 5", 'print(\'{"event": "done"}\'); assert add(2, 3) == 5')
    assert repair({"sums.py": BAD, "test_sums.py": noisy}).ended.status is RepairStatus.REPAIRED


@pytest.mark.whole
@pytest.mark.spec("F1")
def test_a_candidate_that_eats_memory_ends_alone(repair):
    source = """
        def grown(number):
            parts = [number]
            while len(parts) < number:
                parts.append(number)
            return len(parts) + 1
    """
    tests = """
        from grow import grown

        def test_three():
            assert grown(3) == 3

        def test_five():
            assert grown(5) == 5
    """
    repaired = repair({"grow.py": source, "test_grow.py": tests}, memory_bytes=1 << 30)
    assert repaired.ended.status is RepairStatus.REPAIRED


def test_edits_that_do_not_fit_the_file_are_refused():
    patch = FoundPatch(path="a.py", edits=(TextEdit(5, 9, "x"),), template="", function="", line=1, cost=1.0)
    with pytest.raises(ParseFailed):
        patch.applied(b"short")


def test_a_line_that_is_no_event_is_refused():
    with pytest.raises(ParseFailed):
        parse_event(b'{"event": "unheard"}')


def test_the_inner_part_imports_nothing_of_the_outer_one():
    from importlib import resources

    folder = resources.files("pawl.repair") / "inside" / "reflex_inside"
    texts = [path.read_text() for path in folder.iterdir() if path.name.endswith(".py")]
    assert texts
    assert not any("import pawl" in text or "from pawl" in text for text in texts)
