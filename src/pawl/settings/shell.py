"""A shell command as data: its simple commands, their words, and why some of it cannot be known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from pawl.core.display import safe_text

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
_EXPANDS = re.compile(r"\{[^}]*(?:,|\.\.)")
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

    def word(self) -> Word:
        return Word("".join(self.text), "".join(self.bare), self.known)


@dataclass(frozen=True, slots=True)
class _Document:
    end: str
    quoted: bool
    tabs: bool


class _Reader:
    """Goes over one text once, from its start to its end."""

    def __init__(self, text: str, depth: int, found: _Found) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._found = found
        self._draft = _Draft()
        self._documents: list[_Document] = []
        self._descriptor = ""
        self._steps: dict[str, Callable[[], None]] = {
            **dict.fromkeys(" \t", self._skip),
            "\n": self._line_end,
            "#": self._comment,
            **dict.fromkeys(";&|", self._separator),
            "(": self._parenthesis,
            ")": self._stray,
            **dict.fromkeys("<>", self._redirection),
        }
        self._parts: dict[str, Callable[[_Pieces], None]] = {
            "'": self._single,
            '"': self._double,
            "\\": self._backslash,
            "$": self._dollar,
            "`": self._backticks,
        }

    def commands(self, end: str) -> None:
        """Reads up to the character, or the end of the text."""
        outer, self._draft = self._draft, _Draft()
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == end:
                self._at += 1
                break
            if self._text.startswith("\\\n", self._at):
                self._at += 2
            else:
                self._steps.get(character, self._word)()
        else:
            if end:
                self._doubt(Doubt.UNFINISHED)
        self._close()
        self._draft = outer

    def _doubt(self, doubt: Doubt) -> None:
        self._found.doubts[doubt] = None

    def _close(self) -> None:
        draft, self._draft = self._draft, _Draft()
        if draft.words or draft.assignments or draft.signs:
            redirections = tuple(draft.redirections)
            made = ShellCommand(tuple(draft.words), tuple(draft.assignments), redirections, tuple(draft.signs))
            self._found.commands.append(made)

    def _skip(self) -> None:
        self._at += 1

    def _comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _stray(self) -> None:
        self._doubt(Doubt.UNFINISHED)
        self._close()
        self._at += 1

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
        self._inside()

    def _inside(self) -> None:
        """The commands up to the closing parenthesis."""
        if self._depth >= DEEPEST:
            self._found.readable = False
            self._at = len(self._text)
            return
        self._depth += 1
        self.commands(")")
        self._depth -= 1

    def _other(self, text: str) -> _Reader | None:
        if self._depth >= DEEPEST:
            self._found.readable = False
            return None
        return _Reader(text, self._depth + 1, self._found)

    def _line_end(self) -> None:
        self._close()
        self._at += 1
        documents, self._documents = self._documents, []
        for document in documents:
            self._body(document)

    def _body(self, document: _Document) -> None:
        start = self._at
        while self._at < len(self._text):
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            line_start, line = self._at, self._text[self._at : end]
            self._at = end + 1
            if (line.lstrip("\t") if document.tabs else line) == document.end:
                break
        else:
            line_start = len(self._text)
            self._doubt(Doubt.UNFINISHED)
        inner = None if document.quoted else self._other(self._text[start:line_start])
        if inner is not None:
            inner.expansions()

    def expansions(self) -> None:
        """The substitutions of a text that is not made of words."""
        pieces = _Pieces()
        while self._at < len(self._text):
            plain = _TEXT_PLAIN.match(self._text, self._at)
            if plain:
                self._at = plain.end()
            else:
                self._inner_part(pieces)

    def _redirection(self) -> None:
        found = _REDIRECTION.match(self._text, self._at)
        assert found is not None
        sign, self._at = found[0], found.end()
        descriptor, self._descriptor = self._descriptor, ""
        if sign.endswith("("):
            self._doubt(Doubt.PROCESS)
            start = found.start()
            self._inside()
            self._draft.words.append(Word(self._text[start : self._at], self._text[start : self._at], known=False))
            return
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        start = self._at
        target = self._read_word()
        gap = "" if sign.endswith("&") else " "
        self._draft.signs.append(f"{descriptor}{sign}{gap}{self._text[start : self._at]}")
        if target is None:
            self._doubt(Doubt.UNFINISHED)
        elif sign.startswith("<<"):
            self._doubt(Doubt.DOCUMENT)
            if sign != "<<<":
                self._documents.append(_Document(target.text, target.text != target.bare, sign == "<<-"))
        elif sign in ("<&", ">&") and (len(target.bare) == 1 and target.bare in "0123456789-"):
            return
        else:
            if sign in ("<&", ">&"):
                self._doubt(Doubt.REDIRECTION)
            self._draft.redirections.append(Redirection(target, sign not in ("<", "<&")))

    def _word(self) -> None:
        word = self._read_word()
        if word is None:
            # Cannot happen for what is not a sign; moving on keeps the reader total.
            self._at += 1
            return
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
                self._parts[self._text[self._at]](pieces)
        return pieces.word() if self._at > start else None

    def _single(self, pieces: _Pieces) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self._doubt(Doubt.UNFINISHED)
            end = len(self._text)
        pieces.add(self._text[self._at + 1 : end], quoted=True)
        self._at = end + 1

    def _double(self, pieces: _Pieces) -> None:
        self._at += 1
        while self._at < len(self._text):
            if self._text[self._at] == '"':
                self._at += 1
                return
            plain = _QUOTED_PLAIN.match(self._text, self._at)
            if plain:
                pieces.add(plain[0], quoted=True)
                self._at = plain.end()
            else:
                self._inner_part(pieces)
        self._doubt(Doubt.UNFINISHED)

    def _inner_part(self, pieces: _Pieces) -> None:
        """A backslash, a dollar or a backtick where quotes mean nothing."""
        character = self._text[self._at]
        if character == "`":
            self._backticks(pieces)
        elif character == "$":
            if self._text[self._at + 1 : self._at + 2] in ("'", '"'):
                pieces.add("$", quoted=True)
                self._at += 1
            else:
                self._dollar(pieces)
        else:
            following = self._text[self._at + 1 : self._at + 2]
            kept = following if following in '$`"\\' else f"\\{following}"
            pieces.add("" if following == "\n" else kept, quoted=True)
            self._at += 2

    def _backslash(self, pieces: _Pieces) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if not following:
            self._doubt(Doubt.UNFINISHED)
        elif following != "\n":
            pieces.add(following, quoted=True)
        elif self._text[self._at + 2 : self._at + 3] not in ("", *_META):
            self._doubt(Doubt.SPLIT_WORD)
        self._at += 2

    def _dollar(self, pieces: _Pieces) -> None:
        start, following = self._at, self._text[self._at + 1 : self._at + 2]
        named = _NAME.match(self._text, start)
        if following == "(":
            self._doubt(Doubt.SUBSTITUTION)
            self._at += 2
            self._inside()
        elif following == "{":
            self._doubt(Doubt.VARIABLE)
            self._at += 2
            self._braced()
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

    def _braced(self) -> None:
        """Up to the brace that closes an expansion."""
        if self._depth >= DEEPEST:
            self._found.readable = False
            self._at = len(self._text)
            return
        self._depth += 1
        pieces = _Pieces()
        while self._at < len(self._text) and self._text[self._at] != "}":
            plain = _BRACED_PLAIN.match(self._text, self._at)
            if plain:
                self._at = plain.end()
            else:
                self._parts[self._text[self._at]](pieces)
        if self._at >= len(self._text):
            self._doubt(Doubt.UNFINISHED)
        self._at += 1
        self._depth -= 1

    def _backticks(self, pieces: _Pieces) -> None:
        self._doubt(Doubt.SUBSTITUTION)
        start, whole = self._at, _BACKTICKS.match(self._text, self._at)
        self._at = whole.end() if whole else len(self._text)
        if whole is None:
            self._doubt(Doubt.UNFINISHED)
        inside = whole[1] if whole else self._text[start + 1 :]
        inner = self._other(_ESCAPED_IN_BACKTICKS.sub(r"\1", inside))
        if inner is not None:
            inner.commands("")
        pieces.known = False
        pieces.add(self._text[start : self._at], quoted=False)
