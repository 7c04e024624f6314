"""Model trees (path → node) and random steps between them, for the properties of the algebra of changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from memory_blobs import MemoryBlobs

from pawl.core.change import Change, ChangeSet, Node, NodeKind, is_directory, parents
from pawl.core.merge import difference

Tree = dict[str, Node]

NAMES = ("a", "b", "c d", "é", "x.py", 'q"t', "tab\there", "\udcff")
LINES = (b"one\n", b"two\n", b"three\n", b"\n", b"crlf\r\n", b"}\n", b"def f():\n", b"caf\xe9\n", b"\xef\xbb\xbfbom\n")
ACTS = ("write", "write", "edit", "edit", "edit", "edit", "binary", "link", "folder", "mode", "delete", "move", "cut")


@dataclass
class World:
    """A tree that grows by acts, each named by two numbers, so that a failure shrinks to few and small ones."""

    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    modes: tuple[int, ...] = (0o644, 0o755, 0o600)
    tree: Tree = field(default_factory=dict)

    def act(self, kind: str, where: int, what: int) -> None:
        getattr(self, f"_{kind}")(where, what)

    def content(self, path: str) -> bytes:
        blob = self.tree[path].blob
        assert blob is not None
        return self.blobs.get(blob)

    def _write(self, where: int, what: int) -> None:
        lines = [LINES[(what + at * at * 7) % len(LINES)] for at in range(what % 25)]
        self._put(self._new_path(where), b"".join(lines) + (b"end" if what % 4 == 0 else b""))

    def _binary(self, where: int, what: int) -> None:
        self._put(self._new_path(where), b"\0" + what.to_bytes(4, "big") * (what % 90))

    def _edit(self, where: int, what: int) -> None:
        for path in self._some(NodeKind.FILE, where):
            lines = self.content(path).splitlines(keepends=True)
            at = what % (len(lines) + 1)
            new = b"line %d\n" % (what // 3) if what % 5 else LINES[what % len(LINES)]
            lines[at : at + what % 3] = [new] * (what % 2 + 1) if what % 7 else []
            self.tree[path] = Node.file(self.blobs.put(b"".join(lines)), self.tree[path].mode)

    def _cut(self, where: int, what: int) -> None:
        for path in self._some(NodeKind.FILE, where):
            self._put(path, self.content(path)[: what % 40])

    def _link(self, where: int, what: int) -> None:
        path = self._new_path(where)
        self._clear(path)
        self.tree[path] = Node.link(self.blobs.put(b"target %d" % what))

    def _folder(self, where: int, what: int) -> None:
        path = self._new_path(where)
        if not is_directory(self.tree.get(path)):
            self._clear(path)
        self.tree[path] = Node.directory((0o755, 0o700)[what % 2])

    def _mode(self, where: int, what: int) -> None:
        for path in self._some(NodeKind.FILE, where):
            node = self.tree[path]
            self.tree[path] = Node(node.kind, node.blob, self.modes[what % len(self.modes)])

    def _delete(self, where: int, what: int) -> None:
        if self.tree:
            self._clear(sorted(self.tree)[where % len(self.tree)])

    def _move(self, where: int, what: int) -> None:
        for path in self._some(NodeKind.FILE, where):
            node = self.tree.pop(path)
            target = self._new_path(what)
            self._clear(target)
            self.tree[target] = node

    def _put(self, path: str, data: bytes) -> None:
        self._clear(path)
        self.tree[path] = Node.file(self.blobs.put(data), self.modes[len(data) % len(self.modes)])

    def _new_path(self, where: int) -> str:
        """A name in the root or in a directory; directories come into being on the way."""
        depth, path = where % 3, NAMES[where // 3 % len(NAMES)]
        for level in range(depth):
            if not is_directory(self.tree.get(path)):
                self._clear(path)
                self.tree[path] = Node.directory()
            path += "/" + NAMES[where // (7 + level) % len(NAMES)]
        return path

    def _clear(self, path: str) -> None:
        for other in [other for other in self.tree if other == path or other.startswith(f"{path}/")]:
            del self.tree[other]

    def _some(self, kind: NodeKind, where: int) -> Sequence[str]:
        found = sorted(path for path, node in self.tree.items() if node.kind is kind)
        return found[where % len(found) :][:1] if found else []


acts = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 3000), st.integers(0, 3000)), min_size=1, max_size=8)


@st.composite
def histories(
    draw: st.DrawFn, steps: int, modes: tuple[int, ...] = (0o644, 0o755, 0o600)
) -> tuple[MemoryBlobs, list[Tree]]:
    """`steps` trees after a first one, each made of the one before."""
    world = World(modes=modes)
    trees: list[Tree] = []
    for _ in range(steps + 1):
        for act in draw(acts):
            world.act(*act)
        trees.append(dict(world.tree))
    return world.blobs, trees


@st.composite
def forks(draw: st.DrawFn) -> tuple[MemoryBlobs, Tree, Tree, Tree]:
    """A tree and two trees made of it independently of each other."""
    world = World()
    for act in draw(acts):
        world.act(*act)
    base = dict(world.tree)
    ends = []
    for _ in range(2):
        world.tree = dict(base)
        for act in draw(acts):
            world.act(*act)
        ends.append(dict(world.tree))
    return world.blobs, base, ends[0], ends[1]


def between(before: Mapping[str, Node], after: Mapping[str, Node]) -> ChangeSet:
    return difference(before, after)


def applied(tree: Mapping[str, Node], changes: Iterable[Change]) -> Tree:
    """The tree after the changes, which must start from it and leave a whole tree."""
    result = dict(tree)
    for change in changes:
        assert result.get(change.path) == change.before, change.path
        if change.after is None:
            del result[change.path]
        else:
            result[change.path] = change.after
    assert_whole(result)
    return result


def assert_whole(tree: Mapping[str, Node]) -> None:
    for path in tree:
        for parent in parents(path):
            assert is_directory(tree.get(parent)), f"{path!r} stands in no directory"


def files(tree: Mapping[str, Node]) -> Tree:
    """What git sees of a tree: files and links."""
    return {path: node for path, node in tree.items() if node.kind is not NodeKind.DIRECTORY}


def without_empty_folders(tree: Mapping[str, Node]) -> Tree:
    used = {parent for path in files(tree) for parent in parents(path)}
    return {path: node for path, node in tree.items() if node.kind is not NodeKind.DIRECTORY or path in used}


def lay_tree(folder: Path, tree: Mapping[str, Node], blobs: MemoryBlobs) -> None:
    for path, node in sorted(tree.items()):
        place = os.path.join(folder, path)
        if node.kind is NodeKind.DIRECTORY:
            os.mkdir(place, 0o755)
        elif node.kind is NodeKind.LINK:
            os.symlink(blobs.get(node.blob or ""), os.fsencode(place))
        else:
            Path(place).write_bytes(blobs.get(node.blob or ""))
            os.chmod(place, node.mode)


def read_tree(folder: Path, blobs: MemoryBlobs) -> Tree:
    """The files and links of a folder, without git's own."""
    tree: Tree = {}
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*names, *folders):
            place = os.path.join(top, name)
            path = os.path.relpath(place, folder)
            if os.path.islink(place):
                tree[path] = Node.link(blobs.put(os.readlink(os.fsencode(place))))
            elif name in names:
                tree[path] = Node.file(blobs.put(Path(place).read_bytes()), os.stat(place).st_mode & 0o777)
    return tree


def git(folder: Path, *arguments: str, data: bytes = b"") -> bytes:
    done = subprocess.run(["git", *arguments], cwd=folder, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout
