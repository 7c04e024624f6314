"""A key that is configured is taken out wherever it stands, in whatever form."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core import redact
from pawl.core.redact import MARK, Redactor, redacted, register

pytestmark = pytest.mark.spec("B13")

KEY = 'plain words/with "signs"+and ünicode\\'

FORMS = {
    "as it is": KEY,
    "in JSON": json.dumps(KEY)[1:-1],
    "in JSON with its own letters": json.dumps(KEY, ensure_ascii=False)[1:-1],
    "in JSON of PHP": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "as Python shows it": repr(KEY)[1:-1],
    "in a path": quote(KEY),
    "in a query": quote(KEY, safe=""),
    "in a query with small digits": re.sub("%..", lambda found: found[0].lower(), quote(KEY, safe="")),
    "in a form": quote_plus(KEY),
    "in hexadecimal": KEY.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_registered_value_is_hidden(form: str) -> None:
    text = f"before {FORMS[form]} after"
    assert Redactor([KEY]).redacted(text) == f"before {MARK} after"
    assert Redactor().redacted(text) == text


@pytest.mark.parametrize("before", ["", "u", "me", "user:", "a:b:c", "seven b"])
@pytest.mark.parametrize("after", ["", "x", "yz", "more of it"])
def test_a_registered_value_is_hidden_in_base_64_wherever_it_starts(before: str, after: str) -> None:
    text = base64.b64encode(f"{before}{KEY}{after}".encode()).decode()
    for form in (text, text.replace("+", "-").replace("/", "_")):
        shown = Redactor([KEY]).redacted(f"x {form} y")
        assert MARK in shown
        # What is left are the ends, which the neighbours of the value decide as well.
        assert len(shown) <= len("x  y") + len(MARK) + (len(before) + len(after)) * 4 // 3 + 8


@pytest.mark.parametrize(
    "value", ["", "ollama", "none", "lm-studio", "not-needed", "your-api-key", "changeme", "1234567"]
)
def test_a_word_that_people_write_for_no_key_is_left_alone(value: str) -> None:
    text = f"{value} is said here"
    assert Redactor([value]).redacted(text) == text


def test_a_value_that_holds_another_is_hidden_whole() -> None:
    assert Redactor(["first-Value-1", "first-Value-1-and-more"]).redacted("a first-Value-1-and-more b") == f"a {MARK} b"


def test_what_is_registered_holds_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "PROCESS", Redactor())
    text = "the words correct horse battery staple"
    assert redacted(text) == text
    register("correct horse battery staple")
    assert redacted(text) == f"the words {MARK}"
    assert redact.PROCESS.knows(text)
    assert not redact.PROCESS.knows("the words")


@given(st.text(min_size=16), st.text(), st.text())
def test_no_value_comes_through(value: str, before: str, after: str) -> None:
    redactor = Redactor([value])
    shown = redactor.redacted(before + value + after)
    if redactor.knows(value):
        assert value not in shown.replace(MARK, "")
    assert redactor.redacted(shown) == shown or value in MARK
