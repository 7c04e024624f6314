"""Code that hides what it reaches for, or changes what is not its own: shown by its form, whatever names it uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from pawl.core.typed import Unreadable, read_python

_NAME = re.compile(r"[\w.:/-]{3,40}")
_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "type", "id", "len", "repr", "hash"})


def disguises(path: str, before: str, after: str) -> Iterator[tuple[int, str]]:
    """The line and a word for each that is new in the file."""
    if not path.endswith(".py"):
        return
    try:
        known = Counter(what for _, what in _found(read_python(before)))
        found = list(_found(read_python(after)))
    except Unreadable:
        return
    for line, what in found:
        known[what] -= 1
        if known[what] < 0:
            yield line, what


def _found(tree: ast.Module) -> Iterator[tuple[int, str]]:
    foreign = set(_foreign(tree))
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Add(), left=ast.Constant(value=left), right=ast.Constant(value=right)):
                if type(left) is type(right) and isinstance(left, str | bytes) and _NAME.fullmatch(_text(left + right)):  # type: ignore[operator]
                    yield node.lineno, "puts a name together"
            case ast.Assign(targets=targets):
                for one in targets:
                    if isinstance(one, ast.Attribute) and _root(one) in foreign:
                        yield node.lineno, f"changes {ast.unparse(one)}, which is not its own"
            case ast.FunctionDef(name="__eq__" | "__ne__") if not _compares(node):
                yield node.lineno, f"has a {node.name} that compares nothing"


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("ascii", "replace")


def _foreign(tree: ast.Module) -> Iterator[str]:
    """Names of what the standard library has, modules and classes."""
    from sys import stdlib_module_names

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = (one for one in node.names if one.name.partition(".")[0] in stdlib_module_names)
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in stdlib_module_names:
            yield from (one.asname or one.name for one in node.names)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _compares(function: ast.FunctionDef) -> bool:
    """By an operator, or by a function that is given the other one and does more than ask for its kind."""
    other = function.args.args[1].arg if function.args.args[1:] else ""

    def compares(node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            return not isinstance(node.ops[0], ast.In | ast.NotIn)
        if not isinstance(node, ast.Call) or _root(node.func) in _ASKING:
            return False
        named = (one for part in (node.func, *node.args) for one in ast.walk(part))
        return any(isinstance(one, ast.Name) and one.id == other for one in named)

    return any(map(compares, ast.walk(function)))
