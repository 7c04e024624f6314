"""The patterns of one ignore file, with git's own meaning.

Patterns come from a repository that nobody has vouched for, so each becomes an expression whose time grows with the
length of the path and not with the number of stars: every star but the last settles for the first place that fits.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_MARK = b"\xef\xbb\xbf"
_ANY_NAMES = b"(?:[^/]+/)"
_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"digit": string.digits,
    b"lower": string.ascii_lowercase,
    b"punct": string.punctuation,
    b"space": string.whitespace,
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


@dataclass(frozen=True, slots=True)
class Pattern:
    expression: re.Pattern[bytes]
    ignores: bool
    """False for a pattern that starts with `!`."""
    folders_only: bool
    by_name: bool
    """A pattern without a slash is matched with the last name, any other with the whole path."""

    def matches(self, path: bytes, *, folder: bool) -> bool:
        if self.folders_only and not folder:
            return False
        return self.expression.fullmatch(path.rpartition(b"/")[2] if self.by_name else path) is not None


def parse(text: bytes) -> tuple[Pattern, ...]:
    """The patterns of a file in their order; a line that git would never match is left out."""
    lines = text.removeprefix(_MARK).split(b"\n")
    return tuple(pattern for line in lines if (pattern := _pattern(line.removesuffix(b"\r"))) is not None)


def decide(patterns: Sequence[Pattern], path: bytes, *, folder: bool) -> bool | None:
    """What the last pattern that fits says of this very path; None when none fits."""
    for pattern in reversed(patterns):
        if pattern.matches(path, folder=folder):
            return pattern.ignores
    return None


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of a folder, joined into one expression for names and one for paths, because most fit none."""

    every: tuple[Pattern, ...]
    names: re.Pattern[bytes]
    paths: re.Pattern[bytes]

    @classmethod
    def of(cls, every: tuple[Pattern, ...]) -> Patterns:
        return cls(
            every,
            _joined(pattern for pattern in every if pattern.by_name),
            _joined(pattern for pattern in every if not pattern.by_name),
        )

    def decide(self, path: bytes, *, folder: bool) -> bool | None:
        """What the last pattern that fits says of this very path; None when none fits."""
        if self.names.fullmatch(path.rpartition(b"/")[2]) is None and self.paths.fullmatch(path) is None:
            return None
        return decide(self.every, path, folder=folder)


def _joined(patterns: Iterable[Pattern]) -> re.Pattern[bytes]:
    expressions = [b"(?:" + pattern.expression.pattern + b")" for pattern in patterns]
    return re.compile(b"|".join(expressions) or b"(?!)", re.DOTALL)


def _pattern(line: bytes) -> Pattern | None:
    if line.startswith(b"#"):
        return None
    text = _without_trailing_spaces(line)
    ignores = not text.startswith(b"!")
    text = text.removeprefix(b"!")
    folders_only = text.endswith(b"/")
    text = text.removesuffix(b"/")
    by_name = b"/" not in text
    text = text.removeprefix(b"/")
    if not text:
        return None
    try:
        expression = _name(text) if by_name else _path(text)
        return Pattern(re.compile(expression, re.DOTALL), ignores, folders_only, by_name)
    except ValueError:
        return None


def _without_trailing_spaces(line: bytes) -> bytes:
    end = len(line)
    while end and line[end - 1 : end] == b" " and not _escaped(line, end - 1):
        end -= 1
    return line[:end]


def _escaped(line: bytes, position: int) -> bool:
    before = line[:position]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _path(text: bytes) -> bytes:
    """`**` between slashes is any number of names; each run of names before the last `**` settles for its first fit."""
    names = _split(text)
    runs: list[list[bytes]] = [[]]
    for name in names[:-1]:
        if name == b"**":
            runs.append([])
        else:
            runs[-1].append(_name(name) + b"/")
    last = b".+" if names[-1] == b"**" else _name(names[-1])
    first, *others = [b"".join(run) for run in runs]
    if not others:
        return first + last
    settled = b"".join(b"(?>" + _ANY_NAMES + b"*?" + run + b")" for run in others[:-1])
    return first + settled + _ANY_NAMES + b"*?" + others[-1] + last


def _split(text: bytes) -> list[bytes]:
    """The names of a pattern; a slash within brackets divides nothing."""
    names: list[bytes] = []
    start = position = 0
    while position < len(text):
        character = text[position : position + 1]
        position += 1
        if character == b"/":
            names.append(text[start : position - 1])
            start = position
        elif character == b"[":
            _, position = _brackets(text, position)
        elif character == b"\\":
            position += 1
    return [*names, text[start:]]


def _name(text: bytes) -> bytes:
    """One name: `*`, `?`, brackets and escapes."""
    runs: list[bytes] = [b""]
    for token in _tokens(text):
        if token == b"*":
            runs.append(b"")
        else:
            runs[-1] += token
    first, *others = runs
    if not others:
        return first
    settled = b"".join(b"(?>[^/]*?" + run + b")" for run in others[:-1] if run)
    return first + settled + b"[^/]*" + others[-1]


def _tokens(text: bytes) -> Iterator[bytes]:
    """Each piece as an expression, a star as itself. `ValueError` for what can never match."""
    position = 0
    while position < len(text):
        character = text[position : position + 1]
        position += 1
        if character == b"*":
            yield b"*"
        elif character == b"?":
            yield b"[^/]"
        elif character == b"[":
            expression, position = _brackets(text, position)
            yield expression
        elif character == b"\\":
            if position == len(text):
                raise ValueError("nothing follows the backslash")
            yield re.escape(text[position : position + 1])
            position += 1
        else:
            yield re.escape(character)


def _brackets(text: bytes, position: int) -> tuple[bytes, int]:
    """The bytes that a bracket expression stands for, and where it ends."""
    negated = text[position : position + 1] in (b"!", b"^")
    position += negated
    wanted: set[int] = set()
    start = position
    while position == start or text[position : position + 1] != b"]":
        found, position = _bracket_item(text, position)
        wanted |= found
    chosen = (set(range(256)) - wanted if negated else wanted) - {ord("/")}
    if not chosen:
        raise ValueError("nothing is chosen")
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(chosen)) + b"]", position + 1


def _bracket_item(text: bytes, position: int) -> tuple[set[int], int]:
    if text.startswith(b"[:", position) and (end := text.find(b":]", position)) > 0:
        name = text[position + 2 : end]
        if name not in _CLASSES:
            raise ValueError(f"no character class {name!r}")
        return set(_CLASSES[name].encode()), end + 2
    low, position = _bracket_byte(text, position)
    if text[position : position + 1] != b"-" or text[position + 1 : position + 2] in (b"]", b""):
        return {low}, position
    high, position = _bracket_byte(text, position + 1)
    return set(range(low, high + 1)), position


def _bracket_byte(text: bytes, position: int) -> tuple[int, int]:
    if text[position : position + 1] == b"\\":
        position += 1
    if position >= len(text):
        raise ValueError("the bracket is not closed")
    return text[position], position + 1
