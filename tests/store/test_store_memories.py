"""Memories are short, kept once, searchable, and gone when they are forgotten."""

from __future__ import annotations

import pytest

from pawl.core.change import Retention
from pawl.core.errors import UnknownEntry, UsageError
from pawl.store import memories
from pawl.store.memories import MemorySource, MemoryTier, NewMemory
from pawl.store.store import Store

WORKSPACE = "/home/user/project"
pytestmark = pytest.mark.spec("C14")


def fact(text: str, source: MemorySource = MemorySource.RUN) -> NewMemory:
    return NewMemory(tier=MemoryTier.FACT, text=text, source=source, run="r1")


def test_a_memory_is_listed_shown_and_forgotten(desk):
    kept = desk.store.memories.add(WORKSPACE, fact("Tests run with  make test."))
    assert kept.text == "Tests run with make test."
    assert desk.store.memories.all(WORKSPACE) == [kept]
    assert desk.store.memories.get(WORKSPACE, kept.id) == kept
    assert desk.store.memories.forget(WORKSPACE, kept.id) == kept
    assert desk.store.memories.all(WORKSPACE) == []
    with pytest.raises(UnknownEntry):
        desk.store.memories.get(WORKSPACE, kept.id)


def test_what_says_the_same_is_renewed_and_not_kept_twice(desk, clock):
    first = desk.store.memories.add(WORKSPACE, fact("Tests run with `make test`.", MemorySource.USER))
    clock.pass_days(1)
    again = desk.store.memories.add(WORKSPACE, fact("tests run with make test"))
    assert (again.id, again.source, again.created > first.created) == (first.id, MemorySource.USER, True)
    assert [one.text for one in desk.store.memories.search(WORKSPACE, "make")] == ["tests run with make test"]


def test_workspaces_do_not_see_each_others_memories(desk):
    kept = desk.store.memories.add(WORKSPACE, fact("The parser is in parse.py."))
    assert desk.store.memories.all("/elsewhere") == []
    assert desk.store.memories.search("/elsewhere", "parser") == []
    with pytest.raises(UnknownEntry):
        desk.store.memories.forget("/elsewhere", kept.id)
    assert desk.store.memories.forget_all("/elsewhere") == 0


def test_a_search_finds_words_whatever_else_the_query_holds(desk):
    add = desk.store.memories.add
    parser = add(WORKSPACE, fact("The parser reads tokens from lexer.py."))
    add(WORKSPACE, fact("Releases are cut by hand."))
    for query in ("parser", "PARSER NOT", 'where is "parser" AND (', "lexer.py", "parser* ^tokens"):
        assert desk.store.memories.search(WORKSPACE, query) == [parser], query
    assert desk.store.memories.search(WORKSPACE, '"* ( ) ^ -') == []
    desk.store.memories.forget(WORKSPACE, parser.id)
    assert desk.store.memories.search(WORKSPACE, "parser") == []


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 401, "ghp_" + "a1B2" * 9])
def test_what_is_no_memory_is_refused(desk, text):
    with pytest.raises(UsageError):
        desk.store.memories.add(WORKSPACE, fact(text))


def test_a_secret_is_taken_out_before_a_memory_is_kept(desk, state_directory):
    canary = "Zq8vT3xLm2RpW9ydKc5B"
    kept = desk.store.memories.add(WORKSPACE, fact(f"Deploys use API_KEY={canary} from the vault."))
    assert canary not in kept.text and "vault" in kept.text
    assert not any(canary.encode() in path.read_bytes() for path in state_directory.iterdir() if path.is_file())


def test_the_oldest_of_a_tier_make_room_but_never_the_users_own(desk, clock, monkeypatch):
    monkeypatch.setitem(memories.MOST, MemoryTier.FACT, 2)
    desk.store.memories.add(WORKSPACE, fact("mine", MemorySource.USER))
    for text in ("one", "two", "three"):
        clock.pass_days(1)
        desk.store.memories.add(WORKSPACE, fact(text))
    assert [one.text for one in desk.store.memories.all(WORKSPACE)] == ["three", "two", "mine"]


def test_memories_outlive_retention_and_the_process(desk, clock, state_directory):
    desk.store.memories.add(WORKSPACE, fact("Tests run with make test."))
    clock.pass_days(400)
    desk.store.journal.prune(Retention(days=30, backups=0))
    with Store.open(state_directory, clock=clock) as second:
        assert [one.text for one in second.memories.all(WORKSPACE)] == ["Tests run with make test."]
        assert second.integrity() == []
