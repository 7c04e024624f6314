"""Whatever is done in whatever order, a content counts exactly the rows that name it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pawl.core.change import Change, ChangeSet, Checkpoint, EntryKind, EntryState, NewEntry, Node, NodeKind, Retention
from pawl.core.errors import MissingBlob
from pawl.store.store import Store

WORKSPACES = ("/one", "/two")
NAMING = ("entry_change", "checkpoint_change")

contents = st.sampled_from([b"a", b"b", b"c", b"the same words again and again " * 10])
nodes = st.none() | st.tuples(
    st.sampled_from([NodeKind.FILE, NodeKind.LINK]), contents, st.sampled_from([0o644, 0o755])
)
steps = st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1])
plans = st.dictionaries(st.sampled_from(["a", "b", "c/d"]), steps, max_size=3)


class Keeping(RuleBasedStateMachine):
    """Writers, readers and `gc` taking turns on one store."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.now = 1_800_000_000.0
        self.store = Store.open(Path(self.directory.name) / "state", clock=lambda: self.now)
        self.begun: list[int] = []

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()

    def changes(self, plan) -> ChangeSet:
        def node(part):
            return part and Node(part[0], self.store.blobs.put(part[1]), part[2])

        return ChangeSet.of(Change(path, node(before), node(after)) for path, (before, after) in plan.items())

    def new(self, workspace: str) -> NewEntry:
        return NewEntry(workspace=workspace, run="run-1", kind=EntryKind.EDIT, title="a title")

    @rule(plan=plans, workspace=st.sampled_from(WORKSPACES))
    def record(self, plan, workspace) -> None:
        self.store.journal.record(self.new(workspace), self.changes(plan))

    @rule(plan=plans, workspace=st.sampled_from(WORKSPACES))
    def begin(self, plan, workspace) -> None:
        self.begun.append(self.store.journal.begin(self.new(workspace), self.changes(plan), {"c": 0o555}))

    @rule(state=st.sampled_from([EntryState.DONE, EntryState.ROLLED_BACK, EntryState.CONFLICT]))
    def finish(self, state) -> None:
        if self.begun:
            self.store.journal.finish(self.begun.pop(), state)

    @rule(plan=plans, workspace=st.sampled_from(WORKSPACES))
    def add_checkpoint(self, plan, workspace) -> None:
        fields = {"workspace": workspace, "name": "", "created": "", "after_entry": 0}
        self.store.journal.add_checkpoint(Checkpoint(id=0, changes=self.changes(plan), **fields))

    @rule(plan=plans)
    def begin_with_a_missing_content(self, plan) -> None:
        lost = Change("lost", None, Node.file("0" * 64))
        with pytest.raises(MissingBlob):
            self.store.journal.begin(self.new("/one"), ChangeSet.of([lost, *self.changes(plan)]), {})

    @rule(days=st.sampled_from([0.01, 1, 40]))
    def wait(self, days) -> None:
        self.now += days * 86_400

    @rule(days=st.integers(0, 30), backups=st.integers(0, 2))
    def prune(self, days, backups) -> None:
        self.store.journal.prune(Retention(days=days, backups=backups))

    @rule(grace=st.sampled_from([0, 3600]))
    def collect(self, grace) -> None:
        self.store.collect(grace)

    @invariant()
    def counts_are_the_rows_that_name_it(self) -> None:
        named: Counter[str] = Counter()
        for table in NAMING:
            for row in self.store._database.rows(f"SELECT before_blob, after_blob FROM {table}"):
                named.update(name for name in row if name)
        stored = dict(self.store._database.rows("SELECT hash, refs FROM blob"))
        assert {name: refs for name, refs in stored.items() if refs} == dict(named)

    @invariant()
    def every_named_content_can_be_read(self) -> None:
        for workspace in WORKSPACES:
            for entry in self.store.journal.entries(workspace):
                if not entry.pruned:
                    for name in self.store.journal.changes(entry.id).blobs:
                        self.store.blobs.get(name)


Keeping.TestCase.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)


@pytest.mark.spec("A16")
class TestReferences(Keeping.TestCase):
    """Lean; the slow one below goes further."""


@pytest.mark.slow
class TestReferencesAtLength(Keeping.TestCase):
    settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
