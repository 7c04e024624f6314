"""The librarian of a workspace: keeps the index, and answers which files and definitions must change."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pawl.context.index import Index
from pawl.context.indexing import Refreshed
from pawl.context.ranking.ranker import rank
from pawl.context.repository import repository_outline
from pawl.core.errors import UsageError
from pawl.core.guardrails import Guardrails
from pawl.core.locating import Hit, Query
from pawl.core.outline import Outline
from pawl.core.ports import CommitLog, Files, SourceFiles


class CodeLibrarian:
    """Fits `ports.Librarian` and `ports.Outliner`. Without a log of commits it does without them."""

    def __init__(self, index: Path, files: SourceFiles, log: CommitLog | None = None) -> None:
        self._index = Index(index, files)
        self._log = log

    def close(self) -> None:
        self._index.close()

    def __enter__(self) -> CodeLibrarian:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def index(self) -> Index:
        return self._index

    @property
    def is_empty(self) -> bool:
        """No file of the workspace is in the index."""
        return self._index.reading(lambda shelf: not shelf.files, history=False)

    def refresh(self, paths: Iterable[str] | None = None) -> Refreshed:
        """Brings the index up to date: with these files, or with every file that has changed."""
        return self._index.refresh(paths)

    def locate(self, query: Query, top: int) -> list[Hit]:
        """Answers from the index as it stands."""
        if not query.text.strip():
            raise UsageError("there is nothing to look for", advice="describe what is wrong, or what should change")
        if top < 1:
            raise UsageError(f"{top} files cannot be shown", advice="ask for at least one")
        if query.history and self._log is not None:
            self._index.take_in(self._log)
        return self._index.reading(lambda shelf: rank(query, shelf, top), tests=query.tests, history=query.history)

    def outline(self, files: Files, path: str) -> Outline:
        """What a file defines, as the index knows it; nothing for a file that it does not have."""
        return Outline(path=path, files=self._index.reading(lambda shelf: tuple(shelf.outlines([path]))))

    def overview(self, budget: int, guardrails: Guardrails) -> str:
        """The outline of the whole repository without its tests, at most so many tokens."""
        return self._index.reading(
            lambda shelf: repository_outline(shelf.outlines(), shelf.uses(), budget=budget, guardrails=guardrails),
            tests=False,
            history=False,
        )
