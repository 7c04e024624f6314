"""A function of an answer takes the place of the one in a script, by what the parser says that both define."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import FolderFiles

from pawl.agent.function_text import Sources, holding, text_of

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


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[Sources]:
    (tmp_path / "a.js").write_text(SOURCE)
    with Sources(FolderFiles(tmp_path)) as found:
        yield found


def test_the_outermost_functions_that_have_their_lines_for_themselves_are_places(sources: Sources):
    places = sources.functions("a.js")
    assert [(one.name, one.first, one.last, one.indent) for one in places] == [
        ("next", 4, 7, 0),
        ("leap", 10, 12, 2),
        ("half", 16, 18, 2),
    ]
    found = holding(places, 5)
    assert found is not None and text_of(found, SOURCE).startswith("export const next")


def test_a_function_is_replaced_with_what_it_needs_and_stays_exported(sources: Sources):
    place = sources.functions("a.js")[0]
    answer = (
        "So:\n```javascript\nconst step = 1;\nfunction next(x) {\n  return x + step;\n}\nconst shown = next(3);\n```"
    )
    old = "export const next = (x) => {\n  const inner = () => x + 2;\n  return inner();\n};"
    new = "const step = 1;\n\nexport function next(x) {\n  return x + step;\n}"
    assert sources.rewritten(place, answer) == SOURCE.replace(old, new)


def test_a_method_keeps_its_place_and_its_comma(sources: Sources):
    half = sources.functions("a.js")[2]
    made = sources.rewritten(half, "```js\nconst t = {\n  half(x) {\n    return x / 2;\n  }\n};\n```")
    assert made == SOURCE.replace("x / 3", "x / 2")


@pytest.mark.parametrize("answer", ["", "I cannot.", "```js\nconst other = () => 1;\n```"])
def test_an_answer_without_the_function_is_none(sources: Sources, answer: str):
    place = sources.functions("a.js")[0]
    assert sources.rewritten(place, answer) is None
