"""Reading JSON, TOML, Python and front matter that somebody else wrote: it is read, or `Unreadable` says why."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from typing import Any

LARGEST = 16 << 20
"""Characters or bytes of one text."""


class Unreadable(ValueError):
    """The text is not what it should be."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def read_json(text: str | bytes) -> Any:
    _check(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(error.msg, error.lineno, error.colno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(_why(error)) from error


def read_toml(text: str) -> dict[str, Any]:
    _check(text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(_why(error)) from error


def read_python(source: str | bytes, *, mode: str = "exec", version: tuple[int, int] | None = None) -> Any:
    """The syntax tree: a module, or an expression in the mode "eval"."""
    _check(source)
    with warnings.catch_warnings():
        # A doubtful escape sequence is a warning of that file, not of Pawl.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source, mode=mode, feature_version=version)
        except SyntaxError as error:
            raise Unreadable(f"{type(error).__name__}: {error.msg}", error.lineno or 0, error.offset or 0) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise Unreadable(_why(error)) from error


_FRONT = re.compile(r"\A---\r?\n(?P<head>.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The fields between two rows of dashes that a text begins with, one to a line, and the rest of the text."""
    front = _FRONT.match(text)
    if front is None:
        return {}, text
    lines = (line.partition(":") for line in front["head"].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}, text[front.end() :]


def _check(text: str | bytes) -> None:
    if len(text) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST:,} bytes")


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else "it is nested too deeply"
