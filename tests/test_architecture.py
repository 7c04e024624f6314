"""The rules of the house, read from the source: directions, sizes, names and what code may not do.

Each rule is a function of one module that returns its violations, so that each is shown a bad module as well.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ROOMS = (
    "ui",
    "agent",
    "repair",
    "checks",
    "code",
    "models",
    "workspace",
    "sandbox",
    "store",
    "settings",
    "core",
)
"""The stack: a room sees itself and those that stand behind it."""
MAY_IMPORT = {
    **{room: frozenset(ROOMS[number:]) for number, room in enumerate(ROOMS)},
    "__main__": frozenset({"ui", "core"}),
    "langgraph": frozenset(ROOMS[1:]),
    # The public API stands there, loaded when it is used: tests/scenarios/test_session_api.py holds that.
    "__init__": frozenset({"agent", "core"}),
}
"""Which packages each package of pawl sees besides itself; imports for type checkers count."""

STANDARD_LIBRARY_ONLY = frozenset({"core", "settings"})
SCREEN = frozenset({"rich", "prompt_toolkit"})
INTERFACES = ("web", "editor", "terminal", "cli", "screen")
"""The stack inside of `ui`: the session uses the commands of the command line, and both are drawn with `screen`."""
STARTS_GIT = "src/pawl/workspace/git.py"
GIT_COMMAND = re.compile(
    r"(?:^|[\n;&|(]\s*|\b(?:exec|command|then|do|else)\s+)(?:/\S*/)?git\s+(?:-|\"|[a-z]+-?[a-z]*\s)"
)
# The launcher runs in the project's interpreter, and hands the import path on to what tests start.
READS_ENVIRONMENT = frozenset(
    {
        "src/pawl/settings/config.py",
        "src/pawl/checks/inside/launch.py",
        "src/pawl/repair/inside/reflex_inside/hosts.py",
    }
)
# A benchmark that calls functions under test must survive whatever they raise.
OUTERMOST = frozenset({"benchmarks/repair_package.py", "benchmarks/repair_right.py"})
"""Modules that hold the outermost loop of a process, where nothing is left to catch what was not expected."""

ROOM_LINES = {
    "ui": 14210,  # `pawl queue`, what each action takes; specifications; what a session leaves; commands in the page.
    "agent": 23545,  # Issues of other specifications; workers of a queue that agree; demands in documents.
    "repair": 11550,  # Reports that a project makes itself; clues beside the tests; stages of a search.
    "checks": 12295,  # Answers in data and other forms, what tests lean on, tests that move, runs cut off.
    "code": 7110,  # Imports without an index; an edit is tried before it is made; words of pieces that are gone.
    "models": 7364,  # Which file a copied line is of; traces that go on in another process.
    "workspace": 8090,  # Commits that travel; versions that projects ask for; interpreters against an agent.
    "sandbox": 2720,
    "store": 2600,  # Jobs; runs that go on elsewhere.
    "settings": 4180,  # What a confined command redirects; trust of what was fetched; a line of those who wait.
    "core": 5630,  # Jobs; merges that several ways to match lines agree on; what a call changed.
}
"""At most; no room grows in silence. They are to shrink: the house is to have 63,000 lines.
`ui` and `agent` were raised for `pawl spec` (E11): tasks, waves and their execution are a capability of their own."""
MODULE_LINES = 600
FUNCTION_LINES = 60
PARAMETERS = 6
NOUNS = frozenset({"briefing", "keyring", "reasoning"})
"""Modules that end like an activity and hold a thing of that name."""
VAGUE = frozenset({"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"})
BROAD = frozenset({"Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Module:
    """A Python file as the rules see it."""

    path: str
    text: str
    tree: ast.Module = field(compare=False)

    @classmethod
    def of(cls, path: str, text: str) -> Module:
        return cls(path, text, ast.parse(text))

    @property
    def package(self) -> str | None:
        """The room of pawl that it stands in; None outside of pawl."""
        parts = Path(self.path).with_suffix("").parts
        return parts[2] if parts[:2] == ("src", "pawl") else None


@functools.cache
def nodes_of(module: Module) -> list[ast.AST]:
    return list(ast.walk(module.tree))


def walk_functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_of(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@functools.cache
def imports_of(module: Module) -> list[tuple[int, str]]:
    """Every dotted name that the module imports, at the top, inside a function or for type checkers only."""
    return list(_imports_of(module))


def _imports_of(module: Module) -> Iterator[tuple[int, str]]:
    for node in nodes_of(module):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(source), level=0, names=names):
                yield from ((node.lineno, f"{source}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


@functools.cache
def names_used(module: Module) -> list[tuple[int, str]]:
    """Dotted names as they are used, with imported names spelled out: `from time import sleep` gives time.sleep."""
    return list(_names_used(module))


def _names_used(module: Module) -> Iterator[tuple[int, str]]:
    full = {}
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            full |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            full |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in nodes_of(module):
        if isinstance(node, ast.Name | ast.Attribute):
            first, *rest = _dotted(node).split(".")
            yield node.lineno, ".".join([full.get(first, first), *rest])


def _dotted(node: ast.expr) -> str:
    """As `ast.unparse` has it, which takes its time."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name() | ast.Attribute() as value, attr=name):
            return f"{_dotted(value)}.{name}"
    return ast.unparse(node)


def imports_point_down(module: Module) -> list[str]:
    package = module.package
    if package is None:
        return []
    rooms = MAY_IMPORT.get(package)
    if rooms is None:
        return [f"1: {package!r} has no line in MAY_IMPORT"]
    seen = ((line, name.split(".")) for line, name in imports_of(module))
    inside = ((line, parts[1], parts) for line, parts in seen if parts[0] == "pawl" and len(parts) > 1)
    return [
        f"{line}: imports {'.'.join(parts)}"
        for line, room, parts in inside
        if room in MAY_IMPORT and room not in rooms | {package}
    ]


def interfaces_point_down(module: Module) -> list[str]:
    own = Path(module.path).with_suffix("").parts[3:4]
    if module.package != "ui" or own == ("__init__",):
        return []
    below = INTERFACES[INTERFACES.index(own[0]) :]
    seen = ((line, name.split(".")) for line, name in imports_of(module))
    return [
        f"{line}: imports {'.'.join(parts)}"
        for line, parts in seen
        if parts[:2] == ["pawl", "ui"] and parts[2:3] and parts[2] not in below
    ]


def foreign_packages_stay_in_their_rooms(module: Module) -> list[str]:
    found = []
    for line, name in imports_of(module):
        top = name.split(".")[0]
        if module.package in STANDARD_LIBRARY_ONLY and top != "pawl" and top not in sys.stdlib_module_names:
            found.append(f"{line}: {module.package} is standard library only, imports {name}")
        elif module.package not in {None, "ui"} and top in SCREEN:
            found.append(f"{line}: only the ui draws, imports {name}")
    return found


def imports_are_absolute(module: Module) -> list[str]:
    nodes = (node for node in nodes_of(module) if isinstance(node, ast.ImportFrom))
    return [f"{node.lineno}: relative import" for node in nodes if node.level]


def modules_are_short(module: Module) -> list[str]:
    lines = module.text.count("\n")
    return [f"1: {lines} lines"] if lines > MODULE_LINES else []


def functions_are_short(module: Module) -> list[str]:
    sizes = ((node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in walk_functions(module))
    return [f"{node.lineno}: {node.name} has {size} lines" for node, size in sizes if size > FUNCTION_LINES]


def signatures_are_narrow(module: Module) -> list[str]:
    found = []
    for node in walk_functions(module):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        count = len(names) + len(node.args.kwonlyargs) - (names[:1] in (["self"], ["cls"]))
        if count > PARAMETERS:
            found.append(f"{node.lineno}: {node.name} has {count} parameters")
    return found


def booleans_have_names(module: Module) -> list[str]:
    """A call says what its True means: a boolean parameter is keyword-only."""
    found = []
    for node in walk_functions(module):
        arguments = [*node.args.posonlyargs, *node.args.args]
        undefaulted = len(arguments) - len(node.args.defaults)
        for argument, default in zip(arguments, [None] * undefaulted + node.args.defaults, strict=True):
            annotated = isinstance(argument.annotation, ast.Name) and argument.annotation.id == "bool"
            if annotated or (isinstance(default, ast.Constant) and isinstance(default.value, bool)):
                found.append(f"{node.lineno}: {node.name}({argument.arg})")
    return found


def names_say_something(module: Module) -> list[str]:
    words = {word for part in Path(module.path).with_suffix("").parts for word in part.split("_")}
    return [f"1: {word!r} says nothing" for word in sorted(words & VAGUE)]


def modules_are_named_after_things(module: Module) -> list[str]:
    name = Path(module.path).stem
    return [f"1: {name!r} is an activity"] if name.endswith("ing") and name not in NOUNS else []


def modules_open_with_a_docstring(module: Module) -> list[str]:
    return [] if ast.get_docstring(module.tree) else ["1: no docstring"]


def names_are_bound_once(module: Module) -> list[str]:
    """A module's own names: the second of two constants of one name counts for whoever imports the first."""
    bound: dict[str, int] = {}
    found = []
    for node in module.tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for name in (one.id for one in targets if isinstance(one, ast.Name)):
            if name in bound:
                found.append(f"{node.lineno}: {name} is bound in line {bound[name]}")
            bound[name] = node.lineno
    return found


def errors_are_caught_by_name(module: Module) -> list[str]:
    if module.path in OUTERMOST:
        return []
    found = []
    for node in nodes_of(module):
        match node:
            case ast.ExceptHandler(type=caught, body=[*_, last]):
                names = BROAD if caught is None else {ast.unparse(part) for part in ast.walk(caught)}
                # Cleaning up and letting the error go on is not catching it.
                if names & BROAD and not isinstance(last, ast.Raise):
                    found.append(f"{node.lineno}: broad except")
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
                if {ast.unparse(name) for name in caught} & BROAD:
                    found.append(f"{node.lineno}: broad suppress")
    return found


def nothing_is_mocked(module: Module) -> list[str]:
    mocks = ("unittest.mock", "mock")
    return [
        f"{line}: imports {name}"
        for line, name in imports_of(module)
        if name in mocks or name.startswith(tuple(f"{mock}." for mock in mocks))
    ]


def nothing_sleeps(module: Module) -> list[str]:
    return [f"{line}: time.sleep" for line, name in names_used(module) if name == "time.sleep"]


def one_module_starts_git(module: Module) -> list[str]:
    """Neither as the first word of a command nor in the text of a script.

    Advice, and the examples that an interface shows, are no scripts.
    """
    if module.path == STARTS_GIT:
        return []
    told = [node for node in nodes_of(module) if isinstance(node, ast.Raise | ast.Compare)]
    told += [node for node in nodes_of(module) if isinstance(node, ast.keyword) and node.arg in ("advice", "help")]
    told += [one.value for one in nodes_of(module) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)]
    said = {id(inner) for node in told for inner in ast.walk(node)}
    words = [node for node in nodes_of(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    first = {id(node.elts[0]) for node in nodes_of(module) if isinstance(node, ast.Tuple | ast.List) and node.elts} | {
        id(node.args[0]) for node in nodes_of(module) if isinstance(node, ast.Call) and node.args
    }
    return [
        f"{node.lineno}: starts git"
        for node in words
        if (id(node) in first and Path(node.value).name == "git")
        or (id(node) not in said and module.package != "ui" and GIT_COMMAND.search(node.value))
    ]


def pythons_take_no_module_of_the_folder(module: Module) -> list[str]:
    """A workspace that Pawl stands in may have a `pawl.py` or a `json.py`."""
    lists = [node.elts for node in nodes_of(module) if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1]
    started = [words for words in lists if ast.unparse(words[0]) == "sys.executable"]
    return [f"{words[0].lineno}: starts Python" for words in started if ast.unparse(words[1]) not in ("'-I'", "'-P'")]


def one_module_reads_the_environment(module: Module) -> list[str]:
    if module.path in READS_ENVIRONMENT:
        return []
    readers = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
    return [f"{line}: {name}" for line, name in names_used(module) if name in readers]


def only_interfaces_print(module: Module) -> list[str]:
    if module.package == "ui":
        return []
    return [f"{line}: print" for line, name in names_used(module) if name == "print"]


Rule = Callable[[Module], list[str]]

IN_SOURCE: tuple[Rule, ...] = (
    imports_point_down,
    interfaces_point_down,
    foreign_packages_stay_in_their_rooms,
    modules_are_short,
    functions_are_short,
    signatures_are_narrow,
    booleans_have_names,
    modules_are_named_after_things,
    one_module_reads_the_environment,
    one_module_starts_git,
    pythons_take_no_module_of_the_folder,
    only_interfaces_print,
)
EVERYWHERE: tuple[Rule, ...] = (
    imports_are_absolute,
    names_say_something,
    modules_open_with_a_docstring,
    names_are_bound_once,
    errors_are_caught_by_name,
    nothing_is_mocked,
    nothing_sleeps,
)

DOC = '"""Says what it is."""\n'
LONG_BODY = "".join(f"    x = {number}\n" for number in range(FUNCTION_LINES))
CORE, STORE, CLI = "src/pawl/core/a.py", "src/pawl/store/a.py", "src/pawl/ui/cli/a.py"

BROKEN: list[tuple[Rule, str, str]] = [
    (imports_point_down, CORE, "import pawl.store"),
    (imports_point_down, CORE, "from pawl import store"),
    (imports_point_down, STORE, "from pawl.sandbox.run import Runner"),
    (imports_point_down, STORE, "if TYPE_CHECKING:\n    from pawl.agent import session"),
    (imports_point_down, STORE, "def f():\n    from pawl.workspace import git"),
    (imports_point_down, STORE, 'import importlib\nimportlib.import_module("pawl.agent")'),
    (imports_point_down, "src/pawl/agent/a.py", "from pawl.ui.cli import main"),
    (imports_point_down, "src/pawl/code/a.py", "from pawl.checks.report import Report"),
    (imports_point_down, "src/pawl/__main__.py", "from pawl.agent import session"),
    (imports_point_down, "src/pawl/__init__.py", "from pawl.store import Store"),
    (imports_point_down, "src/pawl/newcomer/a.py", ""),
    (interfaces_point_down, CLI, "from pawl.ui.terminal import session"),
    (interfaces_point_down, "src/pawl/ui/screen/a.py", "from pawl.ui.cli import call"),
    (foreign_packages_stay_in_their_rooms, CORE, "import pathspec"),
    (foreign_packages_stay_in_their_rooms, "src/pawl/settings/a.py", "def f():\n    from rich import box"),
    (foreign_packages_stay_in_their_rooms, "src/pawl/agent/a.py", "from rich.console import Console"),
    (imports_are_absolute, STORE, "from . import blobs"),
    (modules_are_short, STORE, "x = 1\n" * (MODULE_LINES + 1)),
    (functions_are_short, STORE, f"async def f():\n{LONG_BODY}"),
    (signatures_are_narrow, STORE, "class C:\n    def f(self, a, b, c, d, e, *, f, g): ..."),
    (names_are_bound_once, STORE, "FILES = ('a',)\nFILES: tuple[str, ...] = ('b',)"),
    (booleans_have_names, STORE, "def f(a, deep=True): ..."),
    (booleans_have_names, STORE, "def f(deep: bool, /): ..."),
    (names_say_something, "src/pawl/store/path_utils.py", ""),
    (names_say_something, "src/pawl/common/blobs.py", ""),
    (modules_are_named_after_things, "src/pawl/agent/carrying.py", ""),
    (modules_open_with_a_docstring, STORE, "x = 1"),
    (errors_are_caught_by_name, STORE, "try: x()\nexcept Exception: pass"),
    (errors_are_caught_by_name, STORE, "try: x()\nexcept (OSError, BaseException) as error: pass"),
    (errors_are_caught_by_name, STORE, "try: x()\nexcept: pass"),
    (errors_are_caught_by_name, STORE, "with contextlib.suppress(Exception): x()"),
    (nothing_is_mocked, "tests/test_a.py", "from unittest import mock"),
    (nothing_is_mocked, "tests/test_a.py", "from unittest.mock import patch"),
    (nothing_is_mocked, "tests/test_a.py", "import unittest.mock"),
    (nothing_sleeps, "tests/test_a.py", "import time\ntime.sleep(1)"),
    (nothing_sleeps, STORE, "from time import sleep as rest\nrest(1)"),
    (nothing_sleeps, STORE, "import time as clock\nclock.sleep(1)"),
    (one_module_reads_the_environment, STORE, 'import os\nos.environ["HOME"]'),
    (one_module_reads_the_environment, STORE, 'from os import getenv\ngetenv("HOME")'),
    (one_module_starts_git, STORE, 'run(["git", "log"])'),
    (one_module_starts_git, STORE, 'COMMAND = ("/usr/bin/git", "-c", "x")'),
    (one_module_starts_git, STORE, 'SCRIPT = "cd x; git add --all ."'),
    (one_module_starts_git, STORE, 'SCRIPT = "exec git diff HEAD"'),
    (pythons_take_no_module_of_the_folder, STORE, 'run([sys.executable, "-m", "pawl"])'),
    (pythons_take_no_module_of_the_folder, STORE, 'WORDS = (sys.executable, "-c", "x", "-I")'),
    (only_interfaces_print, STORE, 'print("x")'),
]

SOUND: list[tuple[Rule, str, str]] = [
    (imports_point_down, STORE, "import sqlite3\nfrom pawl import __version__\nfrom pawl.core.change import Change"),
    (imports_point_down, "src/pawl/agent/a.py", "from pawl.store import blobs\nfrom pawl.agent import session"),
    (imports_point_down, "tests/test_a.py", "from pawl.store import blobs"),
    (interfaces_point_down, CLI, "from pawl.ui.cli import call\nfrom pawl.ui.screen import renderer"),
    (interfaces_point_down, "src/pawl/ui/terminal/a.py", "from pawl.ui.cli import main"),
    (foreign_packages_stay_in_their_rooms, CLI, "import rich"),
    (modules_are_short, STORE, "x = 1\n" * MODULE_LINES),
    (functions_are_short, STORE, f"def f():\n{LONG_BODY}".removesuffix(f"    x = {FUNCTION_LINES - 1}\n")),
    (signatures_are_narrow, STORE, "class C:\n    def f(self, a, b, c, d, e, *, f): ..."),
    (booleans_have_names, STORE, "def f(a=1, *, deep: bool = False): ..."),
    (names_are_bound_once, STORE, "FILES = ('a',)\ndef f():\n    FILES = ('b',)"),
    (errors_are_caught_by_name, STORE, "try: x()\nexcept BaseException:\n    undo()\n    raise"),
    (one_module_reads_the_environment, "src/pawl/settings/config.py", 'import os\nos.environ["HOME"]'),
    (one_module_starts_git, STORE, 'raise UsageError("see", advice="git init, or leave it out")'),
    (pythons_take_no_module_of_the_folder, STORE, 'run([sys.executable, "-P", "-m", "pawl"])'),
    (only_interfaces_print, CLI, 'print("x")'),
]


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def read_module(path: Path) -> Module:
    return Module.of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def violations(rule: Rule, files: list[Path]) -> list[str]:
    return [f"{module.path}:{violation}" for module in map(read_module, files) for violation in rule(module)]


@pytest.mark.parametrize("rule", IN_SOURCE, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule: Rule):
    assert violations(rule, python_files("src")) == []


@pytest.mark.parametrize("rule", EVERYWHERE, ids=lambda rule: rule.__name__)
def test_source_tests_and_benchmarks_keep_the_rule(rule: Rule):
    assert violations(rule, python_files("src", "tests", "benchmarks")) == []


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_rule_sees_what_breaks_it(rule: Rule, path: str, text: str):
    assert rule(Module.of(path, text)) != []


@pytest.mark.parametrize(("rule", "path", "text"), SOUND)
def test_a_rule_lets_sound_code_pass(rule: Rule, path: str, text: str):
    assert rule(Module.of(path, DOC + text if rule is not modules_are_short else text)) == []


def test_every_rule_has_been_shown_to_fail():
    assert {rule for rule, _, _ in BROKEN} == {*IN_SOURCE, *EVERYWHERE}


def test_every_room_of_the_house_has_its_line_in_the_table():
    packages = {path.parent.name for path in (ROOT / "src" / "pawl").glob("*/__init__.py")}
    assert packages == MAY_IMPORT.keys() - {"__main__", "__init__", "langgraph"}


def twice(names: list[tuple[str, str]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for name, place in names:
        places.setdefault(name, []).append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_module_name_stands_twice():
    modules = [read_module(path).path for path in python_files("src") if path.stem != "__init__"]
    assert twice([(Path(path).stem, path) for path in modules]) == {}


def test_no_public_class_name_stands_twice():
    classes = [
        (node.name, module.path)
        for module in map(read_module, python_files("src"))
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert twice(classes) == {}
    assert twice([("Plain", "a.py"), ("Program", "b.py"), ("Plain", "c.py")]) == {"Plain": ["a.py", "c.py"]}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_no_more_lines_than_it_may(room: str):
    lines = sum(read_module(path).text.count("\n") for path in python_files(f"src/pawl/{room}"))
    assert lines <= ROOM_LINES[room], f"{room}: {lines} lines; make them fewer, or raise the cap and say why"


def is_there(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute) or bool(importlib.import_module(name))
    except ModuleNotFoundError:
        return False


def test_what_benchmarks_import_is_there():
    """Nobody else looks: no type checker reads them, and no test runs them."""
    names = {name for path in python_files("benchmarks") for _, name in imports_of(read_module(path))}
    assert [name for name in sorted(names) if name.startswith("pawl.") and not is_there(name)] == []
    assert not is_there("pawl.code.code_model.Commit") and not is_there("pawl.nothing")
