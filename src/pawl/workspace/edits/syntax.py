"""Whether a file still parses. What has no checker here, or did not parse before, is said to be unchecked."""

from __future__ import annotations

import fnmatch
import json
import platform
import re
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pawl.core.errors import SyntaxBroken


@dataclass(frozen=True, slots=True)
class Problem:
    line: int
    message: str


def _python(data: bytes) -> Problem | None:
    with warnings.catch_warnings():
        # A doubtful escape sequence is a warning of the user's file, not of Pawl.
        warnings.simplefilter("ignore")
        try:
            compile(data, "file", "exec", dont_inherit=True)
        except SyntaxError as error:
            return Problem(error.lineno or 1, f"{error.msg} (as Python {platform.python_version()} reads it)")
        except (ValueError, RecursionError, MemoryError) as error:
            return Problem(1, str(error) or "it is nested too deeply")
    return None


def _json(data: bytes) -> Problem | None:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return Problem(error.lineno, error.msg)
    except (ValueError, RecursionError) as error:
        return Problem(1, str(error))
    return None


def _toml(data: bytes) -> Problem | None:
    try:
        tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        place = re.search(r"at line (\d+)", str(error))
        return Problem(int(place[1]) if place else 1, str(error))
    return None


CHECKERS: Mapping[str, Callable[[bytes], Problem | None]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".toml": _toml,
}

COMMENTED_JSON = ("tsconfig*.json", "jsconfig*.json", ".eslintrc.json", "devcontainer.json", "*.code-workspace")
"""JSON in name only: comments and trailing commas are allowed there."""


def check(path: str, before: bytes | None, after: bytes) -> tuple[str, ...]:
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
