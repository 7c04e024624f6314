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
    modules = {name.asname or name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names}
    yield from ((line, "changes files when it is imported") for line in _writes_when_loaded(tree))
    yield from ((one.lineno, f"depends on its environment ({ast.unparse(one)})") for one in _ambient(tree, foreign))
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Add(), left=ast.Constant(value=left), right=ast.Constant(value=right)):
                if type(left) is type(right) and isinstance(left, str | bytes) and _NAME.fullmatch(_text(left + right)):  # type: ignore[operator]
                    yield node.lineno, "builds a name at run time"
            case ast.Assign(targets=targets):
                for one in targets:
                    if isinstance(one, ast.Attribute) and _root(one) in foreign | modules:
                        yield node.lineno, f"changes {ast.unparse(one)}, which belongs to another module"
            case ast.Compare(left=left, comparators=[right]) if _wears_off(left, right) or _wears_off(right, left):
                yield node.lineno, f"behaves differently after a while ({ast.unparse(node)})"
            case ast.FunctionDef(name="__eq__" | "__ne__") if not _compares(node):
                yield node.lineno, f"has a {node.name} that compares nothing"
            case ast.FunctionDef(name=name) if name in _ANSWERING and not _looks_at_all(node):
                yield node.lineno, f"has a {name} that gives the same answer for everything"


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


_ANSWERING = frozenset(
    {"__contains__", "__lt__", "__le__", "__gt__", "__ge__", "__sub__", "__rsub__", "__abs__", "__round__"}
    | {"__instancecheck__", "__subclasscheck__", "__mod__", "__float__"}
)
"""What a test may ask of a value instead of whether it is equal."""


def _looks_at_all(function: ast.FunctionDef) -> bool:
    """Whether its answer depends on everything that it is given, or there is none."""
    given = {one.arg for one in function.args.args[1:]} or {one.arg for one in function.args.args}
    used = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    refuses = any(isinstance(one, ast.Raise) for one in ast.walk(function)) or "NotImplemented" in used
    return refuses or given <= used or isinstance(function.body[-1], ast.Pass | ast.Expr)


def _ambient(tree: ast.Module, foreign: set[str]) -> Iterator[ast.expr]:
    """The conditions by which a function answers otherwise, and that hang on nothing that it is given.

    What the system is, and what the user has set in the environment, may decide.
    """
    kept = {one.id for node in tree.body for one in _made(node)}
    probes = {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and _is_probe(one, foreign)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or not function.args.args:
            continue
        given = _given(function)
        for node in ast.walk(function):
            answers = isinstance(node, ast.IfExp) or (
                isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return)
            )
            if not answers or re.search(_MAY_DECIDE, ast.unparse(node.test)):  # type: ignore[attr-defined]
                continue
            test: ast.expr = node.test  # type: ignore[attr-defined]
            names = {one.id for one in ast.walk(test) if isinstance(one, ast.Name)}
            calls = [one for one in ast.walk(test) if isinstance(one, ast.Call)]
            counts = names & kept and any(isinstance(one, ast.Compare) for one in ast.walk(test))
            asked = any(_root(one.func) in foreign or _root(one.func) in probes for one in calls)
            looked = names & foreign and any(isinstance(one, ast.Compare) for one in ast.walk(test))
            if names.isdisjoint(given) and (asked or looked or (counts and calls)):
                yield test


_MAY_DECIDE = (
    r"version_info|\bplatform\b|os\.name|environ|getenv|os\.supports_|TYPE_CHECKING|which\(|find_spec|isEnabledFor|"
    r"sys\.implementation"
)


def _made(node: ast.stmt) -> Iterator[ast.Name]:
    """The names of a module that hold what may change."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Dict | ast.Set | ast.Call):
        yield from (one for one in node.targets if isinstance(one, ast.Name))


def _is_probe(function: ast.FunctionDef, foreign: set[str]) -> bool:
    """Whether it is given nothing and looks around."""
    names = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    tries = any(isinstance(one, ast.Try) for one in ast.walk(function))
    return not function.args.args and (bool(names & foreign) or tries)


def _given(function: ast.FunctionDef) -> set[str]:
    """The names that come from what a function is given, whatever they went through."""
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    given = {one.arg for one in (*every, function.args.vararg, function.args.kwarg) if one is not None}
    known = -1
    while known < len(given):
        known = len(given)
        for node in ast.walk(function):
            if any(isinstance(one, ast.Name) and one.id in given for one in ast.walk(node)):
                given |= {one.id for one in _bound(node)}
    return given


def _bound(node: ast.AST) -> Iterator[ast.Name]:
    """The names that a statement binds, without those of its body."""
    match node:
        case ast.Assign(targets=targets):
            parts: list[ast.AST] = [*targets]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
            parts = [target]
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            parts = [target]
        case ast.withitem(optional_vars=ast.AST() as target):
            parts = [target]
        case _:
            parts = []
    yield from (one for part in parts for one in ast.walk(part) if isinstance(one, ast.Name))


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
