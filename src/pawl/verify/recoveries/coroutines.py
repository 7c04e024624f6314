"""Recoveries for coroutines: awaiting one, and making the function that awaits asynchronous."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pawl.verify.recoveries.edit import Candidate, Situation, Source, TextEdit


def add_await(situation: Situation) -> Iterator[Candidate]:
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


def _awaited(source: Source, tree: ast.Module, call: ast.Call, name: str) -> Candidate:
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
    return Candidate(why=f"{name} makes a coroutine, which must be awaited", edits=tuple(edits))


def _position(source: Source, line: int, column: int) -> int:
    """The tree counts columns in bytes."""
    return source.offset(line, len(source.line(line).encode()[:column].decode("utf-8", "ignore")))


def _asynchronous(source: Source, function: ast.FunctionDef) -> TextEdit:
    position = source.offset(function.lineno, function.col_offset)
    return source.edit(position, position, "async ")


def make_async(situation: Situation) -> Iterator[Candidate]:
    """`async` before the function that awaits."""
    source = situation.source
    function = source.function_around(situation.finding.line) if source else None
    if source is not None and isinstance(function, ast.FunctionDef):
        why = f"{function.name} awaits, so it must be asynchronous; its callers must await it"
        yield Candidate(why=why, edits=(_asynchronous(source, function),))
