"""The verification steps for Python on real projects with the real tools."""

import sys
from pathlib import Path

import pytest

from pawl.checks.language_steps import Ruff, Syntax, Types, chosen
from pawl.checks.steps import Tests, for_tests
from pawl.core.diagnostic import Status
from pawl.core.execution import Limits

GOOD = {"shop.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n"}
PYTEST = {**GOOD, "test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"}


@pytest.mark.spec("A8")
def test_files_that_compile_pass(subject):
    verdict = Syntax().run(subject(GOOD))
    assert (verdict.standing, verdict.reason) == (Status.PASS, "1 file compiled")


@pytest.mark.spec("A8")
def test_a_file_that_does_not_compile_fails_with_its_place(subject):
    verdict = Syntax().run(subject({**GOOD, "lib/broken.py": "x = 1\ndef f(:\n    pass\n"}))
    assert verdict.standing is Status.FAIL
    (finding,) = verdict.findings
    assert (finding.path, finding.line, finding.code) == ("lib/broken.py", 2, "SyntaxError")


@pytest.mark.spec("A8")
def test_only_changed_files_are_compiled(subject):
    verdict = Syntax().run(subject({**GOOD, "broken.py": "def f(:\n"}, changed=("shop.py", "gone.py", "readme.md")))
    assert verdict.standing is Status.PASS


@pytest.mark.spec("A8")
def test_compiling_runs_nothing_and_leaves_nothing(subject):
    given = subject({"shop.py": "open('written', 'w')\n"})
    assert Syntax().run(given).standing is Status.PASS
    assert given.files.walk() == ["shop.py"]


@pytest.mark.spec("A8")
@pytest.mark.parametrize("content", [b"x = '\xff'\n", b"x = 1\x00\n", b"# -*- coding: nonsense -*-\n"])
def test_a_file_that_cannot_be_decoded_fails(subject, content):
    assert Syntax().run(subject({"odd.py": content})).standing is Status.FAIL


@pytest.mark.spec("A8")
def test_without_an_interpreter_the_oldest_grammar_that_the_project_supports_decides(subject):
    files = {
        "pyproject.toml": '[project]\nname = "shop"\nrequires-python = ">=3.8"\n',
        "new.py": "match 1:\n    case 1:\n        pass\n",
    }
    given = subject(files, tools=False)
    given.runner.path = ""
    verdict = Syntax().run(given)
    assert verdict.standing is Status.FAIL
    assert "by the grammar of Python 3.8" in verdict.reason


@pytest.mark.spec("A8")
def test_the_interpreter_of_the_projects_environment_is_used(subject):
    given = subject({**GOOD, ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} "$@"\n'})
    (given.files.root / ".venv/bin/python").chmod(0o755)
    assert Syntax().run(given).standing is Status.PASS
    assert given.runner.ran[0][0].endswith("/.venv/bin/python")


@pytest.mark.spec("A8")
@pytest.mark.parametrize("step", [Syntax(), Ruff(), Types()])
def test_a_project_without_python_is_skipped_and_says_so(subject, step):
    verdict = step.run(subject({"main.go": "package main\n"}))
    assert (verdict.standing, verdict.reason) == (Status.SKIPPED, "no Python file to check")


@pytest.mark.spec("A8")
def test_lint_looks_for_plain_errors_where_the_project_has_no_rules(subject):
    verdict = Ruff().run(subject({"shop.py": "import os\n\n\ndef f():\n    return missing\n"}))
    assert verdict.standing is Status.FAIL
    assert [(finding.code, finding.line, finding.path) for finding in verdict.findings] == [("F821", 5, "shop.py")]
    assert "the project configures none" in verdict.reason


@pytest.mark.spec("A8")
def test_lint_goes_by_the_projects_own_rules(subject):
    files = {"shop.py": "import os\n", "pyproject.toml": '[tool.ruff.lint]\nselect = ["F401"]\n'}
    verdict = Ruff().run(subject(files))
    assert [finding.code for finding in verdict.findings] == ["F401"]
    files["pyproject.toml"] = '[tool.ruff.lint]\nselect = ["E7"]\n'
    assert Ruff().run(subject(files)).standing is Status.PASS


@pytest.mark.spec("A8")
def test_lint_with_a_broken_configuration_does_not_pass_and_refuses_only_a_change_of_it(subject):
    broken = {**GOOD, "ruff.toml": "no-such-field = 1\n"}
    for changed in ((), ("shop.py",)):
        verdict = Ruff().run(subject(broken, changed=changed))
        assert verdict.standing is Status.SKIPPED
        assert "cannot read the project's configuration" in verdict.reason
    verdict = Ruff().run(subject(broken, changed=("shop.py", "ruff.toml")))
    assert verdict.standing is Status.FAIL
    assert "ruff gave up" in verdict.reason


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("step", "said"),
    [(Ruff(), "ruff is not installed"), (Types(), "ty, which is not installed")],
)
def test_a_missing_tool_is_skipped_never_passed(subject, step, said):
    verdict = step.run(subject(GOOD, tools=False))
    assert verdict.standing is Status.SKIPPED
    assert said in verdict.reason


@pytest.mark.spec("A8")
def test_pawls_own_tools_serve_a_project_that_has_none(subject):
    spare = {name: str(Path(sys.executable).with_name(name)) for name in ("ruff", "ty")}
    given = subject({"shop.py": "import genai_prices\n\nprint(genai_prices, missing)\n"}, tools=False, spare=spare)
    assert [finding.code for finding in Ruff().run(given).findings] == ["F821"]
    verdict = Types().run(given)
    # The interpreter on the PATH decides what can be imported, not the one that has ty beside it.
    assert ["genai_prices" in finding.message for finding in verdict.findings] == [True, False]
    assert given.runner.ran[-1][0] == spare["ty"]


@pytest.mark.spec("A8")
@pytest.mark.parametrize(("step", "tool"), [(Ruff(), "ruff"), (Types(), "ty")])
def test_the_projects_own_tool_is_asked_before_pawls(subject, step, tool):
    given = subject({**GOOD, f".venv/bin/{tool}": "#!/bin/sh\nexit 0\n"}, tools=False, spare={tool: "/no/such/tool"})
    (given.files.root / f".venv/bin/{tool}").chmod(0o755)
    assert step.run(given).standing is Status.PASS
    assert given.runner.ran[0][0].endswith(f"/.venv/bin/{tool}")


@pytest.mark.spec("A8")
def test_a_configured_checker_that_is_missing_is_named(subject):
    verdict = Types().run(subject({**GOOD, "pyrefly.toml": ""}, tools=False))
    assert verdict.standing is Status.SKIPPED
    assert "pyrefly.toml configures pyrefly" in verdict.reason


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"mypy.ini": "[mypy]\n"}, "mypy"),
        ({"setup.cfg": "[mypy]\nstrict = true\n"}, "mypy"),
        ({"pyproject.toml": "[tool.mypy]\n"}, "mypy"),
        ({"pyrightconfig.json": "{}"}, "pyright"),
        ({"pyproject.toml": "[tool.pyright]\n"}, "pyright"),
        ({"pyproject.toml": "[tool.basedpyright]\n"}, "basedpyright"),
        ({"pyrightconfig.json": "{}", "requirements-dev.txt": "basedpyright\n"}, "basedpyright"),
        ({"pyproject.toml": "[tool.pyrefly]\n"}, "pyrefly"),
        ({"ty.toml": ""}, "ty"),
        ({"setup.cfg": "[flake8]\n"}, "ty"),
    ],
)
def test_the_projects_own_type_checker_is_chosen(subject, files, expected):
    assert chosen(subject(files))[0].name == expected


@pytest.mark.spec("A8")
def test_types_are_checked_by_the_configured_checker(subject):
    files = {
        **GOOD,
        "use.py": 'from shop import total\n\ntotal("x")\n',
        "pyproject.toml": "[tool.mypy]\ncache_dir = '/dev/null'\n",
    }
    verdict = Types().run(subject(files))
    assert verdict.standing is Status.FAIL
    (finding,) = verdict.findings
    assert (finding.tool, finding.path, finding.line, finding.code) == ("mypy", "use.py", 3, "arg-type")
    assert "configured in pyproject.toml" in verdict.reason
    files["use.py"] = "from shop import total\n\ntotal([1])\n"
    assert Types().run(subject(files)).standing is Status.PASS


@pytest.mark.spec("A8")
@pytest.mark.parametrize("tool", ["ty", "pyrefly", "basedpyright"])
def test_the_reports_of_other_checkers_are_read(subject, captured, tool):
    """A program that prints what the real one printed stands in for a checker that is not installed here."""
    section = "" if tool == "ty" else f"[tool.{tool}]\n"
    report = captured(f"types/bad_{tool}")
    files = {
        "bad.py": "x = 1\n",
        "pyproject.toml": section,
        "report.txt": report,
        f".venv/bin/{tool}": "#!/bin/sh\ncat report.txt\nexit 1\n",
    }
    given = subject(files)
    (given.files.root / f".venv/bin/{tool}").chmod(0o755)
    (given.files.root / "report.txt").write_text(report.replace("/project", given.workspace))
    verdict = Types().run(given)
    assert verdict.standing is Status.FAIL
    undefined = [finding for finding in verdict.findings if "undefined_thing" in finding.message]
    assert [(finding.path, finding.line, finding.column) for finding in undefined] == [("bad.py", 5, 1)]
    assert all(finding.code for finding in verdict.findings)


@pytest.mark.spec("A8", "E8")
def test_a_suite_that_passes_is_counted(subject):
    verdict = Tests().run(subject(PYTEST))
    assert (verdict.standing, verdict.counts.passed) == (Status.PASS, 1)


@pytest.mark.spec("A8", "E8")
def test_a_suite_that_fails_says_where(subject):
    verdict = Tests().run(subject({**PYTEST, "shop.py": "def total(prices):\n    return prices[9]\n"}))
    assert verdict.standing is Status.FAIL
    (finding,) = verdict.findings
    assert (finding.path, finding.line, finding.test) == ("shop.py", 2, "test_shop.py::test_total")


@pytest.mark.spec("A8", "B10")
def test_the_users_own_command_runs_and_is_counted(subject):
    files = {**PYTEST, "check.sh": f"#!/bin/sh\nexec {sys.executable} -m pytest -q\n"}
    verdict = Tests().run(subject(files, test_command=("sh", "check.sh")))
    assert (verdict.standing, verdict.counts.passed) == (Status.PASS, 1)


@pytest.mark.spec("A8")
def test_a_command_that_fails_without_a_report_fails(subject):
    verdict = Tests().run(subject(GOOD, test_command=("sh", "-c", "echo nothing; exit 3")))
    assert verdict.standing is Status.FAIL
    assert [finding.code for finding in verdict.findings] == ["incomplete"]


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"shop.py": "x = 1\n"}, "no configuration, dependency or test file"),
        ({"pytest.ini": "[pytest]\n", "shop.py": "x = 1\n"}, "no tests ran"),
        ({"test_a.py": "import unittest\n"}, "no tests ran"),
    ],
)
def test_a_project_without_tests_is_skipped_never_passed(subject, files, said):
    verdict = Tests().run(subject(files))
    assert verdict.standing is Status.SKIPPED
    assert said in verdict.reason


@pytest.mark.spec("A8")
def test_a_framework_that_is_not_installed_is_skipped(subject):
    given = subject({**PYTEST, ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} -S "$@"\n'})
    (given.files.root / ".venv/bin/python").chmod(0o755)
    verdict = Tests().run(given)
    assert verdict.standing is Status.SKIPPED
    assert "'pytest' is not installed" in verdict.reason


@pytest.mark.spec("A8", "E8")
def test_a_run_that_leaves_in_the_middle_of_its_tests_fails_whatever_its_exit_code(subject):
    left = "echo '=== test session starts ==='; echo 'test_shop.py ..'"
    verdict = Tests().run(subject({**GOOD, "run.sh": left}, test_command=("sh", "run.sh")))
    assert (verdict.standing, verdict.findings[-1].code) == (Status.FAIL, "incomplete")


@pytest.mark.spec("A8")
def test_a_suite_that_does_not_end_fails_and_says_so(subject):
    files = {"test_hang.py": "import threading\n\n\ndef test_hang():\n    threading.Event().wait()\n"}
    verdict = Tests().run(subject(files, limits=Limits(seconds=1.5)))
    assert verdict.standing is Status.FAIL
    assert "timed out" in verdict.reason
    assert verdict.findings[-1].code == "incomplete"


def test_tests_that_are_named_by_file_are_run_by_file_also_where_a_runner_takes_titles(subject):
    files = {"package.json": '{"devDependencies": {"vitest": "3"}}', "src/a.test.ts": "import 'vitest'\n"}
    words = ("npx", "--no-install", "vitest", "run", "--reporter=verbose", "src/a.test.ts")
    by_file = for_tests(subject(files), ["src/a.test.ts"])
    assert by_file is not None and by_file.test_command == words
    by_title = for_tests(subject(files), ["src/a.test.ts > the list > is empty"])
    assert by_title is not None and by_title.test_command == (*words, "-t", "^(?:the list is empty)$")
