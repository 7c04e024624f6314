"""Ranking: which file comes first and why, the same each time, with and without tests, commits and failing tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from pawl.code.code_model import Hit, Query, Suspicion
from pawl.code.librarian import CodeLibrarian
from pawl.core.errors import UsageError
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles
from pawl.workspace.git import Commit

pytestmark = pytest.mark.spec("E2")

FILES = {
    "shop/__init__.py": "from shop.cart import Cart\n",
    "shop/cart.py": '''\
from shop.prices import rounded


class Cart:
    """What a customer wants to buy."""

    def __init__(self):
        self.items = []

    def add_item(self, item):
        self.items.append(item)

    def total(self):
        return rounded(sum(item.price for item in self.items))
''',
    "shop/prices.py": '''\
"""Prices and how they are rounded."""


def rounded(value):
    if value is None:
        raise ValueError("cannot round a missing price")
    return round(value, 2)
''',
    "shop/mail.py": '''\
def send_receipt(customer, text):
    """Sends a receipt by mail."""
    return deliver(customer.address, text)


def deliver(address, text):
    return bool(address)
''',
    "shop/gifts.py": "class GiftCard:\n    def redeem(self, cart):\n        return cart.total()\n",
    "tests/test_cart.py": "from shop.cart import Cart\n\ndef test_total_of_cart():\n    assert Cart().total() == 0\n",
    "docs/cart.md": "# The cart\nThe cart has a total, and a customer.\n",
}

Ask = Callable[..., list[Hit]]


class Log:
    """Commits that are made up."""

    def __init__(self, commits: list[Commit]) -> None:
        self._commits = commits

    def head(self) -> str:
        return "f" * 40

    def commits(self, most: int) -> list[Commit]:
        return self._commits[:most]


def librarian(folder: Path, files: Mapping[str, str] = FILES, log: Log | None = None) -> CodeLibrarian:
    for name, content in files.items():
        path = folder / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    made = CodeLibrarian(folder / "index.db", WorkspaceFiles(Tree(folder / "work"), preset("standard")), log)
    made.refresh()
    return made


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    with librarian(tmp_path) as made:
        yield lambda text, top=10, **rest: made.locate(Query(text=text, **rest), top)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("add_item of the cart loses items", "shop/cart.py"),
        ("The receipt is not sent when the address is missing", "shop/mail.py"),
        ("`GiftCard` cannot be redeemed", "shop/gifts.py"),
        ("Wrong result\nsomething is wrong in shop/prices.py", "shop/prices.py"),
        ("Crash\nshop.mail.deliver returns the wrong thing", "shop/mail.py"),
        ("Crash\n\nValueError: cannot round a missing price", "shop/prices.py"),
        ("Crash\n```\nfrom shop.gifts import GiftCard\nGiftCard().redeem(1)\n```", "shop/gifts.py"),
        (
            "Crash\nTraceback (most recent call last):\n"
            '  File "/x/site-packages/shop/mail.py", line 3, in send_receipt\n'
            "    return deliver()\nTypeError: bad",
            "shop/mail.py",
        ),
    ],
)
def test_the_file_that_is_meant_comes_first(ask: Ask, text: str, path: str):
    assert ask(text)[0].path == path


@pytest.mark.parametrize(
    "text",
    [
        "asdf qwer zxcv",
        "... !!! ???",
        "Das Wetter ist heute sehr schön, und meine Katze geht mit Missing in leeren Gassen spazieren",
        "my grandmother bakes delicious apple pies with items of every sunday market",
    ],
)
def test_a_text_about_something_else_fits_nothing(ask: Ask, text: str):
    assert ask(text) == []


def test_a_text_in_few_words_of_the_workspace_fits(ask: Ask):
    assert ask("something about the receipt address")[0].path == "shop/mail.py"


def test_a_suspicion_is_found_from_the_folder_that_the_tests_ran_in(ask: Ask):
    hits = ask("it fails", suspicions=(Suspicion(path="mail.py", line=7),))
    assert hits[0].path == "shop/mail.py"
    assert hits[0].symbols[0].qualified == "deliver"


def test_every_hit_has_reasons_and_a_score(ask: Ask):
    hits = ask("Cart.total is wrong for an empty cart")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 for hit in hits)
    assert any("Cart" in reason for reason in hits[0].reasons)
    assert any("path is named" in reason for reason in ask("x\nlook at shop/mail.py")[0].reasons)


def test_the_definitions_that_are_meant_come_first(ask: Ask):
    (hit,) = ask("Cart.total is wrong for an empty cart", 1)
    assert hit.symbols[0].qualified == "Cart.total"
    assert (hit.symbols[0].start, hit.symbols[0].end) == (13, 14)
    traced = 'x\n  File "shop/mail.py", line 8, in deliver\n    return bool(address)\nTypeError: bad'
    assert ask(traced, 1)[0].symbols[0].qualified == "deliver"


def test_the_same_question_has_the_same_answer(tmp_path: Path, ask: Ask):
    text = "The total of a cart with a gift is rounded wrongly"
    assert ask(text) == ask(text)
    with librarian(tmp_path / "other") as again:
        assert again.locate(Query(text=text), 10) == ask(text)


def test_files_of_tests_can_be_left_out(ask: Ask):
    assert "tests/test_cart.py" in [hit.path for hit in ask("test_total_of_cart fails")]
    assert "tests/test_cart.py" not in [hit.path for hit in ask("test_total_of_cart fails", tests=False)]


def test_prose_comes_behind_code_unless_it_is_named(ask: Ask):
    order = [hit.path for hit in ask("the total of the cart for a customer")]
    assert order.index("docs/cart.md") > order.index("shop/cart.py")
    assert ask("typo in docs/cart.md")[0].path == "docs/cart.md"
    assert ask("The total of the cart\nIt is told wrongly in docs/cart.md")[0].path == "docs/cart.md"


def test_a_word_that_hardly_any_other_file_has_speaks_for_a_file(tmp_path: Path):
    checks = "def check(price):\n    # models\n    return Error(price, id='shop.E028')\n"
    others = {f"shop/price{number}.py": f"def price_{number}(price):\n    return price\n" for number in range(40)}
    with librarian(tmp_path, {**others, "shop/checks.py": checks}) as made:
        hits = made.locate(Query(text="Price is refused\nprice: (shop.E028) price is used twice"), 3)
    assert hits[0].path == "shop/checks.py"
    assert any(reason == "hardly any other file has E028" for reason in hits[0].reasons)


def test_no_more_than_the_top_is_told(ask: Ask):
    assert len(ask("cart total price", 2)) == 2


def test_a_text_that_fits_nothing_has_no_answer(ask: Ask):
    assert ask("zzzz qqqq") == []


def test_failing_tests_speak_against_the_files_they_run(ask: Ask):
    text = "the result is wrong"
    hits = ask(text, suspicions=(Suspicion(path="shop/prices.py", line=6, weight=0.9),))
    assert hits[0].path == "shop/prices.py"
    assert hits[0].symbols[0].qualified == "rounded"
    assert "failing tests run through it" in hits[0].reasons


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_question_is_refused(ask: Ask, text: str):
    with pytest.raises(UsageError):
        ask(text)


def test_a_question_of_odd_characters_is_answered(ask: Ask):
    for text in ('"', "*", "AND OR NOT", "a:b^2 NEAR(x)", "'; DROP TABLE file; --", "\x00\ud800", "(" * 1000):
        ask(text)


def test_commits_that_said_the_same_speak_for_their_files(tmp_path: Path):
    def commit(number: int, message: str, *paths: str) -> Commit:
        return Commit(name=f"{number:040x}", at=1_700_000_000 - number, message=message, paths=paths)

    log = Log(
        [
            commit(1, "Tidy up", "docs/cart.md"),
            commit(2, "Fix the currency of invoices", "shop/mail.py"),
            commit(3, "Gifts", "shop/gifts.py", "shop/cart.py"),
        ]
    )
    with librarian(tmp_path, log=log) as made:
        hits = made.locate(Query(text="invoices have the wrong currency"), 5)
        without = made.locate(Query(text="invoices have the wrong currency", history=False), 5)
    assert hits[0].path == "shop/mail.py"
    assert "commits with similar messages changed it" in hits[0].reasons
    assert without == []


def test_files_are_found_in_other_languages(tmp_path: Path):
    files = {
        "src/cart.ts": "export class Cart {\n  addItem(item: Item) { this.items.push(item) }\n}\n",
        "server/mail.go": "package mail\n\n// SendReceipt sends a receipt.\n"
        "func SendReceipt(to string) error { return nil }\n",
        "core/src/lib.rs": "pub fn parse_price(text: &str) -> u64 { 0 }\n",
        "app/Gift.java": "class Gift { void redeem() {} }\n",
    }
    with librarian(tmp_path, files) as made:
        for text, path in {
            "addItem drops the last item": "src/cart.ts",
            "SendReceipt: receipt is lost": "server/mail.go",
            "parse_price panics": "core/src/lib.rs",
            "Gift.redeem does nothing": "app/Gift.java",
            "Crash\n\n    at Cart.addItem (src/cart.ts:2:3)": "src/cart.ts",
        }.items():
            assert made.locate(Query(text=text), 3)[0].path == path


def test_a_change_is_found_after_a_refresh(tmp_path: Path):
    with librarian(tmp_path) as made:
        (tmp_path / "work/shop/stock.py").write_text("def reorder_stock():\n    pass\n")
        assert made.locate(Query(text="reorder_stock fails"), 3) == []
        made.refresh(["shop/stock.py"])
        assert made.locate(Query(text="reorder_stock fails"), 3)[0].path == "shop/stock.py"


def test_only_commits_that_head_reaches_count(tmp_path: Path):
    from pawl.workspace.git import GitLog, commits_in, log_words

    work = tmp_path / "work"
    work.mkdir()

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=work, check=True, capture_output=True).stdout

    git("init", "-q")
    (work / "a.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "Begin\n\nwith a body")
    git("checkout", "-qb", "later")
    (work / "b.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "Later")
    git("checkout", "-q", "main")
    with Tree(work) as tree:
        log = GitLog(tree, pytest.fail)
        assert log.head() == git("rev-parse", "HEAD").decode().strip()
        git("pack-refs", "--all")
        assert log.head() == git("rev-parse", "HEAD").decode().strip()
        git("checkout", "-q", "--detach", "later")
        assert log.head() == git("rev-parse", "later").decode().strip()
    (commit,) = commits_in(git(*log_words(10, "main")))
    assert (commit.message.strip(), commit.paths) == ("Begin\n\nwith a body", ("a.py",))
