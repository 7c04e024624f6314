"""Reading the files that the librarian found, as they may be shown: bounded, without secrets, with what they define."""

from __future__ import annotations

from collections.abc import Iterable

from pawl.context.excerpts import redacted_lines
from pawl.core.content import Text
from pawl.core.errors import PawlError
from pawl.core.guardrails import Guardrails
from pawl.core.locating import Hit
from pawl.core.outline import Definition
from pawl.core.packs import PackFile
from pawl.core.ports import Files, Outliner

MOST_FILES = 20


def gathered(
    hits: Iterable[Hit], files: Files, outliner: Outliner, guardrails: Guardrails, *, most: int = MOST_FILES
) -> tuple[PackFile, ...]:
    """The first of the files that can be read, in the order of the hits; a secret is passed over like a missing one."""
    found: list[PackFile] = []
    for path in dict.fromkeys(hit.path for hit in hits):
        if len(found) >= most:
            break
        file = None if guardrails.is_secret(path) or guardrails.never(path) else _read(path, files, outliner)
        if file is not None:
            found.append(file)
    return tuple(found)


def _read(path: str, files: Files, outliner: Outliner) -> PackFile | None:
    try:
        lines = Text.decode(files.read(path), path).lines
    except (PawlError, OSError):
        return None
    return PackFile(path=path, lines=redacted_lines(lines), definitions=_definitions(path, files, outliner))


def _definitions(path: str, files: Files, outliner: Outliner) -> tuple[Definition, ...]:
    """Nothing for a file in a language that nobody parses."""
    try:
        return tuple(one for file in outliner.outline(files, path).files for one in file.definitions)
    except (PawlError, OSError):
        return ()
