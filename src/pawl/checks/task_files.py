"""Files in which a project names its tasks: what a command such as `make test` or `tox` leads to."""

from __future__ import annotations

import ast
import configparser
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
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
        return shlex.split(command)
    except ValueError:
        return command.split()


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
    return "\n".join(text(files, script) for script in scripts if not script.startswith("/"))


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


def _make(files: Folder, targets: list[str]) -> str:
    """The recipes of the targets and of what they need."""
    lines = _makefile(files)
    recipes: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        match = _TARGET.match(line)
        if line.startswith("\t"):
            for name in current:
                recipes[name].append(line.strip())
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
    places: list[Any] = [table(toml(files, "pyproject.toml"), "tool")]
    for name in path.split("."):
        inner = [list(one.values()) if name == "*" else [one.get(name)] for one in places]
        places = [one for group in inner for one in group if isinstance(one, dict)]
    for place in places:
        for name, value in place.items():
            yield name, "\n".join(_commands(value))


def _commands(value: object) -> Iterator[str]:
    """The commands of a task: a line, lines, or a table with one of the keys that tools use."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))
    elif isinstance(value, dict):
        for key in ("cmd", "shell", "composite", "sequence"):
            yield from _commands(value.get(key))


def _task(files: Folder, program: str, named: list[str]) -> str:
    wanted = named[0].rpartition(":")[2] if named else ""
    found = next((commands for name, commands in tasks(files, _TABLES[program]) if name == wanted), "")
    return _filled(found)


def _tox(files: Folder) -> Iterator[str]:
    """The commands of tox's usual environment, without what only tox knows."""
    data = toml(files, "tox.toml") or table(table(toml(files, "pyproject.toml"), "tool"), "tox")
    inner = str(data.get("legacy_tox_ini", ""))
    for lines in table(data, "env_run_base").get("commands", []):
        words = [str(word) for word in lines if isinstance(word, str)] if isinstance(lines, list) else []
        yield shlex.join(map(_filled, words))
    for name in ("tox.ini", "setup.cfg", ""):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text(files, name) if name else inner)
            found = parser.get("testenv", "commands", fallback="")
        except configparser.Error:
            continue
        joined = re.sub(r"\\\n\s*", " ", found)
        yield from (_FACTORS.sub("", _filled(line).strip()) for line in joined.splitlines() if line.strip())


def _filled(line: str) -> str:
    """With values in the place of braces, from within."""
    filled = _BRACES.sub(_value_of, line)
    return filled if filled == line else _filled(filled)


def _value_of(match: re.Match[str]) -> str:
    known = {"envpython": "python", "toxinidir": ".", "tox_root": ".", "root": "."}
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
            yield shlex.join(words)


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
