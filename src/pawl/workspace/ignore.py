"""Which paths stay on the bench: what git ignores, what the neutral ignore files name, and caches known without either.

Ignore files are read as the bench shows them, and only in the folders on the way to a path that is asked about.
"""

from __future__ import annotations

import functools
import os
import re
import string
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path

from pawl.core.lazy_dataclass import dataclass
from pawl.settings import files as bounded
from pawl.workspace.paths import parent

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
    """Whether the last pattern that fits ignores this very path; None when none fits."""
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
        """Whether the last pattern that fits ignores this very path; None when none fits."""
        if self.names.fullmatch(path.rpartition(b"/")[2]) is None and self.paths.fullmatch(path) is None:
            return None
        return decide(self.every, path, folder=folder)


@functools.lru_cache(maxsize=512)
def _parsed(*texts: bytes) -> Patterns:
    """The same value for the same texts, so that two looks are soon told to have found the same rules."""
    return Patterns.of(tuple(pattern for text in texts for pattern in parse(text)))


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
        expression = _name(text) if by_name else path_expression(text)
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


def path_expression(text: bytes) -> bytes:
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


IGNORE_FILES = (".gitignore", ".agentignore", ".aiignore")
"""In one folder a later file wins over an earlier one."""

EXCLUDE_FILE = ".git/info/exclude"
LARGEST_IGNORE_FILE = 1 << 20

_Chain = tuple[tuple[int, Patterns], ...]
"""Patterns, each with how many bytes of a path lead to their folder."""

Read = Callable[[str], bytes | None]
"""Gives the content of a workspace path, None when no plain file of a sensible size stands there."""


class Ignore:
    """The ignore files of a workspace. They are read once; make another to see them anew."""

    def __init__(self, read: Read, *, global_file: Path | None = None, names: tuple[str, ...] = IGNORE_FILES) -> None:
        self._read = read
        self.names = names
        self._global_file = global_file
        self._chains: dict[str, _Chain] = {}
        self._folders: dict[str, str | None] = {"": None}
        self._listed: dict[str, list[str]] = {}

    def note_names(self, folder: str, names: Container[str]) -> None:
        """These are all names of a folder: ignore files that are not among them need not be looked for, and whoever
        lists a workspace sees no installed packages, which a capture keeps unless they are ignored."""
        self._listed[folder] = [name for name in self.names if name in names]
        if folder and ("pyvenv.cfg" in names or folder.rpartition("/")[2] == "node_modules"):
            self._folders[folder] = f"{folder}/"

    def rules(self, folder: str) -> object:
        """All that decides about what is in a folder: where it is the same twice, so is what `topmost` says of it."""
        return self._above(folder), self._chain(folder), self._lowest

    def note_kept(self, folders: Iterable[str]) -> None:
        """These are known not to be ignored."""
        for folder in folders:
            self._folders.setdefault(folder, None)

    def topmost(self, path: str, *, folder: bool) -> str | None:
        """The ignored path at or above this one that is nearest to the root; a folder ends with a slash.

        What lies below an ignored folder cannot be taken back by any pattern.
        """
        above = self._above(parent(path))
        if above is not None or not self._ignores(path, folder=folder):
            return above
        return f"{path}/" if folder else path

    def _above(self, folder: str) -> str | None:
        """The topmost ignored path at or above a folder; walks down without recursion, whatever the depth."""
        unknown: list[str] = []
        while folder not in self._folders:
            unknown.append(folder)
            folder = parent(folder)
        found = self._folders[folder]
        for path in reversed(unknown):
            if found is None and self._ignores(path, folder=True):
                found = f"{path}/"
            self._folders[path] = found
        return found

    def _ignores(self, path: str, *, folder: bool) -> bool:
        encoded = os.fsencode(path)
        for length, patterns in self._chain(parent(path)):
            said = patterns.decide(encoded[length:], folder=folder)
            if said is not None:
                return said
        for patterns in self._lowest:
            said = patterns.decide(encoded, folder=folder)
            if said is not None:
                return said
        return False

    def _chain(self, folder: str) -> _Chain:
        """Every folder at or above this one that has patterns, with them, the nearest first."""
        unknown: list[str] = []
        while folder not in self._chains:
            unknown.append(folder)
            if not folder:
                break
            folder = parent(folder)
        for path in reversed(unknown):
            above = self._chains[parent(path)] if path else ()
            patterns = self._patterns(path)
            length = len(os.fsencode(path)) + 1 if path else 0
            self._chains[path] = ((length, patterns), *above) if patterns.every else above
        return self._chains[unknown[0] if unknown else folder]

    def _patterns(self, folder: str) -> Patterns:
        contents = [self._read(f"{folder}/{name}" if folder else name) for name in self._listed.get(folder, self.names)]
        return _parsed(*(text for text in contents if text))

    @functools.cached_property
    def _lowest(self) -> tuple[Patterns, ...]:
        """The patterns that any ignore file of a folder wins over, the strongest first."""
        every = (_parsed(self._read(EXCLUDE_FILE) or b""), _of_user(self._global_file), _caches())
        return tuple(patterns for patterns in every if patterns.every)


@functools.cache
def _caches() -> Patterns:
    return _parsed((resources.files("pawl.workspace") / "caches.txt").read_bytes())


def _of_user(file: Path | None) -> Patterns:
    if file is None:
        return _parsed()
    try:
        with bounded.opened(file) as opened:
            return _parsed(opened.read(LARGEST_IGNORE_FILE))
    except OSError:
        return _parsed()
