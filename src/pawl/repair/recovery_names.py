"""Recoveries for names: imports, spellings, attributes, parameters, scopes, coroutines."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import sys
from collections.abc import Collection, Iterator, Mapping

from pawl.code.languages import is_test
from pawl.repair.sources import (
    PythonSource,
    RecoveryCandidate,
    RecoveryEdit,
    RecoverySituation,
    close,
    module_of,
    renamed,
    table,
)


def packages() -> Mapping[str, str]:
    """Packages by the modules that are called otherwise."""
    known: Mapping[str, str] = table("packages")["packages"]
    return known


def plugin_of(fixture: str) -> str:
    """The package whose pytest plugin has a fixture; empty when it is not known."""
    return str(table("packages")["fixtures"].get(fixture, ""))


def add_import(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Imports that would define the name: a standard module, a well-known name of one, a name of the project."""
    source = situation.source
    name = situation.groups["name"]
    lines: list[str] = []
    for definition in situation.symbols.importable(name):
        if definition.path != source.path and not is_test(definition.path):
            lines.append(f"from {definition.module} import {name}")
    for module in sorted(situation.symbols.modules):
        if module.rpartition(".")[2] == name and module != module_of(source.path):
            package = module.rpartition(".")[0]
            lines.append(f"from {package} import {name}" if package else f"import {name}")
    if name in sys.stdlib_module_names:
        lines.append(f"import {name}")
    well_known = table("packages")["names"].get(name)
    if well_known:
        lines.append(f"from {well_known} import {name}")
    if name == "datetime":
        lines.append("from datetime import datetime")
    for line in dict.fromkeys(lines):
        yield import_line(source, line)


def import_line(source: PythonSource, line: str) -> RecoveryCandidate:
    """The import in its place: with those of its kind, else below the docstring and the `__future__` imports."""
    after, imports = 0, []
    for index, node in enumerate(source.tree().body):
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
    return source.inserted(start, new, f"add `{line}`")


def _order(node: ast.Import | ast.ImportFrom) -> tuple[bool, bool, str]:
    if isinstance(node, ast.ImportFrom):
        return (True, True, "~") if node.level else _order_of(node.module or "", plain=False)
    return _order_of(node.names[0].name, plain=True)


def _order_of(module: str, *, plain: bool) -> tuple[bool, bool, str]:
    """The standard library first, and in each part whole modules before names from modules."""
    return module.partition(".")[0] not in sys.stdlib_module_names, not plain, module


def package_of(module: str) -> str:
    """The package that is installed to have a module."""
    root = module.partition(".")[0]
    return packages().get(module) or packages().get(root) or root


def import_another(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The name that was meant, or the module of the project that has it."""
    name, module = situation.groups["name"], situation.groups.get("module", "")
    meant = [situation.groups["meant"]] if situation.groups.get("meant") else []
    known = situation.symbols.in_module(module) if module else []
    standard = [one for one, home in table("packages")["names"].items() if home == module]
    meant += close(name, known or standard)
    yield from renamed(situation, name, meant, "there is no {old} to import, but {new}")
    source = situation.source
    line = source.line(situation.finding.line)
    if not re.match(rf"\s*from\s+[\w.]+\s+import\s+{name}\s*(?:#.*)?$", line):
        return
    for definition in situation.symbols.importable(name):
        if definition.module != module and definition.path != source.path:
            indentation = source.indentation(situation.finding.line)
            new = f"{indentation}from {definition.module} import {name}"
            edit = source.replace_line(situation.finding.line, new)
            yield RecoveryCandidate(why=f"{name} is defined in {definition.module}", edits=(edit,))


def import_inside(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """The import moved into each function that needs it, so that the modules can be loaded."""
    source = situation.source
    name = situation.groups["name"]
    tree = source.tree()
    line = source.line(situation.finding.line)
    if not tree.body or not re.fullmatch(rf"from\s+[\w.]+\s+import\s+{name}", line.strip()):
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
    line = source.line(situation.finding.line)
    if not line.startswith("from __future__ import"):
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
    for other in dict.fromkeys(_meant(situation, module)):
        if other != module_of(source.path) and _has_what_is_used(situation, source, module, other):
            yield from _renamed(source, situation.finding.line, module, other)
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in situation.symbols.modules:
        return
    package = package_of(module)
    named = f"{package} (the package that has it)" if package.lower() != root.lower() else package
    if not is_packages(module, situation.declared):
        yield RecoveryCandidate(why=f"there is no module {module}{meant_module(module)}")
        return
    yield RecoveryCandidate(
        why=f"the module {module} is not installed: add {named} to the project's dependencies and install it"
    )


def is_packages(module: str, declared: Collection[str]) -> bool:
    """Whether a module is known to belong to a package: one that the project declares, or one that many use."""
    root = module.partition(".")[0]
    needed = {_plain(name) for name in declared}
    names = {_plain(name) for name in (root, package_of(module), f"python-{root}", f"py{root}")}
    return root in _known_modules() or module in packages() or bool(names & needed)


def meant_module(module: str) -> str:
    """The module of a package that many use, or of Python, that a misspelt one may stand for, as a question."""
    known = (*_known_modules(), *sys.stdlib_module_names)
    near = difflib.get_close_matches(module.partition(".")[0], known, 1, 0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _known_modules() -> set[str]:
    return {*table("packages")["known"]["modules"], *packages()}


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
    written = re.compile(rf"^[ \t]*(?:from|import)\s+{root}\b", re.MULTILINE)
    if len(root) >= _SHORTEST and sum(bool(written.search(text)) for text in situation.sources.values()) < 2:
        yield from sorted(other for other in known if _is_slip(module, other))


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
    used = set(_used(source.tree(), module))
    inside = {known.rpartition(".")[2] for known in situation.symbols.modules if known.rpartition(".")[0] == other}
    texts = [text for path, text in situation.sources.items() if module_of(path) == other]
    names = inside.union(*(_module_names(PythonSource(other, text).tree()) for text in texts))
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


def _module_names(tree: ast.Module) -> set[str]:
    """The names that a module has once it is imported."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        names.update(_bound(node))
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
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


def define_name(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """Definitions of an unknown name, the likeliest first: a method's missing self, an import, another spelling."""
    name = situation.groups["name"]
    if name == "self":
        yield from self_parameter(situation)
        return
    meant = situation.groups.get("meant", "")
    owner = situation.source.class_around(situation.finding.line)
    if meant.startswith("self.") or (owner and name in situation.symbols.attributes(owner)):
        yield from renamed(situation, name, [f"self.{name}"], "{old} is an attribute: {new}")
    if name in (words := table("habits")["words"]):
        yield from renamed(situation, name, [words[name]], "in Python {old} is written {new}")
    # A short or lower-case name close to a local one is a slip; one that can be imported as it stands is not.
    yield from add_import(situation)
    suggested = [meant] if meant and not meant.startswith("self.") else []
    function = situation.source.function_around(situation.finding.line)
    nodes = [*(ast.walk(function) if function else ()), *situation.source.tree().body]
    names = [*(name for node in nodes for name in _bound(node)), *dir(builtins)]
    why = "{old} is not defined here, but {new} is"
    yield from renamed(situation, name, [*suggested, *close(name, names)], why)


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


def self_parameter(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`self` as the first parameter of the method around the finding."""
    source = situation.source
    function = source.function_around(situation.finding.line)
    if function is not None:
        yield from with_self(source, function.lineno, function.name)


def with_self(source: PythonSource, line: int, name: str) -> Iterator[RecoveryCandidate]:
    """The definition on that line, or below its decorators, with `self`."""
    for number in range(line, min(line + 20, len(source.lines) + 1)):
        match = re.match(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\s*\(\s*", source.line(number))
        if match:
            position = source.offset(number, match.end())
            alone = source.text[position : position + 1] == ")"
            new = "self" if alone else "self, "
            yield source.inserted(position, new, f"{name} is a method and takes self")
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
    line = situation.finding.line
    match = re.search(rf"\b({owner})\.{situation.groups['function']}\s*\(", source.line(line))
    if match:
        position = source.offset(line, match.end(1))
        yield source.inserted(position, "()", f"{match[1]} is a class: call the method on an object of it")


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
    first, last = source.statement(situation.finding.line)
    for position in source.words(name, first, last):
        if re.match(r"\s*=(?!=)", source.text[position + len(name) :]):
            for other in dict.fromkeys(meant):
                why = f"there is no parameter {name}, but {other}"
                yield source.exchanged(position, position + len(name), other, why)


def declare_outer(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`nonlocal` or `global` for a name that is assigned in a function, but meant to be the one outside."""
    source = situation.source
    name = situation.groups["name"]
    function = source.function_around(situation.finding.line)
    if function is None:
        return
    at_top = any(name in _bound(node) for node in source.tree().body)
    word = "global" if at_top else "nonlocal"
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if documented and len(body) > 1 else body[0]
    position = source.offset(first.lineno)
    new = f"{source.indentation(first.lineno)}{word} {name}\n"
    yield source.inserted(position, new, f"{name} is assigned in {function.name}, which hides the one outside")


def add_await(situation: RecoverySituation) -> Iterator[RecoveryCandidate]:
    """`await` before each call on the finding's line that makes a coroutine."""
    source = situation.source
    tree = source.tree()
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
    function = source.function_around(situation.finding.line)
    if isinstance(function, ast.FunctionDef):
        why = f"{function.name} awaits, so it must be asynchronous; its callers must await it"
        yield RecoveryCandidate(why=why, edits=(_asynchronous(source, function),))
