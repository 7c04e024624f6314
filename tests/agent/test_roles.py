"""Roles: what each may use and whom it may send, files that check themselves, and roles of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pawl.agent.contracts import validated
from pawl.agent.policy import Policy
from pawl.agent.roles import check_examples, load_roles, may_delegate, may_use
from pawl.core.errors import PolicyViolation, PromptError
from pawl.core.run import Mode, Reasoning, RoleName, Stage

ROLES = load_roles()
FILES = Path(__file__).parents[2] / "src" / "pawl" / "agent" / "roles"
READS = {"file_read", "file_search", "list_files", "outline"}
WRITES = {"change_files", "file_write", "line_edit", "modify", "revert", "strict_patch"}
SKILLED = READS | {"read_skill"}
TOOLS = SKILLED | WRITES | {"check", "dev_server", "lsp_diagnostics", "run_command", "delegate"}

LEAST_PRIVILEGE = {
    "supervisor": ({"delegate"}, {"lead"}),
    "lead": ({"check", "delegate"}, {"planner", "fixer"}),
    "planner": (SKILLED | {"delegate"}, {"worker"}),
    "worker": (SKILLED | WRITES, set()),
    "fixer": (SKILLED | WRITES | {"check", "lsp_diagnostics"}, set()),
    "librarian": (READS, set()),
    "artisan": (
        SKILLED | WRITES - {"line_edit", "modify"} | {"check", "dev_server", "lsp_diagnostics", "run_command"},
        set(),
    ),
    "critic": (READS, set()),
    "chaos": (READS, set()),
    "reviewer": (READS, set()),
}


@pytest.mark.spec("D1")
@pytest.mark.parametrize("name", RoleName)
def test_each_role_has_the_tools_and_delegates_of_its_job_and_no_other(name: RoleName):
    role = ROLES[name]
    tools, delegates = LEAST_PRIVILEGE[name]
    for tool in TOOLS:
        if tool in tools:
            may_use(role, tool)
        else:
            with pytest.raises(PolicyViolation, match=f"{name.value!r} may not use {tool!r}"):
                may_use(role, tool)
    for other in RoleName:
        if other in delegates:
            may_delegate(role, other)
        else:
            with pytest.raises(PolicyViolation, match=f"{name.value!r} may not delegate to {other.value!r}"):
                may_delegate(role, other)


@pytest.mark.spec("D1")
def test_a_refusal_says_what_would_be_allowed():
    with pytest.raises(PolicyViolation) as raised:
        may_delegate(ROLES["lead"], "worker")
    assert raised.value.advice == "it may send: fixer, planner"
    with pytest.raises(PolicyViolation) as raised:
        may_use(ROLES["supervisor"], "rm -rf")
    assert raised.value.advice == "its tools are: delegate"


@pytest.mark.spec("E2", "A10")
def test_each_role_has_the_temperature_of_the_specification():
    warm = {"librarian": 0.3, "artisan": 0.7, "critic": 0.2, "chaos": 0.9}
    assert {name: role.temperature for name, role in ROLES.items()} == {name: warm.get(name, 0.1) for name in RoleName}
    assert all(role.model and 20_000 <= role.context_tokens <= 60_000 for role in ROLES.values())


@pytest.mark.parametrize("name", RoleName)
def test_a_role_file_of_ours_is_right_and_agrees_with_its_own_examples(name: RoleName):
    role = ROLES[name]
    assert check_examples(role, validated) == ()
    subjects = {(example.subject, example.allowed) for example in role.examples}
    assert {("tool", False), ("delegate" if name in ("supervisor", "lead") else "tool", True)} <= subjects
    assert ({("answer", True), ("answer", False)} <= subjects) == bool(role.contract)


def test_every_file_in_the_folder_is_a_role():
    assert {path.stem for path in FILES.glob("*.toml")} == set(RoleName)


SCRIBE = """
description = "Writes documentation."
prompt = "roles/artisan"
tools = ["file_read", "file_write"]
delegates = []

[[example]]
allowed = { tool = "file_write" }

[[example]]
refused = { tool = "run_command" }
"""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.mark.spec("D1", "B14")
def test_a_users_own_role_is_a_file_and_the_table_holds_for_it_too(tmp_path: Path):
    policy = Policy(load_roles([write(tmp_path / "roles", scribe=SCRIBE)]))
    scribe = policy.role("scribe")
    assert (scribe.temperature, scribe.model, scribe.context_tokens, scribe.contract) == (0.1, "default", 60_000, "")
    assert scribe.source == str(tmp_path / "roles" / "scribe.toml")
    act = {mode: policy.decide(Stage.ACT, mode, "scribe", reasoning=Reasoning.OFF).tools for mode in Mode}
    assert act == {Mode.CHAT: ("file_read",), Mode.AGENT: ("file_read", "file_write")}
    assert policy.decide(Stage.DELIVERY, Mode.AGENT, "scribe", reasoning=Reasoning.OFF).tools == ()


def test_the_later_directory_wins(tmp_path: Path):
    user = write(tmp_path / "user", scribe=SCRIBE)
    project = write(tmp_path / "project", scribe=SCRIBE.replace("Writes documentation.", "Ours."))
    assert load_roles([user, project])["scribe"].description == "Ours."
    assert load_roles([project, user])["scribe"].description == "Writes documentation."


@pytest.mark.spec("D1")
def test_a_role_of_ours_can_be_narrowed_and_not_widened(tmp_path: Path):
    narrow = 'description = "d"\nprompt = "roles/lead"\ntools = ["delegate"]\ndelegates = ["fixer", "scribe"]\n'
    roles = load_roles([write(tmp_path / "narrow", lead=narrow, scribe=SCRIBE)])
    assert (roles["lead"].tools, roles["lead"].delegates) == ({"delegate"}, {"fixer", "scribe"})
    wide = 'description = "d"\nprompt = "p"\ntools = ["delegate", "file_read"]\ndelegates = ["lead", "worker"]\n'
    with pytest.raises(PromptError) as raised:
        load_roles([write(tmp_path / "wide", supervisor=wide)])
    place = tmp_path / "wide" / "supervisor.toml"
    assert raised.value.message.splitlines()[1:] == [
        f"{place}: tools: the role 'supervisor' may not be given 'file_read'",
        f"{place}: delegates: the role 'supervisor' may not be given 'worker'",
    ]


def test_every_mistake_of_every_file_is_reported_at_once_with_file_and_key(tmp_path: Path):
    folder = write(
        tmp_path / "roles",
        broken="tools = [",
        scribe="""
descripton = "d"
prompt = 3
tools = ["file_red", "file_read"]
delegates = ["workr"]
contract = "plam"
temperature = true
context_tokens = 10
[[example]]
allowed = { tools = "x" }
""",
        shy=SCRIBE.replace('refused = { tool = "run_command" }', 'refused = { tool = "file_read" }'),
    )
    (folder / "Bad Name.toml").write_text(SCRIBE)
    with pytest.raises(PromptError) as raised:
        load_roles([folder])
    scribe = folder / "scribe.toml"
    lines = raised.value.message.splitlines()
    assert lines[0] == "role files that cannot be used:"
    told = [line.removeprefix(f"{scribe}: ") for line in lines if line.startswith(str(scribe))]
    expected = (
        "descripton: no such key; did you mean 'description'?",
        "description: missing",
        "prompt: must be text, not 3",
        "tools: no such name 'file_red'; did you mean 'file_read'?",
        "delegates: no such name 'workr'; did you mean 'worker'?",
        "contract: no such contract 'plam'; did you mean 'plan'?",
        "temperature: must be a number",
        "context_tokens: must be ",
        "delegates: without the tool 'delegate' nobody can be sent",
        "example 1: must be allowed or refused = { tool = … } or { delegate = … }, or valid or invalid = an answer",
    )
    assert len(told) == len(expected)
    assert all(any(line.startswith(start) for line in told) for start in expected), told
    rest = [line for line in lines[1:] if not line.startswith(str(scribe))]
    assert len(rest) == 3
    assert rest[0].startswith(f"{folder / 'Bad Name.toml'}: the name of a role")
    assert rest[1].startswith(f"{folder / 'broken.toml'}: ")
    assert rest[2] == f"{folder / 'shy.toml'}: tool 'file_read' should be refused"


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ('"strict_patch"', '"file_read"', "tool 'file_read' should be refused"),
        ('{ tool = "file_read" }', '{ tool = "check" }', "tool 'check' should be allowed"),
    ],
)
def test_an_example_that_is_wrong_on_either_side_is_found(tmp_path: Path, old: str, new: str, mistake: str):
    (tmp_path / "critic.toml").write_text((FILES / "critic.toml").read_text().replace(old, new))
    with pytest.raises(PromptError, match=mistake):
        load_roles([tmp_path])
    worker = ROLES["worker"]
    assert check_examples(worker, lambda name, answer: None) != ()
