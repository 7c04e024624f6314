"""Edits that the text of an exception asks for: misspelt names, missing imports, missing `self`."""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib
import re
import sys
from dataclasses import dataclass
from functools import lru_cache

from reflex_inside.edits import Edit
from reflex_inside.limits import Caught
from reflex_inside.program import Facts
from reflex_inside.templates.site import Proposal, Proposals, Site

UNKNOWN_NAME = re.compile(r"(?:name|free variable|cannot access \w+ variable|local variable) '(\w+)'")
UNKNOWN_ATTRIBUTE = re.compile(r"(?:'[\w.]+' object|module '[\w.]+'|type object '\w+') has no attribute '(\w+)'")
UNKNOWN_KEYWORD = re.compile(r"got an unexpected keyword argument '(\w+)'")
IMPORTABLE = (
    "collections", "itertools", "functools", "typing", "dataclasses", "contextlib", "pathlib", "datetime", "operator",
    "math", "copy", "abc", "enum", "string", "re", "json", "random", "heapq", "bisect", "decimal", "fractions",
    "textwrap", "types", "inspect", "warnings", "time", "threading", "queue", "tempfile", "shutil", "subprocess",
    "statistics", "hashlib", "urllib.parse", "io",
)  # fmt: skip
IMPORT_TEMPLATE = "missing import"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What an exception said, and on which line of the function it was raised."""

    kind: str
    message: str


def diagnosed(facts: Facts, diagnoses: list[Diagnosis]) -> Proposals:
    for diagnosis in diagnoses:
        name = UNKNOWN_NAME.match(diagnosis.message)
        if diagnosis.kind in {"NameError", "UnboundLocalError"} and name:
            yield from _unknown_name(facts, name.group(1))
        attribute = UNKNOWN_ATTRIBUTE.match(diagnosis.message)
        if diagnosis.kind == "AttributeError" and attribute:
            yield from _unknown_attribute(facts, attribute.group(1))
        keyword = UNKNOWN_KEYWORD.search(diagnosis.message)
        if diagnosis.kind == "TypeError" and keyword:
            yield from _unknown_keyword(facts, keyword.group(1))


def _unknown_name(facts: Facts, bad: str) -> Proposals:
    defined = [node.name for node in facts.source.tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    known = [name for name in dict.fromkeys([*facts.names, *defined, *facts.callees, *dir(builtins)]) if name != bad]
    close = difflib.get_close_matches(bad, known, 5, 0.5)
    owner = facts.function.node.args.args[0].arg if facts.function.owners and facts.function.node.args.args else ""
    found = False
    for node in ast.walk(facts.function.node):
        if isinstance(node, ast.Name) and node.id == bad and isinstance(node.ctx, ast.Load):
            found = True
            site = Site(facts, node)
            for rank, name in enumerate(close):
                yield from site.replace(0.6 + 0.2 * rank, "did you mean", name)
            if owner:
                yield from site.replace(0.7, "missing self", f"{owner}.{bad}")
    if found:
        place = import_offset(facts)
        for statement in imports_of(bad):
            yield Proposal(0.3, IMPORT_TEMPLATE, (Edit(place, place, statement + "\n"),), facts.function.node.lineno)


def _unknown_attribute(facts: Facts, bad: str) -> Proposals:
    common = {name for kind in (str, list, dict, set) for name in dir(kind) if not name.startswith("_")}
    for node in ast.walk(facts.function.node):
        if isinstance(node, ast.Attribute) and node.attr == bad:
            own = facts.attributes.get(ast.unparse(node.value), [])
            known = (set(own) | set(facts.module_attributes) | common) - {bad}
            site = Site(facts, node)
            for rank, name in enumerate(difflib.get_close_matches(bad, sorted(known), 6, 0.5)):
                yield from site.replace(0.6 + 0.2 * rank, "did you mean", f"{ast.unparse(node.value)}.{name}")


def _unknown_keyword(facts: Facts, bad: str) -> Proposals:
    known = {argument.arg for node in ast.walk(facts.source.tree) if isinstance(node, ast.arguments)
             for argument in [*node.args, *node.kwonlyargs]} - {bad}  # fmt: skip
    for node in ast.walk(facts.function.node):
        if isinstance(node, ast.keyword) and node.arg == bad:
            start, _ = facts.source.span(node)
            for rank, name in enumerate(difflib.get_close_matches(bad, sorted(known), 5, 0.4)):
                edit = Edit(start, start + len(bad.encode()), name)
                yield Proposal(0.6 + 0.2 * rank, "did you mean", (edit,), node.lineno)


def import_offset(facts: Facts) -> int:
    """Where an import can be added: behind the docstring, the future imports and, if any, the first imports."""
    line = 0
    for node in facts.source.tree.body:
        document = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not document and not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        line = node.end_lineno or node.lineno
    return facts.source.starts[line] if line < len(facts.source.starts) else len(facts.source.data)


def imports_of(name: str) -> list[str]:
    """Import statements of the standard library that would bind the name."""
    found = [f"import {name}"] if name in sys.stdlib_module_names else []
    return found + [f"from {module} import {name}" for module in _exporting().get(name, [])[:4]]


@lru_cache(maxsize=1)
def _exporting() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for module in IMPORTABLE:
        with Caught():
            loaded = importlib.import_module(module)
            names = getattr(loaded, "__all__", None) or [each for each in dir(loaded) if not each.startswith("_")]
            for name in names:
                found.setdefault(name, []).append(module)
    return found
