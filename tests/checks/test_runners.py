"""The installed runner is started, code of the workspace imports as ever, and what would take its place is named."""

import os
import re
import shutil
import subprocess
import venv

import pytest
from checks.conftest import RealFolder

from pawl.checks.runners import launched, shadowing, starts_runner
from pawl.checks.steps import watched_tests
from pawl.core.change import Change, ChangeSet, Node

pytestmark = [pytest.mark.spec("A8"), pytest.mark.attack("A54")]
FAKE = "import os, sys\nsys.stdout.write('1 passed in 0.01s\\n')\nsys.stdout.flush()\nos._exit(0)\n"
TEST = "def test_it():\n    assert {}\n"
FILE, OTHER = Node.file("0" * 64), Node.file("1" * 64)


@pytest.fixture
def run(tmp_path, project_environment):
    """Starts a runner in a project of these files, as Pawl starts it."""

    def run(files, *words, python=project_environment / "bin/python", sign=""):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        argv = launched(RealFolder(tmp_path), (str(python), *(words or ("-m", "pytest", "-q"))), sign=sign)
        return subprocess.run(argv, cwd=tmp_path, env={"PATH": os.defpath}, capture_output=True, text=True, check=False)

    return run


@pytest.mark.spec("G1")
def test_whether_a_test_executed_its_own_checks_is_seen_in_every_python(run, tmp_path):
    body = "def given():\n    return 1\n\n\ndef test_idle():\n    if given() == 2:\n        assert given()\n"
    body += "\n\ndef test_looks():\n    assert (\n        given()\n        == 1\n    )\n"
    inner = "    def look(it):\n        assert it\n\n"
    body += f"\n\ndef test_inner():\n{inner}    look(given())\n"
    body += f"\n\ndef test_never():\n{inner}    for it in []:\n        look(it)\n"
    body += f"\n\ndef test_caught():\n{inner}    try:\n        look(0)\n    except Exception:\n        return\n"
    body += "\n\ndef test_not_reached():\n    def look(it):\n        assert False\n\n    assert_none = [look]\n"
    done = run({"test_it.py": body}, "-m", "pytest", "-q", sign="the-sign")
    seen = watched_tests(done.stdout, "the-sign")[1]
    assert [one.checked for one in seen.ran] == [False, True, True, False, False, None], done


def test_a_file_of_many_tests_is_read_a_few_times_and_not_for_each_of_them(run):
    counting = (
        "import atexit\nimport sys\n\nREAD = []\n"
        "sys.addaudithook(lambda event, of: READ.append(1) if event == 'open' and 'test_it' in str(of[0]) else None)\n"
        "atexit.register(lambda: sys.stderr.write(f'read {len(READ)} times'))\n"
    )
    body = "import pytest\n\n\n@pytest.mark.parametrize('it', range(200))\ndef test_it(it):\n    assert it >= 0\n"
    done = run({"conftest.py": counting, "test_it.py": body}, "-m", "pytest", "-q", sign="the-sign")
    assert len(watched_tests(done.stdout, "the-sign")[1].ran) == 200
    assert int(re.search(r"read (\d+) times", done.stderr)[1]) < 20


@pytest.mark.spec("G1")
def test_the_same_is_seen_of_the_runner_of_the_standard_library_and_how_long_a_test_took(run):
    body = """
import unittest
from unittest import mock


class Its(unittest.TestCase):
    def test_a_idle(self):
        for one in []:
            self.assertEqual(one, 1)

    @mock.patch("os.getcwd")
    def test_b_looks(self, getcwd):
        with self.subTest():
            self.assertTrue(sum(range(100_000)))

    def test_c_inner(self):
        self.look(1)

    def look(self, it):
        assert it


class Later(unittest.IsolatedAsyncioTestCase):
    async def test_d_awaited(self):
        self.assertTrue(True)
"""
    done = run({"test_it.py": body}, "-m", "unittest", sign="the-sign")
    seen = {one.id.rpartition(".")[2]: one for one in watched_tests(done.stdout, "the-sign")[1].ran}
    looked = {"test_a_idle": False, "test_b_looks": True, "test_c_inner": None, "test_d_awaited": True}
    assert {name: one.checked for name, one in seen.items()} == looked, done
    assert seen["test_b_looks"].seconds > 0


@pytest.mark.parametrize(
    "name", ["pytest", "_pytest", "pluggy", "iniconfig", "json", "xml", "importlib", "tomllib", "__future__"]
)
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
def test_a_module_of_the_workspace_never_stands_for_one_of_the_runner(run, name, form):
    done = run({form.format(name): FAKE, "pytest/__main__.py": FAKE, "test_it.py": TEST.format("False")})
    assert done.returncode == 1 and "1 failed" in done.stdout, done


def test_what_the_runner_imports_late_is_the_installed_one_too(run):
    fakes = dict.fromkeys(("difflib.py", "pprint.py", "pygments/__init__.py", "pdb.py", "getpass.py", "xml.py"), FAKE)
    files = {"test_it.py": "def test_it(tmp_path):\n    assert [1, 2] == [1, 3]\n", **fakes}
    done = run(files, "-m", "pytest", "--color=yes", "-vv", "--junitxml=out.xml")
    assert done.returncode == 1 and "1 failed" in done.stdout, done


def test_another_tool_that_is_started_as_a_module_is_the_installed_one_and_imports_installed_ones(run):
    done = run({"pygments.py": FAKE, "json.py": FAKE, "argparse.py": FAKE}, "-m", "pygments", "-V")
    assert done.returncode == 0 and "Pygments version" in done.stdout, done


@pytest.mark.parametrize("words", [("-m", "unittest"), ("-m", "unittest", "discover"), ("-m", "unittest", "test_it")])
def test_the_other_runner_is_the_installed_one(run, words):
    test = "from unittest import TestCase\n\n\nclass Its(TestCase):\n    def test_it(self):\n        self.fail()\n"
    fakes = dict.fromkeys(("unittest.py", "argparse.py", "asyncio.py", "signal.py"), FAKE)
    done = run({**fakes, "test_it.py": test}, *words)
    assert done.returncode == 1 and "FAILED (failures=1)" in done.stderr, done


def test_a_runner_that_is_not_installed_is_not_taken_from_the_workspace(run, tmp_path):
    venv.create(tmp_path / "bare", symlinks=True)
    done = run({"pytest.py": FAKE, "test_it.py": TEST.format("True")}, python=tmp_path / "bare/bin/python")
    assert done.returncode == 1 and "passed" not in done.stdout, done


def test_an_environment_inside_the_workspace_is_an_installation(run, tmp_path, project_environment):
    (tmp_path / ".venv").symlink_to(project_environment)
    done = run({"json.py": FAKE, "test_it.py": TEST.format("False")}, python=tmp_path / ".venv/bin/python")
    assert done.returncode == 1 and "1 failed" in done.stdout, done


@pytest.mark.parametrize(
    "files",
    [
        {"statistics.py": "mine = 1\n", "test_it.py": f"from statistics import mine\n{TEST.format('mine')}"},
        {"test/__init__.py": "", "test/test_it.py": f"from test import own\n{TEST.format('own')}", "test/own.py": ""},
        {"pytest.ini": "[pytest]\naddopts = -p plugin\n", "plugin.py": "", "test_it.py": TEST.format("True")},
        {"a/__init__.py": "", "a/json.py": "x = 1\n", "test_it.py": f"from a.json import x\n{TEST.format('x')}"},
    ],
    ids=["own name of a standard module", "tests named test", "own plugin", "inside a package"],
)
def test_ordinary_projects_import_as_before(run, files):
    done = run(files)
    assert done.returncode == 0 and "1 passed" in done.stdout, done


def test_a_library_of_the_runner_is_tested_as_it_stands_in_its_own_repository(run, tmp_path, project_environment):
    (installed,) = project_environment.glob("lib/python3*/site-packages/iniconfig")
    shutil.copytree(installed, tmp_path / "iniconfig")
    with (tmp_path / "iniconfig/__init__.py").open("a") as file:
        file.write("own = True\n")
    test = "import iniconfig\n" + TEST.format("hasattr(iniconfig, 'own')")
    assert run({"test_it.py": test}).returncode == 1, "another project's copy is not the runner's"
    done = run({"pyproject.toml": '[project]\nname = "iniconfig"\n', "test_it.py": test})
    assert done.returncode == 0, done


def test_tests_find_the_path_the_words_and_the_main_module_of_a_plain_start(run, tmp_path, project_environment):
    tells = "import sys\nfound = (sys.path, sys.argv, sys.modules['__main__'].__spec__.name)\n" + TEST.format(
        "not found"
    )
    words = ("-m", "pytest", "-q", "-vv", "--tb=line")
    made = run({"test_it.py": tells}, *words)
    plain = subprocess.run((project_environment / "bin/python", *words), cwd=tmp_path, capture_output=True, text=True)
    found = [[line for line in one.stdout.splitlines() if line.startswith("E ")] for one in (made, plain)]
    assert found[0] and found[0] == found[1]
    assert "pytest.__main__" in made.stdout


def test_only_an_interpreter_with_a_runner_is_started_in_this_way():
    assert starts_runner(("/w/.venv/bin/python3.12", "-m", "pytest", "-x"))
    assert starts_runner(("python", "-m", "unittest"))
    assert not starts_runner(("python3", "-m", "coverage", "run"))
    assert not starts_runner(("pythonic", "-m", "pytest")) and not starts_runner(("python3",))


class Files(dict):
    """A folder by its paths."""

    def exists(self, path):
        return path in self

    def read(self, path):
        return self[path]

    def walk(self, under=""):
        return [path for path in self if path.startswith(f"{under}/" if under else "")]


def named(added, before=(), changed=(), **files):
    every = {
        **dict.fromkeys((*added, *before, *changed), b""),
        **{k.replace("_toml", ".toml"): v for k, v in files.items()},
    }
    made = [Change(path, None, FILE) for path in added] + [Change(path, OTHER, FILE) for path in changed]
    return [line.split()[0] for line in shadowing(ChangeSet.of(made), Files(every))]


@pytest.mark.parametrize(
    "path",
    ["json.py", "src/pytest.py", "tests/unit/json.py", "lib/xml/__init__.py", "a/b/sitecustomize.py", "json.abi3.so",
     "json.pyc", "_ssl.cpython-311-x86_64-linux-gnu.so", "evil.pth", "x/site-packages/six.py",
     "node_modules/.bin/jest", "web/node_modules/a", "evil-1.0.dist-info/entry_points.txt", ".venv/bin/pytest",
     "xdist.py", "cgi/__init__.py", "NODE_MODULES/a"],
)  # fmt: skip
def test_a_file_that_takes_the_place_of_a_runner_is_named(path):
    assert named([path]) == [path]


@pytest.mark.parametrize(
    "path",
    ["app.py", "tests/test_json.py", "test/__init__.py", "json.md", "site/index.html", "code/main.py", "conftest.py",
     "docs/json.rst", "email/welcome.html", "json.pyi"],
)  # fmt: skip
def test_a_file_that_nobody_imports_in_its_place_is_not_named(path):
    assert named([path]) == []


def test_a_module_of_a_package_is_its_own_unless_the_package_was_made_to_hide_it():
    assert named(["shop/json.py"], before=["shop/__init__.py"]) == []
    assert named(["shop/__init__.py", "shop/json.py"]) == []
    assert named(["json.py", "__init__.py"]) == ["json.py"]
    assert named(["unit/__init__.py", "unit/json.py"], before=["unit/test_it.py"]) == ["unit/json.py"]
    assert named(["xml/sax.py"], before=["xml/__init__.py"]) == ["xml/sax.py"]
    assert named([], changed=["json.py"]) == ["json.py"]


def test_a_link_in_the_place_of_a_module_or_a_folder_is_named():
    links = [Change(path, None, Node.link("0" * 64)) for path in ("json", "node_modules", "src/xml")]
    assert len(shadowing(ChangeSet.of(links), Files())) == 3


def test_a_library_of_the_runner_may_be_changed_in_its_own_repository_and_the_runner_may_not():
    own = {"pyproject_toml": b'[project]\nname = "packaging"\n'}
    assert named([], changed=["src/packaging/tags.py"], before=["src/packaging/__init__.py"], **own) == []
    assert named(["json.py"], **own) == ["json.py"]
    assert named(["setup.py"], changed=["coverage/cmd.py"], before=["coverage/__init__.py"]) == ["coverage/cmd.py"]
    files = Files({"setup.py": b"setup(name='coverage')", "coverage/__init__.py": b"", "coverage/cmd.py": b""})
    assert shadowing(ChangeSet.of([Change("coverage/cmd.py", OTHER, FILE)]), files) == ()
    own = {"pyproject_toml": b'[project]\nname = "pluggy"\n'}
    assert named([], changed=["src/pluggy/_hooks.py"], before=["src/pluggy/__init__.py"], **own) == [
        "src/pluggy/_hooks.py"
    ]
