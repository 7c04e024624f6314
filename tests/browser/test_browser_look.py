"""Every pane of the page in both themes and three widths, in Chromium: pictures are kept, axe finds nothing serious,
and everything is done by keys alone once."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from browser.chrome import BUILT, Site
from ui.cli.test_cli_do import FILES, FIX, RIGHT

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7"), pytest.mark.timeout(600)]

Open = Callable[..., Site]
PANES = ("work", "code/app.py", "proof", "time", "money", "preview", "settings", "components")
SEEN = {
    "code/app.py": ".cm-content",
    "proof": ".proof-step",
    "time": ".timeline .checkpoint",
    "money": "svg[aria-label^='Tokens per run']",
    "preview": ".empty, .trouble",
    "settings": ".memory",
    "components": "h2",
}
LONG = "the_name_of_a_file_that_somebody_has_made_much_too_long_for_every_list_in_which_it_is_shown"
CROWDED = {
    **FILES,
    f"{LONG}/{LONG}.py": "value = 1\n",
    f"specs/001-{LONG}/spec.md": "# Lines\n\n- **FR-001**: lines are counted\n",
    f"specs/001-{LONG}/tasks.md": f"## Phase 1: Lines\n- [ ] T001 Count the lines of {LONG} in {LONG}.py\n",
    f".pawl/skills/{LONG[:60]}/SKILL.md": f"---\nname: {LONG[:60]}\ndescription: {LONG} {LONG}\n---\nGreet.\n",
}
WIDER = """[document.documentElement, ...document.querySelectorAll(".pane, .pane > *, .scroll, .card, .status, .top")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
  .map((one) => `${one.className || one.tagName}: ${one.scrollWidth} in ${one.clientWidth}`)"""
HIGHER = """[...document.querySelectorAll(".top, .bar, .status, .composer, .approval > header")]
  .filter((one) => one.scrollHeight > one.clientHeight + 1 && one.clientHeight > 0)
  .map((one) => `${one.className}: ${one.scrollHeight} in ${one.clientHeight}`)"""


def serious(found: list[str]) -> list[str]:
    return [line for line in found if line.startswith(("serious", "critical"))]


def test_no_pane_has_a_serious_fault_in_any_width_or_theme(opened: Open):
    site = opened(CROWDED, FIX)
    tab = site.tab
    assert site.pawl("run", "--apply", "--", "touch", f"{LONG}.txt", f"{LONG}.too").code == 0
    assert site.pawl("memory", "add", f"never rename {LONG}").code == 0
    assert site.pawl("queue", "add", f"tidy {LONG}", "--model", "scripted:none.toml").code == 0
    tab.ask(f"fix the bug in after, and leave {LONG} alone")
    tab.css(".approval .diff").seen()
    found = {}
    for width in (1400, 800, 360):
        tab.size(width)
        for theme in ("light", "dark"):
            tab.theme(theme)
            for pane in PANES:
                tab.go(pane)
                tab.css(SEEN.get(pane, "#pane")).seen()
                tab.css("#pane .spinner:not(.gallery *)").gone()
                name = f"{pane.partition('/')[0]}-{width}-{theme}"
                tab.shot(name)
                if faults := serious(tab.audit()):
                    found[name] = faults
                if wide := tab.evaluate(WIDER):
                    found[f"{name} is wider than its place"] = wide
                if high := tab.evaluate(HIGHER):
                    found[f"{name} lies over what is below it"] = high
    assert found == {}


def test_a_run_is_asked_for_approved_and_undone_by_keys_alone(opened: Open):
    site = opened(FILES, FIX)
    tab, code = site.tab, site.pawl.workspace / "app.py"
    tab.key("Alt+i")
    tab.type("fix the bug in after")
    tab.key("Enter")
    tab.css(".approval .diff").seen()
    tab.key("Alt+a")
    tab.css(".delivery").having("done").seen()
    assert code.read_text() == RIGHT
    for number, pane in enumerate(("code", "proof", "time", "money", "preview", "settings"), start=2):
        tab.key(f"Alt+{number}")
        assert tab.evaluate("location.hash") == f"#/{pane}"
        tab.css("[role=tab][aria-selected=true]").having(pane.capitalize()).seen()
    tab.key("Alt+1")
    tab.type("/undo")
    tab.key("Enter")
    tab.role("dialog").text("undo").seen()
    tab.key("Escape")
    assert code.read_text() == FILES["app.py"]
    # Tab reaches every control of the shell, and none holds the focus fast.
    reached = set()
    for _ in range(60):
        tab.key("Tab")
        reached.add(tab.evaluate("document.activeElement.textContent.slice(0, 20) || document.activeElement.title"))
    assert {"New", "Earlier…", "Undo", "Redo"} <= reached and any("Settings" in one for one in reached)


def test_what_is_loaded_at_first_is_small(opened: Open):
    tab = opened({"a.txt": "x\n"}).tab
    loaded = tab.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
    scripts = [BUILT / path.lstrip("/") for path in loaded if path.endswith(".js")]
    assert scripts and sum(len(gzip.compress(one.read_bytes())) for one in scripts) <= 400_000
