"""Asks a language server on the bench about an undefined name, and turns its quick fixes into candidates."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pawl.checks.lsp.client import Span
from pawl.checks.lsp.servers import Server, servers
from pawl.checks.lsp.verdicts import Host, answered
from pawl.checks.project import dependencies
from pawl.checks.steps import Subject
from pawl.repair.recoveries.edit import PythonSource, RecoveryCandidate
from pawl.repair.recoveries.imports import import_line, known_tables
from pawl.repair.recoveries.symbols import Symbols

MOST_FIXES = 3
_IMPORT = re.compile(r"\s*(?P<line>from (?P<source>[\w.]+) import \w+|import (?P<module>[\w.]+))\s*")
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixQuery:
    """An undefined name, and what the recovery map would do about it."""

    path: str
    line: int
    name: str
    sources: Mapping[str, str]
    symbols: Symbols
    known: Sequence[RecoveryCandidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    candidates: tuple[RecoveryCandidate, ...]
    """In the order in which they should be tried."""
    skipped: str = ""
    """Why no server has a say in it."""


def imports_of(candidates: Sequence[RecoveryCandidate]) -> list[RecoveryCandidate]:
    """Those that add one import and change nothing else."""
    return [one for one in candidates if len(one.edits) == 1 and _IMPORT.fullmatch(one.edits[0].new)]


def advised(subject: Subject, host: Host, query: FixQuery) -> Advised:
    """The map's candidates and the server's, after what the server says becomes of its diagnostics with each."""
    chosen = next((one for one in servers() if one.imports and one.language(query.path)), None)
    if chosen is None:
        return Advised(candidates=tuple(query.known), skipped=f"no language server for {query.path!r}")
    own = [one for one in query.known if one.edits and all(edit.path == query.path for edit in one.edits)]
    answer = _asked(subject, host, chosen, query, own)
    if "skipped" in answer:
        return Advised(candidates=tuple(query.known), skipped=answer["skipped"])
    found = _fixes(chosen, query, answer["fixes"], _allowed(subject, query))
    imports = imports_of(query.known)
    mended = [one for one, mends in zip(own, answer["trials"], strict=False) if mends]
    good = [one for one in imports if one in mended]
    others = [one for one in query.known if one not in imports]
    doubtful = [one for one in imports if one not in mended]
    ordered = [*good, *found, *others, *doubtful]
    return Advised(candidates=tuple({one.edits: one for one in reversed(ordered)}.values())[::-1])


def _asked(
    subject: Subject, host: Host, chosen: Server, query: FixQuery, own: Sequence[RecoveryCandidate]
) -> dict[str, Any]:
    question = {
        "path": query.path,
        "line": query.line,
        "name": query.name,
        "trials": [[(edit.start, edit.end, edit.new) for edit in one.edits] for one in own],
    }
    return answered(subject, host, chosen, question)


def _allowed(subject: Subject, query: FixQuery) -> frozenset[str]:
    """Where a name may come from: the project, the standard library, and packages that the project says it uses."""
    packages = known_tables()[0]
    needed = dependencies(subject.files)
    declared = {name.replace("-", "_") for name in needed}
    declared |= {module for module, package in packages.items() if package.lower() in needed}
    imported = {root for text in query.sources.values() for root in _IMPORTED.findall(text)}
    return frozenset({*query.symbols.modules, *sys.stdlib_module_names, *declared, *imported})


def _fixes(
    chosen: Server, query: FixQuery, fixes: Sequence[Mapping[str, Any]], allowed: frozenset[str]
) -> list[RecoveryCandidate]:
    """The server's imports from allowed places, those of the project first."""
    source = PythonSource(query.path, query.sources[query.path])
    found: list[tuple[int, RecoveryCandidate]] = []
    for spans in ([Span(*span) for span in fix["spans"]] for fix in fixes):
        for line, module in _import_lines(spans):
            root = module.partition(".")[0]
            if root in allowed:
                rank = 0 if root in query.symbols.modules else 1 if root in sys.stdlib_module_names else 2
                candidate = import_line(source, line)
                why = f"{candidate.why} ({chosen.name})"
                found.append((rank, dataclasses.replace(candidate, why=why, recovery=f"{chosen.name}.import")))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])][:MOST_FIXES]


def _import_lines(spans: Sequence[Span]) -> Iterator[tuple[str, str]]:
    """A quick fix that adds one import, as that line; Pawl puts it where the file has its imports."""
    match = _IMPORT.fullmatch(spans[0].new) if len(spans) == 1 and spans[0].start == spans[0].end else None
    if match:
        yield match["line"], match["source"] or match["module"]
