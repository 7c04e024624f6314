"""Context packs: prior attempts, then signatures, then bodies; whole lines, within the budget, the same bytes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import Folder, Shelf

from pawl.code.bundle import ATTEMPTS, DETAILS, EXCERPTS, FILES, pack, redacted_lines
from pawl.code.code_model import Definition, DefinitionKind, Excerpt, FileOutline, Hit, PackFile, PackRequest, Query
from pawl.code.librarian import gathered
from pawl.code.outline import SourceOutliner, repository_outline
from pawl.core.errors import UsageError
from pawl.core.text import CHARACTERS_PER_TOKEN
from pawl.settings.guardrails import preset

pytestmark = pytest.mark.spec("A9")

GUARDRAILS = preset("standard")
SOURCE = '''\
"""Prices."""

LIMIT = 3


class Cart:
    def __init__(self, prices):
        self.prices = prices

    def total(self):
        return sum(self.prices)


def mean(prices):
    """The middle."""
    return sum(prices) / len(prices)
'''


def definition(name: str, start: int, end: int, depth: int = 0) -> Definition:
    return Definition(
        kind=DefinitionKind.METHOD if depth else DefinitionKind.FUNCTION,
        name=name,
        qualified=name,
        start=start,
        line=start,
        end=end,
        depth=depth,
        signature=f"def {name}()",
    )


def hit(path: str, *symbols: Definition, reasons: tuple[str, ...] = ()) -> Hit:
    return Hit(path=path, score=1.0, reasons=reasons, symbols=symbols)


def file(path: str, count: int, *definitions: Definition) -> PackFile:
    return PackFile(path=path, lines=tuple(f"line {n} of {path}" for n in range(1, count + 1)), definitions=definitions)


def test_a_pack_of_a_real_file_shows_what_was_tried_then_signatures_then_bodies():
    folder = Folder({"cart.py": SOURCE.encode(), "notes.md": b"about total\nand more\n"})
    outliner = SourceOutliner(GUARDRAILS)
    hits = tuple(Shelf(folder, outliner).locate(Query(text="total"), 5))
    files = gathered(hits, folder, outliner, GUARDRAILS)
    outliner.close()
    made = pack(PackRequest(budget=800, hits=hits, files=files, attempts=("Tried sorting.\nIt still fails.",)))
    assert made.text == (
        "# Prior attempts\nTried sorting.\nIt still fails.\n\n"
        "# Files, the likeliest first\n"
        "cart.py (16 lines): holds a word\n"
        "  3: LIMIT = 3\n"
        "  6-11: class Cart\n"
        "    7-8: def __init__(self, prices)\n"
        "    10-11: def total(self)\n"
        "  14-16: def mean(prices)\n"
        "notes.md (2 lines): holds a word\n\n"
        "# Excerpts\n"
        "## cart.py\n"
        "     … | [lines 1 to 9 left out]\n"
        "    10 |     def total(self):\n"
        "    11 |         return sum(self.prices)\n"
        "     … | [lines 12 to 16 left out]\n"
        "## notes.md\n"
        "     1 | about total\n"
        "     2 | and more"
    )
    assert made.excerpts == (Excerpt(path="cart.py", start=10, end=11), Excerpt(path="notes.md", start=1, end=2))
    assert made.listed == ("cart.py", "notes.md") and made.left_out == 0


def test_a_function_is_shown_by_its_code_a_long_class_by_its_head_and_a_short_one_whole():
    source = (
        'class Shop:\n    """Sells.\n\n    One.\n    Two.\n    """\n\n    def price(self):\n        """What it costs.\n'
        '\n        One.\n        Two.\n        """\n        return self.base * 2\n'
    )
    long = source + "\n    MORE = {\n" + "".join(f"        {number}: 0,\n" for number in range(60)) + "    }\n"
    assert _shown(source) == [(1, 2), (6, 14)]
    assert _shown(long) == [(1, 2), (6, 9), (13, 14)]


def test_of_a_definition_without_room_for_its_head_nothing_is_shown():
    source = (
        f'def price(self):\n    """What {"it costs " * 90}\n\n    One.\n    Two.\n    """\n    return 1\n\n\nx = 1\n'
    )
    assert _shown(source, budget=200) == []


def _shown(source: str, budget: int = 800) -> list[tuple[int, int]]:
    folder, outliner = Folder({"shop.py": source.encode()}), SourceOutliner(GUARDRAILS)
    (read,) = gathered((hit("shop.py"),), folder, outliner, GUARDRAILS)
    outliner.close()
    found = [one for one in read.definitions if one.kind not in DETAILS]
    made = pack(PackRequest(budget=budget, hits=(hit("shop.py", *found),), files=(read,)))
    return [(one.start, one.end) for one in made.excerpts]


def test_a_file_that_holds_secrets_is_neither_shown_nor_named():
    folder = Folder({".env": b"KEY=1\n", "app.py": b"x = 1\n", "keys/server.pem": b"x\n"})
    outliner = SourceOutliner(GUARDRAILS)
    hits = (hit(".env"), hit("keys/server.pem"), hit("app.py"), hit("gone.py"))
    files = gathered(hits, folder, outliner, GUARDRAILS)
    outliner.close()
    made = pack(PackRequest(budget=400, hits=hits, files=files))
    assert "x = 1" in made.text and ".env" not in made.text and "server.pem" not in made.text


def test_a_secret_in_a_file_is_taken_out_and_the_line_numbers_stay():
    body = "\n".join(f"{'aB3xYz09' * 8}" for _ in range(6))
    text = f"first\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nlast\npassword = 'Zq8vT3xLm2RpW9'\n"
    lines = text.splitlines()
    clean = redacted_lines(lines)
    assert len(clean) == len(lines)
    assert (clean[0], clean[9]) == ("first", "last")
    assert not any("aB3x" in line or "Zq8v" in line for line in clean)


def test_one_large_body_does_not_take_the_room_of_the_others():
    large, small = definition("large", 1, 2000), definition("small", 5, 8)
    request = PackRequest(
        budget=1000,
        hits=(hit("a.py", large), hit("b.py", small)),
        files=(file("a.py", 2000, large), file("b.py", 20, small)),
    )
    made = pack(request)
    assert Excerpt(path="b.py", start=5, end=8) in made.excerpts
    first = made.excerpts[0]
    assert (first.path, first.start) == ("a.py", 1) and 3 <= first.end < 2000
    assert f"[lines {first.end + 1} to 2000 left out]" in made.text
    assert made.tokens > 800  # what the small one does not need is used


def test_prior_attempts_come_first_and_leave_half_of_the_room():
    attempts = tuple(f"attempt {n} failed because of {'x' * 40}" for n in range(100))
    body = definition("f", 1, 5)
    made = pack(PackRequest(budget=300, hits=(hit("a.py", body),), files=(file("a.py", 9, body),), attempts=attempts))
    assert made.text.startswith(f"{ATTEMPTS}\nattempt 0 failed")
    assert re.search(r"^\[… \d+ more lines\]$", made.text, re.MULTILINE)
    assert made.text.index(ATTEMPTS) < made.text.index(FILES) < made.text.index(EXCERPTS)
    assert made.excerpts == (Excerpt(path="a.py", start=1, end=5),)


def test_more_files_than_fit_are_counted():
    hits = tuple(hit(f"folder/{n:03}.py") for n in range(300))
    made = pack(PackRequest(budget=200, hits=hits, files=tuple(file(one.path, 3) for one in hits)))
    assert 0 < len(made.listed) < 300 and made.left_out == 300 - len(made.listed)
    assert f"[… {made.left_out} more files]" in made.text


def test_a_budget_without_room_is_refused():
    with pytest.raises(UsageError):
        pack(PackRequest(budget=199, hits=(), files=()))


NAMES = st.text("abcdef/_", min_size=1, max_size=30)


@st.composite
def requests(draw) -> PackRequest:
    hits, files = [], []
    for path in draw(st.lists(NAMES, max_size=8, unique=True)):
        lines = tuple(draw(st.lists(st.text("ab \t#é", max_size=120), max_size=60)))
        starts = draw(st.lists(st.integers(1, 70), max_size=6))
        symbols = [definition(f"f{n}", start, start + draw(st.integers(0, 40))) for n, start in enumerate(starts)]
        hits.append(hit(path, *symbols, reasons=tuple(draw(st.lists(st.text(max_size=60), max_size=3)))))
        files.append(PackFile(path=path, lines=lines, definitions=tuple(sorted(symbols, key=lambda one: one.start))))
    return PackRequest(
        budget=draw(st.integers(200, 1500)),
        hits=tuple(hits),
        files=tuple(draw(st.permutations(files))),
        attempts=tuple(draw(st.lists(st.text("ab\n", max_size=400), max_size=4))),
    )


@given(requests())
def test_a_pack_never_takes_more_than_its_budget_and_cuts_no_line(request: PackRequest):
    made = pack(request)
    assert len(made.text) <= request.budget * CHARACTERS_PER_TOKEN
    assert made == pack(request)
    known = {one.path: one.lines for one in request.files}
    shown = made.text.split("\n")
    for excerpt in made.excerpts:
        for number in range(excerpt.start, excerpt.end + 1):
            assert f"{number:>6} | {known[excerpt.path][number - 1]}" in shown


def outlined(path: str, *names: str) -> FileOutline:
    return FileOutline(
        path=path,
        language="python",
        lines=10 * len(names),
        definitions=tuple(definition(name, 10 * place + 1, 10 * place + 9) for place, name in enumerate(names)),
    )


def test_the_outline_of_a_repository_shows_the_most_used_definitions_first():
    files = [outlined("a/rare.py", "rare"), outlined("z/core.py", "spend", "Bank"), outlined("m.py", "get", "other")]
    text = repository_outline(files, {"Bank": 90, "spend": 40, "rare": 1}, budget=200, guardrails=GUARDRAILS)
    assert text.split("\n")[:3] == ["z/core.py", "  1: def spend()", "  11: def Bank()"]
    assert text.index("z/core.py") < text.index("a/rare.py") < text.index("m.py")


def test_an_outline_never_names_a_secret():
    text = repository_outline([outlined(".env", "KEY"), outlined("a.py", "f")], {}, budget=200, guardrails=GUARDRAILS)
    assert "a.py" in text and ".env" not in text


@pytest.mark.parametrize("budget", [200, 300, 1000, 4000, 40_000])
def test_the_outline_degrades_with_the_budget_and_keeps_the_most_used(budget: int):
    files = [outlined(f"package/module_{n:03}.py", *(f"name_{n}_{k}" for k in range(8))) for n in range(400)]
    uses = {f"name_{n}_{k}": (n * 7 + k) % 1000 for n in range(400) for k in range(8)}
    text = repository_outline(files, uses, budget=budget, guardrails=GUARDRAILS)
    assert len(text) <= budget * CHARACTERS_PER_TOKEN
    assert text == repository_outline(list(reversed(files)), uses, budget=budget, guardrails=GUARDRAILS)
    most = max(uses, key=lambda name: (uses[name], name))
    assert f"def {most}()" in text
    assert ("more files]" in text) is (budget < 40_000)


@given(st.integers(0, 400), st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=6)), max_size=12))
def test_an_outline_never_takes_more_than_its_budget(budget: int, given_files: list):
    files = [outlined(path, *names) for path, names in given_files]
    text = repository_outline(files, {"a": 3}, budget=budget, guardrails=GUARDRAILS)
    assert len(text) <= budget * CHARACTERS_PER_TOKEN
