"""A change in pieces that can be had one by one: the hunks of a text, and everything else whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pawl.core.change import BlobReader, BlobStore, Change, ChangeSet, Node, NodeKind, is_directory, parents
from pawl.core.errors import UsageError
from pawl.core.text import LineChange, edits, grouped, is_binary, split_lines

CONTEXT = 3
"""How many unchanged lines a hunk shows around its edits; edits that share them are one hunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A piece of one path's change, as a patch shows it."""

    id: str
    """`path#number`, counted from 1, or `path#mode`; the same for the same change."""
    path: str
    header: str
    old_start: int = 0
    """The first line it shows of the old text, counted from 0."""
    old_lines: int = 0
    new_start: int = 0
    new_lines: int = 0
    lines: tuple[bytes, ...] = ()
    """Each with a space, `-` or `+` in front and its own line end; empty when the change has no lines to show."""
    edits: tuple[LineChange, ...] = ()


def hunks(change: Change, blobs: BlobReader) -> tuple[Hunk, ...]:
    """A modified text hunk by hunk, its permissions apart; anything else is one hunk."""
    return _Pieces.of(change, blobs).hunks


def select(changes: ChangeSet, hunk_ids: Iterable[str], blobs: BlobStore) -> ChangeSet:
    """The set with only some of its hunks, and with what they need to stand in a tree.

    Something new brings along the directories made for it; a directory goes only when all that the set removes from it
    goes too.
    """
    missing = set(hunk_ids)
    chosen: list[Change] = []
    with blobs.batch():
        for change in changes:
            pieces = _Pieces.of(change, blobs)
            ids = missing.intersection(hunk.id for hunk in pieces.hunks)
            node = pieces.node(ids, blobs)
            if node != change.before:
                chosen.append(Change(change.path, change.before, node))
            missing -= ids
    if missing:
        raise UsageError(f"there is no hunk {min(missing)!r} in this change set", advice="list the hunks it has first")
    return _standing(changes, {change.path: change for change in chosen})


def is_text_edit(change: Change, blobs: BlobReader) -> bool:
    """Whether a file's text becomes another text."""
    return all(
        node is not None and node.kind is NodeKind.FILE and not is_binary(content(node, blobs))
        for node in (change.before, change.after)
    )


def content(node: Node | None, blobs: BlobReader) -> bytes:
    """What a node holds: a file's bytes or a link's target; nothing for a directory or where nothing stands."""
    return b"" if node is None or node.blob is None else blobs.get(node.blob)


def text_hunks(path: str, old: bytes, new: bytes, context: int = CONTEXT) -> tuple[Hunk, ...]:
    """The hunks that lead from one text to another."""
    sides = (split_lines(old), split_lines(new))
    headings = _Headings(sides[0])
    return tuple(
        _text_hunk(f"{path}#{number}", group, sides, context, headings)
        for number, group in enumerate(grouped(edits(*sides), context), 1)
    )


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A change with its hunks, and what any part of them makes of the path."""

    change: Change
    hunks: tuple[Hunk, ...]
    texts: tuple[bytes, bytes] | None
    """Old and new, when the hunks are hunks of a text."""

    @classmethod
    def of(cls, change: Change, blobs: BlobReader) -> _Pieces:
        path, old, new = change.path, change.before, change.after
        if old is None or new is None or not is_text_edit(change, blobs):
            return cls(change, (Hunk(id=f"{path}#1", path=path, header=_whole_header(change)),), None)
        texts = (content(old, blobs), content(new, blobs))
        found = text_hunks(path, *texts)
        if old.mode != new.mode:
            header = f"permissions {old.mode:o} → {new.mode:o}"
            found = (Hunk(id=f"{path}#mode", path=path, header=header), *found)
        return cls(change, found, texts)

    def node(self, ids: Collection[str], blobs: BlobStore) -> Node | None:
        old, new = self.change.before, self.change.after
        taken = [hunk for hunk in self.hunks if hunk.id in ids]
        if len(taken) == len(self.hunks):
            return new
        if not taken or old is None or new is None or self.texts is None:
            return old
        mode = new.mode if f"{self.change.path}#mode" in ids else old.mode
        old_lines, new_lines = map(split_lines, self.texts)
        at, parts = 0, []
        for edit in (edit for hunk in taken for edit in hunk.edits):
            parts += old_lines[at : edit.a_start] + new_lines[edit.b_start : edit.b_end]
            at = edit.a_end
        return Node.file(blobs.put(b"".join(parts + old_lines[at:])), mode)


def _standing(changes: ChangeSet, chosen: dict[str, Change]) -> ChangeSet:
    for path in [path for path, change in chosen.items() if change.after is not None]:
        for parent in parents(path):
            made = changes.get(parent)
            if made is not None and is_directory(made.after) and not is_directory(made.before):
                chosen.setdefault(parent, made)
    kept = (change.path for change in changes if change.after is None and change.path not in chosen)
    occupied = {parent for path in kept for parent in parents(path)}
    for path in sorted(chosen, reverse=True):
        change = chosen[path]
        if path in occupied and not is_directory(change.after):
            del chosen[path]
            occupied.update(parents(path))
    return ChangeSet.of(chosen.values())


def _whole_header(change: Change) -> str:
    if change.before is None and change.after is not None:
        return f"new {change.after.kind}"
    if change.after is None and change.before is not None:
        return f"deleted {change.before.kind}"
    assert change.before is not None and change.after is not None
    if change.before.kind is not change.after.kind:
        return f"{change.before.kind} → {change.after.kind}"
    if change.before.blob == change.after.blob:
        return f"permissions {change.before.mode:o} → {change.after.mode:o}"
    return f"{'link' if change.after.kind is NodeKind.LINK else 'binary file'} changed"


def _text_hunk(
    hunk_id: str, group: Sequence[LineChange], sides: tuple[list[bytes], list[bytes]], context: int, headings: _Headings
) -> Hunk:
    old, new = sides
    first, last = group[0], group[-1]
    before, after = min(context, first.a_start), min(context, len(old) - last.a_end)
    start, end = first.a_start - before, last.a_end + after
    lines: list[bytes] = []
    at = start
    for edit in group:
        lines += [b" " + line for line in old[at : edit.a_start]]
        lines += [b"-" + line for line in old[edit.a_start : edit.a_end]]
        lines += [b"+" + line for line in new[edit.b_start : edit.b_end]]
        at = edit.a_end
    lines += [b" " + line for line in old[at:end]]
    new_start, new_lines = first.b_start - before, last.b_end + after - (first.b_start - before)
    ranges = f"@@ -{_range(start, end - start)} +{_range(new_start, new_lines)} @@"
    return Hunk(
        id=hunk_id,
        path=hunk_id.rpartition("#")[0],
        header=f"{ranges} {headings.above(start)}".rstrip(" "),
        old_start=start,
        old_lines=end - start,
        new_start=new_start,
        new_lines=new_lines,
        lines=tuple(lines),
        edits=tuple(group),
    )


def _range(start: int, size: int) -> str:
    """A line range as a hunk header gives it: an empty one names the line before it."""
    first = start + 1 if size else start
    return str(first) if size == 1 else f"{first},{size}"


class _Headings:
    """The nearest line above a hunk that looks like the start of a function or class: one that is not indented."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._searched = 0
        self._heading = ""

    def above(self, start: int) -> str:
        """Asked for in order of rising starts, so that every line is looked at once."""
        for line in reversed(self._lines[self._searched : start]):
            if line[:1].isalpha() or line[:1] in (b"_", b"$"):
                self._heading = line[:80].rstrip().decode("utf-8", "surrogateescape")
                break
        self._searched = max(self._searched, start)
        return self._heading
