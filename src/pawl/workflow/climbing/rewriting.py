"""A function in a Python file, and the file with another in its place: for models that write code better than calls."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A function of a file, by its lines, from 1; the last is part of it."""

    path: str
    name: str
    first: int
    last: int
    indent: int


def holding(places: Sequence[Place], line: int) -> Place | None:
    """The one that holds the line."""
    return next((place for place in places if place.first <= line <= place.last), None)


def functions_of(path: str, source: str) -> tuple[Place, ...]:
    """The outermost functions and methods of a Python file; none where it cannot be read."""
    try:
        return tuple(_place(path, node) for node in _functions(ast.parse(source)))
    except (SyntaxError, ValueError):
        return ()


def text_of(place: Place, source: str) -> str:
    return textwrap.dedent("\n".join(source.splitlines()[place.first - 1 : place.last]))


def blocks_of(answer: str) -> tuple[str, ...]:
    """The code of an answer, block by block, and the whole for an answer that is nothing but code."""
    return (*_BLOCK.findall(answer), answer)


def rewritten(place: Place, source: str, answer: str) -> str | None:
    """The file with the function of the answer in the place of its own; None where the answer has no such function."""
    for code in blocks_of(answer):
        text = textwrap.dedent(code).strip("\n")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        found = next((node for node in _functions(tree) if node.name == place.name), None)
        if found is not None:
            return _replaced(place, source, text, tree, found)
    return None


def _replaced(place: Place, source: str, text: str, tree: ast.Module, found: _Function) -> str:
    written = text.splitlines()
    body = textwrap.dedent("\n".join(written[_first(found) - 1 : found.end_lineno]))
    # What the function needs beside itself and the file does not have yet: imports, and helpers of the answer.
    known = {node.name for node in ast.parse(source).body if isinstance(node, _Function | ast.ClassDef)}
    helpers = [
        "\n".join(written[_first(node) - 1 : node.end_lineno])
        for node in tree.body
        if isinstance(node, _Function) and node is not found and node.name not in known
    ]
    if place.indent == 0 and helpers:
        body = "\n\n\n".join((*helpers, body))
    lines = source.splitlines()
    made = [*lines[: place.first - 1], *textwrap.indent(body, " " * place.indent).splitlines(), *lines[place.last :]]
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    missing = [line for line in imports if line not in (one.strip() for one in lines)]
    at = _imports_at(source)
    made[at:at] = missing
    return "\n".join(made) + ("\n" if source.endswith("\n") or not source else "")


def _imports_at(source: str) -> int:
    """After the docstring and what must stand first."""
    at = 0
    for node in ast.parse(source).body:
        words = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if not words and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at = node.end_lineno or at
    return at


def _functions(tree: ast.Module) -> list[_Function]:
    """Of the module and of its classes."""
    found: list[_Function] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found += [inner for inner in node.body if isinstance(inner, _Function)]
        elif isinstance(node, _Function):
            found.append(node)
    return found


def _first(node: _Function) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _place(path: str, node: _Function) -> Place:
    return Place(
        path=path, name=node.name, first=_first(node), last=node.end_lineno or node.lineno, indent=node.col_offset
    )
