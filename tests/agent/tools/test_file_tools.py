"""Searching and reading: bounded, never a secret, every way to fail with its own name."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.tools.conftest import FolderRunner
from folder import GUARDRAILS, FolderFiles

from pawl.agent.tools.file_search import Expression, FileSearch, Matches, SearchMatch, Where
from pawl.agent.tools.file_tools import FileLines
from pawl.agent.tools.tool_registry import Ports, ToolFailure, ToolLimits, ToolRegistry, ToolResult
from pawl.agent.tools.toolbox import TimedFiles, toolbox
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap
from pawl.core.errors import Cancelled, TimedOut
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench_files import Files

pytestmark = pytest.mark.spec("A5")


def output(result: ToolResult | ToolFailure):
    assert isinstance(result, ToolResult), result
    return result.output


def failure(result: ToolResult | ToolFailure) -> ToolFailure:
    assert isinstance(result, ToolFailure), result
    return result


def searching(files: Files, limits: ToolLimits | None = None, cancel: CancelToken | None = None):
    """What `file_search` does with its input, with its errors as they are."""
    editor = BenchEditor(files, GUARDRAILS)
    ports = Ports(
        files=files,
        editor=lambda: editor,
        runner=FolderRunner(Path("nowhere")),
        dependencies=lambda: ImportMap.of({}),
        guardrails=GUARDRAILS,
        limits=limits or ToolLimits(),
        cancel=cancel,
    )
    return toolbox(ports).tool("file_search").handler


def found(tools: ToolRegistry, **arguments: object) -> list[tuple[str, int]]:
    return [(match.path, match.line) for match in output(tools.call("file_search", arguments)).matches]


def test_a_text_is_found_with_its_file_and_line(tools: ToolRegistry):
    assert output(tools.call("file_search", {"query": "greet(", "extensions": ["py"]})) == Matches(
        matches=(
            SearchMatch(path="src/greeter.py", line=1, text="def greet(name):"),
            SearchMatch(path="src/main.py", line=3, text='print(greet("world"))'),
        ),
        files=2,
        skipped=0,
        complete=True,
    )


def test_plain_text_is_not_an_expression_and_an_expression_is_tried_line_by_line(tools: ToolRegistry):
    assert failure(tools.call("file_search", {"query": "gr..t"})).code == "no_matches"
    assert found(tools, query=r"^def \w+", regex=True) == [("src/greeter.py", 1)]
    assert found(tools, query="HELLO", regex=True, ignore_case=True) == [("README.md", 3), ("src/greeter.py", 2)]
    assert found(tools, query="SAYS", ignore_case=True) == [("README.md", 3)]


def test_a_text_of_several_lines_is_found_where_it_begins(tools: ToolRegistry, workspace: Path):
    (workspace / "dos.txt").write_bytes(b"zero\r\none\r\ntwo\r\n")
    assert found(tools, query="one\ntwo") == [("dos.txt", 2)]


def test_a_search_can_be_narrowed_to_a_folder_a_file_and_an_ending(tools: ToolRegistry):
    assert found(tools, query="e", path="src", extensions=[".py"])[0][0] == "src/greeter.py"
    assert {path for path, _ in found(tools, query="e", path="./src/main.py")} == {"src/main.py"}
    assert failure(tools.call("file_search", {"query": "e", "extensions": ["rs"]})).code == "no_matches"


def test_file_names_can_be_searched(tools: ToolRegistry):
    assert found(tools, query="main", where="names") == [("src/main.py", 0)]
    assert found(tools, query=r"\.(md|sh)$", regex=True, where="names") == [("README.md", 0), ("run.sh", 0)]


def test_binary_and_large_files_are_left_out_and_counted(tools: ToolRegistry, workspace: Path):
    (workspace / "large.txt").write_text("needle\n" + "x" * (1 << 20))
    (workspace / "small.txt").write_text("needle\n")
    matches = output(tools.call("file_search", {"query": "needle"}))
    assert [match.path for match in matches.matches] == ["small.txt"]
    assert matches.skipped == 2
    assert "[2 binary, large or unreadable files left out]" in matches.text


@pytest.mark.spec("B13")
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"query": "greet(", "where": "names"}, 'with where="content" it is found:\n'),
        ({"query": "GREET("}, "with ignore_case it is found:\n"),
        ({"query": "greet(", "extensions": ["rs"]}, "without extensions it is found:\n"),
    ],
)
def test_a_search_that_finds_nothing_says_how_it_would_find_something(tools: ToolRegistry, asked: dict, told: str):
    advice = failure(tools.call("file_search", asked)).advice
    assert advice.startswith(told) and ".py:" in advice


def test_secrets_and_the_folder_of_git_are_not_searched(tools: ToolRegistry, workspace: Path):
    (workspace / ".env").write_text("TOKEN=canary\n")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("url = https://canary@host\n")
    assert failure(tools.call("file_search", {"query": "canary"})).code == "no_matches"
    assert failure(tools.call("file_search", {"query": "canary", "path": ".env"})).code == "no_matches"
    assert failure(tools.call("file_search", {"query": ".env", "where": "names"})).code == "no_matches"


def test_matches_are_bounded_and_said_to_be(tools: ToolRegistry, workspace: Path):
    (workspace / "many.txt").write_text("needle\n" * 1_000)
    matches = output(tools.call("file_search", {"query": "needle", "limit": 10_000}))
    assert (len(matches.matches), matches.complete) == (200, False)
    assert len(found(tools, query="needle", limit=3)) == 3
    assert "[there may be more; narrow the search]" in matches.text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"query": "nothing of that kind"}, "no_matches"),
        ({"query": "x", "path": "absent"}, "not_found"),
        ({"query": ""}, "bad_arguments"),
        ({"query": "(", "regex": True}, "bad_arguments"),
        ({"query": "a{99999999999}", "regex": True}, "bad_arguments"),
        ({"query": "x" * 2_000, "regex": True}, "bad_arguments"),
        ({"query": "x", "limit": 0}, "bad_arguments"),
    ],
)
def test_a_search_that_fails_says_how_and_what_next(tools: ToolRegistry, arguments: dict[str, object], code: str):
    result = failure(tools.call("file_search", arguments))
    assert result.code == code
    assert result.advice


@pytest.mark.spec("A11")
def test_an_expression_that_never_ends_is_stopped():
    with (
        Expression(r"(a+)+$", ignore_case=False, seconds=0.2) as expression,
        pytest.raises(TimedOut, match="took longer"),
    ):
        expression.matching_lines("a" * 40 + "b")


@pytest.mark.fault("P33")
def test_an_expression_that_never_ends_is_given_up_when_the_user_stops():
    cancel = CancelToken()
    with Expression(r"(a+)+$", ignore_case=False, seconds=3600, cancel=cancel) as expression:
        threading.Timer(0.05, cancel.request).start()
        with pytest.raises(Cancelled):
            expression.matching_lines("a" * 40 + "b")
    cancel.close()


@pytest.mark.fault("P33")
def test_a_search_that_the_user_stops_looks_at_no_further_file(workspace: Path):
    cancel = CancelToken()
    cancel.request()
    search = searching(FolderFiles(workspace), cancel=cancel)
    with pytest.raises(Cancelled):
        search(FileSearch(query="hello"))
    cancel.close()


@pytest.mark.spec("A11")
def test_a_search_out_of_time_reports_how_far_it_came(workspace: Path):
    limits = ToolLimits(tool_seconds=-1.0)
    search = searching(FolderFiles(workspace), limits)
    with pytest.raises(TimedOut, match="searched 0 files"):
        search(FileSearch(query="hello"))


@pytest.mark.spec("A11")
def test_a_listing_without_end_does_not_hold_a_search_beyond_its_time(workspace: Path):
    class Endless(FolderFiles):
        def walk(self, under: str = "") -> Iterator[str]:
            return (f"folder/{number}.txt" for number in itertools.count())

    files = TimedFiles(lambda: Endless(workspace), seconds=5.0)
    search = searching(files, ToolLimits(tool_seconds=0.2))
    names = FileSearch(query="zz", where=Where.NAMES)
    for given in (FileSearch(query="x"), names, FileSearch(query="x", extensions=("py",))):
        with pytest.raises(TimedOut, match=r"searched \d+ files in 0.2 s"):
            search(given)


def test_a_file_is_read_as_numbered_lines(tools: ToolRegistry):
    result = tools.call("file_read", {"path": "README.md"})
    assert output(result) == FileLines(
        path="README.md", start=1, lines=("# Greeter", "", "Says hello."), total=3, numbered=True
    )
    assert result.text == "     1 | # Greeter\n     2 | \n     3 | Says hello."


def test_some_lines_are_read_with_a_word_on_where_to_read_on(tools: ToolRegistry):
    result = tools.call("file_read", {"path": "README.md", "start": 1, "end": 2, "numbered": False})
    assert result.text == "# Greeter\n\n[lines 1 to 2 of 3; read on from line 3]"
    assert tools.call("file_read", {"path": "README.md", "start": 3}).text.endswith("[lines 3 to 3 of 3]")


def test_a_long_file_and_a_long_line_are_cut_and_said_to_be(tools: ToolRegistry, workspace: Path):
    (workspace / "long.txt").write_text("x\n" * 5_000)
    lines = output(tools.call("file_read", {"path": "long.txt"}))
    assert (len(lines.lines), lines.total) == (1_363, 5_000)
    assert lines.text.endswith("read on from line 1364]")
    (workspace / "wide.txt").write_text("y" * 100_000)
    assert tools.call("file_read", {"path": "wide.txt"}).text.endswith("[… 98000 more characters in this line]")
    (workspace / "both.txt").write_text(("z" * 1_999 + "\n") * 100)
    assert len(output(tools.call("file_read", {"path": "both.txt"})).lines) == 7


def test_a_read_ends_with_a_whole_line_before_a_result_would_be_cut(tools: ToolRegistry, workspace: Path):
    (workspace / "code.py").write_text("    value = compute(first, second)\n" * 3_000)
    text = tools.call("file_read", {"path": "code.py"}).text
    assert "left out" not in text and len(text) < 16_000
    assert text.splitlines()[-1] == "[lines 1 to 340 of 3000; read on from line 341]"


def test_an_empty_file_is_said_to_be_empty(tools: ToolRegistry, workspace: Path):
    (workspace / "empty").touch()
    assert tools.call("file_read", {"path": "empty"}).text == "[empty is empty]"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "absent.txt"}, "not_found"),
        ({"path": "src"}, "not_a_file"),
        ({"path": "README.md/x"}, "not_a_file"),
        ({"path": "logo.bin"}, "binary_file"),
        ({"path": "../outside"}, "path_refused"),
        ({"path": ".git/config"}, "path_refused"),
        ({"path": "README.md", "start": 9}, "bad_arguments"),
        ({"path": "README.md", "start": 3, "end": 2}, "bad_arguments"),
        ({"path": "README.md", "start": 0}, "bad_arguments"),
    ],
)
def test_a_read_that_fails_says_how_and_what_next(tools: ToolRegistry, arguments: dict[str, object], code: str):
    result = failure(tools.call("file_read", arguments))
    assert result.code == code
    assert result.advice


def test_a_path_that_is_not_there_is_told_where_files_of_that_name_are(tools: ToolRegistry, workspace: Path):
    (workspace / "docs").mkdir()
    (workspace / "docs" / "README.md").write_text("x\n")
    assert (
        failure(tools.call("file_read", {"path": "doc/readme.md"})).advice == "there is 'README.md', 'docs/README.md'"
    )
    assert failure(tools.call("file_read", {"path": "doc/none.md"})).advice == "search for it, or create it"


@pytest.mark.spec("A15", "B13")
def test_secret_and_large_files_are_refused_without_a_byte_of_them(tools: ToolRegistry, workspace: Path):
    (workspace / ".env").write_text("TOKEN=canary\n")
    (workspace / "large.txt").write_text("canary" * 200_000)
    for path, code in ((".env", "secret_refused"), ("large.txt", "too_large")):
        result = failure(tools.call("file_read", {"path": path}))
        assert result.code == code
        assert "canary" not in result.text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_permission_denied(tools: ToolRegistry, workspace: Path):
    (workspace / "README.md").chmod(0)
    assert failure(tools.call("file_read", {"path": "README.md"})).code == "permission_denied"
