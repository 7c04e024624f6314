"""Test commands are found where projects name them; one that reports no test is not believed."""

from __future__ import annotations

from pathlib import Path

import pytest
from ui.cli.console import Pawl
from world import lay

from pawl.checks.known_commands import TestCommand
from pawl.checks.test_commands import TreeFolder, candidates
from pawl.settings.files import Tree

TOX = "[tox]\nenv_list = py3\n\n[testenv]\ncommands = pytest -v --tb=short --basetemp={envtmpdir} {posargs:tests}\n"
NOX = 'import nox\n\n\n@nox.session\ndef tests(session):\n    session.run("pytest", "-m", "not slow")\n'
WORKFLOW = "jobs:\n  tests:\n    steps:\n      - uses: actions/checkout@v4\n      - run: {}\n"
FOUND = {
    "a workflow": ({".github/workflows/ci.yml": WORKFLOW.format("pytest tests -x -n auto --cov=shop")}, "pytest tests"),
    "lines of a workflow": (
        {
            ".github/workflows/ci.yml": WORKFLOW.format(
                "|\n          pip install .\n          python -m pytest -W error"
            )
        },
        "pytest -W error",
    ),
    "uv in a workflow": (
        {".github/workflows/ci.yml": WORKFLOW.format("uv run --frozen --group test pytest -v")},
        "pytest",
    ),
    "tox in a workflow": (
        {".github/workflows/ci.yml": WORKFLOW.format("uv run tox run -e ${{ matrix.tox }}"), "tox.ini": TOX},
        "pytest tests",
    ),
    "gitlab": ({".gitlab-ci.yml": "test:\n  script:\n    - poetry run pytest --junitxml=r.xml\n"}, "pytest"),
    "instructions": (
        {
            "AGENTS.md": "Run `pytest tests/test_a.py -k x` for one, `make check` for all.\n",
            "Makefile": "check:\n\t$(PY) -m pytest\n",
        },
        "make check",
    ),
    "a page": ({"CONTRIBUTING.md": "Run the tests:\n\n```\n$ pytest -m 'not slow'\n```\n"}, "pytest -m 'not slow'"),
    "tox": ({"tox.ini": TOX}, "pytest tests"),
    "tox in pyproject": (
        {
            "pyproject.toml": '[tool.tox.env_run_base]\ncommands = [["pytest", "--tb=short", "tests"]]\n',
            ".github/workflows/ci.yml": WORKFLOW.format("tox"),
        },
        "pytest tests",
    ),
    "tox in setup.cfg": ({"setup.cfg": TOX.replace("[tox]", "[tox:tox]")}, "pytest tests"),
    "tox as it was in pyproject": ({"pyproject.toml": f'[tool.tox]\nlegacy_tox_ini = """\n{TOX}"""\n'}, "pytest tests"),
    "tox for some environments": (
        {"tox.ini": "[testenv]\ncommands =\n    lint: ruff check\n    py{311,312}: pytest {posargs}\n"},
        "pytest",
    ),
    "what follows an installation": (
        {".github/workflows/ci.yml": WORKFLOW.format("pip install -e . && pytest checks")},
        "pytest checks",
    ),
    "a page of reStructuredText": (
        {"CONTRIBUTING.rst": "Tests are run by::\n\n    $ pytest -m fast\n"},
        "pytest -m fast",
    ),
    "words of an agent's page": ({"CLAUDE.md": "```bash\nuv run pytest\n```\n"}, "pytest"),
    "poetry": ({".github/workflows/ci.yml": WORKFLOW.format("poetry run python -m pytest checks")}, "pytest checks"),
    "nox": ({"noxfile.py": NOX}, "pytest -m 'not slow'"),
    "hatch": ({"pyproject.toml": '[tool.hatch.envs.test.scripts]\ntest = "pytest {args:checks}"\n'}, "pytest checks"),
    "pdm": ({"pyproject.toml": '[tool.pdm.scripts]\ntest = {cmd = "pytest checks"}\n'}, "pytest checks"),
    "poe": ({"pyproject.toml": '[tool.poe.tasks.test]\nsequence = ["pytest checks"]\n'}, "pytest checks"),
    "make": ({"Makefile": "test:\n\tpytest checks\n"}, "pytest checks"),
    "just": ({"justfile": "test *args: build\n    pytest checks {{ args }}\n\nbuild:\n    echo\n"}, "pytest checks"),
    "variables of a step": (
        {
            ".github/workflows/ci.yml": "env:\n  MODE: old\n  PIP_QUIET: 1\njobs:\n  test:\n    env: {}\n    steps:\n"
            "      - name: lint\n        env:\n          OTHER: x\n        run: ruff check\n"
            "      - name: test\n        run: |\n          pip install .\n          pytest\n"
            "        env:\n          MODE: 'ci'  # as there\n          KEY: ${{ secrets.KEY }}\n"
        },
        "MODE=ci pytest",
    ),
    "variables of a job": (
        {".gitlab-ci.yml": 'test:\n  variables:\n    MODE: "a b"\n  script:\n    - export X=1 && pytest\n'},
        "MODE='a b' X=1 pytest",
    ),
    "an exported variable": (
        {".github/workflows/ci.yml": WORKFLOW.format("|\n          export MODE=ci\n          pytest -x")},
        "MODE=ci pytest",
    ),
    "a variable before the command": (
        {".github/workflows/ci.yml": WORKFLOW.format("PYTHONPATH=.:$PYTHONPATH MODE=ci python -m unittest -v")},
        "MODE=ci PYTHONPATH=. python -m unittest -v",
    ),
    "options in a variable": (
        {".github/workflows/ci.yml": WORKFLOW.format("PYTEST_ADDOPTS='-x -m fast' LD_PRELOAD=./x.so PATH=. pytest")},
        "pytest -m fast",
    ),
    "variables of tox": (
        {
            "tox.ini": "[base]\ncommand = pytest checks\n\n[testenv]\nset_env =\n    MODE = ci\n    lint: OTHER = x\n"
            "commands = {[base]command}\n"
        },
        "MODE=ci pytest checks",
    ),
    "variables of tox in toml": (
        {"tox.toml": '[env_run_base]\nset_env = { MODE = "ci" }\ncommands = [["pytest", "tests"]]\n'},
        "MODE=ci pytest tests",
    ),
    "variables of nox": (
        {"noxfile.py": NOX.replace('slow")', 'slow", env={"MODE": "ci"})')},
        "MODE=ci pytest -m 'not slow'",
    ),
    "variables of hatch": (
        {"pyproject.toml": '[tool.hatch.envs.t]\nenv-vars = { MODE = "ci" }\nscripts = { test = "pytest checks" }\n'},
        "MODE=ci pytest checks",
    ),
    "variables of pdm": (
        {"pyproject.toml": '[tool.pdm.scripts]\ntest = { cmd = ["pytest", "checks"], env = { MODE = "ci" } }\n'},
        "MODE=ci pytest checks",
    ),
    "variables of make": (
        {"Makefile": "export MODE := ci\n\ntest:\n\t@X=1 pytest checks\n"},
        "MODE=ci X=1 pytest checks",
    ),
    "a package laid beside the project": (
        {".github/workflows/ci.yml": WORKFLOW.format("uv run --with-editable . pytest tests")},
        "pytest tests",
    ),
    "scripts of a workflow": (
        {
            ".github/workflows/ci.yml": WORKFLOW.format("uv run --no-sync bash scripts/test-all.sh $OPTIONS"),
            "scripts/test-all.sh": "set -e\nbash scripts/test.sh --cov ${@}\n",
            "scripts/test.sh": "export PYTHONPATH=./examples\npytest -n auto tests scripts/tests ${@}\n",
        },
        "PYTHONPATH=./examples pytest tests scripts/tests",
    ),
    "a script with a variable before its program": (
        {
            ".github/workflows/ci.yml": WORKFLOW.format('"scripts/test"'),
            "scripts/test": 'export PREFIX=""\nif [ -d venv ]; then\n    export PREFIX="venv/bin/"\nfi\n'
            '${PREFIX}coverage run -m pytest checks "$@"\n',
        },
        "pytest checks",
    ),
    "tox as a module": (
        {".github/workflows/ci.yml": WORKFLOW.format("python -m tox -e py313,lint"), "tox.ini": TOX},
        "pytest tests",
    ),
    "what tox has installed": (
        {"tox.ini": "[testenv]\ncommands = pytest --doctest-modules {env_site_packages_dir}/shop {tox_root}/tests\n"},
        "pytest --doctest-modules ./shop ./tests",
    ),
    "warnings that are errors": (
        {".github/workflows/ci.yml": WORKFLOW.format("python -m pytest -W error::DeprecationWarning tests")},
        "pytest -W error::DeprecationWarning tests",
    ),
    "a star that no shell fills in": (
        {".github/workflows/ci.yml": WORKFLOW.format("pytest -o python_files='*_checks.py' checks")},
        "pytest -o 'python_files=*_checks.py' checks",
    ),
    "variables of other tools": (
        {".github/workflows/ci.yml": WORKFLOW.format("TOXENV=docs CC=gcc MYPY_FORCE_COLOR=1 MODE=ci pytest")},
        "MODE=ci pytest",
    ),
    "tests among tasks that only sound like them": (
        {
            ".github/workflows/ci.yml": WORKFLOW.format(
                "|\n          make typecheck\n          make check  # all\n          pytest checks"
            )
        },
        "pytest checks",
    ),
    "django": ({"manage.py": "import django\n"}, "python manage.py test"),
    "a runner of its own": ({"tests/runtests.py": "print()\n"}, "python tests/runtests.py"),
}


def found(root: Path, files: dict[str, str]) -> list[str]:
    lay(root, {name: text.encode() for name, text in files.items()})
    with Tree(root) as tree:
        return [one.shown for one in candidates(TreeFolder(tree))]


@pytest.mark.spec("A8")
@pytest.mark.parametrize("way", FOUND)
def test_a_command_is_found_where_the_project_names_it(tmp_path, way):
    files, command = FOUND[way]
    assert found(tmp_path, files)[:1] == [command]


NO_COMMAND = {
    "an installation": WORKFLOW.format("python -m pip install pytest-cov"),
    "an installation by uv": WORKFLOW.format("uv pip install . --group test pytest"),
    "the name of a step": "jobs:\n  pytest:\n    steps:\n      - name: pytest (all)\n",
    "a package": "Use `pytest-xdist`.\n",
    "a script of Python": WORKFLOW.format("python scripts/test_release.py"),
    "files that a shell fills in": WORKFLOW.format("pytest tests/test_*.py"),
    "one test": WORKFLOW.format("pytest tests/test_price.py::test_price"),
    "checks of another kind": WORKFLOW.format("|\n          make typecheck\n          make format-check"),
}


@pytest.mark.parametrize("way", NO_COMMAND)
def test_what_only_speaks_of_tests_is_no_command(tmp_path, way):
    script = {"scripts/test_release.py": "import unittest\n\n\ndef test():\n    pass\n"}
    files = {".github/workflows/ci.yml": NO_COMMAND[way], "CONTRIBUTING.md": NO_COMMAND[way], **script}
    assert found(tmp_path, files) == []


def test_a_part_is_not_taken_for_the_whole(tmp_path):
    parts = "|\n          pytest tests/unit\n          pytest tests/slow"
    assert found(tmp_path / "jobs", {".github/workflows/ci.yml": WORKFLOW.format(parts)}) == []
    for way, line in (("folder", "cd sub && pytest"), ("quoted", 'sh -c "cd sub && pytest"')):
        assert found(tmp_path / way, {".github/workflows/ci.yml": WORKFLOW.format(line)}) == []
    in_folder = "jobs:\n  test:\n    steps:\n      - run: pytest\n        working-directory: sub\n      - run: tox -q\n"
    assert found(tmp_path / "step", {".github/workflows/ci.yml": in_folder, "tox.ini": TOX}) == ["pytest tests"]
    by_default = "defaults:\n  run:\n    working-directory: ./sub/\n" + WORKFLOW.format("pytest")
    assert found(tmp_path / "job", {".github/workflows/ci.yml": by_default}) == []
    here = "defaults:\n  run:\n    working-directory: .\n" + WORKFLOW.format("pytest")
    assert found(tmp_path / "here", {".github/workflows/ci.yml": here}) == ["pytest"]
    assert found(tmp_path / "page", {"CONTRIBUTING.md": "Run `pytest tests/test_a.py` or `pytest tests/unit`.\n"}) == []


BY_VARIABLE = """import os
import unittest

from app import after


class After(unittest.TestCase):
    def test_after(self):
        self.assertEqual((after(1), after(-4), os.environ.get("MODE")), (2, -3, "ci"))
"""


@pytest.mark.usefixtures("active_environment")
def test_tests_run_with_the_variables_that_ci_gives_them(tmp_path: Path, state_directory, monkeypatch):
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    workflow = WORKFLOW.format("MODE=ci python -m unittest discover -v")
    files = {"app.py": "def after(n):\n    return n + 1\n", "test_app.py": BY_VARIABLE}
    pawl = Pawl(lay(tmp_path / "w", {name: text.encode() for name, text in files.items()}))
    assert pawl("verify", "--all").code == 1
    assert pawl("verify", "--all", "--test", "MODE=ci python -m unittest").code == 0
    lay(pawl.workspace, {".github/workflows/ci.yml": workflow.encode()})
    assert pawl("verify", "--all").code == 0
    assert pawl.json("doctor")["test_commands"][0]["variables"] == ["MODE=ci"]
    # The engine of a repair, and a failing test that is run again alone, get them too.
    lay(pawl.workspace, {"app.py": b"def after(n):\n    return n + 2\n"})
    assert pawl("fix").code == 0
    assert (pawl.workspace / "app.py").read_text() == files["app.py"]


OWN = (
    "import sys\nimport unittest\n\nsys.path.insert(0, '.')\n"
    "unittest.main(module=None, argv=['x', 'discover', '-s', 'checks', '-p', 'it*.py'])\n"
)
IT = "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n"


@pytest.mark.usefixtures("active_environment")
def test_only_a_command_that_reports_tests_is_believed_and_doctor_shows_it(
    tmp_path: Path, state_directory, monkeypatch
):
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    files = {"Makefile": "test:\n\t@echo all is well\n", "tests/runtests.py": OWN, "checks/it_works.py": IT}
    pawl = Pawl(lay(tmp_path / "w", {name: text.encode() for name, text in files.items()}))
    assert pawl.json("doctor")["test_commands"][0]["tests"] == 0
    told = pawl.json("verify", "--all")
    assert next(step for step in told["steps"] if step["step"] == "tests")["counts"]["passed"] == 1
    first = pawl.json("doctor")["test_commands"][0]
    assert (first["words"], first["source"], first["tests"]) == (
        ["python", "tests/runtests.py"],
        "tests/runtests.py",
        1,
    )
    assert "python tests/runtests.py (tests/runtests.py; ran 1 test here)" in pawl("doctor").out


@pytest.mark.parametrize(
    ("test", "label"),
    [
        ("tests/urls/tests.py", "urls.tests"),
        ("tests/urls/tests.py::PathTests::test_one", "urls.tests.PathTests.test_one"),
        ("tests.urls.tests.PathTests", "urls.tests.PathTests"),
        ("urls.tests.PathTests.test_one", "urls.tests.PathTests.test_one"),
    ],
)
def test_a_runner_of_its_own_is_given_tests_as_labels_however_they_are_named(test: str, label: str):
    own = TestCommand(words=("python", "tests/runtests.py", "-v2"), source="tests/runtests.py")
    labelled = own.with_labels([test, "docs/example.py"])
    assert labelled is not None and labelled.words == ("python", "tests/runtests.py", "-v2", label)
