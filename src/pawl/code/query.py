"""The words of code, and of what is asked about it: which words, names, paths, frames and messages an issue or a test's
output speaks of.

Nothing of the workspace is known here; what a name means is for the ranking to find out.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator, Mapping
from enum import StrEnum

from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.typed import data_table

WORD = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_LONGEST = 64
"""Longer words are data."""
_SHORTEST_KEY = 20
_SHORTEST_DIGEST = 32
_DIGITS_OF_DIGEST = 6
"""So many digits in one long word without a break are not a name."""
_MOST_REMEMBERED = 200_000
_BREAKS = bytes(sign if chr(sign) in f"{string.ascii_letters}{string.digits}_" else ord(" ") for sign in range(256))
NUMBER = "\0"
"""Stands for a word that is only digits, and is no word; no text has it."""

_TABLE = data_table("pawl.code", "words.toml")
COMMON = frozenset(_TABLE["common"].split())
STOP = frozenset(_TABLE["stop"].split())


@functools.lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A lower-case word without the ending that makes it a plural, a participle or an adverb."""
    if len(word) < 5 or not word.isascii():
        return word[:-1] if len(word) == 4 and word[-1] == "s" and word[-2] not in "su" else word
    for ending, kept in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(kept) >= 3:
            root = word[: len(word) - len(ending)] + kept
            # As in stopping and mapped.
            return root[:-1] if ending in _DOUBLING and len(root) > 3 and _doubled(root) else root
    return word


def _doubled(root: str) -> bool:
    return root[-1] == root[-2] and root[-1] not in "lsz"


_ENDINGS = (
    ("ization", "iz"),
    ("ation", "at"),
    ("ically", "ic"),
    ("ities", "iti"),
    ("ments", "ment"),
    ("sses", "ss"),
    ("ies", "i"),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("ly", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("s", ""),
    ("e", ""),
    ("y", "i"),
)
_DOUBLING = frozenset({"ing", "ed"})


def parts(word: str) -> list[str]:
    """`getHTTPResponse_code2` as get, http, response, code, 2."""
    if word.islower() and word.isascii() and word.replace("_", "").isalpha():
        return [part for part in word.split("_") if part]
    return [part.lower() for part in _PARTS.findall(word)]


def tokens(word: str) -> tuple[str, ...]:
    """The search terms of an identifier: itself, and the stems of its parts when it has several."""
    if len(word) > _LONGEST or _is_key(word):
        return ()
    found = parts(word)
    whole = word.lower().strip("_")
    if len(found) <= 1:
        return (stem(whole),) if len(whole) > 1 and whole not in COMMON else ()
    kept = [stem(part) for part in found if len(part) > 1 and part not in COMMON and not part.isdigit()]
    return (whole, *kept)


def _is_key(word: str) -> bool:
    """Whether a word is a key or a digest by its looks; nobody looks for one, and the index is to hold none."""
    # Whatever has the shape of a key within one word has a digit.
    if len(word) < _SHORTEST_KEY or word.replace("_", "").isalpha():
        return False
    if len(word) >= _SHORTEST_DIGEST and "_" not in word and sum(map(str.isdigit, word)) >= _DIGITS_OF_DIGEST:
        return True
    return redacted(word) != word


def words_of(text: str) -> list[str]:
    """The words of a text; of one that is ASCII by a faster way, in which they may begin with digits."""
    return text.encode().translate(_BREAKS).decode().split() if text.isascii() else WORD.findall(text)


class Tokens(dict[str, str]):
    """The tokens of every word met so far, joined for the index. A dictionary, because millions are looked up."""

    def __missing__(self, word: str) -> str:
        bare = word.lstrip(string.digits)
        if not bare:
            return NUMBER
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        joined = self[word] = " ".join(tokens(bare))
        return joined

    def of(self, text: str) -> str:
        joined = " ".join(map(self.__getitem__, words_of(text)))
        if NUMBER not in joined:
            return joined
        joined = joined.replace(f" {NUMBER}", "")
        return "" if joined == NUMBER else joined.removeprefix(f"{NUMBER} ")


_LONGEST_STATEMENT = 200


@functools.cache
def _sought() -> Mapping[str, re.Pattern[str]]:
    """Loaded when a query is first read: whoever only wants the words of code needs none of it."""
    table = data_table("pawl.code", "query.toml")
    return {name: re.compile("".join(text)) for name, text in table.items()}


class Zone(StrEnum):
    """Where in the text a word stands."""

    TITLE = "title"
    PROSE = "prose"
    CODE = "code"
    TRACE = "trace"


def zoned(text: str) -> tuple[str, dict[Zone, str]]:
    """The title, and the text of each zone."""
    lines = text.lstrip().split("\n")
    title = lines[0].strip().lstrip("#").strip()
    body = "\n".join(_telling(lines[1:]))
    found: dict[Zone, list[str]] = {Zone.TITLE: [title], Zone.PROSE: [], Zone.CODE: [], Zone.TRACE: []}
    at = 0
    for fence in _sought()["fence"].finditer(body):
        _plain(body[at : fence.start()], found)
        found[Zone.TRACE if _sought()["traceback"].search(fence[1]) else Zone.CODE].append(fence[1])
        at = fence.end()
    _plain(body[at:], found)
    return title, {zone: "\n".join(part) for zone, part in found.items()}


def _telling(lines: list[str]) -> Iterator[str]:
    """The lines without what every report of a kind has."""
    fenced = skipping = False
    for line in lines:
        if _sought()["fence_line"].match(line):
            fenced = not fenced
        elif not fenced and (heading := _sought()["heading"].match(line)):
            said = (heading[1] or heading[2] or heading[3] or "").replace("`", "").strip(" :*_")
            skipping = _sought()["setting"].match(said) is not None
            if skipping or _sought()["template"].match(said):
                continue
        elif not fenced and (line.strip() == "</details>" or _sought()["searched"].match(line)):
            skipping = skipping and line.strip() != "</details>"
            continue
        if not skipping:
            yield line


def _plain(text: str, found: dict[Zone, list[str]]) -> None:
    """Text outside of fences, where code is told by its indentation and traces by their look."""
    tracing = False
    for line in text.split("\n"):
        if _sought()["traceback"].match(line):
            tracing = True
        elif tracing and line.strip() and not line[:1].isspace():
            # The line that says what was raised ends a trace.
            found[Zone.TRACE].append(line)
            tracing = False
            continue
        is_code = _sought()["code_line"].match(line) or (
            len(line) <= _LONGEST_STATEMENT and _sought()["statement"].match(line)
        )
        found[Zone.TRACE if tracing else Zone.CODE if is_code else Zone.PROSE].append(line)


LONGEST_TEXT = 60_000
"""Characters that are read; a longer text is cut in its middle."""

_LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Mention:
    """A path in the text, as it is written."""

    path: str
    line: int = 0
    linked: bool = False
    """Whether it stands in a link to a repository, or in a diff."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    path: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    title: str
    words: Mapping[Zone, Mapping[str, int]]
    """Tokens with their counts."""
    spelled: Mapping[Zone, frozenset[str]]
    """Words in lower case, as they are spelled."""
    names: Mapping[str, frozenset[Zone]]
    """Identifiers as they are written, with where they stand; a name in backticks counts as prose."""
    ticked: frozenset[str]
    """Identifiers that were marked as code within prose or title."""
    dotted: Mapping[str, frozenset[Zone]]
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    """Modules that example code imports, with what it takes from them."""
    mentions: tuple[Mention, ...]
    frames: tuple[StackFrame, ...]
    """Outermost first, as Python prints them."""
    messages: tuple[str, ...]
    """Errors and quoted texts that a program may have printed."""


def understand(text: str) -> QueryTerms:
    """The same text gives the same answer; any text gives one."""
    clean = _cut(_sought()["comment"].sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    title, zones = zoned(clean)
    names, ticked = _names(zones)
    return QueryTerms(
        title=title,
        words={zone: _counted(part) for zone, part in zones.items()},
        spelled={zone: _spelled(part) for zone, part in zones.items()},
        names=names,
        ticked=ticked,
        dotted=_dotted(zones),
        imports=tuple(_imports(clean)),
        mentions=tuple(dict.fromkeys(_mentions(clean))),
        frames=tuple(_frames(clean)),
        messages=tuple(dict.fromkeys(_messages(clean))),
    )


def spellings(text: str) -> dict[str, str]:
    """Each token of the text as the text first spells it, for people."""
    found: dict[str, str] = {}
    for word in WORD.findall(_cut(text)):
        for part in (word, *parts(word)):
            for token in tokens(part)[:1]:
                found.setdefault(token, part)
    return found


def _cut(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT * 2 // 3]}\n{text[-LONGEST_TEXT // 3 :]}"
    return "\n".join(line[:_LONGEST_LINE] for line in text.split("\n"))


def _counted(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in WORD.findall(_sought()["url"].sub(" ", text)):
        if word.lower() in STOP:
            continue
        for token in tokens(word):
            counts[token] = counts.get(token, 0) + 1
    return counts


def _spelled(text: str) -> frozenset[str]:
    words = (word.lower().strip("_") for word in WORD.findall(_sought()["url"].sub(" ", text)))
    return frozenset(word for word in words if len(word) > 2 and word not in STOP)


def _names(zones: Mapping[Zone, str]) -> tuple[dict[str, frozenset[Zone]], frozenset[str]]:
    found: dict[str, set[Zone]] = {}
    ticked: set[str] = set()
    for zone, text in zones.items():
        bare = _sought()["url"].sub(" ", text)
        for name in _named(bare, zone):
            found.setdefault(name, set()).add(zone)
        if zone in (Zone.TITLE, Zone.PROSE):
            for match in _sought()["ticked"].finditer(bare):
                for word in WORD.findall(match[2]):
                    if _is_name(word):
                        ticked.add(word)
                        found.setdefault(word, set()).add(zone)
    return {name: frozenset(where) for name, where in found.items()}, frozenset(ticked)


def _named(text: str, zone: Zone) -> Iterator[str]:
    """In code every word may be a name; in prose only those that look like one."""
    if zone in (Zone.CODE, Zone.TRACE):
        yield from (word for word in WORD.findall(text) if _is_name(word))
        return
    for pattern in (_sought()["identifier"], _sought()["call"]):
        yield from (
            match[match.lastindex or 0] for match in pattern.finditer(text) if _is_name(match[match.lastindex or 0])
        )
    for match in _sought()["dotted"].finditer(text):
        yield from (word for word in re.split(r"\.|::", match[0]) if _is_name(word))
    # A word with a capital within a sentence may be a class.
    yield from (match[1] for match in re.finditer(r"(?<=[a-z,|] )([A-Z](?:[a-z]{3,})?)\b", text) if _is_name(match[1]))
    if zone is Zone.TITLE:
        yield from (word for word in WORD.findall(text) if _is_name(word))


def _is_name(word: str) -> bool:
    """Whether a word that looks like a name may be one. A class can be as short as `Q`."""
    return (len(word) > 2 or word[0].isupper()) and word.lower() not in COMMON and word.lower() not in STOP


def _dotted(zones: Mapping[Zone, str]) -> dict[str, frozenset[Zone]]:
    found: dict[str, set[Zone]] = {}
    for zone, text in zones.items():
        for match in _sought()["dotted"].finditer(_sought()["url"].sub(" ", text)):
            found.setdefault(match[0].replace("::", "."), set()).add(zone)
    return {name: frozenset(where) for name, where in found.items()}


def _imports(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for match in _sought()["import"].finditer(text):
        if match[3]:
            yield match[3], ()
        else:
            yield match[1], tuple(name.split(" as ")[0].strip() for name in match[2].split(",") if name.strip())


def _mentions(text: str) -> Iterator[Mention]:
    for match in _sought()["blob"].finditer(text):
        yield Mention(match[1], int(match[2] or 0), linked=True)
    bare = _sought()["url"].sub(" ", text)
    for match in _sought()["stack"].finditer(bare):
        yield Mention(match[1].replace("\\", "/"), int(match[2]))
    for match in re.finditer(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+\.\w+)", bare, re.MULTILINE):
        yield Mention(match[1], linked=True)
    for match in _sought()["path"].finditer(bare):
        yield Mention(match[1])


def _frames(text: str) -> Iterator[StackFrame]:
    found = [*_sought()["frame"].finditer(text), *_sought()["short_frame"].finditer(text)]
    for match in sorted(found, key=re.Match.start):
        yield StackFrame(match[1].replace("\\", "/"), int(match[2]), match[3] or "")


def _messages(text: str) -> Iterator[str]:
    for match in _sought()["error"].finditer(text):
        yield match[2].strip()
    for match in _sought()["quoted"].finditer(_sought()["url"].sub(" ", text)):
        said = match[1] or match[2] or match[3]
        if len(said.split()) >= 3:
            yield said


def phrase(message: str) -> list[list[str]]:
    """A message as runs of tokens that may stand together in the source; what was filled in breaks a run."""
    runs: list[list[str]] = [[]]
    for piece in re.split(r"('[^']*'|\"[^\"]*\"|`[^`]*`|\d+|[{}<>%$]+)", message):
        if piece and (piece[0] in "'\"`{}<>%$" or piece.isdigit()):
            runs.append([])
            continue
        for word in WORD.findall(piece):
            # A name in a message was filled in as well.
            if len(parts(word)) > 1:
                runs.append([])
            else:
                runs[-1].extend(tokens(word))
    return [run for run in runs if len(run) >= 2]
