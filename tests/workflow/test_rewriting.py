"""A function of an answer takes the place of the one in the file, and nothing else changes."""

from __future__ import annotations

import pytest

from pawl.agent.attempts import FunctionPlace, functions_of, holding, rewritten, text_of

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


def function_at(path: str, source: str, line: int) -> FunctionPlace | None:
    return holding(functions_of(path, source), line)


def test_a_function_is_found_by_a_line_and_replaced_as_a_whole():
    place = function_at("dates.py", SOURCE, 7)
    assert place is not None and (place.name, text_of(place, SOURCE)) == ("before", "def before(x):\n    return x - 2")
    code = "import math\n\ndef before(x):\n    return _one(x)\n\ndef _one(x):\n    return x - 1"
    answer = f"Here it is:\n```python\n{code}\n```"
    made = rewritten(place, SOURCE, answer)
    assert made == SOURCE.replace('"""Dates."""\n', '"""Dates."""\nimport math\n').replace(
        "def before(x):\n    return x - 2",
        "def _one(x):\n    return x - 1\n\n\ndef before(x):\n    return _one(x)",
    )


def test_a_method_keeps_its_place_with_its_decorators():
    place = function_at("dates.py", SOURCE, 13)
    assert place is not None and place.name == "leap"
    made = rewritten(place, SOURCE, "@property\ndef leap(self):\n    return calendar.isleap(self.n)\n")
    assert made == SOURCE.replace("self.n % 4 == 0", "calendar.isleap(self.n)")
    assert [one.name for one in functions_of("dates.py", SOURCE)] == ["before", "leap", "days"]


@pytest.mark.parametrize(
    "answer", ["", "I cannot.", "```python\ndef other():\n    pass\n```", "```\ndef before(x:\n```"]
)
def test_an_answer_without_the_function_is_none(answer: str):
    place = function_at("dates.py", SOURCE, 6)
    assert place is not None and rewritten(place, SOURCE, answer) is None
    assert function_at("dates.py", SOURCE, 1) is None
    assert function_at("dates.py", "def (", 1) is None
