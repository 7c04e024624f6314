"""The names that a project defines: where, with which parameters, and inside of which class."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pawl.core.formats import Unreadable, read_python

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
    """What Python files define; a file that cannot be parsed counts as a module without names."""
    definitions: list[ProjectDefinition] = []
    modules: set[str] = set()
    for path, text in sources.items():
        if path.endswith(".py"):
            module = module_of(path)
            modules |= {module, *_parents(module)}
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


def _parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    for length in range(1, len(parts)):
        yield ".".join(parts[:length])


def _defined(body: Iterable[ast.stmt], path: str, module: str, owner: str) -> Iterator[ProjectDefinition]:
    def known(name: str, node: ast.AST, kind: str, parameters: tuple[str, ...] = ()) -> ProjectDefinition:
        line = getattr(node, "lineno", 0)
        return ProjectDefinition(
            name=name, path=path, module=module, line=line, kind=kind, owner=owner, parameters=parameters
        )

    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "function" if isinstance(node, ast.FunctionDef) else "async function"
            yield known(node.name, node, kind, _parameters(node.args))
            if owner:
                yield from _set_on_self(node, path, module, owner)
        elif isinstance(node, ast.ClassDef):
            yield known(node.name, node, "class")
            yield from _defined(node.body, path, module, node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for name in _assigned(node):
                yield known(name, node, "variable")
        elif isinstance(node, ast.If | ast.Try):
            yield from _defined([*node.body, *node.orelse], path, module, owner)


def _assigned(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                yield name.id


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    return tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


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
