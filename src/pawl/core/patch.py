"""Change sets as text: the patch that git reads, the diff that people read, and one line per file."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pawl.core.change import BlobReader, Change, ChangeSet, Node, NodeKind, is_directory
from pawl.core.display import safe_text
from pawl.core.hunks import CONTEXT, Hunk, content, text_hunks
from pawl.core.text import is_binary

NO_OBJECT = "0" * 40
"""What git writes for a file that is not there."""
NO_NEWLINE = b"\\ No newline at end of file\n"
_BINARY_LINE = 52
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


class What(StrEnum):
    """What a change does to its path, in one word."""

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
    """What git calls a file with this content."""
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
    """What the lines of a diff do not show."""
    before, after = change.before, change.after
    if before is None or after is None:
        standing = after or before
        assert standing is not None
        plain = standing.kind is NodeKind.FILE and standing.mode == 0o644
        return "" if plain else _described(standing)
    if before.kind is not after.kind or before.mode != after.mode:
        return f"{_described(before)} → {_described(after)}"
    return "link" if after.kind is NodeKind.LINK else ""


def _described(node: Node) -> str:
    return "link" if node.kind is NodeKind.LINK else f"{node.kind} {node.mode:o}"
