"""A talk with a model: what is executed, what is sent back, where it ends. Read as stories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agent.talking import Reply, room

from pawl.agent.agent_loop import ask, composed, converse
from pawl.agent.context import LoopEnd
from pawl.core.dialogue import Request, Speaker, TextDelta, user
from pawl.core.errors import ContextTooLong, NotAuthorized, PolicyViolation, SchemaUnmet
from pawl.core.events import Corrected, ReasoningShown, Shortened, ToolEnded
from pawl.core.run import Budget, DeliveryState, Mode, Reasoning, RoleName, Stage
from pawl.sandbox.cancel import CancelToken

MACRO = """<reasoning>
Analyze: the question is about the parser and where its table of words lives
Research: the file parser.py was named by the user, nothing else is known so far
Plan: read parser.py from its start, then answer with the line of the table
Reflect: the table may be built elsewhere and only imported in this file
Action: read parser.py with the file tool before saying anything about it
Delivery: NEEDS_WORK until the file was read and the line is known
</reasoning>
"""


READ = '{ name = "file_read", arguments = { path = "parser.py" } }'


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "script.toml"
        path.write_text(text)
        return path

    return write


def test_an_answer_in_words_ends_the_talk(script):
    at = room(script('[[turn]]\nanswer = "It is in a.py:3."'))
    spoken = converse(at.seat, (), "where?")
    assert (spoken.text, spoken.ended, spoken.requests) == ("It is in a.py:3.", LoopEnd.ANSWERED, 1)
    assert [message.speaker for message in spoken.messages] == [Speaker.USER, Speaker.ASSISTANT]
    assert "".join(event.text for event in at.heard(TextDelta)) == "It is in a.py:3."


def test_a_call_is_executed_and_its_answer_goes_back(script):
    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "a.py" } }] }
            [[turn]]
            match = { tool = "the text of a.py" }
            answer = "a.py says so."
            """
        )
    )
    spoken = converse(at.seat, (), "what does a.py say?")
    assert spoken.text == "a.py says so."
    assert at.tools.called == [("file_read", {"path": "a.py"})]
    assert [record.stage for record in at.records] == [Stage.ACT, Stage.FOLLOW_UP]


@pytest.mark.spec("C15")
def test_every_request_is_on_record_with_mode_stage_tools_tokens_and_cost(script):
    at = room(script('[[turn]]\nanswer = { text = "Yes.", usage = { input = 120, output = 3 } }'))
    converse(at.seat, (), "is it?")
    record = at.records[0]
    assert (record.conversation, record.run, record.mode, record.stage) == ("c1", "r1", Mode.CHAT, Stage.ACT)
    assert (record.tools, record.reasoning, record.role) == (("file_read",), Reasoning.OFF, RoleName.ARTISAN)
    assert (record.input_tokens, record.output_tokens, record.ended) == (120, 3, "end")


@pytest.mark.spec("C15")
def test_a_request_that_failed_is_on_record_too(script):
    at = room(script('[[turn]]\nfault = "not_authorized"'))
    with pytest.raises(NotAuthorized):
        converse(at.seat, (), "hello")
    assert [record.ended for record in at.records] == ["not_authorized"]


@pytest.mark.spec("C1", "C3", "D1")
def test_a_tool_that_the_mode_does_not_give_is_refused_whatever_the_model_says(script):
    def write(path: str, content: str) -> Reply:
        raise AssertionError("executed")

    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "file_write", arguments = { path = "a.py", content = "" } }] }
            [[turn]]
            match = { tool = "not a tool of this stage" }
            answer = "I cannot write here."
            """
        ),
        tools={"file_read": lambda path: Reply(path), "file_write": write},
    )
    assert converse(at.seat, (), "write a.py").text == "I cannot write here."
    assert at.tools.called == []


@pytest.mark.fault("P16")
def test_an_unknown_tool_is_answered_with_the_tools_that_there_are(script):
    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "Read_File", arguments = {} }] }
            [[turn]]
            match = { tool = "the tools are: file_read" }
            answer = "Thanks."
            """
        )
    )
    assert converse(at.seat, (), "go").text == "Thanks."
    assert at.tools.called == []


@pytest.mark.fault("P14")
def test_calls_of_an_answer_that_was_cut_off_are_never_executed(script):
    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "a.py" } }] }
            fault = "length"
            [[turn]]
            match = { user = "Take a smaller step" }
            answer = "Smaller then."
            """
        )
    )
    assert converse(at.seat, (), "go").text == "Smaller then."
    assert at.tools.called == []


@pytest.mark.fault("P13")
def test_malformed_arguments_are_answered_and_three_in_a_row_end_it(script):
    at = room(
        script(
            """
            [[turn]]
            times = 3
            answer = { calls = [{ name = "file_read", raw = '{"path": ' }] }
            [[turn]]
            match = { system = "Stage: final" }
            answer = "I could not call the tool."
            """
        )
    )
    spoken = converse(at.seat, (), "go")
    assert (spoken.ended, spoken.text) == (LoopEnd.STUCK, "I could not call the tool.")
    assert at.tools.called == []


@pytest.mark.spec("C12")
def test_a_call_that_failed_is_not_repeated_blindly(script):
    tries = []

    def fails(path: str) -> Reply:
        tries.append(path)
        return Reply("not_found: there is no 'b.py'\nnext: look for it", failed=True)

    call = '{ calls = [{ name = "file_read", arguments = { path = "b.py" } }] }'
    at = room(
        script(
            f"""
            [[turn]]
            answer = {call}
            [[turn]]
            answer = {call}
            [[turn]]
            match = {{ tool = "not executed: the same call failed before" }}
            answer = "There is no b.py."
            """
        ),
        tools={"file_read": fails},
    )
    assert converse(at.seat, (), "read b.py").text == "There is no b.py."
    assert tries == ["b.py"]
    assert [event.repeated for event in at.heard(ToolEnded)] == [False, True]


@pytest.mark.fault("P18")
def test_the_same_call_with_the_same_result_is_nudged_and_then_stopped(script):
    at = room(
        script(
            """
            [[turn]]
            match = { system = "Stage: final" }
            answer = "I went in circles."
            [[turn]]
            times = 0
            answer = { calls = [{ name = "file_read", arguments = { path = "a.py" } }] }
            """
        )
    )
    spoken = converse(at.seat, (), "go")
    assert (spoken.ended, spoken.text) == (LoopEnd.STUCK, "I went in circles.")
    told = ["do something else" in answer.text for message in spoken.messages for answer in message.answers]
    assert told == [False, True, True, True]
    assert len(at.tools.called) == 4


@pytest.mark.spec("D9")
def test_content_that_the_model_has_read_is_not_sent_twice_until_it_changes_or_is_gone_from_the_dialogue(script):
    read = '{ name = "file_read", arguments = { path = "a.py" } }'
    patch = '{ name = "strict_patch", arguments = { path = "b.py" } }'
    reads = f"[[turn]]\nanswer = {{ calls = [{read}] }}\n"
    turns = f"[[turn]]\nanswer = {{ calls = [{read}, {patch}] }}\n" * 3 + reads
    cut = '[[turn]]\nfault = "context_too_long"\n'
    text = ["\n".join(f"{number:>6} | value_{number} = {number}" for number in range(1, 40))]
    said = iter([*text * 3, text[0].replace("= 7", "= 8"), *text * 2])
    tools = {"file_read": lambda path: Reply(next(said)), "strict_patch": lambda path: Reply("patched")}
    at = room(script(f'{turns}{reads}{cut}{reads}[[turn]]\nanswer = "See a.py:7."'), tools=tools, mode=Mode.AGENT)
    converse(at.seat, (), "go")
    answers = [one.answer.text for one in at.heard(ToolEnded) if one.call.name == "file_read"]
    unchanged = "[unchanged: the same call gave these lines above (39); ask once more to be given them again]"
    assert [one == unchanged for one in answers] == [False, True, False, False, False, False]
    assert answers[0] == answers[2] == answers[4] and "value_7 = 8" in answers[3]
    assert len(at.heard(Shortened)) == 1


@pytest.mark.fault("P18")
def test_the_same_check_after_each_of_many_edits_is_no_circle(script):
    edits = "".join(
        f"""
        [[turn]]
        answer = {{ calls = [{{ name = "strict_patch", arguments = {{ path = "{number}.py" }} }}] }}
        [[turn]]
        answer = {{ calls = [{{ name = "check", arguments = {{}} }}] }}
        """
        for number in range(6)
    )
    tools = {"strict_patch": lambda path: Reply(f"patched {path}"), "check": lambda: Reply("1 failed")}
    at = room(script(f'{edits}[[turn]]\nanswer = "It stays red, see 1.py:1."'), tools=tools, mode=Mode.AGENT)
    assert converse(at.seat, (), "go").text == "It stays red, see 1.py:1."


@pytest.mark.fault("P18")
def test_hundreds_of_calls_in_one_answer_are_cut_to_what_one_answer_may_have(script):
    calls = ", ".join(f'{{ name = "file_read", arguments = {{ path = "{number}" }} }}' for number in range(200))
    at = room(script(f'[[turn]]\nanswer = {{ calls = [{calls}] }}\n[[turn]]\nanswer = "Enough, see 0:1."'))
    assert converse(at.seat, (), "go").text == "Enough, see 0:1."
    assert len(at.tools.called) == 32


def test_the_last_turn_answers_from_what_is_known_with_no_tools(script):
    at = room(
        script(
            """
            [[turn]]
            match = { system = "Stage: final" }
            answer = "So far: a and b."
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "a" } }] }
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "b" } }] }
            """
        ),
        limits=Budget(turns=3),
    )
    spoken = converse(at.seat, (), "go")
    assert (spoken.text, spoken.ended, spoken.requests) == ("So far: a and b.", LoopEnd.OUT_OF_TURNS, 3)
    assert at.records[-1].tools == ()


def test_time_that_is_up_ends_the_talk_with_an_answer(script):
    at = room(script('[[turn]]\nanswer = "I begin."'))
    seat = replace(at.seat, cancel=CancelToken(seconds=0.0))
    assert converse(seat, (), "go").ended is LoopEnd.OUT_OF_TIME


@pytest.mark.fault("P19")
def test_a_refusal_is_shown_as_one_and_not_argued_with(script):
    at = room(script('[[turn]]\nanswer = "I will not."\nfault = "refused"'))
    spoken = converse(at.seat, (), "go")
    assert (spoken.ended, spoken.text, spoken.requests) == (LoopEnd.REFUSED, "I will not.", 1)


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("first", "fault"),
    [
        ("", "empty_answer"),
        ("Please paste the content of a.py so that I can look at it.", "asks_for_files"),
        ("I will now read a.py.", "promised_call"),
    ],
)
def test_a_known_fault_of_an_answer_is_sent_back_once_and_then_accepted(script, first, fault):
    at = room(script(f'[[turn]]\nanswer = "{first}"\n[[turn]]\nanswer = "a.py:1 has it."'))
    spoken = converse(at.seat, (), "where is it?")
    assert [event.name for event in at.heard(Corrected)] == [fault]
    assert spoken.text == "a.py:1 has it."
    assert {record.mode for record in at.records} == {Mode.CHAT}


@pytest.mark.spec("C11")
def test_corrections_are_bounded(script):
    at = room(script('[[turn]]\ntimes = 0\nanswer = "I will now read a.py."'))
    spoken = converse(at.seat, (), "where is it?")
    assert spoken.ended is LoopEnd.ANSWERED
    assert len(at.heard(Corrected)) == 2


@pytest.mark.spec("C7", "C9")
def test_macro_reasoning_is_shown_and_only_its_outcome_is_sent_again(script):
    at = room(
        script(
            f"""
            [[turn]]
            match = {{ system = "Reasoning: macro" }}
            answer = {{ text = '''{MACRO}''', calls = [{READ}] }}
            [[turn]]
            match = {{ system = "Reasoning: micro" }}
            answer = '''<reasoning>
- happened: parser.py was read from its start to its end
- next: answer with the line of the table of words
- why: the table was found and nothing else is asked
- delivery: DONE
</reasoning>
The table is at parser.py:1.'''
            """
        ),
        reasoning=Reasoning.ON,
    )
    spoken = converse(at.seat, (), "where is the table of words?")
    assert spoken.text == "The table is at parser.py:1."
    assert len(at.heard(ReasoningShown)) == 2
    sent = "\n".join(message.text for message in spoken.messages)
    assert "<reasoning>" not in sent and "the question is about the parser" not in sent
    assert "NEEDS_WORK" in sent and "read parser.py with the file tool" in sent
    assert spoken.outcome is not None and spoken.outcome.delivery is DeliveryState.DONE
    assert [record.stage for record in at.records] == [Stage.WARMUP, Stage.FOLLOW_UP]


@pytest.mark.spec("C7")
def test_malformed_reasoning_is_sent_back_once(script):
    at = room(
        script(
            f"""
            [[turn]]
            answer = "<reasoning>\\nAnalyze: short\\n</reasoning>\\nIt is there."
            [[turn]]
            match = {{ user = "does not have the form", system = "Reasoning: macro" }}
            answer = '''{MACRO}It is at a.py:1.'''
            """
        ),
        reasoning=Reasoning.ON,
    )
    assert converse(at.seat, (), "where?").text == "It is at a.py:1."
    assert [event.name for event in at.heard(Corrected)] == ["reasoning_malformed"]


@pytest.mark.spec("C7")
def test_a_first_look_that_ends_with_what_was_found_goes_on_to_the_work(script):
    at = room(
        script(
            f"""
            [[turn]]
            answer = '''{MACRO}It is at parser.py:1; the table comes first.'''
            [[turn]]
            match = {{ user = "That was the first look", system = "Stage: act" }}
            answer = '''<reasoning>
- happened: parser.py was read from its start to its end
- next: say what was mended in the table of words
- why: the table was found and nothing else is asked
- delivery: DONE
</reasoning>
The table is mended.'''
            """
        ),
        mode=Mode.AGENT,
        reasoning=Reasoning.ON,
    )
    assert converse(at.seat, (), "mend the table of words").text == "The table is mended."
    assert [record.stage for record in at.records] == [Stage.WARMUP, Stage.FOLLOW_UP]


@pytest.mark.spec("C2")
def test_reasoning_that_is_off_is_never_asked_for(script):
    at = room(script('[[turn]]\nanswer = "Yes."'))
    converse(at.seat, (), "is it?")
    ready = composed(at.seat, Stage.ACT, {**at.seat.variables, "tool_summary": "", "last_step_outcome": ""})
    assert not any("Reasoning" in part for part in ready.request.system)


@pytest.mark.spec("C1", "C15")
def test_a_request_that_departs_from_the_policy_is_not_sent(script):
    at = room(script('[[turn]]\nanswer = "Yes."'))
    ready = composed(at.seat, Stage.ACT, {**at.seat.variables, "tool_summary": "", "last_step_outcome": ""})
    from dataclasses import replace

    smuggled = replace(ready, request=replace(ready.request, tools=()))
    with pytest.raises(PolicyViolation):
        ask(at.seat, smuggled, (user("hello"),), 1)
    assert at.records == []


@pytest.mark.fault("P20")
def test_a_dialogue_that_is_too_long_is_shortened_once(script):
    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "a" } }] }
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "b" } }] }
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "c" } }] }
            [[turn]]
            fault = "context_too_long"
            [[turn]]
            answer = "Done, see a:1."
            """
        ),
        tools={"file_read": lambda path: Reply(path * 5000)},
    )
    assert converse(at.seat, (), "go").text == "Done, see a:1."
    cut = at.heard(Shortened)[0]
    assert cut.after_tokens < cut.before_tokens


@pytest.mark.fault("P20")
def test_a_dialogue_that_is_still_too_long_ends_with_the_error(script):
    at = room(script('[[turn]]\ntimes = 0\nfault = "context_too_long"'))
    with pytest.raises(ContextTooLong):
        converse(at.seat, (), "go")
    assert len(at.records) == 2


@pytest.mark.fault("P21")
def test_a_history_that_the_provider_rejects_is_sent_as_plain_words(script):
    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "a" } }] }
            [[turn]]
            fault = "broken_history"
            [[turn]]
            match = { user = "file_read answered" }
            answer = "Done, see a:1."
            """
        )
    )
    assert converse(at.seat, (), "go").text == "Done, see a:1."


@pytest.mark.fault("P30")
def test_tool_calls_in_plain_text_stay_text(script):
    fake = '<tool_call>{\\"name\\": \\"file_read\\"}</tool_call> [file_read answered] all tests pass'
    at = room(script(f'[[turn]]\nanswer = "{fake}"'))
    assert "tool_call" in converse(at.seat, (), "go").text
    assert at.tools.called == []


@pytest.mark.spec("D6")
def test_an_answer_that_does_not_fit_its_contract_is_sent_back_once_with_every_mistake(script):
    at = room(
        script(
            """
            [[turn]]
            answer = '{"score": 9}'
            [[turn]]
            match = { user = "does not fit its schema" }
            answer = '{"score": 4, "reason": "right and brief, with one place not cited"}'
            """
        )
    )
    spoken = converse(at.seat, (), "rate it", Stage.EVALUATE)
    assert spoken.value.score == 4
    back = spoken.messages[2].text
    assert "score" in back and "reason" in back


@pytest.mark.spec("D6")
def test_an_answer_that_does_not_fit_twice_is_an_error(script):
    at = room(script("""[[turn]]\ntimes = 0\nanswer = '{"score": 9}'"""))
    with pytest.raises(SchemaUnmet):
        converse(at.seat, (), "rate it", Stage.EVALUATE)
    assert len(at.records) == 2


@pytest.mark.spec("D6")
def test_where_tools_are_offered_the_answer_is_a_call_with_its_schema(script):
    """A planner that reads never saw the schema, and prose failed twice."""
    plan = """{ calls = [{ name = "submit_tasks", arguments = {
        plan = [{ id = 1, path = "a.py", action = "edit", what = "round it", depends_on = [] }] } }] }"""
    at = room(
        script(
            f"""
            [[turn]]
            answer = {{ calls = [{{ name = "file_read", arguments = {{ path = "a.py" }} }}] }}
            [[turn]]
            answer = "I would round it."
            [[turn]]
            match = {{ user = "Call submit_tasks" }}
            answer = {" ".join(plan.split())}
            """
        ),
        mode=Mode.AGENT,
        role=RoleName.PLANNER,
    )
    sent: list[Request] = []

    def clean(request: Request) -> Request:
        sent.append(request)
        return request

    spoken = converse(replace(at.seat, clean=clean), (), "round the prices", Stage.PLAN)
    assert spoken.value is not None, spoken
    (offer,) = [tool for tool in sent[0].tools if tool.name == "submit_tasks"]
    assert "plan" in offer.input_schema["properties"] and at.tools.called == [("file_read", {"path": "a.py"})]


def test_an_earlier_dialogue_is_gone_on_with(script):
    at = room(script('[[turn]]\nanswer = "First."\n[[turn]]\nanswer = "Second."'))
    first = converse(at.seat, (), "one")
    second = converse(at.seat, first.messages, "two")
    assert [message.text for message in second.messages] == ["one", "First.", "two", "Second."]


@pytest.mark.spec("C11")
def test_an_answer_from_files_that_cites_none_of_them_is_sent_back_once(script):
    at = room(
        script(
            """
            [[turn]]
            answer = { calls = [{ name = "file_read", arguments = { path = "a.py" } }] }
            [[turn]]
            answer = "Three."
            [[turn]]
            match = { user = "- a.py" }
            answer = "Three (a.py:1)."
            """
        )
    )
    assert converse(at.seat, (), "how many?").text == "Three (a.py:1)."
    assert [event.name for event in at.heard(Corrected)] == ["uncited"]
