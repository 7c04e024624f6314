"""Understanding what is asked: which words, names, paths, frames and messages an issue or a test's output speaks of.

Nothing of the workspace is known here; what a name means is for the ranking to find out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib import resources

from pawl.code.tokens import COMMON, STOP, WORD, parts, tokens
from pawl.core.lazy_dataclass import dataclass

_LONGEST_STATEMENT = 200
_SOUGHT = {
    name: re.compile("".join(text))
    for name, text in tomllib.loads((resources.files("pawl.code") / "query.toml").read_text("utf-8")).items()
}


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
    for fence in _SOUGHT["fence"].finditer(body):
        _plain(body[at : fence.start()], found)
        found[Zone.TRACE if _SOUGHT["traceback"].search(fence[1]) else Zone.CODE].append(fence[1])
        at = fence.end()
    _plain(body[at:], found)
    return title, {zone: "\n".join(part) for zone, part in found.items()}


def _telling(lines: list[str]) -> Iterator[str]:
    """The lines without what every report of a kind has."""
    fenced = skipping = False
    for line in lines:
        if _SOUGHT["fence_line"].match(line):
            fenced = not fenced
        elif not fenced and (heading := _SOUGHT["heading"].match(line)):
            said = (heading[1] or heading[2] or heading[3] or "").replace("`", "").strip(" :*_")
            skipping = _SOUGHT["setting"].match(said) is not None
            if skipping or _SOUGHT["template"].match(said):
                continue
        elif not fenced and (line.strip() == "</details>" or _SOUGHT["searched"].match(line)):
            skipping = skipping and line.strip() != "</details>"
            continue
        if not skipping:
            yield line


def _plain(text: str, found: dict[Zone, list[str]]) -> None:
    """Text outside of fences, where code is told by its indentation and traces by their look."""
    tracing = False
    for line in text.split("\n"):
        if _SOUGHT["traceback"].match(line):
            tracing = True
        elif tracing and line.strip() and not line[:1].isspace():
            # The line that says what was raised ends a trace.
            found[Zone.TRACE].append(line)
            tracing = False
            continue
        is_code = _SOUGHT["code_line"].match(line) or (
            len(line) <= _LONGEST_STATEMENT and _SOUGHT["statement"].match(line)
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
    clean = _cut(_SOUGHT["comment"].sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
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
    for word in WORD.findall(_SOUGHT["url"].sub(" ", text)):
        if word.lower() in STOP:
            continue
        for token in tokens(word):
            counts[token] = counts.get(token, 0) + 1
    return counts


def _spelled(text: str) -> frozenset[str]:
    words = (word.lower().strip("_") for word in WORD.findall(_SOUGHT["url"].sub(" ", text)))
    return frozenset(word for word in words if len(word) > 2 and word not in STOP)


def _names(zones: Mapping[Zone, str]) -> tuple[dict[str, frozenset[Zone]], frozenset[str]]:
    found: dict[str, set[Zone]] = {}
    ticked: set[str] = set()
    for zone, text in zones.items():
        bare = _SOUGHT["url"].sub(" ", text)
        for name in _named(bare, zone):
            found.setdefault(name, set()).add(zone)
        if zone in (Zone.TITLE, Zone.PROSE):
            for match in _SOUGHT["ticked"].finditer(bare):
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
    for pattern in (_SOUGHT["identifier"], _SOUGHT["call"]):
        yield from (
            match[match.lastindex or 0] for match in pattern.finditer(text) if _is_name(match[match.lastindex or 0])
        )
    for match in _SOUGHT["dotted"].finditer(text):
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
        for match in _SOUGHT["dotted"].finditer(_SOUGHT["url"].sub(" ", text)):
            found.setdefault(match[0].replace("::", "."), set()).add(zone)
    return {name: frozenset(where) for name, where in found.items()}


def _imports(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for match in _SOUGHT["import"].finditer(text):
        if match[3]:
            yield match[3], ()
        else:
            yield match[1], tuple(name.split(" as ")[0].strip() for name in match[2].split(",") if name.strip())


def _mentions(text: str) -> Iterator[Mention]:
    for match in _SOUGHT["blob"].finditer(text):
        yield Mention(match[1], int(match[2] or 0), linked=True)
    bare = _SOUGHT["url"].sub(" ", text)
    for match in _SOUGHT["stack"].finditer(bare):
        yield Mention(match[1].replace("\\", "/"), int(match[2]))
    for match in re.finditer(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+\.\w+)", bare, re.MULTILINE):
        yield Mention(match[1], linked=True)
    for match in _SOUGHT["path"].finditer(bare):
        yield Mention(match[1])


def _frames(text: str) -> Iterator[StackFrame]:
    found = [*_SOUGHT["frame"].finditer(text), *_SOUGHT["short_frame"].finditer(text)]
    for match in sorted(found, key=re.Match.start):
        yield StackFrame(match[1].replace("\\", "/"), int(match[2]), match[3] or "")


def _messages(text: str) -> Iterator[str]:
    for match in _SOUGHT["error"].finditer(text):
        yield match[2].strip()
    for match in _SOUGHT["quoted"].finditer(_SOUGHT["url"].sub(" ", text)):
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
