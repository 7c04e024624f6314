"""Proof, Time, Money, Preview and Settings of the page of `pawl web`, in Chromium."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.chrome import Site
from sandbox.site import processes_with
from ui.cli.dev_site import free_port
from ui.cli.projects import DEV_SERVER, SITE
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7")]

Open = Callable[..., Site]
NEW = """
[[turn]]
answer = { calls = [
  { name = "strict_patch", arguments = { path = "index.html", old = "Old shop", new = "New shop" } }] }
[[turn]]
times = 0
answer = "It is new."
"""

WIDE = "document.querySelector('.preview-frame').getBoundingClientRect().width"


def test_the_checks_are_shown_with_tests_by_file_and_lead_to_the_line_that_fails(opened: Open):
    site = opened(FILES, FIX)
    tab = site.tab
    tab.go("proof")
    tab.button("Verify the workspace").click()
    # Each check is shown when it has ended, while the next one works.
    tab.css(".card").having("The workspace").css(".proof-step").having("syntax").seen()
    tab.css(".card").text("failed", exact=True).seen()
    finding = tab.css(".finding").having("test_app.py")
    finding.seen()
    tab.shot("proof-1280")
    finding.role("link").nth(0).click()
    tab.css(".cm-activeLine").having("assert after(2) == 3").seen()
    # A verdict on files that have changed since is not called one on what stands there now.
    tab.key("Control+End")
    tab.type("# mine")
    tab.key("Control+S")
    tab.css(".toast").having("saved").seen()
    # The search is typed into at once, beside the file.
    tab.key("Control+Shift+F")
    tab.css("#side input:focus").fill("number + 2")
    tab.key("Enter")
    tab.css(".hit").having("app.py").seen()
    tab.css(".cm-content").having("# mine").seen()
    tab.go("proof")
    tab.css(".card").text("failed, before files changed", exact=True).seen()
    tab.go("proof")
    tab.ask("fix the bug in after")
    tab.status("waits for you")
    tab.css(".card").having("Run ").text("verified", exact=True).seen()
    tests = tab.css(".proof-step").having("tests")
    tests.css("summary").nth(0).click()
    tests.css("details").having("test_app.py").css("summary").click()
    tests.text("test_after").seen()


def test_runs_entries_and_checkpoints_are_looked_at_compared_and_restored(opened: Open):
    more = '[[turn]]\nmatch = { user = "anything more" }\ntimes = 0\nanswer = "Nothing more."\n'
    site = opened(FILES, more + FIX)
    tab, code = site.tab, site.pawl.workspace / "app.py"
    tab.go("time")
    tab.button("Checkpoint…").click()
    tab.label("name").fill("before")
    tab.button("Make it").click()
    tab.css(".timeline").text("before").seen()
    tab.label("approval").choose("never")
    tab.ask("fix the bug in after")
    tab.css(".delivery").having("done").seen()
    assert code.read_text() == RIGHT
    tab.status("ready")
    tab.ask("anything more?")
    tab.css(".markdown").having("Nothing more.").seen()
    tab.status("ready")
    tab.css(".timeline .entry").having("app.py").css("button").click()
    tab.css(".card .line.plus").having("return number + 1").seen()
    tab.css(".timeline .run").having("fix the bug").css("button").click()
    tab.label("compare with").call(["selectOption", [{"index": 1}]])
    table = tab.role("region", "comparison")
    table.having("app.py").having("verified").having("none").seen()
    tab.shot("time-1280")
    tab.css(".timeline .checkpoint").having("before").css("button").click()
    tab.button("Compare…").click()
    since = tab.role("dialog", "Since checkpoint before")
    since.css(".diff").having("app.py").having("return number + 1").seen()
    tab.shot("time-compare-1280")
    tab.key("Escape")
    tab.role("dialog").gone()
    tab.button("Restore").click()
    tab.css(".toast").having("restore").seen()
    assert code.read_text() == FILES["app.py"]
    tab.go("money")
    tab.role("img", "Tokens per run").seen()
    tab.role("img", "Cost per run").seen()
    tab.role("region", "requests").text("scripted").seen()


TIERS = """tiers:
  - {{ name: cheap, mode: simple, model: "{0}", max_iterations: 1 }}
  - {{ name: better, mode: simple, model: "{1}", max_iterations: 2 }}
"""
WRONG = FIX.replace("+ 1", "+ 3")


@pytest.mark.spec("E5")
def test_tiers_and_attempts_are_shown_with_their_failing_tests_and_any_entry_is_restored(
    opened: Open, script: Script, tmp_path: Path
):
    site = opened(FILES, FIX)
    tab, pawl = site.tab, site.pawl
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(WRONG)
    (pawl.workspace / "tiers.yaml").write_text(TIERS.format(f"scripted:{wrong}", script(FIX)))
    assert pawl("run", "--apply", "--", "touch", "first.txt").code == 0
    tab.go("time")
    assert pawl("loop", "--no-reflex", "--tiers", "tiers.yaml", "mend", "after").code == 0
    attempts = tab.css(".timeline").role("list", "attempts")
    attempts.having("better").having("tier 1 cheap").having("1 test failing").seen()
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    attempts.css("summary").nth(0).click()
    tab.role("region", "the first lines that attempt 1 changed").having("+ 3").seen()
    tab.role("region", "what the checks said to attempt 1").having("test_app").seen()
    tab.go("money")
    tab.role("img", "Failing tests per attempt. 1: failing 1; 2: failing 0", exact=True).seen()
    for title in ("Cost per attempt", "Tokens per attempt", "Failing tests per run"):
        tab.role("img", title).seen()
    tab.shot("money-attempts-1280")
    tab.go("time")
    attempts.seen()
    tab.shot("time-attempts-1280")
    tab.css(".timeline .entry").having("entry 1").css("button").click()
    tab.button("Compare…").click()
    since = tab.role("dialog", "Since entry 1")
    since.css(".diff").having("app.py").having("return number + 1").seen()
    since.label("compare with").choose("2")
    since.css(".diff").having("app.py").seen()
    tab.shot("time-compare-1280")
    tab.key("Escape")
    tab.role("dialog").gone()
    tab.button("Restore").click()
    tab.css(".toast").having("restore entry 1").seen()
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
    assert (pawl.workspace / "first.txt").exists()


def test_the_preview_is_of_another_origin_shows_errors_and_a_change_before_it_is_promoted(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    port = free_port()
    (tmp_path / "config.toml").write_text(DEV_SERVER % port)
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    site = opened(SITE, NEW)
    tab = site.tab
    try:
        tab.go("preview")
        tab.button("Start the dev server").click()
        frame = tab.frame(".preview-frame")
        frame.text("Old shop").seen()
        # A server that ends by itself is told of, with what it said.
        for process in processes_with(f"serve.py\0{port}"):
            os.kill(process, signal.SIGKILL)
        tab.css("#pane .trouble").having("toy: it ended with code -9").seen()
        tab.css(".preview-frame").gone()
        tab.button("Start the dev server").click()
        frame.text("Old shop").seen()
        tab.css("#pane .trouble").gone()
        address = tab.css(".preview-frame").attribute("src")
        assert address is not None and f":{site.server.port}/" not in address
        said = tab.role("region", "errors in the console")
        said.text("the till is stuck").seen()
        said.having("missing is not defined").seen()
        tab.ask("make it new")
        tab.status("waits for you")
        tab.button("With the change that waits").click()
        frame.text("New shop").seen()
        assert "Old shop" in (site.pawl.workspace / "index.html").read_text()
        tab.shot("preview-1280")
        tab.button("Reload").click()
        frame.text("New shop").seen()
        # As on a phone; and as on a screen that is wider than the pane, which is made smaller.
        for width in (390, 1280):
            tab.label("width").choose(str(width))
            assert frame.css(":root").call(["evaluate", ["innerWidth"]]) == width
            assert tab.evaluate(WIDE) <= tab.evaluate("document.querySelector('#pane').clientWidth") + 1
        tab.label("width").choose("0")
        # What is promoted or saved is shown by itself.
        tab.button("Approve").click()
        tab.css(".delivery").seen()
        tab.status("ready")
        page = (site.pawl.workspace / "index.html").read_text()
        saved = {"path": "index.html", "text": page.replace("New", "Saved"), "base": page}
        site.server.post("/api/file", saved, "PUT")
        frame.text("Saved shop").seen()
        assert [line for line in tab.audit() if line.startswith(("serious", "critical"))] == []
    finally:
        site.pawl("dev", "stop")
    # The framed page reports its own errors.
    assert set(tab.told("errors")) == {"the till is stuck", "missing is not defined"}


EDIT = """
[[turn]]
answer = { calls = [
  { name = "strict_patch", arguments = { path = "%s", old = "%s", new = "%s" } },
  { name = "run_command", arguments = { command = "until grep -q %s flag; do sleep 0.1; done" } }] }
"""
TALK = '[[turn]]\ntimes = 0\nanswer = "It is new."\n'
STEPS = (
    EDIT % ("index.html", "Old shop", "First shop", "one")
    + EDIT % ("serve.py", "import http", "import lost, http", "two")
    + EDIT % ("serve.py", "import lost, http", "import http", "two")
    + EDIT % ("index.html", "First shop", "Second shop", "three")
    + TALK
)


def test_the_preview_follows_the_bench_of_the_run_edit_by_edit_over_one_that_does_not_start_until_it_ends(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text(DEV_SERVER % free_port())
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    site = opened({**SITE, "shop.js": "", ".gitignore": "flag\n", "flag": "zero\n"}, STEPS)
    tab, folder = site.tab, site.pawl.workspace
    tab.go("preview")
    tab.button("Start the dev server").click()
    frame = tab.frame(".preview-frame")
    frame.text("Old shop").seen()
    tab.ask("make it new in two steps")
    frame.text("First shop").seen()
    tab.status("working")
    (folder / "flag").write_text("one\n")
    tab.css("#pane .trouble").having("toy: it ended with code 1").seen()
    tab.css("#pane .trouble").having("ModuleNotFoundError").seen()
    tab.status("working")
    (folder / "flag").write_text("one two\n")
    frame.text("Second shop").seen()
    tab.css("#pane .trouble").gone()
    tab.status("working")
    assert "Old shop" in (folder / "index.html").read_text()
    (folder / "flag").write_text("one two three\n")
    tab.status("waits for you")
    frame.text("Second shop").seen()
    tab.button("Reject…").click()
    tab.css(".approval .inline-form").button("Reject").click()
    frame.text("Old shop").seen()


def test_settings_test_a_model_answer_what_would_happen_and_keep_memories(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = {
        **FILES,
        ".pawl/skills/greet/SKILL.md": "---\nname: greet\ndescription: says hello\n---\nSay hello.\n",
    }
    (tmp_path / "script.toml").write_text('[[turn]]\ntimes = 0\nanswer = "ready"\n')
    (tmp_path / "config.toml").write_text(
        f'[models]\ndefault = "scripted:{tmp_path}/script.toml"\n\n'
        '[mcp.servers.notes]\ncommand = "notes-server"\n\n'
        '[[hooks.PostToolUse]]\nmatcher = "Edit"\nhooks = [{ type = "command", command = "make tidy" }]\n'
        f'[trust]\nfolders = ["{tmp_path / "project"}"]\n'
    )
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    site = opened(files)
    tab = site.tab
    tab.go("settings")
    tab.css(".card").having("Models").button("Test").click()
    tab.css(".card").having("Models").css("li").nth(0).seen()
    tab.label("what would happen to …").fill("Bash(git push)")
    tab.key("Enter")
    tab.css(".card").having("Permissions").role("status").css(".badge").seen()
    memory = tab.css(".card").having("a sentence to remember")
    memory.label("a sentence to remember").fill("tests run with pytest")
    tab.key("Enter")
    memory.css(".memory").having("tests run with pytest").seen()
    memory.button("Forget").click()
    memory.css(".memory").gone()
    for table, held in (("skills", "says hello"), ("MCP servers", "notes"), ("hooks", "make tidy")):
        tab.role("region", table, exact=True).having(held).seen()
    tab.role("heading", "This machine", exact=True).seen()
    tab.shot("settings-1280")
