"""One request and one answer, for models that are not known to call tools well: the code that they are given, and the
edits that their answer holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pawl.agent.briefing import HEAD, MOST_HITS, BundleSubject
from pawl.agent.function_text import Sources
from pawl.checks.output import suspicions
from pawl.checks.report_readers import suspected
from pawl.code.bundle import Range, rendered
from pawl.code.code_model import Hit, PackFile, Query
from pawl.code.languages import language_of
from pawl.code.librarian import gathered, open_librarian
from pawl.core.errors import PawlError
from pawl.core.text import CHARACTERS_PER_TOKEN
from pawl.workspace.bench_files import Files
from pawl.workspace.project import Project

PROMPTS = 1_800
"""Tokens for the prompts, the request and what is said beside the code."""
MOST_TOKENS = 12_000
MOST_LINES = 300
"""A longer file is shown by what is likeliest meant in it."""
MOST_FILES = 12
"""Of a workspace with no more files all are shown, as far as there is room."""
MOST_PARTS = 3
_BLOCK = re.compile(r"(?ms)(?:^(?P<before>[^\n]*)\n{1,9})?^[ \t]*```(?P<info>[^\n`]*)\n(?P<code>.*?)(?:\n[ \t]*```|\Z)")
_PATH = re.compile(r"(?<![\w./-])((?:[\w.-]+/)*[\w-][\w.-]*\.\w+)(?![\w/])")


def budget(reads: int) -> int:
    """Tokens of code for a model that reads so many."""
    return min(MOST_TOKENS, reads - PROMPTS)


Chosen = tuple[tuple[PackFile, Range], ...]
"""Files with the lines of them that are shown, from 1."""


def chosen(shop: Project, files: Files, subject: BundleSubject, tokens: int) -> Chosen:
    """The code that the request may be about: what it names, what is found without a model, all of a few files."""
    places = suspicions(subject.findings) or suspected(shop, subject.request)
    with open_librarian(shop) as librarian:
        librarian.refresh()
        hits = librarian.locate(Query(text=subject.request, suspicions=places, history=False), MOST_HITS)
        every = librarian.reading(lambda shelf: sorted(row.path for row in shelf.files.values()), history=False)
        others = every if len(every) <= MOST_FILES else []
        order = dict.fromkeys((*subject.named, *(hit.path for hit in hits), *others))
        read = gathered([Hit(path=path, score=1) for path in order], files, librarian, shop.guardrails, most=len(order))
    by_path, room = {hit.path: hit for hit in hits}, tokens * CHARACTERS_PER_TOKEN
    found: list[tuple[PackFile, Range]] = []
    for file in read:
        for part in [(1, len(file.lines))] if len(file.lines) <= MOST_LINES else _parts(by_path.get(file.path)):
            cost = sum(map(len, rendered(file, [part])))
            if file.lines and cost <= room:
                room -= cost
                found.append((file, part))
    return tuple(found)


def as_reads(found: Chosen) -> tuple[str, ...]:
    """As files to be read ahead: `path`, or `path:10-20`."""
    return tuple(
        file.path if part == (1, len(file.lines)) else f"{file.path}:{part[0]}-{part[1]}" for file, part in found
    )


def as_text(found: Chosen) -> tuple[str, ...]:
    """As a part of the prompt."""
    ranges: dict[str, tuple[PackFile, list[Range]]] = {}
    for file, part in found:
        ranges.setdefault(file.path, (file, []))[1].append(part)
    lines = [line for file, parts in ranges.values() for line in rendered(file, parts)]
    return ("\n".join((HEAD, *lines)),) if lines else ()


def _parts(hit: Hit | None) -> list[tuple[int, int]]:
    symbols = hit.symbols[:MOST_PARTS] if hit is not None else ()
    return [(max(1, one.start), min(one.end, one.start + MOST_LINES)) for one in symbols]


def written(files: Files, answer: str) -> tuple[str, ...]:
    """The files that the blocks of an answer change: each function in the place of its own, or a file as a whole."""
    with Sources(files) as sources:
        named = ((path or _only_place(sources, files, code), code) for path, code in _blocks(answer))
        return tuple(path for path, code in named if path and _put(sources, files, path, code))


def _blocks(answer: str) -> Iterator[tuple[str, str]]:
    """The code of each block, with the path in its first line or in the line before it; empty where none is."""
    for found in _BLOCK.finditer(answer):
        first, _, rest = found["code"].partition("\n")
        comment = first.strip().startswith(("#", "//", "--", ";")) and _PATH.search(first)
        named = _PATH.search(found["info"]) or (found["before"] and _PATH.search(found["before"])) or comment
        yield (named[1] if named else "", rest if comment and named is comment else found["code"])


def _only_place(sources: Sources, files: Files, code: str) -> str:
    """The one file that has a definition which the code has too."""
    found = [
        path
        for path in files.walk()
        if language_of(path) and any(re.search(rf"\b{re.escape(one.name)}\b", code) for one in sources.functions(path))
    ]
    return found[0] if len(found) == 1 else ""


def _put(sources: Sources, files: Files, path: str, code: str) -> bool:
    """Whether the code stands in the file now; not where it cannot be told what of the file it stands for."""
    old = sources.text(path)
    here, given = sources.names(path, old), sources.names(path, code)
    whole = here <= given if language_of(path) and here else len(code) * 2 >= len(old)
    if not old and _is_there(files, path):
        return False
    if whole:
        files.write(path, f"{code.rstrip()}\n".encode())
        return True
    if given.isdisjoint(here):
        if given:
            files.write(path, f"{old.rstrip()}\n\n\n{code.strip()}\n".encode())
        return bool(given)
    for name in sorted(given & here):
        same = [one for one in sources.functions(path) if one.name == name]
        made = sources.rewritten(same[0], f"```\n{code}\n```") if len(same) == 1 else None
        if made is not None:
            files.write(path, made.encode())
    return sources.text(path) != old


def _is_there(files: Files, path: str) -> bool:
    try:
        return files.exists(path)
    except PawlError:
        return True
