"""`pawl dev`: a real server on a bench answers on loopback, and nothing is left behind, however it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ui.cli.console import PATIENCE, PAWL, Pawl
from ui.cli.projects import Project
from ui.cli.test_cli_docs import section
from ui.cli.test_cli_tools import told

from pawl.checks.dev_process import ServerRecord, ServerRegistry, ServerState

pytestmark = [pytest.mark.spec("A13"), pytest.mark.timeout(120)]

SERVE = """
import http.server, os, subprocess, sys
port = int(sys.argv[1])
mode = open("mode.txt").read().strip()
if mode == "moves":
    port += 1
if mode == "busy":
    sys.exit("[Errno 98] Address already in use")
if mode == "dies":
    print("the database is gone")
    sys.exit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if mode == "broken" else 200)
        self.end_headers()
        self.wfile.write(open("page.txt", "rb").read())
child = subprocess.Popen(["sleep", "1000"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
if mode == "silent":
    server.serve_forever()
print("greeting:", os.environ["GREETING"])
print(f"serving on http://127.0.0.1:{port}/", flush=True)
server.serve_forever()
"""
SETTINGS = """
[[verify.dev_server]]
name = "toy"
when = { files = ["serve.py"] }
words = ["python3", "-u", "serve.py", "{port}"]
port = %d
environment = { GREETING = "hello from {port}" }
ready = ['serving on http://127.0.0.1:(?P<port>\\d+)']
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def is_taken(port: int) -> bool:
    with socket.socket() as trial:
        trial.settimeout(5)
        return trial.connect_ex(("127.0.0.1", port)) == 0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came about"


def answered(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


def tree_of(pid: int) -> set[int]:
    """A process and everything below it."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(entry.parent.name)] = int(fields[1])
    found = {pid} & parents.keys()
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def words_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def alive(processes: set[int]) -> set[int]:
    return {pid for pid in processes if pid in tree_of(pid)}


@pytest.fixture
def served(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Pawl]]:
    made: list[Pawl] = []

    def make(mode: str = "works", port: int | None = None) -> Pawl:
        settings = tmp_path / "dev.toml"
        settings.write_text(SETTINGS % (port or free_port()))
        monkeypatch.setenv("PAWL_CONFIG", str(settings))
        pawl = project({"serve.py": SERVE, "mode.txt": mode, "page.txt": "hello"})
        made.append(pawl)
        return pawl

    yield make
    for pawl in made:
        pawl("dev", "stop")


def test_a_server_is_started_found_again_read_and_ended_with_its_whole_tree(served):
    pawl = served()
    told = pawl.json("dev", "start")
    assert (told["name"], told["state"]) == ("toy", "ready")
    assert [key for key in told if f"`{key}`" not in section("dev")] == []
    assert answered(told["port"]) == "hello"
    again = pawl.json("dev", "start")
    assert (again["pid"], again["port"]) == (told["pid"], told["port"])
    assert pawl.json("dev", "status") == told
    lines = pawl.json("dev", "logs")["lines"]
    assert any("serving on" in line for line in lines)
    assert f"greeting: hello from {told['port']}" in lines
    processes = tree_of(told["pid"])
    assert len(processes) > 2
    assert pawl.json("dev", "stop")["state"] == "stopped"
    until(lambda: not alive(processes))
    assert not is_taken(told["port"])
    assert pawl("dev", "status").code == 3
    assert pawl("dev", "stop").code == 3
    assert list(Path(os.environ["PAWL_STATE"], "benches").glob("*")) == []  # noqa: TID251


def test_the_port_is_read_from_the_output_also_when_it_moved(served):
    port = free_port()
    pawl = served("moves", port)
    told = pawl.json("dev", "start")
    assert told["port"] == port
    assert answered(port) == "hello"


def test_a_server_reads_a_hidden_file_only_where_the_user_says_so(served):
    pawl = served()
    (pawl.workspace / ".env").write_text("A=quiet\n")
    (pawl.workspace / "page.txt").unlink()
    (pawl.workspace / "page.txt").symlink_to(".env")
    assert answered(pawl.json("dev", "start")["port"]) == ""
    assert pawl("dev", "stop").code == 0
    assert answered(pawl.json("dev", "start", "--secrets")["port"]) == "A=quiet\n"
    assert "it reads files that hold secrets (--secrets)" in pawl("dev", "status").out


def test_a_taken_port_gives_way_to_a_free_one(served):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = served(port=port).json("dev", "start")
        assert told["port"] != port
        assert told["notice"].startswith(f"port {port} is taken by "), told
        assert answered(told["port"]) == "hello"


@pytest.mark.whole
def test_a_server_that_does_not_come_up_is_told_with_its_last_words(served):
    pawl = served("dies")
    said = pawl("dev", "start")
    assert said.code == 1
    assert "code 3" in said.err and "the database is gone" in said.err
    assert pawl("dev", "status").code == 3


@pytest.mark.whole
def test_a_server_that_answers_with_an_error_shows_its_own_page_and_the_status_is_told(served):
    told = served("broken").json("dev", "start")
    assert (told["state"], told["notice"]) == ("ready", "it answers with status 500")


def test_killing_what_holds_the_server_leaves_no_process_and_no_port(served):
    pawl = served()
    told = pawl.json("dev", "start")
    processes = tree_of(told["pid"])
    os.kill(told["pid"], signal.SIGKILL)
    until(lambda: not alive(processes))
    until(lambda: not is_taken(told["port"]))
    assert pawl("dev", "status").code == 3
    assert pawl.json("dev", "start")["port"] == told["port"]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("words", "program"),
    [(("dev", "start"), "pawl.checks.supervisor"), (("dev", "start"), "sleep"), (("verify",), "serve.py")],
)
def test_killing_pawl_while_a_server_comes_up_leaves_no_process_and_no_port(served, words, program):
    port = free_port()
    pawl = served("silent", port)
    process = subprocess.Popen([*PAWL, *words], cwd=pawl.workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until(lambda: any(program in word for pid in tree_of(process.pid) for word in words_of(pid)))
        processes = tree_of(process.pid)
    finally:
        process.kill()
        process.communicate()
    until(lambda: not alive(processes))
    assert not is_taken(port)
    assert pawl("dev", "status").code == 3


def test_a_server_that_is_killed_is_said_to_have_ended(served):
    pawl = served()
    told = pawl.json("dev", "start")
    processes = tree_of(told["pid"])
    (victim,) = [pid for pid in processes if words_of(pid)[1:3] == ["-u", "serve.py"]]
    os.kill(victim, signal.SIGKILL)
    until(lambda: pawl("dev", "status").code == 3)
    assert pawl.json("dev", "status", code=3)["state"] == "ended"
    assert "has ended at http://127.0.0.1:" in pawl("dev", "status").out
    until(lambda: not alive(processes))
    assert not is_taken(told["port"])


@pytest.mark.whole
def test_the_ladder_asks_the_server_too(served):
    pawl = served()
    told = {step["step"]: step for step in pawl.json("verify", "--all", code=6)["steps"]}
    assert told["server"]["standing"] == "pass"
    assert "status 200" in told["server"]["reason"]
    (pawl.workspace / "mode.txt").write_text("dies")
    told = {step["step"]: step for step in pawl.json("verify", "--all", code=1)["steps"]}
    assert told["server"]["standing"] == "fail"
    assert "the database is gone" in json.dumps(told["server"]["findings"])


def test_a_project_without_a_server_and_wrong_words_are_told(project: Project):
    pawl = project({"notes.md": "x"})
    said = pawl("dev", "start")
    assert (said.code, "no dev server that Pawl knows" in said.err) == (1, True)
    assert pawl("dev", "start", "--port", "0").code == 42
    assert pawl("dev", "logs", "--lines", "0").code == 42
    assert pawl("dev", "dance").code == 2


def test_of_a_long_log_only_the_end_is_read(project: Project, tmp_path: Path):
    pawl = project({"a.txt": ""})
    registry, workspace = ServerRegistry.under(tmp_path / "state"), str(pawl.workspace.resolve())
    registry.put(ServerRecord(workspace=workspace, name="vite", pid=0, born=0, state=ServerState.ENDED))
    registry.log(workspace).write_text("x" * (1 << 20) + "\nfirst\nlast\n")
    said = pawl("dev", "logs")
    assert said.lines == ["first", "last"], said


@pytest.mark.whole
@pytest.mark.spec("A5")
def test_a_model_serves_its_own_edits_is_told_each_way_to_fail_and_leaves_nothing_behind(served, tmp_path: Path):
    """Nothing of this machine listens for it."""

    def serve(action: str, path: str = "/") -> tuple[str, dict[str, object]]:
        return "dev_server", {"action": action, "path": path}

    def patch(path: str, old: str, new: str) -> tuple[str, dict[str, object]]:
        return "strict_patch", {"path": path, "old": old, "new": new}

    port = free_port()
    pawl = served(port=port)
    broken = [
        step
        for old, new in (("works", "broken"), ("broken", "dies"), ("dies", "busy"))
        for step in (patch("mode.txt", old, new), serve("start"))
    ]
    calls = [
        serve("status"),
        serve("start"),
        patch("page.txt", "hello", "good day"),
        serve("status", "about"),
        serve("start"),
        *broken,
        serve("stop"),
        patch("mode.txt", "busy", "works"),
        serve("start"),
    ]
    answers = told(pawl, tmp_path, *calls)
    none, first, later, again, *failed, ended, last = (
        answer for (name, _), answer in zip(calls, answers, strict=True) if name == "dev_server"
    )
    assert none.startswith("not_found: no dev server runs")
    assert first.startswith(f"[toy is ready on port {port}; / answers 200]\nhello\n[log]\n")
    assert "/about answers 200" in later and "start it again for your later edits" in later and "hello" in later
    assert "good day" in again and "later edits" not in again and "good day" in last
    assert [answer.partition(":")[0] for answer in failed] == ["build_failed", "build_failed", "port_in_use"]
    assert "status 500" in failed[0] and "the database is gone" in failed[1] and ended == "[no dev server runs]"
    assert [words for words in map(words_of, tree_of(1)) if words[-2:] == ["serve.py", str(port)]] == []
