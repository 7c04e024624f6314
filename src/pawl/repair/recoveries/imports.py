"""Recoveries around imports: adding one, finding where a name really is, breaking a circle of them."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from pawl.repair.recoveries.edit import PythonSource, RecoveryCandidate, RecoveryEdit, RecoverySituation, renamed
from pawl.repair.recoveries.symbols import close, module_of

_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((resources.files("pawl.repair.recovery") / "packages.toml").read_text(encoding="utf-8"))


def known_tables() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Packages by module, and standard-library modules by name."""
    return _tables()["packages"], _tables()["names"]


@functools.cache
def known_modules() -> frozenset[str]:
    """The modules of packages that many projects use."""
    return frozenset(_tables()["known"]["modules"])


def plugin_of(fixture: str) -> str:
    """The package whose pytest plugin has a fixture; empty when it is not known."""
    return str(_tables()["fixtures"].get(fixture, ""))


def add_import(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Imports that would define the name: a standard module, a well-known name of one, a name of the project."""
    source = situation.source
    name = situation.groups["name"]
    if source is None:
        return
    lines: list[str] = []
    for definition in situation.symbols.importable(name):
        if definition.path != source.path and not _TEST_FILE.search(definition.path):
            lines.append(f"from {definition.module} import {name}")
    for module in sorted(situation.symbols.modules):
        if module.rpartition(".")[2] == name and module != module_of(source.path):
            package = module.rpartition(".")[0]
            lines.append(f"from {package} import {name}" if package else f"import {name}")
    if name in sys.stdlib_module_names:
        lines.append(f"import {name}")
    well_known = known_tables()[1].get(name)
    if well_known:
        lines.append(f"from {well_known} import {name}")
    if name == "datetime":
        lines.append("from datetime import datetime")
    for line in dict.fromkeys(lines):
        yield import_line(source, line)


def import_line(source: PythonSource, line: str) -> RecoveryCandidate:
    """The import in its place: with those of its kind, else below the docstring and the `__future__` imports."""
    tree = source.tree()
    after, imports = 0, []
    for index, node in enumerate(tree.body if tree else []):
        if (index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or (
            isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ):
            after = node.end_lineno or node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        else:
            break
    # A file may start with comments that belong there: the interpreter's name, the encoding, a licence.
    while not imports and source.line(after + 1).startswith("#"):
        after += 1
    plain, module = line.startswith("import "), line.split()[1]
    before = [node for node in imports if _order(node) <= _order_of(module, plain=plain)]
    if before:
        start = source.offset((before[-1].end_lineno or before[-1].lineno) + 1)
        new = f"{line}\n"
    elif imports:
        start, new = source.offset(imports[0].lineno), f"{line}\n"
    else:
        start = source.offset(after + 1)
        new = f"\n{line}\n" if after else f"{line}\n" if source.line(1) == "" and source.text else f"{line}\n\n"
        if after and source.line(after + 1).strip():
            new += "\n"
    if start > 0 and not source.text[:start].endswith("\n"):
        new = "\n" + new
    return RecoveryCandidate(why=f"add `{line}`", edits=(source.edit(start, start, new),))


def _order(node: ast.Import | ast.ImportFrom) -> tuple[bool, bool, str]:
    if isinstance(node, ast.ImportFrom):
        return (True, True, "~") if node.level else _order_of(node.module or "", plain=False)
    return _order_of(node.names[0].name, plain=True)


def _order_of(module: str, *, plain: bool) -> tuple[bool, bool, str]:
    """The standard library first, and in each part whole modules before names from modules."""
    return module.partition(".")[0] not in sys.stdlib_module_names, not plain, module


def package_of(module: str) -> str:
    """The package that is installed to have a module."""
    packages = known_tables()[0]
    root = module.partition(".")[0]
    return packages.get(module) or packages.get(root) or root


def import_another(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The name that was meant, or the module of the project that has it."""
    name, module = situation.groups["name"], situation.groups.get("module", "")
    meant = [situation.groups["meant"]] if situation.groups.get("meant") else []
    known = situation.symbols.in_module(module) if module else []
    meant += close(name, known or _names_of_standard_module(module))
    yield from renamed(situation, name, meant, "there is no {old} to import, but {new}")
    source = situation.source
    line = source.line(situation.finding.line) if source else ""
    if source is None or not re.match(rf"\s*from\s+[\w.]+\s+import\s+{name}\s*(?:#.*)?$", line):
        return
    for definition in situation.symbols.importable(name):
        if definition.module != module and definition.path != source.path:
            indentation = source.indentation(situation.finding.line)
            new = f"{indentation}from {definition.module} import {name}"
            edit = source.replace_line(situation.finding.line, new)
            yield RecoveryCandidate(why=f"{name} is defined in {definition.module}", edits=(edit,))


def _names_of_standard_module(module: str) -> list[str]:
    """What the map knows of a standard module, without importing anything."""
    names = known_tables()[1]
    return [name for name, home in names.items() if home == module]


def import_inside(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The import moved into each function that needs it, so that the modules can be loaded."""
    source = situation.source
    name = situation.groups["name"]
    tree = source.tree() if source else None
    line = source.line(situation.finding.line) if source else ""
    if source is None or tree is None or not re.fullmatch(rf"from\s+[\w.]+\s+import\s+{name}", line.strip()):
        yield RecoveryCandidate(why=situation.advice)
        return
    users = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(isinstance(used, ast.Name) and used.id == name for used in ast.walk(node))
    ]
    start = source.offset(situation.finding.line)
    edits = [source.edit(start, source.offset(situation.finding.line + 1), "")]
    for user in users:
        first = user.body[0].lineno
        position = source.offset(first)
        edits.append(source.edit(position, position, f"{source.indentation(first)}{line.strip()}\n"))
    if users:
        where = ", ".join(user.name for user in users)
        yield RecoveryCandidate(why=f"{situation.advice}; import {name} inside {where}", edits=tuple(edits))


def move_future_import(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    source = situation.source
    line = source.line(situation.finding.line) if source else ""
    if source is None or not line.startswith("from __future__ import"):
        return
    start = source.offset(situation.finding.line)
    gone = source.edit(start, source.offset(situation.finding.line + 1), "")
    head = re.match(r"(?:#[^\n]*\n)*(?:\s*(\"{3}|'{3})[\s\S]*?\1[^\n]*\n)?", source.text)
    position = head.end() if head else 0
    new = f"\n{line}\n" if position else f"{line}\n"
    yield RecoveryCandidate(
        why="imports from __future__ come first", edits=(source.edit(position, position, new), gone)
    )


_SHORTEST = 4
"""Shorter names differ from too many others in one letter."""


def find_module(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
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
    yield RecoveryCandidate(
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


def _meant(situation: RecoverySituation, module: str) -> Iterator[str]:
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


def _has_what_is_used(situation: RecoverySituation, source: PythonSource, module: str, other: str) -> bool:
    """Whether the project's module has every name that is used of the missing one; and some name must be."""
    tree = source.tree()
    used = set(_used(tree, module)) if tree else set()
    inside = {known.rpartition(".")[2] for known in situation.symbols.modules if known.rpartition(".")[0] == other}
    texts = [text for path, text in situation.sources.items() if module_of(path) == other]
    names = inside.union(*(_bound(PythonSource(other, text).tree()) for text in texts))
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


def _renamed(source: PythonSource, number: int, old: str, new: str) -> Iterator[RecoveryCandidate]:
    """The import under the other name, and where it binds the module's own name, what uses that."""
    line = source.line(number)
    if not re.match(r"\s*(?:from|import)\b", line) or not any(source.words(old, number)):
        return
    package, _, last = new.rpartition(".")
    whole = re.fullmatch(rf"(\s*)import\s+{re.escape(old)}(\s*(?:#.*)?)", line)
    if whole and package and last == old:
        edits: tuple[RecoveryEdit, ...] = (
            source.replace_line(number, f"{whole[1]}from {package} import {old}{whole[2]}"),
        )
    else:
        places = list(source.words(old, number))
        if whole:
            everywhere = source.words(old, 1, len(source.lines))
            places = [place for place in everywhere if source.text[place - 1 : place] != "."]
        edits = tuple(source.edit(place, place + len(old), new) for place in places)
    yield RecoveryCandidate(why=f"the project has no module {old}, but {new}", edits=edits)
