"""Recoveries for files that do not parse: indentation, colons, brackets, quotes, and habits of other languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pawl.repair.recoveries.source import PythonSource, RecoveryCandidate, RecoverySituation, table

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BLOCK = re.compile(
    r"^\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b[^#]*?(?P<end>)\s*(?:#.*)?$"
)


def indent(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The line at each depth that the lines above it leave open."""
    source = situation.source
    number = situation.finding.line
    line = source.line(number)
    for depth in _depths(source, number):
        if depth + line.lstrip() != line:
            edit = source.replace_line(number, depth + line.lstrip())
            yield RecoveryCandidate(why=f"line {number} belongs at depth {len(depth)}", edits=(edit,))
    yield from _block_moved(source, number)


def _depths(source: PythonSource, number: int) -> list[str]:
    """The indentations of the lines above, the nearest first; one deeper below a line that opens a block."""
    depths: list[str] = []
    above = [source.line(n) for n in range(number - 1, 0, -1) if source.line(n).strip()]
    unit = next(
        (m[0] for n in range(1, len(source.lines) + 1) if (m := re.match(r"\t| {2,8}(?=\S)", source.line(n)))), "    "
    )
    if above and above[0].rstrip().endswith(":"):
        depths.append(_leading(above[0]) + unit)
    for line in above[:50]:
        depths.append(_leading(line))
    return list(dict.fromkeys([*depths, ""]))


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _block_moved(source: PythonSource, number: int) -> Iterator[RecoveryCandidate]:
    """The line and what follows at its depth or deeper, one step to the right or the left."""
    depth = len(source.indentation(number))
    last = number
    # At the left edge a blank line ends the block, else a line further left does.
    for following in range(number + 1, len(source.lines) + 1):
        blank = not source.line(following).strip()
        if blank if depth == 0 else not blank and len(source.indentation(following)) < depth:
            break
        last = following
    lines = [source.line(n) for n in range(number, last + 1)]
    wanted = _depths(source, number)[0]
    moved = [wanted + line[depth:] if line.strip() else line for line in lines]
    if moved != lines and len(lines) > 1:
        start, end = source.offset(number), source.offset(last) + len(source.line(last))
        edit = source.edit(start, end, "\n".join(moved))
        yield RecoveryCandidate(why=f"lines {number} to {last} belong at depth {len(wanted)}", edits=(edit,))


def expand_tabs(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Spaces for tabs in the indentation of the whole file, as wide as the file's own steps or as a tab counts."""
    source = situation.source
    for width in (4, 8, 2):
        edits = []
        for number in range(1, len(source.lines) + 1):
            leading = source.indentation(number)
            if "\t" in leading:
                start = source.offset(number)
                edits.append(source.edit(start, start + len(leading), leading.replace("\t", " " * width)))
        if edits:
            yield RecoveryCandidate(why=f"{width} spaces for each tab", edits=tuple(edits))


def add_colon(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A colon at the end of a line that opens a block."""
    source = situation.source
    number = situation.finding.line
    line = source.line(number)
    if re.match(r"\s*else\s+if\b", line):
        edit = source.replace_line(number, re.sub(r"else\s+if\b", "elif", line, count=1))
        yield RecoveryCandidate(why="`else if` is written `elif`", edits=(edit,))
    if _BLOCK.match(line):
        position = source.offset(number, len(re.sub(r"\s*(?:#.*)?$", "", line)))
        yield source.inserted(position, ":", "a block starts with a colon")


def balance_brackets(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A bracket closed, dropped or turned into the one that fits."""
    source = situation.source
    number, column = situation.finding.line, situation.finding.column
    groups = situation.groups
    if groups.get("opened"):
        yield from _closed(source, number, _PAIRS[groups["opened"]])
    wrong = groups.get("extra") or groups.get("closed", "")
    line = source.line(number)
    at = column - 1 if 0 < column <= len(line) and line[column - 1] == wrong else line.rfind(wrong) if wrong else -1
    if at >= 0:
        start = source.offset(number, at)
        if groups.get("open"):
            right = _PAIRS[groups["open"]]
            yield source.exchanged(start, start + 1, right, f"{right} closes {groups['open']}")
        yield source.exchanged(start, start + 1, "", f"{wrong} closes nothing")


def _closed(source: PythonSource, number: int, bracket: str) -> Iterator[RecoveryCandidate]:
    """The bracket at the end of the line that opened it, before a colon or an arrow, and at the ends of the next."""
    for candidate in range(number, min(number + 8, len(source.lines) + 1)):
        line = re.sub(r"\s*(?:#.*)?$", "", source.line(candidate))
        ends = [len(line)] + ([len(line) - 1] if line.endswith((":", ",")) else [])
        ends += [match.start() for match in re.finditer(r"\s*->", line)]
        for end in reversed(ends):
            yield source.inserted(source.offset(candidate, end), bracket, f"{bracket} closes the bracket")


def close_string(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The missing quote at the end of the line, also before what usually follows a string."""
    source = situation.source
    if situation.groups.get("triple"):
        return
    number = situation.finding.line
    line = source.line(number)
    quotes = [quote for quote in ("'", '"') if line.count(quote) % 2]
    tail = re.search(r"[\s)\]},:]*$", line)
    ends = [tail.start() if tail else len(line), len(line)]
    for quote in quotes:
        for end in dict.fromkeys(ends):
            yield source.inserted(source.offset(number, end), quote, f"{quote} ends the string")


def compare(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`==` for a single `=` in a condition."""
    source = situation.source
    number = situation.finding.line
    for match in re.finditer(r"(?<![=!<>:+\-*/%&|^@])=(?!=)", source.line(number)):
        position = source.offset(number, match.start())
        yield source.exchanged(position, position + 1, "==", "a comparison is written ==")


def add_comma(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A comma between two values, on the finding's line or at the end of the one above."""
    source = situation.source
    number = situation.finding.line
    for candidate in (number, number - 1, number + 1):
        line = source.line(candidate)
        gaps = [match.start() for match in re.finditer(r"(?<=[\w)\]}'\"])\s+(?=[\w(\[{'\"])", line)]
        for at in [*gaps, len(line.rstrip())]:
            yield source.inserted(source.offset(candidate, at), ",", "a comma between the values")


def call_with_parentheses(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`print x` as a call."""
    source = situation.source
    number, name = situation.finding.line, situation.groups["function"]
    match = re.match(rf"(\s*(?:.*[:;]\s*)?){name}\s+(.+?)\s*(#.*)?$", source.line(number))
    if match:
        comment = f"  {match[3]}" if match[3] else ""
        edit = source.replace_line(number, f"{match[1]}{name}({match[2]}){comment}")
        yield RecoveryCandidate(why=f"{name} is a function", edits=(edit,))


def parenthesize_exceptions(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`except A, b:` as one exception under a name, or as several."""
    source = situation.source
    number = situation.finding.line
    match = re.match(r"(\s*except\s+)([\w.]+)\s*,\s*([\w.]+)(\s*:.*)$", source.line(number))
    if match is None:
        return
    several = f"{match[1]}({match[2]}, {match[3]}){match[4]}"
    one = f"{match[1]}{match[2]} as {match[3]}{match[4]}"
    ordered = [several, one] if match[3][0].isupper() else [one, several]
    for line in ordered:
        yield RecoveryCandidate(why=f"`{line.strip()}`", edits=(source.replace_line(number, line),))


def plain_characters(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Typographic quotes, dashes and blanks as the characters that they stand for."""
    source = situation.source
    edits = []
    number = situation.finding.line
    plain = table("habits")["characters"]
    for at, character in enumerate(source.line(number)):
        if character in plain:
            start = source.offset(number, at)
            edits.append(source.edit(start, start + 1, plain[character]))
    if edits:
        yield RecoveryCandidate(why="plain characters for typographic ones", edits=tuple(edits))


def other_languages(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Habits of other languages, then everything that a missing character could be."""
    source = situation.source
    number = situation.finding.line
    line = source.line(number)
    for habit in table("habits")["lines"]:
        changed = re.sub(r"(?<=\S)  +", " ", re.sub(habit["pattern"], habit["new"], line.lstrip()))
        if changed != line.lstrip():
            edit = source.replace_line(number, source.indentation(number) + changed)
            yield RecoveryCandidate(why=habit["why"], edits=(edit,))
    attempts: tuple[Callable[[RecoverySituation], Iterator[RecoveryCandidate]], ...] = (add_colon, compare, add_comma)
    for attempt in attempts:
        yield from attempt(situation)
    for bracket in _PAIRS.values():
        yield from _closed(source, max(number - 1, 1), bracket)
