"""`pawl fix` and what may be wrong with a project: each time a clear word, a documented exit code, and nothing lost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ui.cli.console import Pawl, Said
from ui.cli.projects import RIGHT, SETTINGS, UNITTEST, WRONG, Project, Searches
from ui.cli.test_cli_docs import section
from users import become
from world import snapshot

pytestmark = [pytest.mark.spec("F1", "F5"), pytest.mark.timeout(120)]

PYTEST = "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n    assert after(5) == 6\n"


def untouched(pawl: Pawl, *words: str) -> Said:
    """What `fix` says about a project that it must leave as it is, with no bench left behind."""
    before = snapshot(pawl.workspace)
    said = pawl("fix", *words)
    assert snapshot(pawl.workspace) == before, said
    assert list(Path(os.environ["PAWL_STATE"], "benches").glob("*")) == []  # noqa: TID251
    return said


def test_a_unittest_suite_is_repaired_and_the_repair_can_be_undone(project: Project):
    pawl = project({"app.py": WRONG, "test_app.py": UNITTEST})
    said = pawl("fix")
    assert said.code == 0, said
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert not (pawl.workspace / "left-behind.txt").exists()
    assert said.lines[0] == "before    1 failed"
    assert re.fullmatch(r"fixed in .* s, \$0\.00; promoted as entry 1; undo with: pawl undo 1", said.lines[-1])
    assert said.err.splitlines()[:3] == ["running the suite", "1 failing", "searching for a patch"]
    assert pawl("undo", "1").code == 0
    assert (pawl.workspace / "app.py").read_text() == WRONG


OWN_RUNNER = {
    "runtests.py": """\
        import sys
        import unittest
        import settings
        settings.configured = True
        names = [word for word in sys.argv[1:] if not word.startswith("-")] or ["tests.test_app"]
        done = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(names))
        sys.exit(not done.wasSuccessful())
    """,
    "settings.py": "configured = False\n",
    "app.py": WRONG,
    "cases.py": """\
        import unittest
        import settings

        class Case(unittest.TestCase):
            taken = []

            def setUp(self):
                assert settings.configured and not Case.taken
                Case.taken.append(self)

            def tearDown(self):
                Case.taken.clear()
    """,
    "tests/__init__.py": "",
    "tests/test_app.py": """\
        import settings
        if not settings.configured:
            raise RuntimeError("settings are not configured")
        from app import after
        from cases import Case

        class AppTest(Case):
            def test_after(self):
                self.assertEqual(after(2), 3)

            def test_later(self):
                self.assertEqual(after(5), 6)

            def test_nothing(self):
                self.assertTrue(after)
    """,
}


@pytest.mark.whole
@pytest.mark.parametrize("words", [(), ("tests/test_app.py",), ("--test", "python3 runtests.py -v")])
def test_a_suite_that_only_a_script_of_the_projects_sets_up_is_repaired(project: Project, words: tuple[str, ...]):
    pawl = project({path: textwrap.dedent(text) for path, text in OWN_RUNNER.items()})
    said = pawl("fix", *words)
    assert said.code == 0 and said.lines[0] == "before    2 failed, 1 passed", said
    assert (pawl.workspace / "app.py").read_text() == RIGHT


def test_an_environment_that_is_linked_into_the_workspace_serves_the_tests(project: Project, tmp_path: Path):
    pawl = project({"app.py": RIGHT, "test_app.py": UNITTEST, "requirements.txt": "", ".gitignore": ".venv\n"})
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (pawl.workspace / ".venv").symlink_to(environment)
    (Path(os.environ["PAWL_STATE"]) / "packages").mkdir()  # noqa: TID251
    said = pawl("fix")
    assert said.out.startswith("nothing fails"), said


@pytest.mark.whole
def test_a_dry_run_tells_programs_everything_the_page_names_and_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({"app.py": WRONG, "test_app.py": UNITTEST})
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    before = snapshot(pawl.workspace)
    told = pawl.json("fix", "--dry-run")
    assert [key for key in told if f"`{key}`" not in section("fix")] == []
    assert (told["outcome"], told["cost_usd"], told["entry"]) == ("fixed", 0.0, None)
    assert [change["path"] for change in told["changes"]] == ["app.py"]
    # Without an environment of the project's own, ruff and ty are Pawl's.
    assert {one["step"]: one["standing"] for one in told["verdicts"]} == dict.fromkeys(
        ("syntax", "lint", "types", "tests"), "pass"
    )
    assert snapshot(pawl.workspace) == before


def test_nothing_fails(project: Project):
    said = untouched(project({"app.py": RIGHT, "test_app.py": UNITTEST}))
    assert (said.code, said.out) == (0, "nothing fails: 1 passed\n")


@pytest.mark.parametrize("files", [{"app.py": RIGHT}, {"app.py": RIGHT, "test_app.py": "import unittest\n"}])
def test_no_tests_are_found(project: Project, files: dict[str, str]):
    said = untouched(project(files))
    assert said.code == 42
    assert "pawl: no tests found: " in said.err
    assert "--test 'CMD'" in said.err.splitlines()[-1]


def test_a_suite_of_another_language_is_for_a_model(project: Project):
    said = untouched(project({"go.mod": "module shop\n", "shop.go": "package shop\n"}))
    assert (said.code, said.err.splitlines()) == (
        1,
        [
            "pawl: the tests are go tests, in another language (go): "
            "repairing without a model is for Python, TypeScript and JavaScript",
            "      a model can work on them: pawl do 'make the tests pass'",
        ],
    )


@pytest.mark.parametrize("settings", ['{"devDependencies": {"vitest": "1"}}', '{"scripts": {"test": "vitest run"}}'])
def test_packages_that_are_not_installed_are_told_with_how_to_get_them(project: Project, settings: str):
    said = untouched(project({"package.json": settings, "src/sum.js": "\n"}))
    assert said.code == 1
    assert "the tests cannot run: " in said.err
    assert said.err.splitlines()[-1] == "      install them with: npm install", "there is no lock file"


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.spec("A12")
def test_a_name_that_another_file_exports_is_imported_and_the_suite_decides(project: Project):
    pawl = project(
        {
            "package.json": '{"scripts": {"test": "node --test"}}',
            "cart.js": "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n",
            "app.js": "exports.double = (prices) => 2 * total(prices);\n",
            "app.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
            "const { double } = require('./app');\ntest('doubles', () => assert.strictEqual(double([1, 2]), 6));\n",
        }
    )
    told = pawl.json("fix")
    assert (told["outcome"], [one["what"] for one in told["repairs"]]) == ("fixed", ["typescript.missing-name"])
    assert (pawl.workspace / "app.js").read_text().startswith('const { total } = require("./cart.js");\n')
    assert pawl("undo").code == 0
    assert "require" not in (pawl.workspace / "app.js").read_text()


@pytest.mark.whole
@pytest.mark.spec("A12")
def test_a_file_that_cannot_be_loaded_is_mended_where_the_map_knows_how(project: Project):
    pawl = project({"app.py": RIGHT.replace("):", ")"), "test_app.py": UNITTEST})
    said = pawl("fix")
    assert said.code == 0, said
    assert "repaired  app.py:1  missing colon" in said.out
    assert (pawl.workspace / "app.py").read_text() == RIGHT


@pytest.mark.whole
@pytest.mark.parametrize("tests", [PYTEST, UNITTEST])
def test_a_file_that_cannot_be_loaded_is_named_with_the_error_and_its_place(project: Project, tests: str):
    source = f'{RIGHT}\n\nraise RuntimeError("no licence")\n'
    said = untouched(project({**SETTINGS, "app.py": source, "test_app.py": tests}))
    assert said.code == 1
    assert "cannot be loaded: RuntimeError: no licence at app.py:5; nothing was changed" in said.lines[-2]
    assert said.lines[-1] == "correct that line and run this again"


@pytest.mark.whole
def test_a_broken_test_is_left_to_its_author(project: Project):
    said = untouched(project({**SETTINGS, "app.py": RIGHT, "test_app.py": PYTEST.replace("test_after()", "test_(:")}))
    assert (said.code, said.lines[-1]) == (1, "Pawl does not edit tests: fix test_app.py:4 and run this again")


@pytest.mark.spec("A12")
@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({}, "-m pip install PyYAML"),
        ({"uv.lock": ""}, "install it with: uv add PyYAML"),
        ({"requirements.txt": "pyyaml\n"}, "-m pip install -r requirements.txt"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(project: Project, files, advice: str):
    said = untouched(project({**files, "app.py": RIGHT, "test_app.py": f"import yaml.nothing\n{UNITTEST}"}))
    assert said.code == 1
    assert "the tests need the package 'PyYAML', which is not installed; nothing was changed" in said.lines[-2]
    assert said.lines[-1].startswith("install it with: ") and said.lines[-1].endswith(advice)
    assert ("pawl fix --install (on the bench)" in said.lines[-1]) == ("requirements.txt" in files)
    assert "searching" not in said.err


@pytest.mark.spec("A12")
def test_no_package_is_advised_that_nothing_confirms(project: Project):
    said = untouched(project({"app.py": RIGHT, "test_app.py": f"import requestz\n{UNITTEST}"}))
    assert said.code == 1 and "pip install" not in said.out
    assert "no dependency of the project has it; did you mean 'requests'?" in said.out


@pytest.mark.spec("A12")
def test_a_missing_package_gives_way_to_no_module_of_a_similar_name(project: Project):
    settings = '[project]\nname = "app"\nversion = "1"\ndependencies = ["ujson"]\n'
    source = f"import ujson\n\n\n{RIGHT}\n\nafter.text = ujson.dumps([1])\n"
    said = untouched(project({"pyproject.toml": settings, "app.py": source, "test_app.py": UNITTEST}))
    assert said.code == 1
    assert "the tests need the package 'ujson', which is not installed; nothing was changed" in said.lines[-2]
    assert said.lines[-1].endswith("python -m pip install ujson"), "the interpreter that the tests run with"


def test_a_missing_service_is_said_and_not_edited_away(project: Project):
    source = f'import socket\n\n\n{RIGHT}\n\nafter.place = socket.create_connection(("127.0.0.1", 9))\n'
    said = untouched(project({"app.py": source, "test_app.py": UNITTEST}))
    assert said.code == 1
    assert "ConnectionRefusedError: [Errno 111] Connection refused; nothing was changed" in said.lines[-2]
    assert said.lines[-1].startswith("a service does not answer; the sandbox has no network")


@pytest.mark.whole
@pytest.mark.spec("A11")
def test_a_test_that_hangs_is_a_failing_test(project: Project, searches: Searches):
    searches(2)
    source = "def after(number):\n    while number > 0:\n        number += 1\n    return number\n"
    said = untouched(project({"app.py": source, "test_app.py": UNITTEST}))
    assert said.code == 1, said
    assert said.lines[:2] == ["before    1 failed", "  ✗ test_app.Numbers.test_after  did not end"]
    assert "note: did not end in time: test_app.Numbers.test_after" in said.lines


@pytest.mark.whole
@pytest.mark.spec("A11")
def test_an_import_that_hangs_is_named_with_its_place(project: Project, searches: Searches):
    searches(4)
    said = untouched(project({"app.py": f"{RIGHT}\n\nwhile True:\n    pass\n", "test_app.py": UNITTEST}))
    assert said.code == 1
    assert re.search(r"^pawl: no test can run: app\.py:[56] does not end when it is imported$", said.err, re.MULTILINE)


@pytest.mark.whole
@pytest.mark.parametrize(("tests", "part"), [(PYTEST, "pytest test_app.py"), (UNITTEST, "CMD")])
def test_a_suite_that_is_too_slow_for_the_budget_says_what_it_would_take(
    project: Project, searches: Searches, tests: str, part: str
):
    searches(1)
    source = f"import threading\n\nthreading.Event().wait(1.2)\n\n\n{WRONG}"
    said = untouched(project({"app.py": source, "test_app.py": tests}))
    assert said.code == 1
    assert re.search(r"the suite takes \d+ s, more than the 1 s of the search; nothing was changed$", said.lines[-2])
    assert re.match(r"give it more time, such as --seconds \d+0, or run a part of the tests", said.lines[-1])
    assert said.lines[-1].endswith(f"--test '{part}'")


@pytest.mark.whole
def test_a_test_that_fails_only_sometimes_judges_no_patch(project: Project):
    source = "import pathlib\n\n\ndef turn():\n    place = pathlib.Path('turns')\n    found = place.exists()\n"
    source += "    place.unlink() if found else place.touch()\n    return found\n"
    tests = UNITTEST.replace("after", "turn")
    tests = tests[: tests.index("        self")] + "        self.assertTrue(turn())\n"
    said = untouched(project({"app.py": source, "test_app.py": tests}))
    assert said.code == 1
    assert "note: flaky: test_app.Numbers.test_turn" in said.lines
    assert said.lines[-1].startswith("a test that fails only sometimes cannot judge a patch")


@pytest.mark.whole
def test_a_test_that_depends_on_another_is_said(project: Project):
    tests = "import unittest\n\nfrom app import SEEN\n\n\nclass Both(unittest.TestCase):\n"
    tests += (
        "    def test_a(self):\n        SEEN.append(1)\n\n    def test_b(self):\n        self.assertEqual(SEEN, [])\n"
    )
    said = untouched(project({"app.py": "SEEN = []\n", "test_app.py": tests}))
    assert said.code == 1
    assert "note: order-dependent: test_app.Both.test_b" in said.lines
    assert said.lines[-1].startswith("a test that fails only after others shares state with them")


def test_a_workspace_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path):
    user = become("ordinary")
    with user.folder() as folder:
        workspace = folder / "project"
        workspace.mkdir()
        (workspace / "test_app.py").write_text(UNITTEST)
        user.own(folder)
        workspace.chmod(0o555)
        code = "import sys; from pawl.__main__ import main; sys.argv[0] = 'pawl'; sys.exit(main())"
        process = user.start_python(code, "fix", "-C", str(workspace), home=folder, stderr=-1, text=True)
        err = process.communicate()[1]
    assert (process.returncode, err.splitlines()) == (
        42,
        [f"pawl: the workspace {str(workspace)!r} is not writable", "      correct its permissions"],
    )


@pytest.mark.whole
def test_a_test_that_ends_the_interpreter_is_left_aside_and_the_others_are_mended(project: Project):
    leaves = UNITTEST + "\n    def test_leaves(self):\n        import os\n\n        os._exit(3)\n"
    pawl = project({"app.py": WRONG, "test_app.py": leaves})
    said = pawl("fix")
    assert said.code == 5, said
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert "note: ends the interpreter, skipped: test_app.Numbers.test_leaves" in said.lines
    assert said.lines[-2] == "the rest is not fixed: 1 of the tests ended the interpreter"
    assert said.lines[-1].startswith("something ends the interpreter (os._exit, a crash): let it raise an error")


@pytest.mark.whole
@pytest.mark.spec("D9")
def test_the_linter_mends_what_it_newly_finds_in_a_patch_and_nothing_else(project: Project):
    settings = '[tool.ruff.lint]\nselect = ["F", "I"]\n'
    source = "def place(text):\n    import json\n    return os.path.basename(text)\n"
    tests = "import unittest\n\nfrom app import place\n\n\nclass Names(unittest.TestCase):\n"
    tests += "    def test_place(self):\n        self.assertEqual(place('a/b'), 'b')\n"
    pawl = project({"pyproject.toml": settings, "app.py": source, "test_app.py": tests})
    said = pawl("fix")
    assert said.code == 0, said
    assert "app.py:1: Import block is un-sorted or un-formatted" in said.err
    assert (pawl.workspace / "app.py").read_text() == f"import os\n\n\n{source}", "json is as unused as it was"


@pytest.mark.whole
def test_a_patch_that_is_not_accepted_is_kept_and_said(project: Project):
    found = '[{"code": "X1", "message": "no more ones", "filename": "app.py", "location": {"row": 2, "column": 1}}]'
    ruff = f"#!/bin/sh\ngrep -q '+ 1' app.py || {{ echo '[]'; exit 0; }}\necho '{found}'\nexit 1\n"
    pawl = project({"app.py": WRONG, "test_app.py": UNITTEST, ".venv/bin/ruff": ruff})
    (pawl.workspace / ".venv/bin/ruff").chmod(0o755)
    said = untouched(pawl)
    assert said.code == 1
    assert "a patch was found, but lint says: 1 finding by the rules for plain errors" in said.lines[-2]
    assert said.lines[-1] == "the patch is kept as entry 1; promote it anyway with: pawl promote 1 --unchecked"
    refused = pawl("promote", "1")
    assert (refused.code, "entry 1 does not pass: lint: 1 finding" in refused.err) == (1, True), refused
    assert pawl("promote", "1", "--unchecked").code == 0
    assert (pawl.workspace / "app.py").read_text() == RIGHT


@pytest.mark.whole
@pytest.mark.spec("A12")
def test_a_name_that_only_a_language_server_knows_is_imported(project: Project):
    source = "def after(number):\n    return int(fmean([number, number + 2]))\n"
    pawl = project({"app.py": source, "test_app.py": UNITTEST})
    said = pawl("fix")
    assert said.code == 0, said
    assert "repaired  app.py:2  import  (add `from statistics import fmean` (ty))" in said.lines
    assert (pawl.workspace / "app.py").read_text() == f"from statistics import fmean\n\n{source}"


TWO = {
    "app.py": f"{WRONG}\n\ndef before(number):\n    return number + 1\n",
    "tests/unit/test_after.py": UNITTEST,
    "tests/unit/__init__.py": "",
    "tests/__init__.py": "",
    "tests/test_before.py": UNITTEST.replace("after(2), 3", "before(2), 1")
    .replace("after(5), 6", "before(5), 4")
    .replace("after", "before"),
}


@pytest.mark.whole
def test_only_the_tests_that_are_named_are_mended(project: Project):
    pawl = project(TWO)
    (pawl.workspace / ".pawl").mkdir()
    said = pawl("fix", "unit/test_after.py", cwd=pawl.workspace / "tests")
    assert said.code == 0, said
    assert (pawl.workspace / "app.py").read_text() == TWO["app.py"].replace("+ 2", "+ 1")
    assert said.lines[-1] == "1 other test fails, not asked for"
    assert "tests ✓ 1 (1 fails as before)" in said.out
    assert pawl("fix", "tests/unit").out == "nothing to fix: 1 other test fails, not asked for\n"


@pytest.mark.whole
def test_parameters_that_a_test_does_not_have_are_named_with_those_it_has(project: Project):
    cases = (
        "import pytest\nfrom app import after\n\n\n@pytest.mark.parametrize('number', [2, 5])\n"
        "def test_after(number):\n    assert after(number) == number + 1\n"
    )
    pawl = project({**SETTINGS, "app.py": WRONG, "test_app.py": cases})
    said = untouched(pawl, "test_app.py::test_after[22]")
    assert said.code == 42
    assert said.err.splitlines()[-2:] == [
        "pawl: there is no test 'test_app.py::test_after[22]'",
        "      did you mean 'test_app.py::test_after[2]'?",
    ]
    assert pawl("fix", "test_app.py::test_after[5]", "--dry-run").code == 3


@pytest.mark.whole
def test_a_bare_pytest_finds_the_modules_of_the_workspace_and_ids_are_whole_in_a_pipe(project: Project):
    name = "test_" + "a_long_name_" * 12 + "end"
    pawl = project(
        {"pkg/app.py": WRONG, "test/test_app.py": PYTEST.replace("app", "pkg.app").replace("test_after", name)}
    )
    said = pawl("fix", "--test", "pytest test/test_app.py", "--dry-run")
    assert said.code == 0, said
    assert f"  ✗ test/test_app.py::{name}  " in said.out


@pytest.mark.whole
@pytest.mark.parametrize("command", ["make test", "python3 -m unittest -v test_app"])
def test_the_command_that_runs_the_tests_can_be_the_users_own(project: Project, command: str):
    make = {"Makefile": "test:\n\tpython3 -m unittest test_app\n"}
    pawl = project({**make, "app.py": WRONG, "test_app.py": UNITTEST})
    said = pawl("fix", "--test", command, "--dry-run")
    assert said.code == 0, said
    assert "+    return number + 1" in said.lines


@pytest.mark.whole
def test_each_of_the_patches_that_disagree_can_be_taken_with_the_command_that_is_shown(project: Project):
    source = "def fits(width, limit):\n    return width < limit\n"
    tests = "        self.assertTrue(fits(3, 3))\n        self.assertFalse(fits(5, 3))\n"
    tests = UNITTEST[: UNITTEST.index("        self")].replace("import after", "import fits") + tests
    pawl = project({"app.py": source, "test_app.py": tests})
    words = ("app.py", "--test", "python3 -m unittest test_app", "--seconds", "30")
    said = untouched(pawl, *words)
    assert said.code == 3, said
    numbered = [line for line in said.lines if re.match(r"  \d+\. ", line)]
    heading = next(line for line in said.lines if "patches pass the tests, with" in line)
    assert re.search(rf"{len(numbered)} patches pass the tests, with [2-8] behaviours, and nothing decides", heading)
    takes = [line.rpartition("take it with: ")[2] for line in numbered]
    assert takes == [f"pawl promote {entry}" for entry in range(1, len(numbered) + 1)]
    assert said.lines[-1].startswith(f"take one with: {', or '.join(takes)}; or write a test")
    assert pawl(*takes[0].split()[1:]).code == 0
    assert (pawl.workspace / "app.py").read_text() == source.replace("<", "<=")
    assert pawl("undo").code == 0
    told = pawl.json("fix", *words, "--dry-run", code=3)
    again = "pawl fix app.py --test 'python3 -m unittest test_app' --seconds 30"
    assert told["advice"].startswith(f"choose with: {again} --pick N; --accept-first takes the likeliest")


@pytest.mark.whole
def test_wrong_requests_are_refused_with_the_next_step(project: Project):
    pawl = project({"app.py": WRONG, "test_app.py": UNITTEST, "notes.txt": ""})
    cases = {
        ("ap.py",): "there is no 'ap.py' in the workspace | did you mean 'app.py'?",
        (
            "../app.py",
        ): f"'../app.py' is not inside the workspace {str(pawl.workspace)!r} | name a file or folder in it",
        ("test_app.py::Number",): "there is no test 'Number' in 'test_app.py' | did you mean 'Numbers'?",
        ("notes.txt",): "'notes.txt' holds no Python | name sources that may be edited, or tests",
        (
            "--pick",
            "1",
            "--accept-first",
        ): "--pick and --accept-first cannot be used together | --accept-first takes the first one",
        ("--pick", "0"): "--pick 0: patches are counted from 1 | give one of their numbers",
        ("--seconds", "nan"): "--seconds nan is not between 1 and 86400 | 60 suits most bugs",
        ("--workers", "0"): "--workers 0 is not between 1 and 64 | one for each core",
        ("--test", " "): "--test names no command | give one such as --test 'pytest tests/unit'",
        ("--test", "pytest '"): '--test "pytest \'" cannot be read: No closing quotation | close the quotes',
    }
    for words, said in zip(cases, pawl.many([["fix", *words] for words in cases]), strict=True):
        message, _, advice = cases[words].partition(" | ")
        assert (said.code, said.err) == (42, f"pawl: {message}\n      {advice}\n")
    commands = {
        "echo hi": "printed 'hi' and exited with code 0",
        "false": "printed nothing and exited with code 1",
        "pytest --no-such-option": "printed 'unrecognized arguments: --no-such-option' and exited with code 4",
    }
    for command, reason in commands.items():
        said = untouched(pawl, "--test", command)
        assert (said.code, said.err.splitlines()[1]) == (42, f"pawl: no tests ran: {command!r} {reason}")
    said = untouched(pawl, "--test", "no-such-program test_app")
    assert (said.code, said.err.splitlines()[-2:]) == (
        1,
        [
            "pawl: the tests cannot run: 'no-such-program' is not installed",
            "      name an installed command with --test 'CMD'",
        ],
    )


@pytest.mark.spec("A8")
def test_a_target_that_is_not_there_is_a_mistake_in_a_script_project_too(project: Project):
    files = {"package.json": '{"scripts": {"test": "node --test"}}', "app.ts": "export const a = 1;\n", "a.txt": ""}
    pawl = project(files)
    said = pawl("fix", "nope.ts")
    assert (said.code, "there is no 'nope.ts' in the workspace" in said.err) == (42, True), said
    said = pawl("fix", "a.txt")
    assert (said.code, "'a.txt' holds no TypeScript or JavaScript" in said.err) == (42, True), said
    assert "did you mean 'app.ts'?" in pawl("fix", "ap.ts").err


@pytest.mark.whole
@pytest.mark.spec("A8")
def test_a_named_test_that_the_suite_did_not_come_to_is_not_said_to_be_sound(project: Project):
    files = {
        "app.py": "def after(number):\n    return number + 2\n",
        "test_a.py": "def test_a():\n    assert False\n",
        "test_b.py": "from app import after\n\n\ndef test_b():\n    assert after(1) == 2\n",
        "test_c.py": "def test_c():\n    assert True\n",
        "tox.ini": "[testenv]\ncommands = pytest test_a.py test_c.py\n",
    }
    pawl = project(files)
    for target in ("test_b.py", "test_b.py::test_b"):
        said = pawl("fix", target)
        assert (said.code, f"{target!r} was not run" in said.err) == (1, True), said
        assert f"pawl fix {target} --test 'pytest {target}'" in said.err
    said = pawl("fix", "test_c.py")
    assert (said.code, "nothing to fix: 1 other test fails, not asked for" in said.out) == (0, True), said
    said = pawl("fix", "test_b.py", "--test", "pytest test_b.py")
    assert "✗ test_b.py::test_b" in said.out, said


@pytest.mark.whole
@pytest.mark.spec("E1")
def test_a_request_says_that_patches_disagree_and_how_to_take_one(project: Project):
    dates = "def is_leap(year):\n    return year % 4 != 0\n"
    tests = "from app import is_leap\n\n\ndef test_leap():\n    assert is_leap(2024) and not is_leap(2023)\n"
    pawl = project({**SETTINGS, "app.py": dates, "test_app.py": tests})
    said = pawl("do", "--approve", "never", "make the tests pass")
    assert (said.code, (pawl.workspace / "app.py").read_text()) == (1, dates)
    assert "patches pass the tests" in said.out and "take it with: pawl promote 1" in said.out


HELPED = {
    **SETTINGS,
    "app.py": "from hashlib import md5\n\n\ndef after(number):\n    return int(md5(b'a').hexdigest(), 16)\n",
    "checks.py": "from app import after\n\n\ndef check(number, due):\n    assert after(number) == due\n",
    "test_app.py": "from checks import check\n\n\ndef test_two():\n    check(2, 3)\n    check(5, 6)\n",
}


def test_a_helper_of_the_tests_is_not_mended_in_place_of_the_code(project: Project):
    pawl = project(HELPED)
    said = untouched(pawl)
    assert said.code in (1, 6), said
    assert "verdict   verified" not in said.out
    if said.code == 6:
        assert "checks.py: check() is used by the tests, and was changed" in said.out, said


SKIPPED = {
    "pytest": {
        "test_app.py": f"import pytest\n\npytest.skip('later', allow_module_level=True)\n{PYTEST}",
        "app.py": WRONG,
    },
    "node": {
        "package.json": '{"scripts": {"test": "node --test"}}',
        "app.test.js": "require('node:test').skip('after', () => { throw new Error('it is wrong'); });\n",
    },
}


@pytest.mark.parametrize("runner", SKIPPED)
def test_that_nothing_fails_is_not_said_where_every_test_is_skipped(project: Project, runner: str):
    if shutil.which("node") is None and runner == "node":
        pytest.skip("node is not installed")
    said = untouched(project({**SETTINGS, **SKIPPED[runner]}))
    assert said.code == 1 and "no test passed" in said.err, said
