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
    yield from ((line, "changes files when it is loaded") for line in _writes_when_loaded(tree))
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Add(), left=ast.Constant(value=left), right=ast.Constant(value=right)):
                if type(left) is type(right) and isinstance(left, str | bytes) and _NAME.fullmatch(_text(left + right)):  # type: ignore[operator]
                    yield node.lineno, "puts a name together"
            case ast.Assign(targets=targets):
                for one in targets:
                    if isinstance(one, ast.Attribute) and _root(one) in foreign:
                        yield node.lineno, f"changes {ast.unparse(one)}, which is not its own"
            case ast.Compare(left=left, comparators=[right]) if _wears_off(left, right) or _wears_off(right, left):
                yield node.lineno, f"does otherwise after a while ({ast.unparse(node)})"
            case ast.FunctionDef(name="__eq__" | "__ne__") if not _compares(node):
                yield node.lineno, f"has a {node.name} that compares nothing"


def _writes_when_loaded(tree: ast.Module) -> Iterator[int]:
    """The lines that change files when the module is imported, not when something of it is called."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            modes = (
                one.value
                for one in (*node.args[1:2], *(each.value for each in node.keywords))
                if isinstance(one, ast.Constant)
            )
            opens = name == "open" and any(
                isinstance(one, str) and set(one) & set("wax+") and len(one) < 4 for one in modes
            )
            if name in _WRITING or opens:
                yield node.lineno


_WRITING = frozenset({"write_text", "write_bytes", "unlink", "rmtree", "copyfile", "symlink_to", "truncate"})


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


def _wears_off(asked: ast.expr, limit: ast.expr) -> bool:
    """Whether a number is held against the clock itself, or against how often something was called."""
    if not (isinstance(limit, ast.Constant) and isinstance(limit.value, int | float)):
        return False
    if isinstance(asked, ast.Attribute) and asked.attr == "year":
        asked = asked.value
    name = ast.unparse(asked.func).rpartition(".")[2] if isinstance(asked, ast.Call) else ""
    return name in _CLOCKS or name == "next"


_CLOCKS = frozenset({"time", "time_ns", "monotonic", "perf_counter", "process_time", "today", "now", "utcnow"})


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
