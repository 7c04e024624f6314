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

from pawl.verify.recoveries.edit import Candidate, Situation, Source, renamed
from pawl.verify.recoveries.symbols import close, module_of

_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((resources.files("pawl.verify.recovery") / "packages.toml").read_text(encoding="utf-8"))


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


def add_import(situation: Situation) -> Iterator[Candidate]:
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


def import_line(source: Source, line: str) -> Candidate:
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
    return Candidate(why=f"add `{line}`", edits=(source.edit(start, start, new),))


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


def import_another(situation: Situation) -> Iterator[Candidate]:
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
            yield Candidate(why=f"{name} is defined in {definition.module}", edits=(edit,))


def _names_of_standard_module(module: str) -> list[str]:
    """What the map knows of a standard module, without importing anything."""
    names = known_tables()[1]
    return [name for name, home in names.items() if home == module]


def import_inside(situation: Situation) -> Iterator[Candidate]:
    """The import moved into each function that needs it, so that the modules can be loaded."""
    source = situation.source
    name = situation.groups["name"]
    tree = source.tree() if source else None
    line = source.line(situation.finding.line) if source else ""
    if source is None or tree is None or not re.fullmatch(rf"from\s+[\w.]+\s+import\s+{name}", line.strip()):
        yield Candidate(why=situation.advice)
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
        yield Candidate(why=f"{situation.advice}; import {name} inside {where}", edits=tuple(edits))


def move_future_import(situation: Situation) -> Iterator[Candidate]:
    source = situation.source
    line = source.line(situation.finding.line) if source else ""
    if source is None or not line.startswith("from __future__ import"):
        return
    start = source.offset(situation.finding.line)
    gone = source.edit(start, source.offset(situation.finding.line + 1), "")
    head = re.match(r"(?:#[^\n]*\n)*(?:\s*(\"{3}|'{3})[\s\S]*?\1[^\n]*\n)?", source.text)
    position = head.end() if head else 0
    new = f"\n{line}\n" if position else f"{line}\n"
    yield Candidate(why="imports from __future__ come first", edits=(source.edit(position, position, new), gone))
