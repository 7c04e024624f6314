"""Keeps the index up to date while a session is open: what changes in the workspace is taken in as it changes.

It makes the next answer faster and never wrong: whoever asks the librarian still looks whether anything has changed.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from pawl.code.indexing import Refreshed
from pawl.code.librarian import Index, index_path
from pawl.core.errors import PawlError
from pawl.core.guardrails import Guardrails
from pawl.settings.config import Config
from pawl.settings.tree import Tree
from pawl.workspace.bench_files import INDEX_IGNORE_FILES, WorkspaceFiles
from pawl.workspace.project import Project

MOST_PATHS = 200
"""Above so many changes at once the whole workspace is looked at."""
_GATHERED_MS = 300
"""How long changes are gathered before they are taken in."""
_PATIENCE = 2.0
_LOOK_MS = 200
"""How soon a follower that is to end notices it."""


class Watcher:
    """A thread that follows one workspace. Trouble ends it: the index is brought up to date by whoever uses it."""

    def __init__(
        self,
        config: Config,
        workspace: str,
        guardrails: Guardrails,
        *,
        listen: Callable[[Refreshed], object] = lambda refreshed: None,
    ) -> None:
        self._config = config
        self._workspace = workspace
        self._guardrails = guardrails
        self._listen = listen
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pawl-follow", daemon=True)
        self._thread.start()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it; an index that is being made at that moment is left to the next who needs it."""
        self._stop.set()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        # The library's error is one of Rust, which is an ordinary error there and a RuntimeError here.
        try:
            with Tree(Path(self._workspace)) as tree:
                files = WorkspaceFiles(tree, self._guardrails, global_ignore=self._config.global_ignore)
                with Index(index_path(self._config.state, self._workspace), files) as index:
                    self._follow(index)
        except (PawlError, OSError, RuntimeError):
            return

    def _follow(self, index: Index) -> None:
        from watchfiles import DefaultFilter, watch

        changes = watch(
            self._workspace,
            watch_filter=DefaultFilter(),
            debounce=_GATHERED_MS,
            rust_timeout=_LOOK_MS,
            stop_event=self._stop,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        # The watch begins with its first answer, and only what changes from then on is told.
        next(changes, None)
        self._listen(index.refresh(seconds=math.inf))
        for found in changes:
            if found and not self._stop.is_set():
                self._listen(index.refresh(self._chosen(path for _, path in found)))

    def _chosen(self, paths: Iterable[str]) -> list[str] | None:
        """The files that changed; None for all where more may have changed than is told, such as a folder that went."""
        chosen = sorted({os.path.relpath(path, self._workspace) for path in paths})
        whole = len(chosen) > MOST_PATHS or any(
            os.path.basename(path) in INDEX_IGNORE_FILES or not os.path.isfile(os.path.join(self._workspace, path))
            for path in chosen
        )
        return None if whole else chosen


def follow(shop: Project, *, listen: Callable[[Refreshed], object] = lambda refreshed: None) -> Watcher:
    """Begins to follow the workspace; the caller closes it before the workshop."""
    return Watcher(shop.config, shop.workspace, shop.guardrails, listen=listen)
