"""Calling tools by name: schemas from types, every mistake of the arguments named, failures as values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world import snapshot

from pawl.agent.tools import command_tools as run_command
from pawl.agent.tools import file_search
from pawl.agent.tools import file_tools as change_files
from pawl.agent.tools import file_tools as file_read
from pawl.agent.tools import file_tools as file_write
from pawl.agent.tools import file_tools as line_edit
from pawl.agent.tools import file_tools as modify
from pawl.agent.tools import file_tools as strict_patch
from pawl.agent.tools.tool_registry import Effect, Tool, ToolFailure, ToolPage, ToolRegistry, ToolResult, page, rendered
from pawl.agent.tools.tool_schema import decode, schema
from pawl.core.errors import BadArguments, ConfigError, DiskFull, PawlError, TimedOut
from pawl.core.typed import AtLeast

NAMES = (
    "file_search",
    "list_files",
    "file_read",
    "file_write",
    "strict_patch",
    "line_edit",
    "modify",
    "change_files",
    "revert",
    "run_command",
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    number: Annotated[int, "a count", AtLeast(1)]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    name: Annotated[str, "who", "it is"]
    inners: tuple[Inner, ...] = ()
    colour: Colour = Colour.RED
    ratio: float = 0.5
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    text: str


def tool(handler, effect: Effect = Effect.READS) -> Tool[Outer]:
    return Tool(name="say", page=ToolPage("Says.", "Says."), input=Outer, handler=handler, effect=effect)


@pytest.mark.spec("A5")
def test_the_schema_is_made_from_the_types_of_the_input():
    assert schema(Outer) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "who it is"},
            "inners": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "number": {"type": "integer", "description": "a count"},
                        "note": {"type": "string"},
                    },
                    "required": ["number"],
                    "additionalProperties": False,
                },
            },
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "ratio": {"type": "number"},
            "loud": {"type": "boolean"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_arguments_become_the_typed_input():
    given_ = {"name": "a", "inners": [{"number": 2, "note": None}], "colour": "blue", "ratio": 1}
    assert decode(Outer, given_) == Outer(name="a", inners=(Inner(number=2),), colour=Colour.BLUE, ratio=1.0)


@pytest.mark.spec("A5")
def test_every_wrong_missing_and_unknown_argument_is_named_at_once():
    with pytest.raises(BadArguments) as caught:
        decode(
            Outer,
            {
                "nam": "a",
                "inners": [{"number": 0}, {"number": True, "x": 1}, 3],
                "colour": "green",
                "ratio": "1",
                "loud": 1,
            },
        )
    assert caught.value.message.split("; ") == [
        "nam: no such field",
        "did you mean 'name'?",
        "name: missing",
        "inners[0].number: must be at least 1, not 0",
        "inners[1].x: no such field",
        "the fields are number, note",
        "inners[1].number: must be a whole number, not True",
        "inners[2]: must be an object, not 3",
        "colour: must be one of red, blue, not 'green'",
        "ratio: must be a number, not '1'",
        "loud: must be true or false, not 1",
    ]


@pytest.mark.parametrize("arguments", [None, [], "x", 3])
def test_arguments_that_are_no_object_are_refused(arguments):
    with pytest.raises(BadArguments, match="arguments: must be an object"):
        decode(Outer, arguments)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["path", "old", "new", "edits", "query", "action", "changes", "line", "seconds"]), JSON, max_size=5
)


@given(name=st.sampled_from(NAMES), arguments=ARGUMENTS)
def test_whatever_a_model_sends_is_decoded_or_refused_and_never_a_crash(name: str, arguments):
    kinds = {
        "file_search": file_search.FileSearch,
        "list_files": file_read.ListFiles,
        "revert": file_read.Revert,
        "file_read": file_read.FileRead,
        "file_write": file_write.FileWrite,
        "strict_patch": strict_patch.StrictPatch,
        "line_edit": line_edit.LineEdits,
        "modify": modify.Modification,
        "change_files": change_files.ChangeFiles,
        "run_command": run_command.RunCommand,
    }
    try:
        assert isinstance(decode(kinds[name], arguments), kinds[name])
    except BadArguments as error:
        assert error.message


@pytest.mark.spec("A5")
def test_the_tools_are_these_and_each_has_a_page_and_a_schema_that_is_json(tools: ToolRegistry):
    assert tuple(one.name for one in tools.tools) == NAMES
    for one in tools.tools:
        assert json.loads(json.dumps(one.input_schema)) == one.input_schema
        assert len(one.page.text.split()) <= 60 and "{{" not in one.page.text
        for field in one.input_schema["properties"]:
            assert f"`{field}`" in one.page.text, (one.name, field)


def test_the_figures_on_a_page_are_those_that_hold(tools: ToolRegistry):
    pages = {one.name: one.page.text for one in tools.tools}
    assert "At most 50 lines" in pages["strict_patch"]
    assert "at most 30" in pages["line_edit"]
    assert "at most 2,000" in pages["file_read"]
    assert "default 30, at most 120" in pages["run_command"]


def test_a_page_with_an_unknown_variable_or_too_many_words_is_refused():
    with pytest.raises(ConfigError, match="unknown variables: limit"):
        rendered("x", "---\npurpose: p\nwords: 5\n---\nAt most {{ limit }}.\n", {"lines": 3})
    with pytest.raises(ConfigError, match="over 5 words"):
        rendered("x", "---\npurpose: p\nwords: 5\n---\none two three four five six\n", {})
    with pytest.raises(ConfigError, match="purpose"):
        rendered("x", "no front\n", {})
    assert rendered("x", "---\npurpose: p\nwords: 5\n---\nAt most {{lines}}.\n", {"lines": 3}).text == "At most 3."
    with pytest.raises(FileNotFoundError):
        page("no_such_tool", {})


def test_an_unknown_tool_is_a_failure_that_names_the_tools_and_runs_none(tools: ToolRegistry, workspace: Path):
    before = snapshot(workspace)
    failure = tools.call("file_writ", {"path": "a", "content": "b"})
    assert isinstance(failure, ToolFailure)
    assert (failure.code, "file_write" in failure.advice) == ("unknown_tool", True)
    assert snapshot(workspace) == before


def test_a_wrong_argument_name_is_not_guessed_right(tools: ToolRegistry, workspace: Path):
    before = snapshot(workspace)
    failure = tools.call("file_write", {"file": "new.txt", "content": "x"})
    assert isinstance(failure, ToolFailure)
    assert failure.code == "bad_arguments"
    assert "file: no such field" in failure.message and "path: missing" in failure.message
    assert snapshot(workspace) == before


@pytest.mark.spec("A5")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DiskFull("full", advice="free"), "disk_full"),
        (OSError(28, "No space left on device", "a.txt"), "disk_full"),
        (PermissionError(13, "Permission denied", "a.txt"), "permission_denied"),
        (FileNotFoundError(2, "No such file", "a.txt"), "not_found"),
    ],
)
def test_every_error_of_a_tool_comes_back_as_a_value_with_advice(error: Exception, code: str):
    def fail(_: Outer) -> Said:
        raise error

    failure = ToolRegistry([tool(fail)]).call("say", {"name": "a"})
    assert isinstance(failure, ToolFailure)
    assert failure.code == code
    assert failure.advice and failure.text.startswith(f"{code}: ") and "\nnext: " in failure.text


@pytest.mark.spec("A11")
@pytest.mark.parametrize(("effect", "calls"), [(Effect.READS, 2), (Effect.WRITES, 1), (Effect.RUNS, 1)])
def test_only_a_tool_that_reads_is_called_again_after_a_time_out(effect: Effect, calls: int):
    made = []

    def late(given_: Outer) -> Said:
        made.append(given_)
        raise TimedOut("too late", advice="wait")

    failure = ToolRegistry([tool(late, effect)]).call("say", {"name": "a"})
    assert isinstance(failure, ToolFailure)
    assert (failure.code, len(made)) == ("timed_out", calls)


@pytest.mark.spec("A11")
def test_the_second_try_of_a_reading_tool_counts():
    made = []

    def once_late(given_: Outer) -> Said:
        made.append(given_)
        if len(made) == 1:
            raise TimedOut("too late", advice="wait")
        return Said("hello")

    assert ToolRegistry([tool(once_late)]).call("say", {"name": "a"}) == ToolResult(tool="say", output=Said("hello"))


def test_other_errors_are_not_tried_again():
    made = []

    def fail(given_: Outer) -> Said:
        made.append(given_)
        raise PawlError("no", advice="stop")

    ToolRegistry([tool(fail)]).call("say", {"name": "a"})
    assert len(made) == 1
