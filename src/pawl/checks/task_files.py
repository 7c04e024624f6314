"""Files in which a project names its tasks: what a command such as `make test` or `tox` leads to."""

from __future__ import annotations

import ast
import configparser
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pawl.checks.project_facts import Folder, package_json, table, text, toml
from pawl.core.typed import Unreadable, read_python

_TARGET = re.compile(r"^([\w./ -]++)\s*+:(?!=)\s*([^#\n]*)")
_RECIPE = re.compile(r"^@?([\w-]++)[^:\n]*+(?<!=):(?!=)")
_BRACES = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_FACTORS = re.compile(r"^[\w!.,{}-]+:\s+")
"""The environments of tox in which a line counts."""
_SCRIPT_RUNNERS = frozenset({"npm", "yarn", "pnpm", "bun"})
_WHOLE_FILES: Mapping[str, tuple[str, ...]] = {
    "rake": ("Rakefile",),
    "invoke": ("tasks.py",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
}
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_PREFIXES = frozenset({"sudo", "env", "time", "uv", "uvx", "poetry", "pipenv", "rye", "run", "exec", "npx", "bundle"})
_TABLES = {
    "hatch": "hatch.envs.*.scripts",
    "pdm": "pdm.scripts",
    "poe": "poe.tasks",
    "task": "taskipy.tasks",
    "rye": "rye.scripts",
}
"""Tables of pyproject.toml that name tasks, by the program that runs one."""


def words_of(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()


_VARIABLES = re.compile(r"([\s-]*)(?:env|variables|environment)\s*:\s*(?:#.*)?")
FOLDER = "working-directory"
_FOLDER = re.compile(r"""[\s-]*working-directory\s*:\s*["']?([^"'#]*?)/?["']?\s*(?:#.*)?""")
_EXPORTED = re.compile(r"(\s*)(?:-\s+)?export\s+(.*)")
_VALUE = re.compile(
    r"""\s*["']?([A-Za-z_]\w*)["']?\s*:\s+(?:"([^"]*)"|'([^']*)'|([^\s"'{\[&*!|>#][^#]*?))\s*(?:\s#.*)?"""
)


_MOST_LINES, _MOST_BLOCKS = 5_000, 200


def variables_around(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """For each line of a CI file the variables set for it, as `NAME=value`, and in the same way its folder."""
    around: list[dict[str, tuple[int, str]]] = [{} for _ in lines]
    blocks = (
        (number, line)
        for number, line in enumerate(lines[:_MOST_LINES])
        if any(one in line for one in ("env", "var", "export ", FOLDER))
    )
    for number, line in itertools.islice(blocks, _MOST_BLOCKS):
        if match := _EXPORTED.fullmatch(line):
            column, first = len(match[1]), number
            values = dict(one.split("=", 1) for one in words_of(match[2]) if "=" in one)
        elif match := _VARIABLES.fullmatch(line):
            column, first = len(match[1]), _first_of(lines, number, len(match[1]))
            inner = _below(lines, number + 1, column + 1)
            found = (_VALUE.fullmatch(lines[at]) for at in inner)
            values = {one[1]: one[2] or one[3] or (one[4] or "").strip() for one in found if one}
        elif match := _FOLDER.fullmatch(line):
            above = [one for one in range(number) if lines[one].strip()][-2:]
            keys = [lines[one].strip() for one in above]
            at = above[0] if keys == ["defaults:", "run:"] else number
            column = len(lines[at]) - len(lines[at].lstrip(" -"))
            first, values = _first_of(lines, at, column), {FOLDER: match[1]}
        else:
            continue
        for at in range(first, _below(lines, number + 1, column).stop):
            for name, value in values.items():
                if around[at].get(name, (-1,))[0] <= column:
                    around[at][name] = (column, value)
    return [tuple(f"{name}={value}" for name, (_, value) in one.items()) for one in around]


def _below(lines: Sequence[str], start: int, column: int) -> range:
    """The lines from there on that stand in this column or further in."""
    outside = (at for at in range(start, len(lines)) if lines[at].strip() and _indent(lines[at]) < column)
    return range(start, next(outside, len(lines)))


def _first_of(lines: Sequence[str], number: int, column: int) -> int:
    """The first line of the block in which a key stands in that column."""
    while number > 0 and not (lines[number].strip() and _indent(lines[number]) < column):
        above = lines[number - 1]
        if above.strip() and _indent(above) < column and len(above) - len(above.lstrip(" -")) != column:
            break
        number -= 1
    return number


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def leads_to(files: Folder, command: str) -> str:
    """The text that a command runs in the end, as far as the project's files say; empty when they do not."""
    words = words_of(command)
    while words and (words[0] in _PREFIXES or "=" in words[0]):
        words = words[1:]
    if not words:
        return ""
    program = posixpath.basename(words[0])
    if program in ("make", "gmake"):
        return _make(files, [word for word in words[1:] if not word.startswith("-") and "=" not in word])
    if program in _SCRIPT_RUNNERS:
        return _script(files, words[1:])
    named = [word for word in words[1:] if not word.startswith("-") and word != "run"]
    if program in _TABLES and (found := _task(files, program, named)):
        return found
    if program == "tox":
        return "\n".join(_tox(files))
    if program == "nox":
        return "\n".join(_nox(text(files, "noxfile.py")))
    if program == "just":
        return _just("\n".join(text(files, path) for path in _JUSTFILES), named)
    if program in _WHOLE_FILES:
        return "\n".join(text(files, path) for path in _WHOLE_FILES[program])
    scripts = [word.removeprefix("./") for word in words if "/" in word or word.endswith((".sh", ".py"))]
    return "\n".join(_lines_of(script, text(files, script)) for script in scripts if not script.startswith("/"))


_ARGUMENTS = re.compile(r"""(?<!\s)\s*["']?\$(?:[@*]|\{[@*]\})["']?""")
_NAMED = re.compile(r"\$\{?(\w+)\}?")


def _lines_of(path: str, script: str) -> str:
    """Those of a shell's script with what it has exported before them, and without the words that it may be given."""
    if path.endswith(".py"):
        return script
    lines = [_ARGUMENTS.sub("", line) for line in re.sub(r"\\\n\s*", " ", script).splitlines()]
    around = [dict(one.split("=", 1) for one in variables) for variables in variables_around(lines)]
    return "\n".join(
        _with(values, _NAMED.sub(lambda match, values=values: values.get(match[1], match[0]), line.strip()))  # type: ignore[misc]
        for line, values in zip(lines, around, strict=True)
    )


def _script(files: Folder, words: list[str]) -> str:
    scripts = package_json(files).get("scripts")
    names = [word for word in words if not word.startswith("-") and word not in ("run", "run-script")]
    name = "test" if not names or names[0] == "t" else names[0]
    found = scripts.get(name) if isinstance(scripts, dict) else None
    return found if isinstance(found, str) else ""


def make_targets(files: Folder) -> frozenset[str]:
    """The targets that a Makefile names."""
    found = (_TARGET.match(line) for line in _makefile(files) if not line.startswith(("\t", ".")))
    return frozenset(name for match in found if match for name in match[1].split())


def _makefile(files: Folder) -> list[str]:
    return "\n".join(text(files, name) for name in ("GNUmakefile", "makefile", "Makefile")).splitlines()


_MAKE_EXPORT = re.compile(r"export\s+(\w+)\s*[:?]?=\s*(\S+)\s*")


def _with(variables: Mapping[str, object], command: str) -> str:
    """The command with these assignments before it."""
    assigned = (shlex.quote(f"{name}={value}") for name, value in variables.items() if isinstance(value, str | int))
    return " ".join((*assigned, command.lstrip("@-"))) if command else ""


def _make(files: Folder, targets: list[str]) -> str:
    """The recipes of the targets and of what they need."""
    lines = _makefile(files)
    recipes: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current: list[str] = []
    exported = {match[1]: match[2] for match in map(_MAKE_EXPORT.fullmatch, lines) if match}
    for line in lines:
        match = _TARGET.match(line)
        if line.startswith("\t"):
            for name in current:
                recipes[name].append(_with(exported, line.strip()))
        elif match and not line.startswith("."):
            current = match[1].split()
            for name in current:
                recipes.setdefault(name, [])
                needs.setdefault(name, []).extend(match[2].split())
    waiting = targets or list(recipes)[:1]
    seen: dict[str, None] = {}
    while waiting:
        name = waiting.pop(0)
        if name in recipes and name not in seen:
            seen[name] = None
            waiting += needs[name]
    return "\n".join(line for name in seen for line in recipes[name])


def tasks(files: Folder, path: str) -> Iterator[tuple[str, str]]:
    """The tasks that a table of pyproject.toml names, each with what runs."""
    places: list[tuple[Any, Any]] = [(table(toml(files, "pyproject.toml"), "tool"), {})]
    for name in path.split("."):
        inner = [
            (value, one.get("env-vars") or {})
            for one, _ in places
            for value in (one.values() if name == "*" else [one.get(name)])
        ]
        places = [(value, variables) for value, variables in inner if isinstance(value, dict)]
    for place, variables in places:
        for name, value in place.items():
            yield name, "\n".join(_with(variables, one) for one in _commands(value))


def _commands(value: object) -> Iterator[str]:
    """The commands of a task: a line, lines, or a table with one of the keys that tools use."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))
    elif isinstance(value, dict):
        for key in ("cmd", "shell", "composite", "sequence"):
            given = value.get(key)
            joined = shlex.join(map(str, given)) if key == "cmd" and isinstance(given, list) else given
            yield from (_with(table(value, "env"), one) for one in _commands(joined))


def _task(files: Folder, program: str, named: list[str]) -> str:
    wanted = named[0].rpartition(":")[2] if named else ""
    found = next((commands for name, commands in tasks(files, _TABLES[program]) if name == wanted), "")
    return _filled(found)


def _tox(files: Folder) -> Iterator[str]:
    """The commands of tox's usual environment, without what only tox knows."""
    data = toml(files, "tox.toml") or table(table(toml(files, "pyproject.toml"), "tool"), "tox")
    inner = str(data.get("legacy_tox_ini", ""))
    base = table(data, "env_run_base")
    for lines in base.get("commands", []):
        words = [str(word) for word in lines if isinstance(word, str)] if isinstance(lines, list) else []
        yield _with(table(base, "set_env"), shlex.join(map(_filled, words)))
    for name in ("tox.ini", "setup.cfg", ""):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text(files, name) if name else inner)
        except configparser.Error:
            continue
        found, *variables = (
            _referred(parser, parser.get("testenv", key, fallback="")) for key in ("commands", "setenv", "set_env")
        )
        pairs = (one.split("=", 1) for lines in variables for one in lines.splitlines() if "=" in one)
        values = {key.strip(): _filled(value.strip()) for key, value in pairs}
        joined = re.sub(r"\\\n\s*", " ", found)
        yield from (
            _with(values, _FACTORS.sub("", _filled(line).strip())) for line in joined.splitlines() if line.strip()
        )


_REFERENCE = re.compile(r"\{\[([^\[\]{}]+)\](\w+)\}")


def _referred(parser: configparser.ConfigParser, found: str) -> str:
    """With what other sections say in the place of references to them."""
    for _ in range(_DEEPEST):
        found = _REFERENCE.sub(lambda match: parser.get(match[1], match[2], fallback=""), found)
    return found


_DEEPEST = 3


def _filled(line: str) -> str:
    """With values in the place of braces, from within."""
    filled = _BRACES.sub(_value_of, line)
    return filled if filled == line else _filled(filled)


def _value_of(match: re.Match[str]) -> str:
    # What is installed in an environment is that of the workspace.
    here = ("toxinidir", "tox_root", "root", "env_site_packages_dir", "envsitepackagesdir")
    known = {"envpython": "python", **dict.fromkeys(here, ".")}
    return known.get(match[1], (match[2] or "") if match[1] in ("posargs", "args") else "")


def _nox(script: str) -> Iterator[str]:
    """The commands of sessions, as far as they stand there as text."""
    try:
        calls = [node for node in ast.walk(read_python(script)) if isinstance(node, ast.Call)]
    except Unreadable:
        return
    for call in calls:
        if getattr(call.func, "attr", "") in ("run", "run_always"):
            words = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            given = next((one.value for one in call.keywords if one.arg == "env"), None)
            pairs = zip(given.keys, given.values, strict=True) if isinstance(given, ast.Dict) else ()
            texts = (
                (key.value, value.value)
                for key, value in pairs
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
            )
            yield _with({str(key): value for key, value in texts}, shlex.join(words))


def _just(script: str, named: list[str]) -> str:
    """The lines of a recipe and of those that it needs."""
    recipes: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current = spare = ""
    for line in script.splitlines():
        match = _RECIPE.match(line)
        if match:
            current = match[1]
            recipes[current], needs[current] = [], line.partition(":")[2].split()
            # Words that may be given, and are not.
            spare = "|".join(re.findall(r"\*(\w+)", match[0])) or "(?!)"
        elif line[:1] in (" ", "\t") and current:
            recipes[current].append(re.sub(rf"\{{\{{\s*(?:{spare})\s*\}}\}}", "", line).strip().lstrip("@-"))
    waiting = [named[0] if named else next(iter(recipes), "")]
    lines: list[str] = []
    while waiting:
        name = waiting.pop(0)
        waiting += needs.pop(name, [])
        lines += recipes.pop(name, [])
    return "\n".join(lines)


def just_recipes(files: Folder) -> frozenset[str]:
    """The recipes that a justfile names."""
    lines = "\n".join(text(files, path) for path in _JUSTFILES).splitlines()
    return frozenset(match[1] for match in map(_RECIPE.match, lines) if match)
