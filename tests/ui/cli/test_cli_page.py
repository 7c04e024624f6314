"""`pawl web` as a page uses it: a request, its events, an answer, files, and commands as JSON."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from nursery import PATIENCE
from sandbox.site import processes_with, until
from ui.cli.console import PAWL
from ui.cli.dev_site import free_port
from ui.cli.page_client import Page, page
from ui.cli.projects import DEV_SERVER, SETTINGS, SITE, Project
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script, script
from ui.cli.test_cli_one_gate import Configured, configured

from pawl.ui.terminal.commands import built_in

__all__ = ["configured", "script"]
SLOW = """
[[turn]]
answer = { calls = [{ name = "run_command", arguments = { command = "echo begun; sleep 300" } }] }
[[turn]]
times = 0
answer = "So be it."
"""


@pytest.mark.whole
@pytest.mark.spec("F7", "B7")
def test_a_request_is_followed_answered_by_hunk_and_undone(project: Project, script: Script):
    pawl = project(FILES)
    with page(pawl.workspace, "--model", script(FIX)) as tab:
        before = tab.get("/api/state")
        assert before["choices"]["mode"] == "agent" and before["model"].startswith("scripted:")
        assert tab.post("/api/requests", {"text": "fix the bug in after"}) == {"taken": "begun"}
        seen = tab.until("RunEnded")
        kinds = [event["type"] for event in seen]
        assert kinds[0] == "RunBegun" and {"ToolStarted", "ToolEnded", "CheckResult", "ApprovalAsked"} <= set(kinds)
        assert "I look." in "".join(one["body"]["text"] for one in seen if one["type"] == "TextDelta")
        assert seen[-1]["body"]["report"]["verdict"] == "verified"
        # Another tab goes on from where it stood.
        assert tab.until("RunEnded", after=seen[3]["id"]) == seen[4:]
        waiting = settled(tab)["waiting"]
        change = tab.get(f"/api/runs/{waiting['run']}/change")
        (file,) = change["files"]
        assert (file["path"], file["after"], len(file["hunks"])) == ("app.py", RIGHT, 1)
        answer = {"answer": "approve", "digest": change["digest"], "hunks": [1]}
        stale = tab.ask("POST", f"/api/runs/{waiting['run']}/answer", {**answer, "digest": "0" * 64})
        blind = tab.ask("POST", f"/api/runs/{waiting['run']}/answer", {"answer": "approve"})
        assert (stale.status, blind.status) == (409, 409)
        assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
        assert tab.post(f"/api/runs/{waiting['run']}/answer", answer) == {"taken": True}
        ended = tab.until("RunEnded", after=seen[-1]["id"])[-1]["body"]["report"]
        assert (ended["delivery"], ended["entry"]) == ("DONE", 1)
        assert (pawl.workspace / "app.py").read_text() == RIGHT
        # The first answer counts.
        assert tab.ask("POST", f"/api/runs/{waiting['run']}/answer", answer).status == 409
        assert tab.get("/api/entries/1/change")["files"][0]["before"] == FILES["app.py"]
        assert tab.command("undo")["exit_code"] == 0
        assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
        assert [one["kind"] for one in tab.command("history")["body"]["entries"]] == ["undo", "edit"]


PART = """
[[turn]]
match = { user = "both", answered = [] }
answer = { calls = [
  { name = "file_write", arguments = { path = "one.txt", content = "1\\n" } },
  { name = "file_write", arguments = { path = "two.txt", content = "2\\n" } },
] }
[[turn]]
match = { answered = ["file_write", "file_write"] }
answer = "Both are written."
[[turn]]
match = { user = "what now", system = "took only a part of your change; left out: 'one.txt new file'" }
answer = "I know."
"""


@pytest.mark.whole
@pytest.mark.spec("F7")
def test_the_model_is_told_which_hunks_were_left_out_in_the_page(project: Project, script: Script):
    pawl = project(FILES)
    with page(pawl.workspace, "--model", script(PART)) as tab:
        tab.post("/api/requests", {"text": "write both files: add one.txt and two.txt"})
        asked = tab.until("RunEnded")[-1]
        run = settled(tab)["waiting"]["run"]
        change = tab.get(f"/api/runs/{run}/change")
        tab.post(f"/api/runs/{run}/answer", {"answer": "approve", "digest": change["digest"], "hunks": [2]})
        taken = tab.until("RunEnded", after=asked["id"])[-1]
        assert [(pawl.workspace / name).exists() for name in ("one.txt", "two.txt")] == [False, True]
        tab.post("/api/requests", {"text": "what now?"})
        assert tab.until("RunEnded", after=taken["id"])[-1]["body"]["report"]["answer"] == "I know."


ASKS = """
[[turn]]
answer = { calls = [{ name = "file_read", arguments = { path = "app.py" } }] }
[[turn]]
match = { answered = ["file_read"], tool = "return number" }
answer = "It adds two (app.py:2)."
"""


@pytest.mark.whole
@pytest.mark.spec("F7", "G4")
def test_a_question_asks_in_the_page_about_a_call_that_a_rule_asks_about(
    project: Project, script: Script, configured: Configured
):
    configured('[permissions]\nask = ["Read(app.py)"]\n')
    pawl = project(FILES)
    with page(pawl.workspace, "--model", script(ASKS)) as tab:
        tab.post("/api/requests", {"text": "what does after do?"})
        asked = tab.until("RunEnded")[-1]
        waiting = settled(tab)["waiting"]
        question = waiting["question"]
        assert (question["kind"], question["tool"], question["arguments"]) == ("call", "file_read", {"path": "app.py"})
        answer = {"answer": "approve", "digest": question["digest"]}
        assert tab.post(f"/api/runs/{waiting['run']}/answer", answer) == {"taken": True}
        report = tab.until("RunEnded", after=asked["id"])[-1]["body"]["report"]
        assert (report["answer"], report["exit_code"]) == ("It adds two (app.py:2).", 0)


@pytest.mark.whole
@pytest.mark.spec("F7")
def test_a_run_of_a_terminal_is_seen_in_the_page_and_answered_there(project: Project, script: Script):
    pawl = project(FILES)
    assert pawl("do", "fix the bug in after", "--model", script(FIX)).code == 4
    with page(pawl.workspace, "--model", script(FIX)) as tab:
        assert tab.until("RunEnded")[0]["body"]["order"]["text"] == "fix the bug in after"
        waiting = tab.get("/api/state")["waiting"]
        digest = waiting["question"]["digest"]
        assert tab.post(f"/api/runs/{waiting['run']}/answer", {"answer": "reject", "digest": digest}) == {"taken": True}
        seen = tab.until("RunEnded", after=tab.until("RunEnded")[-1]["id"])
        assert seen[-1]["body"]["report"]["rejected"] is not None
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]


@pytest.mark.whole
@pytest.mark.spec("F7")
def test_words_steer_the_run_that_works_others_are_queued_and_a_stopped_run_is_resumed(
    project: Project, script: Script
):
    pawl = project(FILES)
    with page(pawl.workspace, "--model", script(SLOW)) as tab:
        tab.post("/api/choices", {"mode": "agent", "approval": "final", "budget": {"seconds": 250}}, "PUT")
        assert tab.post("/api/requests", {"text": "look around"}) == {"taken": "begun"}
        seen = tab.until("CommandPrinted")
        assert seen[-1]["body"]["line"] == "begun"
        assert tab.post("/api/requests", {"text": "hurry up"}) == {"taken": "steered"}
        assert tab.post("/api/requests", {"text": "and then sleep", "queue": True}) == {"taken": "queued"}
        assert tab.get("/api/state")["queued"] == ["and then sleep"]
        assert tab.post("/api/queue", {}, "DELETE")["queued"] == []
        assert tab.post("/api/stop", {}) == {"stopped": True}
        stopped = tab.until("RunEnded", after=seen[-1]["id"])[-1]
        assert stopped["body"]["report"]["state"] == "working"
        runs = tab.get("/api/runs")
        assert [one["state"] for one in runs] == ["working"] and runs[0]["request"] == "look around"


@pytest.mark.whole
@pytest.mark.spec("F7", "B7")
def test_a_run_that_a_terminal_is_at_work_on_is_resumed_by_nobody_else_until_that_one_is_dead(
    project: Project, script: Script
):
    pawl = project(FILES)
    model = script(SLOW)
    with page(pawl.workspace, "--model", model) as tab:
        other = subprocess.Popen(
            [*PAWL, "do", "look around", "--model", model], cwd=pawl.workspace, stdout=subprocess.DEVNULL
        )
        try:
            run = tab.until("CommandPrinted")[0]["run"]
            state = tab.get("/api/state")
            assert (state["elsewhere"], state["working"], state["run"]) == ([run], False, None)
            refused = tab.ask("POST", f"/api/runs/{run}/resume", {})
            assert (refused.status, refused.json["message"]) == (409, f"the run {run} is at work in another process")
            said = pawl("do", "--resume", run)
            assert said.code == 75 and f"is working on the run {run}" in said.err
            assert tab.get("/api/state")["elsewhere"] == [run]
        finally:
            other.kill()
            other.wait()
        state = tab.get("/api/state")
        assert state["elsewhere"] == []
        assert tab.post(f"/api/runs/{run}/resume", {}) == {"taken": True}
        assert tab.until("RunEnded", after=state["last_event"])[-1]["run"] == run
        ended = tab.ask("POST", f"/api/runs/{run}/resume", {})
        assert ended.status == 409 and "cannot be resumed" in ended.json["message"]


@pytest.mark.spec("F7")
def test_an_edit_of_the_user_is_merged_with_what_changed_meanwhile_and_never_lost(project: Project):
    pawl = project(
        {"a.py": "one\ntwo\nthree\n", "w.txt": "x\r\ny\r\n", "pic.bin": "\0\1", ".env": "KEY=abcdefgh12345678\n"}
    )
    with page(pawl.workspace) as tab:
        names = {one["name"]: one for one in tab.get("/api/files?path=")["entries"]}
        assert names[".env"]["secret"] and not names["a.py"]["ignored"] and ".git" not in names
        read = tab.get("/api/file?path=a.py")
        (pawl.workspace / "a.py").write_text("one\ntwo\nthree\nfour\n")
        saved = tab.post("/api/file", {"path": "a.py", "text": "ONE\ntwo\nthree\n", "base": read["text"]}, "PUT")
        assert saved["merged"] and saved["text"] == "ONE\ntwo\nthree\nfour\n" and saved["entry"] == 1
        lost = tab.ask("PUT", "/api/file", {"path": "a.py", "text": "eins\ntwo\nthree\n", "base": read["text"]})
        assert lost.status == 409 and "nothing was written" in lost.json["advice"]
        assert (pawl.workspace / "a.py").read_text() == "ONE\ntwo\nthree\nfour\n"
        windows = tab.get("/api/file?path=w.txt")
        tab.post("/api/file", {"path": "w.txt", "text": "x\ny\nz\n", "base": windows["text"]}, "PUT")
        assert (pawl.workspace / "w.txt").read_bytes() == b"x\r\ny\r\nz\r\n"
        assert tab.get("/api/file?path=.env")["text"] is None and tab.get("/api/file?path=pic.bin")["binary"]
        assert tab.ask("PUT", "/api/file", {"path": ".env", "text": "x", "base": ""}).status == 403
        assert tab.get("/api/search?q=TWO")["hits"] == []
        assert tab.get("/api/search?q=two")["hits"] == [{"path": "a.py", "line": 2, "text": "two"}]
        assert tab.command("undo")["exit_code"] == 0
        assert (pawl.workspace / "w.txt").read_bytes() == b"x\r\ny\r\n"


def test_outline_and_definitions_come_from_the_index(project: Project):
    pawl = project(
        {
            "a.py": "def first():\n    pass\n\n\nclass Second:\n    def third(self):\n        pass\n",
            "test_a.py": "def test_first():\n    pass\n",
        }
    )
    with page(pawl.workspace) as tab:
        found = [(one["name"], one["line"], one["depth"]) for one in tab.get("/api/outline?path=a.py")]
        assert found == [("first", 1, 0), ("Second", 5, 0), ("third", 6, 1)]
        assert tab.get("/api/definition?name=third&path=a.py")[0]["line"] == 6
        assert [one["name"] for one in tab.get("/api/outline?path=test_a.py")] == ["test_first"]
        assert tab.get("/api/definition?name=test_first&path=a.py")[0]["path"] == "test_a.py"
        assert tab.get("/api/files/all")["paths"] == ["a.py", "test_a.py"]


def test_without_a_page_or_with_a_port_that_is_taken_it_says_what_to_do(project: Project):
    pawl = project({"a.py": "x = 1\n"})
    said = pawl("web", "--no-open", "--page", "nowhere")
    assert said.code == 42 and "there is no page in 'nowhere'" in said.err
    with page(pawl.workspace) as tab:
        taken = pawl("web", "--no-open", "--port", str(tab.port), "--page", str(pawl.workspace.parent / "page"))
        assert taken.code == 42 and f"port {tab.port} cannot be used" in taken.err
    assert pawl("web", "--port", "70000").code == 42


@pytest.mark.whole
@pytest.mark.spec("F7", "B7")
def test_a_server_that_is_killed_loses_neither_a_run_nor_a_question(project: Project, script: Script):
    pawl = project(FILES)
    model = script(FIX)
    with page(pawl.workspace, "--model", model) as tab:
        tab.post("/api/requests", {"text": "fix the bug in after"})
        seen = tab.until("ToolEnded")
        tab.kill()
    with page(pawl.workspace, "--model", model) as tab:
        run = seen[0]["run"]
        assert [(one["id"], one["state"]) for one in tab.get("/api/runs")] == [(run, "working")]
        # Who opens the page now is shown it, and may go on with it.
        assert tab.get("/api/state")["left"] == run
        tab.post(f"/api/runs/{run}/resume", {})
        asked = tab.until("ApprovalAsked", after=seen[-1]["id"])[-1]
        tab.kill()
    with page(pawl.workspace, "--model", model) as tab:
        waiting = tab.get("/api/state")["waiting"]
        assert (waiting["run"], waiting["question"]["digest"]) == (run, asked["body"]["question"]["digest"])
        tab.post(f"/api/runs/{run}/answer", {"answer": "approve", "digest": waiting["question"]["digest"]})
        ended = tab.until("RunEnded", after=asked["id"])
        while ended[-1]["body"]["report"]["state"] != "ended":
            ended = tab.until("RunEnded", after=ended[-1]["id"])
        assert ended[-1]["body"]["report"]["delivery"] == "DONE"
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert len(pawl.json("history")["entries"]) == 1


@pytest.mark.whole
def test_the_end_of_the_server_stops_a_verification_that_a_page_asked_for(project: Project):
    seconds = f"98765.{os.getpid()}"
    waits = f"import subprocess\n\n\ndef test_waits():\n    subprocess.run(['sleep', '{seconds}'])\n"
    workspace = project({"app.py": "one = 1\n", "test_app.py": waits}).workspace
    with ThreadPoolExecutor(1) as pool, page(workspace) as tab:
        pool.submit(tab.command, "verify")
        assert until(lambda: processes_with(seconds), PATIENCE)
    assert until(lambda: not processes_with(seconds))


@pytest.mark.spec("F7", "A13")
def test_a_project_without_a_dev_server_has_no_preview_and_is_told_why(project: Project):
    pawl = project({"app.py": "x = 1\n"})
    with page(pawl.workspace) as tab:
        assert tab.get("/api/preview") == {"running": False, "url": "", "framework": "", "log": [], "ended": ""}
        refused = tab.ask("POST", "/api/preview/start", {})
        assert refused.status == 400 and refused.json["message"] and refused.json["advice"]
        assert tab.post("/api/preview/stop", {})["running"] is False


@pytest.mark.whole
@pytest.mark.spec("F7")
@pytest.mark.parametrize("before", [False, True], ids=["started by the page", "started before"])
def test_the_dev_server_that_the_page_has_started_ends_with_it_and_one_of_the_users_stays(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
):
    (tmp_path / "config.toml").write_text(DEV_SERVER % free_port())
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    pawl = project(SITE)
    try:
        if before:
            assert pawl("dev", "start").code == 0
        with page(pawl.workspace) as tab:
            assert tab.post("/api/preview/start", {})["running"]
            # As after a promotion.
            assert tab.post("/api/preview/start", {"anew": True})["running"]
            pid = pawl.json("dev", "status")["pid"]
        assert until(lambda: before or not Path(f"/proc/{pid}").exists(), PATIENCE)
        assert Path(f"/proc/{pid}").exists() == before
        assert pawl("dev", "status").code == (0 if before else 3)
    finally:
        pawl("dev", "stop")


@pytest.mark.spec("F7", "F3")
def test_commands_are_typed_as_requests_and_a_path_is_none(project: Project, script: Script):
    pawl = project(FILES)
    with page(pawl.workspace, "--model", script('[[turn]]\ntimes = 0\nanswer = "ready"\n')) as tab:
        assert "/undo [ID] [--file F]" in [one["usage"] for one in tab.get("/api/commands")]
        made = tab.post("/api/requests", {"text": "/checkpoint before"})
        assert (made["taken"], made["exit_code"]) == ("command", 0) and "before" in made["text"]
        assert tab.post("/api/requests", {"text": "/approval never"}) == {"taken": "chosen"}
        assert tab.get("/api/state")["choices"]["approval"] == "never"
        for unknown in ("/undoo", "/setup", "/trust"):
            refused = tab.ask("POST", "/api/requests", {"text": unknown})
            assert refused.status == 400 and refused.json["advice"]
        assert tab.post("/api/requests", {"text": "/etc/hosts is no command"}) == {"taken": "begun"}


def test_what_differs_from_the_last_commit_is_named_and_without_git_what_entries_changed(project: Project):
    pawl = project({"a.py": "x = 1\n", "b.py": "x = 1\n"})
    with page(pawl.workspace) as tab:
        assert tab.get("/api/files/changed") == {"paths": [], "since": "entries"}
        tab.post("/api/file", {"path": "a.py", "text": "x = 2\n", "base": "x = 1\n"}, "PUT")
        assert tab.get("/api/files/changed")["paths"] == ["a.py"]
        assert tab.command("history")["body"]["entries"][0]["changed"] == ["a.py"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
            subprocess.run(["git", *words], cwd=pawl.workspace, check=True)
        (pawl.workspace / "b.py").write_text("x = 2\n")
        (pawl.workspace / "new.py").write_text("x = 2\n")
        assert tab.get("/api/files/changed") == {"paths": ["b.py", "new.py"], "since": "commit"}


@pytest.mark.whole
@pytest.mark.spec("A4", "F7")
def test_the_page_shows_and_changes_the_queue_and_reaches_no_other_file_with_it(project: Project, script: Script):
    pawl = project(FILES)
    assert pawl("queue", "add", "fix the bug in after", "--model", script(FIX)).code == 0
    with page(pawl.workspace, "--model", script(FIX)) as tab:
        assert [one["standing"] for one in tab.command("queue", "list")["body"]["jobs"]] == ["queued"]
        assert tab.command("queue", "pause", "1")["exit_code"] == 0
        assert tab.post("/api/requests", {"text": "/jobs"})["text"].splitlines()[1].split()[:2] == ["1", "paused"]
        for words in (("list", "--export", "jobs.json"), ("add", "--from", "app.py"), ("run",), ("watch",)):
            refused = tab.ask("POST", "/api/command", {"words": ["queue", *words]})
            assert refused.status == 400 and b"in another terminal" in refused.body, refused
        assert tab.command("queue", "cancel", "1")["exit_code"] == 0
    assert not (pawl.workspace / "jobs.json").exists()
    assert pawl.json("queue")["jobs"][0]["standing"] == "cancelled"


def settled(tab: Page, after: int = 0) -> dict:
    """The state when nothing works any more, or something is asked."""
    with tab.events(after, every=True) as events:
        while (state := tab.get("/api/state"))["working"] and not state["asked"]:
            next(events)
    return state


@pytest.mark.spec("F7", "F3")
def test_a_command_of_ones_own_is_asked_about_once_and_a_stop_is_a_no(
    project: Project, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({**SETTINGS, ".claude/commands/sum.md": "Explain: !`expr 40 + 2`\n"})
    trusted = f'[trust]\nfolders = ["{pawl.workspace}"]\n'
    (tmp_path / "config.toml").write_text(f'{trusted}[permissions]\nask = ["Bash(expr *)"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    talk = '[[turn]]\nmatch = { system = "42" }\nanswer = "It is read."\n[[turn]]\ntimes = 0\nanswer = "Not there."\n'
    with page(pawl.workspace, "--model", script(talk)) as tab:
        assert tab.post("/api/requests", {"text": "/sum"}) == {"taken": "begun"}
        asked = settled(tab)["asked"]
        assert asked["shown"] == "expr 40 + 2" and "Bash(expr *)" in asked["why"]
        assert [one["key"] for one in asked["choices"]] == ["y", "n"]
        assert tab.post("/api/say", {"id": asked["id"] + 1, "text": "y"}) == {"taken": False}
        assert tab.post("/api/say", {"id": asked["id"], "text": "y"}) == {"taken": True}
        assert tab.post("/api/say", {"id": asked["id"], "text": "y"}) == {"taken": False}
        ended = tab.until("RunEnded")[-1]
        assert ended["body"]["report"]["answer"] == "It is read."
        settled(tab)
        tab.post("/api/requests", {"text": "/sum"})
        assert settled(tab)["asked"] == {**asked, "id": asked["id"] + 1}
        tab.post("/api/stop", {})
        assert settled(tab)["asked"] is None


def acted(tab: Page, text: str, *answers: str) -> dict:
    """What a command has said that is typed into the page, with the answers to what it asks."""
    assert tab.post("/api/requests", {"text": text})["taken"] == "doing"
    for answer in answers:
        asked = settled(tab)["asked"]
        assert tab.post("/api/say", {"id": asked["id"], "text": answer}) == {"taken": True}
    assert settled(tab)["asked"] is None
    return tab.get("/api/told")[-1]


@pytest.mark.whole
@pytest.mark.spec("F7", "F3")
def test_commands_notes_commits_and_rewinds_are_typed_into_the_page_as_into_a_session(project: Project, script: Script):
    pawl = project({**FILES, "doc.md": "one\n"})
    git = partial(subprocess.run, cwd=pawl.workspace, check=True, capture_output=True, text=True)
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "begin"),
    ):
        git(["git", *words])
    talk = f"{FIX}\n[[turn]]\ntimes = 0\nanswer = 'It is well.'\n"
    with page(pawl.workspace, "--model", script(talk)) as tab:
        ran = acted(tab, "!echo two >> doc.md; echo said", "y")
        assert (ran["line"], ran["open"], ran["failed"]) == ("!echo two >> doc.md; echo said", False, False)
        assert "  said\n" in ran["text"] and "exit 0" in ran["text"] and "promoted as entry 1" in ran["text"]
        assert (pawl.workspace / "doc.md").read_text() == "one\ntwo\n"
        assert "exit 3" in acted(tab, "!exit 3")["text"]
        assert tab.post("/api/requests", {"text": "#tests run with pytest"})["exit_code"] == 0
        assert "tests run with pytest" in tab.post("/api/requests", {"text": "/memory"})["text"]
        before = tab.get("/api/state")["last_event"]
        tab.post("/api/requests", {"text": "fix the bug in after"})
        tab.until("RunEnded", after=before)
        waiting = settled(tab)["waiting"]
        answer = {"answer": "approve", "digest": waiting["question"]["digest"]}
        tab.post(f"/api/runs/{waiting['run']}/answer", answer)
        state = settled(tab)
        assert (pawl.workspace / "app.py").read_text() == RIGHT and state["waiting"] is None
        drafted = acted(tab, "/commit", "e", "after: adds one\n", "y")
        assert "after: adds one" in drafted["text"] and "committed as" in drafted["text"]
        assert git(["git", "log", "-1", "--format=%s"]).stdout == "after: adds one\n"
        assert acted(tab, "/commit nothing")["failed"]
        for text, said in (
            ("/status", "asks at the end"), ("/cost", "scripted:"), ("/mode", "mode: agent"), ("/queue", "nothing"),
            ("/help", "/rewind"),
        ):  # fmt: skip
            assert said in tab.post("/api/requests", {"text": text})["text"]
        conversation = state["conversation"]
        assert "continues as" in acted(tab, "/fork")["text"]
        assert conversation in acted(tab, f"/resume {conversation}")["text"]
        assert "go back to before which" not in acted(tab, "/rewind 1")["text"]
        assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
        assert tab.get("/api/state")["conversation"] not in ("", conversation)
        assert "no goal yet" in acted(tab, "/goal")["text"] and "no hooks" in acted(tab, "/hooks")["text"]


@pytest.mark.spec("F7", "F3")
def test_every_command_of_a_session_is_carried_out_in_the_page_or_says_where_it_is(project: Project, script: Script):
    pawl = project({"a.py": "x = 1\n"})
    refused = {"setup", "trust", "quit", "output"}
    assert {one.name for one in built_in() if one.page} == refused | {"mcp"}
    with page(pawl.workspace) as tab:
        for one in built_in():
            # There is no model, no conversation and no entry: some say that, and none that it is no command here.
            answer = tab.ask("POST", "/api/requests", {"text": f"/{one.name}"})
            if one.name in refused:
                assert answer.status == 400 and "is not for the page" in answer.json["message"], one.name
                assert answer.json["advice"]
            elif one.name == "review":
                assert answer.status == 400 and "no model" in answer.json["message"]
            else:
                assert answer.status in (200, 400, 404), (one.name, answer.body)
                assert b"is not for the page" not in answer.body
                while asked := settled(tab)["asked"]:
                    tab.post("/api/say", {"id": asked["id"], "text": ""})
        assert "is not for the page" in tab.ask("POST", "/api/requests", {"text": "/mcp trust x"}).json["message"]
        listed = {one["usage"].split()[0] for one in tab.get("/api/commands")}
        assert {f"/{name}" for name in refused}.isdisjoint(listed) and {"/commit", "/mcp", "/rewind"} <= listed


@pytest.mark.spec("F7", "F5")
def test_checks_of_the_workspace_are_stopped_by_the_page_and_by_the_end_of_the_server(project: Project):
    pawl = project({**SETTINGS, "test_slow.py": "import time\n\n\ndef test_slow():\n    time.sleep(600)\n"})
    words = ("POST", "/api/command", {"words": ["verify", "--only", "tests"]})
    with ThreadPoolExecutor() as threads, page(pawl.workspace) as tab:
        checking = threads.submit(tab.ask, *words)
        while not tab.post("/api/verify/stop", {})["stopped"]:
            assert not checking.done()
        assert checking.result().json["message"] == "stopped by the user"
        # Ctrl-C ends it as well: `page` waits for that.
        threads.submit(tab.ask, *words)
