"""`fix` on small real projects, in the real sandbox, with the project's own pytest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from repair.fix.projects import fixed, project
from world import snapshot

from pawl.repair.fixer import fix
from pawl.repair.ground import PythonGround
from pawl.repair.model import Agreement, FixOutcome, FixRequest, FoundPatch, RepairEnded, RepairStatus, TextEdit
from pawl.repair.strategy import Dispute, distinct, rivals_of, why_disputed
from pawl.settings.config import load
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

CART = '''"""A cart."""


def total(prices):
    result = 0
    for price in prices:
        result -= price
    return result


def page(items, number, size=10):
    start = number * size
    return items[start : start + size]
'''

TESTS = """from cart import page, total


def test_total():
    assert total([1, 2, 3]) == 6
    assert total([10]) == 10
    assert total([]) == 0


def test_first_page():
    assert page(list(range(25)), 1) == list(range(10))


def test_last_page():
    assert page(list(range(25)), 3) == [20, 21, 22, 23, 24]


def test_small_pages():
    assert page(list(range(25)), 2, size=4) == [4, 5, 6, 7]
"""

SETTINGS = '[tool.pytest.ini_options]\npythonpath = ["."]\n'


pytestmark = pytest.mark.usefixtures("active_environment")


def python_project(root: Path, files: Mapping[str, str]) -> Path:
    return project(root, {"pyproject.toml": SETTINGS, **files})


@pytest.mark.whole
@pytest.mark.spec("F1", "A8")
@pytest.mark.timeout(300)
def test_two_bugs_in_two_functions_are_mended_verified_and_can_be_undone(tmp_path: Path) -> None:
    workspace = python_project(tmp_path, {"cart.py": CART, "test_cart.py": TESTS})
    before = snapshot(workspace)
    with Project.open(load(), workspace) as shop:
        report = fix(shop, FixRequest(seconds=90), lambda event: None)
        assert (report.outcome, report.reason) == (FixOutcome.FIXED, "")
        assert "result += price" in (workspace / "cart.py").read_text()
        assert (workspace / "test_cart.py").read_text() == TESTS
        assert report.after is not None
        assert (report.after.passed, report.after.failed) == (4, 0)
        assert {verdict.step: verdict.standing for verdict in report.verdicts}["tests"] == "pass"
        assert report.promotion is not None
        shop.undo(report.promotion.entry, Wish())
    assert snapshot(workspace) == before


@pytest.mark.whole
@pytest.mark.spec("F1", "A12")
@pytest.mark.timeout(300)
def test_a_missing_import_is_added_without_a_search(tmp_path: Path) -> None:
    source = (
        "def names(lines):\n    found = defaultdict(int)\n"
        "    for line in lines:\n        found[line] += 1\n    return dict(found)\n"
    )
    tests = "from count import names\n\n\ndef test_names():\n    assert names(['a', 'b', 'a']) == {'a': 2, 'b': 1}\n"
    workspace = python_project(tmp_path, {"count.py": source, "test_count.py": tests})
    report = fixed(workspace)
    assert report.outcome is FixOutcome.FIXED
    assert report.tried == 0
    assert "from collections import defaultdict" in (workspace / "count.py").read_text()


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_a_bug_beyond_the_search_leaves_everything_as_it_was(tmp_path: Path) -> None:
    source = "def answer(question):\n    return None\n"
    tests = (
        "from app import answer\n\n\ndef test_answer():\n"
        "    assert answer('what?') == 'a long story'\n    assert answer('who?') == 'nobody you know'\n"
        "    assert answer('when?') == 'yesterday, or the day after'\n"
    )
    workspace = python_project(tmp_path, {"app.py": source, "test_app.py": tests})
    before = snapshot(workspace)
    report = fixed(workspace, FixRequest(seconds=6))
    assert report.outcome is FixOutcome.NOT_FIXED
    assert report.reason
    assert snapshot(workspace) == before


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_a_patch_that_only_fits_the_examples_is_offered_and_not_taken(tmp_path: Path) -> None:
    source = "def answer(question):\n    return None\n"
    tests = (
        "from app import answer\n\n\ndef test_answer():\n"
        "    assert answer('2 + 2 * 7') == 16\n    assert answer('9 - 1') == 8\n"
    )
    workspace = python_project(tmp_path, {"app.py": source, "test_app.py": tests})
    before = snapshot(workspace)
    report = fixed(workspace, FixRequest(seconds=10))
    assert report.outcome in (FixOutcome.DISPUTED, FixOutcome.NOT_FIXED)
    assert report.reason
    assert snapshot(workspace) == before


SHOP = '''"""A shop."""


def total(lines):
    """The sum of all lines: each price times its quantity."""
    s = 0
    for price, qty in lines:
        s += price
    return s


def cheapest(prices):
    """The lowest of the prices."""
    return max(prices)
'''
SHOP_TESTS = """from shop import cheapest, total


def test_total():
    assert total([(2, 2)]) == 4
    assert total([(1, 3)]) == 3


def test_cheapest():
    assert cheapest([3, 1, 2]) == 1
    assert cheapest([5, 9]) == 5
"""


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_a_certain_patch_is_promoted_and_a_variable_that_nobody_reads_speaks_for_another(tmp_path: Path) -> None:
    workspace = python_project(tmp_path, {"shop.py": SHOP, "test_shop.py": SHOP_TESTS})
    report = fixed(workspace, FixRequest(seconds=90))
    text = (workspace / "shop.py").read_text()
    assert "return min(prices)" in text
    if report.outcome is FixOutcome.PARTLY:
        with Project.open(load(), workspace) as shop:
            (change,) = report.rivals[0].changes
            offered = shop.store.blobs.get(change.after.blob).decode()
        assert (text.count("s += price\n"), offered.count("s += price * qty\n")) == (1, 1)
    else:
        assert report.outcome is FixOutcome.FIXED
        assert "s += price * qty\n" in text


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_a_number_that_stands_nowhere_is_offered_and_never_promoted_alone(tmp_path: Path) -> None:
    source = "def fee(amount):\n    return amount\n"
    tests = "from app import fee\n\n\ndef test_fee():\n    assert fee(10) == 17\n    assert fee(20) == 27\n"
    workspace = python_project(tmp_path, {"app.py": source, "test_app.py": tests})
    report = fixed(workspace, FixRequest(seconds=30))
    assert report.outcome is not FixOutcome.FIXED
    assert (workspace / "app.py").read_text() == source


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_a_search_that_runs_out_of_time_has_used_it_and_says_for_what(tmp_path: Path) -> None:
    source = "def story(question):\n    return None\n"
    tests = (
        "import time\n\nfrom app import story\n\n\ndef test_story():\n    time.sleep(1)\n"
        "    assert story('what?') == 'a long one'\n    assert story('who?') == 'nobody you know'\n"
    )
    workspace = python_project(tmp_path, {"app.py": source, "test_app.py": tests})
    report = fixed(workspace, FixRequest(seconds=10))
    assert report.outcome is FixOutcome.NOT_FIXED
    assert "candidates tried" in report.reason
    assert "search" in report.reason
    assert "the quickest failing test takes" in report.reason
    assert report.seconds > 8


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_patches_that_disagree_are_offered_and_none_is_taken_silently(tmp_path: Path) -> None:
    source = "def limit(value):\n    if value > 10:\n        return 0\n    return value\n"
    tests = "from app import limit\n\n\ndef test_limit():\n    assert limit(3) == 3\n    assert limit(40) == 10\n"
    workspace = python_project(tmp_path, {"app.py": source, "test_app.py": tests})
    report = fixed(workspace, FixRequest(seconds=30))
    if report.outcome is FixOutcome.DISPUTED:
        assert len(report.rivals) > 1
        assert all(rival.entry is not None for rival in report.rivals)
        assert (workspace / "app.py").read_text() == source
        picked = fixed(workspace, FixRequest(seconds=30, pick=1))
        assert picked.outcome is FixOutcome.FIXED
    else:
        assert report.outcome is FixOutcome.FIXED
        assert report.repairs[0].agreement in ("decided", "alike", "sole")


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_a_rival_is_told_once_and_taken_on_top_of_what_was_mended_after_it(tmp_path: Path) -> None:
    workspace = python_project(tmp_path, {"app.py": "one = 1\ntwo = 2\n", "test_app.py": "import pytest\n"})
    edits = [((6, 7, "3"),), ((0, 7, "one = 3"),), ((6, 7, "4"),)]
    patches = tuple(
        FoundPatch(
            path="app.py",
            edits=tuple(TextEdit(*edit) for edit in each),
            template="wrong number",
            function="",
            line=1,
            cost=1.0,
            group=number // 2,
        )
        for number, each in enumerate(edits)
    )
    ended = RepairEnded(status=RepairStatus.REPAIRED, seconds=1.0, patches=patches, agreement=Agreement.DISPUTED)
    with Project.open(load(), workspace) as shop, open_bench(shop) as bench:
        ground = PythonGround(shop, bench, FixRequest(), lambda event: None)
        ended = distinct(ended, bench.files.read)
        assert [patch.group for patch in ended.patches] == [0, 1]
        assert why_disputed(ended).startswith("2 patches pass the tests, with 2 behaviours")
        dispute = Dispute.on(ground, ended)
        ground.write("app.py", b"zero = 0\none = 1\ntwo = 2\n")
        rivals = rivals_of(ground, dispute)
        assert [rival.entry for rival in rivals] == [1, 2]
        assert [shop.store.blobs.get(change.after.blob) for rival in rivals for change in rival.changes] == [
            b"one = 3\ntwo = 2\n",
            b"one = 4\ntwo = 2\n",
        ]


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_with_a_source_as_target_the_tests_that_do_not_reach_it_are_set_aside(tmp_path: Path) -> None:
    files = {"cart.py": CART.replace("number * size", "(number - 1) * size"), "test_cart.py": TESTS}
    for name in ("one", "two", "six"):
        files[f"{name}.py"] = f"def {name}():\n    return []\n"
        files[f"test_{name}.py"] = (
            f"from {name} import {name}\n\n\ndef test_{name}():\n    assert {name}() == {{9: {name}}}\n"
        )
    workspace = python_project(tmp_path, files)
    report = fixed(workspace, FixRequest(seconds=60, targets=("cart.py",)))
    assert report.outcome is FixOutcome.PARTLY
    assert "result += price" in (workspace / "cart.py").read_text()
    assert report.reason == "the failing tests reach no source that may be edited"
    assert [note.partition(": test_one")[0] for note in report.notes] == [
        "set aside, they do not reach what may be edited"
    ]


@pytest.mark.whole
@pytest.mark.spec("F1")
@pytest.mark.timeout(300)
def test_what_is_left_after_a_patch_says_what_it_needs(tmp_path: Path) -> None:
    tests = TESTS.replace("page, ", "")[: TESTS.index("def test_first") - 6]
    needy = "def test_parsed():\n    import ujson\n\n\ndef test_fast(benchmark):\n    pass\n"
    workspace = python_project(tmp_path, {"cart.py": CART, "test_cart.py": tests, "test_needy.py": needy})
    report = fixed(workspace)
    assert report.outcome is FixOutcome.PARTLY
    packages = [("ujson", ""), ("pytest-benchmark", " (for the fixture 'benchmark')")]
    assert report.reason == "; ".join(
        f"the tests need the package {package!r}, which is not installed{why}" for package, why in packages
    )
    advised = [one.partition("python -m pip install ")[2] for one in report.advice.split("; ")]
    assert advised == [package for package, _ in packages]
    assert report.notes == (
        "set aside, what they need is missing: test_needy.py::test_parsed, test_needy.py::test_fast",
    )
