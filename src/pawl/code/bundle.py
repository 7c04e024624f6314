"""A context pack: what was tried before, the signatures of the files that matter, the bodies of what is relevant.

Pure: the same request gives the same bytes, so that a provider's prompt cache holds. No line is ever cut, and the text
never takes more than its budget.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field

from pawl.code.code_model import (
    LEAST_BUDGET,
    ContextBundle,
    Definition,
    DefinitionKind,
    Excerpt,
    Hit,
    PackFile,
    PackRequest,
)
from pawl.code.languages import is_test
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import MARK, redacted
from pawl.core.text import CHARACTERS_PER_TOKEN, shortened

LONGEST_LINE = 1_000
"""A longer one is data, and stands as a mark."""

Range = tuple[int, int]
"""The first and the last line, from 1."""


def one_line(path: str) -> str:
    """A path as a part of a line, whatever its name holds."""
    return path.replace("\n", "\\n").replace("\r", "\\r")


def redacted_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """As many lines as before, without secrets: where a secret spans several lines, each of them is a mark."""
    before = "\n".join(lines)
    after = redacted(before)
    if after == before:
        return tuple(lines)
    clean = after.split("\n")
    if len(clean) == len(lines):
        return tuple(clean)
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, lines, clean, autojunk=False)
    for what, start, end, clean_start, clean_end in matcher.get_opcodes():
        same = what == "equal" or end - start == clean_end - clean_start
        found += clean[clean_start:clean_end] if same else [MARK] * (end - start)
    return tuple(found)


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same lines in the order of the file, in ranges with two lines or more between them: to leave one out costs as
    much as to show it."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1] + 2:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def rendered(file: PackFile, ranges: Iterable[Range]) -> list[str]:
    """The path, then the lines of the ranges with a mark for each part between them."""
    shown = [f"## {one_line(file.path)}"]
    at = 1
    for start, end in merged(ranges):
        shown += _gap(at, start - 1)
        shown += _numbered(file.lines, start, end)
        at = end + 1
    return shown + _gap(at, len(file.lines))


def _gap(start: int, end: int) -> list[str]:
    if end < start:
        return []
    return [f"     … | [line {start} left out]" if start == end else f"     … | [lines {start} to {end} left out]"]


def _numbered(lines: Sequence[str], start: int, end: int) -> Iterator[str]:
    for number in range(start, end + 1):
        line = lines[number - 1]
        yield (
            f"{number:>6} | {line}"
            if len(line) <= LONGEST_LINE
            else f"{number:>6} | [a line of {len(line):,} characters]"
        )


ATTEMPTS = "# Prior attempts"
FILES = "# Files, the likeliest first"
EXCERPTS = "# Excerpts"

_HEAD_LINES = 40
"""The excerpt of a file in which no definition is likelier than others."""
_LEAST_LINES = 3
"""A body of which less would be shown is left to the signatures."""
_LONGEST_REASON = 60
_SHORT_CLASS = 60
"""Lines of a class that is shown as a whole."""
_LONGEST_HEAD = 16
"""Lines of a definition before its docstring."""
_TESTS_LATER = 3
_QUOTES = re.compile(r"\s*[rRuU]?(\"\"\"|''')")
DETAILS = frozenset({DefinitionKind.FIELD, DefinitionKind.VARIABLE})
_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})


def pack(request: PackRequest) -> ContextBundle:
    if request.budget < LEAST_BUDGET:
        raise UsageError(
            f"a pack of {request.budget} tokens has no room for anything", advice=f"give {LEAST_BUDGET} or more"
        )
    ranked = _ranked(request)
    room = request.budget * CHARACTERS_PER_TOKEN
    attempts = _attempts(request.attempts, room // 2 if ranked else room)
    room -= _cost(attempts)
    bodies = _Bodies(ranked)
    files, listed = _signatures(ranked, room // 5 if bodies.wanted else room)
    room -= _cost(files)
    bodies.choose(room)
    sections = [section for section in (attempts, files, bodies.lines()) if section]
    return ContextBundle(
        text="\n\n".join("\n".join(section) for section in sections),
        excerpts=bodies.excerpts(),
        listed=listed,
        left_out=len(ranked) - len(listed),
    )


def _ranked(request: PackRequest) -> list[tuple[Hit, PackFile]]:
    """The files with why they are here, in the order of the hits; each once."""
    known = {file.path: file for file in request.files}
    hits = {hit.path: hit for hit in reversed(request.hits)}
    order = dict.fromkeys(hit.path for hit in request.hits if hit.path in known)
    return [(hits[path], known[path]) for path in order]


def _cost(lines: Sequence[str]) -> int:
    """Characters, with the break after each line and the empty line after the section."""
    return sum(len(line) + 1 for line in lines) + bool(lines)


def _attempts(attempts: Sequence[str], room: int) -> list[str]:
    lines = [line for attempt in attempts for line in redacted(attempt).strip("\n").split("\n")]
    if not lines or lines == [""]:
        return []
    return _fitting([ATTEMPTS, *lines], room)


def _fitting(lines: list[str], room: int) -> list[str]:
    """As many of the first lines as fit, and a mark in the place of the rest."""
    if _cost(lines) <= room:
        return lines
    kept: list[str] = []
    for number, line in enumerate(lines):
        mark = f"[… {len(lines) - number} more lines]"
        if _cost([*kept, line, mark]) > room:
            kept.append(mark)
            break
        kept.append(line)
    return kept if _cost(kept) <= room and len(kept) > 1 else []


def _signatures(ranked: Sequence[tuple[Hit, PackFile]], room: int) -> tuple[list[str], tuple[str, ...]]:
    """Every file by name as far as there is room, then as much of what each defines as fits."""
    mark = "[… {count} more files]"
    room -= _cost([FILES, mark.format(count=len(ranked))])
    heads: list[str] = []
    for hit, file in ranked:
        head = _head(hit, file)
        if _cost([*heads, head]) > room:
            break
        heads.append(head)
    if not heads:
        return [], ()
    room -= _cost(heads)
    lines: list[str] = []
    for place, (head, (hit, file)) in enumerate(zip(heads, ranked, strict=False)):
        shown = _defined(hit, file, max(room // 2, room // (len(heads) - place)))
        room -= _cost(shown)
        lines += [head, *shown]
    left_out = len(ranked) - len(heads)
    rest = [mark.format(count=left_out)] if left_out else []
    return [FILES, *lines, *rest], tuple(file.path for _, file in ranked[: len(heads)])


def _head(hit: Hit, file: PackFile) -> str:
    """The file with the weightiest reason alone: a model reads the code, not why it was found."""
    reason = shortened(redacted(" ".join(" ".join(hit.reasons[:1]).split())), _LONGEST_REASON)
    return f"{one_line(file.path)} ({len(file.lines)} lines)" + (f": {reason}" if reason else "")


def _defined(hit: Hit, file: PackFile, room: int) -> list[str]:
    """The richest view of the file that fits."""
    names = {symbol.qualified for symbol in hit.symbols}
    outside = outside_functions(file.definitions)
    views: tuple[Sequence[Definition], ...] = (
        outside,
        [one for one in outside if one.kind not in DETAILS],
        [one for one in outside if one.depth == 0 and one.kind not in DETAILS],
        [one for one in file.definitions if one.qualified in names],
    )
    for view in views:
        lines = [_signature(one) for one in view]
        if lines and len(view) < len(outside):
            lines.append(f"  [… {len(outside) - len(view)} more definitions]")
        if lines and _cost(lines) <= room:
            return lines
    return []


def outside_functions(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    return tuple(within(definitions, lambda kind: kind not in _FUNCTIONS))


def within(definitions: Iterable[Definition], opens: Callable[[DefinitionKind], bool]) -> Iterator[Definition]:
    """Those that stand only in definitions which are looked into."""
    around: list[bool] = []
    for definition in definitions:
        del around[definition.depth :]
        if all(around):
            yield definition
        around.append(opens(definition.kind))


def _signature(definition: Definition) -> str:
    lines = f"{definition.line}" if definition.end == definition.line else f"{definition.line}-{definition.end}"
    return f"{'  ' * (definition.depth + 1)}{lines}: {redacted(definition.signature)}"


@dataclass(slots=True)
class _Bodies:
    """Which lines of which files are shown."""

    ranked: Sequence[tuple[Hit, PackFile]]
    shown: dict[str, list[Range]] = field(default_factory=dict)
    costs: dict[str, int] = field(default_factory=dict)

    @property
    def wanted(self) -> list[tuple[PackFile, Range]]:
        """The likeliest definitions of the likeliest files: the third of a file comes with the first of the third file,
        those of tests after as many others; last the heads of files."""
        found = sorted(
            (
                (place + rank + _TESTS_LATER * is_test(file.path), rank, file, part)
                for rank, (hit, file) in enumerate(self.ranked)
                for place, symbol in enumerate(hit.symbols)
                if (part := _within(file, symbol))
            ),
            key=lambda one: one[:2],
        )
        heads = [(file, (1, min(_HEAD_LINES, len(file.lines)))) for hit, file in self.ranked if not hit.symbols]
        return [one[2:] for one in found] + [(file, part) for file, part in heads if file.lines]

    def choose(self, room: int) -> None:
        """First no body may take more than half of what is left, so that one large class is not all there is."""
        room -= _cost([EXCERPTS])
        wanted = [(file, _without_docstring(file, part)) for file, part in self.wanted]
        for place, (file, parts) in enumerate(wanted):
            self._add_all(file, parts, room, 1 if place == len(wanted) - 1 else 2 / 3)
        for file, parts in wanted:
            self._add_all(file, parts, room, 1)

    def _add_all(self, file: PackFile, parts: Iterable[Range], room: int, share: float) -> None:
        """Adds the parts of a definition; what follows on its head means nothing without it."""
        for part in parts:
            if not self._add(file, part, int((room - sum(self.costs.values())) * share)):
                break

    def _add(self, file: PackFile, part: Range, room: int) -> bool:
        """Adds as many of the first lines of the part as fit, if that is enough to be of use."""
        start, end = part
        known = self.shown.get(file.path, [])
        least = min(end, start + _LEAST_LINES - 1)
        low, high = start - 1, end
        while low < high:
            middle = (low + high + 1) // 2
            if self._price(file, [*known, (start, middle)]) <= room:
                low = middle
            else:
                high = middle - 1
        if low >= least:
            self.shown[file.path] = list(merged([*known, (start, low)]))
            self.costs[file.path] = _cost(rendered(file, self.shown[file.path]))
        return low >= least

    def _price(self, file: PackFile, ranges: list[Range]) -> int:
        """The tokens that the file would take more than now."""
        return _cost(rendered(file, ranges)) - self.costs.get(file.path, 0)

    def lines(self) -> list[str]:
        found = [line for _, file in self.ranked for line in self._file(file)]
        return [EXCERPTS, *found] if found else []

    def _file(self, file: PackFile) -> list[str]:
        ranges = self.shown.get(file.path)
        return rendered(file, ranges) if ranges else []

    def excerpts(self) -> tuple[Excerpt, ...]:
        return tuple(
            Excerpt(path=file.path, start=start, end=end)
            for _, file in self.ranked
            for start, end in self.shown.get(file.path, [])
        )


def _within(file: PackFile, definition: Definition) -> Range | None:
    """The lines of a definition, as far as the file has them; of a long class up to the first definition in it."""
    start, end = max(1, definition.start), min(definition.end, len(file.lines))
    if definition.kind is DefinitionKind.CLASS and end - start >= _SHORT_CLASS:
        inner = (one.start for one in file.definitions if start < one.start <= end and one.kind not in DETAILS)
        end = min(inner, default=end + 1) - 1
    return (start, end) if start <= end else None


def _without_docstring(file: PackFile, part: Range) -> tuple[Range, ...]:
    """The part without a long docstring at its start: what a function does is in its code."""
    start, end = part
    lines = file.lines
    opened = next((at for at in range(start, min(end, start + _LONGEST_HEAD)) if _QUOTES.match(lines[at - 1])), 0)
    if not opened:
        return (part,)
    quotes = _QUOTES.match(lines[opened - 1])
    assert quotes is not None
    closed = next((at for at in range(opened + 1, end + 1) if quotes[1] in lines[at - 1]), 0)
    if lines[opened - 1].count(quotes[1]) > 1 or closed - opened < _LEAST_LINES or closed >= end:
        return (part,)
    return ((start, opened), (closed, end))
