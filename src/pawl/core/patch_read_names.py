"""The names of files in a patch: quotes, dates after them, the `a/` and `b/` in front, and what is no name at all."""

from __future__ import annotations

import re
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
