"""Corrections: which answers are sent back, which are not, and how often."""

from __future__ import annotations

import itertools
import re

import pytest
from agent.blocks import MACRO, MICRO

from pawl.agent.corrections import (
    MOST_PER_REQUEST,
    AnswerSituation,
    Correction,
    asks_for_files,
    claims_done,
    corrections,
    examples,
    fault_of,
    may_send,
    promises,
    reasoning_of,
)
from pawl.agent.policy import standard_policy
from pawl.agent.prompts import PromptRepository
from pawl.core.dialogue import ModelResponse, StopReason, Thought, ToolCall, Usage
from pawl.core.run import Mode, Reasoning, RoleName, Stage

pytestmark = pytest.mark.spec("C11")

CALL = ToolCall(id="1", name="file_read", arguments={"path": "a.py"})
DETECTED = {
    "empty_answer",
    "asks_for_files",
    "reasoning_only",
    "claims_done",
    "promised_call",
    "reasoning_malformed",
    "reasoning_thin",
    "warmed_up",
    "nothing_changed",
}
FOUND_ELSEWHERE = {"contract_unmet", "cut_off", "uncited"}
"""By validation of the answer and by how it ended."""
CHECKS = {
    "asks_for_files": asks_for_files,
    "claims_done": claims_done,
    "promised_call": lambda text: bool(promises(text)),
}


def answer(
    text: str = "", *, calls: tuple[ToolCall, ...] = (), thought: str = "", stop: StopReason = StopReason.END
) -> ModelResponse:
    thoughts = (Thought(text=thought),) if thought else ()
    return ModelResponse(text=text, stop=stop, usage=Usage(), model="a/b", calls=calls, thoughts=thoughts)


def at(
    stage: Stage = Stage.ACT,
    mode: Mode = Mode.AGENT,
    reasoning: Reasoning = Reasoning.OFF,
    role: RoleName = RoleName.ARTISAN,
    work_left: tuple[str, ...] = (),
    sent: dict[str, int] | None = None,
) -> AnswerSituation:
    decision = standard_policy().decide(stage, mode, role, reasoning=reasoning)
    return AnswerSituation(stage=stage, decision=decision, work_left=work_left, sent=sent or {})


def fault(given: ModelResponse, situation: AnswerSituation) -> str | None:
    found = fault_of(given, situation)
    return None if found is None else found.correction.name


def test_the_seven_of_the_specification_are_data_and_each_has_a_prompt():
    prompts = PromptRepository.load()
    assert set(corrections()) == DETECTED | FOUND_ELSEWHERE
    for name, one in corrections().items():
        assert one == Correction(
            name=name, told=one.told, prompt=f"corrections/{name}", limit=one.limit, stages=one.stages
        )
        assert one.told and "_" not in one.told
        assert 1 <= one.limit <= 2 and one.stages <= set(Stage)
        assert prompts.render(one.prompt, {"last_step_outcome": "x"})
        assert "mode" not in prompts.get(one.prompt).text.lower().split()


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, (faults, _) in examples().items() for text in faults]
)
def test_a_phrase_that_is_a_fault_is_heard(name: str, text: str):
    assert CHECKS[name](text)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, (_, innocent) in examples().items() for text in innocent]
)
def test_a_phrase_that_is_none_is_let_pass(name: str, text: str):
    assert not CHECKS[name](text)


HONEST = [
    "`parse_date` (src/dates.py:12) looks the day up in a table; leap days are missing there, so it raises KeyError.",
    "The tests pass: 12 passed in 0.4 s. I changed one line in src/dates.py.",
    "There are two ways to do this. Which one do you prefer?",
    "Use `pawl undo` to take it back.",
    "I could not reproduce the failure: with Python 3.11 the test passes.",
    "The script will read the file, check its header and write the result.",
    "```python\n# Please provide the file\nprint('Done.')\n```",
    "> Please share your code\n\nThat line is printed by cli.py:40.",
    "1. Open the settings.\n2. Paste the token.\n3. Run the script.",
    "You can share the code with your team through a branch.",
]


@pytest.mark.parametrize("text", HONEST)
@pytest.mark.parametrize("mode", Mode)
def test_ordinary_answers_are_not_sent_back(text: str, mode: Mode):
    assert fault(answer(text), at(mode=mode)) is None


def test_an_empty_answer_is_one_without_text_calls_and_thoughts():
    assert fault(answer(" \n"), at()) == "empty_answer"
    assert fault(answer("", calls=(CALL,)), at()) is None
    assert fault(answer("", thought="hm"), at()) == "reasoning_only"
    assert fault(answer("", stop=StopReason.REFUSED), at()) is None


def test_files_are_asked_for_only_where_they_can_be_read():
    text = "Could you share the contents of src/app.py?"
    assert fault(answer(text), at()) == "asks_for_files"
    assert fault(answer(text), at(mode=Mode.CHAT)) == "asks_for_files"
    assert fault(answer(text, calls=(CALL,)), at()) is None
    assert fault(answer(text), at(role=RoleName.SUPERVISOR)) is None
    assert fault(answer(text), at(stage=Stage.FINAL)) is None


def test_reasoning_alone_is_no_answer():
    block = MICRO.partition("Reading the file.")[0]
    assert fault(answer(block), at(reasoning=Reasoning.ON)) == "reasoning_only"
    assert fault(answer(block, calls=(CALL,)), at(reasoning=Reasoning.ON)) is None
    assert fault(answer(MICRO), at(reasoning=Reasoning.ON)) is None


@pytest.mark.spec("C2", "C7")
def test_reasoning_is_required_of_an_agent_and_asked_of_a_chat():
    plain = "The loop ends one step early (src/app.py:9)."
    assert fault(answer(plain), at(reasoning=Reasoning.ON)) == "reasoning_malformed"
    assert fault(answer(plain, calls=(CALL,)), at(reasoning=Reasoning.ON)) == "reasoning_malformed"
    assert fault(answer(plain), at(reasoning=Reasoning.ON, mode=Mode.CHAT)) is None
    assert fault(answer(plain), at(reasoning=Reasoning.OFF)) is None
    broken = MICRO.replace("- why", "- because")
    assert fault(answer(broken), at(reasoning=Reasoning.ON, mode=Mode.CHAT)) == "reasoning_malformed"
    found = fault_of(answer(broken), at(reasoning=Reasoning.ON))
    assert found is not None and found.why == "no bullet begins with why:"


@pytest.mark.spec("C7")
def test_macro_reasoning_is_held_to_its_own_form():
    warmup = at(stage=Stage.WARMUP, reasoning=Reasoning.ON)
    assert fault(answer(MACRO), at(stage=Stage.WARMUP, reasoning=Reasoning.ON, mode=Mode.CHAT)) is None
    assert fault(answer(MACRO), warmup) == "warmed_up"
    done = re.sub(r"(## Delivery\n).*", r"\1DONE: every part is complete and was shown to work.", MACRO)
    assert done != MACRO and fault(answer(done), warmup) == "warmed_up", "done is not accepted before the work"
    assert fault(answer(MICRO), warmup) == "reasoning_malformed"
    thin = fault_of(
        answer(MACRO.replace("1. read the tests\n2. replace the table by the calendar module", "tbd")), warmup
    )
    assert thin is not None
    assert (thin.correction.name, thin.why) == ("reasoning_thin", "sections that say too little: Plan")


BULLETS = '"reasoning": ["happened: all tests ran", "next: report the state", "why: nothing remains open"]'


@pytest.mark.spec("C8")
def test_the_reasoning_of_a_json_answer_is_a_field_of_it():
    delivery = at(stage=Stage.DELIVERY, reasoning=Reasoning.ON)
    fields = '"state": "DONE", "evidence": ["12 passed"], "remaining": []'
    whole = answer("```json\n{" + f"{BULLETS}, {fields}" + "}\n```")
    assert fault(whole, delivery) is None
    reasoned = reasoning_of(whole, delivery.decision)
    assert reasoned.visible == "{" + fields + "}"
    assert reasoned.parts["next"] == "report the state"
    assert fault(answer("{" + fields + "}"), delivery) == "reasoning_malformed"
    assert fault(answer("not JSON"), delivery) is None
    assert fault(answer("{" + fields + "}"), at(stage=Stage.DELIVERY)) is None


def test_done_is_a_fault_only_while_the_record_says_that_work_is_left():
    left = ("tests/test_dates.py::test_leap fails", "lint was not run")
    assert fault(answer("All done!"), at()) is None
    found = fault_of(answer("All done!"), at(work_left=left))
    assert found is not None
    assert (found.correction.name, found.why) == (
        "claims_done",
        "- tests/test_dates.py::test_leap fails\n- lint was not run",
    )
    assert fault(answer("All done!", calls=(CALL,)), at(work_left=left)) is None
    assert fault(answer("I mended one of the two. test_leap still fails."), at(work_left=left)) is None
    assert fault(answer("All done!"), at(stage=Stage.QA, work_left=left)) is None


def test_a_delivery_check_or_a_block_that_says_done_is_a_claim_too():
    left = ("one test fails",)
    done = '{"state": "DONE", "evidence": ["x"], "remaining": []}'
    assert fault(answer(done), at(stage=Stage.DELIVERY, work_left=left)) == "claims_done"
    open_ = done.replace("DONE", "NEEDS_WORK")
    assert fault(answer(open_), at(stage=Stage.DELIVERY, work_left=left)) is None
    block = MICRO.replace("</reasoning>", "- delivery: DONE\n</reasoning>")
    assert fault(answer(block), at(reasoning=Reasoning.ON, work_left=left)) == "claims_done"


def test_a_promise_counts_where_the_tools_could_keep_it():
    assert fault(answer("Let me read src/app.py."), at()) == "promised_call"
    assert fault(answer("Let me read src/app.py."), at(mode=Mode.CHAT)) == "promised_call"
    assert fault(answer("I'll now edit the file."), at()) == "promised_call"
    assert fault(answer("I'll now edit the file."), at(mode=Mode.CHAT)) is None
    assert fault(answer("Next, I'll run the tests."), at(role=RoleName.WORKER)) is None
    assert fault(answer("Let me read src/app.py.", calls=(CALL,)), at()) is None
    early = "Let me read the file.\n\nIt defines one class. The class has two methods. Both are tested."
    assert fault(answer(early), at()) is None


def test_an_answer_in_json_is_not_judged_by_its_words():
    worker = at(role=RoleName.WORKER)
    assert worker.decision.contract == "work"
    assert fault(answer('{"detail": "Please share the file. Let me read it."}'), worker) is None


def test_each_correction_is_bounded_and_so_are_all_together():
    one = corrections()["asks_for_files"]
    text = answer("Please paste the code. Let me read it.")
    assert fault(text, at()) == "asks_for_files"
    assert fault(text, at(sent={"asks_for_files": one.limit})) == "promised_call"
    assert fault(text, at(sent={"asks_for_files": 1, "promised_call": 2})) is None
    assert fault(answer(""), at(sent={"claims_done": MOST_PER_REQUEST})) is None
    assert not may_send(one, at(sent={"asks_for_files": 1}))


def test_a_model_that_never_mends_its_ways_is_left_alone_after_a_few_tries():
    for reasoning, text in itertools.product(Reasoning, ("", "Please share the file.", "Let me read it.", "Done.")):
        sent: dict[str, int] = {}
        while name := fault(answer(text), at(reasoning=reasoning, work_left=("x",), sent=sent)):
            sent[name] = sent.get(name, 0) + 1
        assert sum(sent.values()) <= MOST_PER_REQUEST


@pytest.mark.spec("C1")
def test_no_correction_touches_the_decision():
    situation = at(mode=Mode.CHAT)
    before = situation.decision
    fault_of(answer("I'll edit the file for you in agent mode."), situation)
    assert (
        situation.decision
        is before
        == standard_policy().decide(Stage.ACT, Mode.CHAT, RoleName.ARTISAN, reasoning=Reasoning.OFF)
    )
