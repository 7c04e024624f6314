"""Wrong attempts at a fix: half of it, or one of its lines turned around, as somebody might have written it."""

from __future__ import annotations

import ast
import difflib
import itertools
import re
from collections.abc import Iterator

_TURNS = [
    (re.compile(before), after)
    for before, after in (
        (r"(?<=\s)==(?=\s)", "!="),
        (r"(?<=\s)!=(?=\s)", "=="),
        (r"(?<=\s)===(?=\s)", "!=="),
        (r"(?<=\s)!==(?=\s)", "==="),
        (r"(?<=\s)<=(?=\s)", "<"),
        (r"(?<=\s)>=(?=\s)", ">"),
        (r"(?<=\s)<(?=\s)", "<="),
        (r"(?<=\s)>(?=\s)", ">="),
        (r"\band\b", "or"),
        (r"\bor\b", "and"),
        (r"&&", "||"),
        (r"\|\|", "&&"),
        (r"\bis not\b", "is"),
        (r"\bnot in\b", "in"),
        (r"\bnot (?=\w)", ""),
        (r"\bif (?=\w)", "if not "),
        (r"\bTrue\b", "False"),
        (r"\bFalse\b", "True"),
        (r"\btrue\b", "false"),
        (r"\bfalse\b", "true"),
        (r"(?<=\s)\+(?=\s)", "-"),
        (r"(?<=\s)-(?=\s)", "+"),
        (r"(?<![\w.])0(?![\w.])", "1"),
        (r"(?<![\w.])1(?![\w.])", "2"),
    )
]


def attempts(path: str, before: str, fixed: str) -> Iterator[str]:
    """Texts of the file that are neither as it was nor as it is fixed, one of each kind in turn."""
    kinds = (_halves(before, fixed), _turned(before, fixed), _without(path, before, fixed))
    waves = itertools.zip_longest(*kinds)
    seen = {before, fixed}
    for text in filter(None, itertools.chain.from_iterable(waves)):
        if text not in seen and _is_readable(path, text):
            seen.add(text)
            yield text


def _is_readable(path: str, text: str) -> bool:
    try:
        return not path.endswith(".py") or bool(ast.parse(text))
    except SyntaxError:
        return False


def _parts(before: str, fixed: str) -> tuple[list[str], list[str], list[tuple[str, int, int, int, int]]]:
    old, new = before.splitlines(keepends=True), fixed.splitlines(keepends=True)
    return old, new, difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _halves(before: str, fixed: str) -> Iterator[str]:
    """The fix without one of the places that it changes."""
    old, new, parts = _parts(before, fixed)
    changed = [number for number, part in enumerate(parts) if part[0] != "equal"]
    for left_out in changed if len(changed) > 1 else ():
        yield "".join(
            "".join(old[part[1] : part[2]] if number == left_out else new[part[3] : part[4]])
            for number, part in enumerate(parts)
        )


def _added(before: str, fixed: str) -> Iterator[tuple[list[str], int]]:
    """The fixed lines, and the number of each that the fix wrote and that is no comment."""
    _, new, parts = _parts(before, fixed)
    for tag, _, _, start, end in parts:
        for at in range(start, end) if tag != "equal" else ():
            if new[at].strip() and not new[at].lstrip().startswith(("#", "//", "*", '"""')):
                yield new, at


def _turned(before: str, fixed: str) -> Iterator[str]:
    for new, at in _added(before, fixed):
        for pattern, turned in _TURNS:
            line = pattern.sub(turned, new[at], count=1)
            if line != new[at]:
                yield "".join((*new[:at], line, *new[at + 1 :]))


def _without(path: str, before: str, fixed: str) -> Iterator[str]:
    for new, at in _added(before, fixed):
        indentation = new[at][: len(new[at]) - len(new[at].lstrip())]
        yield "".join((*new[:at], f"{indentation}pass\n" if path.endswith(".py") else "\n", *new[at + 1 :]))
