"""A request in the form of Task, Scope, Requirements, Constraints and Verification is read without a model."""

from __future__ import annotations

from importlib.resources import files

import pytest

from pawl.agent.demands import requirements
from pawl.agent.intents import RequestForm, request_form
from pawl.checks.verdict import Requirements

FORM = """
Task: add a --json flag to the report command
Scope: src/report.py, `tests/test_report.py`
Requirements:
- one JSON object on stdout
- the same figures as the table,
  to the last digit
Constraints:
- no new dependency
Verification:
- `pytest tests/test_report.py`
"""


@pytest.mark.spec("A14")
def test_every_field_is_read():
    assert request_form(FORM) == RequestForm(
        task="add a --json flag to the report command",
        scope=("src/report.py", "tests/test_report.py"),
        requirements=("one JSON object on stdout", "the same figures as the table, to the last digit"),
        constraints=("no new dependency",),
        verification=("pytest tests/test_report.py",),
        commands=("pytest tests/test_report.py",),
    )


@pytest.mark.spec("A14")
@pytest.mark.parametrize(
    "text",
    [
        "## Task\nmend it\n\n## Verification\npytest",
        "**Task:** mend it\n**Verification:** pytest",
        "TASK: mend it\nverification: pytest",
        "- Task: mend it\n- Verification: pytest",
    ],
)
def test_headings_bold_words_and_case_do_not_matter(text: str):
    form = request_form(text)
    assert form is not None
    assert (form.task, form.verification) == ("mend it", ("pytest",))


@pytest.mark.spec("A14", "A2")
def test_numbered_steps_of_a_task_are_tasks():
    form = request_form("Task:\n1. move the header\n2. test it\nScope: src")
    assert form is not None and form.tasks == ("move the header", "test it")


@pytest.mark.parametrize(
    "text",
    [
        "make the tests pass",
        "Task: only one field",
        "Please do this.\nTask: x\nScope: y",
        "Task: x\nScope: y\nTask: z",
        "Scope: y\nVerification: z",
        "",
        "Task:\nScope: y",
    ],
)
def test_what_is_not_in_the_form_is_left_to_others(text: str):
    assert request_form(text) is None


@pytest.mark.spec("A14")
@pytest.mark.parametrize("name", ["surgical_patch", "component_extraction", "safe_stub"])
def test_the_form_of_a_template_does_not_ask_for_tests_that_failed_before(name: str):
    text = (files("pawl.agent") / f"prompts/requests/{name}.md").read_text("utf-8").rpartition("---")[2]
    assert requirements(text) == Requirements(named=text)
