"""A store with a clock that stands still, and children that use the same state directory for real."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pawl.core.change import Change, ChangeSet, Entry, EntryKind, EntryState, NewEntry, Node
from pawl.store.store import Store

DAY = 86_400


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += days * DAY


@dataclass
class Desk:
    """A store and short ways to fill it."""

    store: Store
    clock: Clock
    workspace: str = "/home/user/project"

    def file(self, text: str) -> Node:
        return Node.file(self.store.blobs.put(text.encode()))

    def changes(self, **texts: str) -> ChangeSet:
        """One new file for each name."""
        return ChangeSet.of(Change(path, None, self.file(text)) for path, text in texts.items())

    def new(self, kind: EntryKind = EntryKind.EDIT, reverses: int | None = None, workspace: str = "") -> NewEntry:
        return NewEntry(
            workspace=workspace or self.workspace, run="run-1", kind=kind, title="a title", reverses=reverses
        )

    def edit(self, state: EntryState = EntryState.DONE, workspace: str = "", **texts: str) -> int:
        """An entry that was begun and has ended like that."""
        number = self.store.journal.begin(self.new(workspace=workspace), self.changes(**texts), {})
        self.store.journal.finish(number, state)
        return number

    def reverse(self, kind: EntryKind, target: int) -> int:
        changes = self.store.journal.changes(target).inverted()
        number = self.store.journal.begin(self.new(kind, target), changes, {})
        self.store.journal.finish(number, EntryState.DONE)
        return number

    def reverse_all(self, kind: EntryKind, *targets: int) -> int:
        new = replace(self.new(kind), reverses_all=targets)
        number = self.store.journal.begin(new, self.changes(**{f"file{targets[0]}": "x"}), {})
        self.store.journal.finish(number, EntryState.DONE)
        return number

    def entry(self, number: int) -> Entry:
        return self.store.journal.entry(self.workspace, number)

    def refs(self, digest: str) -> int:
        row = self.store._database.one("SELECT refs FROM blob WHERE hash = ?", (digest,))
        return int(row[0])


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(state_directory: Path, clock: Clock) -> Iterator[Desk]:
    with Store.open(state_directory, clock=clock) as store:
        yield Desk(store, clock)


@pytest.fixture
def child(state_directory: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program that finds the state directory in its first argument; nothing outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*before, sys.executable, "-c", program, os.fspath(state_directory), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
