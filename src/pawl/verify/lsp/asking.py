"""Asks a language server on the bench about an undefined name, and turns its quick fixes into candidates."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pawl.verify.lsp.client import LIMIT_SECONDS
from pawl.verify.lsp.document import Span
from pawl.verify.lsp.servers import Server, servers
from pawl.verify.project import dependencies
from pawl.verify.recoveries.edit import Candidate, Source
from pawl.verify.recoveries.imports import import_line, known_tables
from pawl.verify.recoveries.symbols import Symbols
from pawl.verify.steps.step import Subject, stopped

MOST_FIXES = 3
_GRACE_SECONDS = 4.0
"""What the process gets beyond the server's limit, to start and to say why it is skipped."""
# By the package's own folder, because the one around it may be out of sight.
_INSIDE = """
import importlib.util, sys
folder = sys.argv.pop(1)
found = importlib.util.spec_from_file_location("pawl", f"{folder}/__init__.py", submodule_search_locations=[folder])
sys.modules["pawl"] = importlib.util.module_from_spec(found)
found.loader.exec_module(sys.modules["pawl"])
import importlib
importlib.import_module(sys.argv.pop(1)).main()
"""
_IMPORT = re.compile(r"\s*(?P<line>from (?P<source>[\w.]+) import \w+|import (?P<module>[\w.]+))\s*")
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What runs the inside part: an interpreter that can be started on the bench, and the folder of Pawl's package."""

    python: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """An undefined name, and what the recovery map would do about it."""

    path: str
    line: int
    name: str
    sources: Mapping[str, str]
    symbols: Symbols
    known: Sequence[Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    candidates: tuple[Candidate, ...]
    """In the order in which they should be tried."""
    skipped: str = ""
    """Why no server has a say in it."""


def inside(host: Host, module: str, question: str) -> tuple[str, ...]:
    """The words that run a module of Pawl's on the bench."""
    return (host.python, "-I", "-S", "-B", "-c", _INSIDE, host.package, module, question)


def imports_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that add one import and change nothing else."""
    return [one for one in candidates if len(one.edits) == 1 and _IMPORT.fullmatch(one.edits[0].new)]


def advised(subject: Subject, host: Host, query: Query) -> Advised:
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


def _asked(subject: Subject, host: Host, chosen: Server, query: Query, own: Sequence[Candidate]) -> dict[str, Any]:
    question = {
        "path": query.path,
        "line": query.line,
        "name": query.name,
        "trials": [[(edit.start, edit.end, edit.new) for edit in one.edits] for one in own],
    }
    return answered(subject, host, chosen, question)


def answered(
    subject: Subject, host: Host, chosen: Server, question: Mapping[str, Any], seconds: float = LIMIT_SECONDS
) -> dict[str, Any]:
    """The answer of a process on the bench that starts the server and ends with it."""
    programs = subject.programs(chosen.program)
    if chosen.folder != "python":
        names = subject.node_programs(chosen.program) if chosen.folder == "node" else [chosen.program]
        programs = [(name,) for name in names]
    whole = {
        "server": chosen.name,
        "programs": programs,
        "root": subject.workspace,
        "python": subject.interpreter() if chosen.folder == "python" else "",
        "seconds": seconds,
        **question,
    }
    limits = dataclasses.replace(subject.limits, seconds=seconds + _GRACE_SECONDS)
    words = inside(host, "pawl.verify.lsp.session", json.dumps(whole))
    completed = dataclasses.replace(subject, limits=limits).run(words)
    if completed is None:
        return {"skipped": f"{host.python!r} cannot be started"}
    try:
        answer = json.loads(completed.stdout.text)
    except ValueError:
        said = completed.stderr.text.strip().splitlines()[-1:] or ["it said nothing"]
        return {"skipped": stopped(completed) or said[0]}
    return answer if isinstance(answer, dict) else {"skipped": "its answer cannot be read"}


def _allowed(subject: Subject, query: Query) -> frozenset[str]:
    """Where a name may come from: the project, the standard library, and packages that the project says it uses."""
    packages = known_tables()[0]
    needed = dependencies(subject.files)
    declared = {name.replace("-", "_") for name in needed}
    declared |= {module for module, package in packages.items() if package.lower() in needed}
    imported = {root for text in query.sources.values() for root in _IMPORTED.findall(text)}
    return frozenset({*query.symbols.modules, *sys.stdlib_module_names, *declared, *imported})


def _fixes(
    chosen: Server, query: Query, fixes: Sequence[Mapping[str, Any]], allowed: frozenset[str]
) -> list[Candidate]:
    """The server's imports from allowed places, those of the project first."""
    source = Source(query.path, query.sources[query.path])
    found: list[tuple[int, Candidate]] = []
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
