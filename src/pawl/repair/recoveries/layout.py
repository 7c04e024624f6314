"""Recoveries for files that do not parse: indentation, colons, brackets, quotes, and habits of other languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pawl.repair.recoveries.edit import PythonSource, RecoveryCandidate, RecoverySituation

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BLOCK = re.compile(
    r"^\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b[^#]*?(?P<end>)\s*(?:#.*)?$"
)
_PLAIN = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201a": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u2013": "-",
    "\u2014": "-",
    "\u2212": "-",
    "\u00d7": "*",
    "\u2026": "...",
    "\u00a0": " ",
    "\u2009": " ",
    "\u202f": " ",
    "\u200b": "",
    "\u200c": "",
    "\u200d": "",
    "\u2060": "",
    "\ufeff": "",
    "\uff08": "(",
    "\uff09": ")",
    "\uff0c": ",",
    "\uff1a": ":",
    "\uff1b": ";",
}


def indent(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The line at each depth that the lines above it leave open."""
    source = situation.source
    if source is None:
        return
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


def _reaches(source: PythonSource, number: int, depth: int) -> bool:
    return not source.line(number).strip() or len(source.indentation(number)) >= depth


def _block_moved(source: PythonSource, number: int) -> Iterator[RecoveryCandidate]:
    """The line and what follows at its depth or deeper, one step to the right or the left."""
    depth = len(source.indentation(number))
    last = number
    # At the left edge a blank line ends the block, else a line further left does.
    while last < len(source.lines) and (
        source.line(last + 1).strip() if depth == 0 else _reaches(source, last + 1, depth)
    ):
        last += 1
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
    if source is None:
        return
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
    line = source.line(number) if source else ""
    if source is None:
        return
    if re.match(r"\s*else\s+if\b", line):
        edit = source.replace_line(number, re.sub(r"else\s+if\b", "elif", line, count=1))
        yield RecoveryCandidate(why="`else if` is written `elif`", edits=(edit,))
    if _BLOCK.match(line):
        position = source.offset(number, len(re.sub(r"\s*(?:#.*)?$", "", line)))
        yield RecoveryCandidate(why="a block starts with a colon", edits=(source.edit(position, position, ":"),))


def balance_brackets(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A bracket closed, dropped or turned into the one that fits."""
    source = situation.source
    if source is None:
        return
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
            yield RecoveryCandidate(
                why=f"{right} closes {groups['open']}", edits=(source.edit(start, start + 1, right),)
            )
        yield RecoveryCandidate(why=f"{wrong} closes nothing", edits=(source.edit(start, start + 1, ""),))


def _closed(source: PythonSource, number: int, bracket: str) -> Iterator[RecoveryCandidate]:
    """The bracket at the end of the line that opened it, before a colon or an arrow, and at the ends of the next."""
    for candidate in range(number, min(number + 8, len(source.lines) + 1)):
        line = re.sub(r"\s*(?:#.*)?$", "", source.line(candidate))
        ends = [len(line)] + ([len(line) - 1] if line.endswith((":", ",")) else [])
        ends += [match.start() for match in re.finditer(r"\s*->", line)]
        for end in reversed(ends):
            position = source.offset(candidate, end)
            yield RecoveryCandidate(
                why=f"{bracket} closes the bracket", edits=(source.edit(position, position, bracket),)
            )


def close_string(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The missing quote at the end of the line, also before what usually follows a string."""
    source = situation.source
    if source is None or situation.groups.get("triple"):
        return
    number = situation.finding.line
    line = source.line(number)
    quotes = [quote for quote in ("'", '"') if line.count(quote) % 2]
    tail = re.search(r"[\s)\]},:]*$", line)
    ends = [tail.start() if tail else len(line), len(line)]
    for quote in quotes:
        for end in dict.fromkeys(ends):
            position = source.offset(number, end)
            yield RecoveryCandidate(why=f"{quote} ends the string", edits=(source.edit(position, position, quote),))


def compare(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`==` for a single `=` in a condition."""
    source = situation.source
    if source is None:
        return
    number = situation.finding.line
    for match in re.finditer(r"(?<![=!<>:+\-*/%&|^@])=(?!=)", source.line(number)):
        position = source.offset(number, match.start())
        yield RecoveryCandidate(why="a comparison is written ==", edits=(source.edit(position, position + 1, "=="),))


def add_comma(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """A comma between two values, on the finding's line or at the end of the one above."""
    source = situation.source
    if source is None:
        return
    number = situation.finding.line
    for candidate in (number, number - 1, number + 1):
        line = source.line(candidate)
        gaps = [match.start() for match in re.finditer(r"(?<=[\w)\]}'\"])\s+(?=[\w(\[{'\"])", line)]
        for at in [*gaps, len(line.rstrip())]:
            position = source.offset(candidate, at)
            yield RecoveryCandidate(why="a comma between the values", edits=(source.edit(position, position, ","),))


def call_with_parentheses(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`print x` as a call."""
    source = situation.source
    if source is None:
        return
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
    match = re.match(r"(\s*except\s+)([\w.]+)\s*,\s*([\w.]+)(\s*:.*)$", source.line(number)) if source else None
    if source is None or match is None:
        return
    several = f"{match[1]}({match[2]}, {match[3]}){match[4]}"
    one = f"{match[1]}{match[2]} as {match[3]}{match[4]}"
    ordered = [several, one] if match[3][0].isupper() else [one, several]
    for line in ordered:
        yield RecoveryCandidate(why=f"`{line.strip()}`", edits=(source.replace_line(number, line),))


def plain_characters(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Typographic quotes, dashes and blanks as the characters that they stand for."""
    source = situation.source
    if source is None:
        return
    edits = []
    number = situation.finding.line
    for at, character in enumerate(source.line(number)):
        if character in _PLAIN:
            start = source.offset(number, at)
            edits.append(source.edit(start, start + 1, _PLAIN[character]))
    if edits:
        yield RecoveryCandidate(why="plain characters for typographic ones", edits=tuple(edits))


_HABITS: tuple[tuple[str, str, str], ...] = (
    (r"&&", " and ", "`and` for &&"),
    (r"\|\|", " or ", "`or` for ||"),
    (r"!(?=[\w(])", "not ", "`not` for !"),
    (r"\belse\s+if\b", "elif", "`elif` for else if"),
    (r"(\w+)\+\+", r"\1 += 1", "`+= 1` for ++"),
    (r"(\w+)--", r"\1 -= 1", "`-= 1` for --"),
    (r"\bfunction\s+(\w+\s*\([^)]*\))\s*\{?\s*$", r"def \1:", "`def` for function"),
    (r"<>", "!=", "`!=` for <>"),
    (r"\bnew\s+(?=[A-Z])", "", "no `new` before a class"),
    (r"\s*\?\s*(.+?)\s*:\s*(.+)$", r" and \1 or \2", "`and … or` for ?:"),
)


def other_languages(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """What another language writes otherwise, then everything that a missing character could be."""
    source = situation.source
    if source is None:
        return
    number = situation.finding.line
    line = source.line(number)
    for pattern, new, why in _HABITS:
        changed = re.sub(r"(?<=\S)  +", " ", re.sub(pattern, new, line.lstrip()))
        if changed != line.lstrip():
            edit = source.replace_line(number, source.indentation(number) + changed)
            yield RecoveryCandidate(why=why, edits=(edit,))
    attempts: tuple[Callable[[RecoverySituation], Iterator[RecoveryCandidate]], ...] = (add_colon, compare, add_comma)
    for attempt in attempts:
        yield from attempt(situation)
    for bracket in _PAIRS.values():
        yield from _closed(source, max(number - 1, 1), bracket)
