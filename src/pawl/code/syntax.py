"""Whether a file still parses. What has no checker here, or did not parse before, is said to be unchecked."""

from __future__ import annotations

import ast
import builtins
import fnmatch
import json
import platform
import re
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pawl.core.errors import ImportsDropped, SyntaxBroken


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    line: int
    message: str


def _python(data: bytes) -> SyntaxProblem | None:
    with warnings.catch_warnings():
        # A doubtful escape sequence is a warning of the user's file, not of Pawl.
        warnings.simplefilter("ignore")
        try:
            compile(data, "file", "exec", dont_inherit=True)
        except SyntaxError as error:
            return SyntaxProblem(error.lineno or 1, f"{error.msg} (as Python {platform.python_version()} reads it)")
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxProblem(1, str(error) or "it is nested too deeply")
    return None


def _json(data: bytes) -> SyntaxProblem | None:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return SyntaxProblem(error.lineno, error.msg)
    except (ValueError, RecursionError) as error:
        return SyntaxProblem(1, str(error))
    return None


def _toml(data: bytes) -> SyntaxProblem | None:
    try:
        tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        place = re.search(r"at line (\d+)", str(error))
        return SyntaxProblem(int(place[1]) if place else 1, str(error))
    return None


CHECKERS: Mapping[str, Callable[[bytes], SyntaxProblem | None]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".toml": _toml,
}

COMMENTED_JSON = ("tsconfig*.json", "jsconfig*.json", ".eslintrc.json", "devcontainer.json", "*.code-workspace")
"""JSON in name only: comments and trailing commas are allowed there."""


def check_syntax(path: str, before: bytes | None, after: bytes) -> tuple[str, ...]:
    """Raises `SyntaxBroken` when the file parsed before and does not any more; returns what was not checked."""
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    checker = CHECKERS.get(suffix)
    if checker is None or any(fnmatch.fnmatchcase(name, pattern) for pattern in COMMENTED_JSON):
        return (f"the syntax of {suffix or name!r} files is not checked",)
    problem = checker(after)
    if problem is None:
        return ()
    if before is None:
        return (f"the new file does not parse: line {problem.line}: {problem.message}",)
    if checker(before) is not None:
        return ("the file did not parse before the edit and does not now, so its syntax is not checked",)
    shown = after.split(b"\n")[problem.line - 1 : problem.line] or [b""]
    raise SyntaxBroken(
        f"{path!r} would no longer parse: line {problem.line}: {problem.message}: "
        f"{shown[0].decode('utf-8', 'replace').rstrip()[:200]!r}",
        advice="nothing was written; mind indentation, brackets and quotes of the new text, and edit again",
    )


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
    old, new = _names(before), _names(after)
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


def _names(source: bytes) -> NamesUsed | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
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
