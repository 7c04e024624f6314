"""Tests that are written before their code: they have to be seen failing, and for want of the code."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable

from pawl.checks.test_ids import file_of
from pawl.code.languages import is_test
from pawl.core.diagnostic import CheckResult, Diagnostic, Severity

_BEFORE_CODE = ("tests", "types", "diagnostics")
"""Checks that fail for tests of code that is not written yet."""
_OWN_FAULT = re.compile(r"^(?:SyntaxError|IndentationError|TabError|NameError)\b|fixture '.*' not found")


_MODULE = re.compile(
    r"No module named '(?P<python>[\w.]+)'"
    r"|(?:Cannot find module|Failed to resolve import) [\"'](?P<script>\.[^\"']+)[\"']"
)


def red_notes(result: CheckResult, paths: Iterable[str], coming: Collection[str]) -> list[str] | None:
    """The failures of tests that are to fail; None where not all errors that the check finds lie in the tests among the
    changed paths, or where they are a fault of their own."""
    written = frozenset(filter(is_test, paths))
    right = result.step.partition(" ")[0] in _BEFORE_CODE and all(
        _OWN_FAULT.search(f"{one.code}: {one.message}") is None
        and not written.isdisjoint((one.path, file_of(one.test)))
        and not _is_mistyped(one, coming)
        for one in result.findings
        if one.severity is Severity.ERROR
    )
    notes = [f"{one.test or one.place} fails, as it should: {one.first_line}" for one in result.findings]
    return notes if right else None


def _is_mistyped(one: Diagnostic, coming: Collection[str]) -> bool:
    """Whether it misses a module of a folder that others write into, and that none of them writes."""
    found = _MODULE.search(f"{one.code}: {one.message}")
    if found is None:
        return False
    if found["python"]:
        path = found["python"].replace(".", "/")
    else:
        near = posixpath.dirname(one.path or file_of(one.test))
        path = posixpath.splitext(posixpath.normpath(posixpath.join(near, found["script"])))[0]
    folder = posixpath.dirname(path)
    beside = [f"/{file}" for file in coming if folder and f"/{folder}/" in f"/{file}"]
    return bool(beside) and not any(
        f"/{path}." in file or f"/{path}/" in file or file.endswith(f"/{folder}/") for file in beside
    )


def red_refusals(failed: Collection[str], paths: Collection[str]) -> list[str]:
    """Why tests that are to fail are not accepted; `paths` are those of the change, with new folders."""
    files = [path for path in paths if not any(one.startswith(f"{path}/") for one in paths)]
    none = [] if failed else ["none of the new tests fails: they do not show what is missing"]
    return none + [f"{path!r} is not a test, and only tests are to be written" for path in files if not is_test(path)]
