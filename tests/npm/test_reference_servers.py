"""The reference servers of MCP from npm and PyPI, in the sandbox: every tool of each is called once through Pawl."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ui.cli.conftest import project
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_mcp import DO, calls
from ui.cli.test_cli_one_gate import Configured, configured, model

__all__ = ["configured", "project"]

pytestmark = [pytest.mark.npm, pytest.mark.timeout(600), pytest.mark.spec("F6")]
PACKAGES = [f"@modelcontextprotocol/server-{name}@2026.8.31" for name in ("everything", "filesystem")]
PACKAGES.append("@modelcontextprotocol/server-memory@2026.8.31")
REQUIREMENTS = Path(__file__).with_name("mcp-requirements.txt")
MODULES = "node_modules/@modelcontextprotocol"
NAMED = [{"name": "gouda", "entityType": "cheese", "observations": ["round"]}]
RELATED = [{"from": "gouda", "to": "gouda", "relationType": "is"}]
READ_ONLY = {"git_add", "git_commit", "git_reset", "git_create_branch", "git_checkout"}
"""In the sandbox of a server the repository is read-only."""
CALLS: Mapping[str, Mapping[str, dict]] = {
    "everything": {
        "echo": {"message": "hello"},
        "get-annotated-message": {"messageType": "success", "includeImage": True},
        "get-env": {},
        "get-resource-links": {"count": 2},
        "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
        "get-structured-content": {"location": "New York"},
        "get-sum": {"a": 1, "b": 2},
        "get-tiny-image": {},
        "gzip-file-as-resource": {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"},
        "toggle-simulated-logging": {},
        "toggle-subscriber-updates": {},
        "trigger-long-running-operation": {"duration": 1, "steps": 2},
    },
    "filesystem": {
        "list_allowed_directories": {},
        "read_file": {"path": "app.py"},
        "read_text_file": {"path": "app.py"},
        "read_media_file": {"path": "app.py"},
        "read_multiple_files": {"paths": ["app.py"]},
        "write_file": {"path": "new.txt", "content": "new\n"},
        "edit_file": {"path": "new.txt", "edits": [{"oldText": "new", "newText": "newer"}]},
        "create_directory": {"path": "made"},
        "list_directory": {"path": "made"},
        "list_directory_with_sizes": {"path": "made"},
        "directory_tree": {"path": "made"},
        "move_file": {"source": "new.txt", "destination": "made/new.txt"},
        "search_files": {"path": "made", "pattern": "*.txt"},
        "get_file_info": {"path": "app.py"},
    },
    "memory": {
        "create_entities": {"entities": NAMED},
        "create_relations": {"relations": RELATED},
        "add_observations": {"observations": [{"entityName": "gouda", "contents": ["yellow"]}]},
        "read_graph": {},
        "search_nodes": {"query": "gouda"},
        "open_nodes": {"names": ["gouda"]},
        "delete_observations": {"deletions": [{"entityName": "gouda", "observations": ["yellow"]}]},
        "delete_relations": {"relations": RELATED},
        "delete_entities": {"entityNames": ["gouda"]},
    },
    "git": {
        "git_status": {"repo_path": "."},
        "git_diff_unstaged": {"repo_path": "."},
        "git_diff_staged": {"repo_path": "."},
        "git_diff": {"repo_path": ".", "target": "HEAD"},
        "git_log": {"repo_path": "."},
        "git_show": {"repo_path": ".", "revision": "HEAD"},
        "git_branch": {"repo_path": ".", "branch_type": "local"},
        "git_add": {"repo_path": ".", "files": ["app.py"]},
        "git_commit": {"repo_path": ".", "message": "x"},
        "git_reset": {"repo_path": "."},
        "git_create_branch": {"repo_path": ".", "branch_name": "other"},
        "git_checkout": {"repo_path": ".", "branch_name": "other"},
    },
    "fetch": {"fetch": {"url": "{url}", "raw": True}},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("servers")
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES], cwd=root, check=True)
    subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True)
    subprocess.run([root / "venv/bin/pip", "install", "-q", "-r", REQUIREMENTS], check=True)
    return root


@pytest.fixture
def page() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = b"<html><body><p>gouda is a cheese</p></body></html>"
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()
        thread.join()


def settings(name: str, root: Path, *, host: bool = False) -> str:
    words = {
        "everything": ["node", f"{root}/{MODULES}/server-everything/dist/index.js"],
        "filesystem": ["node", f"{root}/{MODULES}/server-filesystem/dist/index.js", "."],
        "memory": ["node", f"{root}/{MODULES}/server-memory/dist/index.js"],
        "git": [f"{root}/venv/bin/mcp-server-git"],
        "fetch": [f"{root}/venv/bin/mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"],
    }[name]
    more = "host = true\n" if host else f'reads = ["{root}"]\nenv = {{ MEMORY_FILE_PATH = "/tmp/memory.json" }}\n'
    more += "network = true\n" if name == "fetch" else ""
    return f"[mcp.servers.{name}]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n{more}"


@pytest.mark.parametrize(("name", "host"), [*((name, False) for name in CALLS), ("git", True)])
def test_every_tool_of_a_reference_server_is_called(
    project: Project, configured: Configured, servers: Path, page: str, name: str, host: bool
):
    pawl = project({**SETTINGS, "app.py": "def after(number):\n    return number + 1\n"})
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=pawl.workspace, check=True)
    (pawl.workspace / "app.py").write_text("def after(number):\n    return 1 + number\n")
    configured(settings(name, servers, host=host))
    agreed = pawl.json("mcp", "trust", name, "--yes")
    assert {one["name"] for one in agreed["tools"]} == set(CALLS[name])
    # A server on the host does not start in the workspace.
    filled = {"{url}": page, **({".": str(pawl.workspace)} if host else {})}
    spoken = calls(
        *(
            (f"mcp__{name}__{tool}", {key: filled.get(str(one), one) for key, one in given.items()})
            for tool, given in CALLS[name].items()
        )
    )
    rules = f'[permissions]\nallow = ["mcp__{name}__*"]\n'
    with model(configured, spoken, settings=rules + settings(name, servers, host=host)) as playing:
        pawl(*DO)
    told = [one["content"] for one in json.loads(playing.requests[1].body)["messages"] if one["role"] == "tool"]
    assert len(told) == len(CALLS[name])
    head = f"[data of the MCP server '{name}'"
    failed = {tool for tool, text in zip(CALLS[name], told, strict=True) if not text.startswith(head)}
    assert failed <= (set() if host else READ_ONLY), [text for text in told if not text.startswith(head)]
    branch = subprocess.run(["git", "branch", "--show-current"], cwd=pawl.workspace, capture_output=True, text=True)
    assert (branch.stdout.strip() == "other") is host
    assert "hello" in told[0] or name != "everything"
    assert "gouda is a cheese" in told[0] or name != "fetch"
