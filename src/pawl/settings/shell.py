"""A shell command as data: its simple commands, their words, and why some of it cannot be known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from enum import StrEnum

from pawl.core.display import safe_text
from pawl.core.lazy_dataclass import dataclass

_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_NEEDS_QUOTES = re.compile(r"[\s;&|<>()'\"\\`]")


class Doubt(StrEnum):
    """Why it cannot be known what a command does."""

    VARIABLE = "a variable"
    SUBSTITUTION = "a command substitution"
    PROCESS = "a process substitution"
    BRACES = "braces that some shells expand"
    ESCAPES = "a quotation that shells read differently"
    DOCUMENT = "a here-document"
    COMPOUND = "a compound command"
    DEFINITION = "a function or an array"
    REDIRECTION = "a redirection that shells read differently"
    UNFINISHED = "a quotation or bracket without its other half"
    SPLIT_WORD = "a word that is split over lines"
    HIDDEN = "characters that hide or deceive"


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the program gets it; of what the shell would put in, the text is as it is written."""

    text: str
    bare: str
    """The same length, with NUL where a character is quoted."""
    known: bool = True

    @property
    def is_pattern(self) -> bool:
        """The shell puts the names of files in its place."""
        return _GLOB.search(self.bare) is not None

    @property
    def shown(self) -> str:
        """In one way of writing it."""
        if self.text and not _NEEDS_QUOTES.search(self.text):
            return self.text
        return "'" + self.text.replace("'", "'\\''") + "'"


@dataclass(frozen=True, slots=True)
class Redirection:
    target: Word
    writes: bool


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One program with its words, and what stands around them."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    """Those from and to files."""
    signs: tuple[str, ...] = ()
    """Every redirection as it is written: descriptors, here-documents and here-strings too."""


@dataclass(frozen=True, slots=True)
class Script:
    """A shell command as its simple commands."""

    commands: tuple[ShellCommand, ...]
    doubts: tuple[Doubt, ...] = ()
    readable: bool = True
    """False when it is too long or too deep to be read to its end, so that anything could stand there."""


def plain_words(words: tuple[str, ...]) -> ShellCommand:
    """A command that no shell reads."""
    return ShellCommand(tuple(Word(text, "\0" * len(text)) for text in words))


LONGEST = 131_072
"""Bytes of one command; the kernel takes no longer word."""
DEEPEST = 24

_META = " \t\n;&|<>()"
_PLAIN = re.compile(r"[^ \t\n;&|<>()'\"\\$`]+")
_QUOTED_PLAIN = re.compile(r'[^"\\$`]+')
_TEXT_PLAIN = re.compile(r"[^\\$`]+")
_BRACED_PLAIN = re.compile(r"[^}'\"\\$`]+")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*+)`", re.DOTALL)
_ESCAPED_IN_BACKTICKS = re.compile(r"\\([`$\\])")
_ESCAPED_STRING = re.compile(r"\$'(?:[^'\\]|\\.)*+'", re.DOTALL)
_NAME = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*_!-])")
_BLANK = re.compile(r"(?:[ \t]|\\\n)*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_EXPANDS = re.compile(r"\{[^{}]*(?:,|\.\.)")
_DIGITS = re.compile(r"[0-9]+")
_DESCRIPTOR = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_REDIRECTION = re.compile(r"<<<|<<-|<<|<&|<>|<\(|<|>>|>\||>&|>\(|>")
_HIDDEN = "\0"

_TRANSPARENT = frozenset({"{", "}", "!"})
_COMPOUND = frozenset(
    "if then elif else fi while until do done for case esac select function coproc [[ ]]".split()  # noqa: SIM905
)


def read_shell(text: str, depth: int = 0) -> Script:
    """Every simple command of the text, also inside of substitutions."""
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST or depth > DEEPEST:
        return Script((), readable=False)
    found = _Found()
    if safe_text(text).flags:
        found.doubts[Doubt.HIDDEN] = None
    _Reader(text, depth, found).commands("")
    return Script(tuple(found.commands), tuple(found.doubts), found.readable)


@dataclass(slots=True)
class _Found:
    commands: list[ShellCommand] = field(default_factory=list)
    doubts: dict[Doubt, None] = field(default_factory=dict)
    readable: bool = True


@dataclass(slots=True)
class _Draft:
    words: list[Word] = field(default_factory=list)
    assignments: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    signs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Pieces:
    text: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    known: bool = True

    def add(self, text: str, *, quoted: bool) -> None:
        self.text.append(text)
        self.bare.append(_HIDDEN * len(text) if quoted else text)


class _Reader:
    """Goes over one text once, from its start to its end."""

    def __init__(self, text: str, depth: int, found: _Found) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._found = found
        self._draft = _Draft()
        self._documents: list[tuple[str, Word]] = []
        """Signs and ends of the here-documents that begin on the next line."""
        self._descriptor = ""

    def commands(self, end: str) -> None:
        """Reads up to the character, or the end of the text."""
        outer, self._draft = self._draft, _Draft()
        while self._at < len(self._text) and self._text[self._at] != end:
            self._command_part(self._text[self._at])
        self._ended(end)
        self._close()
        self._draft = outer

    def _command_part(self, character: str) -> None:
        match character:
            case " " | "\t":
                self._at += 1
            case "\n":
                self._line_end()
            case "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            case ";" | "&" | "|":
                self._separator()
            case "(":
                self._parenthesis()
            case ")":
                self._doubt(Doubt.UNFINISHED)
                self._close()
                self._at += 1
            case "<" | ">":
                self._redirection()
            case "\\" if self._text.startswith("\\\n", self._at):
                self._at += 2
            case _:
                self._word()

    def _doubt(self, doubt: Doubt) -> None:
        self._found.doubts[doubt] = None

    def _ended(self, end: str) -> None:
        """Goes past the character that ends a part, or doubts where it is missing."""
        if end and self._at >= len(self._text):
            self._doubt(Doubt.UNFINISHED)
        self._at += len(end)

    def _close(self) -> None:
        draft, self._draft = self._draft, _Draft()
        if draft.words or draft.assignments or draft.signs:
            redirections = tuple(draft.redirections)
            made = ShellCommand(tuple(draft.words), tuple(draft.assignments), redirections, tuple(draft.signs))
            self._found.commands.append(made)

    def _separator(self) -> None:
        pair = self._text[self._at : self._at + 2]
        if pair in (";;", ";&"):
            self._doubt(Doubt.COMPOUND)
        elif pair in ("|&", "&>"):
            self._doubt(Doubt.REDIRECTION)
        self._at += 2 if pair in ("&&", "||", ";;", ";&", "|&") else 1
        self._close()
        self._descriptor = "&" if pair == "&>" else ""

    def _parenthesis(self) -> None:
        if self._draft.words or self._draft.assignments:
            self._doubt(Doubt.DEFINITION)
            self._close()
        elif self._text.startswith("((", self._at):
            self._doubt(Doubt.COMPOUND)
        self._at += 1
        self._deeper(lambda: self.commands(")"))

    def _deeper(self, read: Callable[[], None]) -> None:
        """Reads one level further in; not where that is too deep, and then nothing more is read."""
        if self._depth >= DEEPEST:
            self._found.readable = False
            self._at = len(self._text)
            return
        self._depth += 1
        read()
        self._depth -= 1

    def _line_end(self) -> None:
        self._close()
        self._at += 1
        documents, self._documents = self._documents, []
        for sign, end in documents:
            self._document(sign, end)

    def _document(self, sign: str, end: Word) -> None:
        start = stop = self._at
        line = None
        while line != end.text and self._at < len(self._text):
            stop, found = self._at, self._text.find("\n", self._at)
            self._at = len(self._text) if found < 0 else found + 1
            line = self._text[stop : self._at].removesuffix("\n").lstrip("\t" if sign == "<<-" else "")
        if line != end.text:
            stop = len(self._text)
            self._doubt(Doubt.UNFINISHED)
        body = self._text[start:stop]
        if end.text == end.bare:
            self._deeper(lambda: _Reader(body, self._depth, self._found).parts("", _TEXT_PLAIN, _Pieces()))

    def parts(self, end: str, plain: re.Pattern[str], pieces: _Pieces) -> None:
        """The parts of a quotation, an expansion or a text that is not made of words, up to the character."""
        while self._at < len(self._text) and self._text[self._at] != end:
            found = plain.match(self._text, self._at)
            if found:
                pieces.add(found[0], quoted=True)
                self._at = found.end()
            else:
                self._part(pieces, quoted=plain is not _BRACED_PLAIN)
        self._ended(end)

    def _redirection(self) -> None:
        found = _REDIRECTION.match(self._text, self._at)
        assert found is not None
        sign, self._at = found[0], found.end()
        descriptor, self._descriptor = self._descriptor, ""
        if sign.endswith("("):
            self._doubt(Doubt.PROCESS)
            self._deeper(lambda: self.commands(")"))
            text = self._text[found.start() : self._at]
            self._draft.words.append(Word(text, text, known=False))
            return
        blank = _BLANK.match(self._text, self._at)
        self._at = start = blank.end() if blank else self._at
        target = self._read_word()
        gap = "" if sign.endswith("&") else " "
        self._draft.signs.append(f"{descriptor}{sign}{gap}{self._text[start : self._at]}")
        if target is None:
            self._doubt(Doubt.UNFINISHED)
        elif sign.startswith("<<"):
            self._doubt(Doubt.DOCUMENT)
            self._documents += [(sign, target)] if sign != "<<<" else []
        elif sign not in ("<&", ">&"):
            self._draft.redirections.append(Redirection(target, sign != "<"))
        elif len(target.bare) != 1 or target.bare not in "0123456789-":
            self._doubt(Doubt.REDIRECTION)
            self._draft.redirections.append(Redirection(target, sign != "<&"))

    def _word(self) -> None:
        word = self._read_word()
        assert word is not None
        before_sign = self._text[self._at : self._at + 1] in ("<", ">")
        if before_sign and _DIGITS.fullmatch(word.bare):
            if len(word.bare) == 1:
                self._descriptor = word.bare
                return
            self._doubt(Doubt.REDIRECTION)
        if _EXPANDS.search(word.bare) or (before_sign and _DESCRIPTOR.fullmatch(word.bare)):
            self._doubt(Doubt.BRACES)
        if self._draft.words:
            self._draft.words.append(word)
        elif _ASSIGNMENT.match(word.bare):
            self._draft.assignments.append(word)
        elif word.bare in _COMPOUND and not self._draft.assignments:
            self._doubt(Doubt.COMPOUND)
        elif word.bare not in _TRANSPARENT or self._draft.assignments:
            self._draft.words.append(word)

    def _read_word(self) -> Word | None:
        """The word that starts here; None when none does."""
        pieces, start = _Pieces(), self._at
        while self._at < len(self._text) and self._text[self._at] not in _META:
            plain = _PLAIN.match(self._text, self._at)
            if plain:
                pieces.add(plain[0], quoted=False)
                self._at = plain.end()
            else:
                self._part(pieces, quoted=False)
        return Word("".join(pieces.text), "".join(pieces.bare), pieces.known) if self._at > start else None

    def _part(self, pieces: _Pieces, *, quoted: bool) -> None:
        """Read what begins with a special sign; quotes mean nothing where it is quoted itself."""
        start, following = self._at, self._text[self._at + 1 : self._at + 2]
        match self._text[start]:
            case "'":
                end = self._text.find("'", start + 1)
                self._at = len(self._text) if end < 0 else end
                pieces.add(self._text[start + 1 : self._at], quoted=True)
                self._ended("'")
            case '"':
                self._at += 1
                self.parts('"', _QUOTED_PLAIN, pieces)
            case "\\":
                self._backslash(pieces, following, quoted=quoted)
            case "$" if quoted and following in ("'", '"'):
                pieces.add("$", quoted=True)
                self._at += 1
            case "$":
                self._dollar(pieces, following)
            case _:
                self._backticks(pieces)

    def _backslash(self, pieces: _Pieces, following: str, *, quoted: bool) -> None:
        if not following and not quoted:
            self._doubt(Doubt.UNFINISHED)
        elif following != "\n":
            kept = quoted and following not in '$`"\\'
            pieces.add(f"\\{following}" if kept else following, quoted=True)
        elif not quoted and self._text[self._at + 2 : self._at + 3] not in ("", *_META):
            self._doubt(Doubt.SPLIT_WORD)
        self._at += 2

    def _dollar(self, pieces: _Pieces, following: str) -> None:
        start, named = self._at, _NAME.match(self._text, self._at)
        if following == "(":
            self._doubt(Doubt.SUBSTITUTION)
            self._at += 2
            self._deeper(lambda: self.commands(")"))
        elif following == "{":
            self._doubt(Doubt.VARIABLE)
            self._at += 2
            self._deeper(lambda: self.parts("}", _BRACED_PLAIN, _Pieces()))
        elif following in ("'", '"'):
            self._doubt(Doubt.ESCAPES)
            string = _ESCAPED_STRING.match(self._text, start)
            self._at = string.end() if string else start + 1
        elif named or following == "[":
            self._doubt(Doubt.VARIABLE)
            self._at = named.end() if named else start + 1
        else:
            # `$?` and its like are numbers, and a dollar before anything else is one.
            self._at += 2 if following and following in "?$#" else 1
            pieces.add(self._text[start : self._at], quoted=True)
            return
        pieces.known = False
        pieces.add(self._text[start : self._at], quoted=False)

    def _backticks(self, pieces: _Pieces) -> None:
        self._doubt(Doubt.SUBSTITUTION)
        start, whole = self._at, _BACKTICKS.match(self._text, self._at)
        self._at = whole.end() if whole else len(self._text)
        if whole is None:
            self._doubt(Doubt.UNFINISHED)
        inside = _ESCAPED_IN_BACKTICKS.sub(r"\1", whole[1] if whole else self._text[start + 1 :])
        self._deeper(lambda: _Reader(inside, self._depth, self._found).commands(""))
        pieces.known = False
        pieces.add(self._text[start : self._at], quoted=False)
