"""`pawl locate`: the files and definitions of an issue, for a person and for a program."""

from __future__ import annotations

import json
import subprocess

import pytest
from ui.cli.console import Pawl
from ui.cli.projects import Project

pytestmark = pytest.mark.spec("E2")

FILES = {
    "shop/cart.py": "class Cart:\n    def total(self):\n        return 0\n",
    "shop/mail.py": "def send_receipt(customer):\n    return customer\n",
    "tests/test_cart.py": "from shop.cart import Cart\n\ndef test_total():\n    assert Cart().total() == 0\n",
}


@pytest.fixture
def shop(project: Project) -> Pawl:
    return project(FILES)


def test_a_program_gets_one_json_object_as_the_last_line(shop: Pawl):
    said = shop("locate", "--json", "-C", str(shop.workspace), "Cart.total is wrong")
    assert said.code == 0
    body = json.loads(said.lines[-1])
    first = body["files"][0]
    assert first["path"] == "shop/cart.py"
    assert first["score"] > 0
    assert first["reasons"]
    assert first["symbols"][0] == {"name": "Cart.total", "kind": "method", "line": 2, "start": 2, "end": 3}


def test_a_person_sees_files_reasons_and_symbols(shop: Pawl):
    said = shop("locate", "--workspace", str(shop.workspace), "--symbols", "--top", "1", "the receipt is lost")
    assert said.code == 0
    assert "shop/mail.py" in said.out
    assert "shop/mail.py:1  function send_receipt" in said.out
    assert "shop/cart.py" not in said.out


def test_the_issue_can_come_from_a_file_or_a_pipe(shop: Pawl):
    issue = shop.workspace.parent / "issue.md"
    issue.write_text("Receipts are lost\n\n`send_receipt` does nothing\n")
    here = ("-C", str(shop.workspace))
    for said in (
        shop("locate", *here, "--issue-file", str(issue)),
        shop("locate", *here, stdin=issue.read_bytes()),
        shop("locate", *here, "--issue-file", "-", stdin=issue.read_bytes()),
    ):
        assert said.code == 0
        assert "shop/mail.py" in said.lines[0]


def test_the_second_answer_is_the_first(shop: Pawl):
    words = ("locate", "--json", "-C", str(shop.workspace), "Cart.total is wrong")
    assert shop(*words).out == shop(*words).out


REPORT = """\
=================================== FAILURES ===================================
__________________________ test_the_total_of_no_cart ___________________________
tests/test_cart.py:4: in test_the_total_of_no_cart
    assert cart_total(cart) == 0
shop/cart_total.py:5: in cart_total
    return ratio(cart, cart.total)
shop/sums.py:2: in ratio
    return part / whole
E   ZeroDivisionError: division by zero
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_the_total_of_no_cart - ZeroDivisionError: div...
1 failed in 0.01s
"""


def test_the_file_where_a_test_failed_comes_before_its_callers(project: Project):
    cart_total = (
        '"""The total of a cart."""\nfrom shop.sums import ratio\n\ndef cart_total(cart):\n    return ratio(cart)\n'
    )
    pawl = project(
        {
            **FILES,
            "shop/cart_total.py": cart_total,
            "shop/sums.py": "def ratio(part, whole):\n    return part / whole\n",
        }
    )
    said = pawl("locate", "--json", "-C", str(pawl.workspace), stdin=REPORT.encode())
    files = json.loads(said.out)["files"]
    assert [one["path"] for one in files[:2]] == ["shop/sums.py", "shop/cart_total.py"]
    assert "failing tests run through it" in files[0]["reasons"]


def test_tests_can_be_left_out(shop: Pawl):
    words = ("locate", "--json", "-C", str(shop.workspace), "test_total of Cart fails")
    assert "tests/test_cart.py" in shop(*words).out
    assert "tests/test_cart.py" not in shop(*words, "--no-tests").out


@pytest.mark.parametrize(
    "words",
    [
        ["-C", ".", ""],
        ["-C", ".", "   "],
        ["-C", "."],
        ["-C", ".", "--issue-file", "nowhere.md"],
        ["-C", ".", "--issue-file", "."],
        ["-C", ".", "--issue-file", "a.md", "text"],
        ["-C", "nowhere", "text"],
        ["-C", "shop/cart.py", "text"],
        ["-C", ".", "--top", "0", "text"],
    ],
)
def test_a_wrong_request_is_told_and_ends_with_42(shop: Pawl, words: list[str]):
    said = shop("locate", *words, cwd=shop.workspace)
    assert said.code == 42
    assert said.err.startswith("pawl: ")
    assert said.out == ""


def test_binary_input_is_refused_from_a_file_and_from_a_pipe(shop: Pawl):
    data = b"\x7fELF\0\0cart total"
    (shop.workspace / "a.bin").write_bytes(data)
    here = ("locate", "-C", str(shop.workspace))
    for said in (shop(*here, stdin=data), shop(*here, "--issue-file", str(shop.workspace / "a.bin"))):
        assert said.code == 42 and "is binary" in said.err


def test_a_wrong_request_is_json_for_a_program(shop: Pawl):
    said = shop("locate", "--json", "-C", str(shop.workspace), "")
    assert said.code == 42
    assert json.loads(said.lines[-1])["exit_code"] == 42


def test_the_commits_of_a_repository_are_asked_unless_not_wanted(shop: Pawl):
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=shop.workspace, check=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "Begin")
    (shop.workspace / "shop/mail.py").write_text("def send_receipt(customer):\n    return None\n")
    git("commit", "-qam", "Invoices are sent in the right currency")
    here = ("-C", str(shop.workspace), "--json", "currency of invoices")
    with_commits = json.loads(shop("locate", *here).lines[-1])["files"]
    assert with_commits[0]["path"] == "shop/mail.py"
    assert json.loads(shop("locate", *here, "--no-history").lines[-1])["files"] == []
