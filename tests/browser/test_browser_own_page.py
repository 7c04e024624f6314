"""The page changes itself, in Chromium: built by its own tools, previewed, reloaded, and taken back by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser.chrome import Site
from ui.cli.test_cli_own_page import FILES, OWN, call, patch, team

pytestmark = [pytest.mark.browser, pytest.mark.spec("D8", "D9")]

Open = Callable[..., Site]
OLD = '        <Choices compact={!wide} />\n        <span className="spring" />\n        <Meter />\n'
NEW = '        <Meter />\n        <Choices compact={!wide} />\n        <span className="spring" />\n'
LARGER = "\n.diff,\n.diff * {\n    font-size: 18px !important;\n}\n"
WORK = (
    call("worker", "read_skill", name="page"),
    patch("src/App.tsx", OLD, NEW),
    call(
        "worker",
        "modify",
        action="edit",
        edit_type="append",
        path="src/style/components.css",
        content=LARGER,
    ),
)


def test_a_request_changes_the_page_and_one_that_does_not_come_up_takes_itself_back(opened: Open):
    site = opened({"a.txt": FILES["src/app.js"]}, team(*WORK))
    tab, server = site.tab, site.server
    tab.shot("own-page-before")
    tab.button("This page").click()
    tab.css(".page-note").having("Requests here change this page").seen()
    last = server.get(f"{OWN}/state")["last_event"]
    tab.ask("Make the diff larger and put the cost on the left")
    with server.events(last, OWN) as events:
        waits = next(event["body"]["report"] for event in events if event["type"] == "RunEnded")
    assert waits["verdict"] == "verified", waits
    passed = {one["step"] for one in waits["verdicts"] if one["standing"] == "pass"}
    assert passed >= {"types (tsc)", "lint (biome)", "build (script)", "smoke", "tests"}
    preview = tab.frame("iframe.preview-frame")
    preview.css(".approval .diff").seen()
    # The cost is there once the events of the run are.
    preview.css(".status > .meter:first-child").seen()
    tab.css(".status > .meter:last-child").seen()
    tab.shot("own-page-preview")
    tab.button("Approve").click()
    # Biome has put the style in order, and the page reloads into what was promoted.
    tab.css("script[data-build]").call(["waitFor", [{"state": "attached"}]])
    tab.css(".connection").having("ready").seen()
    tab.css(".status > .meter:first-child").seen()
    tab.shot("own-page-after")
    style = server.get(f"{OWN}/file?path=src/style/components.css")["text"]
    assert style.endswith("\n.diff,\n.diff * {\n  font-size: 18px !important;\n}\n")
    with server.events(every=True) as told:
        while not (build := server.get("/api/state")["page"]["build"]):
            next(told)

    # The user breaks it by hand: it builds, and does not come up.
    text = server.get(f"{OWN}/file?path=src/App.tsx")["text"]
    broken = text.replace(
        "  const route = useRoute();", '  if (location) throw new Error("no page");\n  const route = useRoute();'
    )
    server.post("/api/page/up", {"build": build})
    server.post(f"{OWN}/file", {"path": "src/App.tsx", "text": broken, "base": text}, "PUT")
    with server.events(every=True) as told:
        while server.get("/api/state")["page"]["build"] in ("", build):
            next(told)
    tab.css(".page-note").having("did not come up").seen()
    tab.shot("own-page-taken-back")
    assert server.get("/api/state")["page"]["build"] == build
    assert tab.told("errors")

    # A file without which the page does not come up is changed with a second yes, and left alone without it.
    for declines, ends in ((True, "}\n"), (False, "}\n\n")):
        tab.call(["decline", [declines]])
        tab.go("code/package.json")
        tab.css(".editor-bar").having("package.json").seen()
        tab.css(".editor .cm-content").click()
        tab.key("Control+End")
        tab.key("Enter")
        tab.key("Control+s")
        while not any("the page may not come up with this change" in one for one in tab.told("dialogs")):
            tab.css(".editor-bar").seen()
        if declines:
            tab.call(["decline", [False]])
            tab.call(["reload", []])
            tab.css(".connection").having("ready").seen()
        else:
            tab.css(".toast").having("saved (entry").seen()
        assert server.get(f"{OWN}/file?path=package.json")["text"].endswith(ends)
    tab.told("errors")
