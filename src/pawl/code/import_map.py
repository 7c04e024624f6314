"""Which file imports which, in every language that is parsed, and which imports an edit must keep, read from the syntax
alone: nothing is run."""

from __future__ import annotations

import ast
import builtins
import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePosixPath

from pawl.code.languages import language_of
from pawl.core.errors import ImportsDropped
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, read_python

_PYTHON = (".py", ".pyi", ".pyx")
_SOURCE_FOLDERS = ("src", "lib", "python")
_SCRIPTS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_MOST_TARGETS = 40
"""A package of more files is a folder of everything, and says little about each."""

Names = Sequence[Sequence[str]]
"""The names taken from a module: each as its name there and its name here."""


@dataclass(frozen=True, slots=True)
class ImportMap:
    """Which file imports which."""

    imported: Mapping[str, frozenset[str]]
    """For each file the files that it imports."""
    importers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, files: Mapping[str, str | bytes]) -> ImportMap:
        """The map of these Python files, given by path and source. A file that does not parse imports nothing."""
        sources = {path: source for path, source in files.items() if path.endswith(_PYTHON)}
        resolver = Resolver(sources)
        return cls.joined(
            {
                path: frozenset(
                    target
                    for module, names in python_imports(source)
                    for target in resolver.targets(path, module, names)
                )
                for path, source in sources.items()
            }
        )

    @classmethod
    def joined(cls, found: Mapping[str, frozenset[str]]) -> ImportMap:
        """The map of these files, given by path and what each imports; what is not among them is left out."""
        imported = {path: frozenset(targets & found.keys()) - {path} for path, targets in found.items()}
        importers: dict[str, set[str]] = {path: set() for path in imported}
        for path, targets in imported.items():
            for target in targets:
                importers[target].add(path)
        frozen = {path: frozenset(names) for path, names in importers.items()}
        return cls(imported, frozen)

    def neighbours(self, path: str) -> frozenset[str]:
        """The files that this one imports, and those that import it."""
        return self.imported.get(path, frozenset()) | self.importers.get(path, frozenset())

    def order(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Imported files before their importers, a cycle by name, files that are not in the map last."""
        reached = {path: self._reached(path) for path in paths}

        def place(path: str) -> tuple[bool, int, str]:
            below = [one for one in reached if one in reached[path] and path not in reached[one]]
            return path not in self.imported, len(below), path

        return tuple(sorted(reached, key=place))

    def _reached(self, path: str) -> set[str]:
        """All that a file imports, directly or through others."""
        found: set[str] = set()
        waiting = [path]
        while waiting:
            fresh = self.imported.get(waiting.pop(), frozenset()) - found
            found |= fresh
            waiting += fresh
        return found


def python_imports(source: str | bytes) -> Iterator[tuple[str, Names]]:
    """The modules that a Python file names, as they are written, with what it takes from each."""
    try:
        tree = read_python(source)
    except Unreadable:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [(alias.name, alias.asname or alias.name) for alias in node.names]
            yield "." * node.level + (node.module or ""), names


class Resolver:
    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_folder: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths):
            folder, _, name = path.rpartition("/")
            self._by_name[name].append(path)
            self._by_folder[folder].append(path)
        self._packages = {
            posixpath.dirname(path) for path in self._paths if posixpath.basename(path).startswith("__init__.py")
        }
        tops = {posixpath.dirname(one) for one in self._packages if posixpath.dirname(one) not in self._packages}
        usual = {folder for folder in _SOURCE_FOLDERS if any(path.startswith(f"{folder}/") for path in self._paths)}
        self._roots = sorted({""} | tops | usual)
        self._found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        self._languages: Mapping[str, Callable[[str, str, Names], Iterable[str]]] = {
            "python": self._python,
            "javascript": self._script,
            "typescript": self._script,
            "tsx": self._script,
            "go": self._go,
            "java": self._java,
            "rust": self._rust,
            "c": self._include,
            "cpp": self._include,
            "ruby": self._ruby,
        }

    def targets(self, path: str, module: str, names: Names) -> list[str]:
        """The files of the workspace that an import in this file means; none when it means something from outside."""
        language = language_of(path)
        find = self._languages.get(language.name) if language else None
        found = dict.fromkeys(find(path, module, names)) if find else {}
        return list(found)[:_MOST_TARGETS]

    def _python(self, path: str, module: str, names: Names) -> list[str]:
        """`from package import name`: the module of that name, or else the package that defines it."""
        bare = module.lstrip(".")
        level = len(module) - len(bare)
        own = posixpath.dirname(path)
        for _ in range(level - 1):
            if not own:
                return []
            own = posixpath.dirname(own)
        while not level and own and own in self._packages:
            own = posixpath.dirname(own)
        wanted = tuple(name for name, _ in names if name not in ("", "*"))
        key = (own, module, wanted)
        if key not in self._found:
            # Nearest first: the root of the file's own package, or its folder, then the other roots.
            bases = [own] if level else [own, *(root for root in self._roots if root != own)]
            parts = [part for part in bare.split(".") if part]
            members = (self._members(base, parts, wanted) for base in bases)
            self._found[key] = next((found for found in members if found), [])
        return self._found[key]

    def _members(self, base: str, parts: list[str], wanted: Sequence[str]) -> list[str]:
        own = self._python_file(base, parts)
        inner = [self._python_file(base, [*parts, name]) or own for name in wanted] if wanted else [own]
        return [target for target in inner if target is not None]

    def _python_file(self, base: str, parts: Sequence[str]) -> str | None:
        stem = "/".join(filter(None, [base, *parts]))
        candidates = [posixpath.join(stem, f"__init__{suffix}") for suffix in _PYTHON]
        if parts:
            candidates += [stem + suffix for suffix in _PYTHON]
        return next((one for one in candidates if one in self._paths), None)

    def _script(self, path: str, module: str, names: Names) -> Iterator[str]:
        if not module.startswith("."):
            # A package of the same repository, or a path from its root.
            yield from filter(None, [self._script_at(module), self._script_at(f"src/{module}")])
            return
        found = self._script_at(posixpath.normpath(posixpath.join(posixpath.dirname(path), module)))
        if found:
            yield found

    def _script_at(self, place: str) -> str | None:
        stem, _, extension = place.rpartition(".")
        # TypeScript names the file that it will be compiled to.
        bases = [place, stem] if f".{extension}" in _SCRIPTS else [place]
        tries = [place, *(base + suffix for base in bases for suffix in _SCRIPTS)]
        tries += [f"{place}/index{suffix}" for suffix in _SCRIPTS]
        return next((one for one in tries if one in self._paths), None)

    def _go(self, path: str, module: str, names: Names) -> Iterator[str]:
        """A package is a folder; its path begins with a module's name that is written in go.mod."""
        parts = module.split("/")
        for start in range(len(parts)):
            folder = "/".join(parts[start:])
            files = [one for one in self._by_folder.get(folder, ()) if one.endswith(".go")]
            if files:
                yield from (one for one in files if not one.endswith("_test.go"))
                return

    def _java(self, path: str, module: str, names: Names) -> Iterator[str]:
        parts = module.removesuffix(".*").split(".")
        wanted = [parts] if not names else [[*parts, name] for name, _ in names if name not in ("", "*")] or [parts]
        for one in wanted:
            # The last parts may be a nested class or a member.
            for length in range(len(one), max(0, len(one) - 3), -1):
                tail = f"{'/'.join(one[:length])}.java"
                found = [file for file in self._by_name.get(f"{one[length - 1]}.java", ()) if _ends_with(file, tail)]
                if found:
                    yield found[0]
                    break
            else:
                folder = "/".join(one)
                for place, files in self._by_folder.items():
                    if _ends_with(place, folder):
                        yield from (file for file in files if file.endswith(".java"))

    def _rust(self, path: str, module: str, names: Names) -> Iterator[str]:
        parts = [part for part in module.removeprefix("./").split("::") if part]
        wanted = [[*parts, name] for name, _ in names if name not in ("", "*")] or [parts]
        for one in wanted:
            found = self._rust_file(path, one)
            if found:
                yield found

    def _rust_file(self, path: str, parts: list[str]) -> str | None:
        folder, _, name = path.rpartition("/")
        own = folder if name in ("mod.rs", "lib.rs", "main.rs") else posixpath.join(folder, name.removesuffix(".rs"))
        bases = [own, folder]
        if parts[:1] == ["crate"]:
            bases, parts = [_crate(path)], parts[1:]
        elif parts[:1] == ["self"]:
            parts = parts[1:]
        while parts[:1] == ["super"]:
            bases, parts = [posixpath.dirname(bases[0])], parts[1:]
        for length in range(len(parts), 0, -1):
            for base in bases:
                place = posixpath.join(base, *parts[:length])
                for file in (f"{place}.rs", f"{place}/mod.rs"):
                    if file in self._paths:
                        return file
        return None

    def _include(self, path: str, module: str, names: Names) -> Iterator[str]:
        yield from self._near(path, module, lambda file: (-len(posixpath.commonprefix([file, path])), file))

    def _ruby(self, path: str, module: str, names: Names) -> Iterator[str]:
        name = module if module.endswith(".rb") else f"{module}.rb"
        yield from self._near(path, name, lambda file: (file.count("/"), file))

    def _near(self, path: str, name: str, order: Callable[[str], tuple[int, str]]) -> list[str]:
        """The file of that name beside this one, or else the first by that order whose path ends with it."""
        near = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if near in self._paths:
            return [near]
        tail = name.lstrip("./")
        found = [file for file in self._by_name.get(posixpath.basename(name), ()) if _ends_with(file, tail)]
        return sorted(found, key=order)[:1]


def _ends_with(path: str, tail: str) -> bool:
    return path == tail or path.endswith(f"/{tail}")


def _crate(path: str) -> str:
    before, found, _ = path.rpartition("/src/")
    if found:
        return f"{before}/src"
    return "src" if path.startswith("src/") else posixpath.dirname(path)


_PREDEFINED = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__spec__", "__package__"}


@dataclass(slots=True)
class NamesUsed:
    """The names of a module, whatever their scope."""

    imported: dict[str, str] = field(default_factory=dict)
    """The name that an import binds, and how the import reads."""
    modules: set[str] = field(default_factory=set)
    """Dotted modules that are imported without an alias, such as `os.path`."""
    stars: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    """Names that are read, and the dotted chains that begin with them."""


def check_imports(path: str, before: bytes | None, after: bytes) -> None:
    """Raises `ImportsDropped` when an import is gone whose name the file still uses and nothing else binds."""
    if before is None or PurePosixPath(path).suffix.lower() not in (".py", ".pyi"):
        return
    old, new = _names_used(before), _names_used(after)
    if old is None or new is None:
        return
    dropped = _dropped(old, new)
    if dropped:
        raise ImportsDropped(
            f"{path!r} still uses what these imports bind: {'; '.join(dropped)}",
            advice="keep those imports, or take out every use of their names in the same edit",
        )


def _dropped(old: NamesUsed, new: NamesUsed) -> list[str]:
    bound = new.bound | set(new.imported)
    found = [
        statement
        for name, statement in sorted(old.imported.items())
        if name in new.used and name not in bound and not new.stars - old.stars
    ]
    for module in sorted(old.modules - new.modules):
        still_loaded = any(other.startswith(f"{module}.") for other in new.modules)
        if "." in module and module in new.used and module.partition(".")[0] in new.imported and not still_loaded:
            found.append(f"import {module}")
    unknown = {name for name in new.used if "." not in name} - bound - _PREDEFINED
    if unknown and not new.stars:
        found += [f"from {module} import *" for module in sorted(old.stars)]
    return found


def _names_used(source: bytes) -> NamesUsed | None:
    try:
        tree = read_python(source)
    except Unreadable:
        return None
    names = NamesUsed()
    for node in ast.walk(tree):
        _collect(node, names)
    return names


def _collect(node: ast.AST, names: NamesUsed) -> None:
    match node:
        case ast.Import() | ast.ImportFrom():
            _collect_import(node, names)
        case ast.Name(id=name, ctx=ast.Load()):
            names.used.add(name)
        case ast.Name(id=name) | ast.arg(arg=name):
            names.bound.add(name)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            names.bound.add(name)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            names.bound.add(name)
        case ast.MatchMapping(rest=str(name)):
            names.bound.add(name)
        case ast.Attribute():
            names.used |= _chain(node)
        case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=exported) | ast.Tuple(elts=exported)):
            names.used |= {str(item.value) for item in exported if isinstance(item, ast.Constant)}


def _collect_import(node: ast.Import | ast.ImportFrom, names: NamesUsed) -> None:
    for alias in node.names:
        shown = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
        if isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            if alias.name == "*":
                names.stars.add(source)
            else:
                names.imported[alias.asname or alias.name] = f"from {source} import {shown}"
        elif alias.asname is None:
            names.modules.add(alias.name)
            names.imported.setdefault(alias.name.partition(".")[0], f"import {shown}")
        else:
            names.imported[alias.asname] = f"import {shown}"


def _chain(node: ast.Attribute) -> set[str]:
    """`a.b.c` for a chain that begins with a name, else nothing."""
    words = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        words.append(inner.attr)
        inner = inner.value
    return {".".join([inner.id, *reversed(words)])} if isinstance(inner, ast.Name) else set()
