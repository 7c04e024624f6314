"""The bug sets as small workspaces: what to run, and how to judge what comes back."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repair_right import judged

Judge = Callable[[str], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Bug:
    name: str
    make: Callable[[Path], None]
    """Writes the workspace into an empty folder."""
    tests: tuple[str, ...]
    target: str
    judge: Judge
    """From the patched text of the target: how many inputs were compared, and how many differ."""
    import_paths: tuple[str, ...] = ()
    python: str = ""
    kind: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


def quixbugs(data: Path) -> Iterator[Bug]:
    root = data / "quixbugs"
    for tests in sorted((root / "python_testcases").glob("test_*.py")):
        name = tests.stem.removeprefix("test_")
        yield Bug(
            name=name,
            make=lambda folder: copy_quixbugs(root, folder),
            tests=(f"python_testcases/{tests.name}",),
            target=f"python_programs/{name}.py",
            judge=lambda text, name=name: judged("quixbugs", root, name, text),
        )


def copy_quixbugs(root: Path, folder: Path) -> None:
    hidden = shutil.ignore_patterns("__pycache__", "correct_python_programs", "*.pyc")
    shutil.copytree(root, folder, dirs_exist_ok=True, ignore=hidden)


def humanevalfix(data: Path) -> Iterator[Bug]:
    table = data / "humanevalfix_python.jsonl"
    for line in table.read_text().splitlines():
        row = json.loads(line)
        yield Bug(
            name=row["task_id"],
            make=lambda folder, row=row: write_humanevalfix(row, folder),
            tests=("test_solution.py",),
            target="solution.py",
            judge=lambda text, row=row: judged("humanevalfix", table, row["task_id"], text),
            kind=row["bug_type"],
        )


def write_humanevalfix(row: dict[str, Any], folder: Path) -> None:
    source = row["prompt"].rstrip("\n") + "\n" + row["buggy_solution"].rstrip() + "\n"
    (folder / "solution.py").write_text(source)
    (folder / "test_solution.py").write_text(split_tests(row["test"], row["entry_point"]))


def split_tests(source: str, entry: str) -> str:
    """One test for each assertion of `check`, with the statements that stand before it."""
    parts = ["from solution import *", f"from solution import {entry}", ""]
    tests: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            tests = list(_tests_of(node, entry))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            parts.append(ast.unparse(node))
    return "\n".join(parts + tests) + "\n"


def _tests_of(check: ast.FunctionDef, entry: str) -> Iterator[str]:
    alias = check.args.args[0].arg
    setup = [] if alias == entry else [f"{alias} = {entry}"]
    number = 0
    for statement in check.body:
        if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
            body = [*setup, ast.unparse(statement)]
            lines = "\n".join("    " + line for part in body for line in part.split("\n"))
            yield f"\n\ndef test_{number}():\n{lines}"
            number += 1
        else:
            setup.append(ast.unparse(statement))
