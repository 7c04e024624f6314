"""A shell command as data: its simple commands, their words, and why some of it cannot be known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Script:
    """What a shell command holds."""

    commands: tuple[ShellCommand, ...]
    doubts: tuple[Doubt, ...] = ()
    readable: bool = True
    """False when it is too long or too deep to be read to its end, so that anything could stand there."""


def plain_words(words: tuple[str, ...]) -> ShellCommand:
    """A command that no shell reads."""
    return ShellCommand(tuple(Word(text, "\0" * len(text)) for text in words))
