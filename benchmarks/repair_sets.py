"""The bug sets as small workspaces: what to run, and how to judge what comes back."""

from __future__ import annotations

import ast
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repair_js import is_right
from repair_js import make as write_script
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
    reference: Callable[[], str] = str
    """The text of the target as it should be."""
    command: tuple[str, ...] = ("python", "-m", "pytest", "-q")
    """The words that run the tests."""
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
            reference=(root / "correct_python_programs" / f"{name}.py").read_text,
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
            reference=lambda row=row: f"{row['prompt'].rstrip()}\n{row['canonical_solution'].rstrip()}\n",
            kind=row["bug_type"],
        )


def write_humanevalfix(row: dict[str, Any], folder: Path) -> None:
    source = row["prompt"].rstrip("\n") + "\n" + row["buggy_solution"].rstrip() + "\n"
    (folder / "solution.py").write_text(source)
    (folder / "test_solution.py").write_text(split_tests(row["test"], row["entry_point"]))


def humanevalfix_js(data: Path) -> Iterator[Bug]:
    for line in (data / "humanevalfix_js.jsonl").read_text().splitlines():
        row = json.loads(line)
        yield Bug(
            name=row["task_id"],
            make=lambda folder, row=row: write_humanevalfix_js(row, folder),
            tests=("solution.test.js",),
            target="solution.js",
            judge=lambda text, row=row: judged_script(row, text),
            reference=lambda row=row: _script(row, "right.js"),
            command=("node", "--test"),
            kind=row["bug_type"],
        )


def write_humanevalfix_js(row: dict[str, Any], folder: Path) -> None:
    """The solution, and its assertions as one test, so that the one that fails is told."""
    (folder / "solution.js").write_text(_script(row, "solution.js"))
    name = row["entry_point"]
    (folder / "solution.test.js").write_text(
        "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
        f"const {name} = require('./solution.js');\n\n"
        f"test('{name}', () => {{\nconst console = {{ ...globalThis.console, assert: assert.ok }};\n"
        f"{row['test'].strip()}\n}});\n"
    )


def judged_script(row: dict[str, Any], text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="judge-js-") as name:
        folder = Path(name)
        write_script(row, folder)
        (folder / "solution.js").write_text(text)
        return {"compared": 1, "wrong": 0 if is_right(folder) else 1}


def _script(row: dict[str, Any], file: str) -> str:
    with tempfile.TemporaryDirectory(prefix="script-") as name:
        write_script(row, Path(name))
        return (Path(name) / file).read_text()


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
