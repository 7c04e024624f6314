"""Which tests a change reaches: by names, re-exports, texts, fixtures, data, commits; files that nobody can follow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pawl.code.librarian import CodeLibrarian
from pawl.code.reach import ChangedLines, Reach
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles
from pawl.workspace.git import Commit

CART = """from shop.rounding import _rounded


class Cart:
    def total(self):
        return _rounded(sum(self.items))


def unrelated_helper():
    return 3
"""
ROUNDING = "def _rounded(value):\n    return round(value, 2)\n"
OTHERS = {f"tests/test_other{number}.py": f"def test_{number}():\n    assert {number} + 1\n" for number in range(8)}
FILES = {
    "shop/__init__.py": "from shop.cart import Cart\n",
    "shop/cart.py": CART,
    "shop/rounding.py": ROUNDING,
    "shop/tags.py": "def currency_tag(value):\n    return f'{value} EUR'\n",
    "shop/rates.json": '{"eur": 1}\n',
    "tests/conftest.py": "import pytest\nfrom shop import Cart\n\n@pytest.fixture\ndef filled():\n    return Cart()\n",
    "tests/test_basket.py": "from shop import Cart\n\n\ndef test_sum():\n    assert Cart().total() == 0\n",
    "tests/test_checkout.py": "def test_pays(filled):\n    assert filled\n",
    "tests/test_pages.py": "def test_page():\n    assert render('{{ price|currency_tag }}')\n",
    "tests/test_exchange.py": "def test_rates():\n    assert open('shop/rates.json').read()\n",
    "tests/test_history.py": "def test_old():\n    assert True\n",
    **OTHERS,
}


class Log:
    """Commits that are made up."""

    def __init__(self, *commits: Commit) -> None:
        self._commits = commits

    def head(self) -> str:
        return "f" * 40

    def commits(self, most: int) -> Sequence[Commit]:
        return self._commits[:most]


def reach(folder: Path, changes: Sequence[ChangedLines], *commits: Commit) -> Reach:
    for name, text in FILES.items():
        (folder / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "work" / name).write_text(text)
    files = WorkspaceFiles(Tree(folder / "work"), preset("standard"))
    with CodeLibrarian(folder / "index.db", files) as librarian:
        librarian.refresh()
        librarian.take_in(Log(*commits))
        return librarian.reached(changes)


def edited(path: str, old: str, new: str) -> ChangedLines:
    before = FILES[path]
    assert old in before
    return ChangedLines.of(path, before.encode(), before.replace(old, new).encode())


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("shop/cart.py", "sum(self.items)", "max(self.items)"), ["tests/test_basket.py", "tests/test_checkout.py"]),
        (("shop/rounding.py", "round(value, 2)", "round(value, 3)"), ["tests/test_basket.py"]),
        (("shop/tags.py", "EUR", "euro"), ["tests/test_pages.py"]),
        (("shop/rates.json", "1", "2"), ["tests/test_exchange.py"]),
        (("tests/test_other3.py", "3 + 1", "3 + 2"), ["tests/test_other3.py"]),
    ],
    ids=["re-export and fixture", "a private function's user", "a name in a text", "a file of data", "a test itself"],
)
def test_the_tests_that_a_change_reaches_come_first(tmp_path, change, expected):
    found = reach(tmp_path, [edited(*change)])
    assert sorted(one.path for one in found.tests[: len(expected)]) == sorted(expected), found.tests[:4]
    assert not set(OTHERS) - {change[0]} & {one.path for one in found.likely}
    assert len(found.tests) == 13


def test_tests_that_changed_together_with_the_file_are_near_it(tmp_path):
    commit = Commit(name="a" * 40, at=1, message="rates", paths=("shop/rates.json", "tests/test_history.py"))
    found = reach(tmp_path, [edited("shop/rates.json", "1", "2")], commit)
    assert {one.path for one in found.tests[:2]} == {"tests/test_exchange.py", "tests/test_history.py"}


def test_tests_without_names_are_counted_by_the_length_of_their_file(tmp_path, monkeypatch):
    case = "it('adds', () => {\n" + "  expect(1).toBe(1)\n" * 30 + "})\n"
    monkeypatch.setitem(FILES, "web/cart.test.ts", case * 5)
    found = reach(tmp_path, [edited("shop/tags.py", "EUR", "euro")])
    assert next(one.tests for one in found.tests if one.path == "web/cart.test.ts") == 5


def test_names_that_are_alike_in_another_language_reach_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(FILES, "web/tags.ts", "export const currency_tag = (value: number) => value + 1;\n")
    monkeypatch.setitem(FILES, "web/tags.test.ts", "import { currency_tag } from './tags';\n\nit('adds', () => {});\n")
    likely = [one.path for one in reach(tmp_path, [edited("web/tags.ts", "+ 1", "+ 2")]).likely]
    assert likely == ["web/tags.test.ts"]
    likely = [one.path for one in reach(tmp_path, [edited("shop/tags.py", "EUR", "euro")]).likely]
    assert "tests/test_pages.py" in likely and "web/tags.test.ts" not in likely


def test_a_file_that_nothing_leads_from_is_said_to_be_lost(tmp_path):
    found = reach(tmp_path, [ChangedLines.of("setup.cfg", b"[a]\nb = 1\n", b"[a]\nb = 2\n")])
    assert found.lost == ("setup.cfg",)


def test_tests_that_stand_beside_what_they_test_are_files_of_tests(tmp_path):
    source = "pub fn add(x: i32) -> i32 {\n    x + 1\n}\n\nmod tests {\n    fn adds() {}\n    fn more() {}\n}\n"
    for path, text in {"src/lib.rs": source, "src/other.rs": "pub fn other() {}\n"}.items():
        (tmp_path / "work" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / path).write_text(text)
    found = reach(tmp_path, [ChangedLines.of("src/lib.rs", source.encode(), source.replace("+ 1", "+ 2").encode())])
    assert (found.tests[0].path, found.tests[0].tests) == ("src/lib.rs", 2)
    assert "src/other.rs" not in {one.path for one in found.tests}
