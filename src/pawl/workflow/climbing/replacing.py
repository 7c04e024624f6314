"""A function in a file of any language, by the definitions a parser names, and the file with another in its place."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from pawl.core.outline import Definition, DefinitionKind
from pawl.workflow.climbing.rewriting import Place, blocks_of

Definitions = Callable[[str], Sequence[Definition]]
"""From a text to what it defines."""
_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})
_NEEDED = frozenset({DefinitionKind.FUNCTION, DefinitionKind.VARIABLE, DefinitionKind.CLASS})
_EXPORTED = re.compile(r"export\s+(?:default\s+)?")


def places_of(path: str, source: str, definitions: Sequence[Definition]) -> tuple[Place, ...]:
    """The outermost functions and methods that have their lines for themselves."""
    lines = source.splitlines()
    found: list[Place] = []
    for one in definitions:
        if one.kind not in _FUNCTIONS or (found and one.start <= found[-1].last):
            continue
        text = lines[one.line - 1]
        if not text.strip().startswith(one.signature.split(maxsplit=1)[0]):
            continue
        indent = len(text) - len(text.lstrip())
        found.append(Place(path=path, name=one.name, first=one.start, last=one.end, indent=indent))
    return tuple(found)


def replaced(place: Place, source: str, answer: str, definitions: Definitions) -> str | None:
    """The file with the function of the answer in the place of its own; None where the answer has no such function."""
    for code in blocks_of(answer):
        text = textwrap.dedent(code).strip("\n")
        every = definitions(text)
        found = next((one for one in every if one.kind in _FUNCTIONS and one.name == place.name), None)
        if found is not None:
            return _file_with(place, source, text, found, every, {one.name for one in definitions(source)})
    return None


def _file_with(
    place: Place, source: str, text: str, found: Definition, every: Sequence[Definition], known: set[str]
) -> str:
    lines = source.splitlines()
    body = _like(lines[place.first - 1 : place.last], _text_of(found, text))
    if place.indent == 0:
        helpers = [
            _text_of(one, text)
            for one in every
            if one.depth == 0 and one.kind in _NEEDED and one.name not in known and _names(body, one.name)
        ]
        body = "\n\n".join((*helpers, body))
    made = [*lines[: place.first - 1], *textwrap.indent(body, " " * place.indent).splitlines(), *lines[place.last :]]
    return "\n".join(made) + ("\n" if source.endswith("\n") else "")


def _like(old: Sequence[str], body: str) -> str:
    """The text exported and ended as that in whose place it comes."""
    exported = _EXPORTED.match(old[0].strip())
    if exported and not _EXPORTED.match(body):
        body = exported.group() + body
    return f"{body}," if old[-1].rstrip().endswith(",") and not body.endswith(",") else body


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def _text_of(one: Definition, text: str) -> str:
    return textwrap.dedent("\n".join(text.splitlines()[one.start - 1 : one.end]))
