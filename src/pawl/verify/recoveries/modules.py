"""A module that cannot be found: misspelt where it is evidently one of the project's own, else a missing package."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from pawl.verify.recoveries.edit import Candidate, Situation, Source, TextEdit
from pawl.verify.recoveries.imports import known_modules, known_tables, package_of
from pawl.verify.recoveries.symbols import close, module_of

_SHORTEST = 4
"""Shorter names differ from too many others in one letter."""


def find_module(situation: Situation) -> Iterator[Candidate]:
    """A module of the project that was meant, or the package that has the module. In doubt it is the package."""
    module = situation.groups["module"]
    source = situation.source
    if source is not None:
        for other in dict.fromkeys(_meant(situation, module)):
            if other != module_of(source.path) and _has_what_is_used(situation, source, module, other):
                yield from _renamed(source, situation.finding.line, module, other)
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in situation.symbols.modules:
        return
    package = package_of(module)
    named = f"{package} (the package that has it)" if package.lower() != root.lower() else package
    yield Candidate(
        why=f"the module {module} is not installed: add {named} to the project's dependencies and install it"
    )


def is_packages(module: str, declared: frozenset[str]) -> bool:
    """Whether a module is known to belong to a package: one that the project declares, or one that many use."""
    root = module.partition(".")[0]
    needed = {_plain(name) for name in declared}
    names = {_plain(name) for name in (root, package_of(module), f"python-{root}", f"py{root}")}
    return root in known_modules() or root in known_tables()[0] or module in known_tables()[0] or bool(names & needed)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _meant(situation: Situation, module: str) -> Iterator[str]:
    """Modules of the project that could be meant; none where the name is a package's."""
    known = situation.symbols.modules
    root = module.partition(".")[0]
    if root in known:
        yield from close(module, [other for other in known if other.startswith(f"{root}.")])
        return
    if is_packages(module, situation.declared):
        return
    yield from sorted(other for other in known if other.endswith(f".{module}"))
    # A slip stands in one file; a name that is written alike in several is meant.
    if len(root) >= _SHORTEST and sum(_imports(text, root) for text in situation.sources.values()) < 2:
        yield from sorted(other for other in known if _is_slip(module, other))


def _imports(text: str, root: str) -> bool:
    return bool(re.search(rf"^\s*(?:from|import)\s+{root}\b", text, re.MULTILINE))


def _is_slip(word: str, other: str) -> bool:
    """Whether one letter is missing, too much or another, two are swapped, or only the case differs."""
    if word.lower() == other.lower():
        return word != other
    short, long = sorted((word, other), key=len)
    if len(long) - len(short) == 1:
        return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
    unlike = [place for place in range(len(short)) if len(short) == len(long) and short[place] != long[place]]
    if len(unlike) == 2:
        first, second = unlike
        return second == first + 1 and (word[first], word[second]) == (other[second], other[first])
    return len(unlike) == 1


def _has_what_is_used(situation: Situation, source: Source, module: str, other: str) -> bool:
    """Whether the project's module has every name that is used of the missing one; and some name must be."""
    tree = source.tree()
    used = set(_used(tree, module)) if tree else set()
    inside = {known.rpartition(".")[2] for known in situation.symbols.modules if known.rpartition(".")[0] == other}
    texts = [text for path, text in situation.sources.items() if module_of(path) == other]
    names = inside.union(*(_bound(Source(other, text).tree()) for text in texts))
    return used <= names if used else module.partition(".")[0] in situation.symbols.modules


def _used(tree: ast.Module, module: str) -> Iterator[str]:
    """The names that a file takes from a module."""
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            yield from (alias.name for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Import):
            aliases |= {alias.asname or alias.name for alias in node.names if alias.name == module}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in aliases:
            yield node.attr


def _bound(tree: ast.Module | None) -> set[str]:
    """The names that a module has once it is imported."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(tree.body) if tree else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            waiting += ast.iter_child_nodes(node)
    return names


def _renamed(source: Source, number: int, old: str, new: str) -> Iterator[Candidate]:
    """The import under the other name, and where it binds the module's own name, what uses that."""
    line = source.line(number)
    if not re.match(r"\s*(?:from|import)\b", line) or not any(source.words(old, number)):
        return
    package, _, last = new.rpartition(".")
    whole = re.fullmatch(rf"(\s*)import\s+{re.escape(old)}(\s*(?:#.*)?)", line)
    if whole and package and last == old:
        edits: tuple[TextEdit, ...] = (source.replace_line(number, f"{whole[1]}from {package} import {old}{whole[2]}"),)
    else:
        places = list(source.words(old, number))
        if whole:
            everywhere = source.words(old, 1, len(source.lines))
            places = [place for place in everywhere if source.text[place - 1 : place] != "."]
        edits = tuple(source.edit(place, place + len(old), new) for place in places)
    yield Candidate(why=f"the project has no module {old}, but {new}", edits=edits)
