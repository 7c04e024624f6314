"""The index follows the workspace while a session is open."""

from __future__ import annotations

import queue
import shutil
from pathlib import Path

import pytest
from world import lay

from pawl.agent.session import Session
from pawl.code.code_model import Query
from pawl.code.index_writer import Refreshed
from pawl.code.librarian import Watcher, follow, index_path, open_librarian
from pawl.workspace.project import Project

pytestmark = pytest.mark.spec("E2")


class Told:
    """What a follower has taken in so far."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Refreshed] = queue.Queue()

    def __call__(self, refreshed: Refreshed) -> None:
        self._queue.put(refreshed)

    def until(self, *, written: int = 0, removed: int = 0) -> None:
        while written > 0 or removed > 0:
            one = self._queue.get(timeout=30)
            written, removed = written - one.written, removed - one.removed


def found(shop: Project, text: str) -> list[str]:
    """What the index knows as it stands."""
    with open_librarian(shop) as librarian:
        return [hit.path for hit in librarian.locate(Query(text=text, history=False), 3)]


def test_what_is_written_and_deleted_is_taken_in_without_being_asked_for(shop: Project):
    told, workspace = Told(), Path(shop.workspace)
    with follow(shop, listen=told):
        told.until(written=3)
        lay(workspace, {"stock/levels.py": b"def reorder_stock():\n    pass\n"})
        told.until(written=1)
        assert found(shop, "reorder_stock fails") == ["stock/levels.py"]
        shutil.rmtree(workspace / "stock")
        told.until(removed=1)
        assert found(shop, "reorder_stock fails") == []
        lay(workspace, {".gitignore": b"src/\n"})
        told.until(removed=1)
        assert found(shop, "greet the name") == []


def test_a_workspace_that_is_gone_ends_it_quietly(shop: Project, tmp_path: Path):
    with Watcher(shop.config, str(tmp_path / "nowhere"), shop.guardrails):
        pass


def test_an_open_session_follows_its_workspace(site):
    environment = {**site.config.environment, "PAWL_STATE": str(site.config.state)}
    with Session.open(site.workspace, environment=environment) as session:
        index = index_path(session.shop.config.state, session.shop.workspace)
    assert index.exists()
