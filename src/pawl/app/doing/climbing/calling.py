"""What a Python file defines that can be called, and the script that calls it in the project's own interpreter."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from pawl.app.doing.verifying import Verifier
from pawl.core.change import ChangeSet
from pawl.workflow.climbing.test_files import module_of

ORDER = "pawl_attack.json"


def callables(source: str) -> dict[tuple[str, str], str]:
    """The functions of a file and the methods of its classes, by class and name, with their text; none in bad code."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found: dict[tuple[str, str], str] = {}
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = node.name if isinstance(node, ast.ClassDef) else ""
        for one in inner:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                found[owner, one.name] = ast.unparse(one)
    return found


def described(path: str, name: tuple[str, str]) -> dict[str, Any]:
    """A callable as the script takes it."""
    return {"path": path, "module": module_of(path), "owner": name[0], "name": name[1]}


def answered(
    verifier: Verifier, changes: ChangeSet, functions: Sequence[Mapping[str, Any]], **more: object
) -> dict[str, Any]:
    """What the script says about the functions on a bench with the changes; nothing where it cannot be run."""
    script = (resources.files("pawl.app.doing.climbing") / "inside" / "attack.py").read_text(encoding="utf-8")
    tests = [word for word in verifier.test_command if word.endswith(".py") or "::" in word]
    order = json.dumps({"functions": list(functions), "tests": tests, **more}).encode()
    completed = verifier.run_python(changes, ("-c", script, ORDER), {ORDER: order})
    if completed is None or not completed.ok:
        return {}
    try:
        said = json.loads(completed.stdout.text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    return said if isinstance(said, dict) else {}
