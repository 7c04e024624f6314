"""One browser for all tests of the page, each with a project and a server of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from browser.chrome import NOTHING, Chrome, Site, chrome, missing
from ui.cli.conftest import project
from ui.cli.page_client import page
from ui.cli.projects import Project
from ui.cli.test_cli_do import Script, script

__all__ = ["project", "script"]
SHOTS = Path(os.environ.get("PAWL_SHOTS", tempfile.gettempdir() + "/pawl-shots"))  # noqa: TID251
"""Pictures are kept here, for people to look at."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    if why := missing():
        pytest.skip(why)
    with chrome(SHOTS) as driven:
        yield driven


@pytest.fixture
def opened(project: Project, script: Script, browser: Chrome) -> Iterator[Callable[..., Site]]:
    """Opens a project in the page: `opened(files, talk of the model, words of pawl web)`. In the end the pages have
    asked nobody else for anything, shown no dialog and reported no error."""
    with ExitStack() as stack:
        made: list[Site] = []

        def open_page(files: Mapping[str, str], talk: str = "", *words: str) -> Site:
            pawl = project(files)
            model = ("--model", script(talk)) if talk else ()
            server = stack.enter_context(page(pawl.workspace, *model, *words, built=True))
            made.append(Site(pawl, server, browser.tab(server.address)))
            return made[-1]

        yield open_page
        told = [site.tab.told() for site in made]
        for site in made:
            site.tab.close()
        assert told == [NOTHING] * len(made)
