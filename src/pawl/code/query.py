"""Understanding what is asked: which words, names, paths, frames and messages an issue or a test's output speaks of.

Nothing of the workspace is known here; what a name means is for the ranking to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pawl.code.tokens import COMMON, STOP, WORD, parts, tokens

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCE_LINE = re.compile(r"[ \t]*(?:```|~~~)")
_CODE_LINE = re.compile(r"^(?: {4}|\t|>>> |\.\.\. |\$ |In \[)")
_STATEMENT = re.compile(
    r"^\s{0,3}(?:from\s+[\w.]+\s+import\s|import\s+[\w.]+(?:\s+as\s+\w+)?;?$|(?:async\s+)?def\s+\w+\s*\("
    r"|class\s+\w+\s*(?:\(.*\))?\s*[:{]|@\w[\w.]*(?:\(.*)?$|[\w.]+(?:\[[^\]]*\])?\s*[-+*/|]?=\s*[^\s=]|[\w.]+\(.*\)[;,]?$"
    r"|(?:return|raise|assert|await)\s+[\w.]+\(.*\)$|(?:if|for|while|with|elif|except)\s.+\(.*\):$|[\])}]+[;,]?$"
    r"|(?:func|fn|pub|let|const|var|public|private|static|void|int)\s.*[{;(]$)"
)
"""A line that is code in some language, where nobody marked it as such."""
_LONGEST_STATEMENT = 200
_TRACEBACK = re.compile(
    r"^\s*Traceback \(most recent call last\)|^\s*File \"|^\s+at .+:\d+|^goroutine \d+|^\s+\d+: 0x", re.MULTILINE
)
_HEADING = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+(.+?)[ \t#]*|(?:\*\*|__)([^*_\n]+)(?:\*\*|__):?[ \t]*"
    r"|(?:<details>)?\s*<summary>(.*?)</summary>.*)$"
)
_SETTING = re.compile(
    r"^(?:(?:[\w./-]+\s+){0,2}(?:versions?|environment|[\w.]*show_versions(?:\(\))?)|operating system|os|platform"
    r"|installation|(?:installed )?(?:dependencies|packages)|pip (?:freeze|list)|conda (?:list|info)"
    r"|system (?:info\w*|details))"
    r"(?:\s+\(.*\)|\s*/.*|\s+(?:and|of|info\w*|details|numbers?)\b.*)?$",
    re.IGNORECASE,
)
"""Headings of what somebody uses, which is not what is wrong."""
_TEMPLATE = re.compile(
    r"^(?:bug )?(?:summary|report|description)$|^(?:minimal )?code (?:for reproduction|sample)\b|^additional \w+$"
    r"|^(?:actual|expected|current) \w+$|^(?:steps )?to reproduce$|^describe the \w+|^what happened\b|^possible \w+$"
    r"|^what (?:you|did you) expected?\b.*|^how to reproduce\b.*|^reproduction\b.*|^command used$|^anything else\b.*",
    re.IGNORECASE,
)
_SEARCHED = re.compile(r"^\s*[-*] \[[ xX]\] .*\b(?:I have|I've|I am|searched|checked)\b")


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
    for fence in _FENCE.finditer(body):
        _plain(body[at : fence.start()], found)
        found[Zone.TRACE if _TRACEBACK.search(fence[1]) else Zone.CODE].append(fence[1])
        at = fence.end()
    _plain(body[at:], found)
    return title, {zone: "\n".join(part) for zone, part in found.items()}


def _telling(lines: list[str]) -> Iterator[str]:
    """The lines without what every report of a kind has."""
    fenced = skipping = False
    for line in lines:
        if _FENCE_LINE.match(line):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.match(line)):
            said = (heading[1] or heading[2] or heading[3] or "").replace("`", "").strip(" :*_")
            skipping = _SETTING.match(said) is not None
            if skipping or _TEMPLATE.match(said):
                continue
        elif not fenced and (line.strip() == "</details>" or _SEARCHED.match(line)):
            skipping = skipping and line.strip() != "</details>"
            continue
        if not skipping:
            yield line


def _plain(text: str, found: dict[Zone, list[str]]) -> None:
    """Text outside of fences, where code is told by its indentation and traces by their look."""
    tracing = False
    for line in text.split("\n"):
        if _TRACEBACK.match(line):
            tracing = True
        elif tracing and line.strip() and not line[:1].isspace():
            # The line that says what was raised ends a trace.
            found[Zone.TRACE].append(line)
            tracing = False
            continue
        is_code = _CODE_LINE.match(line) or (len(line) <= _LONGEST_STATEMENT and _STATEMENT.match(line))
        found[Zone.TRACE if tracing else Zone.CODE if is_code else Zone.PROSE].append(line)


LONGEST_TEXT = 60_000
"""Characters that are read; a longer text is cut in its middle."""

_LONGEST_LINE = 2_000
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)(?:, in ([\w<>.]+))?')
_SHORT_FRAME = re.compile(
    r"^([\w./\\-]+\.py):(\d+): (?:in ([\w<>.]+)|\w*(?:Error|Exception|Exit|Warning|Interrupt)?)[ ]*$", re.M
)
"""As pytest prints them."""
_STACK = re.compile(
    r"(?:^|[\s(\[\"'`])((?:[A-Za-z]:)?[\w@.+~/\\-]*[\w+-]\.[A-Za-z]\w{0,4}):(\d+)(?::\d+)?(?=$|[\s:,)\]\"'`])"
)
_BLOB = re.compile(r"https?://[^\s)>\]]+?/(?:blob|tree|blame)/[^/\s]+/([^\s#?)>\]]+)(?:#L(\d+))?")
_URL = re.compile(r"https?://[^\s)>\]]+")
_PATH = re.compile(r"(?<![\w/.:@-])(?:[ab]/)?((?:[\w.+-]+/)*[\w+-]+(?:\.[\w+-]+)*\.[A-Za-z]\w{0,4})(?![\w/(])")
_DOTTED = re.compile(r"(?<![\w./])[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+")
_TICKED = re.compile(r"(?<!`)(`{1,2})([^`\n]{1,120})\1(?!`)")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|_+[A-Za-z]\w*|[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z]{2,}[a-z]\w+)\b")
_IMPORT = re.compile(
    r"^\s*(?:>>> ?)?from\s+([\w.]+)\s+import\s+\(?([\w ,*]+)|^\s*(?:>>> ?)?import\s+([\w.]+)", re.MULTILINE
)
_ERROR = re.compile(
    r"^\s*(?:E\s+)?(?:[\w.]+\.)?(\w*(?:Error|Exception|Warning|Fault|Failure)\w*): (.{4,300})$", re.MULTILINE
)
_QUOTED = re.compile(r"(?<!\w)(?:\"([^\"\n]{8,160})\"|'([^'\n]{8,160})'|“([^”\n]{8,160})”)(?!\w)")


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
    clean = _cut(_COMMENT.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
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
    for word in WORD.findall(_URL.sub(" ", text)):
        if word.lower() in STOP:
            continue
        for token in tokens(word):
            counts[token] = counts.get(token, 0) + 1
    return counts


def _spelled(text: str) -> frozenset[str]:
    words = (word.lower().strip("_") for word in WORD.findall(_URL.sub(" ", text)))
    return frozenset(word for word in words if len(word) > 2 and word not in STOP)


def _names(zones: Mapping[Zone, str]) -> tuple[dict[str, frozenset[Zone]], frozenset[str]]:
    found: dict[str, set[Zone]] = {}
    ticked: set[str] = set()
    for zone, text in zones.items():
        bare = _URL.sub(" ", text)
        for name in _named(bare, zone):
            found.setdefault(name, set()).add(zone)
        if zone in (Zone.TITLE, Zone.PROSE):
            for match in _TICKED.finditer(bare):
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
    for pattern in (_IDENTIFIER, _CALL):
        yield from (
            match[match.lastindex or 0] for match in pattern.finditer(text) if _is_name(match[match.lastindex or 0])
        )
    for match in _DOTTED.finditer(text):
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
        for match in _DOTTED.finditer(_URL.sub(" ", text)):
            found.setdefault(match[0].replace("::", "."), set()).add(zone)
    return {name: frozenset(where) for name, where in found.items()}


def _imports(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for match in _IMPORT.finditer(text):
        if match[3]:
            yield match[3], ()
        else:
            yield match[1], tuple(name.split(" as ")[0].strip() for name in match[2].split(",") if name.strip())


def _mentions(text: str) -> Iterator[Mention]:
    for match in _BLOB.finditer(text):
        yield Mention(match[1], int(match[2] or 0), linked=True)
    bare = _URL.sub(" ", text)
    for match in _STACK.finditer(bare):
        yield Mention(match[1].replace("\\", "/"), int(match[2]))
    for match in re.finditer(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+\.\w+)", bare, re.MULTILINE):
        yield Mention(match[1], linked=True)
    for match in _PATH.finditer(bare):
        yield Mention(match[1])


def _frames(text: str) -> Iterator[StackFrame]:
    found = [*_FRAME.finditer(text), *_SHORT_FRAME.finditer(text)]
    for match in sorted(found, key=re.Match.start):
        yield StackFrame(match[1].replace("\\", "/"), int(match[2]), match[3] or "")


def _messages(text: str) -> Iterator[str]:
    for match in _ERROR.finditer(text):
        yield match[2].strip()
    for match in _QUOTED.finditer(_URL.sub(" ", text)):
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
