"""`pawl queue` and `pawl worker`: requests that are left for later, carried out by processes that may die."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from nursery import PATIENCE
from ui.cli.console import PAWL, Pawl
from ui.cli.test_cli_docs import ROOT, keys

from pawl.agent.queue.job_queue import QueueSettings, opened_queue
from pawl.agent.queue.worker import QueueWorker
from pawl.core.change import ChangeSet, EntryKind, NewEntry
from pawl.core.job import Job
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import load
from pawl.settings.files import writer_lock
from pawl.store.store import Store


def script(folder: Path, name: str, *turns: object) -> str:
    """A model that says these turns by their place in a conversation, as often as it is asked."""
    path = folder / f"{name}.jsonl"
    lines = [{"match": {"step": step}, "times": 0, "answer": turn} for step, turn in enumerate(turns)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def writing(path: str, content: str) -> object:
    return {"text": "", "calls": [{"name": "file_write", "arguments": {"path": path, "content": content}}]}


def writer(folder: Path, name: str) -> str:
    return script(folder, name, writing(f"{name}.txt", f"{name}\n"), {"text": "Written."})


def jobs_of(state: Path) -> Sequence[Job]:
    with Store.open(state) as store:
        return store.jobs.list()


@pytest.mark.spec("A4", "F9")
def test_jobs_are_added_listed_paused_cancelled_and_queued_again(repository: Pawl, tmp_path: Path):
    model = ("--model", writer(tmp_path, "one"))
    said = repository.many(
        [
            ("queue", "add", "write one.txt", *model),
            ("queue", "add", "then two", "--after", "1", "--priority", "7", *model),
            ("queue", "add", "repair it", "--if-failed", "1", *model),
            ("queue", "pause", "1"),
            ("queue", "list"),
            ("queue", "cancel", "2"),
            ("queue", "retry", "2"),
            ("queue", "resume", "1"),
            ("queue", "pause", "--all"),
            ("queue",),
            ("queue", "resume", "--all"),
            ("queue", "show", "3"),
            ("queue", "stats"),
        ]
    )
    assert [one.code for one in said] == [0] * len(said), said
    assert said[0].out == "job 1 queued\n"
    assert [" ".join(line.split()[:3]) for line in said[4].lines[1:4]] == [
        "1 paused 0",
        "2 blocked 7",
        "3 blocked critical",
    ]
    assert said[5].out == "job 2 cancelled\n" and said[6].out == "job 2 queued again\n"
    assert said[9].lines[-1] == "3 jobs: 2 blocked, 1 queued; $0.00; the queue is paused"
    assert "after: 1 (if it fails)" in said[11].lines and "jobs: 3 (2 blocked, 1 queued) in 1 project" in said[12].out


@pytest.mark.spec("A4", "F9")
def test_batches_are_added_whole_or_not_at_all(repository: Pawl, tmp_path: Path):
    root, model = repository.workspace, ("--model", writer(tmp_path, "one"))
    for name in ("pkg/a.py", "pkg/deep/b.py", "other.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    lines = [
        {"request": "first", "name": "first", "budget": 0.5},
        {"request": "second", "after": "first", "priority": 3},
    ]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "bad.jsonl").write_text('{"request": "fine"}\n{"request": "odd", "after": "nobody"}\n')
    each, brought, bad, listed, exported = repository.many(
        [
            ("queue", "add", "--each", "pkg/**/*.py", "add types to {file}", *model),
            ("queue", "add", "--from", str(tmp_path / "jobs.jsonl"), *model),
            ("queue", "add", "--from", str(tmp_path / "bad.jsonl"), *model),
            ("queue", "list", "--json"),
            ("queue", "list", "--export", "-"),
        ]
    )
    assert each.out == "jobs 1 to 2 queued\n" and brought.out == "jobs 3 to 4 queued\n", (each, brought)
    assert bad.code == 42 and "there is no job or run 'nobody'" in bad.err
    jobs = json.loads(listed.out)["jobs"]
    assert [one["request"] for one in jobs] == [
        "add types to pkg/a.py",
        "add types to pkg/deep/b.py",
        "first",
        "second",
    ]
    whole = json.loads(exported.out)
    assert whole["jobs"][3]["after"] == [{"job": 3, "run": None, "failed": False}]
    assert whole["jobs"][2]["terms"]["budget"] == {"money": "0.5"}
    page = (ROOT / "docs/commands/queue.md").read_text()
    told = {key for one in whole["jobs"] for key in keys({**one, "terms": {}})} | set(whole) | set(whole["stats"])
    assert {key for key in told if f"`{key}`" not in page} <= set(whole["stats"]["states"])


def test_a_mistake_is_told_when_the_job_is_added(repository: Pawl, tmp_path: Path, state_directory: Path):
    model = ("--model", writer(tmp_path, "one"))
    wrong = [
        (("queue", "add"), "there is no request"),
        (("queue", "add", "x", "--model", "nobody/nothing"), "nobody"),
        (("queue", "add", "x", "--after", "9", *model), "there is no job 9"),
        (("queue", "add", "x", "--priority", "high", *model), "'high' is not a priority"),
        (("queue", "add", "--each", "*.zzz", "about {file}", *model), "no file of the workspace"),
        (("queue", "add", "--each", "*.py", "about nothing", *model), "does not name {file}"),
        (("queue", "add", "x", "--workspace", "/nowhere", *model), "there is no folder '/nowhere'"),
        (("queue", "cancel"), "names no job"),
        (("queue", "show", "4"), "there is no job 4"),
        (("queue", "stats", "4"), "takes no '4'"),
        (("queue", "run", "--workers", "900"), "--workers 900"),
        (("queue", "run", "--workers", "0"), "--workers 0"),
        (("queue", "add", "--each", "[", "about {file}", *model), "the bracket is not closed"),
        (("queue", "add", "x", "--workspace", "", *model), "--workspace names no folder"),
        (("queue", "add", "x", "--require", "gpu,big", *model), "'gpu,big' is not a label"),
        (("queue", "add", "x", "--workers", "2", *model), "'pawl queue add' takes no --workers"),
        (("queue", "list", "--budget", "3"), "'pawl queue list' takes no --budget"),
        (("queue", "show", "1", "--export", "x"), "'pawl queue show' takes no --export"),
        (("queue", "pause", "1", "--priority", "3"), "'pawl queue pause' takes no --priority"),
        (("worker", "--shares", "0"), "--shares 0"),
        (("worker", "--drain", "--label", ""), "'' is not a label"),
    ]
    for (words, message), said in zip(wrong, repository.many([words for words, _ in wrong]), strict=True):
        assert said.code in (42, 52) and message in said.err, (words, said)
    assert not jobs_of(state_directory)


def test_a_line_that_is_no_job_is_told_by_its_number_and_nothing_is_added(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    wrong = [
        ("", "there is no job in it"),
        ('{"request": " "}', "line 1 is not a job"),
        ("[" * 100_000, "line 1 is not JSON"),
        ('{"request": "a", "budget": NaN}', "line 1: budget nan is not an amount"),
        ('{"request": "a", "budget": 1e999}', "line 1: budget inf is not an amount"),
        (
            '{"request": "a", "name": "n"}\n{"request": "b", "name": "n"}',
            "line 2: an earlier line has the name 'n' too",
        ),
        (
            '{"request": "a", "after": "later"}\n{"request": "b", "name": "later"}',
            "line 1: there is no job or run 'later'",
        ),
        ('{"request": "a"}\n{"request": "b", "after": 7}', "line 2: there is no job 7"),
    ]
    model, words = writer(tmp_path, "one"), []
    for number, (text, _) in enumerate(wrong):
        (tmp_path / f"{number}.jsonl").write_text(text)
        words.append(("queue", "add", "--from", str(tmp_path / f"{number}.jsonl"), "--model", model))
    for (text, message), said in zip(wrong, repository.many(words), strict=True):
        assert said.code == 42 and message in said.err, (text[:80], said)
    assert not jobs_of(state_directory)
    add, both, paused = repository.many(
        [
            ("queue", "add", "x", "--model", model),
            ("queue", "add", "x", "--after", "1", "--if-failed", "1", "--model", model),
            ("queue", "pause", "1", "1"),
        ]
    )
    assert add.code == 0 and both.code == 42 and "job 1 is never both done and failed" in both.err, both
    assert paused.out == "job 1 paused\n"


@pytest.mark.whole
@pytest.mark.spec("A4", "F9")
def test_two_workers_carry_jobs_of_two_projects_by_their_dependencies(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("other\n")
    names = ["one", "two", "three"]
    said = repository.many(
        [
            ("queue", "add", "write two.txt", "--model", writer(tmp_path, "two"), "--workspace", str(other)),
            ("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")),
            ("queue", "add", "write three.txt", "--model", writer(tmp_path, "three"), "--after", "2"),
            ("queue", "add", "never begun", "--model", writer(tmp_path, "four"), "--if-failed", "2"),
        ]
    )
    assert [one.code for one in said] == [0] * 4, said
    ended = repository.json("queue", "run", "--workers", "2")
    assert [one["standing"] for one in ended["jobs"]] == ["done"] * 3
    places = [repository.workspace / "one.txt", other / "two.txt", repository.workspace / "three.txt"]
    assert [place.read_text() for place in places] == [f"{name}\n" for name in names]
    one, two, three, four = jobs_of(state_directory)
    assert four.standing == "blocked" and three.started >= two.ended and one.attempts == 1
    assert "1 blocked, 3 done" in repository("queue", "watch").lines[-1]


def slow_model(tmp_path: Path) -> str:
    """A model that writes one.txt and takes its time for each answer."""
    name = script(tmp_path, "slow", writing("one.txt", "one\n"), {"text": "Written."})
    text = (tmp_path / "slow.jsonl").read_text().replace('"times": 0', '"times": 0, "delay_ms": 1500')
    (tmp_path / "slow.jsonl").write_text(text)
    return name


def kill_the_worker_of_a_job(repository: Pawl, tmp_path: Path) -> None:
    assert repository("queue", "add", "write one.txt", "--model", slow_model(tmp_path)).code == 0
    with repository.started("worker", until="job 1: started") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.whole
@pytest.mark.spec("A4", "F9")
def test_the_job_of_a_worker_that_was_killed_is_taken_over_and_promoted_once(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    kill_the_worker_of_a_job(repository, tmp_path)
    assert jobs_of(state_directory)[0].standing == "running"
    said = repository("queue", "run")
    assert said.code == 0 and "job 1: started again, attempt 2" in said.out, said
    assert (repository.workspace / "one.txt").read_text() == "one\n"
    assert len(repository.json("history")["entries"]) == 1


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_a_job_that_kills_its_workers_stops_after_so_many_attempts(repository: Pawl, tmp_path: Path, monkeypatch):
    (tmp_path / "config.toml").write_text("[queue]\nattempts = 1\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    kill_the_worker_of_a_job(repository, tmp_path)
    said = repository("queue", "run")
    assert said.code == 1 and "stopped after 1 attempts: its worker died each time" in said.out, said
    assert not (repository.workspace / "one.txt").exists()
    assert repository("queue", "retry", "1").code == 0
    assert repository("queue", "run").code == 0
    assert (repository.workspace / "one.txt").read_text() == "one\n"


@pytest.mark.spec("A4")
def test_a_job_whose_patch_is_left_to_the_user_says_why_and_how_to_take_it(repository: Pawl):
    (repository.workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (repository.workspace / "test_calc.py").write_text(
        "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    said = repository.many([("queue", "add", "make the tests pass"), ("queue", "run"), ("queue", "show", "1")])
    job = repository.json("queue", "show", "1")
    assert (job["standing"], job["entry"]) == ("failed", None)
    assert "only one example supports the patch of add" in job["reason"]
    command = re.search(r"pawl (promote \d+)", job["reason"])
    assert command and command[0] in said[1].out and command[0] in said[2].out
    repository(*command[1].split())
    assert "return a + b" in (repository.workspace / "calc.py").read_text()


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_a_queue_that_is_paused_is_not_called_done(repository: Pawl, tmp_path: Path):
    assert repository("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")).code == 0
    assert repository("queue", "pause", "--all").code == 0
    said = repository("queue", "run")
    assert said.code == 5 and "1 job: 1 queued" in said.out and "the queue is paused" in said.out, said


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_a_job_that_is_paused_or_cancelled_while_it_works_promotes_nothing(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    slow = script(tmp_path, "slow", writing("one.txt", "one\n"), {"text": "Written."})
    text = (tmp_path / "slow.jsonl").read_text()
    (tmp_path / "slow.jsonl").write_text(text.replace('"times": 0', '"times": 0, "delay_ms": 60000'))
    assert repository("queue", "add", "write one.txt", "--model", slow).code == 0
    with repository.started("worker", until="job 1: started") as process:
        assert repository("queue", "pause", "1").code == 0
        assert b"stopped; its run is resumed from there" in process.stdout.readline()
        assert jobs_of(state_directory)[0].standing == "paused" and jobs_of(state_directory)[0].attempts == 0
        assert repository("queue", "resume", "1").code == 0
        assert b"job 1: started" in process.stdout.readline()
        assert repository("queue", "cancel", "1").code == 0
        assert b"was cancelled" in process.stdout.readline()
    assert jobs_of(state_directory)[0].standing == "cancelled"
    (tmp_path / "slow.jsonl").write_text(text)
    assert repository("queue", "retry", "1").code == 0 and repository("queue", "run").code == 0
    assert (repository.workspace / "one.txt").read_text() == "one\n"


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_a_change_in_conflict_goes_back_to_the_agent_once_and_then_to_the_user(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    root = repository.workspace
    (root / "list.txt").write_text("first\n")
    patch = {"name": "strict_patch", "arguments": {"path": "list.txt", "old": "first", "new": "mine"}}
    read = {"name": "file_read", "arguments": {"path": "list.txt"}}
    calls = ({"text": "", "calls": [one]} for one in (read, patch))
    model = script(tmp_path, "patch", *calls, {"text": "Done."})
    text = (tmp_path / "patch.jsonl").read_text().replace('"step": 2}', '"step": 2}, "delay_ms": 60000')
    (tmp_path / "patch.jsonl").write_text(text)
    assert repository("queue", "add", "change the list", "--model", model).code == 0
    with repository.started("worker", until="job 1: started") as process:
        _when_work_is_kept(state_directory)
        (root / "list.txt").write_text("yours\n")
        process.send_signal(signal.SIGKILL)
        process.wait()
    (tmp_path / "patch.jsonl").write_text(text.replace(', "delay_ms": 60000', ""))
    said = repository("queue", "run")
    job = jobs_of(state_directory)[0]
    assert said.code == 1 and job.sent_back and job.standing == "failed", said
    assert (root / "list.txt").read_text() == "yours\n"


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_a_change_in_conflict_is_made_again_over_what_stands_there_now(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    root = repository.workspace
    (root / "list.txt").write_text("first\n")

    def turn(match: object, name: str, **words: str) -> str:
        calls = [{"name": name, "arguments": {"path": "list.txt", **words}}]
        return json.dumps({"match": match, "times": 0, "answer": {"text": "", "calls": calls}})

    turns = [
        turn({"step": 0}, "file_read"),
        turn({"step": 1, "tool": "first"}, "strict_patch", old="first", new="mine"),
        turn({"step": 1, "tool": "yours"}, "strict_patch", old="yours", new="yours and mine"),
        json.dumps({"times": 0, "answer": "Done."}),
    ]
    (tmp_path / "patch.jsonl").write_text("\n".join(turns))
    assert repository("queue", "add", "change the list", "--model", f"scripted:{tmp_path / 'patch.jsonl'}").code == 0
    with writer_lock(state_directory / "locks", f"{root} landing"):
        process = subprocess.Popen([*PAWL, "queue", "run"], cwd=root)
        _when_all_are_at("deliver", state_directory)
        (root / "list.txt").write_text("yours\n")
    assert process.wait() == 0
    assert (root / "list.txt").read_text() == "yours and mine\n"
    said = repository("queue", "show", "1")
    assert "job 1: done" in said.lines and "sent back: once" in said.out, said


def _when_work_is_kept(state: Path) -> None:
    """Waits until the run of the only job has a change of its bench in the store."""
    with Store.open(state) as store:
        while True:
            job = store.jobs.list()[0]
            if job.run is not None and store.runs.work(job.run, "bench"):
                return
            threading.Event().wait(0.05)


@pytest.mark.whole
@pytest.mark.spec("A4", "F9")
def test_a_job_whose_workspace_somebody_has_stopped_writing_in_the_middle_is_put_back_and_not_called_failed(
    repository: Pawl, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text("[queue]\nattempts = 1\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    assert repository("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")).code == 0
    root = os.path.realpath(repository.workspace)
    with Store.open(state_directory) as store:
        begun = NewEntry(workspace=root, run="", kind=EntryKind.EDIT, title="half of a promotion")
        with writer_lock(state_directory / "locks", root):
            store.journal.begin(begun, ChangeSet(), {})
            (other := tmp_path / "other").mkdir()
            process = subprocess.Popen([*PAWL, "queue", "run"], cwd=other, stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "job 1: started\n"
            assert process.stdout.readline().startswith("job 1: back in the queue: another Pawl")
    out, _ = process.communicate()
    assert process.returncode == 0 and "1 job: 1 done" in out, out
    assert (repository.workspace / "one.txt").read_text() == "one\n"
    assert jobs_of(state_directory)[0].attempts == 1


@pytest.mark.whole
@pytest.mark.spec("A4", "F9")
def test_changes_that_are_finished_at_the_same_time_are_promoted_one_over_the_other(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    root = repository.workspace
    (root / "list.txt").write_text("first\n\n\n\n\n\nlast\n")
    for old in ("first", "last"):
        read = {"name": "file_read", "arguments": {"path": "list.txt"}}
        patch = {"name": "strict_patch", "arguments": {"path": "list.txt", "old": old, "new": f"{old} done"}}
        calls = ({"text": "", "calls": [one]} for one in (read, patch))
        model = script(tmp_path, old, *calls, {"text": "Done."})
        assert repository("queue", "add", f"mark the {old} one as done", "--model", model).code == 0
    with writer_lock(state_directory / "locks", f"{root} landing"):
        process = subprocess.Popen([*PAWL, "queue", "run", "--workers", "2"], cwd=root)
        _when_all_are_at("deliver", state_directory)
    assert process.wait() == 0
    assert (root / "list.txt").read_text() == "first done\n\n\n\n\n\nlast done\n"
    assert len(repository.json("history")["entries"]) == 2
    assert [(one.standing, one.sent_back) for one in jobs_of(state_directory)] == [("done", False)] * 2


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_a_change_that_another_job_has_promoted_already_is_called_so(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    for number in "12":
        model = writer(tmp_path, "one")
        assert repository("queue", "add", f"write one.txt, {number}", "--model", model).code == 0
    with writer_lock(state_directory / "locks", f"{repository.workspace} landing"):
        process = subprocess.Popen([*PAWL, "queue", "run", "--workers", "2"], cwd=repository.workspace)
        _when_all_are_at("deliver", state_directory)
    assert process.wait() == 1
    told = sorted((one.standing, one.reason) for one in jobs_of(state_directory))
    same = "the same change was promoted meanwhile, and nothing is left of this one"
    assert told == [("done", ""), ("failed", same)] and len(repository.json("history")["entries"]) == 1


@pytest.mark.whole
@pytest.mark.spec("A4")
def test_changes_are_promoted_in_the_order_in_which_they_were_finished(
    repository: Pawl, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text("[queue]\ntogether = 9\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    root, names, working = repository.workspace, ["one", "two", "three", "four"], []
    with writer_lock(state_directory / "locks", f"{root} landing"):
        for name in names:
            assert repository("queue", "add", f"write {name}.txt", "--model", writer(tmp_path, name)).code == 0
            working.append(subprocess.Popen([*PAWL, "worker", "--drain"], cwd=root))
            _when_all_are_at("deliver", state_directory)
        # The place of one that dies is nobody's, and its job is resumed by whoever comes last.
        working[1].kill()
        working[1].wait()
    assert [one.wait() for one in working] == [0, -signal.SIGKILL, 0, 0]
    jobs = jobs_of(state_directory)
    assert [one.standing for one in jobs] == ["done"] * 4
    assert sorted(jobs, key=lambda one: one.entry) == [jobs[0], jobs[2], jobs[3], jobs[1]]


def _when_all_are_at(node: str, state: Path) -> None:
    with Store.open(state) as store:
        while True:
            runs = [(one.workspace, one.run) for one in store.jobs.list()]
            if all(run and store.runs.get(workspace, run).place.at == node for workspace, run in runs):
                return
            threading.Event().wait(0.05)


@pytest.mark.whole
def test_a_worker_keeps_no_thread_of_a_run_that_has_ended(repository: Pawl, tmp_path: Path, state_directory: Path):
    for name in ("one", "two"):
        assert repository("queue", "add", f"write {name}.txt", "--model", writer(tmp_path, name)).code == 0
    config = load({"HOME": str(tmp_path), "PAWL_STATE": str(state_directory), "PATH": os.defpath})
    gc.disable()
    try:
        with Store.open(config.state) as store, opened_queue(config, store, "") as queue:
            worker = QueueWorker(config=config, queue=queue, stop=CancelToken(), settings=QueueSettings())
            worker.work(drains=True)
        for thread in (one for one in threading.enumerate() if one.name == "pawl-files"):
            thread.join(PATIENCE)
            assert not thread.is_alive()
    finally:
        gc.enable()
    assert [one.standing for one in jobs_of(state_directory)] == ["done", "done"]


@pytest.mark.whole
def test_a_worker_that_is_told_to_end_gives_its_job_back(repository: Pawl, tmp_path: Path, state_directory: Path):
    slow = script(tmp_path, "slow", writing("one.txt", "one\n"), {"text": "Written."})
    text = (tmp_path / "slow.jsonl").read_text().replace('"times": 0', '"times": 0, "delay_ms": 60000')
    (tmp_path / "slow.jsonl").write_text(text)
    assert repository("queue", "add", "write one.txt", "--model", slow).code == 0
    with repository.started("worker", until="job 1: started") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
    job = jobs_of(state_directory)[0]
    assert (job.standing, job.attempts) == ("queued", 0)


@pytest.mark.whole
def test_a_change_that_is_to_be_approved_waits_and_ends_with_the_answer(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    words = ("queue", "add", "write one.txt", "--approve", "final", "--model", writer(tmp_path, "one"))
    assert repository(*words).code == 0
    said = repository("queue", "run")
    assert said.code == 4 and "waits for your approval" in said.out, said
    assert repository("approve", "--yes").code == 0
    assert jobs_of(state_directory)[0].standing == "done"
    assert subprocess.run([*PAWL, "queue", "run"], cwd=repository.workspace, check=False).returncode == 0


@contextmanager
def served_repository(folder: Path) -> Iterator[str]:
    """The address of a repository with two branches, on loopback."""
    work = folder / "origin"
    (work / "pkg").mkdir(parents=True)
    (work / "pkg/a.txt").write_text("a\n")
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("run.sh")
    user = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "-A"),
        (*user, "commit", "-qm", "first"),
        ("checkout", "-qb", "feature/x"),
        (*user, "commit", "-q", "--allow-empty", "-m", "second"),
        ("checkout", "-q", "main"),
    ):
        subprocess.run(["git", *words], cwd=work, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ("daemon", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}", "--export-all", f"--base-path={folder}")
    with subprocess.Popen(["git", *words, "--verbose", str(folder)], stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        while b"Ready to rumble" not in server.stderr.readline():
            assert server.poll() is None
        yield f"git://127.0.0.1:{port}/origin"
        server.terminate()


def git_says(folder: str, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.whole
@pytest.mark.spec("A4", "F9")
def test_a_job_about_a_repository_elsewhere_is_carried_on_a_workspace_of_that_commit(
    repository: Pawl, tmp_path: Path, state_directory: Path
):
    with served_repository(tmp_path) as url:
        words = ("queue", "add", "write one.txt", "--model", writer(tmp_path, "one"), "--workspace")
        first = repository.json(*words, f"{url}@feature/x")["workspace"]
        assert repository.json(*words, f"{url}@feature/x")["workspace"] == first
        assert repository.json(*words, url)["workspace"] != first
        missing = repository(*words, f"{url}@nope")
        assert missing.code != 0 and "cannot be fetched" in missing.err and "nope" in missing.err, missing
    for wrong in ("https://u:secret@127.0.0.1:1/x.git", "ssh://git@host/x.git", f"{url}@--upload-pack=x", "ftp://x/y"):
        said = repository(*words, wrong)
        assert said.code != 0 and "Traceback" not in said.err, said
    origin = str(tmp_path / "origin")
    assert git_says(first, "rev-parse", "HEAD") == git_says(origin, "rev-parse", "feature/x")
    assert git_says(first, "status", "--short") == "" and git_says(first, "fsck") == ""
    assert (Path(first) / "link").is_symlink() and os.access(Path(first) / "run.sh", os.X_OK)
    said = repository("queue", "cancel", "2"), repository("queue", "run")
    assert said[1].code == 0, said
    assert git_says(first, "status", "--short") == "?? one.txt\n" and Pawl(Path(first))("undo").code == 0
    assert git_says(first, "status", "--short") == ""
