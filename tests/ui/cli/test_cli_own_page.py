"""The page that changes itself: `pawl web` with a small page that brings its sources, built by Node alone."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ui.cli.page_client import Page, page
from ui.cli.projects import Project
from ui.cli.test_cli_do import Script, script

__all__ = ["script"]
pytestmark = [
    pytest.mark.whole,
    pytest.mark.spec("D7", "D8"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node.js with npm"),
]

INDEX = (
    '<!doctype html><html><head><meta name="csp-nonce" content="__NONCE__"></head><body><div id="root"></div></body>'
)
BUILD = """import { cpSync, mkdirSync, readFileSync } from "node:fs";
if (readFileSync("src/app.js", "utf8").includes("broken")) throw new Error("src/app.js is broken");
mkdirSync("dist/assets", { recursive: true });
cpSync("index.html", "dist/index.html");
cpSync("src/app.js", "dist/assets/app.js");
cpSync("src/style.css", "dist/assets/style.css");
"""
FILES = {
    "package.json": '{ "type": "module", "scripts": { "build": "node build.mjs", "test": "node --test" } }\n',
    "index.html": INDEX,
    "build.mjs": BUILD,
    "dev/smoke.mjs": "process.exit(0);\n",
    "src/app.js": 'export const colour = "blue";\nexport const size = 1;\n',
    "src/style.css": "a {\n}\n",
    "test/app.test.mjs": (
        'import test from "node:test";\nimport assert from "node:assert";\nimport { size } from "../src/app.js";\n'
        'test("size", () => assert.equal(size, 1));\n'
    ),
    ".gitignore": "dist/\nnode_modules/\n",
}
OWN = "/own/api"
BARE = "\\ No newline at end of file\n"


def pack(folder: Path, files: dict[str, str]) -> None:
    """A built page with its sources, as `scripts/web` makes one."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    (folder / "source.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    (folder / "index.html").write_text(files["index.html"])
    (folder / "assets/app.js").write_text(files["src/app.js"])


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def turns(*every: dict[str, Any]) -> str:
    return "\n".join(
        "[[turn]]\n" + "\n".join(f"{key} = {toml(value)}" for key, value in one.items()) + "\n" for one in every
    )


def said(role: str, answer: object) -> dict[str, Any]:
    return {"match": {"system": f"Role: {role}"}, "answer": answer}


def call(who: str, tool: str, **arguments: object) -> dict[str, Any]:
    return said(who, {"calls": [{"name": tool, "arguments": arguments}]})


def patch(path: str, old: str, new: str) -> dict[str, Any]:
    return call("worker", "strict_patch", path=path, old=old, new=new)


def team(*work: dict[str, Any], status: str = "completed", after: tuple[dict[str, Any], ...] = ()) -> str:
    """The turns of a team whose worker makes these calls, and what its lead does afterwards."""
    done = {"id": 1, "path": "src/app.js", "status": "completed", "detail": "as asked"}
    lost = {"id": 2, "path": "src/style.css", "status": "failed", "detail": "no such rule"}
    results = {"completed": [done], "partial": [done, lost], "failed": [{**done, "status": "failed"}]}[status]
    made = [one["path"] for one in results if one["status"] == "completed"]
    failed = [one["path"] for one in results if one["status"] == "failed"]
    plan = [
        {"id": one["id"], "path": one["path"], "action": "edit", "what": f"change {one['path']}", "depends_on": []}
        for one in results
    ]
    whole = {"status": status, "results": results, "files_modified": made, "files_failed": failed}
    one = {**whole, "status": "failed" if status == "failed" else "completed", "results": results[:1]}
    return turns(
        call("supervisor", "delegate", role="lead", task="change it"),
        call("lead", "delegate", role="planner", task="change it"),
        {
            **call("planner", "delegate", role="worker", task="change it"),
            "match": {"system": "Before you plan read the skill `page`"},
        },
        *work,
        said("worker", json.dumps({**one, "files_failed": failed if status == "failed" else []})),
        said("planner", json.dumps({**whole, "plan": plan})),
        call("lead", "check", what="build"),
        *after,
        said("lead", "The lead is done."),
        said("supervisor", "That is all."),
        {
            "match": {"user": "Is the request fulfilled?"},
            "times": 0,
            "answer": json.dumps({"state": "DONE", "evidence": ["the diff"], "remaining": []}),
        },
    )


class OwnTab:
    def __init__(self, tab: Page, folder: Path) -> None:
        self.tab, self.folder = tab, folder

    def asked(self, text: str) -> dict[str, Any]:
        """The report of the request, as it ends or waits."""
        last = self.tab.get(f"{OWN}/state")["last_event"]
        assert self.tab.post(f"{OWN}/requests", {"text": text}) == {"taken": "begun"}
        return self.ended(last)

    def ended(self, last: int) -> dict[str, Any]:
        with self.tab.events(last, OWN) as events:
            return next(event["body"]["report"] for event in events if event["type"] == "RunEnded")

    def approve(self, report: dict[str, Any], **more: object) -> dict[str, Any]:
        last = self.tab.get(f"{OWN}/state")["last_event"]
        given = {"answer": "approve", "digest": report["question"]["digest"], **more}
        self.tab.post(f"{OWN}/runs/{report['run']}/answer", given)
        return self.ended(last)

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What is known of the page, once it is so; a build is made after a run has ended."""
        with self.tab.events(every=True) as told:
            while not holds(found := self.tab.get("/api/state")["page"]):
                next(told)
        return found

    def shown(self) -> str:
        answer = self.tab.ask("GET", "/assets/app.js")
        return answer.body.decode()


@pytest.fixture
def own(project: Project, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    pawl = project({"a.txt": "mine\n"})
    # A browser, whether the machine has one or not: what smokes here starts none.
    browser = tmp_path / "programs/chromium"
    browser.parent.mkdir()
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", f"{browser.parent}:{os.environ['PATH']}")  # noqa: TID251

    @contextmanager
    def opened(talk: str = "", files: dict[str, str] = FILES, words: tuple[str, ...] = ()) -> Iterator[OwnTab]:
        pack(pawl.workspace.parent / "page", files)
        model = ("--model", script(talk)) if talk else ()
        with page(pawl.workspace, *model, *words) as tab:
            data = Path(os.environ["XDG_DATA_HOME"], "pawl")  # noqa: TID251
            yield OwnTab(tab, data / "page")

    return opened


RED = patch("src/app.js", '"blue"', '"red"')


def test_a_request_changes_the_page_by_a_team_is_previewed_committed_and_undone(own: Callable[..., Any]):
    with own(team(RED)) as page:
        assert page.tab.post("/api/page/open", {}) == {"taken": True}
        waits = page.asked("make it red")
        assert (waits["verdict"], [one["path"] for one in waits["changes"]]) == ("verified", ["src/app.js"])
        assert {one["step"] for one in waits["verdicts"] if one["standing"] == "pass"} >= {
            "build (script)",
            "smoke",
            "tests",
        }
        assert waits["answer"].startswith("**Reported as made.** That is all.\n\n| | change | file | | |\n")
        assert "blue" in page.shown() and '"blue"' in (page.folder / "src/app.js").read_text()
        page.until(lambda _: page.tab.get(f"{OWN}/preview")["running"])
        address, _, token = page.tab.get(f"{OWN}/preview")["url"].partition("/#token=")
        preview = Page(int(address.rpartition(":")[2]), token, page.tab.process)
        looked = preview.ask("GET", "/")
        assert f"frame-ancestors http://127.0.0.1:{page.tab.port}" in looked.headers["content-security-policy"]
        assert b"watch.js" not in looked.body and b"red" in preview.ask("GET", "/assets/app.js").body
        assert preview.get("/api/state")["workspace"] == str(page.folder)
        assert preview.ask("POST", f"/api/runs/{waits['run']}/answer", {"answer": "approve"}).status == 405
        assert page.tab.ask("GET", "/api/state", Authorization=f"Bearer {token}").status == 401

        done = page.approve(waits)
        assert done["delivery"] == "DONE" and done["commit"]
        told = subprocess.run(["git", "log", "--format=%s"], cwd=page.folder, capture_output=True, text=True).stdout
        assert told.splitlines()[0] == "make it red" and told.splitlines()[1].startswith("The page as it comes with")
        build = page.until(lambda found: found["build"])["build"]
        assert "red" in page.shown() and f'data-build="{build}"' in page.tab.ask("GET", "/").body.decode()
        page.tab.post("/api/page/up", {"build": build})
        assert page.tab.post(f"{OWN}/command", {"words": ["undo"]})["exit_code"] == 0
        page.until(lambda found: not found["build"])
        assert "blue" in page.shown() and page.tab.get("/api/files?path=")["entries"][0]["name"] == "a.txt"


@pytest.mark.spec("D9")
def test_a_page_that_does_not_come_up_is_taken_back_and_that_of_pawl_is_always_there(own: Callable[..., Any]):
    with own(team(RED)) as page:
        page.approve(page.asked("make it red"))
        build = page.until(lambda found: found["build"])["build"]
        assert page.tab.ask("GET", f"/watch.js?{build}").status == 200
        page.tab.post("/api/page/down", {"build": build})
        found = page.tab.get("/api/state")["page"]
        assert found["build"] == "" and "did not come up" in found["note"] and "blue" in page.shown()
        assert '"red"' in (page.folder / "src/app.js").read_text(), "the sources are the user's"
        page.tab.post("/api/page/read", {})
        assert page.tab.get("/api/state")["page"] == {"build": "", "note": ""}
        # Another try: the browser hangs, so that nothing is heard from it.
        read = page.tab.get(f"{OWN}/file?path=src/app.js")["text"]
        edit = {"path": "src/app.js", "text": read.replace("red", "green"), "base": read}
        page.tab.post(f"{OWN}/file", edit, "PUT")
        build = page.until(lambda found: found["build"])["build"]
        page.tab.ask("GET", f"/watch.js?{build}")
        kept = page.folder.with_name("page-builds") / "state.json"
        state = json.loads(kept.read_text())
        assert state["tried"] > 0
        # A tab that is closed meanwhile says nothing about the page; the time that it looked in vain counts.
        page.tab.post("/api/page/left", {"build": build})
        state = json.loads(kept.read_text())
        assert state["tried"] < 0 and page.tab.get("/api/state")["page"]["build"] == build
        kept.write_text(json.dumps({**state, "tried": -100.0}))
        assert page.tab.get("/api/state")["page"]["build"] == build
        page.tab.ask("GET", f"/watch.js?{build}")
        assert page.tab.get("/api/state")["page"]["build"] == "" and "blue" in page.shown()
        kept.write_text(json.dumps({**state, "tried": 0.0}))
        page.tab.ask("GET", f"/watch.js?{build}")
        state = json.loads(kept.read_text())
        assert state["tried"] > 0
        kept.write_text(json.dumps({**state, "tried": 1.0}))
        assert page.tab.get("/api/state")["page"]["build"] == "" and "blue" in page.shown()
        # What cannot be built changes nothing.
        page.tab.post(f"{OWN}/file", {**edit, "text": "broken\n", "base": edit["text"]}, "PUT")
        assert "src/app.js is broken" in page.until(lambda found: "built" in found["note"])["note"]
        page.tab.post(f"{OWN}/file", {**edit, "base": "broken\n", "text": read.replace("red", "grey")}, "PUT")
        page.until(lambda found: found["build"])
        assert "grey" in page.shown()
    with own(words=("--factory",)) as page:
        assert "blue" in page.shown()
    with own() as page:
        assert "grey" in page.shown()


def test_what_was_made_in_part_is_partly_done_and_says_so_in_markdown(own: Callable[..., Any]):
    with own(team(RED, status="partial")) as page:
        waits = page.asked("make it red and larger")
        done = page.approve(waits)
        assert done["delivery"] == "PARTLY"
        assert done["answer"].startswith("**Reported as made in part.**")
        assert "| 2 | change src/style.css | `src/style.css` | failed | no such rule |" in done["answer"]


@pytest.mark.parametrize("status", ["failed", "completed"])
def test_a_change_that_is_not_made_or_does_not_build_leaves_the_page_as_it_was(own: Callable[..., Any], status: str):
    left = {"fixes_applied": [], "build_status": "failed", "remaining_errors": ["it is broken"], "attempts": 3}
    fixer = (
        call("lead", "delegate", role="fixer", task="mend it"),
        said("fixer", json.dumps({"status": "failed", **left})),
    )
    broken = (patch("src/app.js", '"blue"', '"broken"'),) if status == "completed" else ()
    with own(team(*broken, status=status, after=fixer if broken else ())) as page:
        report = page.asked("break it")
        assert (report["state"], report["delivery"], report["entry"]) == ("ended", "NEEDS_WORK", None)
        head = "**Reported as made.**" if broken else "**Reported as not made.**"
        assert report["answer"].startswith(head) and ("Left:\n- it is broken" in report["answer"]) == bool(broken)
        assert report["verdict"] == ("failed" if broken else None)
        assert (page.folder / "src/app.js").read_text() == FILES["src/app.js"] and "blue" in page.shown()


def test_protected_files_stay_and_are_changed_only_by_a_yes_of_their_own(own: Callable[..., Any]):
    other = FILES["package.json"].replace('"type"', '"name": "mine", "type"')
    work = (
        RED,
        call("worker", "modify", action="delete", path="index.html"),
        patch("package.json", '"type"', '"name": "mine", "type"'),
    )
    with own(team(*work)) as page:
        waits = page.asked("make it red")
        assert [one["path"] for one in waits["changes"]] == ["package.json", "src/app.js"]
        assert "Change(/package.json) asks about 'package.json'" in waits["question"]["why"]
        address, given = (
            f"{OWN}/runs/{waits['run']}/answer",
            {"answer": "approve", "digest": waits["question"]["digest"]},
        )
        refused = page.tab.ask("POST", address, given)
        assert (refused.status, refused.json["error"]) == (403, "protected_refused")
        assert (page.folder / "package.json").read_text() == FILES["package.json"]
        # Nor by the user's own hand: in the patch that is approved, and in the editor.
        own_patch = f"--- a/index.html\n+++ b/index.html\n@@ -1 +1 @@\n-{INDEX}\n{BARE}+{INDEX}<p>\n{BARE}"
        assert page.tab.ask("POST", address, {**given, "patch": own_patch}).json["error"] == "protected_refused"
        typed = {"path": "index.html", "text": f"{INDEX}<p>", "base": INDEX}
        assert page.tab.ask("PUT", f"{OWN}/file", typed).json["error"] == "protected_refused"
        assert (page.folder / "index.html").read_text() == INDEX
        assert page.tab.post(f"{OWN}/file", {**typed, "protected": True}, "PUT")["text"] == f"{INDEX}<p>"
        done = page.approve(waits, protected=True)
        assert "held back: index.html (denied: Delete(/index.html))" in done["notes"]
        assert (page.folder / "package.json").read_text() == other and (page.folder / "index.html").exists()


def test_an_update_of_pawl_is_merged_with_what_the_user_changed_and_says_what_did_not_fit(own: Callable[..., Any]):
    with own(team(RED)) as page:
        page.approve(page.asked("make it red"))
        page.until(lambda found: found["build"])
    newer = {
        **FILES,
        "src/app.js": 'export const colour = "white";\nexport const size = 1;\n',
        "src/style.css": "a {\n  color: red;\n}\n",
        "src/more.js": "1;\n",
    }
    with own(files=newer) as page:
        found = page.until(lambda found: found["build"] and found["note"])
        assert "did not fit your changes: src/app.js" in found["note"] and "red" in page.shown()
        assert "color: red" in page.tab.ask("GET", "/assets/style.css").body.decode()
        assert (page.folder / "src/more.js").exists()
        kept = page.tab.post(f"{OWN}/command", {"words": ["history", "--all"]})["body"]["entries"]
        assert [one["state"] for one in kept if "update" in one["title"]] == ["captured", "done"]
        told = subprocess.run(["git", "log", "-1", "--format=%s"], cwd=page.folder, capture_output=True, text=True)
        assert told.stdout.startswith("Update to the page of Pawl")


def test_without_node_the_next_step_is_said(own: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("git", "sh", "bwrap"):
        if found := shutil.which(name):
            (tmp_path / "bin").mkdir(exist_ok=True)
            (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with own() as page:
        answer = page.tab.ask("POST", "/api/page/open", {})
        assert answer.status == 400 and "Node.js 20" in answer.json["message"] and "install" in answer.json["advice"]
        assert page.tab.ask("GET", f"{OWN}/state").status == 400 and not page.folder.exists()
