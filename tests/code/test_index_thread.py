"""The index of a workspace is made while a session begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from pawl.agent.session import Session
from pawl.code.code_model import Query
from pawl.code.librarian import IndexThread, index_path, open_librarian, prepare_index
from pawl.workspace.project import Project

pytestmark = pytest.mark.spec("E2")


def found(shop: Project, text: str) -> list[str]:
    """What the index knows as it stands."""
    with open_librarian(shop) as librarian:
        return [hit.path for hit in librarian.locate(Query(text=text, history=False), 3)]


def test_the_index_is_made_without_being_asked_for(shop: Project):
    prepare_index(shop).close(30)
    assert found(shop, "greet the name")


def test_a_workspace_that_is_gone_ends_it_quietly(shop: Project, tmp_path: Path):
    with IndexThread(shop.config, str(tmp_path / "nowhere"), shop.guardrails):
        pass


def test_an_open_session_has_an_index(site):
    environment = {**site.config.environment, "PAWL_STATE": str(site.config.state)}
    with Session.open(site.workspace, environment=environment) as session:
        index = index_path(session.shop.config.state, session.shop.workspace)
    assert index.exists()
