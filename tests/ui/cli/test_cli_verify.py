"""`pawl verify`: every step with its reason, old findings apart, nothing run twice, documented exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ui.cli.projects import RIGHT, UNITTEST, WRONG, Project
from ui.cli.test_cli_docs import section
from world import snapshot

pytestmark = [pytest.mark.spec("A8"), pytest.mark.timeout(120)]

GREEN = {"app.py": RIGHT, "test_app.py": UNITTEST, "notes.md": "x\n"}
MORE = "import unittest\n\n\nclass More(unittest.TestCase):\n    def test_more(self):\n        self.assertTrue(True)\n"


def standings(told):
    return {step["step"]: step["standing"] for step in told["steps"]}


def test_a_sound_project_is_verified_and_not_touched(project: Project):
    pawl = project(GREEN)
    before = snapshot(pawl.workspace)
    said = pawl("verify")
    assert said.code == 0, said
    assert [line.split()[0] for line in said.lines[:-1]] == ["✓", "✓", "–", "✓", "–", "–", "✓"]
    assert said.lines[-1] == "verdict   verified"
    assert snapshot(pawl.workspace) == before


def test_programs_are_told_everything_the_page_names(project: Project):
    pawl = project({**GREEN, "app.py": WRONG})
    told = pawl.json("verify", code=1)
    keys = {*told, *told["steps"][0], *next(step for step in told["steps"] if step["findings"])["findings"][0]}
    assert [key for key in sorted(keys) if f"`{key}`" not in section("verify")] == []
    assert told["accepted"] is False
    assert standings(told)["tests"] == "fail"


@pytest.mark.whole
def test_what_has_not_changed_is_not_run_again_and_what_has_is(project: Project):
    pawl = project(GREEN)
    pawl.json("verify")
    again = pawl.json("verify")
    ran = {step["step"]: step["cached"] for step in again["steps"] if step["standing"] == "pass"}
    assert ran == {"syntax": True, "types": True, "lint": True, "tests": True}
    assert "unchanged since it last ran" in pawl("verify").out
    (pawl.workspace / "notes.md").write_text("y\n")
    ran = {step["step"]: step["cached"] for step in pawl.json("verify")["steps"] if step["standing"] == "pass"}
    assert ran == {"syntax": True, "types": True, "lint": True, "tests": False}
    assert not any(step["cached"] for step in pawl.json("verify", "--fresh")["steps"])


@pytest.mark.whole
def test_the_first_failure_ends_it_unless_all_is_asked_for(project: Project):
    pawl = project({**GREEN, "broken.py": "def f(:\n", "app.py": WRONG})
    assert standings(pawl.json("verify", code=1))["tests"] == "skipped"
    assert standings(pawl.json("verify", "--all", code=1))["tests"] == "fail"


@pytest.mark.whole
def test_a_baseline_sets_old_findings_apart(project: Project):
    pawl = project({**GREEN, "app.py": WRONG, "test_more.py": MORE})
    assert pawl("verify").code == 1
    set_now = pawl("verify", "--set-baseline")
    assert (set_now.code, set_now.lines[-1]) == (0, "baseline set: 1 finding, old from now on")
    told = pawl.json("verify")
    assert (told["accepted"], told["baseline"]) == (True, True), told["unproved"]
    assert {step["step"]: step["old"] for step in told["steps"]}["tests"] == 1
    assert "\n= tests " in pawl("verify").out, "no tick beside what fails as before"
    (pawl.workspace / "other.py").write_text("import nowhere_at_all\n")
    assert standings(pawl.json("verify", code=1))["types"] == "fail"
    assert pawl("verify", "--no-baseline", "--all").code == 1


def test_nothing_to_verify_is_said_and_is_no_success(project: Project):
    said = project({"notes.md": "x\n"})("verify")
    assert said.code == 6 and "verdict   unverified" in said.lines, said


def test_steps_of_which_none_runs_prove_nothing(project: Project):
    pawl = project({"notes.md": "hello\n", "app.js": "const one = 1;\n"})
    said = pawl("verify", "--only", "types")
    assert said.code == 6 and "verdict   unverified" in said.out, said


@pytest.mark.whole
def test_the_settings_add_and_leave_out_steps(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pawl = project(GREEN)
    settings = tmp_path / "verify.toml"
    monkeypatch.setenv("PAWL_CONFIG", str(settings))
    settings.write_text(
        '[verify]\nskip = ["types"]\n[[verify.step]]\nname = "notes"\nkind = "lint"\n'
        'command = ["grep", "-n", "never there", "notes.md"]\ninputs = ["*.md"]\n'
    )
    told = standings(pawl.json("verify", "--all", code=1))
    assert (told["types"], told["notes"], told["tests"]) == ("skipped", "fail", "pass")
    settings.write_text("[verify]\nskipp = []\n")
    said = pawl("verify")
    assert said.code == 52
    assert "skipp is not a field; did you mean 'skip'?" in said.err


@pytest.mark.parametrize("words", [["--test", "'"], ["--test", ""], ["--set-baseline", "--no-baseline"]])
def test_words_that_cannot_be_meant_are_refused(project: Project, words: list[str]):
    assert project(GREEN)("verify", *words).code == 42


NESTED = "[" * 100_000
SAYS = "#!/bin/sh\ncase \"$*\" in *sys.version*) printf '%s' '{}';; *) exit 1;; esac\n"


@pytest.mark.whole
@pytest.mark.attack("A54")
@pytest.mark.parametrize(
    "files",
    [
        {"package.json": NESTED},
        {"package.json": '{"name": ' + NESTED},
        {"pyproject.toml": f"x = {NESTED}"},
        {"setup.py": NESTED, "tsconfig.json": NESTED, "a.ts": ""},
        {"sub/package.json": NESTED, "package.json": '{"workspaces": ["sub"]}'},
        {
            "deep.py": "(" * 100_000,
            "chain.py": "x = " + "-" * 100_000 + "1\n",
            "sum.py": "x = " + "1+" * 50_000 + "1\n",
        },
        {".pawl/settings.toml": f"x = {NESTED}"},
        {".venv/bin/python": SAYS.format('["3", "\\u0000x"]')},
        {".venv/bin/python": SAYS.format(NESTED)},
        {".venv/bin/python": SAYS.format('{"a": 1}')},
        {".venv/bin/python": SAYS.format('["3", 5, null]')},
    ],
    ids=str,
)
def test_no_content_of_a_workspace_breaks_verification(project: Project, files: dict[str, str]):
    pawl = project({**GREEN, **files})
    for path in files:
        (pawl.workspace / path).chmod(0o755)
    for words in ((), ("--all",)):
        said = pawl("verify", *words)
        assert said.code in (0, 1, 52) and "Traceback" not in said.out + said.err, said
        assert "internal" not in said.err, said


@pytest.mark.attack("A54")
@pytest.mark.parametrize("place", ["/", "{outside}", "relative", "{outside}/lib/python3.11"])
def test_a_workspace_does_not_choose_which_folders_are_walked(project: Project, tmp_path: Path, place: str):
    """Nothing is kept where the interpreter names folders that are not its own."""
    (tmp_path / "outside/lib/python3.11").mkdir(parents=True)
    says = SAYS.format('["3", "' + place.format(outside=tmp_path / "outside") + '"]')
    pawl = project({**GREEN, ".venv/bin/python": says})
    (pawl.workspace / ".venv/bin/python").chmod(0o755)
    for _ in range(2):
        said = pawl("verify", "--all", "--json")
        assert '"cached": true' not in said.out and said.out, said


@pytest.mark.whole
@pytest.mark.attack("A39")
def test_a_fifo_that_holds_a_check_up_is_named(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "config.toml").write_text("[verify]\nseconds = 2\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    pawl = project(GREEN)
    said = pawl.json("verify", "--all", "--test", "sh -c 'mkdir d; mkfifo d/pipe; cat d/pipe'", code=6)
    (tests,) = (step for step in said["steps"] if step["step"] == "tests")
    assert "the FIFO './d/pipe' is there, which blocks whatever reads it" in tests["reason"], tests


@pytest.mark.whole
def test_tests_that_could_not_run_are_not_said_to_be_verified(project: Project):
    pawl = project({**GREEN, "pyproject.toml": "[tool.pytest.ini_options]\n"})
    said = pawl("verify", "--test", "no-such-runner")
    assert said.code == 6 and said.lines[-2:] == [
        "verdict   unverified",
        "! tests could not run: 'no-such-runner' is not installed",
    ], said
    told = pawl.json("verify", "--test", "no-such-runner", code=6)
    assert (told["accepted"], told["verdict"]) == (False, "unverified")
    for command in ("true", "sh -c 'echo all is well'"):
        said = pawl("verify", "--test", command)
        assert said.code == 6 and "reported no tests" in said.lines[-1], said


@pytest.mark.whole
def test_a_project_without_tests_is_not_said_to_be_verified(project: Project):
    said = project({"app.py": RIGHT})("verify")
    assert said.code == 6 and said.lines[-2] == "verdict   unverified", said


LEAVES_OUT = "def pytest_collection_modifyitems(config, items):\n    {}items[:] = items[1:]\n"


@pytest.mark.whole
@pytest.mark.parametrize("openly", ["", "config.hook.pytest_deselected(items=items[:1])\n    "])
def test_a_conftest_that_leaves_tests_out_is_named_and_nothing_is_verified(
    project: Project, active_environment: None, openly: str
):
    pawl = project({**GREEN, "test_more.py": MORE, "conftest.py": LEAVES_OUT.format(openly)})
    said = pawl("verify", "--test", "python -m pytest")
    assert said.code == 6 and said.lines[-2] == "verdict   unverified", said
    assert "code of the project (conftest.py, a plugin) leaves out test_app.py::" in said.lines[-1]


@pytest.mark.whole
def test_tests_that_options_deselect_are_counted(project: Project, active_environment: None):
    pawl = project({**GREEN, "test_more.py": MORE, "pytest.ini": "[pytest]\naddopts = -k more\n"})
    said = pawl("verify")
    assert said.code == 0 and "1 passed; 1 deselected by options of the runner" in said.out, said


CONFIGURED = """#!/bin/sh
case " $* " in
    *" --config conf/jest.js "*) status=passed number=1 failed=0 ;;
    *) status=failed number=0 failed=1 ;;
esac
echo '{"numTotalTests": 1, "numPassedTests": '$number', "numFailedTests": '$failed', "numPendingTests": 0,
"success": true, "testResults": [{"name": "'$PWD'/sum.test.js", "message": "", "assertionResults": [{"title": "adds",
"ancestorTitles": [], "fullName": "adds", "status": "'$status'", "failureMessages": []}]}]}'
exit $failed
"""


@pytest.mark.parametrize("script", ["jest --config conf/jest.js --ci", "tsc --noEmit && jest --config=conf/jest.js"])
def test_jest_is_started_with_the_configuration_that_the_script_of_the_project_names(project: Project, script: str):
    package = f'{{"scripts": {{"lint": "eslint", "test": "{script}"}}, "devDependencies": {{"jest": "1"}}}}'
    files = {
        "package.json": package,
        "sum.test.js": "test('adds', () => {});\n",
        "conf/jest.js": "module.exports = {};\n",
    }
    pawl = project({**files, "node_modules/.bin/jest": CONFIGURED})
    (pawl.workspace / "node_modules/.bin/jest").chmod(0o755)
    told = pawl.json("verify", "--all", "--only", "tests")
    assert [(step["standing"], step["counts"]["passed"]) for step in told["steps"] if step["counts"]] == [("pass", 1)]
