"""Text from elsewhere made safe to show: what a terminal would obey, hide or reorder becomes visible characters."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import groupby

from pawl.core.lazy_dataclass import dataclass


class Flag(StrEnum):
    """A warning about a text that was made safe."""

    CONTROL = "control characters"
    BIDI = "characters that reorder text"
    INVISIBLE = "invisible characters"
    SPACE = "unusual spaces"
    MIXED_SCRIPT = "letters that look like others"
    LOOKALIKE = "signs that look like others or cover them"


@dataclass(frozen=True, slots=True)
class SafeText:
    text: str
    flags: frozenset[Flag]


_PLAIN = re.compile(r"[\n\t -~]*")
_BIDI = frozenset(map(chr, (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_BLANK = frozenset(map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x2800, 0x3164, 0xFFA0)))
"""Letters, marks and signs that show nothing."""
_SELECTORS = frozenset(map(chr, (*range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_SHAPING = frozenset(map(chr, (0x200C, 0x200D, *range(0xFE00, 0xFE10))))
"""Joiners of emoji and some scripts; harmless in the output of a command."""
_OVERLAY = 1
"""The class of marks that are drawn through a letter."""
_SIGNS = frozenset(
    "／⁄∕⧸⟋╱＼∖⧵⧹⟍╲﹨"  # / \\
    "．․﹒‥\u037e﹔∶꞉"  # . ; :
    "｜∣ǀ￨＆﹠＄﹩＊﹡∗＞﹥＜﹤＇＂｀－﹣"  # | & $ * > < ' " ` -
)
"""Signs that pass for those which a shell or a path is made of."""
_MARKS_IN_A_ROW = 3
"""More combining marks than this on one letter are drawn over the lines around it."""

_LOOKALIKE_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "FULLWIDTH"})
_LIKE_LATIN = frozenset(
    "абсԁеԍһіјӏотрԛѕуѵѡхАВСЕԌНІЈКМОРЅТУХԜ"  # Cyrillic
    "αικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # Greek
    "ցհոսօՍՏՕ"  # Armenian
)
_WORD = re.compile(r"[^\W\d_]+")


def safe_text(text: str) -> SafeText:
    """The text with everything but plain characters, newlines and tabs written out, such as `\\x1b` or `\\u{202e}`."""
    if _PLAIN.fullmatch(text):
        return SafeText(text, frozenset())
    letters = set(text)
    found = {letter: flag for letter in letters if (flag := _flag(letter)) is not None}
    flags = {flag for letter, flag in found.items() if letter != "\r"}
    if "\r" in text.replace("\r\n", ""):  # A line end of another system misleads nobody.
        flags.add(Flag.CONTROL)
    shown = _without_piles(text, 0, _flag)[0] if any(map(_is_mark, letters)) else text
    if shown is not text and shown != text:
        flags.add(Flag.INVISIBLE)
    if any(map(_is_misleading, text.split())):
        flags.add(Flag.MIXED_SCRIPT)
    return SafeText(shown.translate({ord(letter): _written_out(letter) for letter in found}), frozenset(flags))


def _without_piles(text: str, marks: int, flag: Callable[[str], object]) -> tuple[str, int]:
    """The text with marks that would be drawn over other lines written out; and how many it ends with."""
    parts: list[str] = []
    for character in text:
        marks = marks + 1 if _is_mark(character) else 0
        piled = marks > _MARKS_IN_A_ROW and not flag(character)
        parts.append(_written_out(character) if piled else character)
    return "".join(parts), marks


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me")


@lru_cache(maxsize=4096)
def _flag(character: str) -> Flag | None:
    category = unicodedata.category(character)
    if character in "\n\t" or " " <= character <= "~":
        flag = None
    elif category in ("Cc", "Cs", "Zl", "Zp"):
        flag = Flag.CONTROL
    elif character in _BIDI:
        flag = Flag.BIDI
    elif category in ("Cf", "Co", "Cn") or character in _BLANK or character in _SELECTORS:
        flag = Flag.INVISIBLE
    elif category == "Zs":
        flag = Flag.SPACE
    elif character in _SIGNS or category == "Me" or unicodedata.combining(character) == _OVERLAY:
        flag = Flag.LOOKALIKE
    else:
        flag = None
    return flag


def _written_out(character: str) -> str:
    code = ord(character)
    if character == "\r":
        return "\\r"
    if 0xDC80 <= code <= 0xDCFF:  # A byte that is not UTF-8, as `os.fsdecode` carries it.
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def _is_misleading(token: str) -> bool:
    """Whether letters of another script pass for Latin ones: mixed into a word, or in place of a whole one."""
    if token.isascii():
        return False
    words = _WORD.findall(token)
    if any(len(_scripts(word)) > 1 or "FULLWIDTH" in _scripts(word) for word in words):
        return True
    has_latin = any("LATIN" in _scripts(word) for word in words)
    return any(_LIKE_LATIN.issuperset(word) and (has_latin or len(word) > 1) for word in words)


def _scripts(word: str) -> set[str]:
    return {name for name in map(_script, set(word)) if name in _LOOKALIKE_SCRIPTS}


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ")[0]
    return "FULLWIDTH" if name == "MATHEMATICAL" else name  # Both are only ever other shapes of known letters.


_COLOUR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_COLOUR_START = re.compile(r"\x1b(\[[0-9;:]{0,64})?\Z")
ERASE_LINE = "\r\x1b[K"
_DRAWN = re.compile(r"(\x1b\[[0-9;:]{0,64}m|\r\x1b\[K)")
_COLOUR_ARGUMENTS = {"5": 1, "2": 3}
_EXTENDED_COLOURS = ("38", "48", "58")
_CONCEAL = "8"
_RESET = "\x1b[0m"


class SafeStream:
    """Makes the output of a command safe for a terminal, piece by piece as it comes.

    Colours, newlines, tabs and carriage returns stay; every other control sequence is written out. It never holds back
    more than one unfinished character and one unfinished colour sequence.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._coloured = False

    def feed(self, data: bytes) -> str:
        """The text that can be shown so far."""
        text = self._held + self._decoder.decode(data)
        unfinished = _COLOUR_START.search(text)
        cut = unfinished.start() if unfinished else len(text)
        self._held = text[cut:]
        return self._shown(text[:cut])

    def close(self) -> str:
        """The rest that was held back, and the end of any colour that is still on."""
        rest = self._shown(self._held + self._decoder.decode(b"", True))
        self._held = ""
        end = _RESET if self._coloured else ""
        self._coloured = False
        return rest + end

    def _shown(self, text: str) -> str:
        parts: list[str] = []
        at = 0
        for sequence in _COLOUR.finditer(text):
            parts.append(_plain_output(text[at : sequence.start()]))
            parts.append(self._colour(sequence))
            at = sequence.end()
        parts.append(_plain_output(text[at:]))
        return "".join(parts)

    def _colour(self, sequence: re.Match[str]) -> str:
        if _conceals(sequence[1]):
            return _plain_output(sequence[0])
        self._coloured = sequence[1].strip("0;") != ""
        return sequence[0]


class SafeWords:
    """Makes the words of a model safe for a terminal, piece by piece as they come.

    Nothing in them is obeyed but newlines and tabs: not colours, nor a carriage return, which would write over what was
    shown before. A line end of another system becomes a plain one, for which a last carriage return is held back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._marks = 0

    def feed(self, text: str) -> str:
        """The text that can be shown so far."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        return self._shown(text.removesuffix("\r").replace("\r\n", "\n"))

    def close(self) -> str:
        """The rest that was held back."""
        rest, self._held = self._held, ""
        return self._shown(rest)

    def _shown(self, text: str) -> str:
        if _PLAIN.fullmatch(text):
            self._marks = 0 if text else self._marks
            return text
        letters = set(text)
        if any(map(_is_mark, letters)):
            text, self._marks = _without_piles(text, self._marks, lambda one: not _is_harmless(one))
        elif text:
            self._marks = 0
        unsafe = {ord(one): _written_out(one) for one in letters if one == "\r" or not _is_harmless(one)}
        return text.translate(unsafe)


def safe_words(text: str) -> str:
    """The whole of such a text at once."""
    words = SafeWords()
    return words.feed(text) + words.close()


_AS_LATIN = str.maketrans("ѵνυеєгԁіιсϲтτпоοрρѕуаα", "vvueerdiiccttnooppsyaa")
_OWN_WORDS = re.compile(
    r"[\W_]*(verdict[\W_]+(verified|failed|unverified|nothing)|promoted as entry \d)", re.IGNORECASE
)
"""How lines of Pawl's report begin that a reader, or a program, may believe."""


def as_said(text: str) -> str:
    """Words of a model, plain or drawn, in which a line that looks like Pawl's word on a change is marked as theirs."""

    def is_taken(line: str) -> bool:
        letters = unicodedata.normalize("NFKC", _COLOUR.sub("", line)).translate(_AS_LATIN)
        return _OWN_WORDS.match(letters) is not None

    return "\n".join(f"the model says: {line}" if is_taken(line) else line for line in text.split("\n"))


def safe_drawing(text: str) -> str:
    """A text that Pawl has drawn: its colours stay, and what begins a line anew; the rest is made safe again."""
    return "".join(
        part if at % 2 and not _hides(part) else safe_words(part) for at, part in enumerate(_DRAWN.split(text))
    )


def _hides(sequence: str) -> bool:
    colour = _COLOUR.fullmatch(sequence)
    return colour is not None and _conceals(colour[1])


def _plain_output(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return text.translate({ord(one): _written_out(one) for one in set(text) if not _is_harmless(one)})


def _is_harmless(character: str) -> bool:
    return character == "\r" or character in _SHAPING or _flag(character) in (None, Flag.SPACE, Flag.LOOKALIKE)


def _conceals(parameters: str) -> bool:
    """Whether a colour sequence hides the text after it; 8 is also a number of a colour, after 38, 48 or 58."""
    remaining = iter(parameters.split(";"))
    for parameter in remaining:
        if parameter in _EXTENDED_COLOURS:
            for _ in range(_COLOUR_ARGUMENTS.get(next(remaining, ""), 0)):
                next(remaining, None)
        elif parameter.lstrip("0").partition(":")[0] == _CONCEAL:
            return True
    return False


_BLANKS = re.compile(r"[ \t]{33,}")
_FAR = 120
FAR_BLANKS = re.compile(rf"[ \t]{{{_FAR},}}")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{96,}={0,2}|(?:\\x[0-9A-Fa-f]{2}|\\[0-7]{3}){8,}")
_EMPTY_LINES = 3
"""So many in a row are shown; more are counted."""
_MANY_EMPTY = 8
MARK = "…"
HEAD, TAIL = 24, 16
"""Lines from the start and from the end of a long text."""
_LINE_HEAD, _LINE_TAIL = 400, 200
MOST_WHOLE = _LINE_HEAD + _LINE_TAIL
"""Characters of a line that are always shown."""
AFTER_BLANKS = "text after many blanks"
AFTER_LINES = "text after many empty lines"
ENCODED = "a long encoded word"


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines that are safe to show. Every `…` in them is Pawl's own: one of the text is written out."""

    lines: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Why the eyes may be deceived."""


def shown_text(text: str, *, whole: bool = False) -> Shown:
    """The head and the tail of the text, or all of it; long runs of blanks and empty lines only as their number."""
    flags = dict.fromkeys(sorted(map(str, safe_text(text).flags)))
    if _ENCODED.search(text):
        flags[ENCODED] = None
    lines = list(_rows(text, flags, whole=whole))
    return Shown(tuple(lines if whole else head_and_tail(lines)), tuple(flags))


def head_and_tail(lines: list[str], what: str = "lines", head: int = HEAD, tail: int = TAIL) -> list[str]:
    """The lines, or the first and the last of them around the number of the others."""
    middle = lines[head:-tail]
    if len(middle) < 2:
        return lines
    characters = sum(map(len, middle))
    left_out = f"… {len(middle):,} {what}, {characters:,} characters not shown …"
    return [*lines[:head], left_out, *lines[-tail:]]


def shown_line(line: str, *, whole: bool = False) -> str:
    """One line of a file: only what is far longer than people write is counted instead of shown."""
    if len(line) < _FAR:
        return safe_text(line).text
    return _row(line, {}, FAR_BLANKS, whole=whole)


def _rows(text: str, flags: dict[str, None], *, whole: bool) -> Iterator[str]:
    found_empty = False
    for is_empty, group in groupby(text.split("\n"), key=lambda row: not row.strip(" \t\r")):
        rows = list(group)
        if is_empty and len(rows) > _EMPTY_LINES:
            found_empty = found_empty or len(rows) >= _MANY_EMPTY
            yield f"… {len(rows):,} empty lines …"
            continue
        if not is_empty and found_empty:
            flags[AFTER_LINES] = None
        for row in rows:
            yield "" if is_empty else _row(row, flags, whole=whole)


def _row(row: str, flags: dict[str, None], blanks: re.Pattern[str] = _BLANKS, *, whole: bool) -> str:
    parts: list[str] = []
    at = 0
    for run in blanks.finditer(row):
        kind = {" ": "spaces", "\t": "tabs"}.get("".join(set(run[0])), "blanks")
        parts += [_written(row[at : run.start()]), f"… {len(run[0]):,} {kind} …"]
        at = run.end()
        if row[at:].strip():
            flags[AFTER_BLANKS] = None
    shown = "".join((*parts, _written(row[at:])))
    return shown if whole else _cut_line(shown)


def _written(text: str) -> str:
    return safe_text(text).text.replace("…", "\\u{2026}")


def _cut_line(line: str) -> str:
    left_out = len(line) - _LINE_HEAD - _LINE_TAIL
    if left_out < 40:
        return line
    return f"{line[:_LINE_HEAD]}… {left_out:,} characters …{line[-_LINE_TAIL:]}"
