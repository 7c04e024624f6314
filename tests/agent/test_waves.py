"""Tasks of a specification as they are read, and the waves that are made of them: whatever the tasks, no two of a wave
touch the same file or one another's dependents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.specification.task_list import SpecTask, read_tasks
from pawl.agent.specification.waves import as_markdown, planned, read_waves
from pawl.core.errors import UsageError

SPEC_KIT = """\
# Tasks: Photo albums

**Input**: Design documents from `/specs/001-photo-albums/`

## Format: `[ID] [P?] [Story] Description`

## Phase 1: Setup (Shared Infrastructure)

- [x] T001 Create project structure per implementation plan
- [ ] T002 [P] Configure linting in pyproject.toml

## Phase 3: User Story 1 - Albums (Priority: P1)

### Tests for User Story 1

> **NOTE: Write these tests FIRST, ensure they FAIL before implementation**

- [ ] T010 [P] [US1] Contract test for albums in tests/contract/test_albums.py
- [ ] T011 [P] [US1] Integration test in tests/integration/test_album.py

### Implementation for User Story 1

- [ ] T012 [P] [US1] Create Album model in `src/models/album.py`
- [ ] T013 [P] [US1] Create Photo model in src/models/photo.py
- [ ] T014 [US1] Implement AlbumService in src/services/albums.py (depends on T012, T013), covers FR-002
  - Files: src/services/albums.py, src/services/__init__.py
  - Proof: `pytest tests/contract/test_albums.py`
  - Test first: yes

**Checkpoint**: story 1 works

- [ ] not numbered
"""


def waves(tasks, importers=None):
    return [[one.task.id for one in wave] for wave in planned(tasks, importers or {}).waves]


@pytest.mark.spec("E11")
def test_the_tasks_of_spec_kit_are_read_as_they_are():
    found = read_tasks(SPEC_KIT)
    by_id = {one.id: one for one in found.tasks}
    assert found.title == "Tasks: Photo albums"
    assert list(by_id) == ["T001", "T002", "T010", "T011", "T012", "T013", "T014"]
    assert [one.id for one in found.tasks if one.done] == ["T001"]
    assert [one.id for one in found.tasks if one.beside] == ["T002", "T010", "T011", "T012", "T013"]
    assert [one.id for one in found.tasks if one.red] == ["T010", "T011"]
    assert by_id["T012"].files == ("src/models/album.py",) and by_id["T012"].story == "US1"
    last = by_id["T014"]
    assert last.files == ("src/services/albums.py", "src/services/__init__.py")
    assert (last.after, last.proof, last.test_first) == (
        ("T012", "T013"),
        ("pytest tests/contract/test_albums.py",),
        True,
    )
    assert last.covers == ("FR-002",)
    assert found.unnumbered == (SPEC_KIT.splitlines().index("- [ ] not numbered") + 1,)


@pytest.mark.parametrize("range_", ["FR-001 to FR-003", "FR-001–FR-003", "FR-001 - FR-003", "FR-001...FR-003"])
def test_a_range_of_requirements_names_each(range_: str):
    (task,) = read_tasks(f"## Phase 1: A\n- [ ] T001 Do it in a.py, {range_}, SC-009\n").tasks
    assert task.covers == ("FR-001", "FR-002", "FR-003", "SC-009")


@pytest.mark.spec("E11")
def test_phases_and_their_sections_are_gates_and_what_is_marked_runs_side_by_side():
    assert waves(read_tasks(SPEC_KIT).tasks) == [["T001"], ["T002"], ["T010", "T011"], ["T012", "T013"], ["T014"]]


@pytest.mark.spec("E11")
def test_tasks_that_share_a_file_or_import_one_another_are_not_in_one_wave():
    paths = ["a.py", "b.py", "c.py", "a.py", "d/", "d/e.py"]
    text = "## Phase 1\n" + "".join(f"- [ ] T00{at} [P] change {path}\n" for at, path in enumerate(paths, 1))
    tasks = read_tasks(text).tasks
    assert waves(tasks) == [["T001", "T002", "T003", "T005"], ["T004", "T006"]]
    # c imports m, and m imports b.
    assert waves(tasks, {"b.py": ["m.py"], "m.py": ["c.py"]}) == [["T001", "T002", "T005"], ["T003", "T004", "T006"]]
    # Nothing imports d/f.py, which imports a.
    assert waves(tasks, {"a.py": ["d/f.py"]}) == [["T001", "T002", "T003"], ["T004"], ["T005"], ["T006"]]


@pytest.mark.spec("E11")
def test_a_task_that_names_no_file_runs_alone():
    tasks = read_tasks("## Phase 1\n- [ ] T001 [P] a.py\n- [ ] T002 [P] tidy up\n- [ ] T003 [P] b.py\n").tasks
    assert waves(tasks) == [["T001"], ["T002"], ["T003"]]


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    "text, why",
    [
        ("# Tasks\n- [ ] write it\n", "holds no task that can be read"),
        ("- [ ] T001 a.py\n- [x] T001 b.py\n", "T001 is already in line 1"),
        ("- [ ] T001 a.py (depends on T007)\n", "T001 depends on T007, which does not exist"),
    ],
)
def test_tasks_that_cannot_be_read_are_told_with_the_line(text: str, why: str):
    with pytest.raises(UsageError, match=why):
        read_tasks(text)


@pytest.mark.spec("E11")
@pytest.mark.parametrize("path", ["../x.py", "/etc/passwd", "stats\\b.py", "~/x.py", "a/../../b.py"])
def test_a_file_that_is_not_of_the_workspace_is_told_with_the_line(path: str):
    with pytest.raises(UsageError, match=r"tasks.md:2: T001 names .* which is not a path in the workspace"):
        read_tasks(f"# Tasks\n- [ ] T001 x\n  - Files: a.py, {path}\n")


@pytest.mark.spec("E11")
@pytest.mark.parametrize(
    "words, files",
    [
        ("Initialize Node.js project with Express", ()),
        ("Add the form (e.g. login) in src/a.py", ("src/a.py",)),
        ("Use pytest.raises and app.get() in tests/test_a.py", ("tests/test_a.py",)),
        ("Add Dockerfile, docker/Dockerfile and .gitignore", ("Dockerfile", "docker/Dockerfile", ".gitignore")),
        ("The page in src/app/(shop)/[id]/page.tsx", ("src/app/(shop)/[id]/page.tsx",)),
        ("See www.example.com, and v1.2.3 (README.md)", ("README.md",)),
        ("All of src/**/*.py and src/app/(shop)/", ("src/", "src/app/(shop)/")),
        ("Files\n  - Files: Makefile, bin/run, `src/a.odd` (new)", ("bin/run", "src/a.odd", "Makefile")),
        ("Files\n  - Files: none", ()),
    ],
)
def test_what_a_task_names_as_a_file_is_one(words: str, files: tuple[str, ...]):
    (task,) = read_tasks(f"- [ ] T001 {words}\n").tasks
    assert sorted(task.files) == sorted(files)


@pytest.mark.spec("E11")
def test_comments_and_blocks_of_code_hold_no_tasks_and_every_list_of_boxes_does():
    text = (
        "<!-- later:\n- [ ] T001 a.py\n-->\n## Phase 1\n```text\n- [ ] T002 b.py\n```\n- [ ] T003 c.py\n"
        "+ [ ] T004 d.py\n1. [x] T005 e.py\n* [ ] **T006** f.py\n- [-] T007 g.py\n- [ ]T008 h.py\n"
        "<!-- open\n- [ ] T009 i.py\n"
    )
    found = read_tasks(text)
    assert [(one.id, one.line, one.done) for one in found.tasks] == [
        ("T003", 8, False),
        ("T004", 9, False),
        ("T005", 10, True),
        ("T006", 11, False),
    ]
    assert found.unnumbered == (12, 13)
    assert read_tasks(found.ticked({"T004", "T006"})).digest == found.digest


@pytest.mark.spec("E11")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["(a)", "[a]", "a+", "+a", "<!--", "`" * 3 + "\n", "(", "a/", "a."])
def test_a_line_of_a_megabyte_is_read_as_soon_as_another(part: str):
    assert len(read_tasks(f"- [ ] T001 x\n- [ ] T002 {part * (1_000_000 // len(part))}\n").tasks) == 2


@pytest.mark.spec("E11")
def test_tasks_that_wait_for_each_other_are_named():
    tasks = read_tasks("- [ ] T001 [P] a.py (depends on T003)\n- [ ] T002 [P] b.py\n- [ ] T003 [P] c.py, after T001\n")
    with pytest.raises(UsageError, match="T001 → T003 → T001"):
        planned(tasks.tasks, {})


@pytest.mark.spec("E11")
def test_ticking_changes_nothing_but_the_box():
    found = read_tasks(SPEC_KIT.replace("\n", "\r\n"))
    ticked = found.ticked({"T012"})
    assert ticked == found.text.replace("[ ] T012", "[x] T012")
    assert read_tasks(ticked).digest == found.digest


NAMES = [f"{folder}{name}.py" for folder in ("", "src/", "src/deep/") for name in "abcd"] + ["src/deep/"]


@st.composite
def task_lists(draw) -> tuple[SpecTask, ...]:
    lines = []
    for at in range(1, draw(st.integers(1, 14)) + 1):
        if draw(st.integers(0, 4)) == 0:
            lines.append(f"## Phase {at}")
        mark = "[P] " if draw(st.booleans()) else ""
        files = " ".join(draw(st.lists(st.sampled_from(NAMES), max_size=2)))
        after = f" (depends on T{draw(st.integers(1, at - 1)):03d})" if at > 1 and draw(st.booleans()) else ""
        lines.append(f"- [ ] T{at:03d} {mark}change {files}{after}")
    return read_tasks("\n".join(lines)).tasks


graphs = st.dictionaries(st.sampled_from(NAMES[:-1]), st.lists(st.sampled_from(NAMES[:-1]), max_size=3), max_size=8)


def dependents(paths: set[str], importers: dict[str, list[str]]) -> set[str]:
    found, waiting = set(paths), list(paths)
    while waiting:
        for one in importers.get(waiting.pop(), ()):
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


@pytest.mark.spec("E11")
@given(tasks=task_lists(), importers=graphs)
def test_no_two_tasks_of_a_wave_touch_the_same_file_or_one_anothers_dependents(tasks, importers):
    plan = planned(tasks, importers)
    wave = {one.task.id: one.wave for one in plan.tasks}
    every = (
        {path for one in tasks for path in one.touches}
        | set(importers)
        | {p for some in importers.values() for p in some}
    )

    def touched(task: SpecTask) -> set[str]:
        folders = tuple(one for one in task.touches if one.endswith("/"))
        return set(task.touches) | {path for path in every if folders and path.startswith(folders)}

    assert sorted(wave) == [one.id for one in tasks]
    for at, one in enumerate(tasks):
        assert all(wave[other] < wave[one.id] for other in one.after)
        for other in tasks[:at]:
            if other.group != one.group or not one.beside or not other.beside:
                assert wave[other.id] < wave[one.id]
            elif wave[other.id] == wave[one.id]:
                assert one.touches and other.touches
                assert not dependents(touched(one), importers) & touched(other)
                assert not dependents(touched(other), importers) & touched(one)


@pytest.mark.spec("E11")
@given(tasks=task_lists(), importers=graphs)
def test_the_same_tasks_give_the_same_plan_and_it_is_read_back_as_it_was_written(tasks, importers):
    text = "\n".join(f"- [ ] {one.id} {'[P] ' if one.beside else ''}{one.what}" for one in tasks)
    tasks = read_tasks(text)
    plan = planned(tasks.tasks, importers)
    written = as_markdown(plan, tasks, "001-x")
    assert written == as_markdown(planned(read_tasks(text).tasks, dict(reversed(importers.items()))), tasks, "001-x")
    assert [[one.id for one in wave] for wave in read_waves(written, tasks)] == waves(tasks.tasks, importers)


@pytest.mark.spec("E11")
def test_a_plan_that_does_not_fit_the_tasks_is_refused():
    tasks = read_tasks(SPEC_KIT)
    plan = as_markdown(planned(tasks.tasks, {}), tasks, "001-x")
    with pytest.raises(UsageError, match=r"does not match tasks\.md"):
        read_waves(plan, read_tasks(SPEC_KIT + "- [ ] T015 more in c.py\n"))
    with pytest.raises(UsageError, match="T013"):
        read_waves(plan.replace("- T013", "- T012"), tasks)
    moved = (
        plan.replace(next(line for line in plan.splitlines() if line.startswith("- T012")) + "\n", "")
        + "- T012 later\n"
    )
    with pytest.raises(UsageError, match="T014 before what it depends on"):
        read_waves(moved, tasks)
