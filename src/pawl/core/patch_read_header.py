"""The lines above the hunks in git's patches: modes, renames and object names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pawl.core.patch_read_names import bad, checked, plain_name

_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
LINK_MODE = 0o120000
_MODES = {b"100644": 0o100644, b"100755": 0o100755, b"120000": LINK_MODE, b"100664": 0o100644}


class Action(StrEnum):
    MODIFY = "modify"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"
    COPY = "copy"


class Reader:
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

    action: Action = Action.MODIFY
    old_mode: int | None = None
    new_mode: int | None = None
    old_name: str | None = None
    new_name: str | None = None
    objects: tuple[str, str] = ("", "")
    rewritten: bool = False
    has_effect: bool = False


def read_section(reader: Reader) -> Section:
    section = Section()
    while reader.line is not None and _read_header(section, reader):
        reader.take()
    modes = (section.old_mode, section.new_mode)
    if None not in modes and modes.count(LINK_MODE) == 1:
        raise bad(reader.number - 1, "expected a deletion and a creation where a file becomes a link or a link a file")
    return section


def _read_header(section: Section, reader: Reader) -> bool:
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
    b"new file mode ": Action.CREATE,
    b"deleted file mode ": Action.DELETE,
    b"rename ": Action.RENAME,
    b"copy ": Action.COPY,
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
