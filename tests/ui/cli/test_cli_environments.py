"""The tests that run are those of the workspace, in the project's own environment, as `pawl verify` tells."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest
from ui.cli.console import Pawl

from pawl.settings.config import load
from pawl.workspace.project import Project

TEST = "from shop import price\n\n\ndef test_price():\n    assert price() == 3\n"
PROJECT = {"pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n', "tests/test_price.py": TEST}


def laid(root: Path, files: dict[str, str]) -> Pawl:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Pawl(root)


@pytest.fixture(autouse=True)
def _state(state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))


def suite_of(told: dict) -> dict:
    return next(step for step in told["steps"] if step["step"] == "tests")


@pytest.fixture
def with_copy(tmp_path: Path, project_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which another version of the project is installed."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    (installed,) = (project_environment / "lib").glob("python3*/site-packages")
    (packages / "theirs.pth").write_text(f"{installed}\n")
    (packages / "shop").mkdir()
    (packages / "shop/__init__.py").write_text("def price():\n    return 3\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(folder))
    monkeypatch.setenv("PATH", f"{folder}/bin:{project_environment}/bin:/usr/bin:/bin")


@pytest.mark.usefixtures("with_copy")
def test_a_project_that_is_also_installed_is_tested_from_the_workspace(tmp_path):
    wrong = {"src/shop/__init__.py": "def price():\n    return 4\n"}
    step = suite_of(laid(tmp_path / "w", {**PROJECT, **wrong}).json("verify", "--all", code=1))
    assert (step["standing"], step["counts"]["failed"]) == ("fail", 1)
    assert "src was put first on the import path: shop is also in" in step["reason"]


@pytest.mark.parametrize("elsewhere", ["with_copy", "active_environment"])
def test_fix_repairs_the_sources_of_the_workspace_whether_a_copy_is_installed_or_none(tmp_path, request, elsewhere):
    request.getfixturevalue(elsewhere)
    wrong = {"src/shop/__init__.py": "def price(number=2):\n    return number - 1\n"}
    more = "from shop import price\n\n\ndef test_more():\n    assert [price(one) for one in (0, 7, 40)] == [1, 8, 41]\n"
    pawl = laid(tmp_path / "w", {**PROJECT, **wrong, "tests/test_more.py": more})
    told = pawl.json("fix")
    assert (told["outcome"], told["after"]["passed"]) == ("fixed", 2), told
    assert "number + 1" in (pawl.workspace / "src/shop/__init__.py").read_text()


@pytest.mark.usefixtures("active_environment")
def test_fix_runs_the_tests_that_only_ci_can_name(tmp_path):
    options = "-o python_files='*_checks.py' -o python_functions='check_*' checks"
    checks = (
        "from shop import price\n\n\ndef check_price():\n    assert [price(one) for one in (0, 7, 40)] == [1, 8, 41]\n"
    )
    files = {
        ".github/workflows/ci.yml": f"jobs:\n  tests:\n    steps:\n      - run: python -m pytest -v {options}\n",
        "pyproject.toml": PROJECT["pyproject.toml"],
        "src/shop/__init__.py": "def price(number):\n    return number - 1\n",
        "checks/shop_checks.py": checks + checks.partition("\n\n\n")[2].replace("price()", "again()"),
    }
    told = laid(tmp_path / "w", files).json("fix")
    assert (told["outcome"], told["after"]["passed"]) == ("fixed", 2), told


@pytest.mark.usefixtures("with_copy")
def test_tests_that_import_another_copy_prove_nothing(tmp_path):
    lead = "import site\nimport sys\n\nsys.path.insert(0, site.getsitepackages()[0])\n"
    own = {"src/shop/__init__.py": "def price():\n    return 3\n", "conftest.py": lead}
    told = laid(tmp_path / "w", {**PROJECT, **own}).json("verify", "--all", code=6)
    assert told["verdict"] == "unverified"
    assert "not from the workspace" in suite_of(told)["reason"]


@pytest.mark.whole
@pytest.mark.usefixtures("active_environment")
def test_a_source_folder_that_is_not_installed_is_put_on_the_import_path(tmp_path):
    starts = "import subprocess\nimport sys\n\n\ndef test_started():\n"
    starts += "    subprocess.run([sys.executable, '-c', 'import shop'], check=True)\n"
    own = {"src/shop/__init__.py": "def price():\n    return 3\n", "tests/test_started.py": starts}
    step = suite_of(laid(tmp_path / "w", {**PROJECT, **own}).json("verify", "--all"))
    assert (step["standing"], step["counts"]["passed"]) == ("pass", 2)
    assert "shop is not installed" in step["reason"]


def test_an_environment_of_the_workspace_whose_python_lies_anywhere_runs_the_tests(
    tmp_path, project_environment, monkeypatch
):
    """Nothing is activated, and the first Python of the PATH has no pytest."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("PATH", f"/usr/bin:/bin:{project_environment}/bin")
    root = tmp_path / "w"
    venv.create(root / ".venv", symlinks=True)
    (packages,) = (root / ".venv/lib").glob("python3*/site-packages")
    (installed,) = (project_environment / "lib").glob("python3*/site-packages")
    (packages / "theirs.pth").write_text(f"{installed}\n")
    pawl = laid(root, {**PROJECT, "shop.py": "def price():\n    return 3\n", ".gitignore": ".venv\n"})
    assert suite_of(pawl.json("verify", "--all"))["standing"] == "pass"
    ran = pawl("run", "--", "python", "-c", "import sys; print(sys.prefix)")
    assert ran.out.startswith(str(root / ".venv")), (ran, sys.version)


TRACKED = {
    "tests/.env": "FOO=env\nSECRET_KEY=dev\n",
    "real/.env": "API_TOKEN=c4nary-Zq8x-7f3a\n",
    "new/.env": "FOO=untracked\n",
}


def test_commands_see_a_tracked_file_that_is_only_named_like_a_secret_and_models_do_not(tmp_path):
    pawl = laid(tmp_path / "w", TRACKED)
    for words in (["init", "-q"], ["add", "tests/.env", "real/.env"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=pawl.workspace, check=True)
    ran = pawl("run", "--", "sh", "-c", "cat */.env")
    assert ran.out.startswith("FOO=env\nSECRET_KEY=dev\n")
    assert "c4nary" not in ran.out + ran.err
    assert "untracked" not in ran.out
    (pawl.workspace / "tests/.env").write_text("FOO=env\nAPI_TOKEN=c4nary-Zq8x-7f3a\n")
    assert "FOO" not in pawl("run", "--", "cat", "tests/.env").out
    with Project.open(load(), pawl.workspace) as shop:
        assert all(not shop.read_gate().shows(path) for path in TRACKED)
