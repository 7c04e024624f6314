"""All proposals for some sources, the likeliest first, and their marks; made in a process of its own."""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pawl.core.lazy_dataclass import dataclass
from pawl.repair.script_nodes import (
    EXPRESSIONS,
    FUNCTIONS,
    Marks,
    ScriptProposal,
    is_used,
    marks_of,
    name_of,
    outermost_function,
    source,
    within,
)
from pawl.repair.script_templates import Scope, edits_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree


MOST = 30_000
NEAR = 0.6
"""A line that a stack leads to costs so much less."""
_GRAMMARS = {
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".mts": ("tree_sitter_typescript", "language_typescript"),
    ".cts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
}
_PLAIN = ("tree_sitter_javascript", "language")


def proposals(sources: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> list[ScriptProposal]:
    """Every edit of the search space; of those that come to the same text the cheapest."""
    cheapest: dict[tuple[str, int, int, str], ScriptProposal] = {}
    for path, text in sources.items():
        data = text.encode("utf-8")
        near = set(lines.get(path, ()))
        for one in _of_file(path, data):
            moved = one._replace(cost=round(one.cost - (NEAR if one.line in near else 0.0), 2))
            if data[one.start : one.end] == one.text.encode("utf-8"):
                continue
            key = (path, one.start, one.end, one.text)
            if key not in cheapest or cheapest[key].cost > moved.cost:
                cheapest[key] = moved
    return sorted(cheapest.values(), key=lambda one: one.cost)[:MOST]


def marks(sources: Mapping[str, str]) -> dict[str, Marks]:
    """Marks that make the functions of each source tell what they are given."""
    return {path: marks_of(_parsed(path, text.encode("utf-8")).root_node) for path, text in sources.items()}


def _parsed(path: str, data: bytes) -> Tree:
    from tree_sitter import Language, Parser

    ending = path[path.rfind(".") :]
    module, function = _GRAMMARS.get(ending, _PLAIN)
    return Parser(Language(getattr(importlib.import_module(module), function)())).parse(data)


def _of_file(path: str, data: bytes) -> Iterator[ScriptProposal]:
    tree = _parsed(path, data)
    above = tuple(
        source(child)
        for node in tree.root_node.named_children
        for declarator in node.named_children
        if declarator.type == "variable_declarator" and (child := declarator.child_by_field_name("name"))
    )
    scopes: dict[int, Scope] = {}
    for node in within(tree.root_node):
        outer = outermost_function(node)
        whole = outer if outer is not None else tree.root_node
        if node.id not in scopes and ((node.type in FUNCTIONS and outer is None) or node == tree.root_node):
            scopes[node.id] = Scope.of(node, above[:4])
        scope = scopes.get(whole.id)
        if scope is not None and not _is_type(node):
            for edit in edits_of(node, scope):
                yield edit._replace(path=path, function=name_of(outer), line=node.start_point[0] + 1)


def _is_type(node: Node) -> bool:
    """Whether a node says something to the type checker only."""
    one: Node | None = node
    while one is not None and one.type not in EXPRESSIONS:
        if one.type in ("type_annotation", "interface_declaration", "type_alias_declaration", "type_arguments"):
            return True
        one = one.parent
    return node.type == "identifier" and not is_used(node)


def main(seconds: int, memory_bytes: int) -> None:
    """Reads one request from standard input and writes a line of marks, then one line for each proposal."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps({path: each._asdict() for path, each in marks(asked["sources"]).items()}) + "\n")
    for one in proposals(asked["sources"], asked["lines"]):
        sys.stdout.write(json.dumps(one) + "\n")


SECONDS = 20
MEMORY_BYTES = 2 << 30
_START = "import sys; sys.path[:] = {path!r}; from pawl.repair.script_proposals import main; main({seconds}, {memory})"


@dataclass(frozen=True, slots=True)
class Proposed:
    """The edits to try, the likeliest first, and the marks of each source."""

    proposals: tuple[ScriptProposal, ...] = ()
    marks: dict[str, Any] = field(default_factory=dict)


def proposed(sources: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> Proposed:
    """Proposals for these sources; none where they cannot be read."""
    path = [entry for entry in sys.path if os.path.isabs(entry)]
    start = _START.format(path=path, seconds=SECONDS, memory=MEMORY_BYTES)
    asked = json.dumps({"sources": dict(sources), "lines": {key: list(each) for key, each in lines.items()}})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", start],
            input=asked.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=SECONDS * 3,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Proposed()
    written = done.stdout.splitlines()
    marks = [json.loads(line) for line in written[:1] if line.endswith(b"}")]
    found = [ScriptProposal(*json.loads(line)) for line in written[1:] if line.endswith(b"]")]
    return Proposed(tuple(found), marks[0]) if marks else Proposed()
