"""The import graph of a workspace in every language that is parsed, from the index."""

from __future__ import annotations

from pawl.context.imports import ImportMap
from pawl.context.ranking.shelf import Shelf


def import_graph(shelf: Shelf) -> ImportMap:
    """Every file with code is in it, also one that imports nothing; cycles share a rank."""
    files = shelf.files
    imported = {
        row.path: frozenset(files[target].path for target in shelf.tables.imported.get(number, ()) if target in files)
        for number, row in files.items()
        if row.language
    }
    return ImportMap.joined(imported)
