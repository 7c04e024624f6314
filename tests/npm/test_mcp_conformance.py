"""The official conformance set of MCP against Pawl's server, through a bridge, because the set speaks HTTP alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from npm.large_packages import install_or_skip
from ui.cli.conftest import project
from ui.cli.console import PAWL
from ui.cli.projects import SETTINGS, Project

__all__ = ["project"]

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300), pytest.mark.spec("F6")]
PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "node@22")
HERE = Path(__file__).parent
OWN = ("server-initialize", "ping", "tools-list")
"""What every server has to do."""
WITH_TOOLS = (
    *OWN,
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "json-schema-2020-12",
)
"""What calls tools of the set's own. The other twenty are about what the server does not offer, and does not claim to:
resources (6), prompts (5), logging (2), completions, sampling, forms with several fields (2); or about the HTTP
transport (3), which is the bridge's."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set, with an interpreter that can run it."""
    root = tmp_path_factory.mktemp("conformance")
    install_or_skip(root, *PACKAGES)
    return root


@contextmanager
def bridged(*command: str) -> Iterator[str]:
    """The address under which a server on standard streams can be reached."""
    words = [sys.executable, HERE / "mcp_bridge.py", "0", *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as bridge:
        yield f"http://127.0.0.1:{bridge.stdout.readline().strip()}/mcp"
        bridge.terminate()


def failed(installed: Path, url: str, scenarios: tuple[str, ...]) -> dict[str, str]:
    modules = installed / "node_modules"
    node = next(modules.glob("**/node-linux-*/bin/node"))
    told = {}
    for name in scenarios:
        words = [node, modules / "@modelcontextprotocol/conformance/dist/index.js", "server", "--url", url]
        done = subprocess.run(
            [*words, "--scenario", name], capture_output=True, text=True, cwd=installed, timeout=60, check=False
        )
        if done.returncode or "0 failed" not in done.stdout + done.stderr:
            told[name] = done.stdout + done.stderr
    return told


def test_the_server_of_pawls_commands_conforms(installed: Path, project: Project):
    pawl = project({**SETTINGS, "app.py": "x = 1\n"})
    with bridged(*PAWL, "-C", str(pawl.workspace), "mcp", "serve") as url:
        assert failed(installed, url, OWN) == {}


def test_calls_results_progress_and_questions_of_the_server_conform(installed: Path):
    with bridged(sys.executable, str(HERE / "conformance_tools.py")) as url:
        assert failed(installed, url, WITH_TOOLS) == {}
        assert failed(installed, url, ("prompts-list",)), "a scenario that cannot pass is told as failed"
