"""Answers that are written down for the inputs of tests: special cases of literals in the place of a rule.

Whether a special case is right cannot be decided; that it gives the very answer that a test asks for its very input can
be seen. What everybody writes (0, 1, empty, true) is passed over.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, read_python

_PLAIN = frozenset(map(repr, (None, True, False, 0, 1, -1, 2, "", b"", (), [], {}, 0.0, 1.0)))
_LITERAL = r"(?:-?\d+(?:\.\d+)?|\"[^\"\n]*\"|'[^'\n]*')"
_SCRIPTED = [
    re.compile(
        rf"\bif\s*\((?P<all>[^{{}};\n]*?===?\s*{_LITERAL}[^{{}};\n]*?)\)\s*\{{?\s*return\s+(?P<answer>{_LITERAL})\s*[;}}\n]"
    ),
    re.compile(rf"(?P<all>===?\s*{_LITERAL})\s*\)?\s*\?\s*(?P<answer>{_LITERAL})\s*:"),
    re.compile(rf"\bcase\s+(?P<all>{_LITERAL})\s*:\s*\{{?\s*return\s+(?P<answer>{_LITERAL})"),
]
"""An answer for a literal, in JavaScript and TypeScript."""


@dataclass(frozen=True, slots=True)
class SpecialCase:
    """An input, or some parts of it, with the answer for it."""

    given: frozenset[str]
    answer: str
    line: int
    listed: bool = False
    """One of a table: several must fit, since tables of this kind are rules too."""


def special_cases(path: str, before: str | None, after: str | None, tests: Collection[frozenset[str]]) -> Iterator[str]:
    """A line for each special case that is new in the file and answers what a test asks.

    `tests` are the literals of each.
    """
    known = Counter((one.given, one.answer) for one in _cases(path, before or ""))
    found = []
    for one in _cases(path, after or ""):
        known[one.given, one.answer] -= 1
        asked = any(one.answer in test and one.given <= test for test in tests)
        new = known[one.given, one.answer] < 0
        if new and asked and one.answer not in _PLAIN | one.given and one.given - _PLAIN:
            found.append(one)
    several = len([one for one in found if one.listed]) > 1
    for one in (one for one in found if several or not one.listed):
        given = ", ".join(sorted(one.given))
        yield f"{path}:{one.line} gives {one.answer} for {given}, as a test asks: written down, not worked out"


def literals_of(path: str, text: str, name: str = "") -> list[frozenset[str]]:
    """The literals of each test of the file, or of the one of this name; with those of the constants that it uses."""
    if not path.endswith(".py"):
        blocks = re.split(r"\b(?:it|test|specify)(?:\.\w+)*\s*\(", text)
        return [frozenset(map(_script_value, re.findall(_LITERAL, one))) for one in blocks[1:] if name in one]
    try:
        tree = read_python(text)
    except Unreadable:
        return []
    constants: dict[str, frozenset[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            constants |= {one.id: _literals(node.value) for one in targets if isinstance(one, ast.Name)}
    functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    return [
        _literals(one).union(
            *(constants[used.id] for used in ast.walk(one) if isinstance(used, ast.Name) and used.id in constants)
        )
        for one in functions
        if one.name == name or (not name and one.name.startswith("test"))
    ]


def _literals(node: ast.AST) -> frozenset[str]:
    return frozenset(value for one in ast.walk(node) if (value := _value(one)) is not None)


def _leaves(node: ast.AST | None) -> frozenset[str]:
    """The literals without those that hold others."""
    inner = {id(one.operand) for one in ast.walk(node or ast.Pass()) if isinstance(one, ast.UnaryOp)}
    plain = (one for one in ast.walk(node or ast.Pass()) if isinstance(one, ast.Constant | ast.UnaryOp))
    return frozenset(value for one in plain if id(one) not in inner and (value := _value(one)) is not None)


def _value(node: ast.AST | None) -> str | None:
    """The literal that it is, as it is written; None for what is none."""
    if not isinstance(node, ast.Constant | ast.UnaryOp | ast.List | ast.Tuple | ast.Dict | ast.Set):
        return None
    try:
        found: Any = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return repr(int(found)) if isinstance(found, float) and found.is_integer() else repr(found)


def _script_value(text: str) -> str:
    return repr(text[1:-1]) if text[:1] in "\"'" else (repr(int(float(text))) if float(text).is_integer() else text)


def _cases(path: str, text: str) -> Iterator[SpecialCase]:
    if path.endswith(".py"):
        try:
            nodes = ast.walk(read_python(text))
        except Unreadable:
            return
        for node in nodes:
            yield from _of_node(node)
        return
    if path.endswith((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx")):
        for pattern in _SCRIPTED:
            for match in pattern.finditer(text):
                given = frozenset(map(_script_value, re.findall(_LITERAL, match["all"])))
                yield SpecialCase(given, _script_value(match["answer"]), text.count("\n", 0, match.start()) + 1)


def _of_node(node: ast.AST) -> Iterator[SpecialCase]:
    match node:
        case ast.If(test=test, body=[first, *_]):
            yield from _case(_compared(test), _answer(first), node)
        case ast.IfExp(test=test, body=body):
            yield from _case(_compared(test), _value(body), node)
        case ast.match_case(pattern=pattern, body=[first, *_]):
            yield from _case(_leaves(pattern), _answer(first), first)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                # A table with texts in it is what tables are for.
                if _number(value if _number(key) else key, tuple):
                    yield from _case(_leaves(key), _value(value), key, listed=True)


def _number(node: ast.AST | None, *more: type) -> bool:
    return _value(node) is not None and isinstance(ast.literal_eval(node), (int, float, *more))  # type: ignore[arg-type]


def _case(given: frozenset[str], answer: str | None, node: Any, *, listed: bool = False) -> Iterator[SpecialCase]:
    if given and answer is not None:
        yield SpecialCase(given, answer, node.lineno, listed)


def _compared(test: ast.expr) -> frozenset[str]:
    """The literals that something is equal to, or is one of."""
    found: set[str] = set()
    for one in ast.walk(test):
        if isinstance(one, ast.Compare) and all(isinstance(each, ast.Eq | ast.In | ast.Is) for each in one.ops):
            for side in (one.left, *one.comparators):
                found |= _leaves(side)
    return frozenset(found)


def _answer(statement: ast.stmt) -> str | None:
    return _value(statement.value) if isinstance(statement, ast.Return | ast.Assign) else None
