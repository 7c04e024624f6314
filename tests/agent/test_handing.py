"""What the librarian hands over to a question or a run before a model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from world import lay

from pawl.agent.briefing import (
    HEAD,
    OUTLINE_HEAD,
    BundleSubject,
    environment_line,
    failing_text,
    handed_over,
    read_ahead,
)
from pawl.agent.escalation import LoopWish, loop_order
from pawl.agent.session import Session
from pawl.agent.tools.toolbox import ToolSession
from pawl.core.diagnostic import Diagnostic, Location
from pawl.core.run import Approval, Intent, Mode, RunRequest
from pawl.core.tiers import Escalation, Tier, TierMode
from pawl.workspace.project import Project, new_run_id

pytestmark = pytest.mark.spec("E2")

SECRET = "ghp_" + "a1B2" * 9
FILES = {
    **{f"shop/part{number}.py": f"def part{number}():\n    return {number}\n" for number in range(8)},
    "shop/prices.py": f"def rounded(price):\n    return round(price, 1)\n\n\nKEY = '{SECRET}'\n",
    "shop/mail.py": "def send_receipt(address):\n    return bool(address)\n",
}


@pytest.fixture
def larger(shop: Project) -> Project:
    lay(Path(shop.workspace), {name: text.encode() for name, text in FILES.items()})
    return shop


def told(shop: Project, request: str, **more: object) -> Sequence[str]:
    with ToolSession(shop) as desk:
        read = tuple(read_ahead(desk.files, request))
        return handed_over(shop, desk.files, BundleSubject(request=request, read=read, **more))


def test_the_code_that_is_meant_is_handed_over_within_the_budget_and_the_same_each_time(larger: Project):
    (text,) = told(larger, "prices are rounded to the wrong digit")
    assert text.startswith(HEAD) and "shop/prices.py" in text
    assert "     1 | def rounded(price):" in text
    assert SECRET not in text
    assert len(text) <= len(HEAD) + 1 + 4 * larger.config.settings.context_tokens
    assert told(larger, "prices are rounded to the wrong digit") == (text,)


def test_what_fails_and_what_was_tried_comes_with_it(larger: Project):
    finding = Diagnostic(tool="pytest", message="x", test="t", frames=(Location(path="shop/mail.py", line=2),))
    (text,) = told(larger, "it is wrong", findings=(finding,), attempts=("- run r1: the tests fail",))
    assert text.index("- run r1: the tests fail") < text.index("shop/mail.py")
    assert "failing tests run through it" in text


def test_once_something_was_changed_what_failed_before_is_told_by_name_alone():
    found = [Diagnostic(tool="pytest", message="assert 1 == 2", test=f"test_a.py::test_{name}") for name in "bbc"]
    assert "assert 1 == 2" in failing_text(found)
    assert failing_text(found, named=True).splitlines()[1:] == ["- test_a.py::test_b", "- test_a.py::test_c"]


AT = "    at a.py:12, from b.py:7, from test_a.py:3"


def test_of_a_failing_test_the_last_places_are_told_where_it_came_to_an_end():
    frames = tuple(Location(path=path, line=line) for path, line in (("test_a.py", 3), ("b.py", 7), ("a.py", 12)))
    found = [Diagnostic(tool="unittest", message="ValueError: no", test="test_a.Test.test_b", frames=frames)]
    assert failing_text(found).splitlines()[1:] == ["- test_a.Test.test_b", "    ValueError: no", AT]
    deep = [replace(found[0], frames=(Location(path="test_a.py", line=1), *frames[1:], *frames[2:]))]
    assert failing_text(deep).splitlines()[-1] == "    at a.py:12, from b.py:7"


def test_a_request_that_fits_nothing_gets_the_outline(larger: Project):
    (text,) = told(larger, "zzzz qqqq")
    assert text.startswith(OUTLINE_HEAD) and "shop/prices.py" in text


def test_nothing_is_handed_over_where_the_user_names_the_file_or_wants_nothing(larger: Project, site):
    assert told(larger, "fix shop/prices.py", named=("shop/prices.py",)) == ()
    assert told(larger, "fix it", named=("shop/nowhere.py",)) != ()
    with site.open(context_tokens=0) as off:
        assert told(off, "prices are rounded") == ()


def test_of_a_long_file_that_is_named_come_its_definitions_and_what_is_meant(larger: Project):
    parts = "".join(f"def part{number}():\n    return {number}\n\n\n" for number in range(150))
    meant = "def discount(price):\n    return price * 2\n"
    lay(Path(larger.workspace), {"shop/long.py": (parts + meant).encode()})
    (text,) = told(larger, "the discount in shop/long.py is wrong", named=("shop/long.py",))
    assert text.split("\n")[2].startswith("shop/long.py (602 lines)")
    assert "   602 |     return price * 2" in text


TESTS = """\
from shop.prices import rounded


@mark
def test_rounded(
    client,
) -> None:
    assert rounded(1.25) == 1.25


def test_rounded_up():
    assert rounded(1.26) == 1.3
"""
SCRIPT = """\
describe("the list", () => {
  it("is empty at first", () => {
    expect(list).toEqual([]);
  });
  it("grows", () => {});
});
"""


def test_of_tests_that_are_named_come_these_and_the_code_that_they_are_about(larger: Project):
    lay(Path(larger.workspace), {"tests/test_prices.py": TESTS.encode(), "src/list.test.ts": SCRIPT.encode()})
    words = "make tests/test_prices.py::test_rounded pass"
    (text,) = told(larger, words, named=("tests/test_prices.py",))
    assert "## shop/prices.py" in text and "test_prices.py (" not in text
    with ToolSession(larger) as desk:
        assert read_ahead(desk.files, words) == ["tests/test_prices.py:4-8"]
        for dotted in ("tests.test_prices.Prices.test_rounded", "test_prices.test_rounded"):
            assert read_ahead(desk.files, f"{dotted} fails.") == ["tests/test_prices.py:4-8"]
        assert read_ahead(desk.files, "tests.test_none.test_rounded fails after shop.mail.send") == []
        assert read_ahead(desk.files, "tests/test_prices.py fails") == ["tests/test_prices.py"]
        named = "src/list.test.ts > the list > is empty at first fails"
        assert read_ahead(desk.files, named) == ["src/list.test.ts:2-4"]


def test_what_a_named_test_uses_comes_before_what_only_has_its_words(larger: Project):
    tests = b"from shop.mail import send_receipt\n\n\ndef test_digits_of_prices():\n    assert send_receipt('a')\n"
    lay(Path(larger.workspace), {"tests/test_all.py": tests})
    (text,) = told(larger, "tests/test_all.py::test_digits_of_prices fails", named=("tests/test_all.py",))
    assert "     1 | def send_receipt(address):" in text
    assert text.index("shop/mail.py (") < text.index("shop/prices.py (")


def test_a_long_file_of_tests_that_is_named_is_among_the_files_however_many_fit_better(larger: Project):
    other = {f"shop/rounded{number}.py": b"def rounded(price):\n    return round(price)\n" for number in range(9)}
    long = "".join(f"def test_{number}():\n    assert {number}\n\n\n" for number in range(150))
    lay(Path(larger.workspace), {**other, "tests/test_all.py": long.encode()})
    (text,) = told(larger, "rounded price: mend tests/test_all.py", named=("tests/test_all.py",))
    assert text.split("\n")[2].startswith("tests/test_all.py (600 lines)")


def test_of_a_few_files_nothing_is_handed_over(shop: Project):
    assert told(shop, "greet says the wrong name") == ()


@pytest.mark.spec("B4")
def test_an_answer_rests_on_what_was_handed_over(larger: Project, tmp_path: Path):
    script = tmp_path / "script.toml"
    script.write_text('[[turn]]\nanswer = "In shop/prices.py:1."\n[[turn]]\nanswer = "Still there."\n')

    def answer() -> str:
        larger.run_id = new_run_id()
        order = RunRequest(
            text="how are prices rounded?", mode=Mode.CHAT, intent=Intent.READ, model=f"scripted:{script}"
        )
        return Session(larger).do(order).answer

    assert [answer(), answer()] == ["In shop/prices.py:1.", "In shop/prices.py:1."]
    (Path(larger.workspace) / "shop/prices.py").write_text("def rounded(price):\n    return price\n")
    # Asked anew, and a script begins with its first turn.
    assert larger.store.requests.records(larger.workspace)[-1].ended == "end"
    before = len(larger.store.requests.records(larger.workspace))
    answer()
    assert len(larger.store.requests.records(larger.workspace)) == before + 1


def test_a_run_is_told_once_and_the_same_throughout(larger: Project, tmp_path: Path):
    script = tmp_path / "script.toml"
    script.write_text('[[turn]]\nanswer = "I leave it as it is."\n')
    order = RunRequest(text="add a currency to the prices", model=f"scripted:{script}", approval=Approval.NEVER)
    report = Session(larger).do(order)
    told_first = larger.store.runs.value(report.run, "told")
    assert isinstance(told_first, list) and "shop/prices.py" in told_first[-1]


@pytest.mark.whole
def test_files_that_pawl_lists_are_not_named_by_the_user_who_still_gets_the_code_he_means(
    larger: Project, tmp_path: Path
):
    test = "from shop.mail import send_receipt\n\n\ndef test_sent():\n    assert send_receipt(''), 'see shop/mail.py'\n"
    lay(Path(larger.workspace), {"tests/test_mail.py": test.encode(), "conftest.py": b""})
    script = tmp_path / "script.toml"
    match = 'match = { system_regex = "(?s)may be about.*def rounded" }'
    script.write_text(f'[[turn]]\n{match}\nanswer = "I leave it as it is."\ntimes = 0\n')
    wish = LoopWish(objective="prices are rounded to the wrong digit", model=f"scripted:{script}")
    tier = Tier(name="simple", mode=TierMode.SIMPLE, iterations=1)
    report = Session(larger).do(loop_order(wish, Escalation(tiers=(tier,))))
    (made,) = report.climb.attempts
    assert (made.said, made.refused) == ("I leave it as it is.", ("nothing was changed",))


@pytest.mark.spec("A2")
def test_tasks_in_another_language_follow_its_imports(shop: Project):
    from pawl.code.librarian import workspace_import_graph

    lay(
        Path(shop.workspace),
        {
            "web/cart.ts": b'import { round } from "./prices";\nexport const total = () => round(1);\n',
            "web/prices.ts": b"export const round = (x: number) => x;\n",
            "web/app.ts": b'import { total } from "./cart";\ntotal();\n',
        },
    )
    graph = workspace_import_graph(shop)
    assert graph.order(["web/app.ts", "web/cart.ts", "web/new.ts", "web/prices.ts"]) == (
        "web/prices.ts", "web/cart.ts", "web/app.ts", "web/new.ts",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ({"package.json": b'{"devDependencies": {"vitest": "3"}, "scripts": {"test": "vitest"}}'}, "vitest run"),
        ({"package.json": b'{"scripts": {"test": "node --test"}}', "a.test.js": b""}, "node --test"),
        ({"test_a.py": b"def test_a():\n    pass\n"}, "-m pytest"),
        ({"notes.md": b"nothing to test"}, None),
    ],
)
def test_a_model_is_told_how_the_tests_run_also_where_no_file_says_so(shop: Project, files, tests: str | None):
    lay(Path(shop.workspace), files)
    line = environment_line(shop)
    assert (f"{tests}" in line and "tests: `" in line) if tests else "tests:" not in line
