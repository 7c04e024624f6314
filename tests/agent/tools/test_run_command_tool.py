"""`run_command`: exit codes are results, and a command that cannot run or does not end says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent.tools.conftest import FolderRunner

from pawl.agent.tools.command_tools import CommandReport
from pawl.agent.tools.tool_registry import ToolFailure, ToolRegistry, ToolResult
from pawl.core.execution import Ending, Execution, Limits, Network, Secrets

pytestmark = pytest.mark.spec("A5")


def report(tools: ToolRegistry, **arguments: object) -> CommandReport:
    result = tools.call("run_command", arguments)
    assert isinstance(result, ToolResult), result
    assert isinstance(result.output, CommandReport)
    return result.output


def failure(tools: ToolRegistry, **arguments: object) -> ToolFailure:
    result = tools.call("run_command", arguments)
    assert isinstance(result, ToolFailure), result
    assert result.advice
    return result


def test_a_command_line_goes_to_the_shell_and_its_exit_code_is_a_result(tools: ToolRegistry):
    ended = report(tools, command="echo out; echo err >&2; exit 3")
    assert (ended.exit_code, ended.ending, ended.stdout, ended.stderr) == (3, Ending.EXITED, "out\n", "err\n")
    assert ended.text == "[exit code 3, 0.0 s]\nout\n[stderr]\nerr"


@pytest.mark.parametrize(
    "said",
    [
        "curl: (6) Could not resolve host: example.com",
        "ERROR: No matching distribution found for leftpad",
        "dial tcp: lookup proxy.golang.org: no such host",
    ],
)
def test_a_command_that_failed_for_want_of_a_network_is_told_that_there_is_none(tools: ToolRegistry, said: str):
    told = "commands have no network: nothing can be installed or fetched; the user can: pawl verify --install"
    assert report(tools, argv=["sh", "-c", 'echo "$0" >&2; exit 1', said]).notices == (told,)
    assert report(tools, argv=["echo", said]).notices == ()
    assert report(tools, command="curl -s example.com > page; exit 6").notices == (told,)
    assert report(tools, command="echo; exit 6").notices == ()


def test_words_are_run_without_a_shell(tools: ToolRegistry):
    assert report(tools, argv=["echo", "$HOME; ls"]).stdout == "$HOME; ls\n"


def test_a_command_runs_confined_by_default_in_the_folder_it_names(tools: ToolRegistry, runner: FolderRunner):
    assert report(tools, command="ls", directory="./src/").stdout == "greeter.py\nmain.py\n"
    assert runner.asked == [
        Execution(
            argv=("/bin/sh", "-c", "ls"),
            directory="src",
            network=Network.OFF,
            secrets=Secrets.HIDDEN,
            limits=Limits(seconds=30.0),
        )
    ]


@pytest.mark.parametrize("arguments", [{"command": "no-such-program --x"}, {"command": "cd src && no-such-program"}])
def test_a_command_that_is_not_there_is_named(tools: ToolRegistry, arguments: dict[str, object]):
    assert "'no-such-program'" in failure(tools, **arguments).message
    assert failure(tools, **arguments).code == "command_not_found"


def test_a_program_that_ends_with_127_by_itself_is_a_result(tools: ToolRegistry):
    assert report(tools, command="exit 127").exit_code == 127


def test_a_program_that_cannot_be_started_is_not_found(tools: ToolRegistry):
    assert failure(tools, argv=["./no-such-program"]).code == "not_found"


@pytest.mark.spec("A11")
def test_a_command_out_of_time_is_stopped_once_and_reported_with_its_output(tools: ToolRegistry, runner: FolderRunner):
    result = failure(tools, command="echo begun; exec sleep 60", seconds=1)
    assert result.code == "timed_out"
    assert "stopped after 1 s" in result.message and "begun" in result.message
    assert "before you run it again" in result.advice
    assert len(runner.asked) == 1


def test_long_output_keeps_its_start_and_its_end(tools: ToolRegistry):
    ended = report(tools, command="echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last")
    assert len(ended.stdout) < 21_000
    assert ended.stdout.startswith("first\n") and ended.stdout.endswith("last\n")
    assert "characters left out" in ended.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": " "},
        {"command": "ls", "argv": ["ls"]},
        {"argv": []},
        {"command": "ls", "seconds": 0},
        {"command": "ls", "seconds": 121},
        {"command": "ls\0"},
        {"argv": ["ls", 3]},
    ],
)
def test_arguments_that_make_no_command_are_refused_before_anything_runs(tools, runner, arguments):
    assert failure(tools, **arguments).code == "bad_arguments"
    assert runner.asked == []


@pytest.mark.parametrize("directory", ["..", "src/../..", "/tmp", "~"])
def test_a_directory_outside_of_the_workspace_is_refused(tools: ToolRegistry, runner: FolderRunner, directory: str):
    assert failure(tools, command="ls", directory=directory).code == "path_refused"
    assert runner.asked == []


def test_a_directory_that_is_not_there_is_not_found(tools: ToolRegistry, workspace: Path):
    assert failure(tools, command="ls", directory="absent").code == "not_found"
