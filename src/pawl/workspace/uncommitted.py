"""The uncommitted work of a workspace, as git tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pawl.workspace.benches import open_bench
from pawl.workspace.git import Git
from pawl.workspace.masks import HiddenSearch
from pawl.workspace.project import Project
from pawl.workspace.repository import opened, user_values


def uncommitted(shop: Project, hides: Callable[[str], bool] = lambda path: False) -> tuple[str, tuple[str, ...]]:
    """The change since the last commit, with files that are new; and the hidden files that are left out of it.

    `NotFound`, `PathRefused` where there is no repository, `GitFailed` where git does not answer.
    """
    with opened(shop.tree) as repository, open_bench(shop) as bench:
        settings = {**user_values(shop.config.environment, shop.tree, repository), **repository.config}
        masked = HiddenSearch(shop.tree, replace(shop.guardrails, others=None), shop.listings).hides()
        git = Git(run=bench.run, repository=repository, head=repository.head().commit, settings=settings)
        return git.diff(lambda path: masked(path) or hides(path))
