"""Projects of uv, poetry, pdm, hatch, pipenv, tox, nox and their like, made with the real tools: their environments are
found though nobody activates them, their test commands run what the tool runs, and what is missing is installed on the
bench."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ui.cli.console import Pawl

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300), pytest.mark.spec("A12")]
PYENV = shutil.which("pyenv")
PINNED = Path(__file__).parent / "tools-requirements.txt"
TESTS = {
    "src/shop/__init__.py": "def price():\n    return 3\n",
    "checks/check_price.py": "from shop import price\n\n\ndef test_price():\n    assert price() == 3\n",
    "checks/check_more.py": "from shop import price\n\n\ndef test_more():\n    assert price() > 2\n",
}
CONFIG = '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\n'
BUILD = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
PROJECT = f'[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.11"\n\n{{}}\n{BUILD}\n{CONFIG}'
GROUP = '[dependency-groups]\ndev = ["pytest"]\n'
MADE = {
    "uv": (PROJECT.format(GROUP), [["uv", "sync", "-q"]], "the workspace's own"),
    "pdm": (
        PROJECT.format(GROUP),
        [["pdm", "config", "-q", "--local", "venv.in_project", "false"], ["pdm", "install", "-q"]],
        "pdm's",
    ),
    "hatch": (
        PROJECT.format('[tool.hatch.envs.default]\ndependencies = ["pytest"]\n'),
        [["hatch", "-q", "env", "create"]],
        "hatch's",
    ),
    "pipenv": (
        PROJECT.format(GROUP),
        [["pipenv", "--python", sys.executable], ["pipenv", "run", "pip", "install", "-q", "pytest"]],
        "pipenv's",
    ),
    "virtualenvwrapper": (
        PROJECT.format(GROUP),
        [
            [
                "bash",
                "-c",
                'bin=$(dirname "$(readlink -f "$(command -v virtualenvwrapper.sh)")")\n'
                "VIRTUALENVWRAPPER_PYTHON=$bin/python\n"
                'VIRTUALENVWRAPPER_VIRTUALENV=$bin/virtualenv; . "$bin/virtualenvwrapper.sh" > /dev/null\n'
                'mkvirtualenv -a "$PWD" -i pytest elsewhere',
            ]
        ],
        "virtualenvwrapper's",
    ),
}
NAMED = {
    "tox": (
        "tox.ini",
        "[tox]\nenv_list = py\n\n[testenv]\ndeps = pytest\ncommands = pytest checks -v\n",
        ["tox", "-e", "py"],
    ),
    "nox": (
        "noxfile.py",
        'import nox\n\n\n@nox.session\ndef tests(session):\n    session.install("pytest", "-e", ".")\n'
        '    session.run("pytest", "checks")\n',
        ["nox", "-s", "tests"],
    ),
    "just": ("justfile", "test *words:\n    uv run pytest checks {{words}}\n", ["just", "test"]),
}


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the tools at pinned versions, for all workers of a run."""
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place  # noqa: TID251
    home = {**os.environ, "HOME": os.path.expanduser("~")}  # noqa: TID251
    with open(place / "tools.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "tools" / "ready").exists():
            for words in (
                [sys.executable, "-m", "venv", str(place / "tools")],
                [f"{place}/tools/bin/pip", "install", "-q", "uv"],
                [f"{place}/tools/bin/uv", "venv", "-q", "--python", sys.executable, str(place / "bare")],
                [*f"{place}/tools/bin/uv pip install -q --python {place}/tools/bin/python -r".split(), str(PINNED)],
            ):
                subprocess.run(words, check=True, capture_output=True, env=home)
            (place / "tools" / "ready").touch()
    return place / "tools" / "bin"


@pytest.fixture
def lay(tmp_path: Path, state_directory: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pawl]:
    """Lays a project; the tools are on the PATH, no environment is active."""
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("uv", "poetry", "pdm", "hatch", "pipenv", "virtualenvwrapper.sh", "tox", "nox", "just"):
        (programs / name).symlink_to(tools / name)
    # An interpreter without packages: this one's may have them.
    monkeypatch.setenv("PATH", f"{programs}:{tools.parent.parent / 'bare/bin'}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)

    def lay(files: dict[str, str]) -> Pawl:
        for name, text in files.items():
            (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "shop" / name).write_text(text)
        return Pawl(tmp_path / "shop")

    return lay


def called(pawl: Pawl, words: list[str]) -> str:
    done = subprocess.run(words, cwd=pawl.workspace, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def suite(told: dict) -> dict:
    return next(step for step in told["steps"] if step["step"] == "tests")


@pytest.mark.parametrize("tool", MADE)
def test_an_environment_that_the_tool_made_is_found_and_tests_the_workspace(lay, tool):
    project, commands, whose = MADE[tool]
    pawl = lay({**TESTS, "pyproject.toml": project, ".gitignore": ".venv\n.pdm*\n"})
    for words in commands:
        called(pawl, words)
    step = suite(pawl.json("verify", "--all"))
    assert (step["standing"], step["counts"]["passed"]) == ("pass", 2), step
    told = pawl.json("doctor")
    assert told["environment"]["python"] == whose
    assert told["test_commands"][0]["tests"] == 2
    (pawl.workspace / "src/shop/__init__.py").write_text("def price():\n    return 2\n")
    assert suite(pawl.json("verify", "--all", code=1))["counts"]["failed"] == 2


@pytest.mark.parametrize("tool", NAMED)
def test_the_command_of_the_tool_runs_the_tests_that_the_tool_runs(lay, tool):
    name, text, words = NAMED[tool]
    pawl = lay({**TESTS, "pyproject.toml": PROJECT.format(GROUP), name: text, "other/check_it.py": "assert False\n"})
    ran = re.search(r"(\d+) passed", called(pawl, words))
    assert ran is not None
    called(pawl, ["uv", "sync", "-q"])
    step = suite(pawl.json("verify", "--all", "--only", "tests"))
    assert step["counts"]["passed"] == int(ran[1]) == 2
    told = pawl.json("doctor")["test_commands"][0]
    assert (told["words"], told["source"]) == (["pytest", "checks"], name)


LOCKED = {
    "uv": ["uv", "lock", "-q"],
    "pdm": ["pdm", "lock", "-q"],
    "pipenv": ["pipenv", "lock", "--quiet"],
    "hatch": ["true"],
}
NAMED_BY = {
    "pipenv": {"Pipfile": '[packages]\n\n[dev-packages]\npytest = "*"\n', "pyproject.toml": CONFIG},
    "hatch": {"pyproject.toml": PROJECT.format('[tool.hatch.envs.test]\ndependencies = ["pytest"]\n')},
}


@pytest.mark.parametrize("tool", LOCKED)
def test_what_a_lock_file_names_is_installed_on_the_bench_and_kept(lay, tool):
    named = NAMED_BY.get(tool, {"pyproject.toml": PROJECT.format(GROUP)})
    pawl = lay({**TESTS, **named, ".gitignore": ".venv\n.pdm*\n"})
    called(pawl, LOCKED[tool])
    shutil.rmtree(pawl.workspace / ".venv", ignore_errors=True)  # pdm makes an empty one to lock
    step = suite(pawl.json("verify", "--all", code=6))
    assert "'pawl verify --install' installs it on the bench" in step["reason"]
    told = pawl.json("verify", "--all", "--install")
    assert suite(told)["counts"]["passed"] == 2, told
    assert not (pawl.workspace / ".venv").exists()
    assert suite(pawl.json("verify", "--all", "--fresh"))["counts"]["passed"] == 2


def wheel(path: Path, value: str) -> None:
    """The smallest package that pip installs."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("greet.py", f"WORD = {value!r}\n")
        made.writestr("greet-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1\n")
        made.writestr(
            "greet-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr("greet-1.dist-info/RECORD", "")


UNITTEST = (
    "import unittest\n\nfrom greet import WORD\n\n\nclass Greet(unittest.TestCase):\n"
    "    def test_word(self):\n        self.assertEqual(WORD, 'hello')\n"
)


POETRY = (
    '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.11"\n\n'
    '[tool.poetry]\npackages = [{include = "shop", from = "src"}]\n\n'
    '[tool.poetry.dependencies]\ngreet = {path = "vendor/greet-1-py3-none-any.whl"}\n\n'
    '[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"\n'
)


def test_the_environment_of_poetry_is_found(lay):
    """With a package of its own folder: poetry asks registries in a way that not every one answers."""
    files = {
        "pyproject.toml": POETRY,
        "src/shop/__init__.py": "",
        "test_greet.py": UNITTEST,
        "vendor/README": "wheels\n",
    }
    pawl = lay(files)
    wheel(pawl.workspace / "vendor/greet-1-py3-none-any.whl", "hello")
    called(pawl, ["poetry", "lock"])
    assert "greet not installed; 'pawl verify --install'" in suite(pawl.json("verify", "--all", code=1))["reason"]
    called(pawl, ["poetry", "install"])
    assert pawl.json("doctor")["environment"]["python"] == "poetry's"
    ran = pawl("run", "--", "python", "-c", "import greet, shop; print(greet.WORD, shop.__file__)")
    assert ran.out == f"hello {pawl.workspace}/src/shop/__init__.py\n"


@pytest.mark.skipif(PYENV is None, reason="pyenv is in no registry")
def test_the_environment_of_pyenv_virtualenv_is_found(lay, tmp_path, monkeypatch):
    root = tmp_path / "pyenv"
    base = root / "versions/base"
    (base / "bin").mkdir(parents=True)
    for name in ("python", "python3"):
        (base / "bin" / name).symlink_to(os.path.realpath(sys.executable))
    (base / "lib").symlink_to(Path(sys.base_prefix) / "lib")
    monkeypatch.setenv("PYENV_ROOT", str(root))
    pawl = lay({**TESTS, "pyproject.toml": PROJECT.format(""), ".python-version": "for-shop\n"})
    called(pawl, [PYENV, "virtualenv", "-q", "base", "for-shop"])
    called(pawl, [PYENV, "exec", "pip", "install", "-q", "pytest"])
    step = suite(pawl.json("verify", "--all"))
    assert (step["standing"], step["counts"]["passed"]) == ("pass", 2), step
    told = pawl.json("doctor")["environment"]
    assert (told["python"], told["python_folder"]) == ("pyenv's", f"{base}/envs/for-shop")


@pytest.mark.attack("A54")
def test_requirements_are_installed_with_leave_only_and_never_reach_another_workspace(lay, tmp_path):
    files = {"test_greet.py": UNITTEST, "requirements.txt": "--no-index\n--find-links vendor\ngreet\n"}
    pawl = lay({**files, "vendor/README": "wheels\n"})
    wheel(pawl.workspace / "vendor/greet-1-py3-none-any.whl", "hello")
    assert "greet not installed; 'pawl verify --install'" in suite(pawl.json("verify", "--all", code=1))["reason"]
    assert suite(pawl.json("verify", "--all", "--install"))["standing"] == "pass"
    assert suite(pawl.json("verify", "--all", "--fresh"))["standing"] == "pass"
    wheel(pawl.workspace / "vendor/greet-1-py3-none-any.whl", "another")
    assert suite(pawl.json("verify", "--all", "--fresh", code=1))["standing"] == "fail"
    wheel(pawl.workspace / "vendor/greet-1-py3-none-any.whl", "hello")
    other = Pawl(tmp_path / "other")
    other.workspace.mkdir()
    for name, text in files.items():
        (other.workspace / name).write_text(text)
    assert suite(other.json("verify", "--all", code=1))["standing"] == "fail"
    (pawl.workspace / "requirements.txt").write_text(files["requirements.txt"] + "# another\n")
    assert suite(pawl.json("verify", "--all", "--fresh", code=1))["standing"] == "fail"


FIX = """
[[turn]]
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } }] }
[[turn]]
answer = "One is added now."
"""
USES_BOTH = (
    "import unittest\n\nfrom app import after\nfrom greet import WORD\n\n\nclass After(unittest.TestCase):\n"
    "    def test_after(self):\n        self.assertEqual((after(1), WORD), (2, 'hello'))\n"
)


def test_a_run_installs_what_lacks_with_leave_and_else_says_how(lay, tmp_path):
    (tmp_path / "script.toml").write_text(FIX)
    words = ("do", "fix the bug in after", "--approve", "never", "--model", f"scripted:{tmp_path / 'script.toml'}")
    wrong = "def after(number):\n    return number + 2\n"
    requirements = "--no-index\n--find-links vendor\ngreet\n"
    pawl = lay({"app.py": wrong, "test_app.py": USES_BOTH, "requirements.txt": requirements, "vendor/README": "\n"})
    wheel(pawl.workspace / "vendor/greet-1-py3-none-any.whl", "hello")
    said = pawl(*words, "--json")
    assert said.code != 0 and "pawl verify --install" in said.out, said
    assert (pawl.workspace / "app.py").read_text() == wrong
    done = pawl(*words, "--install")
    assert done.code == 0, done
    assert (pawl.workspace / "app.py").read_text() == "def after(number):\n    return number + 1\n"
    assert sorted(one.name for one in pawl.workspace.iterdir()) == [
        "app.py",
        "requirements.txt",
        "test_app.py",
        "vendor",
    ]
