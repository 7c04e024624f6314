"""The session behind the page, where something fails that nobody foresaw."""

from __future__ import annotations

from pathlib import Path

import pytest
from nursery import PATIENCE
from sandbox.site import until

from pawl.core.run import RunRequest
from pawl.settings.config import load
from pawl.ui.web.web_session import WebSession
from pawl.workspace.project import Project

pytestmark = pytest.mark.spec("F7")


def test_a_defect_of_a_run_is_told_in_the_page_instead_of_swallowed_in_its_thread(tmp_path: Path):
    def broken(shop: Project, order: RunRequest) -> RunRequest:
        raise ZeroDivisionError("by zero")

    (tmp_path / "project").mkdir()
    session = WebSession(load(), tmp_path / "project", lambda: None, ordering=broken)
    session.start()
    try:
        assert session.request("anything", queue=False) == "begun"
        assert until(lambda: not session.is_working, PATIENCE)
        assert session.trouble is not None
        assert session.trouble["message"] == "a defect of Pawl: ZeroDivisionError('by zero')"
        assert session.trouble["advice"] == "please report it"
    finally:
        session.close()
