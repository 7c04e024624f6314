"""What tests lean on in the product: functions that compare for them, and tables that they go through.

Who changes these changes what the tests expect, whatever the files are called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pawl.core.typed import Unreadable, read_python

_OF_GO = re.compile(r"(?:^|[{;])[ \t]*(?:[a-z]\w*\.)?(\w+)\(\s*t\s*,", re.MULTILINE)
_OF_SCRIPT = re.compile(
    r"^[ \t]*(?:await\s+)?([A-Za-z_]\w*)\(\s*[A-Za-z_][\w.]*\([^;\n]{0,300}\)\s*,[^;\n]*\)\s*(?:;\s*)?$", re.MULTILINE
)
_SAME = re.compile(r"(?:is_?)?(?:equal|same|identical|near|close|eq$)", re.IGNORECASE)
_HELD = re.compile(
    r"\.to[A-Z]\w*\(\s*([A-Z][A-Z0-9_]+)\s*\)|\bassert[.\w]*\([^;\n]*\),\s*([A-Z][A-Z0-9_]+)\s*\)|"
    r"\)\.((?:is)?(?:[eE]quals?|[sS]ame)\w*)\("
)
"""What a result is held against in JavaScript, and methods that compare it."""
_CALLED = re.compile(r"(?:^|=>|\{)\s*(?:await\s+)?(\w+)\(", re.MULTILINE)
_OWN = frozenset({"assert", "expect", "test", "it", "describe"})


def leaned_on(path: str, text: str, name: str) -> frozenset[str]:
    """The names of the functions and tables that a test of the file leans on."""
    if not path.endswith(".py"):
        named = (one for found in _HELD.findall(text) for one in found if one)
        called = (f"{one}()" for one in _CALLED.findall(text))
        return frozenset((_OF_GO if path.endswith(".go") else _OF_SCRIPT).findall(text)).union(named, called) - _OWN
    try:
        functions = [
            one for one in ast.walk(read_python(text)) if isinstance(one, ast.FunctionDef) and one.name == name
        ]
    except Unreadable:
        return frozenset()
    return frozenset().union(*({*_comparing(one), *_gone_through(one)} - _own(one) for one in functions))


def _own(test: ast.FunctionDef) -> set[str]:
    names = {one.id for one in ast.walk(test) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return names | {one.arg for one in ast.walk(test) if isinstance(one, ast.arg)}


def _comparing(test: ast.FunctionDef) -> Iterator[str]:
    """What the result of another is held against, and functions whose word is taken for it that it is right."""
    for node in ast.walk(test):
        said = node.test if isinstance(node, ast.Assert) else node.value if isinstance(node, ast.Expr) else None
        if isinstance(node, ast.Expr) and isinstance(said, ast.Call):
            yield f"{ast.unparse(said.func).rpartition('.')[2]}()"
        if isinstance(said, ast.Compare) and isinstance(said.left, ast.Call):
            yield from (each.id for each in said.comparators if isinstance(each, ast.Name))
        if isinstance(said, ast.Call) and isinstance(said.func, ast.Attribute) and _SAME.match(said.func.attr):
            yield said.func.attr
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
    """The functions of a file that are not as they were, methods included, and the values; `name()` is one that checks
    something and answers nothing."""

    def found(text: str) -> dict[str, str]:
        if not path.endswith(".py"):
            every = [(one["name"], one[0]) for defined in _DEFINED for one in defined.finditer(text)]
            return dict([*every, *((f"{name}()", body) for name, body in every if _CHECKS.search(body))])
        try:
            body = read_python(text).body
        except Unreadable:
            return {}
        tables = {
            target.id: ast.dump(one.value)
            for one in body
            if isinstance(one, ast.Assign)
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        within = (each for one in body for each in (one.body if isinstance(one, ast.ClassDef) else [one]))
        functions = [one for one in within if isinstance(one, ast.FunctionDef)]
        for one in functions:
            one.body = one.body[ast.get_docstring(one) is not None :]
        checking = {f"{one.name}()": ast.dump(one) for one in functions if _checks(one)}
        return {**tables, **checking, **{one.name: ast.dump(one) for one in functions}}

    now = found(after)
    return frozenset(name for name, body in found(before).items() if now.get(name) != body)


def _checks(function: ast.FunctionDef) -> bool:
    nodes = list(ast.walk(function))
    answers = any(isinstance(one, ast.Return | ast.Yield) and one.value is not None for one in nodes)
    return not answers and any(isinstance(one, ast.Assert) for one in nodes)


_CHECKS = re.compile(r"\A(?![\s\S]*\breturn\s)[\s\S]*\b(?:assert(?:\.\w+)?|expect)\(")
_DEFINED = [
    re.compile(
        r"^(?:export\s+)?(?:async\s+)?(?:function\s+|func\s+|const\s+|exports\.)(?P<name>\w+)[^\n]*"
        r"(?:\n(?:[ \t][^\n]*)?)*(?:\n[})][^\n]*)?",
        re.MULTILINE,
    ),
    re.compile(r"^(?P<by>[ \t]+)(?P<name>\w+)\([^\n]*\{\n(?:(?P=by)[ \t][^\n]*\n|\n)*", re.MULTILINE),
]
"""A function of Go or JavaScript, to the end of its lines, or a method."""
