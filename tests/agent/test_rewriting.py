"""A function of an answer takes the place of the one in the file, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from folder import FolderFiles

from pawl.agent.function_text import FunctionPlace, Sources, head_of, holding, text_of

SOURCE = '''"""Dates."""

import calendar


def before(x):
    return x - 2


class Year:
    @property
    def leap(self):
        return self.n % 4 == 0

    def days(self):
        return 365
'''


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[Sources]:
    (tmp_path / "dates.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("def (")
    with Sources(FolderFiles(tmp_path)) as found:
        yield found


def function_at(sources: Sources, path: str, line: int) -> FunctionPlace | None:
    return holding(sources.functions(path), line)


def test_a_function_is_found_by_a_line_and_replaced_as_a_whole(sources: Sources):
    place = function_at(sources, "dates.py", 7)
    assert place is not None and (place.name, text_of(place, SOURCE)) == ("before", "def before(x):\n    return x - 2")
    code = "import math\n\ndef before(x):\n    return _one(x)\n\ndef _one(x):\n    return x - 1"
    answer = f"Here it is:\n```python\n{code}\n```"
    made = sources.rewritten(place, answer)
    assert made == SOURCE.replace('"""Dates."""\n', '"""Dates."""\nimport math\n').replace(
        "def before(x):\n    return x - 2",
        "def _one(x):\n    return x - 1\n\n\ndef before(x):\n    return _one(x)",
    )


def test_a_method_keeps_its_place_with_its_decorators(sources: Sources):
    place = function_at(sources, "dates.py", 13)
    assert place is not None and place.name == "leap"
    made = sources.rewritten(place, "@property\ndef leap(self):\n    return calendar.isleap(self.n)\n")
    assert made == SOURCE.replace("self.n % 4 == 0", "calendar.isleap(self.n)")
    assert [one.name for one in sources.functions("dates.py")] == ["before", "leap", "days"]


@pytest.mark.parametrize(
    ("path", "source", "head"),
    [
        ("a.py", 'def f(\n    x,\n):\n    """Is x."""\n    return x\n', 'def f(\n    x,\n):\n    """Is x."""\n    ...'),
        ("a.py", "def f(x):\n    return x\n", "def f(x):\n    ..."),
        ("a.ts", "function f(x: number) {\n  const y = x\n  return y\n}\n", "function f(x: number) {\n  // ...\n}"),
    ],
)
def test_the_head_of_a_function_is_all_but_what_it_does(tmp_path: Path, path: str, source: str, head: str):
    (tmp_path / path).write_text(source)
    with Sources(FolderFiles(tmp_path)) as sources:
        (place,) = sources.functions(path)
    assert head_of(place, source) == head


@pytest.mark.parametrize(
    "answer", ["", "I cannot.", "```python\ndef other():\n    pass\n```", "```\ndef before(x:\n```"]
)
def test_an_answer_without_the_function_is_none(sources: Sources, answer: str):
    place = function_at(sources, "dates.py", 6)
    assert place is not None and sources.rewritten(place, answer) is None
    assert function_at(sources, "dates.py", 1) is None
    assert function_at(sources, "broken.py", 1) is None
