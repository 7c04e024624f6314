"""The `check` tool, what a model is offered, and the bound on everything it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from folder import GUARDRAILS, FolderFiles

from pawl.agent.tools.tool_registry import (
    Effect,
    Ports,
    Tool,
    ToolFailure,
    ToolLimits,
    ToolPage,
    ToolRegistry,
    ToolResult,
    bounded,
    offers,
)
from pawl.agent.tools.toolbox import toolbox
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap
from pawl.code.outline import SourceOutliner
from pawl.core.diagnostic import Check, CheckResult, Diagnostic, Severity, Status
from pawl.core.dialogue import ToolOffer
from pawl.core.errors import SandboxUnavailable, TextNotFound, UnknownTool
from pawl.core.execution import Completed, Execution

LINT = CheckResult(
    step="lint",
    standing=Status.FAIL,
    reason="2 errors by ruff",
    seconds=0.25,
    findings=(
        Diagnostic(tool="ruff", message="Undefined name `x`", path="a.py", line=3, column=5, code="F821"),
        Diagnostic(tool="ruff", message="one\ntwo", path="b.py", line=1, severity=Severity.WARNING),
    ),
    old=(Diagnostic(tool="ruff", message="old"),),
)
TYPES = CheckResult(step="types", standing=Status.SKIPPED, reason="mypy is not installed")
BUILD = CheckResult(step="build", standing=Status.PASS, seconds=1.0)


@dataclass
class Checks:
    """A checker with verdicts that are given."""

    verdicts: Sequence[CheckResult] = ()
    asked: list[tuple[Check, float]] = field(default_factory=list)

    def check(self, what: Check, *, seconds: float, tests: Sequence[str] = ()) -> Sequence[CheckResult]:
        self.asked.append((what, seconds))
        return self.verdicts

    def diagnose(self, paths: Sequence[str], *, seconds: float) -> Sequence[CheckResult]:
        self.asked.append((paths, seconds))
        return self.verdicts


class Unconfined:
    def check(self, what: Check, *, seconds: float, tests: Sequence[str] = ()) -> Sequence[CheckResult]:
        raise SandboxUnavailable(f"cannot confine {what}", advice="see 'pawl doctor'")


class NoCommands:
    def run(self, execution: Execution) -> Completed:
        raise AssertionError(execution)


def ports(workspace: Path, checker: object = None, **optional) -> Ports:
    files = FolderFiles(workspace)
    editor = BenchEditor(files, GUARDRAILS)
    return Ports(
        files=files,
        editor=lambda: editor,
        runner=NoCommands(),
        dependencies=lambda: ImportMap.of({}),
        guardrails=GUARDRAILS,
        checker=None if checker is None else lambda: checker,
        **optional,
    )


def registry(checker, limits: ToolLimits | None = None) -> ToolRegistry:
    return toolbox(ports(Path("nowhere"), checker=checker, limits=limits or ToolLimits()))


@pytest.mark.spec("D4")
def test_every_check_says_how_it_ended_with_its_findings():
    result = registry(Checks([LINT, TYPES, BUILD])).call("check", {"what": "lint"})
    assert isinstance(result, ToolResult)
    assert result.text == (
        "lint: fail (0.2 s): 2 errors by ruff\n"
        "  a.py:3:5: error F821: Undefined name `x`\n"
        "  b.py:1: warning: one\n"
        "    two\n"
        "  [1 older findings left out]\n"
        "types: skipped: mypy is not installed\n"
        "build: pass (1.0 s)"
    )
    assert not result.output.passed


@pytest.mark.spec("G4")
def test_what_is_found_in_a_file_that_may_not_be_read_is_counted_and_not_told():
    given = ports(Path("nowhere"), checker=Checks([LINT]), shows=lambda path: path != "a.py")
    result = toolbox(given).call("check", {"what": "lint"})
    assert isinstance(result, ToolResult)
    assert "a.py" not in result.text and "b.py:1: warning: one" in result.text
    assert "1 of the findings are in files that may not be read" in result.text


@pytest.mark.spec("D4")
@pytest.mark.parametrize(
    ("verdicts", "passed"), [([BUILD, TYPES], True), ([TYPES], False), ([], False), ([BUILD, LINT], False)]
)
def test_it_passes_only_when_something_passed_and_nothing_failed(verdicts: list[CheckResult], passed: bool):
    result = registry(Checks(verdicts)).call("check", {})
    assert isinstance(result, ToolResult)
    assert result.output.passed is passed


@pytest.mark.spec("D4")
@pytest.mark.parametrize("what", ["build", "lint", "typecheck", "tests"])
def test_what_is_asked_for_is_what_is_checked_each_within_its_limit(what: str):
    checks = Checks([BUILD])
    registry(checks).call("check", {"what": what})
    registry(checks, ToolLimits(check_seconds=5.0)).call("check", {})
    assert checks.asked == [(Check(what), 120.0 if what == "tests" else 60.0), (Check.ALL, 5.0), (Check.TESTS, 120.0)]


@pytest.mark.spec("A5", "D4")
def test_a_wrong_word_and_a_missing_sandbox_are_failures_and_no_check_is_said():
    tools = registry(Unconfined())
    assert tools.call("check", {"what": "magic"}).code == "bad_arguments"
    assert tools.call("check", {}).code == "sandbox_unavailable"
    assert registry(Checks()).call("check", {}).text == "[the project has no such check]"


def test_many_findings_and_long_messages_are_cut():
    long = Diagnostic(tool="cc", message="\n".join(f"line {number}" for number in range(100)), path="a.c", line=1)
    verdict = replace(LINT, findings=(long,) * 50, old=())
    text = registry(Checks([verdict]), ToolLimits(findings=3)).call("check", {"what": "lint"}).text
    assert text.count("a.c:1: error") == 3 and "[47 more findings" in text
    assert "line 7" in text and "line 8" not in text and text.count("[…]") == 3


@pytest.mark.spec("A8", "A11")
def test_a_model_is_told_what_the_language_servers_find_in_files_that_are_there(workspace: Path):
    checks = Checks([LINT])
    tools = toolbox(ports(workspace, checker=checks))
    found = tools.call("lsp_diagnostics", {"paths": ["README.md"]})
    assert found.text.startswith(f"{LINT.step}: {LINT.standing}")
    assert checks.asked == [(("README.md",), 10.0)]
    assert tools.call("lsp_diagnostics", {"paths": ["nowhere.py"]}).code == "not_found"
    none = toolbox(ports(workspace, checker=Checks())).call("lsp_diagnostics", {"paths": ["README.md"]})
    assert none.text == "[no language server knows these files]"


@pytest.mark.spec("A5")
def test_a_toolbox_without_an_outliner_or_a_checker_has_no_such_tool(workspace: Path):
    bare = toolbox(ports(workspace))
    full = toolbox(ports(workspace, outliner=lambda: SourceOutliner(GUARDRAILS), checker=Checks()))
    assert set(full.names) - set(bare.names) == {"outline", "check", "lsp_diagnostics"}
    assert full.names[: len(bare.names)] == bare.names
    for tool in full.tools:
        assert "{{" not in tool.page.text
        assert all(f"`{name}`" in tool.page.text for name in tool.input_schema["properties"])


@pytest.mark.spec("A5")
def test_exactly_the_named_tools_are_offered_in_the_order_of_the_registry(workspace: Path):
    tools = toolbox(ports(workspace, checker=Checks()))
    given = offers(tools, ["check", "file_read", "file_search"])
    assert [offer.name for offer in given] == ["file_search", "file_read", "check"]
    assert given == offers(tools, ["file_search", "check", "file_read", "check"])
    one = tools.tools[tools.names.index("check")]
    assert given[-1] == ToolOffer(name="check", description=one.page.text, input_schema=one.input_schema)
    with pytest.raises(UnknownTool, match="'outline'"):
        offers(tools, ["file_read", "outline"])
    assert offers(tools, []) == ()


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Long:
    text: str


def tool_that(handler, effect: Effect = Effect.READS) -> Tool[Nothing]:
    return Tool(name="say", page=ToolPage("Says.", "Says."), input=Nothing, handler=handler, effect=effect)


@pytest.mark.fault("P31")
@pytest.mark.parametrize("effect", list(Effect))
def test_a_long_result_keeps_its_ends_and_says_how_to_see_the_rest(effect: Effect):
    text = "".join(f"line {number}\n" for number in range(100_000))
    limits = ToolLimits(result_characters=5_000)
    result = ToolRegistry([tool_that(lambda _: Long(text), effect)], limits).call("say", {})
    assert len(result.text) <= 5_000
    assert result.text.startswith("line 0\nline 1\n") and result.text.endswith("line 99999\n")
    assert f"{len(text):,} characters in all" in result.text and "to see it" in result.text
    whole = [line for line in result.text.splitlines() if line.startswith("line")]
    assert all(f"{line}\n" in text for line in whole)


@pytest.mark.fault("P31")
def test_a_long_failure_is_cut_and_keeps_its_advice():
    def fail(_: Nothing) -> Long:
        raise TextNotFound("not found: " + "x" * 1_000_000, advice="read the file")

    failed = ToolRegistry([tool_that(fail)]).call("say", {})
    assert isinstance(failed, ToolFailure)
    assert len(failed.text) <= 16_000
    assert failed.text.startswith("text_not_found: not found: x") and failed.text.endswith("\nnext: read the file")


def test_what_fits_is_left_alone_and_one_long_line_is_cut_within():
    assert bounded("short", 5, "hint") == "short"
    cut = bounded("a" * 500 + "b" * 500, 200, "hint")
    assert len(cut) <= 200 and cut.startswith("aaa") and cut.endswith("bbb") and "hint" in cut
