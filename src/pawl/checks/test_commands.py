"""The commands by which a project runs its tests, as its CI, pages and task files name them.

Candidates are read off the workspace as it stands, so that no change can choose the command that judges it.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from pawl.checks.catalog import all_tests, detect, first_named
from pawl.checks.known_commands import TestCommand, known_commands
from pawl.checks.project_facts import Folder, text, toml
from pawl.checks.project_facts import table as toml_table
from pawl.checks.task_files import FOLDER, just_recipes, leads_to, make_targets, tasks, variables_around, words_of
from pawl.code.languages import is_test
from pawl.core.errors import NotFound, PawlError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written
from pawl.settings.files import Tree
from pawl.workspace.project import Project

_DEEPEST = 3
_LARGEST, _LONGEST = 256 << 10, 1000
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_QUOTED = re.compile(r"`+([^`\n]+)`+")
_LITERAL = re.compile(r"::\s*$|^\s*\.\. [\w-]+::")
"""The beginning of a block of reStructuredText that is further in."""
_AND_THEN = re.compile(r"\s*(?:&&|;)\s*")
_EXPORT = "export "
_PYTHON = re.compile(r"python[\d.]*")
_IN_QUOTES = re.compile(r"""'([^':;&|<>]*)'|"([^":;&|<>$`]*)\"""")
_SETTING = r"^{}\s*[=:](.*(?:\n[ \t]+.*)*)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    files: tuple[str, ...]
    reads: str
    command: str = ""
    task: tuple[str, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    before: re.Pattern[str]
    runners: tuple[re.Pattern[str], ...]
    tasks: tuple[re.Pattern[str], ...]
    begins: re.Pattern[str]
    modules: tuple[str, ...]
    prefixes: tuple[str, ...]
    prefix_values: tuple[str, ...]
    unreadable: re.Pattern[str]
    narrow: re.Pattern[str]
    not_set: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    source: tuple[_Source, ...]
    line: _Lines
    pytest: Mapping[str, tuple[str, ...]]


@functools.cache
def _table() -> _Table:
    return written(_Table, data_table("pawl.checks", "test_commands.toml"))


@dataclass(frozen=True, slots=True)
class TreeFolder:
    """Fits `Folder`: files of a workspace as it stands, of which a folder's names are not walked further."""

    tree: Tree

    def read(self, path: str) -> bytes:
        try:
            return self.tree.read(path, _LARGEST)
        except OSError as error:
            raise NotFound(f"{path!r} cannot be read: {error.strerror}") from error

    def exists(self, path: str) -> bool:
        try:
            return self.tree.find(path) is not None
        except (OSError, PawlError):
            return False

    def walk(self, under: str = "") -> Iterator[str]:
        try:
            names = self.tree.names(under)
        except (OSError, PawlError):
            return
        yield from (posixpath.join(under, name) for name in sorted(names))


def test_commands(shop: Project) -> tuple[TestCommand, ...]:
    """The commands that may run the tests of a workspace: one that is known to, then those of its files."""
    found = candidates(TreeFolder(shop.tree))
    known = known_commands(shop.config).load(shop.workspace)
    return tuple(sorted(found, key=lambda one: known is None or one.given != known.given))


def likely_command(shop: Project, python: str) -> str:
    """The command that is likeliest to run the tests: the first of the files, else that of the framework; or empty."""
    for one in test_commands(shop):
        return one.shown
    found = detect(TreeFolder(shop.tree)).framework
    return shlex.join(all_tests(found, python=python or "python3")) if found is not None else ""


def candidates(files: Folder) -> tuple[TestCommand, ...]:
    """Each command once, what CI runs first; of one kind of file the plainest first."""
    found: dict[tuple[str, ...], TestCommand] = {}
    for source in _table().source:
        named: dict[tuple[str, ...], TestCommand] = {}
        for path in _paths(files, source):
            for line in _lines(files, source, path):
                for one in _resolved(files, line, 0):
                    named.setdefault(one.given, replace(one, source=path))
        # A page shows how a part is tested, and several jobs that each run a part are no command for the whole.
        whole = set(_table().pytest["whole"])
        parts = {one.words for one in named.values() if (places := _places(one.words)) and not places & whole}
        narrow = parts if source.reads == "quoted" or len(parts) > 1 else set()
        kept = (one for one in named.values() if one.words not in narrow)
        # A command that names its runner goes before a task that only sounds like one.
        for one in sorted(kept, key=lambda one: (not _runs(" ".join(one.words)), len(one.given))):
            if all(files.exists(word) for word in one.words[:3] if word.endswith(".py") and "=" not in word):
                found.setdefault(one.given, one)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class TestPlaces:
    """Where the project's own command looks for Python tests."""

    __test__ = False

    folders: tuple[str, ...]
    """None where that is everywhere."""
    names: tuple[str, ...]

    def hold(self, path: str) -> bool:
        """Whether it looks into the file, which need not be one of Python."""
        inside = (fnmatch.fnmatchcase(path, pattern) for one in self.folders for pattern in (one, f"{one}/*"))
        named = any(fnmatch.fnmatchcase(posixpath.basename(path), one) for one in self.names)
        return not path.endswith(".py") or (named and (not self.folders or "." in self.folders or any(inside)))


def test_places(shop: Project) -> TestPlaces:
    files = TreeFolder(shop.tree)
    named = _places(next((one.words for one in test_commands(shop)), ("",)))
    set_up = [] if looks_everywhere(shop) else _setting(files, "testpaths")
    folders = sorted(posixpath.normpath(one) for one in named or set_up)
    return TestPlaces(tuple(folders), tuple(_setting(files, "python_files") or _table().pytest["names"]))


def looks_everywhere(shop: Project) -> bool:
    """Whether pytest is set to look into folders that the workspace does not have; then it looks everywhere."""
    folders = _setting(TreeFolder(shop.tree), "testpaths")
    return bool(folders) and not any(Path(shop.workspace, one).is_dir() for one in folders)


def told_places(shop: Project, words: str) -> tuple[str, ...]:
    """What pytest is told to look at, where by its settings it would leave out tests that count; mostly nothing.

    These are the tests that a request names, and those that ran before a change made the folder that is set.
    """
    if looks_everywhere(shop):
        return (".",)
    places = test_places(shop)
    named = dict.fromkeys(one.strip("./") for one in _PATH.findall(words))
    paths = ((one, Path(shop.workspace, one)) for one in named if not places.hold(one))
    left_out = [name for name, one in paths if any(one.glob("test_*.py")) or (is_test(one.name) and one.is_file())]
    return (*places.folders, *left_out) if left_out and places.folders else ()


_PATH = re.compile(r"(?<![\w.-])(?:[\w.-]+/)+(?:[\w-]+\.py)?|(?<![\w-])[\w-]+\.py")


def _setting(files: Folder, name: str) -> list[str]:
    """The words of a setting of pytest, in the first of its files that has it."""
    for path in _table().pytest["settings"]:
        if path.endswith(".toml"):
            given = toml_table(toml_table(toml(files, path), "tool"), "pytest")
            listed = {**given, **toml_table(given, "ini_options")}.get(name)
        else:
            match = re.search(_SETTING.format(name), text(files, path), re.MULTILINE)
            listed = match[1] if match else ""
        if listed:
            return listed.split() if isinstance(listed, str) else list(map(str, listed))
    return []


def _places(words: tuple[str, ...]) -> set[str]:
    """Where a command of pytest looks for tests; none for another's."""
    if words[0] != "pytest":
        return set()
    pairs = itertools.pairwise(words)
    return {word for before, word in pairs if not word.startswith("-") and before not in _table().pytest["takes"]}


def _paths(files: Folder, source: _Source) -> Iterator[str]:
    for pattern in source.files:
        if "*" in pattern:
            yield from (path for path in files.walk(posixpath.dirname(pattern)) if fnmatch.fnmatchcase(path, pattern))
        elif files.exists(pattern):
            yield pattern


def _lines(files: Folder, source: _Source, path: str) -> Iterator[str]:
    """The commands that a file names."""
    if source.reads == "name":
        yield from _task_commands(files, source, path)
        return
    lines = re.sub(r"\\\n\s*", " ", text(files, path)).splitlines()
    if source.reads == "quoted":
        lines = list(_quoted(lines))
    around = variables_around(lines) if source.reads == "lines" else itertools.repeat(())
    for line, variables in zip(lines, around, strict=False):
        command = _table().line.before.sub("", line).strip()
        # A whole line in quotes, as YAML has it.
        command = command[:-1] if command[-1:] in ("'", '"') and command.count(command[-1]) % 2 else command
        elsewhere = any(one.startswith(f"{FOLDER}=") and one != f"{FOLDER}=." for one in variables)
        for one in () if elsewhere else _parts(command):
            if _says_tests(one, source.reads):
                yield " ".join((*map(shlex.quote, variables), one))


def _parts(command: str) -> list[str]:
    """The commands of a line one by one, unless one of them goes to another folder or is quoted."""
    parts = _AND_THEN.split(command)
    is_one = any(one.startswith("cd ") or one.count("'") % 2 or one.count('"') % 2 for one in parts)
    if is_one:
        return [command]
    exported = [one.removeprefix(_EXPORT) for one in parts if one.startswith(_EXPORT)]
    return [" ".join((*exported, one)) for one in parts if not one.startswith(_EXPORT)]


def _says_tests(command: str, reads: str) -> bool:
    table = _table().line
    if (
        len(command) > _LONGEST
        or not table.begins.match(command)
        or (reads == "quoted" and table.narrow.search(command))
    ):
        return False
    return _runs(command) or _runs_task(command)


def _quoted(lines: Iterable[str]) -> Iterator[str]:
    inside = literal = False
    for line in lines:
        literal = bool(_LITERAL.search(line)) or (literal and line[:1] in ("", " ", "\t"))
        if _FENCE.match(line):
            inside = not inside
        elif inside or (literal and line[:1] in (" ", "\t")):
            yield line
        else:
            yield from _QUOTED.findall(line)


def _task_commands(files: Folder, source: _Source, path: str) -> Iterator[str]:
    if source.tables:
        known = {tool: dict(tasks(files, place)) for tool, place in source.tables.items()}
        named = ((tool, name) for name in source.task for tool in known if name in known[tool])
        yield from (source.command.format(tool=tool, task=name) for tool, name in named)
    elif source.task:
        has = make_targets(files) if "make" in path.lower() else just_recipes(files)
        yield from (source.command.format(task=name) for name in source.task if name in has)
    else:
        yield source.command


def _resolved(files: Folder, command: str, depth: int) -> Iterator[TestCommand]:
    """What runs tests in the end: a runner, or a task that leads to none that can be read."""
    table = _table().line
    words, variables = _bare(command)
    if not words:
        return
    line = " ".join(words)
    if _runs(line) and table.begins.match(line):
        kept = _plain([*words, *shlex.split(variables.pop(_OPTIONS, ""))])
        said = " ".join(kept)
        for quoted in filter(None, itertools.chain(*_IN_QUOTES.findall(command))):
            said = said.replace(quoted, "")
        if not table.unreadable.search(said):
            yield _started(kept, variables)
    elif depth < _DEEPEST and _runs_task(command):
        lines = (leads_to(files, command) or leads_to(files, line)).splitlines()
        each = (part for one in lines if not one.startswith("#") for part in _parts(one))
        inner = [one for part in each for one in _resolved(files, part, depth + 1)]
        if inner:
            yield _started(inner[0].words, variables | dict(one.split("=", 1) for one in inner[0].variables))
        elif words[0] in ("make", "just") and not table.unreadable.search(line):
            yield _started(tuple(words), variables)


def _started(words: tuple[str, ...], variables: Mapping[str, str]) -> TestCommand:
    """With those of the tests: others decide about the machine or the report, or only CI can fill them in."""
    not_set = _table().line.not_set
    places = (_ROOT.sub("", one) for one in variables.get(_IMPORTS, "").split(":"))
    values = {**variables, _IMPORTS: ":".join(one for one in places if "$" not in one)}
    kept = {name: one for name, one in values.items() if one and not not_set.match(name) and not set(one) & _OPEN}
    return TestCommand(words=words, variables=tuple(f"{name}={value}" for name, value in sorted(kept.items())))


_IMPORTS = "PYTHONPATH"
_ROOT = re.compile(r"(?:\$\{\{\s*github\.workspace\s*\}\}|\$\{?(?:PWD|CI_PROJECT_DIR|GITHUB_WORKSPACE)\}?)/")
_OPTIONS = "PYTEST_ADDOPTS"
_OPEN = frozenset("$`\0\n")
"""Characters of a value that only its own shell or CI fills in."""


def _runs(command: str) -> bool:
    """Whether it names a test framework, or a runner of the project's own."""
    return first_named(command) is not None or any(one.search(command) for one in _table().line.runners)


def _runs_task(command: str) -> bool:
    bare = " ".join(_bare(command)[0])
    return any(one.search(line) for one in _table().line.tasks for line in (command, bare))


def _bare(command: str) -> tuple[list[str], dict[str, str]]:
    """The words without what only prepares the command, such as tools that choose an environment; and its variables."""
    table = _table().line
    words = words_of(command.lstrip("@-"))
    variables: dict[str, str] = {}
    while words:
        if len(words) > 2 and _PYTHON.fullmatch(words[0]) and words[1] == "-m" and words[2] in table.modules:
            words = words[2:]
        prefix = next((one for one in table.prefixes if words[: one.count(" ") + 1] == one.split()), "")
        name, equals, value = words[0].partition("=")
        if prefix and len(words) > prefix.count(" ") + 1:
            words = words[prefix.count(" ") + 1 :]
            while words and words[0].startswith("-") and words[0] != "-m":
                takes = words[0] in table.prefix_values
                words = words[2 if takes else 1 :]
            words = ["python", *words] if words[:1] == ["-m"] else words
        elif equals and not name.startswith("-"):
            variables |= {name: value} if name.isidentifier() else {}
            words = words[1:]
        else:
            break
    return words, variables


def _plain(words: list[str]) -> tuple[str, ...]:
    """A command of pytest without what decides about its report only."""
    first = posixpath.basename(words[0])
    if first in ("pytest", "py.test"):
        rest = words[1:]
    elif _PYTHON.fullmatch(first) and words[1:3] == ["-m", "pytest"]:
        rest = words[3:]
    else:
        return ("python" if _PYTHON.fullmatch(first) else words[0], *words[1:])
    kept: list[str] = []
    dropped = _table().pytest
    waiting = iter(rest)
    for word in waiting:
        if word in dropped["values"]:
            next(waiting, None)
        elif not any(fnmatch.fnmatchcase(word, one) for one in dropped["drop"]):
            kept.append(word)
    return ("pytest", *kept)
