"""Which tests run and which checks look where: chosen tests, flaky ones, those that need a service, old findings."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ui.cli.console import Pawl, Said
from ui.cli.test_cli_tools import told

from pawl.checks.affected import LARGE
from pawl.checks.suite_record import SuiteRecord, SuiteRecords

pytestmark = [pytest.mark.spec("A8", "B9"), pytest.mark.timeout(120)]

OTHERS = 45
APP = "def after(number):\n    return number + 1\n"
TEST = """from app import after


def test_after():
    assert after(2) == 3


def test_none():
    assert after(0) == 1
"""


@pytest.fixture
def pawl(tmp_path: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch) -> Pawl:
    (tmp_path / "settings.toml").write_text("[verify]\nbudget = 0.2\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    monkeypatch.setenv("PAWL_STATE", str(tmp_path / "state"))
    workspace = tmp_path / "work"
    (workspace / "tests").mkdir(parents=True)
    (workspace / "conftest.py").write_text("")
    (workspace / "app.py").write_text(APP)
    (workspace / "tests/test_app.py").write_text(TEST)
    for number in range(OTHERS):
        (workspace / f"tests/test_other{number}.py").write_text(f"def test_{number}():\n    assert {number} + 1\n")
    return Pawl(workspace)


def do(
    pawl: Pawl, text: str, *words: str, request: str = "add before to app.py", files: dict[str, str] | None = None
) -> Said:
    script = pawl.workspace.parent / "script.jsonl"
    calls = [{"name": "file_read", "arguments": {"path": "app.py"}}]
    for path, content in {"app.py": text, **(files or {})}.items():
        calls.append({"name": "file_write", "arguments": {"path": path, "content": content}})
    delivered = json.dumps({"state": "DONE", "evidence": ["app.py has before"], "remaining": []})
    turns = [*({"answer": {"text": "", "calls": [call]}} for call in calls), {"answer": {"text": "Done."}}]
    turns += [{"answer": {"text": delivered}}] * 7
    script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return pawl("do", request, "--model", f"scripted:{script}", "--approve", "never", *words)


@pytest.mark.whole
def test_the_tests_that_a_change_reaches_are_run_and_counted(pawl):
    said = do(pawl, APP + "\n\ndef before(number):\n    return number - 1\n")
    assert said.code == 0, said
    assert f"2 of {OTHERS + 2} tests, all that import `app`; whole suite not run" in said.out
    assert "pawl verify --full" in said.out


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'),
        ("setup.cfg", "[tool:pytest]\naddopts = -q\ntestpaths =\n    tests\n"),
        (".gitlab-ci.yml", "test:\n  script:\n    - pytest tests\n"),
    ],
)
def test_tests_where_the_project_s_own_command_does_not_look_are_only_run_for_a_change_of_them(pawl, name, text):
    example = pawl.workspace / "examples/tests/test_example.py"
    example.parent.mkdir(parents=True)
    example.write_text("import never_installed\nfrom app import after\n\n\ndef test_example():\n    assert after(1)\n")
    (pawl.workspace / name).write_text(text)
    (pawl.workspace / "tests/broken_app.py").write_text(
        "from app import after\n\nraise ImportError\n\ntest_app = after(1)\n"
    )
    commit(pawl)
    (pawl.workspace / "app.py").write_text(APP + "\n\nLIMIT = 3\n")
    said = pawl("verify", "--only", "tests")
    assert (said.code, f"2 of {OTHERS + 2} tests, " in said.out) == (0, True), said
    shutil.rmtree(pawl.workspace.parent / "state/suites")  # What was timed fits the budget.
    example.write_text("def test_example():\n    assert True\n")
    assert f"3 of {OTHERS + 2} tests, " in pawl("verify", "--only", "tests").out


@pytest.mark.whole
def test_one_slow_test_does_not_say_that_all_are_as_slow(pawl):
    commit(pawl)
    record = SuiteRecord(files={"tests/test_other0.py": (1, 30.0)})
    SuiteRecords(pawl.workspace.parent / "state/suites").save(str(pawl.workspace.resolve()), record)
    (pawl.workspace / "app.py").write_text(APP + "\n\nLIMIT = 3\n")
    said = pawl("verify", "--only", "tests")
    # 30 s for each would be 24 min.
    assert f"2 of {OTHERS + 2} tests, all that import `app`; whole suite not run (about 35 s)" in said.out, said


@pytest.mark.whole
def test_tests_that_the_request_names_are_among_them(pawl):
    (pawl.workspace.parent / "settings.toml").write_text("[verify]\nbudget = 0.001\n")
    request = "add before to app.py; test_7, test_8 and tests.test_other9.test_9 must pass"
    said = do(pawl, APP + "\n\ndef before(number):\n    return number - 1\n", request=request)
    assert f"3 of {OTHERS + 2} tests, " in said.out, said


@pytest.mark.whole
@pytest.mark.parametrize("targets", [("tests/test_app.py",), ("app.py",), ()])
def test_fix_runs_no_whole_suite_that_is_too_large_and_says_so(pawl, targets):
    (pawl.workspace / "app.py").write_text(APP.replace("+ 1", "+ 2"))
    commit(pawl)
    if targets != ("app.py",):
        # Only the work in progress, or the last commit, says what may be broken.
        (pawl.workspace / "app.py").write_text(APP.replace("+ 1", "+ 3"))
    said = pawl.json("fix", *targets)
    assert (pawl.workspace / "app.py").read_text() == APP
    told = f"2 of {OTHERS + 2} tests, all that import `app`; whole suite not run (about "
    assert any(note.startswith(told) for note in said["notes"]), said


@pytest.mark.whole
def test_a_change_that_they_refute_is_refused(pawl):
    said = do(pawl, APP.replace("+ 1", "+ 2"))
    assert "2 failed" in said.out
    assert (pawl.workspace / "app.py").read_text() == APP


@pytest.mark.whole
def test_verify_runs_what_uncommitted_work_reaches_and_everything_in_full(pawl):
    commit(pawl)
    (pawl.workspace / "app.py").write_text(APP + "\n\nLIMIT = 3\n")
    (pawl.workspace / "CHANGES.rst").write_text("There is a limit.\n")
    assert f"2 of {OTHERS + 2} tests, all that import `app`;" in pawl("verify").out
    full = pawl("verify", "--full")
    assert f"{OTHERS + 2} passed" in full.out
    assert "whole suite not run" not in full.out


@pytest.mark.whole
def test_verify_of_a_clean_workspace_runs_what_the_last_commit_reaches_and_never_unasked_everything(pawl):
    commit(pawl)
    said = pawl("verify", "--only", "tests")
    assert said.code == 6, said
    assert "none of its tests was chosen; whole suite not run (about " in said.out
    (pawl.workspace / "app.py").write_text(APP + "\n\nLIMIT = 3\n")
    commit(pawl)
    said = pawl("verify", "--only", "tests")
    assert f"2 of {OTHERS + 2} tests, all that import `app`" in said.out, said


@pytest.mark.whole
def test_of_a_large_workspace_only_what_a_change_affects_is_checked_and_nothing_for_what_would_be_old(small):
    for number in range(LARGE):
        (small.workspace / f"part{number}.py").write_text("nowhere\n")
    (small.workspace / "uses.py").write_text("from app import after\n\nafter(1)\n")
    commit(small)
    said = small("verify")
    assert (
        said.code,
        said.out.count("there are no uncommitted changes, and findings in committed files count as old"),
    ) == (0, 3), said
    (small.workspace / "app.py").write_text("def after(number: str) -> str:\n    return number\n\n\nnowhere\n")
    said = small("verify", "--all")
    assert (said.code, "part1.py" in said.out) == (1, False), said
    # The changed file, the one that imports it, and its test; the error is in the file that did not change.
    assert "3 files compiled" in said.out and "uses.py:3:7 " in said.out, said


@pytest.mark.whole
def test_no_more_tests_are_chosen_than_the_run_has_time_for(pawl):
    (pawl.workspace.parent / "settings.toml").write_text("[verify]\nbudget = 600\n")
    for number in range(OTHERS):
        many = "".join(f"def test_{one}():\n    assert {one} + 1\n\n\n" for one in range(40))
        (pawl.workspace / f"tests/test_other{number}.py").write_text(many)
    said = do(pawl, APP + "\n\ndef before(number):\n    return number - 1\n", "--seconds", "110")
    assert said.code == 0, said
    assert f"2 of {OTHERS * 40 + 2:,} tests, all that import `app`; whole suite not run" in said.out


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)


def commit(pawl: Pawl) -> None:
    git(pawl.workspace, "init", "-q")
    git(pawl.workspace, "add", ".")
    git(pawl.workspace, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")


@pytest.fixture
def small(pawl: Pawl) -> Pawl:
    for number in range(OTHERS):
        (pawl.workspace / f"tests/test_other{number}.py").unlink()
    return pawl


@pytest.mark.whole
def test_findings_in_committed_files_are_old_and_those_in_what_depends_on_new_work_are_not(small):
    work = small.workspace
    (work / "tests/broken.py").write_text("def f(:\n")
    (work / "user.py").write_text("from lib import one\n\none()\n")
    (work / "lib.py").write_text("def one():\n    return 1\n")
    commit(small)
    said = small("verify")
    assert said.code == 0, said
    assert "2 passed" in said.out
    (work / "lib.py").write_text("def two():\n    return 2\n")
    assert small("verify").code == 1


@pytest.mark.whole
@pytest.mark.parametrize("moved", [False, True])
def test_types_that_were_wrong_at_the_last_commit_are_old_also_where_they_use_uncommitted_work(small, moved):
    work = small.workspace
    (work / "lib.py").write_text("def one() -> int:\n    return 'one'\n")
    (work / "user.py").write_text("from lib import one\n\none().upper()\n")
    (work / "other.py").write_text("from user import one\n")
    commit(small)
    (work / "lib.py").write_text("TWO = 2\n\n\ndef one() -> int:\n    return 'one'\n")
    (work / "new.py").write_text("from lib import one\n")
    told = small.json("verify", "--only", "types")
    (types,) = (step for step in told["steps"] if step["step"] == "types")
    assert (types["standing"], types["findings"]) == ("pass", []) and types["old"] == 2, types
    if moved:
        git(work, "mv", "lib.py", "library.py")
    (work / "new.py").write_text("from lib import one\n\none().lower()\n")
    told = small.json("verify", "--only", "types", code=1)
    (types,) = (step for step in told["steps"] if step["step"] == "types")
    paths = {one["path"] for one in types["findings"]}
    assert paths == ({"new.py", "user.py", "library.py"} if moved else {"new.py"}), types
    assert (work / "new.py").exists() and (work / "lib.py").exists() is not moved


def test_pytest_s_own_repository_is_tested_as_it_stands_and_cannot_vouch_for_itself(small, project_environment):
    (packages,) = project_environment.glob("lib/python3*/site-packages")
    for name in ("pytest", "_pytest"):
        shutil.copytree(packages / name, small.workspace / "src" / name)
    with (small.workspace / "src/pytest/__init__.py").open("a") as file:
        file.write("OWN = True\n")
    (small.workspace / "pyproject.toml").write_text('[project]\nname = "pytest"\nversion = "9"\n')
    (small.workspace / "tests/test_own.py").write_text("import pytest\n\n\ndef test_own():\n    assert pytest.OWN\n")
    said = small("verify", "--only", "tests")
    assert said.code == 6, said
    assert "3 passed; the project is pytest, and a test runner cannot verify itself" in said.out


def test_a_repository_that_borrows_its_objects_is_said_to_be_unread(small, tmp_path):
    commit(small)
    git(tmp_path, "clone", "-q", "--shared", str(small.workspace), str(tmp_path / "shared"))
    shared = Pawl(tmp_path / "shared")
    said = "borrows objects from another (objects/info/alternates), so commits and uncommitted work are not known"
    assert said in shared("verify", "--only", "syntax").err
    assert said in shared("doctor").out
    assert said not in small("doctor").out


@pytest.mark.whole
def test_lint_holds_no_test_back_and_kinds_can_be_chosen(small):
    (small.workspace / "extra.py").write_text("def f():\n    return undefined_name\n")
    said = small("verify")
    assert (said.code, "2 passed" in said.out) == (1, True), said
    only = small("verify", "--only", "tests")
    assert only.code == 0, only
    assert "left out by --only" in only.out
    assert small("verify", "--only", "test").code == 42


def test_parameters_of_a_test_may_be_anything(small):
    (small.workspace / "tests/test_odd.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('url', ['http://', '~/x', '../..', '/etc'])\n"
        "def test_odd(url):\n    assert url\n"
    )
    said = small("verify")
    assert said.code == 0 and "6 passed" in said.out, said


@pytest.mark.whole
def test_a_test_that_fails_only_with_the_change_and_in_company_leaves_it_unverified(small):
    (small.workspace / "tests/test_mood.py").write_text(
        "import app\n\n\ndef test_mood(request):\n"
        "    assert not (hasattr(app, 'before') and len(request.session.items) > 1)\n"
    )
    said = do(small, APP + "\n\ndef before(number):\n    return number - 1\n")
    assert said.code == 6, said
    assert "tests/test_mood.py::test_mood is flaky: it failed, and passed when it was run again alone" in said.out


@pytest.mark.whole
def test_a_test_that_cannot_run_alone_is_no_excuse_for_a_change(small):
    (small.workspace.parent / "settings.toml").write_text("")
    (small.workspace / "tests/test_company.py").write_text(
        "import app\n\n\ndef test_company(request):\n"
        "    assert len(request.session.items) > 1 and not hasattr(app, 'before')\n"
    )
    said = do(small, APP + "\n\ndef before(number):\n    return number - 1\n")
    assert said.code == 1, said
    assert "flaky" not in said.out + said.err and "after     1 failed, 2 passed" in said.out, said


@pytest.mark.whole
def test_a_suite_whose_parameters_look_like_secrets_is_timed_all_the_same(small, state_directory: Path):
    address = "http://kim:hunter2hunter2@example.org/"
    (small.workspace / "tests/test_odd.py").write_text(
        f"import pytest\n\n\n@pytest.mark.parametrize('url', ['{address}'])\ndef test_odd(url):\n    assert not url\n"
    )
    assert small("verify").code == 1
    (record,) = (state_directory / "suites").iterdir()
    kept = json.loads(record.read_text())
    assert kept["seconds"] > 0 and kept["tests"] == 3 and "hunter2" not in record.read_text()


CONNECTS = """import socket


def test_served():
    socket.create_connection(("127.0.0.1", 8765), 2).close()
"""
SERVICE = """
[[verify.service]]
name = "toy"
start = "python3 -m http.server 8765 --bind 127.0.0.1"
ready = "python3 -c 'import socket; socket.create_connection((\\"127.0.0.1\\", 8765), 1)'"
"""


@pytest.mark.whole
def test_services_of_the_settings_serve_the_tests_and_end_with_them(small):
    (small.workspace / "tests/test_served.py").write_text(CONNECTS)
    settings = small.workspace.parent / "settings.toml"
    settings.write_text(SERVICE)
    said = small("verify", "--only", "tests")
    assert (said.code, "3 passed" in said.out) == (0, True), said
    settings.write_text(SERVICE.replace("http.server", "no_such_server") + "seconds = 100\n")
    said = small("verify", "--only", "tests").out
    assert "not run: needs toy, which did not become ready: " in said and "No module named no" in said


def test_a_test_that_lacks_a_service_is_not_run_rather_than_failed(small):
    (small.workspace / "tests/test_cache.py").write_text(
        "def test_cache():\n    raise ConnectionError('Error 111 connecting to localhost:6379. Connection refused.')\n"
    )
    said = small("verify", "--only", "tests")
    assert said.code == 0, said
    assert "1 not run: needs Redis" in said.out


@pytest.mark.whole
def test_a_file_that_is_too_large_to_read_ends_nothing(small):
    (small.workspace / "numbers.py").write_text(f"x = {'1' * 1_200_000!r}\n")
    said = do(small, APP + "\n\ndef before(number):\n    return number - 1\n")
    assert said.code == 0, said


@pytest.mark.whole
def test_the_whole_suite_runs_afterwards_in_the_background_and_the_history_tells_its_end(pawl):
    (pawl.workspace.parent / "settings.toml").write_text("[verify]\nbudget = 0.2\nafterwards = true\n")
    (pawl.workspace / "tests/test_other1.py").write_text(
        "def test_1():\n    assert 'before' not in open('app.py').read()\n"
    )
    said = do(pawl, APP + "\n\ndef before(number):\n    return number - 1\n")
    assert said.code == 0 and "the whole suite runs in the background; pawl history shows how it ends" in said.out, said
    shown = ""
    while "whole suite" not in shown:
        shown = pawl("history").out
    assert "promoted; whole suite: fail" in shown, pawl("diff", "1", "--evidence").out
    told = pawl("diff", "1", "--evidence").out
    assert f"fail, {OTHERS + 1} passed, 1 failed; new: tests/test_other1.py::test_1" in told, told


@pytest.mark.whole
def test_the_suite_of_an_entry_that_is_not_the_newest_is_not_run(pawl):
    assert do(pawl, APP + "\n\ndef before(number):\n    return number - 1\n").code == 0
    pawl("undo")
    said = pawl("verify", "--entry", "1")
    assert said.code == 42 and "entry 1 is not the newest" in said.err, said


@pytest.mark.whole
@pytest.mark.parametrize("budget", [0.2, 60], ids=["chosen", "all"])
@pytest.mark.parametrize(("number", "code"), [(1, 0), (2, 1)], ids=["kept", "broken"])
def test_a_first_test_in_the_folder_that_is_set_hides_none_of_those_elsewhere(
    pawl: Pawl, tmp_path: Path, number: int, code: int, budget: float
):
    (tmp_path / "settings.toml").write_text(f"[verify]\nbudget = {budget}\n")
    shutil.rmtree(pawl.workspace / "tests")
    (pawl.workspace / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    (pawl.workspace / "accept").mkdir()
    (pawl.workspace / "accept/test_app.py").write_text(TEST)
    before = "\n\ndef before(number):\n    return number - 1\n"
    test = "from app import before\n\n\ndef test_before():\n    assert before(2) == 1\n"
    said = do(pawl, APP.replace("+ 1", f"+ {number}") + before, files={"tests/test_before.py": test})
    assert said.code == code, said
    assert ("2 failed" in said.out) is (code == 1), said


@pytest.mark.whole
@pytest.mark.parametrize("budget", [0.2, 60], ids=["chosen", "all"])
def test_tests_that_the_request_names_run_though_the_runner_is_set_to_look_elsewhere(
    pawl: Pawl, tmp_path: Path, budget: float
):
    (tmp_path / "settings.toml").write_text(f"[verify]\nbudget = {budget}\n")
    (pawl.workspace / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    (pawl.workspace / "accept").mkdir()
    wanted = "from app import before\n\n\ndef test_before():\n    assert before(2) == 1\n"
    (pawl.workspace / "accept/test_before.py").write_text(wanted)
    request = "make the tests in accept/test_before.py pass"
    wrong = do(pawl, f"{APP}\n\ndef before(number):\n    return number\n", request=request)
    assert wrong.code == 1 and "verdict   failed" in wrong.out, wrong
    right = do(pawl, f"{APP}\n\ndef before(number):\n    return number - 1\n", request=request)
    assert right.code == 0 and "verdict   verified" in right.out, right


CRATE = """pub fn {name}(x: i32) -> i32 {{
    x + 1
}}

#[cfg(test)]
mod tests {{
    use super::*;

    #[test]
    fn adds_one() {{
        assert_eq!({name}(1), 2);
    }}
}}
"""
PACKAGE = """package {name}

import "testing"

func TestAdd(t *testing.T) {{
	if Add(1) != 2 {{
		t.Fatal(Add(1))
	}}
}}
"""
COMPILED = {
    "cargo": (
        {"Cargo.toml": '[workspace]\nmembers = ["one", "two"]\nresolver = "2"\n'}
        | {f"{one}/Cargo.toml": f'[package]\nname = "shop-{one}"\nversion = "1.0.0"\n' for one in ("one", "two")}
        | {f"{one}/src/lib.rs": CRATE.format(name=one) for one in ("one", "two")},
        "one/src/lib.rs",
    ),
    "go": (
        {"go.mod": "module shop\n\ngo 1.19\n"}
        | {f"{one}/add_test.go": PACKAGE.format(name=one) for one in ("one", "two")}
        | {f"{one}/add.go": f"package {one}\n\nfunc Add(x int) int {{ return x + 1 }}\n" for one in ("one", "two")},
        "one/add.go",
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("program", COMPILED)
def test_the_packages_that_a_change_reaches_are_tested(pawl: Pawl, tmp_path: Path, program: str):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    shutil.rmtree(pawl.workspace)
    files, path = COMPILED[program]
    for name, text in {**files, ".gitignore": "target\nCargo.lock\n"}.items():
        (pawl.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (pawl.workspace / name).write_text(text)
    commit(pawl)
    (tmp_path / "settings.toml").write_text("[verify]\nbudget = 0.001\n")
    assert pawl("verify", "--only", "tests").code == 0
    for number, code in ((1, 0), (2, 1)):
        (pawl.workspace / path).write_text(files[path].replace("x + 1", f"x + {number} + 0"))
        said = pawl("verify", "--only", "tests")
        assert (said.code, "1 of 2 tests, " in said.out) == (code, True), said


@pytest.mark.whole
def test_the_tests_without_the_change_are_kept_for_the_next_change_of_the_same_files(pawl: Pawl, tmp_path: Path):
    (tmp_path / "settings.toml").write_text("[verify]\nbudget = 0.001\n")
    wrong = APP.replace("+ 1", "+ 2")
    assert do(pawl, wrong).code == 1
    texts = {one: one.read_text() for one in (tmp_path / "state/verdicts").iterdir()}
    (kept,) = (one for one, text in texts.items() if '"step": "tests"' in text)
    assert '"passed": 2,' in texts[kept]
    kept.write_text(texts[kept].replace('"passed": 2,', '"passed": 7,'))
    assert "before    7 passed" in do(pawl, wrong).out
    (pawl.workspace / "other.py").write_text("")
    assert "before    2 passed" in do(pawl, wrong).out


@pytest.mark.whole
def test_a_run_of_everything_that_is_cut_off_says_nothing_of_how_much_there_is(pawl):
    (pawl.workspace.parent / "settings.toml").write_text("[verify]\nbudget = 0.2\nseconds = 6\n")
    commit(pawl)
    (pawl.workspace / "tests/test_waits.py").write_text("import time\n\n\ndef test_waits():\n    time.sleep(99)\n")
    said = pawl("verify", "--full", "--only", "tests")
    assert said.code != 0, said
    (pawl.workspace / "app.py").write_text(APP + "\n\nLIMIT = 3\n")
    (pawl.workspace / "tests/test_waits.py").write_text("def test_waits():\n    pass\n")
    said = pawl("verify", "--only", "tests")
    assert f" of {OTHERS + 3} tests, " in said.out, said
    assert "whole suite not run (more than 6 s)" in said.out, said


@pytest.mark.whole
def test_tests_of_packages_that_are_installed_in_the_workspace_are_none_of_its_own(pawl):
    """Some make their environment in the workspace and ignore it nowhere."""
    installed = pawl.workspace / "env/lib/other/tests"
    installed.mkdir(parents=True)
    (pawl.workspace / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    (installed / "test_other.py").write_text("import app\n\n\ndef test_no():\n    assert not hasattr(app, 'before')\n")
    said = do(pawl, APP + "\n\ndef before(number):\n    return number - 1\n")
    assert "test_no" not in said.out and "refused" not in said.out, said
    assert f"2 of {OTHERS + 2} tests, all that import `app`" in said.out, said


@pytest.mark.whole
def test_a_check_claims_nothing_of_tests_that_did_not_run_before_the_change(pawl, tmp_path):
    (pawl.workspace / "app.py").write_text(APP.replace("+ 1", "+ 2"))
    (pawl.workspace / "old.py").write_text("TWO = 3\n")
    (pawl.workspace / "tests/test_old.py").write_text("import old\n\n\ndef test_old():\n    assert old.TWO == 2\n")
    mended = {"path": "app.py", "old": "number + 2", "new": "number + 1"}
    answers = told(pawl, tmp_path, ("strict_patch", mended), ("check", {"tests": ["tests/test_old.py"]}))
    assert "it is not known whether 1 of them failed before" in answers[1]


@pytest.mark.whole
def test_a_model_that_named_its_tests_is_not_told_to_name_some(pawl, tmp_path):
    commit(pawl)
    (pawl.workspace / "tests/test_ends.py").write_text(
        "import os\n\nimport app\n\n\ndef test_ends():\n    os._exit(0)\n"
    )
    changed = {"path": "app.py", "old": "number + 1", "new": "number + 1 + 0"}
    calls = (("check", {"what": "tests"}), ("check", {"tests": ["tests/test_ends.py"]}))
    answers = told(pawl, tmp_path, ("strict_patch", changed), *calls, code=6)
    assert ["name those that matter" in one for one in answers[1:3]] == [True, False], answers
    assert "the run did not finish" in answers[2] and "none of them ran" not in answers[2], answers[2]
