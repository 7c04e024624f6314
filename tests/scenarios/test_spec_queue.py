"""`pawl spec execute --queued`: the tasks of a wave are jobs of the queue, which its workers carry."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from scenarios.spec_story import REVIEW_OFF, SpecStory, write
from scenarios.test_spec_waves import ALL, BASE, BOTH, CONTENTS, MORE, TWO
from ui.cli.console import PAWL, Pawl
from ui.cli.test_cli_server_queue import database_server, elsewhere, url  # noqa: F401

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600), pytest.mark.spec("E11", "A4")]


@pytest.fixture
def story(spec_story: SpecStory) -> SpecStory:
    spec_story.lay({**BASE, "specs/001-stats/tasks.md": MORE})
    spec_story.model_says(*ALL)
    spec_story.planned()
    return spec_story


@pytest.fixture
def workers(story: SpecStory) -> Iterator[None]:
    line = [*PAWL, "worker"]
    both = [subprocess.Popen(line, cwd=story.pawl.workspace, stdout=subprocess.DEVNULL) for _ in range(2)]
    yield
    for one in both:
        one.terminate()
    for one in both:
        one.wait(60)


def test_workers_carry_the_tasks_of_waves_and_the_waves_are_committed(story: SpecStory, workers: None):
    said = story.spec("execute", "--queued")
    assert said.code == 0 and "T001 is job 1 of the queue" in said.out, said
    assert story.commits()[-2:] == ["[CHECKPOINT] Wave 1 Complete", "[CHECKPOINT] Wave 2 Complete"]
    assert {path: story.git("show", f"HEAD:{path}") for path in CONTENTS} == CONTENTS
    assert {one["standing"] for one in story.pawl.json("spec", "status")["tasks"]} == {"proved"}
    jobs = story.pawl.json("queue", "list")["jobs"]
    assert [(one["state"], one["outcome"]) for one in jobs] == [("ended", "done")] * 3


def test_an_execution_that_is_killed_finds_its_jobs_again_and_adds_none_twice(story: SpecStory):
    words = ("spec", "execute", "--queued", "--model", story.model)
    with story.pawl.started(*words, until="T002 is job 2 of the queue") as process:
        process.kill()
    # The workers do not need it.
    assert story.pawl("queue", "run").code == 4
    assert {one["standing"] for one in story.pawl.json("queue", "list")["jobs"]} == {"waiting"}
    asked = len(story.runs())
    said = story.spec("execute", "--queued", "--resume", "--wave", "1")
    assert said.code == 42 and "cannot be used together" in said.err
    said = story.spec("execute", "--queued", "--wave", "1")
    assert said.code == 0 and story.commits()[-1] == "[CHECKPOINT] Wave 1 Complete", said
    assert len(story.runs()) == asked and len(story.pawl.json("queue", "list")["jobs"]) == 2


def test_a_task_whose_job_is_cancelled_stops_its_wave_and_is_begun_again_by_the_next_call(story: SpecStory):
    story.lay({"specs/001-stats/tasks.md": TWO})
    story.model_says(*BOTH)
    story.planned()
    words = ("spec", "execute", "--queued", "--model", story.model)
    with story.pawl.started(*words, until="T002 is job 2 of the queue") as process:
        assert story.pawl("queue", "cancel", "2").code == 0
        assert story.pawl("queue", "run").code == 4
        rest = process.stdout.read().decode()
        assert process.wait(60) == 1 and "wave 1 failed, T002: job 2 cancelled: cancelled by the user" in rest, rest
    assert story.git("status", "--porcelain") == ""
    with story.pawl.started(*words, until="T002 is job 3 of the queue") as process:
        assert story.pawl("queue", "run").code == 4
        assert process.wait(60) == 0
    assert story.commits()[-1] == "[CHECKPOINT] Wave 1 Complete"


def test_how_many_at_once_is_the_queues_to_say(story: SpecStory):
    said = story.spec("execute", "--queued", "--parallel", "2")
    assert said.code == 42 and "the setting queue.together" in said.err


def test_a_task_that_fails_on_the_queue_fails_its_wave(story: SpecStory, workers: None):
    story.lay({"specs/001-stats/tasks.md": TWO})
    refused = {"match": {"user": "The checks refuse"}, "answer": {"text": "I see nothing to do."}}
    wrong = ("tests/test_lines.py", "def test_lines():\n    assert False\n")
    story.model_says(*BOTH[:2], refused, *write(wrong, user="T002"))
    story.planned()
    before = story.git("log", "--format=%H")
    said = story.spec("execute", "--queued")
    assert said.code == 1 and "wave 1 failed, T002: " in said.out, said
    assert (story.git("log", "--format=%H"), story.git("status", "--porcelain")) == (before, "")


def test_a_worker_of_another_machine_carries_a_task_and_its_wave_is_committed_at_home(
    story: SpecStory,
    url: str,  # noqa: F811
    elsewhere: Callable[[], AbstractContextManager[Pawl]],  # noqa: F811
    tmp_path: Path,
):
    (tmp_path / "config.toml").write_text(f"{REVIEW_OFF}[queue]\ndead_seconds = 3\n")
    words = ("spec", "execute", "--queued", "--wave", "1", "--model", story.model)
    with story.pawl.started(*words, until="T002 is job 2 of the queue") as process:
        with elsewhere() as other:
            said = other("worker", "--drain", "--label", "files")
        assert said.out.count("done; the machine that added it promotes it") == 2, said
        # At home both are verified again, and wait for their wave.
        assert story.pawl("queue", "run").code == 4
        rest = process.stdout.read().decode()
        assert process.wait(120) == 0, rest
    assert story.commits()[-1] == "[CHECKPOINT] Wave 1 Complete" and story.git("status", "--porcelain") == ""
    assert [one["standing"] for one in story.pawl.json("spec", "status")["tasks"]] == ["proved", "proved", "open"]
    assert {one["outcome"] for one in story.pawl.json("queue", "list")["jobs"]} == {"done"}
