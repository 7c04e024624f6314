"""Code that hides what it reaches for, or changes what is not its own: shown by its form, whatever names it uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from pawl.core.typed import Unreadable, read_python

_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "type", "id", "len", "repr", "hash"})


def disguises(path: str, before: str, after: str) -> Iterator[tuple[int, str]]:
    """The line and a word for each that is new in the file."""
    if not path.endswith(".py"):
        return
    try:
        known = Counter(what for _, what in _found(before))
        found = list(_found(after))
    except Unreadable:
        return
    for line, what in found:
        known[what] -= 1
        if known[what] < 0:
            yield line, what


def _found(text: str) -> Iterator[tuple[int, str]]:
    tree, may_empty = read_python(text), ".clear()" in text or "[:]" in text
    imported = list(_imported(tree))
    foreign = {name for name, is_standard, _ in imported if is_standard}
    others = foreign | {name for name, _, is_module in imported if is_module or re.match("[A-Z].*[a-z]", name)}
    yield from ((line, "changes files when it is imported") for line in _writes_when_loaded(tree))
    yield from ((one.lineno, f"depends on its environment ({ast.unparse(one)})") for one in _ambient(tree, foreign))
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets):
                for one in targets:
                    if isinstance(one, ast.Attribute) and _root(one) in others:
                        yield node.lineno, f"changes {ast.unparse(one)}, which belongs to another module"
            case ast.Call(func=ast.Name(id="setattr"), args=[whose, *_]) if _root(whose) in others:
                yield node.lineno, f"changes {ast.unparse(whose)}, which belongs to another module"
            case ast.FunctionDef(name="__eq__" | "__ne__") if not _compares(node):
                yield node.lineno, f"has a {node.name} that compares nothing"
            case ast.FunctionDef(name=name) if name in _ANSWERING and not _looks_at_all(node):
                yield node.lineno, f"has a {name} that gives the same answer for everything"
            case ast.FunctionDef(name=name) if may_empty and _EMPTIES.search(ast.unparse(node)):
                yield node.lineno, f"empties what {name} is given"


_EMPTIES = re.compile(
    r"\Adef \w+\([^\n]{0,300}?\b(?!self\b|cls\b|out\b)(?P<given>\w+)\b[^\n]*\n(?=[\s\S]*\breturn )[\s\S]*?"
    r"^ +(?:(?:del )?(?P=given)\[:\](?: =|$)|(?P=given)\.clear\(\))",
    re.MULTILINE,
)


def _writes_when_loaded(tree: ast.Module) -> Iterator[int]:
    """The lines that change files when the module is imported, not when something of it is called."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        is_main = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
        if is_main or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        waiting += ast.iter_child_nodes(node)
        name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        if name in _WRITING or (name == "open" and _OPENS.match(ast.unparse(node))):
            yield node.lineno  # type: ignore[attr-defined]


_OPENS = re.compile(r"(?:.*\.)?open\((?:.*, )?(?:mode=)?'[rbt]?[wax+][bt+]*'")
_WRITING = frozenset({"write_text", "write_bytes", "unlink", "rmtree", "copyfile", "symlink_to", "truncate"})


def _imported(tree: ast.Module) -> Iterator[tuple[str, bool, bool]]:
    """The names that are imported: whether they are of the standard library, and whether they are modules."""
    from sys import stdlib_module_names

    for node in ast.walk(tree):
        for one in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            whence = (getattr(node, "module", one.name) or "").partition(".")[0]
            name = one.asname or one.name.partition(".")[0]
            yield name, whence in stdlib_module_names, isinstance(node, ast.Import)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


_ANSWERING = frozenset(
    {
        "__new__",
        "__contains__",
        "endswith",
        "startswith",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__sub__",
        "__rsub__",
        "__abs__",
        "__round__",
    }
    | {"__instancecheck__", "__subclasscheck__", "__mod__", "__float__"}
)
"""What a test may ask of a value instead of whether it is equal."""


def _looks_at_all(function: ast.FunctionDef) -> bool:
    """Whether its answer depends on everything that it is given, or there is none."""
    makes = function.name == "__new__"
    if makes and not any(
        isinstance(one, ast.Return) and isinstance(one.value, ast.Attribute) for one in ast.walk(function)
    ):
        return True
    given = {one.arg for one in (*function.args.args, function.args.vararg, function.args.kwarg) if one is not None}
    given -= {"cls"} if given - {"cls"} else set()
    used = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    refuses = any(isinstance(one, ast.Raise) for one in ast.walk(function)) or "NotImplemented" in used
    return refuses or given <= used or isinstance(function.body[-1], ast.Pass | ast.Expr)


def _ambient(tree: ast.Module, foreign: set[str]) -> Iterator[ast.expr]:
    """The conditions by which a function answers otherwise, and that hang on nothing that it is given.

    What the system is, and what the user has set in the environment, may decide.
    """
    kept = {one.id for node in tree.body for one in _made(node)}
    looks = {"__file__", "__debug__", *(one.id for node in tree.body for one in _looked_up(node, foreign))}
    probes = {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and _is_probe(one, foreign)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not function.args.args:
            continue
        defaults = zip(reversed(function.args.args), reversed(function.args.defaults), strict=False)
        stays = {one.arg for one, default in defaults if isinstance(default, ast.List | ast.Dict | ast.Set)}
        given = _given(function) - stays
        for node in ast.walk(function):
            answers = isinstance(node, ast.IfExp) or (
                isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return)
            )
            if not answers or re.search(_MAY_DECIDE, ast.unparse(node.test)):  # type: ignore[attr-defined]
                continue
            test: ast.expr = node.test  # type: ignore[attr-defined]
            names = {one.id for one in ast.walk(test) if isinstance(one, ast.Name)}
            calls = [one for one in ast.walk(test) if isinstance(one, ast.Call)]
            compares = any(isinstance(one, ast.Compare) for one in ast.walk(test))
            counts = names & (kept | stays) and (compares or "next" in names)
            asked = any(_root(one.func) in foreign or _root(one.func) in probes for one in calls)
            found = ast.walk(function if " None" not in ast.unparse(test) else test)
            here = {name.id for one in found for name in _looked_up(one, foreign, ast.Constant)}
            looked = names & (looks | here - given) or (names & {*foreign, function.name} and compares)
            if names.isdisjoint(given) and (asked or looked or (counts and calls)):
                yield test


_MAY_DECIDE = (
    r"version_info|\bplatform\b|os\.name|(?:environ|getenv)(?!\W+(?:get\W+)?(?:HOME|USER|LOGNAME|PWD|TMPDIR|SHLVL|_)\b)|os\.supports_|TYPE_CHECKING|which\(|find_spec|isEnabledFor|"
    r"sys\.implementation"
)


def _looked_up(node: ast.AST, foreign: set[str], but: type[ast.expr] = ast.Call) -> Iterator[ast.Name]:
    """The names for what code found around it: in a module no objects that are made, and nothing that may decide."""
    if isinstance(node, ast.Assign) and not isinstance(node.value, but):
        used = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
        if used & {*foreign, "__file__", "__debug__"} and not re.search(_MAY_DECIDE, ast.unparse(node.value)):
            yield from (one for one in node.targets if isinstance(one, ast.Name))


def _made(node: ast.stmt) -> Iterator[ast.Name]:
    """The names of a module that hold what may change."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Dict | ast.Set | ast.Call):
        yield from (one for one in node.targets if isinstance(one, ast.Name))


def _is_probe(function: ast.FunctionDef, foreign: set[str]) -> bool:
    """Whether it is given nothing and looks around."""
    names = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    tries = any(isinstance(one, ast.Try) for one in ast.walk(function))
    return not function.args.args and (bool(names & foreign) or tries)


def _given(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
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
