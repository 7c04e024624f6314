"""`pawl spec execute`: waves of tasks on benches side by side, each verified alone and together, one commit each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scenarios import killed_waves
from scenarios.conftest import PROJECT
from scenarios.spec_story import REVIEW_OFF, SpecStory, write

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]

TASKS = """\
# Tasks: Text statistics

## Phase 1: Tests
> Write these tests FIRST, ensure they FAIL before implementation
- [ ] T001 [P] [US1] Test of words in tests/test_words.py
- [ ] T002 [P] [US1] Test of lines in tests/test_lines.py

## Phase 2: Implementation
- [ ] T003 [P] [US1] Count words in stats/words.py
  - Proof: tests/test_words.py
- [ ] T004 [P] [US1] Count lines in stats/lines.py
  - Proof: tests/test_lines.py

## Phase 3: Together
- [ ] T005 [US1] Summary of both in stats/summary.py
  - Proof: tests/test_summary.py
  - Test first: yes
"""
TEST_WORDS = "from stats.words import words\n\n\ndef test_words():\n    assert words('a b\\nc') == 3\n"
TEST_LINES = "from stats.lines import lines\n\n\ndef test_lines():\n    assert lines('a b\\nc') == 2\n"
WORDS = "def words(text):\n    return len(text.split())\n"
LINES = "def lines(text):\n    return len(text.splitlines())\n"
SUMMARY = (
    "from stats.lines import lines\nfrom stats.words import words\n\n\n"
    "def summary(text):\n    return f'{words(text)} words, {lines(text)} lines'\n"
)
TEST_SUMMARY = (
    "from stats.summary import summary\n\n\ndef test_summary():\n    assert summary('a b') == '2 words, 1 lines'\n"
)
TURNS = [
    *write(("tests/test_words.py", TEST_WORDS), user="T001"),
    *write(("tests/test_lines.py", TEST_LINES), user="T002"),
    *write(("stats/words.py", WORDS), user="T003"),
    *write(("stats/lines.py", LINES), user="T004"),
    *write(("tests/test_summary.py", TEST_SUMMARY), ("stats/summary.py", SUMMARY), user="T005"),
]
BASE = {
    "pyproject.toml": PROJECT["pyproject.toml"],
    ".gitignore": PROJECT[".gitignore"],
    "stats/__init__.py": "",
    "tests/test_base.py": "def test_base():\n    assert 'a'\n",
    "specs/001-stats/tasks.md": TASKS,
}


@pytest.fixture
def story(spec_story: SpecStory) -> SpecStory:
    spec_story.lay(BASE)
    spec_story.model_says(*TURNS)
    spec_story.planned()
    return spec_story


@pytest.mark.spec("E11", "A1", "A2")
def test_every_wave_is_one_commit_with_its_ticked_tasks_and_the_tests_come_first(story: SpecStory):
    said = story.spec("execute")
    assert said.code == 0, said
    assert story.commits()[2:] == [f"[CHECKPOINT] Wave {number} Complete" for number in (1, 2, 3)]
    assert "- [ ]" not in (story.pawl.workspace / "specs/001-stats/tasks.md").read_text()
    assert story.git("status", "--porcelain") == ""
    assert "[x] T003" not in story.git("show", "HEAD~2:specs/001-stats/tasks.md")
    status = story.pawl.json("spec", "status")
    assert {one["standing"] for one in status["tasks"]} == {"proved"} and status["drift"] == []
    assert story.spec("execute").code == 0 and len(story.commits()) == 5


TWO = """\
## Phase 1: Both
- [ ] T001 [P] Count words in stats/words.py and tests/test_words.py
- [ ] T002 [P] Count lines in stats/lines.py and tests/test_lines.py
"""
BOTH = [
    *write(("stats/words.py", WORDS), ("tests/test_words.py", TEST_WORDS), user="T001"),
    *write(("stats/lines.py", LINES), ("tests/test_lines.py", TEST_LINES), user="T002"),
]


def begun(story: SpecStory, tasks: str, *turns: dict) -> None:
    story.model_says(*turns)
    (story.pawl.workspace / "specs/001-stats/tasks.md").write_text(tasks)
    story.planned()


def standing(story: SpecStory) -> tuple[str, str]:
    return story.git("log", "--format=%s"), story.git("status", "--porcelain")


@pytest.mark.spec("E11")
def test_a_wave_that_fails_leaves_the_checkpoint_as_it_was_names_its_task_and_does_only_that_one_again(
    story: SpecStory,
):
    wrong = ("stats/lines.py", "def lines(text):\n    return 0\n")
    end = {"match": {"user": "The checks refuse"}, "answer": {"text": "I see nothing to do."}}
    begun(story, TWO, *BOTH[:2], end, *write(wrong, ("tests/test_lines.py", TEST_LINES), user="T002"))
    before = standing(story)
    failed = story.spec("execute")
    assert failed.code == 1 and "wave 1 failed, T002: tests: 1 passed, 1 failed" in failed.out, failed
    assert standing(story) == before and not (story.pawl.workspace / "stats/words.py").exists()
    asked = len(story.runs())
    story.model_says(*BOTH)
    again = story.spec("execute")
    assert again.code == 0, again
    assert story.commits()[-1] == "[CHECKPOINT] Wave 1 Complete"
    first, second = (one["run"] for one in story.runs()[asked:][:2])
    # Only the task that failed is asked about again.
    assert first == second and story.git("status", "--porcelain") == ""


@pytest.mark.spec("E11", "D2")
def test_a_conflict_between_tasks_side_by_side_names_both_and_is_solved_by_their_order(story: SpecStory):
    tasks = "## Phase 1: Both\n- [ ] T001 [P] Words in stats/words.py\n- [ ] T002 [P] Lines in stats/lines.py{}\n"
    table = "tests/test_stats.py"
    begun(
        story,
        tasks.format(""),
        *write(("stats/words.py", WORDS), (table, TEST_WORDS), user="T001"),
        *write(("stats/lines.py", LINES), (table, TEST_LINES), user="T002"),
        # Asked to leave that file to the other, it does not know how.
        {"match": {"schema": False}, "answer": {"text": "It needs that file."}},
    )
    said = story.spec("execute")
    assert said.code == 1 and f"T002: conflict with T001 in {table}" in said.out, said
    assert "write '(depends on T001)' into tasks.md" in said.out
    begun(
        story,
        tasks.format(" (depends on T001)"),
        *write(("stats/lines.py", LINES), ("tests/test_lines.py", TEST_LINES), user="T002"),
    )
    assert story.spec("execute").code == 0
    assert story.commits()[-2:] == ["[CHECKPOINT] Wave 1 Complete", "[CHECKPOINT] Wave 2 Complete"]


@pytest.mark.spec("E11")
def test_tasks_that_pass_alone_and_fail_together_are_not_promoted(story: SpecStory):
    only = (
        "from pathlib import Path\n\nfrom stats.{0} import here\n\n\n"
        "def test_{0}():\n    assert here() == 1\n    assert not Path('stats/{1}.py').exists()\n"
    )
    code = "def here():\n    return 1\n"
    begun(
        story,
        TWO,
        *write(("stats/words.py", code), ("tests/test_words.py", only.format("words", "lines")), user="T001"),
        *write(("stats/lines.py", code), ("tests/test_lines.py", only.format("lines", "words")), user="T002"),
    )
    before = standing(story)
    said = story.spec("execute")
    assert said.code == 1 and "T002: fails together with T001: tests: 1 passed, 2 failed" in said.out, said
    assert standing(story) == before


@pytest.mark.spec("E11")
def test_what_cannot_be_executed_is_told_before_a_model_is_asked(story: SpecStory):
    workspace = story.pawl.workspace
    for words, told in (
        (("--wave", "7"), "the waves are 1 to 3"),
        (("--wave", "2"), "wave 1 is not done yet"),
        (("--task", "T099"), "there is no task 'T099'"),
        (("--task", "T005"), "T005 is in wave 3, and wave 1 is not done yet"),
        (("--resume",), "there is no interrupted execution to resume"),
        (("--wave", "1", "--task", "T001"), "cannot be used together"),
    ):
        said = story.spec("execute", *words)
        assert said.code == 42 and told in said.err, said
    assert story.spec("execute", "--dry-run").lines == ["wave 1: T001, T002", "wave 2: T003, T004", "wave 3: T005"]
    (workspace / "notes.txt").write_text("mine\n")
    assert "notes.txt is not committed" in story.spec("execute").err
    (workspace / "specs/001-stats/execution-plan.md").unlink()
    assert "make it with 'pawl spec orchestrate'" in story.spec("execute").err
    assert story.runs() == []


MORE = f"{TWO}## Phase 2: More\n- [ ] T003 Count bytes in stats/size.py and tests/test_size.py\n"
SIZE, TEST_SIZE = (text.replace("words", "size") for text in (WORDS, TEST_WORDS))
ALL = [*BOTH, *write(("stats/size.py", SIZE), ("tests/test_size.py", TEST_SIZE), user="T003")]


@pytest.mark.spec("E11")
def test_one_task_is_executed_alone_and_its_wave_is_complete_with_the_last(story: SpecStory):
    begun(story, MORE, *ALL)
    for words, title in (
        (("--task", "T002"), "[CHECKPOINT] Wave 1: T002"),
        (("--wave", "1", "--parallel", "1"), "[CHECKPOINT] Wave 1 Complete"),
        (("--wave", "2"), "[CHECKPOINT] Wave 2 Complete"),
    ):
        said = story.spec("execute", *words)
        assert said.code == 0 and story.commits()[-1] == title, said
    assert len(story.commits()) == 6 and story.git("status", "--porcelain") == ""
    assert {one["standing"] for one in story.pawl.json("spec", "status")["tasks"]} == {"proved"}


TESTS = Path(killed_waves.__file__).parents[1]
CONTENTS = {
    "stats/words.py": WORDS,
    "stats/lines.py": LINES,
    "stats/size.py": SIZE,
    "tests/test_words.py": TEST_WORDS,
    "tests/test_lines.py": TEST_LINES,
    "tests/test_size.py": TEST_SIZE,
    "specs/001-stats/tasks.md": MORE.replace("[ ]", "[x]"),
}


def killed(story: SpecStory, last: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "scenarios.killed_waves", str(story.pawl.workspace), str(story.script), str(last)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, cwd=TESTS)


@pytest.mark.spec("E11", "E12")
# Both waves make 279 writes to the store.
@pytest.mark.parametrize("last", [2, 20, 44, 64, 90, 115, 135, 152, 163, 170, 200, 230, 250, 265])
def test_an_execution_that_is_killed_is_resumed_to_the_same_tree_and_no_task_is_done_twice(story: SpecStory, last: int):
    begun(story, MORE, *ALL)
    died = killed(story, last)
    assert died.returncode == -9, (f"choose the points again: it was done after {died.stdout} writes", died.stderr)
    said = story.spec("execute")
    assert said.code == 0, said
    assert story.commits()[-2:] == ["[CHECKPOINT] Wave 1 Complete", "[CHECKPOINT] Wave 2 Complete"]
    assert len(story.commits()) == 5 and story.git("status", "--porcelain") == ""
    assert set(story.git("diff", "--name-only", "HEAD~2", "HEAD").split()) == set(CONTENTS)
    assert {path: story.git("show", f"HEAD:{path}") for path in CONTENTS} == CONTENTS
    requests = [one for one in story.runs() if one["stage"] in ("act", "follow_up")]
    # Three runs, each asked for its change and its end; the request that was under way when it died may be asked again.
    assert len({one["run"] for one in requests}) == 3
    assert len(requests) <= 6 + 2
    assert {one["standing"] for one in story.pawl.json("spec", "status")["tasks"]} == {"proved"}


# As its templates of August 2026 are filled in: only the first story says that its tests come first.
SPEC_KIT_SPEC = """\
# Feature Specification: Statistics

**Feature Branch**: `002-stats`

**Created**: 2026-08-21

**Status**: Draft

**Input**: User description: "count words and lines"

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Count words (Priority: P1)

**Acceptance Scenarios**:

1. **Given** a text, **When** it is counted, **Then** its words are told

---

### User Story 2 - Count lines (Priority: P2)

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST count words

## Success Criteria *(mandatory)*

### Measurable Outcomes

- **SC-001**: A text of 1 MB is counted in a second
"""
SPEC_KIT_TASKS = """\
---

description: "Task list template for feature implementation"
---

# Tasks: Statistics

**Input**: Design documents from `/specs/002-stats/`

**Prerequisites**: plan.md (required), spec.md (required for user stories), research.md, data-model.md, contracts/

## Format: `[ID] [P?] [Story] Description`

- **[P]**: Can run in parallel (different files, no dependencies)

## Path Conventions

- **Single project**: `src/`, `tests/` at repository root

## Phase 1: User Story 1 - Count words (Priority: P1) 🎯 MVP

**Goal**: words

### Tests for User Story 1 (OPTIONAL - only if tests requested) ⚠️

> **NOTE: Write these tests FIRST, ensure they FAIL before implementation**

- [ ] T001 [P] [US1] Unit test of words in tests/test_words.py

### Implementation for User Story 1

- [ ] T002 [US1] Count words in stats/words.py (depends on T001)

**Checkpoint**: At this point, User Story 1 should be fully functional and testable independently

---

## Phase 2: User Story 2 - Count lines (Priority: P2)

### Tests for User Story 2 (OPTIONAL - only if tests requested) ⚠️

- [ ] T003 [P] [US2] Unit test of lines in tests/test_lines.py

### Implementation for User Story 2

- [ ] T004 [US2] Count lines in stats/lines.py

---

## Dependencies & Execution Order

### Phase Dependencies

- **User Stories (Phase 3+)**: All depend on Foundational phase completion

### Within Each User Story

- Tests (if included) MUST be written and FAIL before implementation
"""
SPEC_KIT = {
    ".specify/memory/constitution.md": "# Constitution\n\n## Core Principles\n\n### I. Library-First\n\nFunctions.\n",
    ".specify/scripts/bash/common.sh": "#!/usr/bin/env bash\n",
    ".specify/templates/tasks-template.md": "# Tasks: [FEATURE NAME]\n",
    ".specify/templates/overrides/tasks-template.md": "# Tasks: [FEATURE NAME]\n",
    ".specify/feature.json": '{"feature_directory":"specs/002-stats"}\n',
    "specs/002-stats/spec.md": SPEC_KIT_SPEC,
    "specs/002-stats/plan.md": "# Implementation Plan: Statistics\n\n**Storage**: NEEDS CLARIFICATION\n",
    "specs/002-stats/checklists/requirements.md": "# Quality Checklist\n\n- [x] CHK001 a\n- [ ] CHK002 b\n",
    "specs/002-stats/research.md": "- **Decision**: str.split, as whitespace is enough\n- **Rationale**: simple\n",
    "specs/002-stats/tasks.md": SPEC_KIT_TASKS,
}


@pytest.mark.spec("E11", "E12")
def test_a_project_of_spec_kit_is_analyzed_and_executed_as_it_is_and_feeds_the_memory_bank(
    story: SpecStory, tmp_path: Path
):
    (tmp_path / "config.toml").write_text(f'{REVIEW_OFF}memory_bank = "on"\n')
    story.lay(SPEC_KIT)
    story.model_says(
        *write(("tests/test_words.py", TEST_WORDS), user="T001: "),
        *write(("stats/words.py", WORDS), user="T002: "),
        *write(("tests/test_lines.py", TEST_LINES), user="T003: "),
        *write(("stats/lines.py", LINES), user="T004: "),
    )
    analyzed = story.spec("analyze")
    assert analyzed.code == 1 and "plan.md: 1 open: NEEDS CLARIFICATION" in analyzed.out, analyzed
    assert "no task covers FR-001" in analyzed.out and "requirements.md: 1 of its boxes not ticked" in analyzed.out
    assert "templates/overrides/tasks-template.md" in story.pawl("spec", "tasks", "--dry-run").out
    story.lay({"specs/002-stats/plan.md": "# Implementation Plan: Statistics\n"})
    assert story.spec("analyze").code == 0
    story.planned()
    said = story.spec("execute")
    assert said.code == 0, said
    assert story.commits()[-4:] == [f"[CHECKPOINT] Wave {number} Complete" for number in (1, 2, 3, 4)]
    assert {one["standing"] for one in story.pawl.json("spec", "status")["tasks"]} == {"proved"}
    assert story.git("status", "--porcelain") == ""
    bank = {name: story.git("show", f"HEAD:.pawl/memory/{name}.md") for name in ("progress", "decisions", "project")}
    assert "002-stats, wave 2: T002 Count words" in bank["progress"]
    assert "002-stats: str.split" in bank["decisions"] and "I. Library-First" in bank["project"]
    # Whoever comes next is told first, where the user trusts what the repository says.
    assert story.pawl("trust").code == 0
    places = ({place: "002-stats: str.split"} for place in ("system", "user"))
    story.model_says(*({"match": place, "answer": {"text": "By str.split, as decided."}} for place in places))
    assert "as decided" in story.pawl("ask", "How are words counted?", "--model", story.model).out
