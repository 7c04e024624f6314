"""The policy table over every combination of stage, mode, role, reasoning and approval.

`snapshots/table.txt` holds the whole table. After a change that is meant, write it anew:

    python -c "import sys; sys.path.insert(0, 'tests/agent'); import test_table; test_table.write_snapshot()"
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

from pawl.agent.policy import Sent, as_markdown, check_request, may_call, standard_policy
from pawl.agent.prompts import PromptRepository
from pawl.core.errors import ConfigError, PolicyViolation
from pawl.core.run import Approval, Mode, PolicyDecision, Reasoning, ReasoningFormat, RoleName, RunTerms, Stage
from pawl.settings.permission_rules import ToolKind, allowances
from pawl.settings.permission_rules import parse_allowances as parse

pytestmark = pytest.mark.spec("C3")

SNAPSHOT = Path(__file__).parent / "snapshots" / "table.txt"
READS = {"file_read", "file_search", "list_files", "outline", "read_skill", "web_fetch", "web_search"}
WRITES = {"change_files", "file_write", "line_edit", "modify", "revert", "strict_patch"}
RUNS = {"check", "dev_server", "lsp_diagnostics", "run_command"}
EVERYTHING = list(itertools.product(Stage, Mode, RoleName, Reasoning, Approval))
VARIABLES = {
    "project_root": "/home/someone/shop",
    "user_input": "mend the parser",
    "tool_summary": "nothing yet",
    "last_step_outcome": "nothing yet",
}


def decisions():
    for stage, mode, role, reasoning, approval in EVERYTHING:
        yield (
            stage,
            mode,
            role,
            reasoning,
            standard_policy().decide(stage, mode, role, reasoning=reasoning, approval=approval),
        )


def rendered() -> str:
    lines = []
    for row in standard_policy().rows():
        one = row.decision
        lines.append(
            f"{row.mode:<6}{row.stage:<10}{row.role:<11}{one.reasoning:<6}{one.contract or '-':<9}"
            f"{' '.join(one.tools) or '-'}\n{'':>16}{' '.join(one.prompts)}"
        )
    return "\n".join(lines) + "\n"


def write_snapshot() -> None:
    SNAPSHOT.write_text(rendered())


def test_the_whole_table_is_as_it_was_agreed():
    assert rendered() == SNAPSHOT.read_text()
    assert len(standard_policy().rows()) == len(Mode) * len(Stage) * len(RoleName)


def test_every_combination_has_one_decision_and_always_the_same():
    assert len(EVERYTHING) == 12 * 2 * 10 * 2 * 3
    for stage, mode, role, reasoning, approval in EVERYTHING:
        first = standard_policy().decide(stage, mode, role, reasoning=reasoning, approval=approval)
        assert first == standard_policy().decide(stage, mode, role, reasoning=reasoning, approval=approval)
        assert first.tools == tuple(sorted(set(first.tools)))
        assert first.approval is approval


@pytest.mark.spec("C1")
def test_chat_never_writes_runs_or_sends_anybody():
    for _, mode, _, _, decision in decisions():
        if mode is Mode.CHAT:
            assert set(decision.tools) <= READS


@pytest.mark.spec("C6")
def test_stages_that_judge_or_speak_have_no_tools():
    for stage, _, _, _, decision in decisions():
        if stage in (Stage.INTENT, Stage.DELIVERY, Stage.FINAL, Stage.EVALUATE):
            assert decision.tools == ()


@pytest.mark.spec("C4")
def test_quality_assurance_reads_reasons_in_short_and_answers_with_a_report():
    for stage, _, _, reasoning, decision in decisions():
        if stage is Stage.QA:
            assert set(decision.tools) <= READS
            assert decision.contract == "review"
            assert decision.reasoning is (ReasoningFormat.MICRO if reasoning is Reasoning.ON else ReasoningFormat.NONE)


def test_before_the_work_nothing_is_changed_by_anybodys_hands():
    for stage, _, _, _, decision in decisions():
        if stage in (Stage.WARMUP, Stage.PLAN):
            assert set(decision.tools) <= READS


@pytest.mark.spec("C2")
def test_reasoning_is_never_asked_for_when_it_is_off_and_always_when_it_is_on():
    for _, mode, _, reasoning, decision in decisions():
        on = reasoning is Reasoning.ON
        assert (decision.reasoning is not ReasoningFormat.NONE) == on
        assert any(name.startswith("reasoning/") for name in decision.prompts) == on
        assert decision.reasoning_required == (on and mode is Mode.AGENT)


@pytest.mark.spec("C7", "C8")
def test_macro_reasoning_opens_a_request_and_every_later_stage_has_micro():
    for stage, _, _, reasoning, decision in decisions():
        if reasoning is Reasoning.ON:
            assert (decision.reasoning is ReasoningFormat.MACRO) == (stage is Stage.WARMUP)


@pytest.mark.spec("D1")
def test_nobody_has_more_than_the_role_has():
    for _, _, role, _, decision in decisions():
        assert set(decision.tools) <= standard_policy().role(role).tools


def test_prompts_come_in_the_order_of_the_specification():
    wanted = ("base", "roles/", "project_root", "modes/", "stages/", "reasoning/")
    names = set(PromptRepository.load().names())
    for _, mode, role, reasoning, decision in decisions():
        expected = wanted if reasoning is Reasoning.ON else wanted[:-1]
        assert len(decision.prompts) == len(expected)
        assert all(name.startswith(start) for name, start in zip(decision.prompts, expected, strict=True))
        assert {f"modes/{mode}", f"roles/{role}"} <= set(decision.prompts) <= names


def test_an_answer_in_json_has_its_reasoning_in_a_field():
    for _, _, _, reasoning, decision in decisions():
        if reasoning is Reasoning.ON:
            assert ("reasoning/field" in decision.prompts) == bool(decision.contract)


def test_the_system_text_stays_the_same_through_a_loop_of_tool_calls():
    prompts = PromptRepository.load()
    for mode, role, reasoning in itertools.product(Mode, RoleName, Reasoning):
        act, later = (
            standard_policy().decide(stage, mode, role, reasoning=reasoning) for stage in (Stage.ACT, Stage.FOLLOW_UP)
        )
        assert act == later
        root = {"project_root": VARIABLES["project_root"]}
        assert prompts.compose(act, root) == prompts.compose(later, root)


@pytest.mark.spec("E10")
def test_what_was_decided_and_agreed_cannot_be_changed():
    terms = RunTerms(run="r", conversation="c", mode=Mode.CHAT, reasoning=Reasoning.OFF, model="a/b")
    decision = standard_policy().decide(Stage.ACT, Mode.CHAT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    for value, name in ((terms, "mode"), (decision, "tools"), (standard_policy().role("worker"), "tools")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)
    with pytest.raises(TypeError):
        standard_policy().roles["worker"] = None  # type: ignore[index]


def test_a_policy_is_narrowed_to_the_tools_that_there_are_and_never_widened():
    narrow = standard_policy().narrowed_to(["file_read", "delegate", "teleport"])
    on = Reasoning.ON
    assert narrow.decide(Stage.ACT, Mode.AGENT, "artisan", reasoning=on).tools == ("file_read",)
    assert narrow.decide(Stage.ACT, Mode.AGENT, "planner", reasoning=on).tools == ("delegate", "file_read")
    assert narrow.decide(Stage.ACT, Mode.CHAT, "planner", reasoning=on).tools == ("file_read",)


def test_a_role_that_there_is_not_is_named_with_the_nearest():
    with pytest.raises(PolicyViolation, match="'artisn'") as raised:
        standard_policy().decide(Stage.ACT, Mode.CHAT, "artisn", reasoning=Reasoning.OFF)
    assert "did you mean 'artisan'?" in raised.value.message


TABLE = Path(__file__).parents[2].joinpath("src", "pawl", "settings", "table.toml").read_text()


@pytest.mark.parametrize(
    ("stage", "line", "with_"),
    [
        ("act", 'chat = ["reads"]', 'chat = ["reads", "writes"]'),
        ("warmup", 'chat = ["reads"]', 'chat = ["runs"]'),
        ("delivery", "agent = []", 'agent = ["reads"]'),
        ("qa", 'agent = ["reads"]', 'agent = ["reads", "runs"]'),
        ("evaluate", "chat = []", 'chat = ["reads"]'),
    ],
)
def test_a_table_that_allows_what_no_table_may_is_not_loaded(stage: str, line: str, with_: str):
    head, mark, tail = TABLE.partition(f"[stages.{stage}]")
    assert line in tail
    with pytest.raises(ConfigError, match=f"never has at {stage}"):
        parse(head + mark + tail.replace(line, with_, 1))


@pytest.mark.parametrize("text", ["", "[kinds]\nreads = 3", TABLE.replace("[stages.qa]", "[stages.qs]")])
def test_a_table_with_a_gap_is_not_loaded(text: str):
    with pytest.raises(ConfigError, match="the policy table cannot be read"):
        parse(text)


def test_every_tool_has_one_kind():
    by_kind = {kind: {tool for tool, its in allowances().tools.items() if its is kind} for kind in ToolKind}
    assert by_kind == {
        ToolKind.READS: READS,
        ToolKind.WRITES: WRITES,
        ToolKind.RUNS: RUNS,
        ToolKind.DELEGATES: {"delegate"},
    }


def test_the_page_names_every_tool_stage_and_role():
    page = as_markdown()
    assert page == as_markdown()
    for name in (*allowances().tools, *Stage, *RoleName, *Mode):
        assert name in page
    assert "| agent | lead | act, follow_up | `check`, `delegate` |" in page
    reads = "`file_read`, `file_search`, `list_files`, `outline`, `read_skill`, `web_fetch`, `web_search`"
    assert f"| chat | artisan | warmup, plan, act, follow_up, qa, study | {reads} |" in page
    assert all(line.startswith(("| ", "### ")) for line in page.splitlines() if line)


def terms(mode: Mode, reasoning: Reasoning) -> RunTerms:
    return RunTerms(
        run="r",
        conversation="c",
        mode=mode,
        reasoning=reasoning,
        model="acme/large",
        role_models=(("critic", "acme/small"),),
    )


def honest(mode: Mode, decision: PolicyDecision, role: str) -> Sent:
    return Sent(
        mode=mode,
        reasoning=Reasoning.OFF if decision.reasoning is ReasoningFormat.NONE else Reasoning.ON,
        model="acme/small" if role == "critic" else "acme/large",
        tools=decision.tools,
        system=PROMPTS.compose(decision, VARIABLES),
    )


PROMPTS = PromptRepository.load()


@pytest.mark.spec("C15", "C1", "C2")
def test_what_the_policy_composes_keeps_the_invariants_everywhere():
    for stage, mode, role, reasoning in itertools.product(Stage, Mode, RoleName, Reasoning):
        decision = standard_policy().decide(stage, mode, role, reasoning=reasoning)
        sent = honest(mode, decision, role)
        assert check_request(standard_policy(), terms(mode, reasoning), stage, role, sent) == decision


def broken(sent: Sent, what: str) -> Sent:
    swap = {
        "another mode": {"mode": Mode.AGENT},
        "the prompt of another mode": {"system": (*sent.system[:3], PROMPTS.get("modes/agent").text, *sent.system[4:])},
        "two modes": {"system": (*sent.system, PROMPTS.get("modes/agent").text)},
        "no mode": {"system": (*sent.system[:3], *sent.system[4:])},
        "another reasoning": {"reasoning": Reasoning.OFF},
        "reasoning left out": {"system": sent.system[:-1]},
        "the other reasoning": {"system": (*sent.system[:-1], PROMPTS.get("reasoning/micro").text)},
        "a tool more": {"tools": (*sent.tools, "run_command")},
        "a tool fewer": {"tools": sent.tools[1:]},
        "a tool twice": {"tools": (*sent.tools, sent.tools[0])},
        "another model": {"model": "acme/cheaper"},
    }
    return dataclasses.replace(sent, **swap[what])


@pytest.mark.spec("C15", "C1", "C2")
@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("another mode", "'mode'"),
        ("the prompt of another mode", "'mode'"),
        ("two modes", "'mode'"),
        ("no mode", "'mode'"),
        ("another reasoning", "'reasoning'.*the user's is on, the request's off"),
        ("reasoning left out", "'reasoning'"),
        ("the other reasoning", "'reasoning'"),
        ("a tool more", "'tools'.*not allowed: run_command"),
        ("a tool fewer", "'tools'.*missing: file_read"),
        ("a tool twice", "'tools'.*twice"),
        ("another model", "'model'.*acme/cheaper"),
    ],
)
def test_a_request_that_departs_from_the_users_terms_is_not_sent(what: str, named: str):
    decision = standard_policy().decide(Stage.WARMUP, Mode.CHAT, RoleName.ARTISAN, reasoning=Reasoning.ON)
    sent = broken(honest(Mode.CHAT, decision, "artisan"), what)
    with pytest.raises(PolicyViolation, match=named):
        check_request(standard_policy(), terms(Mode.CHAT, Reasoning.ON), Stage.WARMUP, "artisan", sent)


@pytest.mark.spec("C15", "C2")
def test_reasoning_that_nobody_asked_for_is_not_sent():
    off = standard_policy().decide(Stage.ACT, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    sent = honest(Mode.AGENT, off, "artisan")
    sent = dataclasses.replace(sent, system=(*sent.system, PROMPTS.get("reasoning/micro").text))
    with pytest.raises(PolicyViolation, match="'reasoning'"):
        check_request(standard_policy(), terms(Mode.AGENT, Reasoning.OFF), Stage.ACT, "artisan", sent)


def test_a_file_that_quotes_a_prompt_breaks_no_invariant():
    off = standard_policy().decide(Stage.ACT, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    sent = honest(Mode.AGENT, off, "artisan")
    quoted = "Instructions of the project:\n# Reasoning: micro\n# Mode: chat"
    sent = dataclasses.replace(sent, system=(*sent.system, quoted))
    check_request(standard_policy(), terms(Mode.AGENT, Reasoning.OFF), Stage.ACT, "artisan", sent)


def test_a_call_outside_of_the_decision_is_refused_whatever_the_model_says():
    decision = standard_policy().decide(Stage.ACT, Mode.CHAT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    may_call(decision, "file_read")
    with pytest.raises(PolicyViolation, match="'modify' is not a tool of this stage"):
        may_call(decision, "modify")
    with pytest.raises(PolicyViolation) as raised:
        may_call(
            standard_policy().decide(Stage.FINAL, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF), "file_read"
        )
    assert raised.value.advice == "the tools are: none; answer in words"
