"""Every pane of the page in both themes and three widths, in Chromium: pictures are kept, axe finds nothing serious,
and everything is done by keys alone once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser.chrome import Site
from ui.cli.test_cli_do import FILES, FIX, RIGHT

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7"), pytest.mark.timeout(600)]

Open = Callable[..., Site]
PANES = ("work", "code/app.py", "proof", "time", "money", "preview", "settings", "components")
SEEN = {
    "code/app.py": ".cm-content",
    "time": ".timeline",
    "settings": ".memory, .empty",
    "components": "h2",
}


def serious(found: list[str]) -> list[str]:
    return [line for line in found if line.startswith(("serious", "critical"))]


def test_no_pane_has_a_serious_fault_in_any_width_or_theme(opened: Open):
    site = opened(FILES, FIX)
    tab = site.tab
    tab.ask("fix the bug in after")
    tab.css(".approval .diff").seen()
    found = {}
    for width in (1400, 800, 360):
        tab.size(width)
        for theme in ("light", "dark"):
            tab.theme(theme)
            for pane in PANES:
                tab.go(pane)
                tab.css(SEEN.get(pane, "#pane")).seen()
                tab.css(".spinner[aria-label='the pane is loaded']").gone()
                name = f"{pane.partition('/')[0]}-{width}-{theme}"
                tab.shot(name)
                if faults := serious(tab.audit()):
                    found[name] = faults
                wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    found[f"{name} is wider than the window"] = [str(wide)]
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
