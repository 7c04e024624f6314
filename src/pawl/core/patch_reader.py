"""Reading patches: git's own and plain unified diffs, strictly. What cannot be read is refused with its line number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pawl.core.patch_format import (
    BinaryContent,
    FileAction,
    Label,
    Names,
    PatchLines,
    Section,
    bad,
    check_room,
    checked,
    file_label,
    header_names,
    packed_line,
    read_section,
    unpacked,
    without_prefixes,
)
from pawl.core.text import split_lines

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_BINARY_BLOCK = re.compile(rb"(literal|delta) (\d{1,12})")
_NO_CONTENT = re.compile(rb"Binary files .* differ")
_SIGNATURE = re.compile(rb"-- ?\r?\n?")
"""What ends a patch that was made to be mailed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchHunk:
    line: int
    """Where it starts in the patch, counted from 1."""
    start: int
    """Which line of the old text its first line is, counted from 0."""
    lines: tuple[bytes, ...]
    """Each with its sign in front and its own line end."""

    @property
    def old(self) -> tuple[bytes, ...]:
        return tuple(line[1:] for line in self.lines if line[:1] != b"+")

    @property
    def new(self) -> tuple[bytes, ...]:
        return tuple(line[1:] for line in self.lines if line[:1] != b"-")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """What a patch says about one file."""

    line: int
    group: int
    """Files of one group were changed at once; a later group starts from what the earlier ones made."""
    action: FileAction
    old_path: str
    new_path: str
    """Equal to the old one unless the file is renamed or copied, or a plain diff gives two names."""
    old_mode: int | None = None
    new_mode: int | None = None
    old_object: str = ""
    new_object: str = ""
    """Git's names of the contents, possibly shortened; empty when the patch does not say."""
    rewritten: bool = False
    """Whether git took the new content for another file's, so that the old one can have moved elsewhere."""
    hunks: tuple[PatchHunk, ...] = ()
    binary: BinaryContent | None = None
    converted: bool = False
    """Whether the lines of the patch itself end as on Windows, so that those of the files may have been changed."""


def read_patch(data: bytes) -> tuple[FilePatch, ...]:
    """Every file that the patch speaks of, in its order. Text around the diffs, such as a mail, is passed over."""
    reader = PatchLines(split_lines(data))
    patches: list[FilePatch] = []
    group, is_apart = 0, False
    while reader.line is not None:
        if reader.starts(b"diff --git ") or reader.at_plain_header:
            group += is_apart
            patches.append(_git_file(reader, group) if reader.starts(b"diff --git ") else _plain_file(reader, group))
            is_apart = False
        else:
            _refuse_stray(reader)
            reader.take()
            is_apart = bool(patches)
    if not patches:
        raise bad(1, "expected 'diff --git' or '---' and '+++' lines, found no diff")
    return tuple(patches)


def _git_file(reader: PatchLines, group: int) -> FilePatch:
    line, converted = reader.number, reader.is_converted
    names = header_names(reader.take().removeprefix(b"diff --git "), line)
    section = read_section(reader)
    if reader.starts(b"Binary files "):
        raise bad(reader.number, "the binary file's content is missing", "make the patch with 'git diff --binary'")
    labels: tuple[Label, Label] | None = None
    hunks: tuple[PatchHunk, ...] = ()
    binary = None
    if reader.at_plain_header:
        labels = _labels(reader)
        if section.action is FileAction.MODIFY:
            section.action = _labelled_action(labels)
        hunks = _hunks(reader)
    elif reader.starts(b"GIT binary patch"):
        binary = _binary(reader)
    if not (section.has_effect or hunks or binary):
        raise bad(reader.number, "expected a mode, a rename, a hunk or binary content after 'diff --git'")
    shown = None if labels is None else (labels[0].name, labels[1].name)
    old_path, new_path = _git_paths(section, names, shown, line)
    return FilePatch(
        line=line,
        group=group,
        action=section.action,
        old_path=old_path,
        new_path=new_path,
        old_mode=section.old_mode,
        new_mode=section.new_mode,
        old_object=section.objects[0],
        new_object=section.objects[1],
        rewritten=section.rewritten,
        hunks=hunks,
        binary=binary,
        converted=converted,
    )


def _git_paths(section: Section, names: Names, labels: Names | None, line: int) -> tuple[str, str]:
    """The old and the new path; wherever the patch names them, it must name the same ones."""
    if section.action in (FileAction.RENAME, FileAction.COPY):
        if section.old_name is None or section.new_name is None:
            raise bad(line, f"expected '{section.action} from' and '{section.action} to'")
        return section.old_name, section.new_name
    raw = names if names[0] is not None or labels is None else labels
    old, new = without_prefixes(raw)
    path = new or old
    if path is None:
        raise bad(line, "expected two names after 'diff --git'")
    if labels is not None:
        _check_labels(section, names, labels, line)
    if old is not None and new is not None and old != new:
        raise bad(line, f"expected one file, found {old!r} and {new!r} without a rename")
    return checked(path, line), path


def _check_labels(section: Section, names: Names, labels: Names, line: int) -> None:
    for label, name, absent in zip(labels, names, (FileAction.CREATE, FileAction.DELETE), strict=True):
        if label is None and section.action is not absent:
            raise bad(line, f"'/dev/null' stands where the file of 'diff --git' was expected: {name!r}")
        if label is not None and name is not None and label != name:
            raise bad(line, f"expected {name!r} after '---' or '+++', as 'diff --git' says, found {label!r}")


def _plain_file(reader: PatchLines, group: int) -> FilePatch:
    line, converted = reader.number, reader.is_converted
    labels = _labels(reader)
    old, new = without_prefixes((labels[0].name, labels[1].name))
    paths = [checked(path, line) for path in (old, new) if path is not None]
    if not paths:
        raise bad(line, "expected the name of a file after '---' or '+++'")
    return FilePatch(
        line=line,
        group=group,
        action=_labelled_action(labels),
        old_path=paths[0],
        new_path=paths[-1],
        hunks=_hunks(reader),
        converted=converted,
    )


def _labelled_action(labels: tuple[Label, Label]) -> FileAction:
    old, new = labels
    return FileAction.CREATE if old.is_absent else FileAction.DELETE if new.is_absent else FileAction.MODIFY


def _labels(reader: PatchLines) -> tuple[Label, Label]:
    old = file_label(reader.take().removeprefix(b"--- "), reader.number - 1)
    new = file_label(reader.take().removeprefix(b"+++ "), reader.number - 1)
    return old, new


def _hunks(reader: PatchLines) -> tuple[PatchHunk, ...]:
    hunks: list[PatchHunk] = []
    while reader.starts(b"@@"):
        hunks.append(_hunk(reader))
    if not hunks:
        raise bad(reader.number, "expected a hunk, as in '@@ -1,3 +1,4 @@'")
    line = reader.line
    if line is not None and line[:1] in (b" ", b"+", b"-", b"\\"):
        is_end = _SIGNATURE.fullmatch(line) or reader.at_plain_header
        if not is_end:
            raise bad(reader.number, "expected the end of the hunk, which has more lines than its header says")
    return tuple(hunks)


def _hunk(reader: PatchLines) -> PatchHunk:
    number = reader.number
    match = _HUNK.match(reader.take())
    if match is None:
        raise bad(number, "expected a hunk header, as in '@@ -1,3 +1,4 @@'")
    start, old_size, new_size = int(match[1]), int(match[2] or 1), int(match[4] or 1)
    if not (old_size or new_size) or (old_size and not start):
        raise bad(number, "expected a hunk of at least one line, counted from 1")
    lines: list[bytes] = []
    old_left, new_left = old_size, new_size
    while old_left or new_left:
        line = _hunk_line(reader)
        old_left -= line[:1] != b"+"
        new_left -= line[:1] != b"-"
        if old_left < 0 or new_left < 0:
            raise bad(reader.number - 1, f"expected {old_size} old and {new_size} new lines in this hunk")
        if reader.starts(b"\\"):
            reader.take()
            line = line.removesuffix(b"\n")
        lines.append(line)
    return PatchHunk(line=number, start=start - 1 if old_size else start, lines=tuple(lines))


def _hunk_line(reader: PatchLines) -> bytes:
    if reader.line is None:
        raise bad(reader.number, "expected more lines of the hunk, found the end of the patch")
    if reader.line in (b"\n", b"\r\n"):
        return b" " + reader.take_whole()  # An empty line whose space was trimmed on the way.
    if reader.line[:1] not in (b" ", b"+", b"-"):
        raise bad(reader.number, "expected a line of the hunk, starting with a space, '+' or '-'")
    line = reader.take_whole()
    return line if line.endswith(b"\n") else line + b"\n"  # Only a patch that was cut short ends without one.


def _binary(reader: PatchLines) -> BinaryContent:
    """The new content; the old one may follow it, for taking the patch back, and is passed over."""
    reader.take()
    number = reader.number
    block = _binary_block(reader)
    if block is None:
        raise bad(number, "expected 'literal' or 'delta' and a size")
    kind, size, packed = block
    reader.unpacked += size
    check_room(reader.unpacked, number)
    _binary_block(reader)
    return BinaryContent(line=number, data=unpacked(packed, size, number), is_delta=kind == b"delta")


def _binary_block(reader: PatchLines) -> tuple[bytes, int, bytes] | None:
    match = _BINARY_BLOCK.fullmatch((reader.line or b"").rstrip(b"\r\n"))
    if match is None:
        return None
    reader.take()
    packed = bytearray()
    while line := reader.take():
        packed += packed_line(line, reader.number - 1)
    return match[1], int(match[2]), bytes(packed)


def _refuse_stray(reader: PatchLines) -> None:
    """Text between diffs is passed over, unless it is a piece of a diff: then the patch is not what it seems."""
    line = (reader.line or b"").rstrip(b"\r\n")
    if line.startswith(b"@@ -"):
        raise bad(reader.number, "expected '---' and '+++' lines before a hunk")
    if line.startswith((b"@@@ ", b"diff --cc ", b"diff --combined ")):
        raise bad(reader.number, "the combined diff of a merge cannot be applied", "make it with 'git diff A B'")
    if _NO_CONTENT.fullmatch(line):
        raise bad(reader.number, "the binary file's content is missing", "make the patch with 'git diff --binary'")
