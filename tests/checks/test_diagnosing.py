"""Language servers as data: asked on the bench, each within its limit, and their word is a verdict."""

import dataclasses
import sys
import textwrap
from pathlib import Path

import pytest

from pawl.checks.lsp.servers import server, servers
from pawl.checks.lsp.verdicts import Diagnostics, Host, diagnosed, servers_for, uncovered
from pawl.checks.project_facts import CheckKind
from pawl.core.diagnostic import Severity, Status
from pawl.core.errors import ConfigError

pytestmark = [pytest.mark.spec("A8"), pytest.mark.timeout(60)]
HOST = Host(python=sys.executable, package=str(Path(__file__).parents[2] / "src" / "pawl"))
BROKEN = {"app.py": "def f() -> int:\n    return 'x'\n", "ok.py": "x = 1\n"}


def test_ty_says_what_is_wrong_with_its_place(subject):
    verdict = diagnosed(subject(BROKEN), HOST, server("ty"), ["app.py", "ok.py", "notes.md"])
    assert verdict.standing is Status.FAIL
    (finding,) = verdict.findings
    assert (finding.path, finding.line, finding.code) == ("app.py", 2, "invalid-return-type")
    assert verdict.reason == "1 error; 2 files checked"


def test_a_clean_file_passes_and_ruff_is_asked_the_same_way(subject):
    assert diagnosed(subject(BROKEN), HOST, server("ty"), ["ok.py"]).standing is Status.PASS
    verdict = diagnosed(subject({"a.py": "import os\n"}), HOST, server("ruff"), ["a.py"])
    assert verdict.findings[0].code == "F401"


def test_a_server_that_is_not_installed_is_skipped_and_says_so(subject):
    verdict = diagnosed(subject({"main.go": "package main\n"}, tools=False), HOST, server("gopls"), ["main.go"])
    assert (verdict.standing, verdict.reason) == (Status.SKIPPED, "gopls is not installed")


SILENT = textwrap.dedent(
    f"""\
    #!{sys.executable}
    import json, sys
    while line := sys.stdin.buffer.readline():
        length = int(line.split(b":")[1])
        sys.stdin.buffer.readline()
        message = json.loads(sys.stdin.buffer.read(length))
        if message.get("method") == "initialize":
            data = json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": {{"capabilities": {{}}}}}}).encode()
            sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(data) + data)
            sys.stdout.buffer.flush()
    """
)


@pytest.mark.spec("A11")
def test_a_server_that_does_not_answer_in_time_is_skipped_and_said_so(subject):
    project = subject({"main.go": "package main\n", "bin/gopls": SILENT})
    (Path(project.workspace) / "bin" / "gopls").chmod(0o755)
    named = dataclasses.replace(server("gopls"), program=f"{project.workspace}/bin/gopls")
    verdict = diagnosed(project, HOST, named, ["main.go"], 0.5)
    assert (verdict.standing, verdict.reason) == (Status.SKIPPED, "it did not answer within 0.5 s")


def test_only_servers_that_say_what_no_step_says_are_part_of_the_ladder(folder):
    python = folder({"app.py": "x = 1\n"})
    assert uncovered(python, {CheckKind.TYPES, CheckKind.LINT}) == ()
    assert [one.name for one in uncovered(python, {CheckKind.TESTS})] == ["ty", "ruff"]
    go = folder({"go.mod": "module x\n", "main.go": "package main\n"})
    assert [one.name for one in uncovered(go, {CheckKind.LINT, CheckKind.TYPES})] == ["gopls"]


def test_servers_are_used_where_the_project_is_set_up_for_them(folder):
    names = {one.name for one in servers_for(folder({"pyproject.toml": "[tool.basedpyright]\n"}))}
    assert {"ty", "ruff", "basedpyright"} <= names and "pyrefly" not in names
    seven = folder({"node_modules/typescript/package.json": '{"version": "7.0.2"}'})
    assert "tsc" in {one.name for one in servers_for(seven)}
    five = folder({"node_modules/typescript/package.json": '{"version": "5.9.3"}'})
    assert "tsc" not in {one.name for one in servers_for(five)}
    assert [one.name for one in servers_for(five, ["ruff"])] == ["ruff"]
    with pytest.raises(ConfigError, match="'nobody'"):
        servers_for(five, ["nobody"])


def test_the_step_reports_errors_only(subject):
    warned = {"app.py": "def f() -> int:\n    return 'x'\n"}
    verdict = Diagnostics(server("ty"), HOST).run(subject(warned))
    assert verdict.step == "diagnostics (ty)"
    assert {finding.severity for finding in verdict.findings} == {Severity.ERROR}


def test_every_server_names_its_languages_and_what_only_hides_a_finding():
    assert {one.name for one in servers()} == {
        *("ty", "ruff", "pyrefly", "basedpyright"),
        *("tsc", "typescript-language-server", "gopls", "rust-analyzer"),
    }
    assert all(one.languages and one.silences.pattern for one in servers())
