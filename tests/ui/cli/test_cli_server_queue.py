"""`pawl queue --queue postgres://…`: the same commands, with workers that share nothing but a server."""

from __future__ import annotations

import io
import json
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import postgres
import pytest
from ui.cli.console import Pawl
from ui.cli.test_cli_queue import kill_the_worker_of_a_job, script, writer, writing

from pawl.agent.queue import queue_server

pytestmark = [pytest.mark.whole, pytest.mark.spec("A4", "F9")]


@pytest.fixture(scope="module")
def database_server() -> Iterator[postgres.Postgres]:
    if why := postgres.missing():
        pytest.skip(why)
    with postgres.server() as made:
        yield made


@pytest.fixture
def url(database_server: postgres.Postgres, monkeypatch: pytest.MonkeyPatch, state_directory: Path) -> str:
    made = database_server.fresh(f"q{os.urandom(6).hex()}")
    monkeypatch.setenv("PAWL_QUEUE", made)
    config = state_directory.parent / "config.toml"
    config.write_text("[queue]\ndead_seconds = 3\n")
    monkeypatch.setenv("PAWL_CONFIG", str(config))
    return made


def test_the_same_commands_work_on_a_server(repository: Pawl, url: str, tmp_path: Path):
    said = repository.many(
        [
            ("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")),
            ("queue", "add", "write two.txt", "--model", writer(tmp_path, "two"), "--after", "1"),
            ("queue", "add", "only there", "--model", writer(tmp_path, "three"), "--require", "gpu"),
            ("queue", "list", "--queue", url),
            ("queue", "pause", "2"),
            ("queue", "resume", "2"),
            ("queue", "stats"),
        ]
    )
    assert [one.code for one in said] == [0] * len(said), said
    assert said[3].lines[-1] == "3 jobs: 1 blocked, 2 queued; $0.00"
    ended = repository.json("queue", "run", "--workers", "2", code=5)
    assert {one["id"]: one["outcome"] for one in ended["jobs"]} == {1: "done", 2: "done"} and ended["left"] == [3]
    assert (repository.workspace / "two.txt").read_text() == "two\n"
    assert repository.json("queue", "run", "--label", "gpu")["jobs"][0]["id"] == 3


def test_a_worker_that_was_killed_is_noticed_by_its_heartbeat_and_its_run_is_resumed(
    repository: Pawl, url: str, tmp_path: Path
):
    kill_the_worker_of_a_job(repository, tmp_path)
    assert repository.json("queue", "show", "1")["standing"] == "running"
    (ended,) = repository.json("queue", "run")["jobs"]
    assert (ended["outcome"], ended["attempts"]) == ("done", 2), ended
    assert (repository.workspace / "one.txt").read_text() == "one\n"
    assert len(repository.json("history")["entries"]) == 1


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[Pawl]]:
    """Another machine: a state of its own, a folder of its own, and nothing else in common but the server."""
    folder, own = tmp_path / "elsewhere", tmp_path / "elsewhere-state"
    folder.mkdir()
    own.mkdir(mode=0o700)

    @contextmanager
    def there() -> Iterator[Pawl]:
        with monkeypatch.context() as other:
            other.setenv("PAWL_STATE", str(own))
            yield Pawl(folder)

    return there


def test_a_worker_of_another_machine_carries_a_job_and_its_change_is_verified_again_and_promoted_at_home(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
    database_server: postgres.Postgres,
):
    (repository.workspace / ".env").write_text("API_KEY=sk-verysecretvalue123456\n")
    (repository.workspace / "uncommitted.txt").write_text("not committed\n")
    reading = {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "uncommitted.txt"}}]}
    model = script(tmp_path, "away", reading, writing("one.txt", "one\n"), {"text": "Written."})
    assert repository("queue", "add", "write one.txt", "--model", model).code == 0
    with elsewhere() as other:
        assert other("worker", "--drain").out == ""
        said = other("worker", "--drain", "--label", "files")
    assert "job 1: carried; it is promoted at home" in said.out, said
    assert not (repository.workspace / "one.txt").exists()
    copies = list((tmp_path / "elsewhere-state" / "away").iterdir())
    names = {path.name for path in copies[0].iterdir()}
    assert "uncommitted.txt" in names and ".env" not in names and "one.txt" not in names
    dump = database_server.run("pg_dump", url.replace("postgres://", "postgresql://"), check=False).stdout
    assert b"pawl_job" in dump and b"verysecretvalue" not in dump
    (ended,) = repository.json("queue", "run")["jobs"]
    assert (ended["outcome"], ended["attempts"]) == ("done", 1), ended
    assert (repository.workspace / "one.txt").read_text() == "one\n"
    (entry,) = repository.json("history")["entries"]
    assert entry["id"] == ended["entry"] and repository("undo").code == 0
    assert not (repository.workspace / "one.txt").exists()


def test_the_run_of_a_machine_that_is_gone_goes_on_at_home_from_its_last_durable_step(
    repository: Pawl, url: str, tmp_path: Path, elsewhere: Callable[[], AbstractContextManager[Pawl]]
):
    lines = [
        {"match": {"step": 0}, "times": 0, "answer": writing("one.txt", "one\n")},
        {"match": {"step": 1}, "times": 0, "delay_ms": 4000, "answer": writing("two.txt", "two\n")},
        {"match": {"step": 2}, "times": 0, "answer": {"text": "Written."}},
    ]
    (tmp_path / "far.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("queue", "add", "write one.txt and two.txt", "--model", f"scripted:{tmp_path / 'far.jsonl'}")
    assert repository(*words).code == 0
    with elsewhere() as other, other.started("worker", "--label", "files", until="job 1: taken") as process:
        server = queue_server.QueueServer.at(url, "")
        steps, pause = 0, threading.Event()
        while steps < 1:
            assert process.poll() is None
            pause.wait(0.1)
            with server.transaction():
                found = server.first("SELECT run, data FROM pawl_progress")
            if found is not None:
                steps = len(json.loads(zipfile.ZipFile(io.BytesIO(found["data"])).read("parcel.json"))["steps"])
        server.close()
        process.kill()
        process.wait()
    (ended,) = repository.json("queue", "run")["jobs"]
    assert (ended["outcome"], ended["attempts"], ended["run"]) == ("done", 2, found["run"]), ended
    assert [(repository.workspace / f"{name}.txt").read_text() for name in ("one", "two")] == ["one\n", "two\n"]
