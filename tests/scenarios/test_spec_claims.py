"""What `pawl spec` says of a task, a step or a wave is so: nothing is ticked, proved or done without its proof, also
where it was killed or interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from scenarios.conftest import PROJECT
from scenarios.spec_story import SpecStory, write

from pawl.settings.config import load
from pawl.workspace.project import Project

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]

TESTS = Path(__file__).parents[1]
FOLDER = "specs/001-stats"
WORDS = "def words(text):\n    return len(text.split())\n"
TEST_WORDS = "from stats.words import words\n\n\ndef test_words():\n    assert words('a b\\nc') == 3\n"
LINES, TEST_LINES = (text.replace("words", "lines") for text in (WORDS, TEST_WORDS))
ONE = "## Phase 1: Words\n- [ ] T001 Count words in stats/words.py\n  - Proof: {}\n"
PLAIN = "## Phase 1: Words\n- [ ] T001 Count words in stats/words.py\n"
BASE = {
    "pyproject.toml": PROJECT["pyproject.toml"],
    ".gitignore": PROJECT[".gitignore"],
    "stats/__init__.py": "",
    "tests/test_base.py": "def test_base():\n    assert 'a'\n",
}


@pytest.fixture
def story(spec_story: SpecStory) -> SpecStory:
    spec_story.lay(BASE)
    return spec_story


def begun(story: SpecStory, tasks: str, *turns: dict) -> None:
    story.model_says(*turns)
    story.lay({f"{FOLDER}/tasks.md": tasks})
    story.planned()


def tasks_text(story: SpecStory) -> str:
    return (story.pawl.workspace / FOLDER / "tasks.md").read_text()


def standings(story: SpecStory) -> dict[str, str]:
    return {one["id"]: one["standing"] for one in story.pawl.json("spec", "status")["tasks"]}


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    ("proof", "told"),
    [
        ("tests/test_words.py::test_all_words", "its proof tests/test_words.py::test_all_words did not pass"),
        ("docs/words.md", "its proof docs/words.md is neither a test nor a command in backticks: nothing runs it"),
    ],
    ids=["another test of the file", "no test"],
)
def test_a_task_whose_proof_did_not_run_is_not_ticked(story: SpecStory, proof: str, told: str):
    work = write(("stats/words.py", WORDS), ("tests/test_words.py", TEST_WORDS), user="T001")
    begun(story, ONE.format(proof), *work)
    said = story.spec("execute")
    assert said.code == 6 and told in said.out, said
    assert "[x]" not in tasks_text(story) and story.commits()[-1] == "Plan it"
    accepted = story.spec("execute", "--accept-unverified")
    assert accepted.code == 0 and standings(story) == {"T001": "done"}, accepted


@pytest.mark.spec("E11")
def test_a_proof_that_the_task_did_not_write_is_missed(story: SpecStory):
    other = ("tests/test_other.py", TEST_WORDS)
    end = {"match": {"schema": False}, "answer": {"text": "That is all."}, "times": 0}
    begun(story, ONE.format("tests/test_words.py"), *write(("stats/words.py", WORDS), other, user="T001"), end)
    said = story.spec("execute")
    assert said.code != 0 and "tests/test_words.py" in said.out and "[x]" not in tasks_text(story), said


@pytest.mark.spec("E11")
@pytest.mark.parametrize("proof", ["tests/test_words.py", "`python3 -m pytest tests/test_words.py`"])
def test_a_task_that_the_model_only_calls_done_is_not_ticked(story: SpecStory, proof: str):
    story.lay({"stats/words.py": "def words(text):\n    return 0\n", "tests/test_words.py": TEST_WORDS})
    words = {"match": {"schema": False}, "answer": {"text": "T001 is done and all tests pass."}, "times": 0}
    begun(story, ONE.format(proof), words)
    assert story.spec("execute").code == 1
    assert "[x]" not in tasks_text(story)


RED = "## Phase 1: Tests\nThese tests must fail first\n- [ ] T001 Test of words in tests/test_words.py\n"
GREEN = "## Phase 2: Code\n- [ ] T002 Count words in stats/words.py\n"
END = {"match": {"schema": False}, "answer": {"text": "I see nothing to do."}, "times": 0}


@pytest.mark.spec("E11", "A1")
@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([("tests/test_words.py", "def test_words():\n    assert len('ab') == 2\n")], "none of the new tests fails"),
        ([("tests/test_words.py", "def test_words(:\n")], "T001"),
        ([("tests/test_words.py", TEST_WORDS), ("stats/more.py", WORDS)], "stats/more.py"),
        ([("tests/test_words.py", TEST_WORDS.replace("stats.words", "stats.wrods"))], "T001"),
    ],
    ids=["passes already", "cannot be read", "comes with code", "names another module"],
)
def test_tests_that_do_not_fail_for_want_of_their_code_are_not_ticked(story: SpecStory, files, told: str):
    begun(story, RED + GREEN, *write(*files, user="T001"), END)
    before = story.git("rev-parse", "HEAD")
    said = story.spec("execute", "--wave", "1")
    assert said.code in (1, 6) and told in said.out, said
    assert "[x]" not in tasks_text(story) and story.git("rev-parse", "HEAD") == before


@pytest.mark.spec("E11", "A1")
def test_a_task_answers_for_its_own_tests_whatever_the_documents_want_of_all(story: SpecStory):
    story.lay(
        {f"{FOLDER}/plan.md": "**Testing**: pytest\n", ".specify/memory/constitution.md": "All tests MUST pass.\n"}
    )
    tasks = RED.replace("T001", "T001 [P]") + "- [ ] T003 [P] Test of lines in tests/test_lines.py\n"
    tasks += GREEN.replace("T002", "T002 [P]") + "- [ ] T004 [P] Count lines in stats/lines.py\n"
    files = {"T001": ("tests/test_words.py", TEST_WORDS), "T002": ("stats/words.py", WORDS)}
    files |= {"T003": ("tests/test_lines.py", TEST_LINES), "T004": ("stats/lines.py", LINES)}
    begun(story, tasks, *(turn for task, file in files.items() for turn in write(file, user=f"{task}: ")))
    said = story.spec("execute")
    assert said.code == 0 and set(standings(story).values()) == {"proved"}, said


@pytest.mark.spec("E11", "A1")
def test_a_task_that_is_to_come_test_first_is_not_ticked_where_its_proof_passes_without_it(story: SpecStory):
    tasks = ONE.format("tests/test_words.py") + "  - Test first: yes\n"
    passes = ("tests/test_words.py", "def test_words():\n    assert 'a b'.split()\n")
    begun(story, tasks, *write(("stats/words.py", WORDS), passes, user="T001"), END)
    said = story.spec("execute")
    assert said.code != 0 and "[x]" not in tasks_text(story), said


@pytest.mark.spec("E11")
def test_a_question_with_a_proof_is_not_ticked_by_its_answer(story: SpecStory):
    tasks = "## Phase 1: Words\n- [ ] T001 How are words counted?\n  - Proof: tests/test_words.py\n"
    begun(story, tasks, {"match": {"schema": False}, "answer": {"text": "By split."}, "times": 0})
    said = story.spec("execute")
    assert said.code != 0 and "[x]" not in tasks_text(story), said


@pytest.mark.spec("E11", "E6")
def test_a_limit_is_shared_by_the_tasks_of_a_wave_and_the_next_wave_has_what_is_left(story: SpecStory):
    tasks = (
        "## Phase 1: Both\n- [ ] T001 [P] Words in stats/words.py\n- [ ] T002 [P] Lines in stats/lines.py\n"
        "## Phase 2: More\n- [ ] T003 Bytes in stats/bytes.py\n"
    )
    begun(story, tasks, *BOTH, *write(("stats/bytes.py", "def size(text):\n    return len(text)\n"), user="T003"))
    said = story.spec("execute", "--max-tokens", "200000", "--max-budget-usd", "3")
    assert said.code == 0, said
    status = story.pawl.json("spec", "status")
    runs = [one["run"] for one in status["tasks"]]
    spent = dict.fromkeys(runs, 0)
    for one in story.runs():
        spent[one["run"]] += one["input_tokens"] + one["output_tokens"]
    with Project.open(load(), story.pawl.workspace) as shop:
        budgets = [shop.store.runs.get(shop.workspace, run).order.budget for run in runs]
    assert [one["tokens"] for one in budgets] == [100_000, 100_000, 200_000 - spent[runs[0]] - spent[runs[1]]]
    assert [Decimal(str(one["money"])) for one in budgets] == [Decimal("1.5"), Decimal("1.5"), Decimal(3)]


@pytest.mark.spec("E11")
def test_a_task_that_no_test_speaks_for_is_not_called_proved(story: SpecStory):
    begun(story, PLAIN, *write(("stats/words.py", WORDS), user="T001"))
    assert story.spec("execute").code == 0 and standings(story) == {"T001": "done"}
    said = story.spec("execute")
    assert said.code == 0 and "ticked, and not proved by Pawl: T001" in said.out, said


SHOP = "RATE = 1\n\n\ndef discount(total, percent):\n    return total - percent\n"
PASSES = "from shop import discount\n\n\ndef test_none():\n    assert discount(20.0, 0) == 20.0\n"
HARMLESS = write(("shop.py", SHOP.replace("RATE = 1", "RATE = 2")), user="T001")


@pytest.mark.spec("E11")
def test_a_fix_that_nothing_proves_is_not_ticked_because_its_wave_makes_nothing_worse(story: SpecStory):
    story.lay({"shop.py": SHOP, "tests/test_shop.py": PASSES})
    begun(story, "## Phase 1: Shop\n- [ ] T001 Fix the discount in shop.py\n", *HARMLESS)
    said = story.spec("execute")
    assert said.code == 6 and "no test fails without the change" in said.out, said
    assert "[x]" not in tasks_text(story) and story.commits()[-1] == "Plan it"


@pytest.mark.spec("E11")
@pytest.mark.parametrize("proof", ["`true`", "tests/test_shop.py"])
def test_a_proof_that_passes_without_the_task_does_not_prove_it(story: SpecStory, proof: str):
    story.lay({"shop.py": SHOP, "tests/test_shop.py": PASSES})
    begun(story, f"## Phase 1: Shop\n- [ ] T001 Change the rate in shop.py\n  - Proof: {proof}\n", *HARMLESS)
    assert story.spec("execute").code == 0
    assert standings(story) == {"T001": "done"}


@pytest.mark.spec("E11")
def test_a_task_may_write_what_its_proof_runs_and_what_it_is_told_to_configure(story: SpecStory):
    tasks = (
        "## Phase 1: Program\n"
        '- [ ] T001 [P] The package in kinds/__init__.py\n  - Proof: `python3 -c "import kinds"`\n'
        "- [ ] T002 [P] The program in program.py\n  - Proof: `python3 program.py`\n"
        "- [ ] T003 [P] The build in vite.config.ts\n"
    )
    files = {"T001": "kinds/__init__.py", "T002": "program.py", "T003": "vite.config.ts"}
    texts = {"T001": "KINDS = ()\n", "T002": "print('Hello')\n", "T003": "export default {};\n"}
    begun(story, tasks, *(turn for task in files for turn in write((files[task], texts[task]), user=f"{task}: ")))
    said = story.spec("execute")
    assert said.code == 0 and standings(story) == {"T001": "proved", "T002": "proved", "T003": "done"}, said


@pytest.mark.spec("E11")
def test_a_task_whose_change_was_promoted_and_undone_is_done_again(story: SpecStory):
    story.lay({"shop.py": SHOP, "tests/test_shop.py": PASSES})
    tasks = (
        "## Phase 1: Shop\n- [ ] T001 [P] Change the rate in shop.py\n- [ ] T002 [P] Count words in stats/words.py\n"
    )
    end = {"match": {"schema": False}, "answer": {"text": "I cannot."}}
    begun(story, tasks, *HARMLESS, end)
    assert story.spec("execute").code == 1 and standings(story) == {"T001": "waits", "T002": "open"}
    run = next(one["run"] for one in story.pawl.json("spec", "status")["tasks"] if one["id"] == "T001")
    assert story.pawl("approve", run, "--yes").code == 0 and story.pawl("undo").code == 0
    story.model_says({"match": {"schema": False}, "answer": {"text": "It is done already."}, "times": 0})
    said = story.spec("execute")
    assert said.code == 1 and "T001 failed" in said.out and "[x]" not in tasks_text(story), said


@pytest.mark.spec("E11")
@pytest.mark.parametrize("by", ["pawl undo", "git"])
def test_a_wave_that_was_taken_back_is_done_again_and_not_ticked_without_its_change(story: SpecStory, by: str):
    # Nothing demands a proof, so that nothing but the change says that the task was done.
    begun(story, PLAIN, *write(("stats/words.py", WORDS), user="T001"))
    words = ("execute", "--accept-unverified")
    assert story.spec(*words).code == 0 and standings(story) == {"T001": "done"}
    if by == "git":
        story.git("reset", "-q", "--hard", "HEAD~1")
    else:
        assert story.pawl("undo").code == 0
        story.git("commit", "-qam", "Take it back")
    assert standings(story) == {"T001": "open"}
    said = story.spec(*words)
    assert said.code == 0 and standings(story) == {"T001": "done"}, said
    assert story.git("show", "HEAD:stats/words.py") == WORDS
    assert len({one["run"] for one in story.runs()}) == 2


@pytest.mark.spec("E11")
def test_another_task_under_a_number_that_was_proved_is_not_proved(story: SpecStory):
    begun(story, PLAIN, *write(("stats/words.py", WORDS), ("tests/test_words.py", TEST_WORDS), user="T001"))
    assert story.spec("execute").code == 0 and standings(story) == {"T001": "proved"}
    path, code = story.pawl.workspace / FOLDER / "tasks.md", story.pawl.workspace / "stats/words.py"
    ticked = path.read_text()
    path.write_text(ticked.replace("Count words", "Count all words, in any script,"))
    assert standings(story) == {"T001": "done"}
    path.write_text(ticked)
    # Nor is the same task once its code is another, or was taken back and its box ticked by hand.
    code.write_text("def words(text):\n    return 3\n")
    status = story.pawl.json("spec", "status")
    assert status["tasks"][0]["standing"] == "done"
    assert "T001 was proved, and stats/words.py has changed since" in status["drift"][0]["what"]
    code.write_text(WORDS)
    assert standings(story) == {"T001": "proved"}
    entry = story.pawl.json("spec", "status")["waves"][0]["entry"]
    assert story.pawl("undo", str(entry)).code == 0 and standings(story) == {"T001": "open"}
    path.write_text(ticked)
    code.write_text(WORDS)
    assert standings(story) == {"T001": "done"}


@pytest.mark.spec("E11")
def test_no_model_ticks_a_task(story: SpecStory):
    story.lay({f"{FOLDER}/spec.md": "# Statistics\n", f"{FOLDER}/plan.md": "# Plan\n"})
    story.model_says(*write((f"{FOLDER}/tasks.md", PLAIN.replace("[ ]", "[x]")), user="the tasks of"))
    made = story.spec("tasks")
    assert made.code == 0 and "open again, as only 'pawl spec execute' ticks: T001" in made.err, made
    assert tasks_text(story) == PLAIN


@pytest.mark.spec("E11")
def test_that_nothing_is_missing_does_not_stand_where_files_are_not_there_or_a_requirement_was_passed_over(
    story: SpecStory,
):
    spec = "# Statistics\n\n- **FR-001**: count words\n- **FR-002**: count lines\n"
    story.lay({f"{FOLDER}/spec.md": spec, f"{FOLDER}/tasks.md": PLAIN.replace("[ ]", "[x]")})
    claim = (f"{FOLDER}/converge.md", "- FR-001: stats/words.py:1, tests/test_words.py\n")
    story.model_says(*write(claim, user="what the code lacks"))
    said = story.spec("converge")
    assert said.code == 1 and "T001 is ticked, but stats/words.py does not exist" in said.err, said
    assert "converge.md: FR-002 was not compared with the code" in said.err
    story.lay({"stats/words.py": WORDS})
    story.model_says(*write((f"{FOLDER}/converge.md", f"{claim[1]}- FR-002: missing\n"), user="what the code lacks"))
    (story.pawl.workspace / FOLDER / "converge.md").unlink()
    assert story.spec("converge").code == 0


@pytest.mark.spec("E11")
def test_the_cost_of_a_task_that_failed_is_counted_and_the_estimate_stays_that_of_the_plan(story: SpecStory):
    end = {"match": {"schema": False}, "answer": {"text": "I see nothing to do."}, "times": 0}
    begun(story, ONE.format("tests/test_words.py"), end)
    estimated = story.pawl.json("spec", "status")["estimated_tokens"]
    assert story.spec("execute").code == 1
    wasted = story.pawl.json("spec", "status")["task_tokens"]
    assert wasted > 0
    story.model_says(*write(("stats/words.py", WORDS), ("tests/test_words.py", TEST_WORDS), user="T001"))
    assert story.spec("execute").code == 0
    status = story.pawl.json("spec", "status")
    assert status["task_tokens"] > wasted and status["estimated_tokens"] == estimated


@pytest.mark.spec("E11")
def test_a_task_with_a_large_file_is_done_and_its_size_told(story: SpecStory):
    large = WORDS + "".join(f"N{number} = {number}\n" for number in range(120))
    begun(story, PLAIN, *write(("stats/words.py", large), ("tests/test_words.py", TEST_WORDS), user="T001"))
    said = story.spec("execute")
    assert said.code == 0 and "122 lines of 'stats/words.py' change; the guardrail asks above 100" in said.out, said


@pytest.mark.spec("E11", "D2")
def test_a_task_that_conflicts_is_done_once_more_without_the_file_of_the_other(story: SpecStory):
    table = "tests/test_stats.py"
    begun(
        story,
        "## Phase 1: Both\n- [ ] T001 [P] Words in stats/words.py\n- [ ] T002 [P] Lines in stats/lines.py\n",
        *write(("stats/lines.py", LINES), ("tests/test_lines.py", TEST_LINES), user=f"leave {table}"),
        *write(("stats/words.py", WORDS), (table, TEST_WORDS), user="T001"),
        *write(("stats/lines.py", LINES), (table, TEST_LINES), user="T002"),
    )
    said = story.spec("execute")
    assert said.code == 0 and f"T002 conflict with T001 in {table}" in said.out, said
    assert story.commits()[-1] == "[CHECKPOINT] Wave 1 Complete" and story.git("status", "--porcelain") == ""
    assert (story.pawl.workspace / table).read_text() == TEST_WORDS
    assert (story.pawl.workspace / "tests/test_lines.py").read_text() == TEST_LINES


@pytest.mark.spec("E11")
def test_a_task_that_names_a_document_of_the_specification_does_not_write_it(story: SpecStory):
    story.lay({f"{FOLDER}/contracts/cli.md": "# Command\n", f"{FOLDER}/plan.md": "# Plan\n"})
    tasks = PLAIN.replace("stats/words.py", "stats/words.py by contracts/cli.md and plan.md")
    begun(story, tasks, *write(("stats/words.py", WORDS), ("tests/test_words.py", TEST_WORDS), user="T001"))
    assert "files: stats/words.py\n" in (story.pawl.workspace / FOLDER / "execution-plan.md").read_text()
    assert story.spec("execute").code == 0


BOTH = [
    *write(("stats/words.py", WORDS), ("tests/test_words.py", TEST_WORDS), user="T001"),
    *write(("stats/lines.py", LINES), ("tests/test_lines.py", TEST_LINES), user="T002"),
]


@pytest.mark.spec("E11", "F5")
def test_an_interrupted_execution_leaves_nothing_half_and_goes_on_with_the_task_that_was_stopped(story: SpecStory):
    tasks = "## Phase 1: Both\n- [ ] T001 [P] Words in stats/words.py\n- [ ] T002 [P] Lines in stats/lines.py\n"
    # The second is done while the first still waits for its model: they work side by side.
    begun(story, tasks, *BOTH[2:], {"match": {"user": "T001"}, "delay_ms": 600_000, "answer": "too late"})
    before = story.git("log", "--format=%H"), story.git("status", "--porcelain")
    words = ("spec", "execute", "--model", story.model)
    with story.pawl.started(*words, until="T002 verified alone") as process:
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().decode()
        assert process.wait(120) == 130, rest
    assert (story.git("log", "--format=%H"), story.git("status", "--porcelain")) == before
    assert standings(story) == {"T001": "begun", "T002": "waits"}
    first = {one["run"] for one in story.runs()}
    asked = len(story.runs())
    story.model_says(*BOTH)
    said = story.spec("execute", "--resume")
    assert said.code == 0 and standings(story) == {"T001": "proved", "T002": "proved"}, said
    assert "T001 continues the run" in said.out
    # No run but those that were begun, and only that of the first task is asked again.
    assert {one["run"] for one in story.runs()} >= first and len({one["run"] for one in story.runs()}) == 2
    assert len({one["run"] for one in story.runs()[asked:]}) == 1


NEW = "specs/001-count-words"
KNOWN = {"spec.md": "# Words\n", "plan.md": "# Plan\n", "tasks.md": PLAIN}
STEPS = {
    "specify": (("count words",), (), "spec.md", "# Words\n", "the specification of this idea"),
    "clarify": ((), ("spec.md",), "questions.md", "None open.\n", "whose answers change what is built"),
    "plan": ((), ("spec.md",), "plan.md", "# Plan\n", "technical plan"),
    "tasks": ((), ("spec.md", "plan.md"), "tasks.md", PLAIN, "the tasks of"),
    "converge": ((), tuple(KNOWN), "converge.md", "- T001: missing\n", "what the code lacks"),
}


def killed(story: SpecStory, last: int, *words: str) -> None:
    """Carries out the command of `pawl spec` until that write to the store; skips where there are not so many."""
    died = subprocess.run(
        [sys.executable, "-m", "scenarios.killed_command", str(last), "spec", *words, "-C", str(story.pawl.workspace)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=TESTS,
        stdin=subprocess.DEVNULL,
    )
    if died.returncode == 0:
        pytest.skip(f"it was done after {died.stdout.split()[-1]} writes")
    assert died.returncode == -signal.SIGKILL, died


@pytest.mark.spec("E11", "E12")
@pytest.mark.parametrize("last", [3, 12, 22, 32])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_is_killed_goes_on_when_it_is_called_again(story: SpecStory, step: str, last: int):
    words, needs, file, text, user = STEPS[step]
    if needs:
        story.lay({f"{NEW}/{name}": KNOWN[name] for name in needs})
    story.model_says(*write((f"{NEW}/{file}", text), user=user))
    killed(story, last, step, *words, "--model", story.model)
    said = story.spec(step, *words)
    assert said.code == 0 and ("continues the run" in said.err or last == 3), said
    assert (story.pawl.workspace / NEW / file).read_text() == text
    assert story.git("status", "--porcelain", "--untracked-files=all").split()[1:] == [f"{NEW}/{file}"]
    work = [one for one in story.runs() if one["stage"] in ("act", "follow_up")]
    # One run, asked for its change and its end; the request under way when it died may be asked again.
    assert len({one["run"] for one in work}) == 1 and len(work) <= 3


ANSWERED = "# Questions\n\n1. Is nothing an error? (no, yes)\n   Answer: no\n"


@pytest.mark.spec("E11", "E12")
# Its run ends with the 79th of 91 writes; then the questions are closed.
@pytest.mark.parametrize("last", [3, 22, 48, 72, 79, 82, 86, 88])
def test_answers_are_worked_in_once_though_it_was_killed_meanwhile(spec_story: SpecStory, last: int):
    story = spec_story
    story.lay({f"{NEW}/spec.md": KNOWN["spec.md"], f"{NEW}/questions.md": ANSWERED})
    story.model_says(*write((f"{NEW}/spec.md", "# Words\n\nNothing is no error.\n"), user="(no, yes)\nno\n"))
    killed(story, last, "clarify", "--model", story.model)
    said = story.spec("clarify")
    assert said.code == 0, said
    folder = story.pawl.workspace / NEW
    assert "no error" in (folder / "spec.md").read_text() and "None open" in (folder / "questions.md").read_text()
    work = [one for one in story.runs() if one["stage"] in ("act", "follow_up")]
    assert len({one["run"] for one in work}) == 1 and len(work) <= 3


@pytest.mark.spec("E11", "E12")
# The folder is there from the 76th of 87 writes, and the run ends with the last ones.
@pytest.mark.parametrize("last", [70, 76, 78, 80])
def test_an_idea_whose_step_was_killed_late_has_one_folder(spec_story: SpecStory, last: int):
    story = spec_story
    story.git("commit", "-q", "--allow-empty", "-m", "begin")
    story.model_says(*write((f"{NEW}/spec.md", "# Words\n"), user=STEPS["specify"][4]))
    killed(story, last, "specify", "count words", "--model", story.model)
    assert story.spec("specify", "count words").code == 0
    assert [one.name for one in (story.pawl.workspace / "specs").iterdir()] == [Path(NEW).name]
    assert len({one["run"] for one in story.runs()}) == 1


@pytest.mark.spec("E11")
def test_a_dry_run_of_clarify_closes_no_questions(spec_story: SpecStory):
    spec_story.lay({f"{NEW}/spec.md": KNOWN["spec.md"], f"{NEW}/questions.md": ANSWERED})
    said = spec_story.spec("clarify", "--dry-run")
    assert said.code == 0 and "Is nothing an error?" in said.out, said
    assert (spec_story.pawl.workspace / NEW / "questions.md").read_text() == ANSWERED and spec_story.runs() == []


@pytest.mark.spec("E11", "E12")
@pytest.mark.parametrize("last", range(1, 13, 2))
def test_a_plan_that_is_killed_is_there_whole_or_not_at_all(story: SpecStory, last: int):
    story.lay({f"{NEW}/tasks.md": PLAIN})
    plan = story.pawl.workspace / NEW / "execution-plan.md"
    killed(story, last, "orchestrate")
    said = story.spec("orchestrate")
    assert said.code == 0 and "- T001 Count words" in plan.read_text(), said
    assert story.git("status", "--porcelain", "--untracked-files=all").split()[1:] == [f"{NEW}/{plan.name}"]
    assert story.spec("status").code == 0


@pytest.mark.spec("E11", "E12")
@pytest.mark.parametrize("last", range(1, 5))
def test_issues_whose_import_is_killed_are_imported_once(story: SpecStory, tmp_path: Path, last: int):
    story.lay({f"{NEW}/tasks.md": PLAIN})
    file = tmp_path / "issues.md"
    file.write_text("## T001: Count words\nState: closed\n\n## Count bytes in stats/size.py\nState: open\n")
    killed(story, last, "issues", "import", str(file))
    for _ in range(2):
        assert story.spec("issues", "import", str(file)).code == 0
    text = (story.pawl.workspace / NEW / "tasks.md").read_text()
    assert text.count("- [x] T001 ") == 1 and text.count("Count bytes in stats/size.py") == 1, text


@pytest.mark.spec("E11")
def test_questions_are_answered_at_a_terminal_and_one_that_is_left_is_asked_again(story: SpecStory):
    asked = (
        "# Questions\n\n1. Is nothing an error? (no, yes)\n   Answer:\n2. What parts words? (space, tab)\n   Answer:\n"
    )
    story.lay({f"{NEW}/spec.md": KNOWN["spec.md"]})
    story.model_says(
        *write((f"{NEW}/questions.md", asked), user=STEPS["clarify"][4]),
        *write((f"{NEW}/spec.md", "# Words\n\nNothing is no error.\n"), user="(no, yes)\nno\n"),
    )
    line = ("spec", "clarify", "--model", story.model)
    with story.pawl.terminal(*line) as terminal:
        terminal.expect("Is nothing an error? (no, yes)")
        terminal.type("no\r")
        terminal.expect("What parts words?")
        terminal.type("\r")
        assert terminal.finish() == 4 and "1 question open" in terminal.text
    with story.pawl.terminal(*line) as terminal:
        terminal.expect("What parts words?")
        terminal.type("space\r")
        assert terminal.finish() == 0 and "Is nothing" not in terminal.text
    folder = story.pawl.workspace / NEW
    assert "no error" in (folder / "spec.md").read_text() and "None open" in (folder / "questions.md").read_text()
