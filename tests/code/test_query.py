"""Understanding a text: titles, tracebacks, paths, dotted names, code, messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.code.query import Mention, StackFrame, Zone, phrase, stem, tokens, understand

pytestmark = pytest.mark.spec("E2")

ISSUE = """\
Cart.total() is wrong for `gift_cards`
When I use GiftCard with the shop.cart module, total fails, see
https://github.com/o/shop/blob/abc123/shop/prices.py#L42 and src/app/views.py.

```python
from shop.cart import Cart, Item
cart = Cart()
cart.add_item(1)
```

Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/shop/cart.py", line 12, in total
    return rounded(x)
  File "/usr/lib/python3/site-packages/shop/prices.py", line 3, in rounded
    raise ValueError
ValueError: cannot round a price of type 'str' here
"""


def test_the_first_line_is_the_title():
    understood = understand("\n\n  # Prices are wrong \nmore text")
    assert understood.title == "Prices are wrong"
    assert "pric" in understood.words[Zone.TITLE]
    assert "pric" not in understood.words[Zone.PROSE]


def test_frames_come_as_they_are_printed():
    assert understand(ISSUE).frames == (
        StackFrame("/usr/lib/python3/site-packages/shop/cart.py", 12, "total"),
        StackFrame("/usr/lib/python3/site-packages/shop/prices.py", 3, "rounded"),
    )


def test_frames_are_found_as_pytest_prints_them():
    text = "x\n\ntests/test_a.py:5: \n_ _ _\napp/a.py:7: in total\n    return b()\n_ _\n\napp/b.py:3: KeyError\n"
    assert understand(text).frames == (
        StackFrame("tests/test_a.py", 5),
        StackFrame("app/a.py", 7, "total"),
        StackFrame("app/b.py", 3),
    )


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("x\nsee src/app/views.py please", Mention("src/app/views.py")),
        ("x\nin `views.py`", Mention("views.py")),
        ("x\nsrc/app.go:12:3: undefined: y", Mention("src/app.go", 12)),
        ("x\n    at run (lib/run.js:7:5)", Mention("lib/run.js", 7)),
        ("x\nhttps://github.com/o/r/blob/main/a/b.py#L4", Mention("a/b.py", 4, linked=True)),
        ("x\n--- a/lib/x.rb\n+++ b/lib/x.rb\n", Mention("lib/x.rb", linked=True)),
        ("x\nC:\\\\work\\\\a.py:3 failed", None),
    ],
)
def test_paths_are_found_however_they_are_written(text: str, mention: Mention | None):
    assert mention is None or mention in understand(text).mentions


def test_names_are_told_from_words():
    understood = understand(ISSUE)
    assert {"GiftCard", "gift_cards", "Cart", "add_item"} <= understood.names.keys()
    assert "fails" not in understood.names
    assert "gift_cards" in understood.ticked
    assert Zone.TITLE in understood.names["Cart"]


def test_dotted_names_and_imports_are_found():
    understood = understand(ISSUE)
    assert Zone.PROSE in understood.dotted["shop.cart"]
    assert ("shop.cart", ("Cart", "Item")) in understood.imports


def test_code_and_traces_are_told_from_prose():
    understood = understand(ISSUE)
    assert "add_item" in understood.words[Zone.CODE]
    assert "rounded" not in understood.words[Zone.PROSE]
    assert "round" in understood.words[Zone.TRACE]


def test_messages_are_found_and_what_was_filled_in_breaks_them():
    understood = understand(ISSUE)
    assert "cannot round a price of type 'str' here" in understood.messages
    assert phrase("cannot round a price of type 'str' here") == [["cannot", "round", "pric", "of"]]


def test_comments_of_templates_are_not_read():
    assert "template" not in understand("Title\n<!-- fill in this template -->\nbody").words[Zone.PROSE]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("QuerySet", ("queryset", "queri", "set")),
        ("get_HTTPResponse2", ("get_httpresponse2", "get", "http", "respons")),
        ("models", ("model",)),
        ("_secret", ("secret",)),
        ("self", ()),
        ("x" * 100, ()),
    ],
)
def test_an_identifier_is_found_by_itself_and_by_its_parts(word: str, expected: tuple[str, ...]):
    assert tokens(word) == expected


@pytest.mark.parametrize(
    "words", [("cache", "cached", "caches", "caching"), ("query", "queries"), ("stop", "stopped", "stopping")]
)
def test_forms_of_a_word_share_their_stem(words: tuple[str, ...]):
    assert len({stem(word) for word in words}) == 1


@given(st.text(max_size=400))
def test_any_text_is_understood_the_same_way_twice(text: str):
    assert understand(text) == understand(text)


def test_a_text_without_end_is_understood_quickly():
    for text in ("a." * 200_000, "`" * 100_000, "((" * 100_000, 'File "' * 50_000, "x/" * 100_000, "A" * 300_000):
        understand(text)


REPORT = """\
Colours are lost
### Bug summary
The legend forgets its colours.

- [x] I have searched the tracker

### Environment
Operating system: Darwin

```
# a comment of the shell
libpng 1.6
```

**Expected outcome**
They are kept.

<details><summary>Output of show_versions()</summary>
commit: none
numpy: 1.2
</details>
Perhaps a renderer does it.
"""


def test_what_somebody_uses_and_the_headings_of_a_template_tell_nothing():
    understood = understand(REPORT)
    said = {word for zone in Zone for word in understood.words[zone]}
    assert {"legend", "forget", "kept", "renderer"} <= said
    assert said.isdisjoint({"darwin", "libpng", "comment", "numpi", "summari", "outcom", "track", "search"})


def test_a_heading_about_versions_ends_with_the_next_heading():
    understood = understand("Crash\n## Version\n3.2 hinge\n## The lever\nIt breaks the axle.")
    assert "axle" in understood.words[Zone.PROSE]
    assert "hing" not in understood.words[Zone.PROSE]


def test_a_heading_within_code_is_a_comment():
    understood = understand("Crash\n```\n# Environment\nopen_valve()\n```\n")
    assert "open_valve" in understood.names


def test_a_title_about_a_version_is_kept():
    assert "version" in understand("# Version lever\nmore").title.lower()
    assert "lever" in understand("# Version lever\nmore").words[Zone.TITLE]


@pytest.mark.parametrize(
    "line",
    [
        "from shop.cart import Cart",
        "class Outer(models.Model):",
        "def total(self):",
        "cart = Cart(items)",
        "cart.total()",
        "@property",
        "const total = cart.total();",
    ],
)
def test_a_statement_is_code_though_nobody_marked_it(line: str):
    understood = understand(f"Title\nHere it goes wrong:\n{line}\nand that is all.")
    assert not understood.words[Zone.PROSE].keys() - {"goe", "wrong"}
    assert understood.words[Zone.CODE] or line == "@property"


@pytest.mark.parametrize("line", ["if you add one, it fails:", "import fails with an error", "class names are wrong"])
def test_a_sentence_is_no_statement(line: str):
    understood = understand(f"Title\n{line}")
    assert understood.words[Zone.PROSE]
    assert not understood.words[Zone.CODE]
