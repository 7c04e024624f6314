"""An answer holds for as long as everything that was read, listed or looked for stands as it stood."""

from __future__ import annotations

import pytest
from shelf import Folder

from pawl.agent import answers
from pawl.agent.answers import WatchedFiles, are_similar, normalised, overlap, still_holds
from pawl.core.errors import NotFound, TimedOut
from pawl.store.memories import RestKind

pytestmark = pytest.mark.spec("B4")

FILES = {"a.py": b"a = 1\n", "src/b.py": b"b = 2\n", "src/c.md": b"c\n"}


@pytest.fixture
def folder() -> Folder:
    return Folder(dict(FILES))


def test_the_same_question_is_known_however_it_is_spaced_and_ended():
    assert normalised("  where is\tit? ") == normalised("where is it")
    assert normalised("where is Config?") != normalised("where is config?")
    assert normalised("is this right?\n\n<stdin>\na  b\n</stdin>") != normalised(
        "is this right?\n\n<stdin>\na b\n</stdin>"
    )
    assert normalised("?") == "?"


@pytest.mark.parametrize(
    ("one", "other", "similar"),
    [
        ("where are the prices of a cart summed", "where are the prices of a cart added", True),
        ("one two three four five six seven x y z", "one two three four five six seven", True),
        ("one two three four five six x y z w", "one two three four five six", False),
        ("where is A", "what does B do", False),
        ("", "", False),
    ],
)
def test_queries_that_share_seven_of_ten_words_are_similar(one, other, similar):
    assert are_similar(one, other) is similar
    assert overlap(one, other) == overlap(other, one)


def test_an_answer_rests_on_what_was_read_and_goes_stale_when_it_changes(folder):
    watched = WatchedFiles(folder)
    watched.read("a.py")
    rests = watched.rests()
    assert [(rest.kind, rest.path) for rest in rests] == [(RestKind.FILE, "a.py")]
    folder.write("src/b.py", b"changed, but nobody looked\n")
    assert still_holds(folder, rests)
    folder.write("a.py", b"a = 2\n")
    assert not still_holds(folder, rests)
    folder.write("a.py", FILES["a.py"])
    assert still_holds(folder, rests)
    folder.delete("a.py")
    assert not still_holds(folder, rests)


def test_a_new_file_where_was_searched_makes_it_stale(folder):
    watched = WatchedFiles(folder)
    for path in watched.walk("src"):
        watched.read(path)
    rests = watched.rests()
    folder.write("d.py", b"elsewhere\n")
    assert still_holds(folder, rests)
    folder.write("src/d.py", b"here\n")
    assert not still_holds(folder, rests)


def test_what_was_not_there_counts_too(folder):
    watched = WatchedFiles(folder)
    with pytest.raises(NotFound):
        watched.read("missing.py")
    assert not watched.exists("gone")
    rests = watched.rests()
    assert still_holds(folder, rests) and watched.seen == {}
    folder.write("missing.py", b"now it is\n")
    assert not still_holds(folder, rests)
    folder.delete("missing.py")
    folder.write("gone", b"")
    assert not still_holds(folder, rests)


def test_a_large_search_rests_on_the_whole_folder(folder, monkeypatch):
    monkeypatch.setattr(answers, "MOST_RESTS", 3)
    for number in range(10):
        folder.write(f"src/{number}.py", b"x\n")
    watched = WatchedFiles(folder)
    watched.read("a.py")
    watched.walk("src")
    for path in [path for path in watched.walk("src") if path.endswith(".py")]:
        watched.read(path)
    rests = watched.rests()
    assert [(rest.kind, rest.path) for rest in rests] == [(RestKind.FILE, "a.py"), (RestKind.TREE, "src")]
    assert still_holds(folder, rests)
    folder.write("src/c.md", b"not searched, but below\n")
    assert not still_holds(folder, rests)


def test_one_search_inside_another_counts_once(folder, monkeypatch):
    monkeypatch.setattr(answers, "MOST_RESTS", 2)
    watched = WatchedFiles(folder)
    for under in ("src", ""):
        for path in watched.walk(under):
            watched.read(path)
    assert [(rest.kind, rest.path) for rest in watched.rests()] == [(RestKind.TREE, "")]


def test_too_much_to_look_after_rests_on_nothing(folder, monkeypatch):
    monkeypatch.setattr(answers, "MOST_RESTS", 1)
    monkeypatch.setattr(answers, "MOST_FILES", 2)
    watched = WatchedFiles(folder)
    for path in watched.walk():
        watched.read(path)
    assert watched.rests() == ()


def test_what_changed_while_the_answer_was_made_is_no_ground_for_it(folder):
    watched = WatchedFiles(folder)
    watched.read("a.py")
    folder.write("a.py", b"a = 9\n")
    watched.read("a.py")
    assert watched.rests() == ()
    writing = WatchedFiles(folder)
    writing.read("a.py")
    writing.write("a.py", b"mine")
    assert writing.rests() == ()


def test_a_disk_that_does_not_answer_in_time_is_no_ground_either(folder):
    class Slow(Folder):
        def read(self, path: str) -> bytes:
            raise TimedOut("too slow")

    watched = WatchedFiles(Slow(dict(FILES)))
    with pytest.raises(TimedOut):
        watched.read("a.py")
    assert watched.rests() == ()
    known = WatchedFiles(folder)
    known.read("a.py")
    assert not still_holds(Slow(dict(FILES)), known.rests())
