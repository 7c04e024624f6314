"""The names of files in a patch: quotes, dates after them, the `a/` and `b/` in front, and what is no name at all."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pawl.core.errors import BadPatch

_UNESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPE = re.compile(rb'\\([0-3][0-7]{2}|[abtnvfr"\\])')
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_DATE = re.compile(rb"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?.*$")
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
            line, f"{path!r} is no path inside the workspace", "name files relative to the workspace, without '..'"
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
    """What stands after `---` or `+++`."""

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
    def is_converted(self) -> bool:
        return (self.line or b"").endswith(b"\r\n")

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
    """What the lines between `diff --git` and the first hunk say."""

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
_LONGEST_NUMBER = 63
_COPY = 0x80


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryContent:
    """What a binary file becomes: a content, or a delta against what it was."""

    line: int
    data: bytes
    is_delta: bool = False

    def applied(self, source: bytes) -> bytes:
        return _Delta(self.data, self.line).applied(source) if self.is_delta else self.data


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


def check_room(size: int, number: int) -> None:
    if size > LARGEST:
        raise bad(number, f"the patch unpacks to more than {LARGEST} bytes", "copy large files themselves instead")


class _Delta:
    """Instructions that build a content from pieces of another and bytes of their own."""

    def __init__(self, data: bytes, line: int) -> None:
        self._data = data
        self._line = line
        self._at = 0

    def applied(self, source: bytes) -> bytes:
        if self._size() != len(source):
            raise bad(self._line, f"the binary delta starts from another file than one of {len(source)} bytes")
        size = self._size()
        check_room(size, self._line)
        target = bytearray()
        while self._at < len(self._data) and len(target) <= size:
            target += self._piece(source)
        if len(target) != size:
            raise bad(self._line, f"expected the binary delta to make {size} bytes")
        return bytes(target)

    def _piece(self, source: bytes) -> bytes:
        instruction = self._byte()
        if instruction & _COPY:
            start = self._number(instruction, 4)
            size = self._number(instruction >> 4, 3) or 0x10000
            if start + size > len(source):
                raise bad(self._line, "the binary delta copies from beyond the end of the file")
            return source[start : start + size]
        piece = self._data[self._at : self._at + instruction]
        self._at += instruction
        if not instruction or len(piece) != instruction:
            raise bad(self._line, "the binary delta is cut off")
        return piece

    def _number(self, present: int, size: int) -> int:
        """A little-endian number of which only the bytes marked as present are written."""
        return sum(self._byte() << (8 * at) for at in range(size) if present >> at & 1)

    def _size(self) -> int:
        """A number in groups of seven bits, the lowest first."""
        size, shift = 0, 0
        while shift < _LONGEST_NUMBER:
            byte = self._byte()
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return size
        raise bad(self._line, "expected a size in the binary delta")

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise bad(self._line, "the binary delta is cut off")
        self._at += 1
        return self._data[self._at - 1]
