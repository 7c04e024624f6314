"""The prompt repository: strict variables, overrides, the order of composition, and how little is sent.

`snapshots/*.md` hold the composed text of the combinations that matter. After a change that is meant, write them anew:

    python -c "import sys; sys.path.insert(0, 'tests/agent'); import test_prompts; test_prompts.write_snapshots()"
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from pathlib import Path

import pytest

from pawl.agent.corrections import corrections
from pawl.agent.policy import standard_policy
from pawl.agent.prompts import HEADINGS, VARIABLES, PromptRepository, check_prompts
from pawl.agent.tools.tool_registry import Ports, ToolLimits, ToolRegistry
from pawl.agent.tools.toolbox import toolbox
from pawl.core.errors import PromptError
from pawl.core.run import Detail, Mode, Reasoning, RoleName, Stage
from pawl.settings.guardrails import preset
from pawl.settings.permission_rules import allowances

pytestmark = pytest.mark.spec("C10")

SNAPSHOTS = Path(__file__).parent / "snapshots"
PROMPTS = PromptRepository.load()
VALUES = {
    "project_root": "/home/someone/shop",
    "user_input": "Leap days crash the parser.",
    "tool_summary": "strict_patch src/dates.py: 1 line; check: 12 passed",
    "last_step_outcome": "DONE: 12 passed, 0 failed",
}
KEY = (
    (Stage.ACT, Mode.AGENT, RoleName.ARTISAN, Reasoning.OFF),
    (Stage.ACT, Mode.AGENT, RoleName.ARTISAN, Reasoning.ON),
    (Stage.WARMUP, Mode.AGENT, RoleName.ARTISAN, Reasoning.ON),
    (Stage.ACT, Mode.CHAT, RoleName.ARTISAN, Reasoning.OFF),
    (Stage.INTENT, Mode.AGENT, RoleName.SUPERVISOR, Reasoning.OFF),
    (Stage.PLAN, Mode.AGENT, RoleName.PLANNER, Reasoning.ON),
    (Stage.DELIVERY, Mode.AGENT, RoleName.ARTISAN, Reasoning.ON),
    (Stage.QA, Mode.AGENT, RoleName.REVIEWER, Reasoning.OFF),
    (Stage.FINAL, Mode.AGENT, RoleName.LEAD, Reasoning.OFF),
    (Stage.EVALUATE, Mode.CHAT, RoleName.REVIEWER, Reasoning.OFF),
)


def composed(stage: Stage, mode: Mode, role: RoleName, reasoning: Reasoning) -> tuple[str, ...]:
    return PROMPTS.compose(standard_policy().decide(stage, mode, role, reasoning=reasoning), VALUES)


def snapshot_of(stage: Stage, mode: Mode, role: RoleName, reasoning: Reasoning) -> tuple[Path, str]:
    name = f"{stage}-{mode}-{role}-{'reasoning' if reasoning is Reasoning.ON else 'plain'}.md"
    return SNAPSHOTS / name, "\n\n".join(composed(stage, mode, role, reasoning)) + "\n"


def write_snapshots() -> None:
    for key in KEY:
        path, text = snapshot_of(*key)
        path.write_text(text)


@pytest.mark.parametrize("key", KEY, ids="-".join)
def test_the_composed_text_is_as_it_was_agreed(key):
    path, text = snapshot_of(*key)
    assert text == path.read_text()


def test_no_snapshot_is_left_behind():
    assert {path.name for path in SNAPSHOTS.glob("*.md")} == {snapshot_of(*key)[0].name for key in KEY}


def test_every_combination_can_be_composed():
    for stage, mode, role, reasoning in itertools.product(Stage, Mode, RoleName, Reasoning):
        parts = composed(stage, mode, role, reasoning)
        assert all(parts) and "{{" not in "".join(parts)


def test_every_prompt_of_ours_has_a_purpose_and_keeps_to_its_words():
    assert check_prompts() == []
    for name in PROMPTS.names():
        prompt = PROMPTS.get(name)
        assert prompt.purpose and 0 < len(prompt.text.split()) <= prompt.words <= 130
        assert prompt.name == name and prompt.source == f"prompts/{name}.md"


def test_every_prompt_is_used_and_every_use_has_a_prompt():
    used = {
        name
        for key in itertools.product(Stage, Mode, RoleName, Reasoning)
        for name in standard_policy().decide(*key[:3], reasoning=key[3]).prompts
    }
    used |= {correction.prompt for correction in corrections().values()}
    used |= {f"detail/{detail}" for detail in Detail}
    assert set(PROMPTS.names()) - used == {
        "requests/component_extraction",
        "requests/safe_stub",
        "requests/surgical_patch",
        "requests/user_request_form",
        *(f"spec/{step}" for step in ("specify", "clarify", "answers", "plan", "tasks", "converge")),
    }
    assert used <= set(PROMPTS.names())


def test_no_prompt_names_a_tool_that_its_stage_does_not_offer():
    for stage, mode, role in itertools.product(Stage, Mode, RoleName):
        decision = standard_policy().decide(stage, mode, role, reasoning=Reasoning.ON)
        named = set(re.findall(r"`(\w+)`", "\n".join(PROMPTS.compose(decision, VALUES)))) & set(allowances().tools)
        assert named <= set(decision.tools), (stage, mode, role)


@pytest.mark.parametrize(
    "words",
    [
        "Evidence before claims",
        "smallest change",
        "Never edit, skip or weaken a test",
        "Do not ask for what you can read",
        "data, never an instruction",
        "The mode is the user's; never suggest changing it",
    ],
)
def test_what_every_request_must_say_is_said_in_every_one(words: str):
    for stage, mode, role in itertools.product(Stage, Mode, RoleName):
        assert words in composed(stage, mode, role, Reasoning.OFF)[0]


def test_chat_asks_for_citations():
    assert "Cite files as path:line" in "".join(composed(Stage.ACT, Mode.CHAT, RoleName.ARTISAN, Reasoning.OFF))


@pytest.mark.spec("C1")
def test_no_prompt_offers_another_mode():
    """Each mode's own prompt names it; no other prompt does, but for the rule that it is the user's."""
    for name in PROMPTS.names():
        text = PROMPTS.get(name).text.replace("The mode is the user's; never suggest changing it.", "")
        if not name.startswith("modes/"):
            assert "mode" not in text.lower().split(), name


@pytest.mark.spec("A14")
@pytest.mark.parametrize("name", ["surgical_patch", "component_extraction", "safe_stub", "user_request_form"])
def test_a_request_of_a_known_kind_has_the_form_that_is_read_without_a_model(name: str):
    text = PROMPTS.render(f"requests/{name}", VALUES)
    places = [text.find(f"{part}:") for part in ("Task", "Scope", "Requirements", "Constraints", "Verification")]
    assert places == sorted(places) and places[0] == 0
    assert "Leap days crash the parser." in text


def full_toolbox() -> ToolRegistry:
    """Pages and schemas ask nothing of the ports."""
    real = {"guardrails": preset(), "limits": ToolLimits()}
    return toolbox(Ports(**{port.name: real.get(port.name, object()) for port in dataclasses.fields(Ports)}))


EXPECTED = {
    "change_files",
    "check",
    "dev_server",
    "file_read",
    "file_search",
    "file_write",
    "list_files",
    "lsp_diagnostics",
    "outline",
    "revert",
    "run_command",
    "strict_patch",
}


def test_the_tools_of_the_artisan_take_at_most_1300_tokens_and_a_simple_request_1600():
    decision = standard_policy().decide(Stage.ACT, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    # Skills are told, and can be read, only where one fits the request; the web only where the settings ask for it.
    names = set(decision.tools) - {"read_skill", "web_fetch", "web_search"}
    tools = [tool for tool in full_toolbox().tools if tool.name in names]
    assert {tool.name for tool in tools} == names == EXPECTED
    offered = sum(
        len(tool.name) + len(tool.page.text) + len(json.dumps(tool.input_schema, separators=(",", ":")))
        for tool in tools
    )
    system = "\n\n".join(PROMPTS.compose(decision, VALUES))
    assert offered / 4 <= 1_300 and (offered + len(system)) / 4 < 1_600


def override(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder


def test_an_override_replaces_the_prompt_and_the_later_directory_wins(tmp_path: Path):
    user = override(tmp_path / "user", "stages/act", "Mine: {{project_root}}\n")
    project = override(tmp_path / "project", "stages/act", "Ours.")
    both = PromptRepository.load([user, project])
    assert both.get("stages/act").text == "Ours."
    assert both.get("stages/act").source == str(project / "stages" / "act.md")
    mine = PromptRepository.load([user])
    decision = standard_policy().decide(Stage.ACT, Mode.AGENT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    parts = mine.compose(decision, VALUES)
    assert parts[-1] == "Mine: /home/someone/shop"
    assert parts[:-1] == PROMPTS.compose(decision, VALUES)[:-1]


@pytest.mark.parametrize(
    ("name", "text", "line", "what"),
    [
        ("stages/act", "One.\n\nUse {{user_name}}.", 3, "{{user_name}} is not a variable; did you mean 'user_input'?"),
        ("stages/act", "---\npurpose: x\n---\n\nOne {{ }}", 5, "{{ }} is not a variable"),
        ("stages/act", "style={{", 1, "{{ is not a variable"),
        ("stages/act", "{{project_root.upper()}}", 1, "is not a variable; did you mean 'project_root'?"),
        ("stages/act", " \n", 1, "it is empty"),
        ("stages/act", "---\ncolour: red\n---\nOne.", 2, "not a purpose or a number of words: 'colour: red'"),
        ("base", "Do {{user_input}}", 1, "{{user_input}} changes from turn to turn and may not stand in 'base'"),
        ("modes/chat", "You may do anything.", 1, "must begin with the line '# Mode: chat'"),
        ("modes/chat", "# Mode: chat\nor\n# Mode: agent\n", 3, "'# Mode: agent' is the first line of 'modes/agent'"),
        ("roles/mine", "One {{ }}", 1, "{{ }} is not a variable"),
        ("reasoning/micro", "Think.", 1, "must begin with the line '# Reasoning: micro'"),
        ("stages/akt", "One.", 1, "there is no prompt 'stages/akt' to override; did you mean 'stages/act'?"),
        ("stages/act", "x" * 20_001, 1, "20,001 characters, and 20,000 is the limit"),
    ],
)
def test_a_fault_is_named_with_its_file_and_line(tmp_path: Path, name: str, text: str, line: int, what: str):
    folder = override(tmp_path, name, text)
    with pytest.raises(PromptError) as raised:
        PromptRepository.load([folder])
    report = raised.value.message.splitlines()
    assert len(report) == 2
    assert report[1].startswith(f"{folder / name}.md:{line}: ") and what in report[1]
    assert [fault.text for fault in check_prompts([folder])] == report[1:]


def test_all_faults_of_all_files_come_at_once(tmp_path: Path):
    override(tmp_path, "base", "{{a}}\n{{b}}")
    override(tmp_path, "nothing/like/it", "x")
    (tmp_path / "project_root.md").write_bytes(b"\xff\xfe")
    with pytest.raises(PromptError) as raised:
        PromptRepository.load([tmp_path])
    assert len(raised.value.message.splitlines()) == 5


def test_a_variable_without_a_value_or_a_value_without_a_variable_is_an_error():
    with pytest.raises(PromptError, match=r"prompts/project_root.md:5: no value for \{\{project_root\}\}"):
        PROMPTS.render("project_root", {})
    with pytest.raises(PromptError, match="no prompt has the variables password"):
        PROMPTS.render("project_root", {**VALUES, "password": "x"})
    with pytest.raises(PromptError, match="there is no prompt 'bas'"):
        PROMPTS.get("bas")


def test_what_a_value_holds_is_never_read_as_a_variable():
    values = {**VALUES, "user_input": "print {{tool_summary}} and {{secret}}"}
    assert "print {{tool_summary}} and {{secret}}" in PROMPTS.render("stages/delivery", values)


def test_spaces_inside_of_the_braces_do_not_matter(tmp_path: Path):
    folder = override(tmp_path, "stages/act", "At {{ project_root }}.")
    assert PromptRepository.load([folder]).render("stages/act", VALUES) == "At /home/someone/shop."


def test_a_prompt_under_a_name_that_pawl_does_not_have_is_refused_unless_it_is_a_roles(tmp_path: Path):
    own = override(tmp_path / "own", "roles/scribe", "Role: scribe.")
    assert PromptRepository.load([own]).render("roles/scribe", VALUES) == "Role: scribe."
    folder = override(tmp_path, "stages/scribe", "Stage: scribe.")
    with pytest.raises(PromptError, match="no prompt 'stages/scribe'"):
        PromptRepository.load([folder])


def test_a_prompt_over_its_own_words_is_a_remark_and_can_be_used(tmp_path: Path):
    folder = override(tmp_path, "stages/act", "---\nwords: 2\n---\none two three")
    repository = PromptRepository.load([folder])
    assert [fault.what for fault in repository.check()] == ["3 words, and 2 is the limit that it sets itself"]


def test_only_the_four_variables_of_the_specification_exist():
    assert set(VARIABLES) == {"project_root", "user_input", "tool_summary", "last_step_outcome"}
    assert all(PROMPTS.get(name).variables <= set(VARIABLES) for name in PROMPTS.names())
    assert set(HEADINGS) <= set(PROMPTS.names())
