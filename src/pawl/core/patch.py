"""Change sets in pieces and as text: hunks to be had one by one, the patch that git reads, the diff for people."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum

from pawl.core.change import BlobReader, BlobStore, Change, ChangeSet, Node, NodeKind, is_directory, parents
from pawl.core.display import safe_text
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
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
    """The content of a node: a file's bytes or a link's target; nothing for a directory or where nothing stands."""
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


NO_OBJECT = "0" * 40
"""Git's name for a file that is not there."""
NO_NEWLINE = b"\\ No newline at end of file\n"
_BINARY_LINE = 52
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


class What(StrEnum):
    """The effect of a change on its path, in one word."""

    CREATED = "created"
    DELETED = "deleted"
    MODIFIED = "modified"
    MODE = "mode"
    """Only the permissions change."""
    LINK = "link"
    """A link points elsewhere."""
    DIRECTORY = "directory"
    """A directory comes, goes or changes its permissions."""
    REPLACED = "replaced"
    """Something of another kind takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    path: str
    what: What
    kind: NodeKind
    """Of what stands there after, or stood there before it was deleted."""
    added: int = 0
    removed: int = 0
    binary: bool = False


def git_patch(changes: ChangeSet, blobs: BlobReader, context: int = CONTEXT) -> bytes:
    """The change set as `git apply` reads it. Git has no directories, and of permissions only whether a file runs."""
    return b"".join(
        part for change in changes for step in _git_steps(change) for part in _GitFile(step, blobs, context).parts()
    )


def summary(changes: ChangeSet, blobs: BlobReader) -> tuple[FileSummary, ...]:
    return tuple(_summary(change, blobs) for change in changes)


def unified(changes: ChangeSet, blobs: BlobReader, context: int = CONTEXT) -> str:
    """The change set for people to read, safe to show on a terminal; a program wants `git_patch`."""
    return "".join(line for change in changes for line in _readable(change, blobs, context))


def git_object_name(data: bytes, algorithm: str = "sha1") -> str:
    """Git's name for a file with this content."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def quoted(path: str) -> str:
    """A path as git prints it: in quotes, with escapes, as soon as it holds anything but plain characters."""
    data = path.encode("utf-8", "surrogateescape")
    escaped = "".join(
        f"\\{_ESCAPES[byte]}" if byte in _ESCAPES else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in data
    )
    return f'"{escaped}"' if escaped != path else path


def git_mode(node: Node) -> str:
    if node.kind is NodeKind.LINK:
        return "120000"
    return "100755" if node.mode & 0o100 else "100644"


def _git_steps(change: Change) -> Iterator[Change]:
    """The change as git sees it: no directories, and another kind means that one goes and another comes."""
    before = None if is_directory(change.before) else change.before
    after = None if is_directory(change.after) else change.after
    if before is not None and after is not None and before.kind is not after.kind:
        yield Change(change.path, before, None)
        yield Change(change.path, None, after)
    elif before != after:
        yield Change(change.path, before, after)


@dataclass(frozen=True, slots=True)
class _GitFile:
    """One `diff --git` section."""

    change: Change
    blobs: BlobReader
    context: int

    def parts(self) -> Iterator[bytes]:
        before, after = self.change.before, self.change.after
        same_content = before is not None and after is not None and before.blob == after.blob
        headers = list(self._mode_headers())
        if same_content and not headers:
            return
        old_name, new_name = quoted(f"a/{self.change.path}"), quoted(f"b/{self.change.path}")
        yield f"diff --git {old_name} {new_name}\n".encode()
        yield from headers
        if same_content:
            return
        old, new = content(before, self.blobs), content(after, self.blobs)
        yield self._index(old, new, mode="" if headers or before is None else f" {git_mode(before)}")
        if is_binary(old) or is_binary(new):
            yield b"GIT binary patch\n" + _literal(new) + _literal(old)
        elif old != new:
            yield _name_line("---", "/dev/null" if before is None else old_name)
            yield _name_line("+++", "/dev/null" if after is None else new_name)
            for hunk in text_hunks(self.change.path, old, new, self.context):
                yield _hunk_bytes(hunk)

    def _mode_headers(self) -> Iterator[bytes]:
        before, after = self.change.before, self.change.after
        if before is None and after is not None:
            yield f"new file mode {git_mode(after)}\n".encode()
        elif before is not None and after is None:
            yield f"deleted file mode {git_mode(before)}\n".encode()
        elif before is not None and after is not None and git_mode(before) != git_mode(after):
            yield f"old mode {git_mode(before)}\nnew mode {git_mode(after)}\n".encode()

    def _index(self, old: bytes, new: bytes, mode: str) -> bytes:
        old_object = NO_OBJECT if self.change.before is None else git_object_name(old)
        new_object = NO_OBJECT if self.change.after is None else git_object_name(new)
        return f"index {old_object}..{new_object}{mode}\n".encode()


def _name_line(sign: str, name: str) -> bytes:
    """A tab ends a name that holds a space, or readers would take what follows the space for a date."""
    end = "\t\n" if " " in name else "\n"
    return f"{sign} {name}{end}".encode()


def _hunk_bytes(hunk: Hunk) -> bytes:
    lines = (line if line.endswith(b"\n") else line + b"\n" + NO_NEWLINE for line in hunk.lines)
    return hunk.header.encode("utf-8", "surrogateescape") + b"\n" + b"".join(lines)


def _literal(data: bytes) -> bytes:
    """A content in git's binary form: compressed, then base 85, each line led by its length."""
    packed = zlib.compress(data)
    lines = [b"literal %d\n" % len(data)]
    for start in range(0, len(packed), _BINARY_LINE):
        piece = packed[start : start + _BINARY_LINE]
        size = len(piece)
        letter = ord("A") + size - 1 if size <= 26 else ord("a") + size - 27
        lines.append(bytes([letter]) + base64.b85encode(piece, pad=True) + b"\n")
    return b"".join([*lines, b"\n"])


def _summary(change: Change, blobs: BlobReader) -> FileSummary:
    standing = change.after or change.before
    assert standing is not None
    old, new = content(change.before, blobs), content(change.after, blobs)
    binary = is_binary(old) or is_binary(new)
    signs = [] if binary or old == new else [line[:1] for hunk in text_hunks("", old, new, 0) for line in hunk.lines]
    return FileSummary(
        path=change.path,
        what=_what(change),
        kind=standing.kind,
        added=signs.count(b"+"),
        removed=signs.count(b"-"),
        binary=binary,
    )


def _what(change: Change) -> What:
    before, after = change.before, change.after
    if before is None or after is None:
        if is_directory(before or after):
            return What.DIRECTORY
        return What.CREATED if before is None else What.DELETED
    if before.kind is not after.kind:
        return What.REPLACED
    changed = {NodeKind.DIRECTORY: What.DIRECTORY, NodeKind.LINK: What.LINK, NodeKind.FILE: What.MODIFIED}[after.kind]
    return What.MODE if changed is What.MODIFIED and before.blob == after.blob else changed


def _readable(change: Change, blobs: BlobReader, context: int) -> Iterator[str]:
    path = safe_text(change.path).text.replace("\n", "\\n").replace("\t", "\\t")
    yield f"--- {'/dev/null' if change.before is None else f'a/{path}'}\n"
    yield f"+++ {'/dev/null' if change.after is None else f'b/{path}'}\n"
    if note := _note(change):
        yield f"{note}\n"
    old, new = content(change.before, blobs), content(change.after, blobs)
    if is_binary(old) or is_binary(new):
        yield f"binary: {len(old)} → {len(new)} bytes\n"
    elif old != new:
        for hunk in text_hunks(change.path, old, new, context):
            yield safe_text(_hunk_bytes(hunk).decode("utf-8", "surrogateescape")).text


def _note(change: Change) -> str:
    """Kind and permissions, which the lines of a diff do not show."""
    before, after = change.before, change.after
    if before is None or after is None:
        standing = after or before
        assert standing is not None
        return "" if standing.kind is NodeKind.FILE and standing.mode == 0o644 else _described(standing)
    if before.kind is not after.kind or before.mode != after.mode:
        return f"{_described(before)} → {_described(after)}"
    return "link" if after.kind is NodeKind.LINK else ""


def _described(node: Node) -> str:
    return "link" if node.kind is NodeKind.LINK else f"{node.kind} {node.mode:o}"
