"""The sources of a repair: their texts and edits of them, the names that a project defines, those that the user points
at, and which failing tests can have to do with them.
"""

from __future__ import annotations

import ast
import difflib
import functools
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pawl.code.import_map import Resolver, python_imports
from pawl.code.languages import is_test
from pawl.core.diagnostic import Diagnostic
from pawl.core.errors import UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, data_table, read_python

N = TypeVar("N", bound=ast.stmt)


def table(name: str) -> Mapping[str, Any]:
    """A table that comes with the recoveries."""
    return data_table("pawl.repair", f"recoveries/{name}.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryEdit:
    """The characters from `start` up to `end` of a file's text give way to `new`."""

    path: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCandidate:
    """One thing that could be done; without edits it is advice to a person."""

    why: str
    edits: tuple[RecoveryEdit, ...] = ()
    recovery: str = ""
    """The map's entry that led here."""
    is_choice: bool = False
    """Another candidate of the same kind may be meant as well, and only what verification says can tell."""

    def applied(self, sources: Mapping[str, str]) -> dict[str, str]:
        """The texts of the files that the candidate changes, changed."""
        changed: dict[str, str] = {}
        for edit in sorted(self.edits, key=lambda edit: (edit.path, -edit.start)):
            text = changed.get(edit.path, sources[edit.path])
            changed[edit.path] = text[: edit.start] + edit.new + text[edit.end :]
        return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySituation:
    """The finding, the names in its message, the sources and the project's symbols: all that a recovery sees."""

    finding: Diagnostic
    groups: Mapping[str, str]
    """The named groups of the pattern that were found in the message."""
    sources: Mapping[str, str]
    symbols: Symbols
    advice: str = ""
    declared: frozenset[str] = frozenset()
    """The packages that the project says it needs."""

    @property
    def source(self) -> PythonSource:
        """The file of the finding, empty where its text is not known."""
        return PythonSource(self.finding.path, self.sources.get(self.finding.path, ""))


class PythonSource:
    """A Python file's text, by lines, words and syntax tree."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self._offsets = [0]
        for line in self.lines:
            self._offsets.append(self._offsets[-1] + len(line))

    def line(self, number: int) -> str:
        """A line without its end, counted from 1; empty when there is none."""
        return self.lines[number - 1].rstrip("\r\n") if 0 < number <= len(self.lines) else ""

    def offset(self, number: int, column: int = 0) -> int:
        return self._offsets[min(max(number - 1, 0), len(self.lines))] + column

    def indentation(self, number: int) -> str:
        line = self.line(number)
        return line[: len(line) - len(line.lstrip())]

    def tree(self) -> ast.Module:
        """The syntax tree, empty where the text cannot be parsed."""
        try:
            tree: ast.Module = read_python(self.text)
        except Unreadable:
            return ast.Module(body=[], type_ignores=[])
        return tree

    def edit(self, start: int, end: int, new: str) -> RecoveryEdit:
        return RecoveryEdit(path=self.path, start=start, end=end, new=new)

    def exchanged(self, start: int, end: int, new: str, why: str) -> RecoveryCandidate:
        return RecoveryCandidate(why=why, edits=(self.edit(start, end, new),))

    def inserted(self, position: int, new: str, why: str) -> RecoveryCandidate:
        return self.exchanged(position, position, new, why)

    def replace_line(self, number: int, new: str) -> RecoveryEdit:
        start = self.offset(number)
        return self.edit(start, start + len(self.line(number)), new)

    def words(self, word: str, first: int, last: int | None = None) -> Iterator[int]:
        """Where a word stands in these lines, outside of strings and comments."""
        skipped = self._quoted()
        start, end = self.offset(first), self.offset((last or first) + 1)
        for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", self.text[start:end]):
            position = start + match.start()
            if not any(begin <= position < finish for begin, finish in skipped):
                yield position

    def _quoted(self) -> list[tuple[int, int]]:
        """The spans of strings and comments, as far as the text can be split into tokens."""
        spans = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type in (tokenize.STRING, tokenize.COMMENT):
                    spans.append((self.offset(*token.start), self.offset(*token.end)))
        except (tokenize.TokenError, SyntaxError):
            return spans
        return spans

    def statement(self, number: int) -> tuple[int, int]:
        """The first and the last line of the smallest statement around a line."""
        spans = [(node.lineno, node.end_lineno or node.lineno) for node in self._around(number, ast.stmt)]
        return min(spans, key=lambda span: span[1] - span[0], default=(number, number))

    def _around(self, number: int, kind: type[N]) -> list[N]:
        """The nodes of a kind that hold the line."""
        nodes = [node for node in ast.walk(self.tree()) if isinstance(node, kind)]
        return [node for node in nodes if node.lineno <= number <= (node.end_lineno or node.lineno)]

    def function_around(self, number: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function that holds the line."""
        around: list[ast.FunctionDef | ast.AsyncFunctionDef] = [*self._around(number, ast.FunctionDef)]
        around += self._around(number, ast.AsyncFunctionDef)
        return max(around, key=lambda node: node.lineno, default=None)

    def class_around(self, number: int) -> str:
        """The outermost class that holds the line; empty where none does."""
        return next((node.name for node in self._around(number, ast.ClassDef)), "")


def renamed(situation: RecoverySituation, old: str, meant: Iterable[str], why: str) -> Iterator[RecoveryCandidate]:
    """The word on the finding's line, or in its statement, under each of the other names."""
    source = situation.source
    line = situation.finding.line
    positions = list(source.words(old, line)) or list(source.words(old, *source.statement(line)))
    for name in dict.fromkeys(meant):
        if positions and name != old:
            edits = tuple(source.edit(position, position + len(old), name) for position in positions)
            yield RecoveryCandidate(why=why.format(old=old, new=name), edits=edits)


_SOURCE_FOLDERS = ("src/", "lib/", "python/")
_CLOSE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDefinition:
    name: str
    path: str
    module: str
    line: int
    kind: str
    """function, async function, class, variable or attribute."""
    owner: str = ""
    """The class around it."""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Symbols:
    definitions: tuple[ProjectDefinition, ...] = ()
    modules: frozenset[str] = frozenset()

    def importable(self, name: str) -> list[ProjectDefinition]:
        """Module-level definitions of that name."""
        return [known for known in self.definitions if known.name == name and not known.owner]

    def in_module(self, module: str) -> list[str]:
        return [known.name for known in self.definitions if known.module == module and not known.owner]

    def attributes(self, owner: str) -> list[str]:
        return [known.name for known in self.definitions if known.owner == owner]

    def functions(self, name: str, owner: str = "") -> list[ProjectDefinition]:
        """Functions of that name; a class stands for its `__init__`."""
        if name == "__init__" and owner:
            return [known for known in self.definitions if known.owner == owner and known.name == name]
        found = [known for known in self.definitions if known.name == name and "function" in known.kind]
        inside = [known for known in found if known.owner == owner]
        return inside or found


def symbols_of(sources: Mapping[str, str]) -> Symbols:
    """Definitions in Python files; a file that cannot be parsed counts as a module without names."""
    definitions: list[ProjectDefinition] = []
    modules: set[str] = set()
    for path, text in sources.items():
        if path.endswith(".py"):
            module = module_of(path)
            parts = module.split(".")
            modules |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            try:
                tree = read_python(text)
            except Unreadable:
                continue
            definitions += _defined(tree.body, path, module, "")
    return Symbols(tuple(definitions), frozenset(modules))


def module_of(path: str) -> str:
    """The name under which a file is imported; common source folders are not part of it."""
    for folder in _SOURCE_FOLDERS:
        path = path.removeprefix(folder)
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _defined(body: Iterable[ast.stmt], path: str, module: str, owner: str) -> Iterator[ProjectDefinition]:
    def known(name: str, node: ast.AST, kind: str, parameters: tuple[str, ...] = ()) -> ProjectDefinition:
        line = getattr(node, "lineno", 0)
        return ProjectDefinition(
            name=name, path=path, module=module, line=line, kind=kind, owner=owner, parameters=parameters
        )

    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "function" if isinstance(node, ast.FunctionDef) else "async function"
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield known(node.name, node, kind, tuple(each.arg for each in given))
            if owner:
                yield from _set_on_self(node, path, module, owner)
        elif isinstance(node, ast.ClassDef):
            yield known(node.name, node, "class")
            yield from _defined(node.body, path, module, node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            yield from (known(name, node, "variable") for name in bound)
        elif isinstance(node, ast.If | ast.Try):
            yield from _defined([*node.body, *node.orelse], path, module, owner)


def _set_on_self(
    function: ast.FunctionDef | ast.AsyncFunctionDef, path: str, module: str, owner: str
) -> Iterator[ProjectDefinition]:
    """Attributes that a method gives to its object."""
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            yield ProjectDefinition(
                name=node.attr, path=path, module=module, line=node.lineno, kind="attribute", owner=owner
            )


def close(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Names that could be meant by a misspelt one, the closest first."""
    names = [other for other in dict.fromkeys(known) if other != name]
    same = [other for other in names if other.lower() == name.lower()]
    return list(dict.fromkeys([*same, *difflib.get_close_matches(name, names, n=most, cutoff=_CLOSE)]))


def reaching(findings: Sequence[Diagnostic], targets: Sequence[str], sources: Mapping[str, str]) -> list[Diagnostic]:
    """The failing tests whose traceback or file leads to one of the targets; all where none does, or none is given."""
    if not targets:
        return list(findings)
    resolver = Resolver(sources)

    def beside(path: str, name: str) -> list[str]:
        """The files of this name in the folders above."""
        return [one for folder in PurePosixPath(path).parents if (one := str(folder / name)) in sources]

    @functools.cache
    def imported(path: str) -> list[str]:
        named = python_imports(sources.get(path, ""))
        found = [target for module, names in named for target in resolver.targets(path, module, names)]
        return [*found, *(package for target in found for package in beside(target, "__init__.py"))]

    @functools.cache
    def leads(file: str) -> bool:
        return not file or not set(targets).isdisjoint(reached((file, *beside(file, "conftest.py")), imported))

    def concerned(finding: Diagnostic) -> bool:
        named = {finding.path, *(place.path for place in finding.frames)}
        return not named.isdisjoint(targets) or leads(test_file(finding, sources))

    return list(filter(concerned, findings)) or list(findings)


def reached(starts: Iterable[str], imported: Callable[[str], Iterable[str]]) -> list[str]:
    """These files and all that they import, directly or not, the nearest first."""
    seen = dict.fromkeys(starts)
    waiting = list(seen)
    while waiting:
        for target in imported(waiting.pop(0)):
            if target not in seen:
                seen[target] = None
                waiting.append(target)
    return list(seen)


def test_file(finding: Diagnostic, sources: Mapping[str, str]) -> str:
    """The file of a failing test; unittest names its module instead. Empty when it cannot be told."""
    path = finding.test.split("::")[0]
    if path in sources:
        return path
    modules = {module_of(source): source for source in sources}
    parts = finding.test.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in modules:
            return modules[".".join(parts[:length])]
    return finding.frames[0].path if finding.frames else ""


_PARTS = "::"
"""Stands between a test file and a test in it."""


@dataclass(frozen=True, slots=True)
class FixTarget:
    sources: tuple[str, ...] = ()
    """Files that may be edited; empty for all."""
    tests: tuple[str, ...] = ()
    """Files, folders or ids of tests that are to pass; empty for all."""

    def wants(self, finding: Diagnostic) -> bool:
        return not self.tests or any(_belongs(finding, test) for test in self.tests)


def aim_at(targets: Sequence[str], files: Iterable[str], read: Callable[[str], bytes]) -> FixTarget:
    """The targets as sources and tests; `UsageError` for one that is neither, or names a test that is not there."""
    known = tuple(files) if targets else ()
    sources: list[str] = []
    tests: list[str] = []
    for target in targets:
        path = target.partition(_PARTS)[0]
        python = [name for name in files_of(path, known) if name.endswith(".py")]
        if not python:
            raise UsageError(f"{path!r} holds no Python", advice="name sources that may be edited, or tests")
        editable = [name for name in python if not is_test(name)]
        if editable and _PARTS not in target:
            sources += editable
        else:
            _check_name(target, read)
            tests.append(target)
    return FixTarget(tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(tests)))


def files_of(path: str, known: Sequence[str]) -> list[str]:
    """The file itself or those of the folder; `UsageError` where there is none."""
    inside = [name for name in known if name == path or name.startswith(f"{path}/")]
    if not inside:
        raise UsageError(f"there is no {path!r} in the workspace", advice=_similar(path, known))
    return inside


def _check_name(target: str, read: Callable[[str], bytes]) -> None:
    """Refuses a test's id that names nothing in its file; what a file or a class may get from elsewhere is let pass."""
    path, *names = target.partition("[")[0].split(_PARTS)
    try:
        body: list[ast.stmt] = read_python(read(path)).body if names else []
    except Unreadable:
        return
    for name in names:
        nodes = [node for statement in body for node in ast.walk(statement)]
        named = [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
        found = next((node for node in named if node.name == name), None)
        if found is None:
            imported = any(
                alias.name == "*" or (alias.asname or alias.name) == name
                for node in nodes
                if isinstance(node, ast.ImportFrom | ast.Import)
                for alias in node.names
            )
            if imported:
                return
            close = difflib.get_close_matches(name, [node.name for node in named], n=1)
            advice = f"did you mean {close[0]!r}?" if close else "name a test as the list of failing ones does"
            raise UsageError(f"there is no test {name!r} in {path!r}", advice=advice)
        if isinstance(found, ast.ClassDef) and found.bases:
            return
        body = list(found.body)


def _similar(path: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(path, known, n=1) or [
        name for name in known if PurePosixPath(name).name == PurePosixPath(path).name
    ]
    return f"did you mean {close[0]!r}?" if close else "name an existing file or folder that git does not ignore"


def _belongs(finding: Diagnostic, target: str) -> bool:
    """By the test's id; unittest names a module instead of its file, so there the traceback tells."""
    if finding.test == target or finding.test.startswith((f"{target}::", f"{target}[", f"{target}/")):
        return True
    if _PARTS in finding.test or _PARTS in target:
        return False
    outermost = finding.frames[0].path if finding.frames else finding.path
    return outermost == target or outermost.startswith(f"{target}/")
