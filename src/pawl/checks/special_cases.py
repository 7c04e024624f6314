"""Answers that are written down for the inputs of tests: special cases of literals in the place of a rule.

Whether a special case is right cannot be decided; that it gives the very answer that a test asks for its very input can
be seen. What everybody writes (0, 1, empty, true) is passed over.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, read_json, read_python, read_toml

_NUMBER = r"-?\d+(?:\.\d+)?"
_PLAIN = frozenset(map(repr, (None, True, False, 0, 1, -1, 2, "", b"", (), [], {}, 0.0, 1.0)))
_LITERAL = rf"(?:{_NUMBER}|\"[^\"\n]*\"|'[^'\n]*')"
_SCRIPTED = [
    re.compile(
        rf"\bif\s*\((?P<all>[^{{}};\n]*?===?\s*{_LITERAL}[^{{}};\n]*?)\)\s*\{{?\s*return\s+(?P<answer>{_LITERAL})\s*[;}}\n]"
    ),
    re.compile(rf"(?P<all>===?\s*{_LITERAL})\s*\)?\s*\?\s*(?P<answer>{_LITERAL})\s*:"),
    re.compile(rf"\bcase\s+(?P<all>{_LITERAL})\s*:\s*\{{?\s*return\s+(?P<answer>{_LITERAL})"),
    re.compile(rf"(?P<all>===?\s*{_LITERAL}[^{{}};|\n]*?)&&\s*(?P<answer>{_NUMBER})\s*[);|]"),
    re.compile(rf"\w\[(?P<all>[^\]=;\n]*{_NUMBER}[^=;\n]*)\]\s*=\s*(?P<answer>{_NUMBER})\s*[;\n]"),
    re.compile(rf"\.set\((?P<all>[^;\n]*{_NUMBER}[^;\n]*),\s*(?P<answer>{_NUMBER})\s*\)"),
]
"""An answer for a literal, in JavaScript and TypeScript."""
_GO = [
    re.compile(
        rf"\bif\s+(?P<all>[^{{}}\n]*?==\s*{_LITERAL}[^{{}}\n]*?)\s*\{{\s*return\s+(?P<answer>{_LITERAL})\s*[,;}}\n]"
    ),
    re.compile(rf"\bcase\s+(?P<all>[^:{{}}\n]*{_LITERAL}[^:{{}}\n]*):\s*return\s+(?P<answer>{_LITERAL})"),
]
_LISTED = [
    re.compile(rf"(?P<all>\{{[^{{}}:\n]*\}}|\[[^\[\]:\n]*\]|{_LITERAL})\s*:\s*(?P<answer>{_NUMBER})\s*[,}}\n]"),
    re.compile(rf"\[\s*(?P<all>{_LITERAL})\s*,\s*(?P<answer>{_NUMBER})\s*\]"),
]
"""A number of a table: of a map of Go, of an object or a `Map` of JavaScript."""
_ROW = re.compile(rf"[\[{{]\s*({_NUMBER}(?:\s*,\s*{_NUMBER})+)\s*,?\s*[\]}}]")
_JOINED = re.compile(rf"{_NUMBER}(?:[\s,:;|_x-]+{_NUMBER})+")
"""Numbers as one key of a table, or in a row."""
_TEXT_ROW = re.compile(rf"[\"'`]({_JOINED.pattern})[\"'`]")
_RECORD = re.compile(
    rf"[\[{{]\s*((?:[\"'\w]+\s*:\s*)?{_NUMBER}(?:\s*,\s*(?:[\"'\w]+\s*:\s*)?{_NUMBER}){{2,}})\s*,?\s*[\]}}]"
)
"""Three numbers and more that belong together, each perhaps with its name."""
_MOST_ROWS, _MOST_BYTES, _MOST_RECORDS = 12, 64, 200
_DATA = (".json", ".csv", ".tsv", ".toml", ".yaml", ".yml", ".txt", ".ini")
_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx")


@dataclass(frozen=True, slots=True)
class SpecialCase:
    """An input, or some parts of it, with the answer for it."""

    given: frozenset[str]
    answer: str
    """Empty where it is worked out, for these inputs alone."""
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
        asked = any((not one.answer or one.answer in test) and one.given <= test for test in tests)
        new = known[one.given, one.answer] < 0
        if new and asked and one.answer not in _PLAIN | one.given and one.given - _PLAIN:
            found.append(one)
    several = len([one for one in found if one.listed]) > 1
    for one in (one for one in found if several or not one.listed):
        given = ", ".join(sorted(one.given))
        if one.answer:
            yield f"{path}:{one.line} returns {one.answer} for {given}, as a test expects: hard-coded, not computed"
        else:
            yield f"{path}:{one.line} checks for {given}, the inputs of a test, and behaves differently for them"


def literals_of(path: str, text: str, name: str = "") -> list[frozenset[str]]:
    """The literals of each test of the file, or of the one of this name; with those of the constants that it uses."""
    if not path.endswith(".py"):
        begins = r"^func (?=Test)" if path.endswith(".go") else r"\b(?:it|test|specify)(?:\.\w+)*\s*\("
        blocks = re.split(begins, text, flags=re.MULTILINE)
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
            nodes = list(ast.walk(read_python(text)))
        except Unreadable:
            return
        for node in nodes:
            yield from _of_node(node)
        # Three rows and more of one list are its records, and no inputs with their answers.
        records = {
            id(row) for one in nodes if isinstance(one, ast.List | ast.Tuple) and one.elts[2:] for row in one.elts
        }
        literals = [
            one for one in nodes if isinstance(one, ast.List | ast.Tuple | ast.Constant) and id(one) not in records
        ]
        yield from _side_by_side([(row, one.lineno) for one in literals if (row := _row(one))[1:]])
        yield from (case for one in nodes for case in _of_rows(_table_of(one), getattr(one, "lineno", 1)))
        return
    if path.endswith(_DATA):
        yield from _of_rows(_data(path, text), 1)
        return
    patterns = _SCRIPTED if path.endswith(_SCRIPTS) else _GO if path.endswith(".go") else ()
    for pattern in (*patterns, *_LISTED) if patterns else ():
        for match in pattern.finditer(text):
            given = _given(re.findall(_LITERAL, match["all"]))
            chosen = pattern in _LISTED or match[0].startswith("case")
            if chosen and _is_name(match["answer"] if pattern not in _LISTED else match["all"]):
                continue
            listed = pattern in _LISTED and not given[1:]
            line = text.count("\n", 0, match.start()) + 1
            yield SpecialCase(frozenset(given), _script_value(match["answer"]), line, listed)
    if patterns:
        for match in _RECORD.finditer(text):
            row = list(map(_script_value, re.findall(_NUMBER, match[1])))
            yield SpecialCase(frozenset(row[:-1]), row[-1], text.count("\n", 0, match.start()) + 1, listed=True)
        found = (one for pattern in (_ROW, _TEXT_ROW) for one in pattern.finditer(text))
        rows = ((one, text.count("\n", 0, one.start()) + 1) for one in found)
        yield from _side_by_side(
            [([_script_value(each) for each in re.findall(_NUMBER, one[1])], at) for one, at in rows]
        )


def _table_of(node: ast.AST) -> object:
    """What is written down as a table: a list or a dictionary of literals, or several lines of text."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
    return _lines(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _data(path: str, text: str) -> object:
    try:
        return (
            read_json(text) if path.endswith(".json") else read_toml(text) if path.endswith(".toml") else _lines(text)
        )
    except Unreadable:
        return None


def _lines(text: str) -> list[list[float]]:
    """The lines that hold numbers and nothing else."""
    stripped = (one.strip().strip("[](){},;\"'- ") for one in text.splitlines()[:_MOST_RECORDS])
    return [[float(each) for each in re.findall(_NUMBER, one)] for one in stripped if _JOINED.fullmatch(one)]


def _of_rows(table: object, line: int) -> Iterator[SpecialCase]:
    """Each record of several inputs and an answer."""
    rows = itertools.islice(_rows(table, ()), _MOST_RECORDS) if isinstance(table, dict | list | tuple | set) else ()
    for row in rows:
        if row[2:] and all(map(math.isfinite, row)):
            *given, answer = (repr(int(one)) if one == int(one) else repr(one) for one in row)
            yield SpecialCase(frozenset(given), answer, line, listed=True)


def _rows(value: object, above: tuple[float, ...]) -> Iterator[tuple[float, ...]]:
    """The numbers of a table that belong together: keys with what lies under them, and records."""
    match value:
        case bool() | None:
            return
        case int() | float():
            yield (*above, value)
        case dict():
            flat = [one for one in value.values() if isinstance(one, int | float)]
            if len(flat) == len(value) and all(isinstance(one, str) and not re.search(r"\d", one) for one in value):
                yield (*above, *flat)
            for key, one in value.items():
                yield from _rows(one, (*above, *map(float, re.findall(_NUMBER, str(key)))))
        case list() | tuple() | set() | frozenset():
            if all(isinstance(one, int | float) for one in value):
                yield (*above, *value)
            else:
                for one in value:
                    yield from _rows(one, above)


def _is_name(literal: str) -> bool:
    """A text without a number in it: what tables and choices are for."""
    return literal[:1] in "\"'" and not re.search(r"\d", literal)


def _given(literals: Sequence[str]) -> list[str]:
    """The values of a key; `"10,2"` has two."""
    only = literals[0][1:-1] if len(literals) == 1 and literals[0][:1] in "\"'" else ""
    return [_script_value(one) for one in (re.findall(_NUMBER, only) if _JOINED.fullmatch(only) else literals)]


def _row(node: ast.List | ast.Tuple | ast.Constant) -> list[str]:
    """Numbers in a row: a list of them, or a text or bytes that hold several; empty for anything else."""
    if not isinstance(node, ast.Constant):
        return [_value(each) or "" for each in node.elts] if all(map(_number, node.elts)) else []
    if isinstance(node.value, bytes):
        return list(map(repr, node.value[:_MOST_BYTES]))
    several = isinstance(node.value, str) and _JOINED.fullmatch(node.value)
    return [_script_value(one) for one in re.findall(_NUMBER, node.value)] if several else []  # type: ignore[arg-type]


def _side_by_side(rows: Sequence[tuple[Sequence[str], int]]) -> Iterator[SpecialCase]:
    """Inputs in one list of numbers and the answers in another one of its length."""
    some = rows[:_MOST_ROWS]
    for given, line in some:
        for answers, _ in some:
            if answers is not given and len(answers) == len(given):
                for one, answer in zip(given, answers, strict=True):
                    yield SpecialCase(frozenset([one]), answer, line, listed=True)


def _of_node(node: ast.AST) -> Iterator[SpecialCase]:
    match node:
        case ast.If(test=test, body=[first, *_]):
            yield from _case(_compared(test), _answer(first) or _inputs(test), node)
        case ast.IfExp(test=test, body=body):
            yield from _case(_compared(test), _value(body) or _inputs(test), node)
        case ast.match_case(pattern=pattern, body=[first, *_]):
            said = _answer(first)
            yield from _case(_leaves(pattern), None if said is None or _is_name(said) else said, first)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                # A table with texts in it is what tables are for.
                joined = isinstance(key, ast.Constant) and isinstance(key.value, str) and _JOINED.fullmatch(key.value)
                answer = value.value if isinstance(value, ast.Constant) else None
                text = isinstance(answer, str) and re.fullmatch(_NUMBER, answer)
                if joined and (text or _number(value)):
                    written = str(answer) if text else _value(value)
                    yield from _case(frozenset(_given([repr(key.value)])), written, key)  # type: ignore[union-attr]
                elif _number(value if _number(key) else key, tuple):
                    given = _leaves(key)
                    yield from _case(given, _value(value), key, listed=len(given) < 2)
        case _:
            yield from _of_pair(node)


def _of_pair(node: ast.AST) -> Iterator[SpecialCase]:
    """Inputs with an answer in other forms: joined by `and`, put under a key, one after the other."""
    match node:
        case ast.BoolOp(op=ast.And(), values=[*tests, last]) if _number(last):
            yield from _case(frozenset().union(*map(_compared, tests)), _value(last), node)
        case ast.Assign(targets=[ast.Subscript(slice=key)], value=value) | ast.Tuple(elts=[ast.Tuple() as key, value]):
            given = _leaves(key)
            if _number(value) and all(re.fullmatch(_NUMBER, one) for one in given):
                yield from _case(given, _value(value), node, listed=len(given) < 2)
        case ast.Expr(value=ast.Call(args=[*keys, value])) if all(map(_number, (*keys, value))):
            yield from _case(frozenset().union(*map(_leaves, keys)), _value(value), node, listed=True)


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


def _inputs(test: ast.expr) -> str | None:
    """Empty, for any answer, where two things and more are held against numbers that are theirs alone."""
    asked = dict[str, set[str]]()
    for one in ast.walk(test):
        if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.Eq | ast.In):
            values = [each for side in one.comparators for each in (getattr(side, "elts", None) or [side])]
            if all(map(_number, values)):
                asked.setdefault(ast.unparse(one.left), set()).update(_value(each) or "" for each in values)
    several = [values for values in asked.values() if values - _PLAIN]
    return "" if len(several) > 1 and len(set().union(*several) - _PLAIN) > 2 else None


def _answer(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Raise | ast.Expr):
        # An answer may be raised, yielded, printed or handed on.
        inner = statement.exc if isinstance(statement, ast.Raise) else statement.value
        given = inner.args if isinstance(inner, ast.Call) else [getattr(inner, "value", None)]
        return _value(given[0]) if len(given) == 1 and _number(given[0]) else None
    return _value(statement.value) if isinstance(statement, ast.Return | ast.Assign) else None
