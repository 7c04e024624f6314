"""Kept answers: one for each query and state of the code, similar ones renewed, the least used make room."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from pawl.core.change import Retention
from pawl.store import database as schema
from pawl.store import memories as answers
from pawl.store.database import Database
from pawl.store.memories import Dependency, KeptAnswer, RestKind
from pawl.store.store import Store

WORKSPACE = "/home/user/project"
pytestmark = pytest.mark.spec("B4")


def rest(digest: str = "1", path: str = "a.py") -> Dependency:
    return Dependency(RestKind.FILE, path, digest)


def kept(query: str, text: str = "In a.py:1.", *rests: Dependency) -> KeptAnswer:
    return KeptAnswer(query=query, asked_of="model", text=text, rests=rests or (rest(),))


def never(one: str, other: str) -> bool:
    return False


def always(one: str, other: str) -> bool:
    return True


def test_an_answer_is_found_by_its_query_with_what_it_rests_on(desk):
    odd = Dependency(RestKind.LISTING, os.fsdecode(b"caf\xe9"), "2")
    answer = kept("where is it", "In a.py:1.", rest(), odd)
    number = desk.store.answers.keep(WORKSPACE, answer, never)
    (found,) = desk.store.answers.find(WORKSPACE, "model", "where is it")
    assert (found.id, found.text, found.rests, found.code) == (number, answer.text, answer.rests, answer.code)
    assert desk.store.answers.find(WORKSPACE, "another", "where is it") == []
    assert desk.store.answers.find("/elsewhere", "model", "where is it") == []


def test_each_state_of_the_code_has_its_own_answer(desk):
    for digest in "12":
        desk.store.answers.keep(WORKSPACE, kept("where", f"at {digest}", rest(digest)), always)
    assert [one.text for one in desk.store.answers.find(WORKSPACE, "model", "where")] == ["at 2", "at 1"]


def test_a_similar_query_on_the_same_code_renews_the_entry(desk):
    first = desk.store.answers.keep(WORKSPACE, kept("where is the parser", "Old."), never)
    second = desk.store.answers.keep(WORKSPACE, kept("where is that parser", "New."), always)
    assert second == first and desk.store.answers.count(WORKSPACE) == 1
    assert desk.store.answers.find(WORKSPACE, "model", "where is the parser") == []
    assert [one.text for one in desk.store.answers.find(WORKSPACE, "model", "where is that parser")] == ["New."]


def test_the_least_recently_used_answers_make_room(desk, monkeypatch):
    monkeypatch.setattr(answers, "MOST_ANSWERS", 3)
    numbers = [desk.store.answers.keep(WORKSPACE, kept(query), never) for query in ("one", "two", "three")]
    desk.store.answers.use(numbers[0])
    desk.store.answers.keep(WORKSPACE, kept("four"), never)
    left = [query for query in ("one", "two", "three", "four") if desk.store.answers.find(WORKSPACE, "model", query)]
    assert left == ["one", "three", "four"]


def test_five_hundred_answers_are_kept():
    assert answers.MOST_ANSWERS == 500


def test_nothing_that_holds_a_secret_is_kept(desk):
    canary = "API_KEY=Zq8vT3xLm2RpW9ydKc5B"
    assert desk.store.answers.keep(WORKSPACE, kept("where", f"It is {canary}."), never) is None
    assert desk.store.answers.keep(WORKSPACE, kept(f"is {canary} used"), never) is None
    assert desk.store.answers.count(WORKSPACE) == 0


@pytest.mark.spec("B3")
def test_files_are_known_as_they_were_last_seen(desk, monkeypatch, clock):
    odd = os.fsdecode(b"caf\xe9.py")
    desk.store.answers.note_files(WORKSPACE, {"a.py": "1", odd: "2"})
    desk.store.answers.note_files(WORKSPACE, {"a.py": "3"})
    assert desk.store.answers.files(WORKSPACE) == {"a.py": "3", odd: "2"}
    monkeypatch.setattr(answers, "MOST_FILES", 1)
    clock.pass_days(1)
    desk.store.answers.note_files(WORKSPACE, {"b.py": "4"})
    assert desk.store.answers.files(WORKSPACE) == {"b.py": "4"}


def test_forgetting_drops_the_answers_of_one_workspace(desk):
    desk.store.answers.keep(WORKSPACE, kept("where"), never)
    desk.store.answers.note_files(WORKSPACE, {"a.py": "1"})
    desk.store.answers.keep("/elsewhere", kept("where"), never)
    assert desk.store.answers.forget_all(WORKSPACE) == 1
    assert (desk.store.answers.count("/elsewhere"), desk.store.answers.files(WORKSPACE)) == (1, {})


@pytest.mark.spec("E12")
def test_a_snapshot_comes_back_in_another_process_without_its_secrets(desk, state_directory, child):
    desk.store.snapshots.put(WORKSPACE, "c1", "worksheet", {"done": ["one"]})
    desk.store.snapshots.put(WORKSPACE, "c1", "worksheet", {"done": ["one", "two"], "api_key": "Zq8vT3xLm2RpW9"})
    program = (
        "import json, sys; from pathlib import Path; from pawl.store import Store\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        f"    print(json.dumps(store.snapshots.get({WORKSPACE!r}, 'c1', 'worksheet')))"
    )
    out, _ = child(program).communicate(timeout=60)
    assert json.loads(out) == {"done": ["one", "two"], "api_key": "[redacted]"}
    assert desk.store.snapshots.get(WORKSPACE, "c2", "worksheet") is None


def test_retention_drops_old_answers_and_snapshots(desk, clock):
    desk.store.answers.keep(WORKSPACE, kept("where"), never)
    desk.store.answers.note_files(WORKSPACE, {"a.py": "1"})
    desk.store.snapshots.put(WORKSPACE, "c1", "worksheet", {"done": []})
    clock.pass_days(31)
    desk.store.journal.prune(Retention(days=30, backups=0))
    assert desk.store.answers.count(WORKSPACE) == 0
    assert desk.store.answers.files(WORKSPACE) == {}
    assert desk.store.snapshots.get(WORKSPACE, "c1", "worksheet") is None


def test_a_file_of_version_3_takes_memories_and_answers(state_directory: Path):
    database = Database(state_directory / "pawl.db", busy_seconds=1)
    for number, migration in enumerate(schema.MIGRATIONS[:3], start=1):
        migration(database)
        database.run(f"PRAGMA user_version = {number}")
    database.close()
    with Store.open(state_directory) as store:
        assert store.schema_version == schema.NEWEST
        assert store.answers.keep(WORKSPACE, kept("where"), never) == 1
        assert store.integrity() == []
    connection = sqlite3.connect(state_directory / "pawl.db")
    assert connection.execute("SELECT count(*) FROM answer").fetchone() == (1,)
    connection.close()
