"""Clues for an edit beside the tests: what the function leaves unread, what words ask for, what siblings do."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from reflex_inside.program import Edit, Facts, is_document, outermost_functions

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("clues.json").read_text("utf-8"))
"""The weights, and the words that ask for a piece of code."""
WEIGHTS: dict[str, float] = TABLE["weights"]
"""How much an edit's cost grows with each thing that is seen in it."""
PRIORS: dict[str, float] = TABLE["templates"]
"""How much a template's cost differs from the one that its code names."""
ASKED: dict[str, list[str]] = TABLE["words"]
"""By a piece of code: words and phrases that ask for it."""
COUNTING: list[str] = TABLE["counting"]
"""Phrases whose words ask for no sign: "how many times" is no product."""
USUAL = frozenset({"0", "1"})
WITH_TWO = frozenset({"%", "//", "/", "*", "**"})
"""Signs after which a two is no number that somebody made up: halves, squares, and every other one."""
MOST_ASKED = 2
ALIKE = 0.7
WINDOW = 80

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\"[^\"\n]*\"|'[^'\n]*'|\*\*|//|[<>=!]=|<<|>>|[^\w\s]")
_WORD = re.compile(r"[A-Za-z][a-z]*|\d+(?:\.\d+)?")
_EXAMPLE = re.compile(r"^\s*(?:>>>|\.\.\.).*(?:\n(?!\s*$|\s*>>>).*)*", re.MULTILINE)

Seen = dict[str, float]


@lru_cache(maxsize=20_000)
def tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text))


def words_in(text: str) -> set[str]:
    """The words and numbers of prose and of names, in small letters."""
    return {word.lower() for word in _WORD.findall(text.replace("_", " "))}


def shape(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The tokens with every name that is no keyword made alike."""
    return tuple("name" if part.isidentifier() and part not in KEPT else part for part in parts)


KEPT = frozenset({"for", "in", "if", "else", "elif", "return", "not", "and", "or", "is", "while", "sum", "len", "min",
                  "max", "sorted", "set", "any", "all", "None", "True", "False", "abs", "range", "raise"})  # fmt: skip


class Clues:
    """Everything that a function, its file and the words around it say about an edit."""

    def __init__(self, facts: Facts, words: tuple[str, ...] = ()) -> None:
        node = facts.function.node
        document = _EXAMPLE.sub("", ast.get_docstring(node) or "") if node.name else ""
        self.source = facts.source
        prose = " ".join((node.name, document, *words)).lower().replace("_", " ")
        for counting in COUNTING:
            prose = prose.replace(counting, "")
        self.words = words_in(prose)
        self.asked = {
            code
            for code, asking in ASKED.items()
            if any(one in (prose if " " in one else self.words) for one in asking)
        }
        self.unread = unread_names(node)
        code = [ast.unparse(statement) for statement in node.body if not is_document(statement)]
        self.held = Counter(tokens("\n".join(code)))
        constants = (each.value for each in ast.walk(facts.source.tree) if isinstance(each, ast.Constant))
        self.numbers = {repr(each) for each in constants if type(each) in {int, float}} | USUAL | self.words
        self.others, self.alike = self._siblings(facts)

    def _siblings(self, facts: Facts) -> tuple[str, str]:
        """The tokens of the other functions of the file, and the shapes of those that look like this one."""
        own, exact, alike = facts.function, [], []
        mine = shape(tokens(self.source.text(own.node)))
        for node, _ in outermost_functions(self.source.tree.body, ()):
            if node.lineno == own.node.lineno:
                continue
            parts = tokens(self.source.text(node))
            exact.append(" ".join(parts))
            theirs = shape(parts)
            if max(len(mine), len(theirs)) < 400:
                matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
                if matcher.quick_ratio() > ALIKE and matcher.ratio() > ALIKE:
                    alike.append(" ".join(theirs))
        return f" {' | '.join(exact)} ", f" {' | '.join(alike)} "

    def of(self, removed: str, added: str, line: int) -> Seen:
        """What is seen in a text that takes the place of another on this line."""
        old, new = tokens(removed), tokens(added)
        fresh, gone = [part for part in new if part not in old], [part for part in old if part not in new]
        seen: Seen = {}
        if any(line in self.unread[part] for part in fresh if part in self.unread):
            seen["unread"] = 1.0
        # What words ask for is asked for once: it may stand there already, or still.
        asked = sum(not self.held[part] for part in self.asked.intersection(fresh))
        asked -= sum(self.held[part] <= old.count(part) for part in self.asked.intersection(gone))
        if asked:
            seen["asked"] = float(max(-MOST_ASKED, min(MOST_ASKED, asked)))
        if any(part.isidentifier() and self._is_mentioned(part) for part in fresh):
            seen["mentioned"] = 1.0
        if self.invented(old, new):
            seen["invented"] = 1.0
        return seen

    def of_edits(self, edits: tuple[Edit, ...]) -> Seen:
        """The same for edits of the file, with the neighbours of the first of them."""
        data = self.source.data
        removed = " ".join(data[edit.start : edit.end].decode("utf-8", "replace") for edit in edits)
        seen = self.of(removed, " ".join(edit.text for edit in edits), self.source.line_of(edits[0].start))
        if len(edits) == 1 and self._is_done_elsewhere(edits[0]):
            seen["sibling"] = 1.0
        return seen

    def invented(self, old: tuple[str, ...], new: tuple[str, ...]) -> str:
        """A number that stands nowhere in the file, nor beside one that it replaces; empty where there is none."""
        beside = {str(int(part) + step) for part in old if part.isdigit() for step in (-1, 1)}
        for place, part in enumerate(new):
            if not part[0].isdigit() or part in old or part in beside:
                continue
            if part == "2" and place > 1 and new[place - 1] in WITH_TWO and not new[place - 2][0].isdigit():
                continue
            if part not in self.numbers:
                return part
        return ""

    def _is_mentioned(self, name: str) -> bool:
        """Whether words name the thing, in full or shortened."""
        return any(
            word in self.words or (len(word) > 2 and any(shortens(word, other) for other in self.words))
            for word in words_in(name)
        )

    def _is_done_elsewhere(self, edit: Edit) -> bool:
        """Whether the new code with its neighbours stands in a sibling, and the old code does not."""
        data = self.source.data
        start = max(data.rfind(b"\n", 0, edit.start) + 1, edit.start - WINDOW)
        end = data.find(b"\n", edit.end)
        end = min(end if end >= 0 else len(data), edit.end + WINDOW)
        before, after = (data[a:b].decode("utf-8", "replace") for a, b in ((start, edit.start), (edit.end, end)))
        removed = data[edit.start : edit.end].decode("utf-8", "replace")
        for reach, text, change in ((1, self.others, tuple), (2, self.alike, shape)):
            head, tail = tokens(before)[-reach:], tokens(after)[:reach]
            new, old = (" ".join(change((*head, *tokens(part), *tail))) for part in (edit.text, removed))
            if new.count(" ") >= reach * 2 and f" {new} " in text and f" {old} " not in text:
                return True
        return False


def weigh(seen: Seen) -> float:
    return sum(WEIGHTS.get(name, 0.0) * value for name, value in seen.items())


def shortens(short: str, word: str) -> bool:
    """Whether the letters of a short form stand in the word in this order, from its first on."""
    if len(word) <= len(short) or short[0] != word[0]:
        return False
    letters = iter(word)
    return all(letter in letters for letter in short)


def unread_names(node: ast.AST) -> dict[str, range]:
    """What is bound and that nobody reads, inner functions too, and the lines where that could be mended."""
    bound: dict[str, range] = {}
    read: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.For() | ast.AsyncFor():
                lines = range(each.lineno, (each.end_lineno or each.lineno) + 1)
                bound.update((name.id, lines) for name in ast.walk(each.target) if isinstance(name, ast.Name))
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                bound.setdefault(name, range(each.lineno, sys.maxsize))
            case ast.FunctionDef(name=name) if each is not node:
                bound[name] = range(each.lineno, sys.maxsize)
            case ast.Name(id=name):
                read.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                read.update(names)
    own = read | {"self", "cls"}
    return {name: lines for name, lines in bound.items() if name not in own and not name.startswith("_")}
