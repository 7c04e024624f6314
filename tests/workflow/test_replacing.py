"""A function of an answer takes the place of the one in a script, by what the parser says that both define."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pawl.agent.attempts import Definitions, holding, places_of, replaced, text_of
from pawl.code.languages import languages
from pawl.code.parsers import Parsers
from pawl.core.code import Definition

SOURCE = """\
const fs = require('fs');

/** The next one. */
export const next = (x) => {
  const inner = () => x + 2;
  return inner();
};

class Year {
  static leap(n) {
    return n % 4 === 0;
  }
}

const table = {
  half(x) {
    return x / 3;
  },
};

module.exports = { one: (x) => x, two: (x) => x };
"""


@pytest.fixture(scope="module")
def definitions() -> Iterator[Definitions]:
    with Parsers() as parsers:

        def found(text: str) -> Sequence[Definition]:
            return parsers.parse(text.encode(), languages()["javascript"]).definitions

        yield found


def test_the_outermost_functions_that_have_their_lines_for_themselves_are_places(definitions: Definitions):
    places = places_of("a.js", SOURCE, definitions(SOURCE))
    assert [(one.name, one.first, one.last, one.indent) for one in places] == [
        ("next", 4, 7, 0),
        ("leap", 10, 12, 2),
        ("half", 16, 18, 2),
    ]
    found = holding(places, 5)
    assert found is not None and text_of(found, SOURCE).startswith("export const next")


def test_a_function_is_replaced_with_what_it_needs_and_stays_exported(definitions: Definitions):
    place = places_of("a.js", SOURCE, definitions(SOURCE))[0]
    answer = (
        "So:\n```javascript\nconst step = 1;\nfunction next(x) {\n  return x + step;\n}\nconst shown = next(3);\n```"
    )
    old = "export const next = (x) => {\n  const inner = () => x + 2;\n  return inner();\n};"
    new = "const step = 1;\n\nexport function next(x) {\n  return x + step;\n}"
    assert replaced(place, SOURCE, answer, definitions) == SOURCE.replace(old, new)


def test_a_method_keeps_its_place_and_its_comma(definitions: Definitions):
    half = places_of("a.js", SOURCE, definitions(SOURCE))[2]
    made = replaced(half, SOURCE, "```js\nconst t = {\n  half(x) {\n    return x / 2;\n  }\n};\n```", definitions)
    assert made == SOURCE.replace("x / 3", "x / 2")


@pytest.mark.parametrize("answer", ["", "I cannot.", "```js\nconst other = () => 1;\n```"])
def test_an_answer_without_the_function_is_none(definitions: Definitions, answer: str):
    place = places_of("a.js", SOURCE, definitions(SOURCE))[0]
    assert replaced(place, SOURCE, answer, definitions) is None
