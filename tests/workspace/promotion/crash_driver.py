"""A separate process that promotes or undoes one change set over every kind of change; crash tests kill it anywhere.

usage: crash_driver.py SRC promote|undo STATE WORKSPACE
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])

from pawl.core.change import Change, ChangeSet, EntryKind, NewEntry, Node
from pawl.settings.files import Tree
from pawl.store.store import Store
from pawl.workspace.promotion import Promoter
from pawl.workspace.reversal import History, Wish

OLD = {
    "a.py": (b"old a\n", 0o644),
    "pkg/b.py": (b"old b\n", 0o644),
    "c.txt": (b"old c\n", 0o600),
    "mode.sh": (b"#!/bin/sh\n", 0o644),
    "gone/deep/x.txt": (b"x\n", 0o644),
    "swap": (b"was a file\n", 0o644),
    "folder/inside.txt": (b"inside\n", 0o644),
}


def changes(store: Store, tree: Tree) -> ChangeSet:
    """Modify, create in new folders, delete, chmod, link, file to folder, folder to file, binary."""

    def file(data: bytes, mode: int = 0o644) -> Node:
        return Node.file(store.blobs.put(data), mode)

    goal = {
        "a.py": file(b"new a\n" * 200),
        "pkg/b.py": file(b"new b\n", 0o755),
        "c.txt": None,
        "mode.sh": file(b"#!/bin/sh\n", 0o755),
        "d": Node.directory(),
        "d/e": Node.directory(0o700),
        "d/e/f.bin": file(bytes(range(256)) * 20),
        "gone/deep/x.txt": None,
        "gone/deep": None,
        "gone": None,
        "swap": Node.directory(),
        "swap/now.txt": file(b"now a folder\n"),
        "folder/inside.txt": None,
        "folder": file(b"now a file\n"),
        "link": Node.link(store.blobs.put(b"a.py")),
    }
    nodes = {path: tree.node(path, store.blobs) if tree.find(path) else None for path in goal}
    return ChangeSet.of(Change(path, nodes[path], after) for path, after in goal.items())


def main() -> None:
    action, state, workspace = sys.argv[2:5]
    store = Store.open(Path(state))
    tree = Tree(workspace)
    sync_each = int(sys.argv[5]) if len(sys.argv) > 5 else 16
    promoter = Promoter(tree, store.journal, store.blobs, Path(state) / "locks", sync_each)
    if action == "promote":
        with store.blobs.batch():
            wanted = changes(store, tree)
        entry = NewEntry(workspace=workspace, run="r1", kind=EntryKind.EDIT, title="everything")
        promoter.promote(entry, wanted)
    else:
        History(tree, promoter, store.journal, store.blobs, "r2").undo(1, Wish())
    print("acknowledged", flush=True)


if __name__ == "__main__":
    main()
