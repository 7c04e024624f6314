"""The librarian of a workspace, with its index in the state directory and its commits read on a bench."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.app.workshop import Workshop
from pawl.context.librarian import CodeLibrarian
from pawl.core.ports import DependencyMap
from pawl.workspace.git_log import GitLog
from pawl.workspace.reading import WorkspaceFiles

if TYPE_CHECKING:
    from pawl.workspace.bench import Bench


def index_path(state: Path, workspace: str) -> Path:
    """Where the index of a workspace is kept; it can be deleted at any time."""
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
    return state / "index" / f"{name}.db"


def source_files(shop: Workshop) -> WorkspaceFiles:
    """The files that an index of the workspace is made of."""
    return WorkspaceFiles(shop.tree, shop.guardrails, global_ignore=shop.config.global_ignore)


def import_graph(shop: Workshop) -> DependencyMap:
    """Which file of the workspace imports which, in every language that is parsed."""
    with open_librarian(shop) as librarian:
        librarian.refresh()
        return librarian.index.graph()


def open_librarian(shop: Workshop) -> CodeLibrarian:
    """The caller closes it. Nothing is indexed before `refresh`."""

    def runner() -> Bench:
        # Loaded here, because an index that knows the commits of this HEAD needs no bench.
        from pawl.app.running import open_bench

        return open_bench(shop)

    path = index_path(shop.config.state, shop.workspace)
    return CodeLibrarian(path, source_files(shop), GitLog(shop.tree, runner))
