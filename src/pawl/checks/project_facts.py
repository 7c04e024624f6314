"""Facts from a project's own files: its dependencies, the projects in it, how its packages are installed."""

from __future__ import annotations

import ast
import configparser
import fnmatch
import functools
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from pawl.core.errors import PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, data_table, read_json, read_python, read_toml, written

_NAME = re.compile(r"^\s*['\"]?([A-Za-z0-9@][\w./@-]*)")
_GEM = re.compile(r"^[ \t]*gem\s+['\"]([\w-]+)['\"]", re.MULTILINE)
_REQUIREMENTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "requirements/base.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
)
_LARGEST = 256 << 10
PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
"""Those that may name a Python project."""


class Folder(Protocol):
    """A folder that can be looked at; a bench's files fit."""

    def read(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def walk(self, under: str = "") -> Iterable[str]: ...


def text(files: Folder, path: str) -> str:
    """A file's text; empty when it is not there or may not be read."""
    try:
        return files.read(path)[:_LARGEST].decode("utf-8", "replace") if files.exists(path) else ""
    except PawlError:
        return ""


def toml(files: Folder, path: str) -> dict[str, Any]:
    try:
        return read_toml(text(files, path))
    except Unreadable:
        return {}


def package_json(files: Folder, path: str = "package.json") -> dict[str, Any]:
    try:
        data = read_json(text(files, path) or "{}")
    except Unreadable:
        return {}
    return data if isinstance(data, dict) else {}


def dependencies(files: Folder) -> frozenset[str]:
    """The names of everything the project says it needs, lower case."""
    names: set[str] = set()
    for key in ("dependencies", "devDependencies", "peerDependencies"):
        section = package_json(files).get(key)
        names |= set(section) if isinstance(section, dict) else set()
    names |= set(_python_requirements(toml(files, "pyproject.toml")))
    names |= set(_names(_listed_in_setup_cfg(text(files, "setup.cfg"))))
    names |= set(_names(_listed_in_files(files)))
    names |= set(_GEM.findall(text(files, "Gemfile")))
    return frozenset(name.lower() for name in names)


def python_needs(files: Folder) -> frozenset[str]:
    """The distributions without which a Python project does not run: not its extras, nor what some systems need."""
    data = toml(files, "pyproject.toml")
    listed = table(data, "project").get("dependencies", [])
    lines = [*(listed if isinstance(listed, list) else []), *_listed_in_files(files)]
    names = _names([line for line in lines if isinstance(line, str) and ";" not in line])
    return frozenset(name.lower() for name in (*names, *table(table(table(data, "tool"), "poetry"), "dependencies")))


def _listed_in_files(files: Folder) -> list[str]:
    return [line for path in _REQUIREMENTS for line in text(files, path).splitlines()]


def project_name(files: Folder) -> str:
    """The name under which a Python project is installed, as modules are spelt; empty where it says none."""
    data = toml(files, "pyproject.toml")
    poetry = table(table(data, "tool"), "poetry")
    setup = _setup_cfg(text(files, "setup.cfg")).get("metadata", "name", fallback="")
    name = table(data, "project").get("name") or poetry.get("name") or setup or _called(text(files, "setup.py"))
    return re.sub(r"[-_.]+", "_", str(name)).lower()


def _called(script: str) -> str:
    """The name that a setup.py gives to `setup`, where it stands there as a text."""
    try:
        calls = [node for node in ast.walk(read_python(script)) if isinstance(node, ast.Call)]
    except Unreadable:
        return ""
    setups = (one for one in calls if ast.unparse(one.func).rpartition(".")[2] == "setup")
    named = (one for call in setups for one in call.keywords if one.arg == "name")
    values = (one.value.value for one in named if isinstance(one.value, ast.Constant))
    return next((value for value in values if isinstance(value, str)), "")


def _python_requirements(data: Mapping[str, Any]) -> Iterator[str]:
    project = table(data, "project")
    yield from _names(project.get("dependencies", []))
    for group in (*table(project, "optional-dependencies").values(), *table(data, "dependency-groups").values()):
        yield from _names(group)
    tools = table(data, "tool")
    poetry = table(tools, "poetry")
    yield from table(poetry, "dependencies")
    yield from table(poetry, "dev-dependencies")
    for group in table(poetry, "group").values():
        yield from table(group, "dependencies")
    yield from _names(table(tools, "uv").get("dev-dependencies", []))


def _listed_in_setup_cfg(setup: str) -> list[str]:
    """The lines of what is installed with a project, and with its extras."""
    parser = _setup_cfg(setup)
    values = [parser.get("options", key, fallback="") for key in ("install_requires", "tests_require")]
    if parser.has_section("options.extras_require"):
        values += [value for _, value in parser.items("options.extras_require")]
    return "\n".join(values).splitlines()


def _setup_cfg(setup: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(setup)
    except configparser.Error:
        parser.clear()
    return parser


def table(data: Any, key: str) -> dict[str, Any]:
    """The table of that name; empty where it is none."""
    value = data.get(key) if isinstance(data, Mapping) else None
    return value if isinstance(value, dict) else {}


def _names(lines: Any) -> Iterator[str]:
    for line in lines if isinstance(lines, list) else []:
        match = _NAME.match(line) if isinstance(line, str) else None
        if match and not line.lstrip().startswith(("#", "-")):
            yield re.split(r"[\[<>=!~;@ ]", match[1], maxsplit=1)[0] or match[1]


class CheckKind(StrEnum):
    SYNTAX = "syntax"
    TYPES = "types"
    DIAGNOSTICS = "diagnostics"
    LINT = "lint"
    BUILD = "build"
    SERVER = "server"
    TESTS = "tests"


ORDER = tuple(CheckKind)
CHEAP = (CheckKind.SYNTAX, CheckKind.TYPES, CheckKind.DIAGNOSTICS, CheckKind.LINT, CheckKind.BUILD)
"""Checks that run before anything is started or any test runs."""


def is_named(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern fits: by the file's name, or by the whole path when the pattern holds a slash."""
    name = posixpath.basename(path)
    return any(fnmatch.fnmatchcase(path if "/" in one else name, one) for one in patterns)


NESTED_MARKS = ("package.json", "go.mod", "Cargo.toml")
"""A folder with one of these is a project."""
_DEEPEST = 3
_MOST_NESTED = 8
_NOT_PROJECTS = frozenset(
    {"node_modules", "vendor", "dist", "build", "target", "fixtures", "testdata", "examples", "templates"}
)


def nested_projects(files: Folder) -> tuple[str, ...]:
    """Folders below the root that are projects and do not lie in one already found; a bounded number."""
    found: list[str] = []
    marked = {posixpath.dirname(path) for path in files.walk() if posixpath.basename(path) in NESTED_MARKS}
    for folder in sorted(marked - {""}, key=lambda one: (one.count("/"), one)):
        parts = folder.split("/")
        inside = any(folder.startswith(f"{other}/") for other in found)
        if len(parts) <= _DEEPEST and _NOT_PROJECTS.isdisjoint(parts) and not inside:
            found.append(folder)
    return tuple(found[:_MOST_NESTED])


@dataclass(frozen=True, slots=True)
class Within:
    """A folder of another one, as if it were all there is."""

    files: Folder
    folder: str

    def read(self, path: str) -> bytes:
        return self.files.read(f"{self.folder}/{path}")

    def exists(self, path: str) -> bool:
        return self.files.exists(f"{self.folder}/{path}")

    def walk(self, under: str = "") -> Iterator[str]:
        top = f"{self.folder}/{under}".rstrip("/")
        return (path.removeprefix(f"{self.folder}/") for path in self.files.walk(top))


@dataclass(slots=True)
class ListedFolder:
    """Fits `Folder`: one that stays as it is while it is looked at, so that it is walked through once."""

    files: Folder
    _paths: Sequence[str] | None = None

    def read(self, path: str) -> bytes:
        return self.files.read(path)

    def exists(self, path: str) -> bool:
        return self.files.exists(path)

    def walk(self, under: str = "") -> Iterator[str]:
        if self._paths is None:
            self._paths = tuple(self.files.walk())
        top = f"{under.rstrip('/')}/" if under else ""
        return (path for path in self._paths if path.startswith(top))


_HERE = ("file:", "link:", "portal:", "./", "../")
_DEPENDENCIES = (
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
    "resolutions",
    "overrides",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    name: str
    lock: tuple[str, ...]
    run: tuple[str, ...]
    install: tuple[str, ...]
    modules: str
    quiet: tuple[str, ...] = ()

    def locked_by(self, files: Folder) -> str:
        """The lock file that the project has; empty without one."""
        return next((name for name in self.lock if files.exists(name)), "")

    def inputs(self, files: Folder) -> frozenset[str]:
        """The files that decide what is installed: manifests, locks, settings, local packages, what scripts run."""
        every = frozenset(files.walk())
        manifests = [path for path in every if posixpath.basename(path) == "package.json"]
        places = {place for path in manifests for place in _package_places(files, path)}
        settings = tuple(installer_data()["settings"])
        return frozenset(
            path
            for path in (*every, *(name for name in settings if files.exists(name)))
            if is_named(path, (*self.lock, "package.json", *settings))
            or any(path == place or path.startswith(f"{place}/") for place in places)
        )


def _package_places(files: Folder, manifest: str) -> Iterator[str]:
    """Files and folders of the workspace that a package.json takes packages from, or that its scripts name."""
    data = package_json(files, manifest)
    folder, scripts = posixpath.dirname(manifest), table(data, "scripts")
    ran = [word.strip("'\"") for name in installer_data()["scripts"] for word in str(scripts.get(name, "")).split()]
    taken = [value for key in _DEPENDENCIES for value in table(data, key).values() if isinstance(value, str)]
    local = [value.removeprefix(mark) for value in taken for mark in _HERE[:3] if value.startswith(mark)]
    for name in (*ran, *local, *(value for value in taken if value.startswith(_HERE[3:]))):
        place = posixpath.normpath(posixpath.join(folder, name))
        if not place.startswith(("..", "/")) and place != ".":
            yield place


def runs_code(files: Folder) -> bool:
    """Whether installing the packages of JavaScript runs code of the workspace, which may go anywhere in it."""
    data = installer_data()
    every = tuple(files.walk())
    manifests = (package_json(files, path) for path in every if posixpath.basename(path) == "package.json")
    scripts = {name for manifest in manifests for name in table(manifest, "scripts")}
    return any(is_named(path, data["code"]) for path in every) or not scripts.isdisjoint(data["scripts"])


def installer_data() -> Mapping[str, Any]:
    """The table of installers, as it is written."""
    return data_table("pawl.checks", "installers.toml")


@functools.cache
def installers() -> tuple[Installer, ...]:
    return tuple(written(Installer, entry) for entry in installer_data()["installer"])


def installer_of(files: Folder) -> Installer:
    """The one whose lock file is there, or the usual one."""
    return next((known for known in installers() if known.locked_by(files)), installers()[-1])


def missing_modules(files: Folder) -> str:
    """The advice where a project's packages are not installed; empty where they are or none are needed."""
    data = package_json(files)
    needs = any(isinstance(data.get(key), dict) and data[key] for key in ("dependencies", "devDependencies"))
    installer = installer_of(files)
    if not needs or files.exists(installer.modules):
        return ""
    how = " ".join(installer.install) if installer.locked_by(files) else f"{installer.name} install"
    return f"{installer.modules} is missing; install it with '{how}'"
