"""Contracts: schemas that every provider takes, answers found in what surrounds them, and mistakes all at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.contracts import contract, json_schema, validated
from pawl.agent.policy import standard_policy
from pawl.agent.reasoning import json_object
from pawl.agent.roles import CONTRACTS, load_roles
from pawl.core.errors import SchemaUnmet, UsageError
from pawl.core.run import Mode, Stage

pytestmark = pytest.mark.spec("D6")

VALID = {
    "plan": {
        "status": "partial",
        "plan": [
            {"id": 1, "path": "src/a.py", "action": "edit", "what": "x", "depends_on": []},
            {"id": 2, "path": "src/b.py", "action": "create", "what": "y", "depends_on": [1]},
        ],
        "results": [{"id": 1, "path": "src/a.py", "status": "completed", "detail": ""}],
        "files_modified": ["src/a.py"],
        "files_failed": ["src/b.py"],
    },
    "work": {
        "status": "completed",
        "results": [{"id": 1, "path": "src/a.py", "status": "completed", "detail": "done"}],
        "files_modified": ["src/a.py"],
        "files_failed": [],
    },
    "fix": {
        "status": "failed",
        "fixes_applied": [{"path": "src/a.py", "error": "NameError", "fix": "import"}],
        "build_status": "failed",
        "remaining_errors": ["x is not defined"],
        "attempts": 3,
    },
    "verdict": {
        "verdict": "send_back",
        "summary": "s",
        "problems": [{"path": "a.py", "line": 0, "severity": "blocking", "problem": "p", "suggestion": ""}],
    },
    "ranking": {"summary": "s", "files": [{"path": "a.py", "relevance": "low", "why": "w"}]},
    "review": {"summary": "s", "findings": [], "missing_tests": [], "confidence": "low"},
    "tasks": {"plan": [{"id": 1, "path": "src/a.py", "action": "edit", "what": "x", "depends_on": []}]},
    "intent": {"intent": "run", "summary": "s", "paths": [], "command": "pytest -q"},
    "score": {"score": 5, "reason": "r"},
    "cases": {"cases": [{"target": "a.py::f", "input": "f(0)", "expect": "0", "why": "w"}]},
    "delivery": {"state": "NEEDS_WORK", "evidence": [], "remaining": ["the second half"], "tests_left": "none"},
}
REASONS = ["happened: a b c", "next: a b c", "why: a b c"]


def mistakes(name: str, value: object) -> tuple[str, ...]:
    with pytest.raises(SchemaUnmet) as raised:
        validated(name, value if isinstance(value, str) else json.dumps(value))
    return raised.value.mistakes


def schemas(schema: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from schemas(inner)
    if "items" in schema:
        yield from schemas(schema["items"])


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_valid_answer_becomes_a_value_with_exactly_its_fields(name: str):
    value = validated(name, json.dumps(VALID[name]))
    assert type(value) is contract(name)
    assert json.loads(value.model_dump_json()) == VALID[name]


def test_every_contract_has_a_type_and_every_use_a_contract():
    assert set(VALID) == set(CONTRACTS)
    used = {row.decision.contract for row in standard_policy().rows()} | {
        role.contract for role in load_roles().values()
    }
    assert used - {""} == set(CONTRACTS)
    with pytest.raises(UsageError, match="'plam'"):
        contract("plam")


def test_planner_worker_and_fixer_have_the_fields_of_the_specification():
    assert {name: list(json_schema(name)["properties"]) for name in ("plan", "work", "fix")} == {
        "plan": ["status", "plan", "results", "files_modified", "files_failed"],
        "work": ["status", "results", "files_modified", "files_failed"],
        "fix": ["status", "fixes_applied", "build_status", "remaining_errors", "attempts"],
    }
    for name in ("plan", "work", "fix"):
        assert json_schema(name)["properties"]["status"]["enum"] == ["completed", "partial", "failed"]


@pytest.mark.parametrize("name", CONTRACTS)
@pytest.mark.parametrize("reasoning", [False, True])
def test_a_schema_holds_only_what_every_provider_takes(name: str, reasoning: bool):
    schema = json_schema(name, reasoning=reasoning)
    assert json.loads(json.dumps(schema)) == schema
    for part in schemas(schema):
        assert set(part) <= {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}
        assert part["type"] in ("object", "array", "string", "integer")
        if part["type"] == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
    assert (next(iter(schema["properties"])) == "reasoning") == reasoning


def test_reasoning_is_the_first_field_where_it_is_asked_for():
    whole = json.dumps({"reasoning": REASONS, **VALID["score"]})
    assert validated("score", whole, reasoning=True).model_dump()["reasoning"] == tuple(REASONS)
    assert mistakes("score", whole) == ("reasoning: no such field",)
    with pytest.raises(SchemaUnmet, match="reasoning: missing"):
        validated("score", json.dumps(VALID["score"]), reasoning=True)
    with pytest.raises(SchemaUnmet, match=r"reasoning: .*at least 3 items"):
        validated("score", json.dumps({"reasoning": REASONS[:2], **VALID["score"]}), reasoning=True)


def test_all_mistakes_are_listed_one_to_a_line_with_their_places():
    wrong = {
        "status": "done",
        "plan": [{"id": "1", "path": "../b.py", "action": "edit", "what": "", "extra": 1}],
        "results": {},
        "files_modified": ["/etc/passwd", "ok.py", "C:\\x"],
    }
    with pytest.raises(SchemaUnmet) as raised:
        validated("plan", json.dumps(wrong))
    assert raised.value.mistakes == (
        "status: input should be 'completed', 'partial' or 'failed', not 'done'",
        "plan[0].id: input should be a valid integer, not '1'",
        "plan[0].path: must be relative to the workspace, with / and without .., not '../b.py'",
        "plan[0].what: string should have at least 1 character, not ''",
        "plan[0].depends_on: missing",
        "plan[0].extra: no such field",
        "results: input should be a valid array, not {}",
        "files_modified[0]: must be relative to the workspace, with / and without .., not '/etc/passwd'",
        "files_modified[2]: must be relative to the workspace, with / and without .., not 'C:\\\\x'",
        "files_failed: missing",
    )
    lines = raised.value.message.splitlines()
    assert lines == ["the answer does not fit the contract 'plan':"] + [f"- {one}" for one in raised.value.mistakes]


def test_a_flood_of_mistakes_is_sent_back_in_part():
    many = {**VALID["work"], "files_modified": [""] * 100}
    with pytest.raises(SchemaUnmet) as raised:
        validated("work", json.dumps(many))
    assert len(raised.value.mistakes) == 100
    assert raised.value.message.splitlines()[-1] == "- and 70 more"


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("work", {"files_failed": ["b.py"]}, ("status is completed, but a change failed",)),
        (
            "work",
            {"files_failed": ["src/a.py"], "status": "failed"},
            (
                "files_modified and files_failed both name src/a.py",
                "status is failed, but files were modified: say partial",
            ),
        ),
        (
            "plan",
            {"plan": [{**VALID["plan"]["plan"][1], "depends_on": [3]}] * 2},
            (
                "plan: 2 depends on 3, which does not come before it",
                "plan: the id 2 occurs twice",
                "plan: 2 depends on 3, which does not come before it",
                "results: no planned change has the id 1",
            ),
        ),
        (
            "tasks",
            {"plan": [{**VALID["tasks"]["plan"][0], "depends_on": [1]}]},
            ("plan: 1 depends on 1, which does not come before it",),
        ),
        (
            "fix",
            {"status": "completed", "build_status": "passed"},
            (
                "status is completed, but the build did not pass or errors remain",
                "build_status is passed, but errors remain",
            ),
        ),
        ("verdict", {"verdict": "approve"}, ("verdict is approve, but a problem is blocking",)),
        ("verdict", {"problems": []}, ("verdict is send_back, but no problem is blocking",)),
        ("ranking", {"files": VALID["ranking"]["files"] * 2}, ("files: a.py occurs twice",)),
        ("intent", {"intent": "edit"}, ("command is given, but the intent is not run",)),
        ("delivery", {"state": "DONE"}, ("state is DONE, but something remains", "state is DONE without evidence")),
        ("delivery", {"remaining": []}, ("state is NEEDS_WORK, but nothing remains",)),
    ],
)
def test_what_does_not_agree_inside_of_an_answer_is_a_mistake(name: str, change: dict, said: tuple[str, ...]):
    assert mistakes(name, {**VALID[name], **change}) == said


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("score", {"score": 0}),
        ("score", {"score": 6}),
        ("score", {"score": "5"}),
        ("score", {"score": True}),
        ("score", {"score": 4.5}),
        ("score", {"reason": ""}),
        ("cases", {"cases": []}),
        ("fix", {"attempts": 4}),
        ("plan", {"plan": [{**VALID["plan"]["plan"][0], "id": number} for number in range(1, 12)], "results": []}),
        ("verdict", {"verdict": "maybe"}),
        ("intent", {"intent": "deploy"}),
    ],
)
def test_values_out_of_bounds_are_mistakes_though_the_schema_has_no_bounds(name: str, change: dict):
    assert mistakes(name, {**VALID[name], **change})


@pytest.mark.spec("C4")
def test_a_review_cannot_speak_of_the_delivery():
    assert mistakes("review", {**VALID["review"], "state": "DONE"}) == ("state: no such field",)


ONE = '{"score": 3, "reason": "a {brace} and a } one"}'


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"  {ONE}\n",
        f"```json\n{ONE}\n```",
        f"```\n{ONE}\n```",
        f"Here it is:\n\n```json\n{ONE}\n```\nThat is all.",
        f"Here it is: {ONE} I hope it helps.",
        f"In `{{x}}` form: {ONE}",
        f'First a draft:\n```json\n{{"score": 1}}\n```\nthen:\n```json\n{ONE}\n```',
        f"<reasoning>\n- happened: {{}}\n</reasoning>\n{ONE}",
        '{"score": 3, "reason": "a\\n```json\\n{}\\n```"}',
    ],
)
def test_the_object_is_found_in_what_a_model_wrote_around_it(text: str):
    assert validated("score", text).model_dump()["score"] == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is not JSON: "),
        ("no object here", "it is not JSON: "),
        ('{"score": 3,}', "it is not JSON: trailing comma at line 1 column 13"),
        ('{"score": 3, "reason": {"score": 3, "reason": "x"}, oops}', "it is not JSON: "),
        ('{"score": 3', "it is not JSON: "),
        ("[1, 2]", "answer: "),
        ("{" * 100_000, "it is not JSON: "),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "it is not JSON: recursion limit exceeded"),
    ],
)
def test_what_is_no_object_says_where_it_goes_wrong(text: str, said: str):
    (mistake,) = mistakes("score", text)
    assert mistake.startswith(said)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_comes_is_a_value_or_a_list_of_mistakes(value: object):
    for name in ("plan", "score", "delivery"):
        try:
            validated(name, json.dumps(value))
        except SchemaUnmet as error:
            assert error.mistakes


@given(st.dictionaries(st.text(), st.text() | st.integers()), st.sampled_from(["", "Well: ", "a\nb\n"]))
def test_an_object_is_found_whole(value: dict, before: str):
    text = json.dumps(value)
    assert json.loads(json_object(before + text)) == value


def test_asking_for_words_does_not_pay_for_pydantic():
    program = "import sys, pawl.agent.contracts, pawl.agent.policy; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_table_gives_json_stages_their_contract_in_both_modes():
    rows = {(row.mode, row.stage): row.decision.contract for row in standard_policy().rows() if row.role == "artisan"}
    for mode in Mode:
        assert {stage: rows[mode, stage] for stage in Stage if rows[mode, stage]} == {
            Stage.INTENT: "intent",
            Stage.PLAN: "tasks",
            Stage.DELIVERY: "delivery",
            Stage.QA: "review",
            Stage.EVALUATE: "score",
        }
