"""Which Python file imports which, read from the syntax alone: nothing is imported or run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_SUFFIXES = (".py", ".pyi")
_SOURCE_FOLDERS = ("src", "lib", "python")


@dataclass(frozen=True, slots=True)
class ImportMap:
    """Fits `ports.DependencyMap`."""

    imported: Mapping[str, frozenset[str]]
    """For each file the files that it imports."""
    importers: Mapping[str, frozenset[str]]
    ranks: Mapping[str, int]
    """Files in the order of their imports; those of one cycle share a rank."""

    @classmethod
    def of(cls, files: Mapping[str, str | bytes]) -> ImportMap:
        """The map of these files, given by path and source. A file that does not parse imports nothing."""
        sources = {path: source for path, source in files.items() if path.endswith(_SUFFIXES)}
        finder = _Finder(sources)
        return cls.joined({path: frozenset(finder.targets(path, source)) for path, source in sources.items()})

    @classmethod
    def joined(cls, found: Mapping[str, frozenset[str]]) -> ImportMap:
        """The map of these files, given by path and what each imports; what is not among them is left out."""
        imported = {path: frozenset(targets & found.keys()) - {path} for path, targets in found.items()}
        importers: dict[str, set[str]] = {path: set() for path in imported}
        for path, targets in imported.items():
            for target in targets:
                importers[target].add(path)
        frozen = {path: frozenset(names) for path, names in importers.items()}
        return cls(imported, frozen, _ranks(imported))

    def neighbours(self, path: str) -> frozenset[str]:
        """The files that this one imports, and those that import it."""
        return self.imported.get(path, frozenset()) | self.importers.get(path, frozenset())

    def order(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Imported files before their importers, a cycle by name, files that are not in the map last."""
        return tuple(sorted(set(paths), key=lambda path: (self.ranks.get(path, len(self.ranks)), path)))


class _Finder:
    """Finds the files that an import statement means."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._packages = {_parent(path) for path in self._paths if _name(path) in ("__init__.py", "__init__.pyi")}
        tops = {_parent(package) for package in self._packages if _parent(package) not in self._packages}
        usual = {folder for folder in _SOURCE_FOLDERS if any(path.startswith(f"{folder}/") for path in self._paths)}
        self._roots = sorted({""} | tops | usual)

    def targets(self, path: str, source: str | bytes) -> Iterator[str]:
        for node in _imports(source):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module(path, alias.name)
            elif node.level == 0:
                yield from self._members(self._bases(path), (node.module or "").split("."), node)
            else:
                yield from self._relative(path, node)

    def _relative(self, path: str, node: ast.ImportFrom) -> Iterator[str]:
        base = _parent(path)
        for _ in range(node.level - 1):
            if not base:
                return
            base = _parent(base)
        yield from self._members([base], node.module.split(".") if node.module else [], node)

    def _module(self, path: str, dotted: str) -> Iterator[str]:
        for base in self._bases(path):
            found = self._file(base, dotted.split("."))
            if found is not None:
                yield found
                return

    def _members(self, bases: list[str], names: list[str], node: ast.ImportFrom) -> Iterator[str]:
        """`from package import name`: the module of that name, or else the package that defines it."""
        for base in bases:
            own = self._file(base, names)
            inner = [self._file(base, [*names, alias.name]) for alias in node.names]
            if own is None and not any(inner):
                continue
            yield from (target for target in (found or own for found in inner) if target is not None)
            return

    def _bases(self, path: str) -> list[str]:
        """Where an absolute import looks, nearest first: the root of the file's own package, or its folder, then the
        other roots."""
        own = _parent(path)
        while own in self._packages and own:
            own = _parent(own)
        return [own, *(root for root in self._roots if root != own)]

    def _file(self, base: str, names: list[str]) -> str | None:
        stem = "/".join(filter(None, [base, *names]))
        candidates = [f"{stem}/__init__{suffix}" if stem else f"__init__{suffix}" for suffix in _SUFFIXES]
        if names:
            candidates += [stem + suffix for suffix in _SUFFIXES]
        return next((candidate for candidate in candidates if candidate in self._paths), None)


def _imports(source: str | bytes) -> Iterator[ast.Import | ast.ImportFrom]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def _ranks(imported: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Tarjan's strongly connected components, which come out with the imported ones first.

    It keeps its own stack, because a chain of imports can be deeper than Python's.
    """
    ranks: dict[str, int] = {}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: list[str] = []
    for root in sorted(imported):
        if root in index:
            continue
        work = [(root, iter(sorted(imported[root])))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        while work:
            node, targets = work[-1]
            target = next((target for target in targets if target not in ranks), None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    _close(node, open_nodes, ranks)
            elif target in index:
                low[node] = min(low[node], index[target])
            else:
                index[target] = low[target] = len(index)
                open_nodes.append(target)
                work.append((target, iter(sorted(imported[target]))))
    return ranks


def _close(node: str, open_nodes: list[str], ranks: dict[str, int]) -> None:
    """One component is complete: everything opened since its first node."""
    rank = len(ranks)
    member = ""
    while member != node:
        member = open_nodes.pop()
        ranks[member] = rank


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
