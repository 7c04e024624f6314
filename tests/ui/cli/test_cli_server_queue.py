"""`pawl queue --queue postgres://…`: the same commands, with workers that share nothing but a server."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import postgres
import pytest
from ui.cli.console import Pawl
from ui.cli.page_client import page
from ui.cli.test_cli_queue import git_says, kill_the_worker_of_a_job, script, slow_model, writer, writing

from pawl.agent.queue import queue_server
from pawl.core.change import blob_digest
from pawl.core.job import CRITICAL
from pawl.store.database import change_set

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
    assert "! job 3 is left for a worker that has gpu" in repository("queue", "run").lines
    assert repository("queue", "pause", "--all").code == 0
    told = repository("queue", "run").out
    assert "the queue is paused" in told and "is left for" not in told
    assert repository("queue", "resume", "--all").code == 0
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
    (repository.workspace / ".gitignore").write_text(".env\n")
    (repository.workspace / "committed.txt").write_text("as it was\n")
    (repository.workspace / ".pawl").mkdir()
    (repository.workspace / ".pawl/settings.toml").write_text("[permissions]\nallow = ['Edit(two.txt)']\n")
    user = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    for words in (("add", "-A"), (*user, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=repository.workspace, check=True)
    (repository.workspace / "committed.txt").write_text("changed since\n")
    (repository.workspace / "uncommitted.txt").write_text("not committed\n")
    reading = {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "uncommitted.txt"}}]}
    model = script(tmp_path, "away", reading, writing("one.txt", "one\n"), {"text": "Written."})
    assert repository("queue", "add", "write one.txt", "--model", model).code == 0
    with elsewhere() as other:
        assert other("worker", "--drain").out == ""
        said = other("worker", "--drain", "--label", "files")
    assert "job 1: done; the machine that added it promotes it" in said.out, said
    assert not (repository.workspace / "one.txt").exists()
    copies = list((tmp_path / "elsewhere-state" / "away").iterdir())
    names = {path.name for path in copies[0].iterdir()}
    assert "uncommitted.txt" in names and ".env" not in names and "one.txt" not in names
    heads = {git_says(str(place), "rev-parse", "HEAD") for place in (copies[0], repository.workspace)}
    status = {git_says(str(place), "status", "--short") for place in (copies[0], repository.workspace)}
    assert len(heads) == 1 and status == {" M committed.txt\n?? uncommitted.txt\n"}
    dump = database_server.run("pg_dump", url.replace("postgres://", "postgresql://"), check=False).stdout
    assert b"pawl_job" in dump and b"verysecretvalue" not in dump
    (ended,) = repository.json("queue", "run")["jobs"]
    assert (ended["outcome"], ended["attempts"]) == ("done", 1), ended
    assert (repository.workspace / "one.txt").read_text() == "one\n"
    assert copies[0].is_dir()
    with elsewhere() as other:
        assert other("worker", "--drain").code == 0
    assert not copies[0].exists()
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
    with elsewhere() as other, other.started("worker", "--label", "files", until="job 1: started") as process:
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


@contextmanager
def rows_of(url: str) -> Iterator[queue_server.QueueServer]:
    """Somebody else who may write to the database."""
    server = queue_server.QueueServer.at(url, "")
    try:
        with server.transaction():
            yield server
    finally:
        server.close()


CHANGED = [
    ("request = replace(request, 'one.txt', 'two.txt')", "not added here, or was changed on the server"),
    ("workspace = convert_to('/', 'UTF8')", "not added here, or was changed on the server"),
    ("requires = '{}'", "not added here, or was changed on the server"),
    ("request = '{\"text\": 5'", "its request cannot be read"),
    ('request = replace(request, \'{"text\', \'{"budget": {"money": "much"}, "text\')', "its request cannot be read"),
    ("request = repeat('[', 100000)", "its request cannot be read"),
    ("run = '../../../pwned'", "its row is damaged"),
]


def test_a_job_that_somebody_else_has_changed_on_the_server_is_carried_by_nobody(
    repository: Pawl, url: str, tmp_path: Path
):
    words = ("queue", "add", "write one.txt", "--model", writer(tmp_path, "one"))
    assert all(one.code == 0 for one in repository.many([words for _ in CHANGED]))
    with rows_of(url) as server:
        for number, (sets, _) in enumerate(CHANGED, 1):
            server.rows(f"UPDATE pawl_job SET {sets} WHERE id = {number}")
    said = repository("queue", "run", "--json")
    jobs = {one["id"]: one for one in json.loads(said.out)["jobs"]}
    assert said.code == 1 and len(jobs) == len(CHANGED), said
    for number, (_, says) in enumerate(CHANGED, 1):
        assert jobs[number]["standing"] == "failed" and says in jobs[number]["reason"], jobs[number]
    assert not (repository.workspace / "one.txt").exists() and repository("queue", "list").code == 0


def test_a_job_for_a_folder_of_another_user_and_a_name_that_leads_out_of_the_state_come_to_nothing(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
):
    assert repository("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")).code == 0
    with rows_of(url) as server:
        server.rows("UPDATE pawl_queue SET name = '../../pwned'")
    with elsewhere() as other:
        assert "its row is damaged" in other("worker", "--drain", "--label", "files").out
    assert not list(tmp_path.glob("pwned*"))


def _parcel(
    nodes: object, contents: Mapping[str, bytes] | None = None, head: bytes | None = None, **more: object
) -> bytes:
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as made:
        made.writestr("parcel.json", json.dumps({"nodes": nodes, **more}) if head is None else head)
        for name, content in (contents or {}).items():
            made.writestr(name, content)
    return room.getvalue()


EVIL = b"evil\n"
_FILE = ["file", blob_digest(EVIL), 0o755]
_LINK = ["symlink", blob_digest(b"/tmp"), 0o777]


PARCELS = [
    b"no zip",
    _parcel({})[:-30],
    _parcel({}, head=b"[" * 100_000),
    _parcel([1, 2]),
    _parcel({"a": ["file"]}),
    _parcel({"a": ["file", "0" * 64, 0o644]}),
    _parcel({"a": _FILE}, {blob_digest(EVIL): b"another"}),
    *(
        _parcel({path: _FILE}, {blob_digest(EVIL): EVIL})
        for path in ("../evil", "a/../../evil", "/evil", "", ".", "a\0b", ".git/hooks/post-checkout", ".GIT/config")
    ),
    *(
        _parcel({}, commit={"commit": "0" * 40, "branch": "refs/heads/main", "text": "", "entries": {}, **more})
        for more in (
            {},
            {"commit": "../evil"},
            {"branch": "refs/heads/../../../evil"},
            {"branch": "HEAD"},
            {"entries": {"a": ["100644", "0" * 40]}},
            {"entries": [1]},
            {"text": 5},
        )
    ),
    _parcel({"a": _LINK, "a/evil": _FILE}, {blob_digest(EVIL): EVIL, blob_digest(b"/tmp"): b"/tmp"}),
]


def test_a_parcel_that_somebody_has_put_on_the_server_writes_nothing_beside_the_copy_of_its_job(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
):
    words = ("queue", "add", "write one.txt", "--model", writer(tmp_path, "one"))
    assert all(one.code == 0 for one in repository.many([words for _ in PARCELS]))
    with rows_of(url) as server:
        for number, data in enumerate(PARCELS, 1):
            server.rows("INSERT INTO pawl_snapshot VALUES (%s, %s)", (f"p{number}", data))
            server.rows("UPDATE pawl_job SET snapshot = %s WHERE id = %s", (f"p{number}", number))
    with elsewhere() as other:
        said = other("worker", "--drain", "--label", "files")
    assert "Traceback" not in said.err, said
    for number, data in enumerate(PARCELS, 1):
        assert f"job {number}: failed" in said.out, (data[:200], said.out)
    state = tmp_path / "elsewhere-state"
    assert not list(state.rglob("*evil*")) and not list(state.rglob(".git"))
    assert not Path("/evil").exists() and not Path("/tmp/evil").exists()


def test_a_request_of_another_machine_writes_no_file_of_the_worker_and_reads_none_as_its_model(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
):
    (tmp_path / "private.txt").write_text("the worker's own words\n")
    names = f"@{tmp_path}/private.txt @../private.txt write one.txt"
    assert repository("queue", "add", names, "--model", writer(tmp_path, "one")).code == 0
    with rows_of(url) as server:
        server.rows("UPDATE pawl_lane SET requires = '{}'")
        server.rows(
            "UPDATE pawl_job SET request = (request::jsonb || %s::jsonb)::text",
            (json.dumps({"record": str(tmp_path / "pwned.toml"), "install": True}),),
        )
    with elsewhere() as other:
        assert "is a file, which is only read by workers with the label 'files'" in other("worker", "--drain").out
    assert repository("queue", "retry", "1").code == 0
    with rows_of(url) as server:
        server.rows("UPDATE pawl_lane SET requires = '{}'")
    with elsewhere() as other:
        assert "done; the machine that added it promotes it" in other("worker", "--drain", "--label", "files").out
    assert not (tmp_path / "pwned.toml").exists()
    with rows_of(url) as server:
        sent = zipfile.ZipFile(io.BytesIO(server.rows("SELECT data FROM pawl_progress")[0]["data"]))
        assert not any(b"own words" in sent.read(name) for name in sent.namelist())


def test_what_another_machine_calls_verified_approved_or_promoted_is_none_of_that_at_home(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
):
    (repository.workspace / "shop.py").write_text("def total():\n    return 1\n")
    (repository.workspace / "test_shop.py").write_text(
        "from shop import total\n\n\ndef test_total():\n    assert total() == 1\n"
    )
    change = {"path": "shop.py", "content": "def total():\n    return 2\n"}
    model = script(
        tmp_path, "wrong", {"text": "", "calls": [{"name": "file_write", "arguments": change}]}, {"text": "Done."}
    )
    words = ("queue", "add", "total returns 2", "--model", model)
    assert repository(*words).code == 0
    with elsewhere() as other:
        assert "done; the machine that added it promotes it" in other("worker", "--drain", "--label", "files").out
    with rows_of(url) as server:
        sent = zipfile.ZipFile(io.BytesIO(server.rows("SELECT data FROM pawl_progress")[0]["data"]))
        head = json.loads(sent.read("parcel.json"))
        head["run"]["node"] = "apply"
        head["run"]["request"] = json.dumps({"text": "x", "approval": "never", "accept_unverified": True})
        (work,) = head["work"].values()
        head["work"] = {"bench": work, "shown": work}
        rows = [(os.fsencode(one[0]), *one[1:]) for one in work]
        digest = change_set(rows).digest
        claims = {
            "verified": digest,
            "verdict": "verified",
            "decision": {"answer": "approve", "digest": digest},
            "verdicts": [["tests", "passed", ""]],
        }
        kept = [one for one in head["values"] if one[0] not in claims]
        head["values"] = [*kept, *([name, json.dumps(value)] for name, value in claims.items())]
        room = io.BytesIO()
        with zipfile.ZipFile(room, "w") as made:
            made.writestr("parcel.json", json.dumps(head))
            for name in sent.namelist():
                if name != "parcel.json":
                    made.writestr(name, sent.read(name))
        server.rows("UPDATE pawl_progress SET data = %s", (room.getvalue(),))
    said = repository("queue", "run", "--json")
    (ended,) = json.loads(said.out)["jobs"]
    assert said.code != 0 and ended["outcome"] != "done", ended
    assert (repository.workspace / "shop.py").read_text() == "def total():\n    return 1\n"


def test_a_run_of_the_users_own_is_not_overwritten_by_one_of_that_name_on_the_server(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
):
    words = ("do", "write mine.txt", "--approve", "final", "--model", writer(tmp_path, "mine"), "--json")
    mine = json.loads(repository(*words).out)["run"]
    assert repository("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")).code == 0
    with elsewhere() as other:
        assert "the machine that added it promotes it" in other("worker", "--drain", "--label", "files").out
    with rows_of(url) as server:
        server.rows("UPDATE pawl_progress SET run = %s", (mine,))
        server.rows("UPDATE pawl_job SET run = %s", (mine,))
    said = repository("queue", "run")
    assert said.code == 1 and f"the run {mine} is not one of job 1" in said.out, said
    assert repository("approve", "--yes").code == 0 and (repository.workspace / "mine.txt").read_text() == "mine\n"


def test_a_worker_that_wakes_after_its_job_was_taken_over_promotes_nothing(repository: Pawl, url: str, tmp_path: Path):
    assert repository("queue", "add", "write one.txt", "--model", slow_model(tmp_path)).code == 0
    with repository.started("worker", until="job 1: started") as process:
        process.send_signal(signal.SIGSTOP)
        (ended,) = repository.json("queue", "run")["jobs"]
        assert (ended["outcome"], ended["attempts"]) == ("done", 2), ended
        process.send_signal(signal.SIGCONT)
        assert b"was cancelled or taken over; nothing of this attempt is promoted" in process.stdout.readline()
    assert len(repository.json("history")["entries"]) == 1 and repository.json("queue", "show", "1")["attempts"] == 2


def test_a_server_that_refuses_is_told_in_one_line_with_what_to_do(
    repository: Pawl, url: str, database_server: postgres.Postgres, monkeypatch: pytest.MonkeyPatch
):
    assert repository("queue", "list").code == 0
    with rows_of(url) as server:
        server.rows("CREATE ROLE locked LOGIN PASSWORD 'right'")
        server.rows("UPDATE pawl_queue SET version = 99")
    said = repository("queue", "list")
    assert said.code == 52 and "this queue was set up by a newer Pawl" in said.err, said
    monkeypatch.setenv("PAWL_QUEUE_PASSWORD", "wrongpassword")
    for address, words in (
        (url.replace("pawl@", "locked@"), "password authentication failed"),
        (url.replace("pawl@", "nobody@"), "does not exist"),
        (database_server.url.replace("/pawl?", "/nothing?"), "does not exist"),
    ):
        said = repository("queue", "list", "--queue", address)
        assert said.code == 52 and words in said.err and "PAWL_QUEUE_PASSWORD" in said.err, said
        assert "wrongpassword" not in said.err and said.err.count("\n") <= 3
    monkeypatch.setenv("PAWL_QUEUE_PASSWORD", "right")
    said = repository("queue", "list", "--queue", url.replace("pawl@", "locked@"))
    assert said.code == 1 and "refuses: permission denied" in said.err and "Traceback" not in said.err, said


def test_a_commit_in_which_a_secret_stands_stays_at_home(
    repository: Pawl,
    url: str,
    tmp_path: Path,
    elsewhere: Callable[[], AbstractContextManager[Pawl]],
    database_server: postgres.Postgres,
):
    (repository.workspace / ".env").write_text("API_KEY=sk-verysecretvalue123456\n")
    user = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    for words in (("add", "-f", "-A"), (*user, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=repository.workspace, check=True)
    assert repository("queue", "add", "write one.txt", "--model", writer(tmp_path, "one")).code == 0
    with rows_of(url) as server:
        data = server.rows("SELECT data FROM pawl_snapshot")[0]["data"]
    sent = zipfile.ZipFile(io.BytesIO(data))
    assert not any(b"verysecretvalue" in sent.read(name) for name in sent.namelist())
    assert json.loads(sent.read("parcel.json"))["commit"] is None


def test_a_session_and_the_page_show_and_change_the_queue_of_the_server(repository: Pawl, url: str, tmp_path: Path):
    model = writer(tmp_path, "one")
    assert repository("queue", "add", "write one.txt", "--model", model).code == 0
    with page(repository.workspace, "--model", model) as tab:
        assert [one["standing"] for one in tab.command("queue", "list")["body"]["jobs"]] == ["queued"]
        assert tab.command("queue", "pause", "1")["exit_code"] == 0
        assert tab.post("/api/requests", {"text": "/jobs"})["text"].splitlines()[1].split()[:2] == ["1", "paused"]
        assert "queued" in tab.post("/api/requests", {"text": "/jobs add and write two.txt"})["text"]
        assert tab.command("queue", "cancel", "1")["exit_code"] == 0
    assert [one["standing"] for one in repository.json("queue")["jobs"]] == ["cancelled", "queued"]


def test_jobs_of_a_file_carry_one_copy_of_the_workspace_and_wait_for_each_other_by_name(
    repository: Pawl, url: str, tmp_path: Path
):
    rows = [{"request": f"write {name}.txt", "name": name} for name in ("one", "two")]
    rows += [{"request": "write last.txt", "after": ["one", "two"]}, {"request": "never", "if_failed": "one"}]
    (tmp_path / "jobs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    words = ("queue", "add", "--from", str(tmp_path / "jobs.jsonl"), "--model", writer(tmp_path, "one"))
    assert repository.json(*words)["jobs"] == [1, 2, 3, 4]
    exported = repository.json("queue", "list", "--export", "-")["jobs"]
    assert [[one["job"] for one in job["after"]] for job in exported] == [[], [], [1, 2], [1]]
    assert [one["priority"] for one in exported] == [0, 0, 0, CRITICAL]
    server = queue_server.QueueServer.at(url, "")
    with server.transaction():
        assert [one["snapshot"] is None for one in server.rows("SELECT snapshot FROM pawl_job ORDER BY id")] == [
            False,
            False,
            True,
            True,
        ]
        assert len(server.rows("SELECT digest FROM pawl_snapshot")) == 1
    server.close()


@pytest.mark.parametrize("there", ["server", ""])
def test_the_budget_of_a_queue_stays_until_somebody_sets_another(
    repository: Pawl, url: str, monkeypatch: pytest.MonkeyPatch, there: str
):
    monkeypatch.setenv("PAWL_QUEUE", url if there else "")

    def budget_after(*words: str) -> str | None:
        assert repository("queue", "run", *words).code == 0
        return repository.json("queue", "stats")["state"]["budget"]

    assert [budget_after(*words) for words in ((), ("--budget", "5"), (), ("--budget", "none"))] == [None, 5, 5, None]


@pytest.mark.parametrize("there", ["server", ""])
def test_more_jobs_than_the_queue_takes_are_refused_and_said(
    repository: Pawl, url: str, tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch, there: str
):
    monkeypatch.setenv("PAWL_QUEUE", url if there else "")
    (state_directory.parent / "config.toml").write_text("[queue]\nmost = 2\n")
    words = ("queue", "add", "write one.txt", "--model", writer(tmp_path, "one"))
    (tmp_path / "jobs.jsonl").write_text('{"request": "one"}\n' * 3)
    brought = ("queue", "add", "--from", str(tmp_path / "jobs.jsonl"), *words[3:])
    said = repository.many([brought, words, words, words])
    assert [one.code for one in said] == [75, 0, 0, 75] and "the queue is full" in said[3].err, said
