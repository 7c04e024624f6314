"""A step whose inputs have not changed is not run twice; anything that decides about it makes it run again."""

import dataclasses

import pytest
from world import lay

from pawl.checks.cache import Keeper, contents_of, surroundings
from pawl.checks.ladder import Placed
from pawl.checks.project_facts import CheckKind
from pawl.checks.steps import failed, passed, skipped
from pawl.checks.verifier import Verifier
from pawl.core.diagnostic import CheckBegun, CheckResult, Diagnostic, Status
from pawl.core.errors import OutOfTime
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import load
from pawl.workspace.benches import CommandRequest, run_on_bench
from pawl.workspace.project import Project

FINE = passed("lint", "fine")
FILES = {"app.py": "x = 1\n", "pyproject.toml": "", "uv.lock": "1", "notes.md": "a"}


@dataclasses.dataclass(frozen=True)
class Step:
    name: str = "lint"
    verdict: CheckResult = FINE

    def run(self, subject):
        RAN.append(self.name)
        return self.verdict


RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran():
    RAN.clear()


def test_looking_at_what_surrounds_a_project_ends_when_the_time_is_up(subject):
    here = subject(FILES)
    assert surroundings(here, frozenset(), None, CancelToken(seconds=900)) is not None
    with pytest.raises(OutOfTime):
        surroundings(here, frozenset(), None, CancelToken(seconds=0))


class Shelf(dict):
    def put(self, key, verdict):
        self[key] = verdict


def climb_once(subject, shelf, *steps, environment="tools"):
    keeper = Keeper(shelf, environment, contents_of(subject.files))
    verdicts = [step.run(subject) for step in keeper.around(steps)]
    return keeper, verdicts


LINT = Placed(Step(), CheckKind.LINT, ("*.py", "pyproject.toml", "*.lock"))


@pytest.mark.spec("A8")
def test_an_unchanged_step_is_answered_from_the_shelf(subject):
    shelf = Shelf()
    climb_once(subject(FILES), shelf, LINT)
    keeper, (verdict,) = climb_once(subject(FILES), shelf, LINT)
    assert RAN == ["lint"]
    assert keeper.kept == ["lint"]
    assert verdict.standing is Status.PASS
    assert verdict.reason == "fine; unchanged since it last ran"


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    "change",
    [{"app.py": "x = 2\n"}, {"pyproject.toml": "[tool]"}, {"uv.lock": "2"}, {"new.py": ""}],
    ids=["code", "configuration", "lock", "new file"],
)
def test_what_decides_about_a_step_makes_it_run_again(subject, change):
    shelf = Shelf()
    climb_once(subject(FILES), shelf, LINT)
    climb_once(subject({**FILES, **change}), shelf, LINT)
    assert RAN == ["lint", "lint"]


@pytest.mark.spec("A8")
def test_what_does_not_decide_about_a_step_changes_nothing_but_a_step_with_all_inputs_runs_again(subject):
    shelf, tests = Shelf(), Placed(Step("tests"), CheckKind.TESTS)
    climb_once(subject(FILES), shelf, LINT, tests)
    climb_once(subject({**FILES, "notes.md": "b"}), shelf, LINT, tests)
    assert RAN == ["lint", "tests", "tests"]


@pytest.mark.spec("A8")
def test_another_tool_command_or_definition_makes_it_run_again(subject):
    shelf = Shelf()
    climb_once(subject(FILES), shelf, LINT)
    climb_once(subject(FILES), shelf, LINT, environment="newer tools")
    climb_once(subject(FILES, test_command=("make",)), shelf, LINT)
    climb_once(subject(FILES), shelf, dataclasses.replace(LINT, step=Step(verdict=passed("lint", "otherwise"))))
    assert len(RAN) == 4


@pytest.mark.spec("A8")
@pytest.mark.parametrize(
    "verdict",
    [
        skipped("lint", "not installed"),
        failed("lint", "the command was stopped: timed out after 3 s"),
        failed("lint", "ruff gave up: no memory"),
        failed("lint", "1 failed", [Diagnostic(tool="tests", message="the report is not complete", code="incomplete")]),
    ],
    ids=["missing tool", "time-out", "gave up", "broke off"],
)
def test_what_the_files_did_not_decide_is_not_kept(subject, verdict):
    shelf = Shelf()
    step = Placed(Step(verdict=verdict), CheckKind.LINT)
    climb_once(subject(FILES), shelf, step)
    climb_once(subject(FILES), shelf, step)
    assert len(RAN) == 2


@pytest.mark.spec("A8")
def test_tests_that_run_find_what_a_kept_build_makes(subject):
    shelf = Shelf()
    build = Placed(Step("build", passed("build")), CheckKind.BUILD, ("*.py",))
    tests = Placed(Step("tests", skipped("tests", "never kept")), CheckKind.TESTS)
    climb_once(subject(FILES), shelf, build, tests)
    RAN.clear()
    keeper, _ = climb_once(subject(FILES), shelf, build, tests)
    assert RAN == ["build", "tests"]
    assert keeper.kept == ["build"]


@pytest.mark.spec("A8")
@pytest.mark.usefixtures("active_environment")
def test_a_change_that_was_verified_is_not_run_again_in_the_same_run(tmp_path, state_directory, monkeypatch):
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    test = "from app import after\n\n\ndef test_after():\n    assert after(1) == 2\n"
    folder = lay(tmp_path / "w", {"app.py": b"def after(n):\n    return n + 2\n", "test_app.py": test.encode()})
    events = []
    with Project.open(load(), folder) as shop:
        ran = run_on_bench(shop, CommandRequest(argv=("sed", "-i", "s/+ 2/+ 1/", "app.py"), seconds=60))
        verifier = Verifier(shop=shop, listen=events.append)
        before = verifier.tests()
        first = verifier.evidence(ran.capture.changes, before)
        began = [one.step for one in events if isinstance(one, CheckBegun)]
        events.clear()
        again = verifier.evidence(ran.capture.changes, before)
    assert "tests" in began and again == first
    assert [type(one) for one in events] == [CheckResult] * len(first.verdicts)
