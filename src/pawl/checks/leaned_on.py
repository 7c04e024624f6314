"""What tests lean on in the product: functions that compare for them, and tables that they go through.

Who changes these changes what the tests expect, whatever the files are called.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

from pawl.core.typed import Unreadable, read_python

_OF_GO = re.compile(r"(?:^|[{;])[ \t]*(?:[a-z]\w*\.)?(\w+)\(\s*t\s*,", re.MULTILINE)
_OF_SCRIPT = re.compile(
    r"^[ \t]*(?:await\s+)?([A-Za-z_]\w*)\(\s*[A-Za-z_][\w.]*\([^;\n]{0,300}\)\s*,[^;\n]*\)\s*(?:;\s*)?$", re.MULTILINE
)
_SAME = re.compile(r"(?:is_?)?(?:equal|same|identical|near|close|eq$)", re.IGNORECASE)
_HELD = re.compile(
    r"\.to[A-Z]\w*\(\s*([A-Z][A-Z0-9_]+)\s*\)|\bassert[.\w]*\([^;\n]*\),\s*([A-Z][A-Z0-9_]+)\s*\)|"
    r"\)\.((?:is)?(?:[eE]quals?|[sS]ame)\w*)\(|"
    r"\bassert[.\w]*\(\s*[a-z]\w*\([^;\n]*\),\s*([a-z]\w*)\(|\bexpect\(\s*[a-z]\w*\([^;\n]*\)\)\.to\w+\(\s*([a-z]\w*)\("
)
"""What a result is held against in JavaScript, and methods that compare it."""
_CALLED = re.compile(r"(?:^|=>|\{)\s*(?:await\s+)?(\w+)\(", re.MULTILINE)
_OWN = frozenset({"assert", "expect", "test", "it", "describe"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def leaned_on(path: str, text: str, name: str) -> frozenset[str]:
    """The names of the functions, tables and classes that a test of the file leans on; without a name, its fixtures."""
    if not path.endswith(".py"):
        named = (one for found in _HELD.findall(text) for one in found if one)
        called = (f"{one}()" for one in _CALLED.findall(text))
        return frozenset((_OF_GO if path.endswith(".go") else _OF_SCRIPT).findall(text)).union(named, called) - _OWN
    try:
        tree = read_python(text)
    except Unreadable:
        return frozenset()
    if not name:
        return frozenset(_gone_through(tree))
    functions = [one for one in ast.walk(tree) if isinstance(one, _FUNCTIONS) and one.name == name]
    cases = (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and not {*one.body}.isdisjoint(functions))
    bases = (f"class {ast.unparse(base).rpartition('.')[2]}" for one in cases for base in one.bases)
    return frozenset(bases).union(*({*_comparing(one), *_gone_through(one)} - _own(one) for one in functions))


def _own(test: ast.AST) -> set[str]:
    names = {one.id for one in ast.walk(test) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return names | {one.arg for one in ast.walk(test) if isinstance(one, ast.arg)}


def _comparing(test: ast.AST) -> Iterator[str]:
    """What the result of another is held against, and functions whose word is taken for it that it is right."""
    for node in ast.walk(test):
        said = node.test if isinstance(node, ast.Assert) else node.value if isinstance(node, ast.Expr) else None
        if isinstance(node, ast.Expr) and isinstance(said, ast.Call):
            yield f"{ast.unparse(said.func).rpartition('.')[2]}()"
        asserts = isinstance(said, ast.Call) and "assert" in ast.unparse(said.func)
        held = [said.left, *said.comparators] if isinstance(said, ast.Compare) else said.args if asserts else ()  # type: ignore[union-attr]
        if held and isinstance(held[0], ast.Call):
            yield from _holding(ast.unparse(held[0].func), held[1:])
        if isinstance(said, ast.Call) and isinstance(said.func, ast.Attribute) and _SAME.match(said.func.attr):
            yield said.func.attr
        if isinstance(said, ast.Call) and isinstance(said.func, ast.Name) and said.args[1:]:
            calls = [isinstance(one, ast.Call) for one in said.args]
            if any(calls) and not all(calls):
                yield said.func.id


def _holding(function: str, others: Iterable[ast.expr]) -> Iterator[str]:
    """What the result of the function is held against: a value, or the result of another one, where it makes none."""
    for node in (each for other in others for each in ast.walk(other)):
        if isinstance(node, ast.Call) and re.match(r"_*[a-z]\w*$", function) and not hasattr(builtins, function):
            yield from {ast.unparse(node.func)} - {function}
        elif isinstance(node, ast.Name) and (node in others or node.id.isupper()):
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr.isupper():
            yield node.attr


def _gone_through(test: ast.AST) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("parametrize", "fixture")):
            cases = [*node.args[1:2], *(one.value for one in node.keywords if one.arg in ("argvalues", "params"))]
            yield from (each.id for one in cases for each in ast.walk(one) if isinstance(each, ast.Name))
        elif isinstance(node, ast.For):
            called = {ast.unparse(each.func) for each in ast.walk(node.iter) if isinstance(each, ast.Call)}
            names = (each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name))
            yield from (name for name in names if name not in called)


def changed_checks(path: str, before: str, after: str) -> list[str]:
    """The functions with which tests check or are prepared, and which are not as they were."""
    return [name for name, was in changed_definitions(path, before, after).items() if _SERVING.search(f"{name} {was}")]


_SERVING = re.compile(
    r"\A(?:(?:assert|expect|pytest_)\w* (?:Async)?FunctionDef|(?:assert|expect)[A-Z]\w* (?!\w+\()|"
    r"\w+ (?:Async)?FunctionDef.*(?:decorator_list=\[.*'fixture'|attr='assert[A-Z]))"
)
"""A name and what it stood for: functions of Python by their name, as fixtures or by the checks that they call."""


def changed_definitions(path: str, before: str, after: str) -> dict[str, str]:
    """What was defined in a file and is not as it was, with what it was: functions, methods included, classes and
    values; `name()` is a function that checks something and answers nothing."""

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
        functions = [one for one in within if isinstance(one, _FUNCTIONS)]
        for one in functions:
            one.body = one.body[ast.get_docstring(one) is not None :]
        known = {one.name: ast.dump(one) for one in functions}
        checking = {f"{name}()": was for name, was in known.items() if _CHECKS_PYTHON.match(was)}
        bases = {f"class {one.name}": ast.dump(one) for one in body if isinstance(one, ast.ClassDef)}
        return {**tables, **checking, **bases, **known}

    now = found(after)
    return {name: body for name, body in found(before).items() if now.get(name) != body}


_CHECKS_PYTHON = re.compile(r"(?!.*\b(?:Return|Yield)\(value=).*\bAssert\(")
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
