"""Understanding what is asked: which words, names, paths, frames and messages an issue or a test's output speaks of.

Nothing of the workspace is known here; what a name means is for the ranking to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pawl.context.tokens import COMMON, STOP, WORD, parts, tokens
from pawl.context.zones import Zone, zoned

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
class Frame:
    path: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
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
    frames: tuple[Frame, ...]
    """Outermost first, as Python prints them."""
    messages: tuple[str, ...]
    """Errors and quoted texts that a program may have printed."""


def understand(text: str) -> Understood:
    """The same text gives the same answer; any text gives one."""
    clean = _cut(_COMMENT.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    title, zones = zoned(clean)
    names, ticked = _names(zones)
    return Understood(
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


def _frames(text: str) -> Iterator[Frame]:
    found = [*_FRAME.finditer(text), *_SHORT_FRAME.finditer(text)]
    for match in sorted(found, key=re.Match.start):
        yield Frame(match[1].replace("\\", "/"), int(match[2]), match[3] or "")


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
