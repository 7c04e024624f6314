"""Which files an import means, by the habits of its language and the names of the files that there are.

Nothing is read and no tool is asked, so that what only a build knows (path aliases, generated code) is not found.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pawl.context.languages import language_of

_PYTHON = (".py", ".pyi", ".pyx")
_SCRIPTS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_MOST_TARGETS = 40
"""A package of more files is a folder of everything, and says little about each."""

Names = Sequence[Sequence[str]]
"""What is taken from a module: each as its name there and its name here."""


class Resolver:
    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_folder: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths):
            folder, _, name = path.rpartition("/")
            self._by_name[name].append(path)
            self._by_folder[folder].append(path)
        self._roots = _python_roots(self._paths)
        self._found: dict[tuple[str, str], str | None] = {}
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

    def module(self, dotted: str) -> str | None:
        """The Python file of that dotted name, wherever its package lies."""
        return self._python_file("", dotted.split(".")) if dotted else None

    def _python(self, path: str, module: str, names: Names) -> Iterator[str]:
        level = len(module) - len(module.lstrip("."))
        parts = [part for part in module[level:].split(".") if part]
        base = posixpath.dirname(path)
        for _ in range(level - 1):
            base = posixpath.dirname(base)
        if level:
            parts = [*(base.split("/") if base else []), *parts]
        own = self._python_file("/" if level else path, parts)
        inner = [
            self._python_file("/" if level else path, [*parts, name]) for name, _ in names if name not in ("", "*")
        ]
        if not inner:
            yield from (target for target in (own,) if target)
        for target in inner:
            if target or own:
                yield target or own or ""

    def _python_file(self, path: str, parts: Sequence[str]) -> str | None:
        """Absolute names are looked for beside the file's own package first, then under each root."""
        stem = "/".join(parts)
        key = (path.partition("/")[0], stem)
        if key not in self._found:
            roots = [""] if path == "/" else self._roots_for(path)
            places = (posixpath.join(root, stem) if stem else root for root in roots)
            self._found[key] = next((file for place in places if (file := self._python_at(place))), None)
        return self._found[key]

    def _roots_for(self, path: str) -> list[str]:
        top = path.partition("/")[0]
        return sorted(self._roots, key=lambda root: (root != "" and not f"{root}/".startswith(f"{top}/"), root))

    def _python_at(self, place: str) -> str | None:
        for suffix in _PYTHON:
            if f"{place}{suffix}" in self._paths:
                return f"{place}{suffix}"
            if f"{place}/__init__{suffix}" in self._paths:
                return f"{place}/__init__{suffix}"
        return None

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
        near = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        if near in self._paths:
            yield near
            return
        tail = module.lstrip("./")
        found = [file for file in self._by_name.get(posixpath.basename(module), ()) if _ends_with(file, tail)]
        yield from sorted(found, key=lambda file: (-len(posixpath.commonprefix([file, path])), file))[:1]

    def _ruby(self, path: str, module: str, names: Names) -> Iterator[str]:
        name = module if module.endswith(".rb") else f"{module}.rb"
        near = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if near in self._paths:
            yield near
            return
        tail = name.lstrip("./")
        found = [file for file in self._by_name.get(posixpath.basename(name), ()) if _ends_with(file, tail)]
        yield from sorted(found, key=lambda file: (file.count("/"), file))[:1]


def _python_roots(paths: Collection[str]) -> list[str]:
    """The folders that absolute imports start from: the top, and whatever holds the topmost packages."""
    packages = {posixpath.dirname(path) for path in paths if path.endswith(("/__init__.py", "/__init__.pyi"))}
    tops = {posixpath.dirname(package) for package in packages if posixpath.dirname(package) not in packages}
    usual = {folder for folder in ("src", "lib", "python") if any(path.startswith(f"{folder}/") for path in paths)}
    return sorted({""} | tops | usual)


def _ends_with(path: str, tail: str) -> bool:
    return path == tail or path.endswith(f"/{tail}")


def _crate(path: str) -> str:
    before, found, _ = path.rpartition("/src/")
    if found:
        return f"{before}/src"
    return "src" if path.startswith("src/") else posixpath.dirname(path)
