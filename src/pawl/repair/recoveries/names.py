"""Recoveries for names: one that was meant instead, on objects, in calls, or in another scope."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from pawl.repair.recoveries.edit import PythonSource, RecoveryCandidate, RecoveryEdit, RecoverySituation, renamed
from pawl.repair.recoveries.imports import add_import
from pawl.repair.recoveries.symbols import close

_OTHER_LANGUAGES = {
    "true": "True",
    "false": "False",
    "null": "None",
    "nil": "None",
    "undefined": "None",
    "this": "self",
    "xrange": "range",
    "unicode": "str",
    "raw_input": "input",
    "NaN": "float('nan')",
}


def define_name(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """What could define an unknown name, the likeliest first: a method's missing self, an import, another spelling."""
    name = situation.groups["name"]
    if name == "self":
        yield from self_parameter(situation)
        return
    meant = situation.groups.get("meant", "")
    if meant.startswith("self.") or name in _attributes_around(situation):
        yield from renamed(situation, name, [f"self.{name}"], "{old} is an attribute: {new}")
    if name in _OTHER_LANGUAGES:
        yield from renamed(situation, name, [_OTHER_LANGUAGES[name]], "in Python {old} is written {new}")
    imports = list(add_import(situation))
    spellings = list(_spelt_otherwise(situation, name, meant))
    # A short or lower-case name close to a local one is a slip; one that can be imported as it stands is not.
    yield from (*imports, *spellings)


def _spelt_otherwise(situation: RecoverySituation, name: str, meant: str) -> Iterator[RecoveryCandidate]:
    source = situation.source
    if source is None:
        return
    suggested = [meant] if meant and not meant.startswith("self.") else []
    names = [*_visible(source, situation.finding.line), *dir(builtins)]
    why = "{old} is not defined here, but {new} is"
    yield from renamed(situation, name, [*suggested, *close(name, names)], why)


def _visible(source: PythonSource, line: int) -> list[str]:
    """The names that are bound in the functions around a line and at the top of the module."""
    tree = source.tree()
    if tree is None:
        return []
    found: list[str] = []
    function = source.function_around(line)
    for scope in filter(None, (function, tree)):
        nodes = ast.walk(scope) if scope is function else tree.body
        for node in nodes:
            found += _bound(node)
    return list(dict.fromkeys(found))


def _bound(node: ast.AST) -> list[str]:
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return [name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
    return []


def _attributes_around(situation: RecoverySituation) -> list[str]:
    """The attributes of the class whose method holds the finding."""
    source = situation.source
    tree = source.tree() if source else None
    line = situation.finding.line
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return situation.symbols.attributes(node.name)
    return []


def self_parameter(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`self` as the first parameter of the method around the finding."""
    source = situation.source
    function = source.function_around(situation.finding.line) if source else None
    if source is not None and function is not None:
        yield from with_self(source, function.lineno, function.name)


def with_self(source: PythonSource, line: int, name: str) -> Iterator[RecoveryCandidate]:
    """The definition on that line, or below its decorators, with `self`."""
    for number in range(line, min(line + 20, len(source.lines) + 1)):
        match = re.match(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\s*\(\s*", source.line(number))
        if match:
            position = source.offset(number, match.end())
            alone = source.text[position : position + 1] == ")"
            new = "self" if alone else "self, "
            yield RecoveryCandidate(
                why=f"{name} is a method and takes self", edits=(source.edit(position, position, new),)
            )
            return


def add_self(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`self` for a method that was called with one argument more than it takes."""
    if int(situation.groups["given"]) != int(situation.groups["takes"]) + 1:
        return
    owner = situation.groups.get("owner", "").rpartition(".")[2]
    for definition in situation.symbols.functions(situation.groups["function"], owner):
        takes_self = definition.parameters[:1] in (("self",), ("cls",))
        text = situation.sources.get(definition.path)
        if definition.owner and not takes_self and text is not None:
            yield from with_self(PythonSource(definition.path, text), definition.line, definition.name)


def make_instance(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """An object of the class for a method that was called on the class itself."""
    source = situation.source
    owner = situation.groups.get("owner", r"[A-Z]\w*") or r"[A-Z]\w*"
    if source is None:
        return
    line = situation.finding.line
    match = re.search(rf"\b({owner})\.{situation.groups['function']}\s*\(", source.line(line))
    if match:
        position = source.offset(line, match.end(1))
        why = f"{match[1]} is a class: call the method on an object of it"
        yield RecoveryCandidate(why=why, edits=(source.edit(position, position, "()"),))


def rename_attribute(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Another attribute of the class or module that was meant."""
    groups = situation.groups
    name = groups["name"]
    owner = groups.get("owner") or groups.get("type") or ""
    known = situation.symbols.attributes(owner) if owner else []
    known += situation.symbols.in_module(groups["module"]) if groups.get("module") else []
    known += dir(getattr(builtins, owner, object)) if owner else []
    meant = [groups["meant"]] if groups.get("meant") else []
    yield from renamed(situation, name, [*meant, *close(name, known)], "there is no attribute {old}, but {new}")


def rename_keyword(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Another parameter of the function that was meant."""
    groups = situation.groups
    name = groups["name"]
    function = groups.get("function", "").rpartition(".")[2]
    owner = groups.get("owner", "")
    parameters = [
        parameter
        for definition in (situation.symbols.functions(function, owner) if function else situation.symbols.definitions)
        for parameter in definition.parameters
        if parameter not in ("self", "cls")
    ]
    meant = [groups["meant"]] if groups.get("meant") else []
    meant += close(name, parameters)
    source = situation.source
    if source is None:
        return
    first, last = source.statement(situation.finding.line)
    for position in source.words(name, first, last):
        if re.match(r"\s*=(?!=)", source.text[position + len(name) :]):
            for other in dict.fromkeys(meant):
                edit = source.edit(position, position + len(name), other)
                yield RecoveryCandidate(why=f"there is no parameter {name}, but {other}", edits=(edit,))


def declare_outer(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`nonlocal` or `global` for a name that is assigned in a function, but meant to be the one outside."""
    source = situation.source
    name = situation.groups["name"]
    function = source.function_around(situation.finding.line) if source else None
    tree = source.tree() if source else None
    if source is None or function is None or tree is None:
        return
    at_top = any(name in _bound(node) for node in tree.body)
    word = "global" if at_top else "nonlocal"
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if documented and len(body) > 1 else body[0]
    position = source.offset(first.lineno)
    new = f"{source.indentation(first.lineno)}{word} {name}\n"
    why = f"{name} is assigned in {function.name}, which hides the one outside"
    yield RecoveryCandidate(why=why, edits=(source.edit(position, position, new),))


def add_await(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`await` before each call on the finding's line that makes a coroutine."""
    source = situation.source
    tree = source.tree() if source else None
    if source is None or tree is None:
        return
    wanted = situation.groups.get("function")
    asynchronous = {known.name for known in situation.symbols.definitions if known.kind == "async function"}
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    first, last = source.statement(situation.finding.line)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and first <= node.lineno <= last and id(node) not in awaited:
            name = _called(node)
            if name == wanted if wanted else name in asynchronous:
                yield _awaited(source, tree, node, name)


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _awaited(source: PythonSource, tree: ast.Module, call: ast.Call, name: str) -> RecoveryCandidate:
    start = _position(source, call.lineno, call.col_offset)
    end = _position(source, call.end_lineno or call.lineno, call.end_col_offset or 0)
    tight = any(
        isinstance(node, ast.Attribute | ast.Subscript | ast.Call)
        and (node.value if not isinstance(node, ast.Call) else node.func) is call
        for node in ast.walk(tree)
    )
    opening, closing = ("(await ", ")") if tight else ("await ", "")
    edits = [source.edit(start, start, opening)]
    if closing:
        edits.append(source.edit(end, end, closing))
    function = source.function_around(call.lineno)
    if isinstance(function, ast.FunctionDef):
        edits.append(_asynchronous(source, function))
    return RecoveryCandidate(why=f"{name} makes a coroutine, which must be awaited", edits=tuple(edits))


def _position(source: PythonSource, line: int, column: int) -> int:
    """The tree counts columns in bytes."""
    return source.offset(line, len(source.line(line).encode()[:column].decode("utf-8", "ignore")))


def _asynchronous(source: PythonSource, function: ast.FunctionDef) -> RecoveryEdit:
    position = source.offset(function.lineno, function.col_offset)
    return source.edit(position, position, "async ")


def make_async(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`async` before the function that awaits."""
    source = situation.source
    function = source.function_around(situation.finding.line) if source else None
    if source is not None and isinstance(function, ast.FunctionDef):
        why = f"{function.name} awaits, so it must be asynchronous; its callers must await it"
        yield RecoveryCandidate(why=why, edits=(_asynchronous(source, function),))
