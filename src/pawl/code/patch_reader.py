"""Reading patches: git's own and plain unified diffs, strictly. What cannot be read is refused with its line number."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from pawl.core.errors import BadPatch
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import split_lines

_UNESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPE = re.compile(rb'\\([0-3][0-7]{2}|[abtnvfr"\\])')
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_DATE = re.compile(rb"(?<!\s)\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?.*$")
_NEVER = re.compile(rb"\t(1970-01-01|1969-12-31)[ T]")
"""The date that diff gives to a file that is not there: the first instant of 1970, in any time zone."""
_PREFIXES = frozenset({("a", "b"), ("i", "w"), ("c", "i"), ("c", "w"), ("o", "w")})
_PREFIX_PAIRS = _PREFIXES | {(new, old) for old, new in _PREFIXES}

Names = tuple[str | None, str | None]
"""The old and the new name; None where there is none."""


def bad(line: int, message: str, advice: str = "") -> BadPatch:
    return BadPatch(f"line {line} of the patch: {message}", advice=advice)


def checked(path: str, line: int) -> str:
    """The path, when it is one inside the workspace."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise bad(
            line, f"{path!r} is not a path inside the workspace", "name files relative to the workspace, without '..'"
        )
    return path


def header_names(text: bytes, line: int) -> Names:
    """Both names of a `diff --git` line as they are written; a pair of None when they cannot be told apart."""
    if text.startswith(b'"') or text.endswith(b'"'):
        return _quoted_pair(text, line)
    middle = len(text) // 2
    if len(text) % 2 == 1 and text[middle : middle + 1] == b" ":
        old, new = _decoded(text[:middle]), _decoded(text[middle + 1 :])
        if old.partition("/")[2] == new.partition("/")[2]:
            return old, new
    first, space, second = text.partition(b" ")
    if space and b" " not in second:
        return _decoded(first), _decoded(second)
    return None, None


class Label(NamedTuple):
    """The text after `---` or `+++`."""

    name: str | None
    is_absent: bool
    """Whether there is no such file on that side, which a date can say as well as `/dev/null`."""


def file_label(text: bytes, line: int) -> Label:
    if text.startswith(b'"'):
        return Label(_unquoted(text, line)[0], is_absent=False)
    name = text.partition(b"\t")[0] if b"\t" in text else _DATE.sub(b"", text)
    if name == b"/dev/null":
        return Label(None, is_absent=True)
    return Label(_decoded(name), is_absent=bool(_NEVER.search(text)))


def plain_name(text: bytes, line: int) -> str:
    """A name on a line of its own, as after `rename from`."""
    return _unquoted(text, line)[0] if text.startswith(b'"') else _decoded(text)


def without_prefixes(names: Names) -> Names:
    """Both names without `a/`, `b/` and their like, where they have them."""
    old, new = names
    if old is None or new is None:
        return _without_prefix(old), _without_prefix(new)
    (old_top, _, old_rest), (new_top, _, new_rest) = old.partition("/"), new.partition("/")
    from_two_directories = old_top != new_top and old_rest == new_rest
    if old_rest and new_rest and ((old_top, new_top) in _PREFIX_PAIRS or from_two_directories):
        return old_rest, new_rest
    return names


def _without_prefix(name: str | None) -> str | None:
    return name[2:] if name is not None and name[:2] in ("a/", "b/") else name


def _quoted_pair(text: bytes, line: int) -> Names:
    if text.startswith(b'"'):
        old, rest = _unquoted(text, line)
        new_text = rest.removeprefix(b" ")
        new = _unquoted(new_text, line)[0] if new_text.startswith(b'"') else _decoded(new_text)
        return old, new
    plain, _, quoted = text.partition(b' "')
    return _decoded(plain), _unquoted(b'"' + quoted, line)[0]


def _unquoted(text: bytes, line: int) -> tuple[str, bytes]:
    """The name in quotes that a text starts with, and what follows it."""
    match = _QUOTED.match(text)
    if match is None:
        raise bad(line, f"expected the closing quote of {_decoded(text)!r}")
    body = match[1]
    if b"\\" in _ESCAPE.sub(b"", body):
        raise bad(line, f"expected an escape such as \\n or \\303 in {_decoded(body)!r}")
    return _decoded(_ESCAPE.sub(_unescape, body)), text[match.end() :]


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1].decode()
    return bytes([int(code, 8) if code.isdigit() else _UNESCAPED[code]])


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
LINK_MODE = 0o120000
_MODES = {b"100644": 0o100644, b"100755": 0o100755, b"120000": LINK_MODE, b"100664": 0o100644}


class FileAction(StrEnum):
    MODIFY = "modify"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"
    COPY = "copy"


class PatchLines:
    """The lines of a patch, one after the other."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._at = 0
        self.unpacked = 0
        """How many bytes of binary content the patch has claimed so far."""

    @property
    def number(self) -> int:
        return self._at + 1

    @property
    def line(self) -> bytes | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    @property
    def at_plain_header(self) -> bool:
        following = self._lines[self._at + 1 : self._at + 2]
        return self.starts(b"--- ") and bool(following) and following[0].startswith(b"+++ ")

    def starts(self, prefix: bytes) -> bool:
        return self.line is not None and self.line.startswith(prefix)

    def take(self) -> bytes:
        """The line without its end; empty after the last one."""
        line = self.line
        self._at += 1
        return b"" if line is None else line.rstrip(b"\r\n")

    def take_whole(self) -> bytes:
        line = self.line
        assert line is not None
        self._at += 1
        return line


@dataclass(slots=True)
class Section:
    """The header between `diff --git` and the first hunk."""

    action: FileAction = FileAction.MODIFY
    old_mode: int | None = None
    new_mode: int | None = None
    old_name: str | None = None
    new_name: str | None = None
    objects: tuple[str, str] = ("", "")
    rewritten: bool = False
    has_effect: bool = False


def read_section(reader: PatchLines) -> Section:
    section = Section()
    while reader.line is not None and _read_header(section, reader):
        reader.take()
    modes = (section.old_mode, section.new_mode)
    if None not in modes and modes.count(LINK_MODE) == 1:
        raise bad(reader.number - 1, "expected a deletion and a creation where a file becomes a link or a link a file")
    return section


def _read_header(section: Section, reader: PatchLines) -> bool:
    """Takes in one line above the hunks; False when it is none."""
    number, text = reader.number, (reader.line or b"").rstrip(b"\r\n")
    for prefix, action in _ACTIONS.items():
        if text.startswith(prefix):
            section.action, section.has_effect = action, True
    for prefix in _NAME_HEADERS:
        if text.startswith(prefix):
            name = checked(plain_name(text.removeprefix(prefix), number), number)
            if prefix.endswith((b"from ", b"old ")):
                section.old_name = name
            else:
                section.new_name = name
            return True
    for prefix, (is_old, is_new) in _MODE_HEADERS.items():
        if text.startswith(prefix):
            mode = _mode(text.removeprefix(prefix), number)
            section.old_mode = mode if is_old else section.old_mode
            section.new_mode = mode if is_new else section.new_mode
            section.has_effect = True
            return True
    if text.startswith(b"index "):
        _read_index(section, text.removeprefix(b"index "), number)
        return True
    section.rewritten |= text.startswith(b"dissimilarity index ")
    return text.startswith((b"similarity index ", b"dissimilarity index "))


_ACTIONS = {
    b"new file mode ": FileAction.CREATE,
    b"deleted file mode ": FileAction.DELETE,
    b"rename ": FileAction.RENAME,
    b"copy ": FileAction.COPY,
}
_NAME_HEADERS = (b"rename from ", b"rename to ", b"copy from ", b"copy to ", b"rename old ", b"rename new ")
_MODE_HEADERS = {
    b"old mode ": (True, False),
    b"new mode ": (False, True),
    b"new file mode ": (False, True),
    b"deleted file mode ": (True, False),
}


def _read_index(section: Section, text: bytes, number: int) -> None:
    match = _INDEX.fullmatch(text)
    if match is None:
        raise bad(number, "expected two object names, as in 'index 83db48f..bf269f4 100644'")
    section.objects = (match[1].decode(), match[2].decode())
    if match[3] is not None:
        section.old_mode = section.new_mode = _mode(match[3], number)


def _mode(text: bytes, number: int) -> int:
    if text == b"160000":
        raise bad(number, "a submodule cannot be changed by a patch", "leave it out of the patch")
    if text not in _MODES:
        raise bad(number, f"expected the mode 100644, 100755 or 120000, found {text.decode(errors='replace')!r}")
    return _MODES[text]


LARGEST = 128 << 20
"""How many bytes are unpacked from one patch, all its files together."""


def packed_line(line: bytes, number: int) -> bytes:
    """The bytes of one line of base 85, which its first letter counts."""
    letter, payload = line[:1], line[1:]
    if b"A" <= letter <= b"Z":
        size = letter[0] - ord("A") + 1
    elif b"a" <= letter <= b"z":
        size = letter[0] - ord("a") + 27
    else:
        raise bad(number, "expected a letter that counts the bytes of a binary line")
    if len(payload) != (size + 3) // 4 * 5:
        raise bad(number, f"expected {(size + 3) // 4 * 5} characters for {size} bytes, found {len(payload)}")
    try:
        return base64.b85decode(payload)[:size]
    except ValueError:
        raise bad(number, "expected base 85 characters") from None


def unpacked(packed: bytes, size: int, number: int) -> bytes:
    """The content that was compressed, which must be of the size the patch says."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, size + 1)
    except zlib.error:
        raise bad(number, "the binary content cannot be decompressed") from None
    if len(data) != size or not inflater.eof:
        raise bad(number, f"expected {size} bytes of binary content")
    return data


_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_BINARY_BLOCK = re.compile(rb"(literal|delta) (\d{1,12})")
_NO_CONTENT = re.compile(rb"Binary files .* differ")
_ONE_BY_ONE = "apply the commits one after the other"
_MAIL = re.compile(rb"From [0-9a-f]{40} ")
"""The first line of a commit that was made to be mailed."""
_SIGNATURE = re.compile(rb"-- ?\r?\n?")
"""The end of a patch that was made to be mailed."""


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
    """One file's part of a patch."""

    line: int
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
    binary: bytes | None = None
    """The new content of a file that is no text."""


def read_patch(data: bytes) -> tuple[FilePatch, ...]:
    """Every file that the patch speaks of, in its order. Text around the diffs, such as a mail, is passed over."""
    reader = PatchLines(split_lines(data))
    patches: list[FilePatch] = []
    while reader.line is not None:
        if reader.starts(b"diff --git "):
            patches.append(_git_file(reader))
        elif reader.at_plain_header:
            patches.append(_plain_file(reader))
        elif patches and _MAIL.match(reader.line):
            raise bad(reader.number, "another commit begins here", _ONE_BY_ONE)
        else:
            _refuse_stray(reader)
            reader.take()
    if not patches:
        raise bad(1, "expected 'diff --git' or '---' and '+++' lines, found no diff")
    _refuse_twice(patches)
    return tuple(patches)


def _refuse_twice(patches: Sequence[FilePatch]) -> None:
    """A patch is one change, in which all files start from the same tree; a file may only go and come as another."""
    seen: dict[str, FilePatch] = {}
    for patch in patches:
        before = seen.setdefault(patch.new_path, patch)
        if before is not patch and (before.action, patch.action) != (FileAction.DELETE, FileAction.CREATE):
            raise bad(patch.line, f"{patch.new_path!r} is changed a second time", _ONE_BY_ONE)
    for patch in patches:
        source = seen.get(patch.old_path, patch)
        if patch.action is FileAction.RENAME and source.action is FileAction.MODIFY and not source.rewritten:
            raise bad(patch.line, f"{patch.old_path!r} is changed and then renamed", _ONE_BY_ONE)


def _git_file(reader: PatchLines) -> FilePatch:
    line = reader.number
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
    if not (section.has_effect or hunks or binary is not None):
        raise bad(reader.number, "expected a mode, a rename, a hunk or binary content after 'diff --git'")
    shown = None if labels is None else (labels[0].name, labels[1].name)
    old_path, new_path = _git_paths(section, names, shown, line)
    return FilePatch(
        line=line,
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


def _plain_file(reader: PatchLines) -> FilePatch:
    line = reader.number
    labels = _labels(reader)
    old, new = without_prefixes((labels[0].name, labels[1].name))
    paths = [checked(path, line) for path in (old, new) if path is not None]
    if not paths:
        raise bad(line, "expected the name of a file after '---' or '+++'")
    return FilePatch(
        line=line,
        action=_labelled_action(labels),
        old_path=paths[0],
        new_path=paths[-1],
        hunks=_hunks(reader),
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


def _binary(reader: PatchLines) -> bytes:
    """The new content; the old one may follow it, for taking the patch back, and is passed over."""
    reader.take()
    number = reader.number
    block = _binary_block(reader)
    if block is None:
        raise bad(number, "expected 'literal' and a size")
    kind, size, packed = block
    if kind == b"delta":
        raise bad(number, "a binary file is changed by a delta, which is not read", "copy the file itself")
    reader.unpacked += size
    if reader.unpacked > LARGEST:
        raise bad(number, f"the patch unpacks to more than {LARGEST} bytes", "copy large files themselves instead")
    _binary_block(reader)
    return unpacked(packed, size, number)


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
