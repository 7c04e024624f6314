"""Functions of files by their lines, and the text of one written anew in its place."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence

from pawl.code.code_model import Definition, DefinitionKind
from pawl.code.languages import language_of
from pawl.code.parsers import Parsers
from pawl.core.errors import PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, read_python
from pawl.workspace.bench_files import Files

_BLOCK = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})
_NEEDED = frozenset({DefinitionKind.FUNCTION, DefinitionKind.VARIABLE, DefinitionKind.CLASS})
_EXPORTED = re.compile(r"export\s+(?:default\s+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlace:
    """A function of a file, by its lines, from 1; the last is part of it."""

    path: str
    name: str
    first: int
    last: int
    indent: int


def holding(places: Sequence[FunctionPlace], line: int) -> FunctionPlace | None:
    """The one that holds the line."""
    return next((place for place in places if place.first <= line <= place.last), None)


def text_of(place: FunctionPlace, source: str) -> str:
    return _dedented(source, place.first, place.last)


def head_of(place: FunctionPlace, source: str) -> str:
    """The function as `text_of` gives it, with three dots in the place of what it does; its docstring stays."""
    text = text_of(place, source)
    lines = text.splitlines()
    if place.path.endswith(".py"):
        return "\n".join((*lines[: _python_head(text)], "    ..."))
    kept = next((at for at, line in enumerate(lines, 1) if line.rstrip().endswith(("{", "=>"))), 1)
    return "\n".join((*lines[:kept], "  // ...", *lines[kept:][-1:]))


def with_function(place: FunctionPlace, source: str, text: str) -> str:
    """The file with another text in the place of the function."""
    lines = source.splitlines()
    made = [*lines[: place.first - 1], *textwrap.indent(text, " " * place.indent).splitlines(), *lines[place.last :]]
    return "\n".join(made) + ("\n" if source.endswith("\n") else "")


def _python_head(text: str) -> int:
    """How many lines there are before the body of the function, with its docstring."""
    try:
        node = read_python(text).body[0]
    except Unreadable:
        return 1
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return 1
    first = node.body[0]
    return first.end_lineno or 1 if ast.get_docstring(node) is not None else first.lineno - 1


class Sources:
    """The files of a bench in the languages that are known: their functions, and one of them written anew."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._parsers = Parsers()

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        self._parsers.close()

    def text(self, path: str) -> str:
        try:
            return self._files.read(path).decode("utf-8")
        except (PawlError, OSError, UnicodeDecodeError):
            return ""

    def language(self, path: str) -> str:
        found = language_of(path)
        return found.name if found is not None else ""

    def functions(self, path: str) -> tuple[FunctionPlace, ...]:
        """The outermost functions and methods that have their lines for themselves."""
        source = self.text(path)
        lines = source.splitlines()
        found: list[FunctionPlace] = []
        for one in self._definitions(path, source):
            if one.kind not in _FUNCTIONS or (found and one.start <= found[-1].last):
                continue
            text = lines[one.line - 1]
            if text.strip().startswith(one.signature.split(maxsplit=1)[0]):
                indent = len(text) - len(text.lstrip())
                found.append(FunctionPlace(path=path, name=one.name, first=one.start, last=one.end, indent=indent))
        return tuple(found)

    def tests(self, path: str) -> tuple[Definition, ...]:
        """The tests of a file of tests, by function or by title."""
        return tuple(
            one
            for one in self._definitions(path, self.text(path))
            if one.kind is DefinitionKind.TEST or (one.kind in _FUNCTIONS and one.name.lower().startswith("test"))
        )

    def names(self, path: str, text: str) -> frozenset[str]:
        """The functions, methods and classes that a text in the language of the path defines."""
        kinds = (*_FUNCTIONS, DefinitionKind.CLASS)
        return frozenset(one.name for one in self._definitions(path, text) if one.kind in kinds)

    def rewritten(self, place: FunctionPlace, answer: str) -> str | None:
        """The file with the answer's function in the place of its own; None where the answer has no such function.

        What the function needs beside itself and the file does not have yet comes with it: helpers of the answer, and
        in Python its imports.
        """
        source = self.text(place.path)
        # An answer may also be nothing but code.
        for code in (*_BLOCK.findall(answer), answer):
            text = textwrap.dedent(code).strip("\n")
            try:
                body = read_python(text).body if place.path.endswith(".py") else []
                imports = [ast.unparse(one) for one in body if isinstance(one, ast.Import | ast.ImportFrom)]
            except Unreadable:
                continue
            every = self._definitions(place.path, text)
            found = next((one for one in every if one.kind in _FUNCTIONS and one.name == place.name), None)
            if found is not None:
                body = self._body(place, source, text, found, every)
                return _with_imports(with_function(place, source, body), imports)
        return None

    def _body(
        self, place: FunctionPlace, source: str, text: str, found: Definition, every: Sequence[Definition]
    ) -> str:
        body = _dedented(text, found.start, found.end)
        if not place.path.endswith(".py"):
            body = _like(source.splitlines()[place.first - 1 : place.last], body)
        if place.indent:
            return body
        known = {one.name for one in self._definitions(place.path, source)}
        helpers = [
            _dedented(text, one.start, one.end)
            for one in every
            if one.depth == 0 and one.kind in _NEEDED and one.name not in known and _names(body, one.name)
        ]
        gap = "\n\n\n" if place.path.endswith(".py") else "\n\n"
        return gap.join((*helpers, body))

    def _definitions(self, path: str, text: str) -> Sequence[Definition]:
        language = language_of(path)
        return () if language is None else self._parsers.parse(text.encode(), language).definitions


def _like(old: Sequence[str], body: str) -> str:
    """The text exported and ended as that in whose place it comes."""
    exported = _EXPORTED.match(old[0].strip())
    if exported and not _EXPORTED.match(body):
        body = exported.group() + body
    return f"{body}," if old[-1].rstrip().endswith(",") and not body.endswith(",") else body


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def _dedented(text: str, first: int, last: int) -> str:
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : last]))


def _with_imports(source: str, imports: Sequence[str]) -> str:
    """The Python file with those of the imports that it lacks, after its docstring and what must stand first."""
    lines = source.split("\n")
    missing = [line for line in imports if line not in (one.strip() for one in lines)]
    if not missing:
        return source
    at = 0
    for node in read_python(source).body:
        words = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if not words and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at = node.end_lineno or at
    return "\n".join((*lines[:at], *missing, *lines[at:]))
