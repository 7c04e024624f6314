"""Nothing that a model, a file, a name or a command says is obeyed by a terminal, whichever command prints it."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.projects import SETTINGS, Project

import pawl as product
from pawl.ui.cli.overview import COMMANDS

pytestmark = pytest.mark.attack("A44")

SOURCE = Path(product.__file__).parent
OWN_PROCESSES = ("repair/inside/", "agent/inside/", "repair/script_proposals.py", "agent/tools/matcher.py",
    "checks/inside/launch.py", "checks/lsp/question.py", "checks/server_runner.py", "code/parsers.py",
    "sandbox/launcher.py")  # fmt: skip
"""What runs in processes of its own and answers Pawl in JSON or bytes, never a person."""
MAY_WRITE = {
    ("ui/screen/screen.py", "_send"): "the one place",
    ("ui/screen/screen.py", "patch"): "exact bytes for git, only into a pipe",
    ("ui/cli/run_command.py", "show"): "an error of the system's",
    ("ui/cli/run_command.py", "close"): "line ends",
    ("ui/cli/run_command.py", "_write"): "a command's bytes into a pipe; what a terminal gets went through SafeStream",
    ("ui/terminal/inline.py", "_draw"): "what the screen made safe, above the input line",
    ("ui/terminal/inline.py", "_send"): "bell, title and notification of Pawl's own, with words that are made safe",
    ("sandbox/process.py", "memory_file"): "what bubblewrap reads",
    ("__main__.py", "main"): "Pawl's own words, before anything is loaded",
    ("__main__.py", "_answer"): "Pawl's own words, before anything is loaded",
    ("__main__.py", "_without_output"): "an error of the system's",
}
MAY_DRAW = {
    "ui/screen/screen.py",
    "ui/screen/renderer.py",
    "ui/terminal/transcript.py",
}

BAD = "\x1b]52;c;aGk=\x07\x1b]8;;https://evil\x1b\\\x1b[2J\x9b31m\rX\u202e\u200b\x08"
RAW = set("\x1b\x9b\r\u202e\u200b\x08\x07\U000e0072")


def writes(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each call that may write to a stream of the process, with the function that it stands in."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call):
                continue
            text = ast.unparse(call.func)
            streams = ("stdout", "stderr", "stream", "buffer", "_output")
            is_write = text.endswith((".write", ".writelines", ".write_raw")) and any(one in text for one in streams)
            is_write = is_write or text == "place.write"
            if text == "print" or is_write or (text == "os.write" and ast.unparse(call.args[0]) in ("1", "2")):
                yield function.name, call


def sources() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(OWN_PROCESSES):
            yield name, ast.parse(path.read_text())


@pytest.mark.whole
def test_one_place_writes_what_a_person_or_a_program_reads():
    found = {(name, function) for name, tree in sources() for function, _ in writes(tree)}
    assert found == set(MAY_WRITE)


@pytest.mark.whole
def test_colours_are_drawn_only_by_those_who_make_them():
    callers = {
        name
        for name, tree in sources()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "draw"
    }
    assert callers <= MAY_DRAW


@pytest.fixture
def hostile(project: Project, tmp_path: Path) -> Pawl:
    """A workspace whose names, contents and model say what a terminal would obey."""
    pawl = project({**SETTINGS, f"na{BAD.replace('/', '')}me.py": f"x = 1  # {BAD}\n", "app.py": "x = 1\n"})
    (pawl.workspace / "AGENTS.md").write_text(f"Be {BAD} good.\n")
    call = {"name": f"file_read{BAD}", "arguments": {"path": f"app.py{BAD}"}}
    read = {"name": "file_read", "arguments": {"path": "app.py"}}
    turns = [
        {"answer": {"text": f"I look {BAD}", "calls": [call, read]}},
        *[{"answer": {"text": f"It is {BAD} ![x](https://evil/?q=1) at app.py:1 {BAD}"}}] * 3,
    ]
    (tmp_path / "model.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    (tmp_path / "bad.toml").write_text('[[tier]]\nmode = "' + "\\u001b[2J" + '"\n')
    return pawl


def calls(tmp_path: Path) -> dict[str, list[list[str]]]:
    model = ["--model", f"scripted:{tmp_path / 'model.jsonl'}"]
    return {
        "run": [["run", "--apply", "--", "sh", "-c", f"echo y >> app.py # {BAD}"]],
        "session": [],
        "fix": [["fix", f"no{BAD}"]],
        "verify": [["verify", "--only", f"lint{BAD}"]],
        "dev": [["dev", f"no{BAD}"], ["dev", "--list"]],
        "ask": [["ask", f"what is {BAD}?", "--no-cache", *model], ["ask", "what?", "--thoughts", *model]],
        "do": [["do", f"explain {BAD}", *model], ["-p", "explain app.py", *model]],
        "loop": [["loop", f"add {BAD}", "--ladder", str(tmp_path / "bad.toml")]],
        "audit": [["audit"], ["audit", f"r{BAD}"]],
        "approve": [["approve", f"r{BAD}"]],
        "locate": [["locate", f"name {BAD}"]],
        "models": [["models", "--offline"]],
        "setup": [["setup", "--list"]],
        "policy": [["policy"]],
        "prompts": [["prompts", "show", f"no{BAD}"], ["prompts", "list"]],
        "skills": [["skills"], ["skills", "show", f"no{BAD}"]],
        "agents": [["agents"], ["agents", "show", f"no{BAD}"], ["agents", "check"]],
        "mcp": [["mcp", "list"], ["mcp", "test", f"no{BAD}"]],
        "acp": [["acp", f"no{BAD}"], ["acp"]],
        "spec": [["spec", "status", "--spec", f"no{BAD}"], ["spec", "new", f"idea {BAD}", "--dry-run"]],
        "queue": [
            ["queue", "add", f"explain {BAD}", *model],
            ["queue", "run"],
            ["queue", "list"],
            ["queue", "show", "1"],
        ],
        "worker": [["worker", "--drain"]],
        "web": [["web", "--page", f"no{BAD}"]],
        "permissions": [["permissions"], ["permissions", "check", f"Bash(ls {BAD})"], ["permissions", "check", BAD]],
        "trust": [["trust"], ["trust", "--list"]],
        "memory": [["memory", "add", f"note {BAD}"], ["memory", "list"], ["memory", "show", f"{BAD}"]],
        "promote": [["promote", f"9{BAD}"]],
        "patch": [["patch", "--path", f"app{BAD}.py", "--old", "a", "--new", "b"]],
        "requests": [["requests"]],
        "scores": [["scores"]],
        "history": [["history"], ["history", "--all"], ["history", "--runs"]],
        "diff": [["diff", "--stat"], ["diff", "1", "--file", f"no{BAD}"]],
        "undo": [["undo", f"1{BAD}"], ["undo", "--dry-run"], ["undo"]],
        "redo": [["redo"]],
        "checkpoint": [["checkpoint", f"here{BAD}"], ["checkpoint"]],
        "restore": [["restore", f"here{BAD}"]],
        "doctor": [["doctor"]],
        "gc": [["gc", "--dry-run"]],
    }


def test_no_command_hands_on_what_a_terminal_would_obey(hostile: Pawl, tmp_path: Path):
    table = calls(tmp_path)
    assert set(table) >= set(COMMANDS), "a command that is not tried here may forget the rule"
    for several in table.values():
        for words in several:
            said = hostile(*words)
            assert not RAW & set(said.out + said.err), (words, said)
            assert "Traceback" not in said.err, (words, said)


def test_a_session_through_a_pipe_and_what_it_exports_hand_on_nothing_either(hostile: Pawl, tmp_path: Path):
    model = f"scripted:{tmp_path / 'model.jsonl'}"
    lines = f"explain app.py\n/export page.md\n/no{BAD}\n/memory\n/permissions\n"
    said = hostile("--model", model, stdin=lines.encode())
    assert "https://evil/?q=1" in said.out
    page = (hostile.workspace / "page.md").read_text()
    assert not RAW & set(said.out + said.err + page)
    assert "\\!\\[x\\](https://evil/?q=1)" in page


@pytest.mark.parametrize("command", ["ask", "do", "history", "diff", "memory", "locate"])
def test_nor_does_it_in_a_terminal(hostile: Pawl, tmp_path: Path, command: str):
    hostile("run", "--apply", "--", "sh", "-c", f"printf '\\033]52;c;aGk=\\007\\033[2J\\n' >> app.py # {BAD}")
    for words in calls(tmp_path)[command][:1] if command != "diff" else [["diff"]]:
        with hostile.terminal(*words) as terminal:
            terminal.finish()
        seen = terminal.raw.replace("\r\n", "\n").replace("\r\x1b[K", "")
        for bad in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\u200b", "\x08", "\x07", "\rX"):
            assert bad not in seen, (words, bad, terminal.raw)


def test_the_address_of_an_image_is_seen_in_a_terminal_and_in_a_pipe(hostile: Pawl, tmp_path: Path):
    words = calls(tmp_path)["ask"][0]
    assert "https://evil/?q=1" in hostile(*words).out
    with hostile.terminal(*words) as terminal:
        terminal.finish()
    assert "https://evil/?q=1" in terminal.text


def test_a_patch_goes_through_a_pipe_to_the_byte(hostile: Pawl, tmp_path: Path):
    script = "printf 'a\\033[2J\\r\\n\\302\\233\\342\\200\\256\\n' > odd.txt; printf 'x\\r\\n' > app.py"
    hostile("run", "--apply", "--", "sh", "-c", script)
    after = {name: (hostile.workspace / name).read_bytes() for name in ("odd.txt", "app.py")}
    patch = hostile.raw("diff").stdout
    assert hostile("undo").code == 0
    subprocess.run(["git", "apply", "-"], input=patch, cwd=hostile.workspace, check=True)
    assert {name: (hostile.workspace / name).read_bytes() for name in after} == after
