"""Compression: a pure function of the dialogue that keeps it valid, keeps what matters, and stops when it is no use."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.compression import (
    OPENING,
    CompressionLimits,
    CompressionState,
    Compressor,
    KeptWords,
    compress,
    is_due,
    is_summary,
    noted,
    summarized,
)
from pawl.agent.session_memory import Worksheet
from pawl.core.dialogue import (
    Message,
    Speaker,
    Thought,
    ToolAnswer,
    ToolCall,
    assistant,
    dialogue_tokens,
    tool_answers,
    user,
)
from pawl.core.typed import plain, typed

pytestmark = pytest.mark.spec("C13")

TASK = "Make the cart round prices.\nNever touch the file tax.py."
FRESH = CompressionState()
SMALL = CompressionLimits(tokens=3_000, tail_tokens=1_000)


def call(name: str, number: int, **arguments: object) -> ToolCall:
    return ToolCall(id=f"call-{number}", name=name, arguments=arguments, raw=json.dumps(arguments))


def step(name: str, number: int, text: str, *, failed: bool = False, say: str = "", **arguments: object) -> list:
    made = call(name, number, **arguments)
    return [assistant(say, made), tool_answers(ToolAnswer(call=made.id, name=name, text=text, failed=failed))]


def dialogue(steps: int = 30) -> list[Message]:
    messages = [user("Which file sums the prices?"), assistant("cart.py:10 does, we decided to keep it."), user(TASK)]
    messages += step("file_search", 900, "cart.py:10: sum(prices)", query="sum", say="1. read\n2. edit\n3. test")
    messages += step("strict_patch", 901, "patched", path="cart.py", old="a", new="b")
    messages += step("run_command", 902, "collected 3\n2 passed, 1 failed: test_rounding", command="pytest -q")
    messages += step("check", 903, "ruff is missing", failed=True, what="lint")
    for number in range(steps):
        messages += step(
            "file_read", number, f"     1 | the text of file {number}\n" * 40, path=f"src/file_{number}.py"
        )
    return messages


def assert_valid(messages: tuple[Message, ...] | list[Message]) -> None:
    """Each call is answered once, in the next message, and no answer is without its call."""
    for place, message in enumerate(messages):
        if message.calls:
            answers = messages[place + 1].answers
            assert [answer.call for answer in answers] == [one.id for one in message.calls]
        if message.speaker is Speaker.TOOL:
            assert messages[place - 1].calls


def test_a_long_dialogue_becomes_a_summary_the_request_and_the_last_turns():
    messages = dialogue()
    made = compress(messages, KeptWords(request=2), FRESH, limits=SMALL)
    assert made.why_not == "" and made.after_tokens < made.before_tokens // 2
    assert (made.before_tokens, made.after_tokens) == (dialogue_tokens(messages), dialogue_tokens(made.messages))
    assert is_summary(made.messages[0]) and made.messages[1] is messages[2]
    assert made.messages[2:] == tuple(messages[-6:])
    assert_valid(made.messages)


def test_the_summary_holds_goals_decisions_plan_open_issues_files_and_outputs():
    summary = compress(dialogue(), KeptWords(request=2), FRESH, limits=SMALL).messages[0].text
    for part in (
        "## Goals\n- Which file sums the prices?",
        "## Decisions and answers\n- cart.py:10 does, we decided to keep it.",
        "## Plan\n- 1. read\n- 2. edit\n- 3. test",
        '## Open issues\n- check {"what": "lint"} failed: ruff is missing',
        "- changed cart.py",
        "- read src/file_0.py",
        '- file_search {"query": "sum"}:\n  cart.py:10: sum(prices)',
        '- run_command {"command": "pytest -q"}:\n  collected 3\n  2 passed, 1 failed: test_rounding',
    ):
        assert part in summary, part


def test_rules_stay_word_for_word_through_many_compressions():
    worksheet = Worksheet(task="round prices").with_done("patched cart.py").with_next(["run the tests"])
    messages, state = [user("You must keep Python 3.11."), assistant("Yes."), *dialogue()[2:]], FRESH
    request = messages[2]
    for turn in range(4):
        kept = KeptWords(request=messages.index(request), worksheet=worksheet)
        made = compress(messages, kept, state, limits=SMALL)
        assert made.why_not == "", turn
        text = made.messages[0].text
        assert text.count("You must keep Python 3.11.") == 2  # as a rule and as a goal
        assert text.count("patched cart.py") == 1 and text.count(OPENING) == 1
        assert request in made.messages and text.count("run the tests") == 1
        messages, state = list(made.messages), made.state
        for number in range(100 * turn + 100, 100 * turn + 120):
            messages += step("file_read", number, f"new {number}" * 300, path=f"src/more_{number}.py")
    assert state.times == 4


def test_no_reasoning_is_carried_over():
    secret = "I secretly think of elephants"
    messages = dialogue()
    messages[4:4] = [
        Message(
            speaker=Speaker.ASSISTANT,
            text=f"<reasoning>{secret}</reasoning>Now I know.\n<think>{secret}",
            thoughts=(Thought(text=secret, signature="s"),),
        ),
        user("Go on."),
    ]
    made = compress(messages, KeptWords(request=2), FRESH, limits=SMALL)
    assert secret not in str(made.messages)


def test_thoughts_stay_only_in_the_loop_that_needs_them():
    thinking = Message(speaker=Speaker.ASSISTANT, text="So.", thoughts=(Thought(text="old", signature="s"),))
    messages = [*dialogue(), thinking, user("next"), *step("file_read", 77, "x", path="a")]
    loop = Message(speaker=Speaker.ASSISTANT, calls=messages[-2].calls, thoughts=(Thought(text="new", signature="s"),))
    messages[-2] = loop
    request = len(messages) - 3
    made = compress(messages, KeptWords(request=request), FRESH, limits=SMALL)
    assert loop in made.messages and "old" not in str([message.thoughts for message in made.messages])


def test_a_short_dialogue_is_left_alone():
    messages = dialogue(2)
    assert not is_due(messages, CompressionLimits())
    made = compress(messages, KeptWords(request=2), FRESH, limits=SMALL)
    assert made.messages == tuple(messages) and made.why_not == "it is still short" and made.state == FRESH


@pytest.mark.parametrize(
    ("messages", "due"),
    [
        ([user("x")] * 400, False),
        ([user("x" * 240_004)], True),
        ([user("x" * 240_000)], False),
    ],
)
def test_it_is_due_by_tokens_however_many_messages_there_are(messages, due):
    assert is_due(messages, CompressionLimits()) is due


def test_reading_the_same_files_again_is_no_progress_and_is_not_compressed_again():
    first = compress(dialogue(), KeptWords(request=2), FRESH, limits=SMALL)
    again = list(first.messages)
    for number in range(30):
        again += step(
            "file_read", number + 500, f"     1 | the text of file {number}\n" * 40, path=f"src/file_{number}.py"
        )
    second = compress(again, KeptWords(request=1), first.state, limits=SMALL)
    assert second.why_not.startswith("nothing new") and second.messages == tuple(again)
    again += step("run_command", 999, "3 passed", command="pytest")
    assert compress(again, KeptWords(request=1), first.state, limits=SMALL).why_not == ""


def test_what_the_model_could_not_read_is_cut_at_lines_even_in_a_short_dialogue():
    output = "\n".join(f"line {n}" for n in range(9000))
    messages = [user("go"), *step("file_read", 1, output, path="a.py")]
    made = compress(messages, KeptWords(request=0), FRESH, too_long=True)
    text = made.messages[-1].answers[0].text
    assert made.after_tokens < made.before_tokens // 10
    shown, mark = text.rsplit("\n", 1)
    assert output.startswith(f"{shown}\n") and mark.startswith("[… ")
    assert_valid(made.messages)


def test_an_answer_that_the_model_has_not_read_yet_stays_whole():
    output = "\n".join(f"line {n}" for n in range(3_000))
    seen = step("file_read", 1, output, path="a.py")
    asked = step("file_read", 2, output, path="b.py")
    made = compress([user("go"), *seen, *asked], KeptWords(request=0), FRESH, limits=SMALL)
    assert made.messages[-1] == asked[1] and made.after_tokens < made.before_tokens


def test_the_compressor_goes_on_from_its_state_and_gives_back_what_it_cannot_shorten():
    compressor = Compressor(limits=SMALL)
    messages = dialogue()
    made = compressor(messages, request=2, too_long=False)
    assert len(made) < len(messages) and compressor.state.times == 1
    assert compressor(made, request=1, too_long=True) is made


def test_a_worksheet_follows_the_calls_of_tools():
    sheet = Worksheet().with_next(["strict_patch cart.py"])
    for one in (dialogue(1)[3:5], dialogue(1)[5:7], dialogue(1)[7:9], dialogue(1)[9:11], dialogue(1)[11:13]):
        sheet = noted(sheet, one[0].calls[0], one[1].answers[0])
    assert sheet == Worksheet(done=("strict_patch cart.py", "run_command pytest -q"), read=("src/file_0.py",))
    assert typed(Worksheet, json.loads(json.dumps(plain(sheet)))) == sheet


TEXTS = st.text("abc \n#-.", max_size=200)


@st.composite
def dialogues(draw) -> tuple[list[Message], int]:
    messages: list[Message] = []
    requests: list[int] = []
    for number in range(draw(st.integers(1, 30))):
        if draw(st.booleans()) or not messages:
            requests.append(len(messages))
            messages.append(user(draw(TEXTS)))
        names = draw(st.lists(st.sampled_from(["file_read", "run_command", "strict_patch"]), max_size=3))
        calls = [call(name, 10 * number + place, path=draw(TEXTS)) for place, name in enumerate(names)]
        messages.append(assistant(draw(TEXTS), *calls))
        if calls:
            answers = [
                ToolAnswer(call=one.id, name=one.name, text=draw(TEXTS) * 5, failed=draw(st.booleans()))
                for one in calls
            ]
            messages.append(tool_answers(*answers))
    return messages, requests[-1]


@given(dialogues(), st.booleans(), st.integers(0, 2000))
def test_whatever_was_said_compression_keeps_it_valid_and_never_makes_it_longer(given_one, too_long, tokens):
    messages, request = given_one
    limits = CompressionLimits(tokens=tokens)
    made = compress(messages, KeptWords(request=request), FRESH, limits=limits, too_long=too_long)
    assert_valid(made.messages)
    assert any(message is messages[request] for message in made.messages)
    assert made.after_tokens <= made.before_tokens == dialogue_tokens(messages)
    assert made == compress(messages, KeptWords(request=request), FRESH, limits=limits, too_long=too_long)
    assert made.messages[-1].speaker is messages[-1].speaker


@given(dialogues())
def test_a_summary_read_back_is_the_same_summary(given_one):
    messages, _ = given_one
    once = summarized(messages)
    assert summarized([user(once.text)]) == once


def test_a_long_rule_on_one_line_stays_word_for_word():
    rule = "Never change the public names, " + "because the others rely on each of them, " * 60 + "whatever they ask."
    messages = [user(f"Make the cart round prices.\n{rule}"), *dialogue()[1:]]
    once = compress(messages, KeptWords(request=2), FRESH, limits=SMALL).messages[0].text
    assert len(rule) > 2_000 and f"- {rule}\n" in once
    again = summarized([user(once), user("go on")])
    assert rule in again.rules


def test_of_a_line_that_is_longer_than_any_rule_its_sentences_that_are_rules_stay():
    filler = "The weather was fine that day. " * 200
    found = summarized([user(f"{filler}Always keep the tests green. {filler}")])
    assert found.rules == ("Always keep the tests green.",)


def test_rules_together_are_bounded_and_the_first_stay():
    given_rules = [f"Always do number {number}: {'x' * 3_000}" for number in range(20)]
    found = summarized([user("\n".join(given_rules))])
    assert found.rules == tuple(given_rules[:5])
