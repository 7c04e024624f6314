"""Text of a model, of files and of commands that would like to be more than text, in the page of `pawl web`: nothing
is asked of anybody else, and no script runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.chrome import Site
from ui.cli.dev_site import free_port
from ui.cli.projects import DEV_SERVER, SETTINGS, SITE

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7"), pytest.mark.attack("A59")]

Open = Callable[..., Site]
ELSEWHERE = "http://127.0.0.1:9/stolen"
TURN = "‮"
SAID = f"""# <script>window.ran = 1</script>

<img src="{ELSEWHERE}.png" onerror="window.ran = 1"> <svg onload="window.ran = 1"></svg>
<iframe srcdoc="<script>parent.ran = 1</script>"></iframe> <link rel=stylesheet href="{ELSEWHERE}.css">
<style>@import "{ELSEWHERE}.css"; body {{ background: url({ELSEWHERE}.gif) }}</style>

![pixel]({ELSEWHERE}.png) ![data](data:text/html,<script>window.ran=1</script>)
[run](javascript:window.ran=1) [run too](JaVa\tScript:window.ran=1) [data](data:text/html;base64,PHNjcmlwdD4=)
[shown]({ELSEWHERE}) <javascript:window.ran=1> <{ELSEWHERE}>

| <img src=x onerror=window.ran=1> | [x](vbscript:x) |
| --- | --- |
| {TURN}reversed | `<script>window.ran = 1</script>` |

```html
<script>window.ran = 1</script>
```
"""
NAME = "<img src=x onerror=window.ran=1>.py"
FILES = {
    **SETTINGS,
    NAME: "value = 1\n",
    f"safe{TURN}yp.exe": "x\n",
    "page.html": "<script>window.ran = 1</script>\n",
    "long.txt": "a" * 200_000 + "\nend\n",
    "README.md": SAID,
}


def answers(*turns: object) -> str:
    """A script of TOML, in which every text is a JSON text."""
    return "".join(f"[[turn]]\nanswer = {turn}\n" for turn in turns)


def call(name: str, **arguments: str) -> str:
    given = ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())
    return f"{{ name = {json.dumps(name)}, arguments = {{ {given} }} }}"


def test_nothing_that_a_model_a_file_or_a_command_says_runs_or_loads(opened: Open):
    script = "<script>window.ran = 1</script>"
    printed = f"printf '</pre>{script}\\033]8;;javascript:window.ran=1\\007link\\n'; head -c 300000 long.txt"
    calls = [
        call("run_command", command=printed),
        call("strict_patch", path=NAME, old="value = 1", new=f"value = 2  # {TURN}</span>{script}"),
        call("strict_patch", path="long.txt", old="end", new="b" * 50_000),
    ]
    site = opened(FILES, answers(f"{{ text = {json.dumps(SAID)}, calls = [{', '.join(calls)}] }}", json.dumps(SAID)))
    tab = site.tab
    tab.ask(SAID)
    tab.status("waits for you")
    for number in range(tab.css("details.tool").count()):
        tab.css("details.tool").nth(number).css("summary").click()
    for way in ("whole file", "side by side", "inline"):
        tab.css(".approval .bar select").choose(way)
        tab.css(".approval .diff-file").seen()
    tab.shot("hostile-1280")
    # No link leads anywhere but to what it shows.
    links = tab.evaluate("[...document.querySelectorAll('a[href]')].map((one) => one.getAttribute('href'))")
    assert links and all(one.startswith(("http://", "https://", "#")) for one in links)
    alive = "img:not(.cm-widgetBuffer), svg[onload], iframe, script:not([src]), .markdown style, link[href*='stolen']"
    assert tab.evaluate(f"[...document.querySelectorAll({json.dumps(alive)})].map((one) => one.outerHTML)") == []
    tab.css(".approval").having("⟨U+202E⟩").seen()
    assert TURN not in tab.css(".approval").words()
    tab.key("Alt+a")
    tab.status("ready")
    for pane in ("code", "proof", "time", "money"):
        tab.go(pane)
        tab.css("#pane").seen()
    tab.go("code")
    tab.role("tree", "files").having("⟨U+202E⟩").seen()
    tab.role("tree", "files").css("[role=treeitem]").having("<img src=x").click()
    tab.css(".editor .cm-content").having("value = 2").seen()
    for path in ("README.md", "page.html", "long.txt"):
        tab.role("tree", "files").css("[role=treeitem]").having(path).click()
        tab.css(".editor-bar").having(path).seen()
    assert tab.evaluate("window.ran") is None
    names = tab.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).origin)")
    assert set(names) == {f"http://127.0.0.1:{site.server.port}"}


FRAMED = """<!doctype html><title>Shop</title><h1>Shop</h1><pre id="came"></pre><script>
const came = [];
const tried = async (name, work) => {
  try {
    const got = await work();
    came.push(`${name}: ${got ?? "done"}`);
  } catch (error) {
    came.push(`${name}: refused`);
  }
  document.getElementById("came").textContent = came.join("; ");
};
(async () => {
  await tried("parent", () => parent.document.title);
  await tried("storage", () => parent.sessionStorage.length);
  await tried("top", () => { top.location = "http://127.0.0.1:9/stolen"; });
  await tried("window", () => { if (!window.open("http://127.0.0.1:9/stolen")) throw 0; });
  await tried("read", async () => (await fetch("http://127.0.0.1:%d/api/state")).status);
  await tried("send", async () => (await fetch("http://127.0.0.1:%d/api/stop", { method: "POST", body: "{}" })).status);
  parent.postMessage({ pawlConsole: "<img src=x onerror=window.ran=1>" }, "*");
  parent.postMessage({ pawlConsole: { toString: "no" }, type: "RunEnded" }, "*");
  await tried("end", () => "reached");
})();
</script>"""


def test_a_hostile_project_in_the_preview_reaches_neither_the_page_nor_its_server(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text(DEV_SERVER % free_port())
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    site = opened(SITE)
    tab, port = site.tab, site.server.port
    (site.pawl.workspace / "index.html").write_text(FRAMED.replace("%d", str(port)))
    tab.go("preview")
    tab.button("Start the dev server").click()
    frame = tab.frame(".preview-frame")
    frame.text("end: reached").seen()
    came = frame.css("#came").words().split("; ")
    assert [one for one in came if not one.endswith(": refused")] == ["end: reached"]
    tab.role("region", "errors in the console").having("<img src=x onerror").seen()
    assert tab.evaluate("location.origin") == f"http://127.0.0.1:{port}" and tab.evaluate("window.ran") is None
    tab.status("ready")
    # What the frame was told of it by its browser is its own affair.
    tab.told("errors")


def test_hostile_names_of_skills_hooks_memories_points_and_jobs_are_text(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    bad = "<img src=x onerror=window.ran=1>"
    skill = f"---\nname: greet\ndescription: {bad}\n---\n{bad}\n"
    hook = f'[[hooks.PostToolUse]]\nmatcher = "Edit"\nhooks = [{{ type = "command", command = "{bad}" }}]\n'
    server = f'[mcp.servers.bad]\ncommand = "{bad}"\n'
    trusted = f'[trust]\nfolders = ["{tmp_path / "project"}"]\n'
    (tmp_path / "config.toml").write_text(f"{trusted}{server}{hook}")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    spec = f"# {bad}\n\n- **FR-001**: {bad} [NEEDS CLARIFICATION: {bad}]\n"
    site = opened({**SETTINGS, ".pawl/skills/greet/SKILL.md": skill, "specs/001-bad/spec.md": spec, "a.py": "x = 1\n"})
    tab, pawl = site.tab, site.pawl
    for words in (
        ("memory", "add", bad),
        ("checkpoint", bad),
        ("queue", "add", bad),
        ("run", "--apply", "--", "touch", bad),
    ):
        pawl(*words)
    tab.ask(f"!echo '{bad}'")
    tab.css(".output").having(bad).seen()
    for pane, seen in (("settings", ".memory"), ("time", ".timeline")):
        tab.go(pane)
        tab.css(seen).having("<img src=x").seen()
        assert tab.evaluate("document.querySelectorAll('img:not(.cm-widgetBuffer)').length") == 0
    assert tab.evaluate("window.ran") is None


def test_the_browser_itself_refuses_html_that_is_made_of_text(opened: Open):
    tab = opened({"a.txt": "x\n"}).tab
    tried = "try { document.body.innerHTML = '<b>x</b>'; 'made' } catch (error) { error.name }"
    assert tab.evaluate(tried) == "TypeError"
    tab.status("ready")
    tab.told("errors")
