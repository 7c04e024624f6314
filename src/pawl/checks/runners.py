"""Test runners told apart from what they test: starting one so that nothing shadows it, and the files that would."""

from __future__ import annotations

import base64
import fnmatch
import functools
import json
import posixpath
import re
import shlex
import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import resources

from pawl.checks.project_facts import PROJECT_FILES, Folder, project_name, python_needs, text, toml
from pawl.core.change import Change, ChangeSet, NodeKind
from pawl.core.lazy_dataclass import dataclass

_RUNNERS = ("pytest", "unittest")
_SOURCES = ("", "src", "lib")
_PYTHON = re.compile(r"python[\d.]*")
_MODULE = re.compile(r"\.(?:py[cdo]?|so|[\w-]+\.so)")

_PYTEST_FILES = ("pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")
_PLUGIN = re.compile(r"(?<![\w-])-[A-Za-z]*?p[\s,=]*([A-Za-z_][\w.]*)(?![\w.:])")
_STEM = re.compile(r"(?:/__init__)?\.(?:py[cdo]?|so|[\w-]+\.so)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    launch: str
    reporter: str
    runner: Mapping[str, Sequence[str]]
    libraries: Mapping[str, Sequence[str]]
    shadows: Mapping[str, Sequence[str]]

    @property
    def modules(self) -> frozenset[str]:
        """Of the runner and its libraries."""
        return frozenset(name for part in (self.runner, self.libraries) for names in part.values() for name in names)

    def own(self, files: Folder) -> frozenset[str]:
        """The modules of a library or runner that the project is by its name; none is the standard library's."""
        name = project_name(files)
        return frozenset(self.libraries.get(name) or self.runner.get(name, ())) - sys.stdlib_module_names


@functools.cache
def _known() -> _Known:
    folder = resources.files("pawl.checks")
    data = tomllib.loads((folder / "runners.toml").read_text(encoding="utf-8"))
    launch, reporter = ((folder / "inside" / name).read_text("utf-8") for name in ("launch.py", "node_watch.mjs"))
    return _Known(launch=launch, reporter=reporter, **data)


def launched(files: Folder, argv: Sequence[str], added: Collection[str] = (), sign: str = "") -> tuple[str, ...]:
    """The same command of a Python interpreter, in which what it starts, the runner and the standard library are the
    installed ones. A library is the project's own where it is not among what a run added; the project's packages are
    those of the workspace. With a sign the tests are watched, and the last line of the output begins with it."""
    known = _known()
    python, *words = argv
    guarded = sorted({*known.modules, *(words[1:2] if words[:1] == ["-m"] else ())})
    own = sorted(
        name
        for name in known.own(files)
        if any(files.exists(one) and one not in added for one in _places(_SOURCES, name))
    )
    sources = json.dumps(own_packages(files))
    return (python, "-c", known.launch, ",".join(guarded), ",".join(own), sources, sign, *words)


def own_runner(files: Folder) -> str:
    """The test runner that the project is itself; empty where it is none."""
    name = project_name(files)
    return name if name in _RUNNERS and _known().own(files) else ""


def own_packages(files: Folder) -> dict[str, list[str]]:
    """The folders that a Python project's own packages are imported from, with their names."""
    if not any(map(files.exists, PROJECT_FILES)):
        return {}
    name = project_name(files)
    found = {"": [name]} if name and any(map(files.exists, _places([""], name))) else {}
    for folder in _SOURCES[1:]:
        inner = (path.removeprefix(f"{folder}/") for path in files.walk(folder) if path.endswith(".py"))
        names = {path.partition("/")[0].removesuffix(".py") for path in inner}
        if own := sorted(one for one in names if one.isidentifier() and one not in sys.stdlib_module_names):
            found[folder] = own
    return found


def watched(files: Folder, argv: Sequence[str], added: Collection[str], sign: str) -> tuple[str, ...]:
    """The command with its tests watched: the last line of its output begins with the sign. None where it cannot be.

    Node's own runner is given a reporter more, and assertions that nothing can replace.
    """
    if starts_runner(argv):
        return launched(files, argv, added, sign)
    script = argv[2] if tuple(argv[:2]) == SHELL else shlex.join(argv)
    found = _NODE_TEST.search(script)
    told = re.findall(r"\s(--test-reporter\S*)", script)
    if not found or told[1:] or "--test-reporter" in told:
        return ()
    body = base64.b64encode(_known().reporter.replace("SIGN", sign).encode()).decode()
    reporters = (*(told or ["--test-reporter=tap"]), f"--test-reporter=data:text/javascript;base64,{body}")
    words = [word for one in reporters for word in (one, "--test-reporter-destination=stdout")]
    rest = script[found.end() :].replace(f" {told[0]}", "", 1) if told else script[found.end() :]
    text = f"{script[: found.start(1)]} {shlex.quote(_FROZEN)} --test {shlex.join(words)}{rest}"
    return (*SHELL, text) if tuple(argv[:2]) == SHELL else tuple(shlex.split(text))


SHELL = ("sh", "-c")
_NODE_TEST = re.compile(r"(?:^|[\s/])node\b[^&|;]*?(\s--test)(?=\s|$)")
_FROZEN = "--import=data:text/javascript,import assert from 'node:assert';[assert,assert.strict].forEach(Object.freeze)"


def _places(folders: Iterable[str], name: str) -> list[str]:
    """The files that are a module of that name in one of the folders."""
    return [posixpath.join(folder, name + end) for folder in folders for end in ("/__init__.py", ".py")]


def starts_runner(argv: Sequence[str]) -> bool:
    """Whether the words are a Python interpreter with a test runner as its module."""
    return len(argv) > 2 and bool(_PYTHON.fullmatch(posixpath.basename(argv[0]))) and tuple(argv[1:3]) in _STARTS


_STARTS = tuple(("-m", name) for name in _RUNNERS)


def shadowing(changes: ChangeSet, files: Folder) -> tuple[str, ...]:
    """A line for each path of the change set that takes the place of a runner, its libraries or the standard library.

    `files` are those with the changes.
    """
    found = _renamed(changes, files)
    own = _own(changes, files)
    for change in changes:
        name = _name_taken(change, changes, files, own)
        if name:
            found.append(f"{change.path} shadows {name!r}, which test runners import; only you can promote it")
        elif need := _need_taken(change, files):
            found.append(f"{change.path} shadows {need!r}, which the project requires; only you can promote it")
        elif plugin := _plugin_named(change, files):
            found.append(f"{change.path} makes pytest load {plugin!r} (-p); only you can promote it")
        elif _is_part_of_a_runner(change):
            found.append(f"{change.path} takes part in starting the tests; only you can promote it")
    return tuple(found)


def _renamed(changes: ChangeSet, files: Folder) -> list[str]:
    """A project that begins to call itself a library of the runner has no such package yet."""
    own = frozenset() if changes.paths.isdisjoint(PROJECT_FILES) else _known().own(files)
    folders = {posixpath.dirname(posixpath.dirname(path)) for path in files.walk()} if own else set()
    if not own or any(_stood(changes, path) for name in own for path in _places(folders, name) if files.exists(path)):
        return []
    return [
        f"{path} names the project {sorted(own)[0]!r}, which test runners import; only you can promote it"
        for path in PROJECT_FILES
        if path in changes.paths
    ]


def _plugin_named(change: Change, files: Folder) -> str:
    """The module of the workspace that a changed configuration of pytest has loaded before any test; or none."""
    name = posixpath.basename(change.path)
    if change.after is None or name.lower().lstrip(".") not in _PYTEST_FILES:
        return ""
    # As it is read: escapes undone.
    options = str(toml(files, change.path)) if name.endswith(".toml") else text(files, change.path)
    named = _PLUGIN.findall(re.sub("[\"'\\\\]", "", options or text(files, change.path)))
    ways = {f"/{one.replace('.', '/')}": one for one in named}
    modules = [_STEM.sub("", f"/{path}") for path in files.walk()] if ways else ()
    return next((one for way, one in ways.items() if any(module.endswith(way) for module in modules)), "")


def _need_taken(change: Change, files: Folder) -> str:
    """The package that the project requires, and for which a new module of its own stands in; or none."""
    if change.before is not None or change.after is None or not change.path.endswith(".py"):
        return ""
    for need in python_needs(files):
        name = re.sub(r"[-.]+", "_", need).lower()
        names = {name, _BRAND.sub("", name)} - {project_name(files), ""}
        if any(change.path in _places(_SOURCES, one) for one in names):
            return need
    return ""


_BRAND = re.compile(r"^(?:python_|py_?)(?!test)|(?:_python|_py|_binary|\d)$")
"""Of the name of a package, what its module often goes without."""


def _is_part_of_a_runner(change: Change) -> bool:
    nodes = [node for node in (change.before, change.after) if node is not None]
    if all(node.kind is NodeKind.DIRECTORY for node in nodes):
        return False
    # A link in the place of a folder leads to all that it would hold.
    path = f"/{change.path.lower()}{'/' if nodes[-1].kind is NodeKind.LINK else ''}"
    patterns = _known().shadows["files"]
    return any(fnmatch.fnmatchcase(one, f"*/{pattern}") for one in (path, path.rstrip("/")) for pattern in patterns)


def _name_taken(change: Change, changes: ChangeSet, files: Folder, own: frozenset[str]) -> str:
    """The module that the file is found as, where that is another's name; empty where it is not."""
    if change.after is None or change.after.kind is NodeKind.DIRECTORY:
        return ""
    shadows = _known().shadows
    parts = change.path.split("/")
    stem, dot, ending = parts[-1].partition(".")
    is_link = change.after.kind is NodeKind.LINK
    if not (_MODULE.fullmatch(dot + ending) or (is_link and not dot)):
        return ""
    if stem in shadows["startup"]:
        return stem
    names = _taken()
    for depth, name in enumerate((*parts[:-1], stem)):
        folder = "/".join(parts[:depth])
        whole = depth == len(parts) - 1 or files.exists(f"{folder}/{name}/__init__.py".lstrip("/"))
        stood = name in own and any(_stood(changes, one) for one in _places([folder], name) if files.exists(one))
        if name in names and whole and not stood and not _is_package(folder, changes, files):
            return name
    return ""


@functools.cache
def _taken() -> frozenset[str]:
    known = _known()
    standard = (sys.stdlib_module_names | set(known.shadows["former"])) - set(known.shadows["usual"])
    return known.modules | standard


def _own(changes: ChangeSet, files: Folder) -> frozenset[str]:
    """Files that the project may change as its own where they stood before."""
    known = _known()
    core = {name for names in known.runner.values() for name in names}
    return known.own(files) - core if changes.paths.isdisjoint(PROJECT_FILES) else frozenset()


def _is_package(folder: str, changes: ChangeSet, files: Folder) -> bool:
    """Whether modules of the folder are imported by its name: it was a package before, or is new as a whole."""
    marker = f"{folder}/__init__.py"
    if posixpath.basename(folder) in _known().shadows["roots"] or not files.exists(marker):
        return False
    made = changes.get(marker)
    return made is None or made.before is not None or not any(_stood(changes, path) for path in files.walk(folder))


def _stood(changes: ChangeSet, path: str) -> bool:
    change = changes.get(path)
    return change is None or change.before is not None
