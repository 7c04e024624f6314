"""What tests lean on in the product: functions that compare for them, and tables that they go through.

Who changes these changes what the tests expect, whatever the files are called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pawl.core.typed import Unreadable, read_python

_OF_GO = re.compile(r"(?:^|[{;])\s*(?:[a-z]\w*\.)?(\w+)\(\s*t\s*,", re.MULTILINE)
_OF_SCRIPT = re.compile(
    r"^\s*(?:await\s+)?([A-Za-z_]\w*)\(\s*[A-Za-z_][\w.]*\([^;\n]*\)\s*,[^;\n]*\)\s*;?\s*$", re.MULTILINE
)
_OWN = frozenset({"assert", "expect", "test", "it", "describe"})


def leaned_on(path: str, text: str, name: str) -> frozenset[str]:
    """The names of the functions and tables that a test of the file leans on."""
    if not path.endswith(".py"):
        return frozenset((_OF_GO if path.endswith(".go") else _OF_SCRIPT).findall(text)) - _OWN
    try:
        functions = [
            one for one in ast.walk(read_python(text)) if isinstance(one, ast.FunctionDef) and one.name == name
        ]
    except Unreadable:
        return frozenset()
    return frozenset(each for one in functions for each in (*_comparing(one), *_gone_through(one)))


def _comparing(test: ast.FunctionDef) -> Iterator[str]:
    """Functions whose word is taken for it that the result of another is right."""
    for node in ast.walk(test):
        said = node.test if isinstance(node, ast.Assert) else node.value if isinstance(node, ast.Expr) else None
        if isinstance(said, ast.Call) and isinstance(said.func, ast.Name) and said.args[1:]:
            calls = [isinstance(one, ast.Call) for one in said.args]
            if any(calls) and not all(calls):
                yield said.func.id


def _gone_through(test: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parametrize"):
            yield from (each.id for one in node.args[1:2] for each in ast.walk(one) if isinstance(each, ast.Name))
        elif isinstance(node, ast.For):
            called = {ast.unparse(each.func) for each in ast.walk(node.iter) if isinstance(each, ast.Call)}
            names = (each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name))
            yield from (name for name in names if name not in called)


def changed_definitions(path: str, before: str, after: str) -> frozenset[str]:
    """The functions of a file that are not as they were, and the tables of literals."""

    def found(text: str) -> dict[str, str]:
        if not path.endswith(".py"):
            return {one["name"]: one[0] for one in _DEFINED.finditer(text)}
        try:
            body = read_python(text).body
        except Unreadable:
            return {}
        tables = {
            target.id: ast.dump(one.value)
            for one in body
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.List | ast.Tuple | ast.Dict | ast.Set)
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        return {**tables, **{one.name: ast.dump(one) for one in body if isinstance(one, ast.FunctionDef)}}

    now = found(after)
    return frozenset(name for name, body in found(before).items() if now.get(name) != body)


_DEFINED = re.compile(
    r"^(?:export\s+)?(?:async\s+)?(?:function\s+|func\s+|const\s+|exports\.)(?P<name>\w+)[^\n]*"
    r"(?:\n(?:[ \t][^\n]*)?)*(?:\n[})][^\n]*)?",
    re.MULTILINE,
)
"""A function of Go or JavaScript, to the end of its lines."""
