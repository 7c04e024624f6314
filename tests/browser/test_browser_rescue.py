"""A server that is killed, several tabs and a terminal on one run, in Chromium: nothing is lost, one answer counts."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from browser.chrome import NOTHING, Chrome
from ui.cli.page_client import page
from ui.cli.projects import Project
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7", "B7")]

SLOW = f"""
[[turn]]
answer = {{ calls = [{{ name = "run_command", arguments = {{ command = "echo begun; test -e on || sleep 900" }} }}] }}
{FIX}"""


def test_a_page_whose_server_is_killed_goes_on_with_the_next_one(project: Project, script: Script, browser: Chrome):
    pawl = project(FILES)
    words = ("--model", script(SLOW))
    with ExitStack() as stack:
        with page(pawl.workspace, *words, built=True) as server:
            tab = browser.tab(server.address)
            stack.callback(tab.close)
            tab.ask("fix the bug in after")
            tab.css(".output").having("begun").seen()
            tab.css("#request").fill("half a sentence")
            server.kill()
            port = server.port
        tab.status("connection lost")
        tab.text(f"pawl web --port {port}").seen()
        # The command that was cut off ends when it is made anew.
        (pawl.workspace / "on").touch()
        # In the middle of a run: another tab is told the new address.
        with page(pawl.workspace, *words, "--port", str(port), built=True) as server:
            other = browser.tab(server.address)
            stack.callback(other.close)
            tab.status("ready")
            tab.css(".page-note").gone()
            assert tab.css("#request").value() == "half a sentence"
            tab.role("treeitem", "on", exact=True).seen()
            tab.css(".said").having("fix the bug in after").seen()
            # A tab that has seen nothing of the run can go on with it too.
            other.button("Resume").click()
            tab.status("waits for you")
            other.status("waits for you")
            server.kill()
        tab.status("connection lost")
        # In the middle of an approval: the new address is put into the same tab.
        with page(pawl.workspace, *words, "--port", str(port), built=True) as server:
            tab.css(".reopen").seen()
            tab.evaluate(f"location.hash = 'token={server.token}'")
            tab.status("waits for you")
            assert tab.css("#request").value() == "half a sentence"
            tab.css(".approval").text("verified", exact=True).seen()
            tab.button("Approve").click()
            tab.css(".delivery").having("done").seen()
            other.css(".delivery").having("done").seen()
            assert (pawl.workspace / "app.py").read_text() == RIGHT
            assert len(pawl.json("history")["entries"]) == 1
            assert tab.told() == other.told() == NOTHING


def test_two_tabs_and_a_terminal_see_one_run_and_the_first_answer_counts(
    project: Project, script: Script, browser: Chrome
):
    pawl = project(FILES)
    model = script(FIX)
    with page(pawl.workspace, "--model", model, built=True) as server, ExitStack() as stack:
        one, other = browser.tab(server.address), browser.tab(server.address)
        for tab in (one, other):
            stack.callback(tab.close)
        # A run of a terminal is seen in both, and asked about in both.
        assert pawl("do", "fix the bug in after", "--model", model).code == 4
        for tab in (one, other):
            tab.css(".approval .diff").seen()
        one.button("Approve").click()
        other.css(".approval").gone()
        other.status("ready")
        assert (pawl.workspace / "app.py").read_text() == RIGHT
        assert pawl("approve").code == 42
        # A terminal answers first: the page is told so.
        (pawl.workspace / "app.py").write_text(FILES["app.py"])
        one.ask("fix the bug in after again")
        one.css(".approval .diff").seen()
        other.css(".approval .diff").seen()
        pawl("approve", "--reject", "not this way")
        for tab in (one, other):
            tab.css(".approval").gone()
        assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
        assert one.told() == other.told() == NOTHING
