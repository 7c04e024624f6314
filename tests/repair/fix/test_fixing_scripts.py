"""`fix` on failing JavaScript tests: a search for the patch, tried by the project's own Node."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from repair.fix.projects import fixed, project
from world import snapshot

from pawl.repair.model import FixOutcome, FixRequest
from pawl.repair.script_ground import MOST_BYTES, WarmRequest
from pawl.repair.script_proposals import proposed
from pawl.settings.config import load
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
    pytest.mark.timeout(300),
]

CART = """'use strict';

function total(items) {
  let sum = 0;
  for (let i = 1; i < items.length; i++) {
    sum += items[i].price * items[i].count;
  }
  return sum;
}

function isFree(sum, limit) {
  return sum > limit;
}
"""

TESTS = """
test('adds all items', () => {
  assert.strictEqual(total([{ price: 2, count: 3 }, { price: 1, count: 4 }]), 10);
  assert.strictEqual(total([{ price: 5, count: 1 }]), 5);
  assert.strictEqual(total([]), 0);
});
describe('free delivery', () => {
  it('begins at the limit', () => assert.strictEqual(isFree(50, 50), true));
  it('is not for less', () => assert.strictEqual(isFree(49, 50), false));
  it('is for more', () => assert.strictEqual(isFree(51, 50), true));
});
"""
LAST = "export function last(items) {\n  return items[items.length];\n}\n"
REQUIRED = "const { test, describe, it } = require('node:test');\nconst assert = require('node:assert');\n"


@pytest.mark.whole
@pytest.mark.spec("A8")
def test_two_bugs_in_two_functions_of_a_script_are_mended_and_can_be_undone(tmp_path: Path) -> None:
    tests = f"{REQUIRED}const {{ total, isFree }} = require('./cart.js');\n{TESTS}"
    files = {"cart.js": f"{CART}\nmodule.exports = {{ total, isFree }};\n", "cart.test.js": tests}
    workspace = project(tmp_path, files)
    before = snapshot(workspace)

    report = fixed(workspace)

    assert report.outcome is FixOutcome.FIXED, report
    assert sorted(repair.path for repair in report.repairs) == ["cart.js", "cart.js"]
    text = (workspace / "cart.js").read_text()
    assert "let i = 0" in text and "sum >= limit" in text
    assert (workspace / "cart.test.js").read_text() == tests
    assert sorted(path.name for path in workspace.iterdir() if path.name != ".pawl") == ["cart.js", "cart.test.js"]
    with Project.open(load(), workspace) as shop:
        shop.undo(report.promotion.entry, Wish())
    assert snapshot(workspace) == before


@pytest.mark.whole
@pytest.mark.spec("A8")
@pytest.mark.parametrize("more", ["", ", run"])
def test_modules_are_mended_also_where_only_the_runner_of_the_project_can_load_them(tmp_path: Path, more: str) -> None:
    # What has no stand-in, such as `run`, leaves it to the runner.
    head = f"import {{ test{more} }} from 'node:test';\nimport assert from 'node:assert';\n"
    case = "test('last', () => {\n  assert.equal(last([1, 2, 3]), 3);\n  assert.equal(last([7]), 7);\n});\n"
    files = {
        "list.mjs": LAST,
        "list.test.mjs": f"{head}import {{ last }} from './list.mjs';\n{case}",
        "package.json": "{}",
    }
    workspace = project(tmp_path, files)

    report = fixed(workspace, FixRequest(seconds=60, accept_first=True))

    assert report.outcome is FixOutcome.FIXED, report
    assert (report.cpu_seconds > 0) == (not more)
    assert "items[items.length - 1]" in (workspace / "list.mjs").read_text()


@pytest.mark.whole
def test_rivals_that_behave_differently_are_offered_and_the_workspace_is_left(tmp_path: Path) -> None:
    source = "const fits = (size, limit) => size < limit;\nmodule.exports = fits;\n"
    case = f"{REQUIRED}const fits = require('./fits.js');\ntest('fits', () => assert.equal(fits(5, 5), true));\n"
    workspace = project(tmp_path, {"fits.js": source, "fits.test.js": case})
    before = snapshot(workspace)

    report = fixed(workspace)

    assert report.outcome is FixOutcome.DISPUTED, report
    assert len(report.rivals) > 1
    assert not all(rival.behaves_like_first for rival in report.rivals)
    assert snapshot(workspace) == before
    picked = fixed(workspace, FixRequest(seconds=60, pick=1))
    assert picked.outcome is FixOutcome.FIXED, picked


PAGES = (
    f"{REQUIRED}const page = require('./page.js');\n"
    "test('first', () => assert.deepEqual(page([1, 2, 3, 4, 5], 1, 2), [1, 2]));\n"
    "test('last', () => assert.deepEqual(page([1, 2, 3, 4, 5], 3, 2), [5]));\n"
)


@pytest.mark.whole
def test_two_edits_are_put_together_where_one_mends_a_part(tmp_path: Path) -> None:
    source = "module.exports = (items, number, size) => items.slice(number * size, number * size + size);\n"
    workspace = project(tmp_path, {"page.js": source, "page.test.js": PAGES})

    report = fixed(workspace, FixRequest(seconds=60, accept_first=True))

    assert report.outcome is FixOutcome.FIXED, report
    after = (workspace / "page.js").read_text()
    assert after.startswith("module.exports = (items, number, size) => items.slice((number - 1) * size, "), after
    assert after != source.replace("slice(number * size", "slice((number - 1) * size"), "the first edit alone is wrong"


@pytest.mark.whole
def test_a_patch_that_mends_one_of_two_tests_of_the_same_code_is_not_taken(tmp_path: Path) -> None:
    source = "module.exports = (n) => n + 2;\n"
    case = (
        f"{REQUIRED}const f = require('./f.js');\n"
        "test('small', () => assert.equal(f(2), 3));\n"
        "test('large', () => assert.equal(f(5), 'quite another text'));\n"
    )
    workspace = project(tmp_path, {"f.js": source, "f.test.js": case})
    before = snapshot(workspace)

    report = fixed(workspace, FixRequest(seconds=20))

    assert report.outcome is FixOutcome.DISPUTED, report
    assert "still fail" in report.reason or "nothing decides" in report.reason
    assert snapshot(workspace) == before


@pytest.mark.whole
def test_what_no_patch_of_the_space_mends_is_left_as_it_is(tmp_path: Path) -> None:
    source = "module.exports = (n) => { while (n) { n -= 1; } return 'a'; };\n"
    case = f"{REQUIRED}const f = require('./f.js');\ntest('f', () => assert.equal(f(3), 'quite another text'));\n"
    workspace = project(tmp_path, {"f.js": source, "f.test.js": case})
    before = snapshot(workspace)

    report = fixed(workspace)

    assert report.outcome is FixOutcome.NOT_FIXED
    assert report.reason == "no patch of the search space makes the tests pass"
    assert report.tried > 10
    assert snapshot(workspace) == before


@pytest.mark.parametrize(
    ("broken", "wanted"),
    [
        ("return a < b;", "return a <= b;"),
        ("return a && b;", "return a || b;"),
        ("return f(a, b);", "return f(b, a);"),
        ("return a;", "return b;"),
        ("return !a;", "return a;"),
        ("return a.indexOf(b);", "return a.lastIndexOf(b);"),
        ("if (a) { return b; }", "if (!(a)) { return b; }"),
        ("a + b;", "return a + b;"),
        ("return a - b;", "return Math.abs(a - b);"),
        ("return a.slice(0, 3);", "return a.slice(0, 2);"),
        ("return a * b;", "return (a - 1) * b;"),
        ("return a.indexOf(b);", "return b.indexOf(a);"),
        ("return [a, b];", "return [b, a];"),
        ("a -= 1; return b;", "b -= 1; return b;"),
        ("if (a) { return true; } return false;", "if (a) { return false; } return true;"),
        ("return a[b];", "return a[b - 1];"),
        ("a = 'é'; b = 2; return a;", "a = 'é'; b = 1; return a;"),
    ],
)
def test_the_search_space_holds_the_edit(broken: str, wanted: str) -> None:
    before = f"function f(a, b) {{ {broken} }}\n"
    after = f"function f(a, b) {{ {wanted} }}\n"
    data = before.encode()
    found = proposed({"f.ts": before}, {}).proposals
    texts = {(data[: one.start] + one.text.encode() + data[one.end :]).decode() for one in found}
    assert after in texts


@pytest.mark.whole
@pytest.mark.spec("A12")
def test_imports_that_all_mend_it_are_offered_one_that_is_picked_is_taken_and_the_tests_may_decide(
    tmp_path: Path,
) -> None:
    files = {
        "bill.js": "module.exports = (prices) => total(prices);\n",
        "cart.js": "exports.total = (prices) => prices.reduce((sum, one) => sum + one, 0);\n",
        "count.js": "exports.total = (prices) => prices.length;\n",
        "index.js": "exports.total = require('./cart').total;\n",
        "bill.test.js": f"{REQUIRED}const bill = require('./bill.js');\n"
        "test('bill', () => assert.equal(bill([1]), 1));\n",
    }
    workspace = project(tmp_path, files)

    disputed = fixed(workspace)
    picked = fixed(workspace, FixRequest(pick=2, dry_run=True))
    (workspace / "bill.test.js").write_text(files["bill.test.js"].replace("bill([1]), 1", "bill([2]), 2"))
    decided = fixed(workspace)

    assert disputed.outcome is FixOutcome.DISPUTED, disputed
    offered = [rival.what for rival in disputed.rivals]
    assert [name for name in ("cart.js", "count.js", "index.js") if any(name in one for one in offered)] == [
        "cart.js",
        "count.js",
    ]
    assert (picked.outcome, picked.repairs[0].why) == (FixOutcome.FIXED, "count.js exports total")
    assert (decided.outcome, decided.repairs[0].why) == (FixOutcome.FIXED, "cart.js exports total")
    assert 'require("./cart.js")' in (workspace / "bill.js").read_text()


@pytest.mark.whole
def test_a_request_that_would_be_too_large_for_a_file_of_the_bench_keeps_the_likeliest() -> None:
    source = "".join(f"function f{n}(a{n}, b{n}) {{ return a{n} * {n} - b{n}; }}\n" for n in range(2000))
    found = proposed({"many.js": source}, {})
    request = WarmRequest(root="/", tests=("many.test.js",), failing=("f",))

    data = request.packed(found)

    kept = json.loads(gzip.decompress(data))["proposals"]
    assert len(data) <= MOST_BYTES
    assert [one["cost"] for one in kept] == [one.cost for one in found.proposals[: len(kept)]]
    assert len(kept) > 1000
