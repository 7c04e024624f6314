"""Reasoning: the two forms and what is wrong with a block, what stays of it, and the split while it streams."""

from __future__ import annotations

import itertools

import pytest
from agent.blocks import MACRO, MICRO
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.prompts import PromptRepository
from pawl.agent.reasoning import (
    CLOSE,
    MOST_BULLETS,
    OPEN,
    OUTCOME_CHARACTERS,
    SECTIONS,
    AnswerPart,
    AnswerPiece,
    ReasoningSplitter,
    outcome_of,
    parse,
    parse_bullets,
    parse_macro,
    parse_micro,
    split,
)
from pawl.core.run import DeliveryState, ReasoningFormat, ReasoningOutcome


@pytest.mark.spec("C7")
def test_a_whole_macro_block_is_taken_apart_and_leaves_the_answer():
    reasoned = parse_macro(MACRO)
    assert reasoned.problems == ()
    assert tuple(reasoned.parts) == SECTIONS
    assert reasoned.parts["Action"] == "Read tests/test_dates.py to see what is covered."
    assert (reasoned.delivery, reasoned.present) == (DeliveryState.NEEDS_WORK, True)
    assert reasoned.visible == "I start with the tests."
    assert reasoned.raw.startswith("## Analyze") and reasoned.raw.endswith("changed yet.")


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    "heading", ["## {}", "### {}:", "**{}**", "**{}:**", "{}:", "1. {}:", "{}", "# **{}**", "__{}__:", "  ## {}  "]
)
def test_headings_may_be_written_in_the_usual_ways(heading: str):
    text = MACRO
    for name in SECTIONS:
        text = text.replace(f"## {name}\n", heading.format(name) + "\n")
    assert parse_macro(text).problems == ()


@pytest.mark.spec("C7")
def test_a_heading_and_its_text_may_share_a_line():
    text = MACRO.replace("## Action\n", "Action: ")
    assert parse_macro(text).parts["Action"] == "Read tests/test_dates.py to see what is covered."


@pytest.mark.spec("C7")
def test_a_sentence_that_begins_with_the_name_of_a_section_is_no_heading():
    text = MACRO.replace("1. read the tests", "Action is taken after this.\nPlan the change in small steps")
    assert parse_macro(text).problems == ()


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ((CLOSE, ""), "the block is not closed with </reasoning>"),
        (("## Reflect\n", ""), "missing sections: Reflect"),
        (("## Reflect\n", "## Plan\n"), "missing sections: Reflect"),
        (("## Reflect\n", "## Plan\n"), "sections that occur more than once: Plan"),
        (("NEEDS_WORK:", "Soon:"), "Delivery does not begin with NEEDS_WORK or DONE"),
        (("NEEDS_WORK:", "needs_work:"), "Delivery does not begin with NEEDS_WORK or DONE"),
        (("I start", "<reasoning>\nmore\n</reasoning>\nI start"), "2 blocks where one was asked for"),
        ((MACRO[: MACRO.index(CLOSE)], ""), "there is no <reasoning> block"),
    ],
)
def test_a_malformed_block_says_what_is_wrong(change: tuple[str, str], problem: str):
    assert change[0] in MACRO
    reasoned = parse_macro(MACRO.replace(*change))
    assert problem in reasoned.malformed


@pytest.mark.spec("C7")
def test_a_block_that_says_done_is_done():
    assert parse_macro(MACRO.replace("NEEDS_WORK: nothing", "**DONE** all")).delivery is DeliveryState.DONE


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    ("section", "text"),
    [("Research", "None."), ("Plan", "TBD"), ("Reflect", "n/a"), ("Action", "Do it."), ("Analyze", "…")],
)
def test_a_section_that_says_nothing_is_thin(section: str, text: str):
    before, _, after = MACRO.partition(f"## {section}\n")
    thin = f"{before}## {section}\n{text}\n##{after.partition('##')[2]}"
    reasoned = parse_macro(thin)
    assert reasoned.malformed == ()
    assert reasoned.thin == (f"sections that say too little: {section}",)


@pytest.mark.spec("C7")
def test_a_block_of_the_same_phrases_is_thin():
    sections = "\n".join(f"## {name}\nthink about the problem carefully" for name in SECTIONS[:-1])
    reasoned = parse_macro(f"{OPEN}\n{sections}\n## Delivery\nNEEDS_WORK\n{CLOSE}\nok")
    assert reasoned.thin == ("26 words in all, where at least 40 were expected", "sections repeat each other")


@pytest.mark.spec("C8")
def test_a_whole_micro_block_has_what_happened_what_next_and_why():
    reasoned = parse_micro(MICRO)
    assert reasoned.problems == ()
    assert reasoned.parts["next"] == "read the lines around the failure"
    assert reasoned.visible == "Reading the file."


@pytest.mark.spec("C8")
def test_bullets_may_run_over_lines_and_carry_emphasis():
    text = MICRO.replace("- next:", "* **Next:**").replace("around the failure", "around\n  the failure")
    assert parse_micro(text).parts["next"] == "read the lines around the failure"
    assert parse_micro(text).problems == ()


@pytest.mark.spec("C8")
@pytest.mark.parametrize(
    ("bullets", "problem"),
    [
        (["happened: the test failed again", "why: no entry for it"], "2 bullets where 3 to 8 belong"),
        (["happened: a b c", "next: a b c", *["why: a b c"] * 7], "9 bullets where 3 to 8 belong"),
        (["happened: a b c", "next: a b c", "risk: a b c"], "no bullet begins with why:"),
        (["one two three", "four five six", "seven eight nine"], "no bullet begins with happened:, next:, why:"),
    ],
)
def test_a_malformed_micro_block_says_what_is_wrong(bullets: list[str], problem: str):
    assert problem in parse_bullets(bullets).malformed
    block = "\n".join(f"- {bullet}" for bullet in bullets)
    assert problem in parse_micro(f"{OPEN}\n{block}\n{CLOSE}").malformed


@pytest.mark.spec("C8")
def test_bullets_without_content_are_thin():
    assert parse_micro(MICRO.replace("read the lines around the failure", "continue")).thin == (
        "bullets that say too little: next",
    )


@pytest.mark.spec("C8")
def test_the_field_of_a_json_answer_and_the_block_mean_the_same():
    bullets = [line.removeprefix("- ") for line in MICRO.splitlines()[1:-2]]
    assert parse_bullets(bullets).parts == parse_micro(MICRO).parts
    assert len(bullets) <= MOST_BULLETS


@pytest.mark.spec("C7", "C8")
def test_the_examples_in_the_prompts_have_the_form_that_is_asked_for():
    prompts = PromptRepository.load()
    assert parse_macro(prompts.get("reasoning/macro").text).malformed == ()
    assert parse_micro(prompts.get("reasoning/micro").text).malformed == ()


def test_where_no_reasoning_was_asked_for_all_of_the_text_is_the_answer():
    reasoned = parse(ReasoningFormat.NONE, f" {MICRO}\n")
    assert (reasoned.visible, reasoned.present, reasoned.problems) == (MICRO, False, ())
    assert parse(ReasoningFormat.MICRO, MICRO) == parse_micro(MICRO)
    assert parse(ReasoningFormat.MACRO, MACRO) == parse_macro(MACRO)


@pytest.mark.spec("C9")
def test_only_the_outcome_stays():
    assert outcome_of(parse_macro(MACRO)) == ReasoningOutcome(
        plan_delta="1. read the tests\n2. replace the table by the calendar module",
        next_action="Read tests/test_dates.py to see what is covered.",
        risks="Century years could be wrong; a test with 1900 would show it.",
        delivery=DeliveryState.NEEDS_WORK,
    )
    more = MICRO.replace("</reasoning>", "- plan: drop step two\n- risk: others use the table\n</reasoning>")
    assert outcome_of(parse_micro(more)) == ReasoningOutcome(
        plan_delta="drop step two",
        next_action="read the lines around the failure",
        risks="others use the table",
        delivery=DeliveryState.NEEDS_WORK,
    )


@pytest.mark.spec("C9")
@pytest.mark.parametrize("filler", ["word ", "w"])
def test_an_outcome_is_bounded_and_ends_with_a_whole_word(filler: str):
    long = MACRO.replace("Read tests/test_dates.py", filler * 5000)
    action = outcome_of(parse_macro(long)).next_action
    assert len(action) <= OUTCOME_CHARACTERS + 2
    assert action.endswith(("word …", "www …"))


@pytest.mark.parametrize(
    ("text", "blocks", "visible"),
    [
        ("plain", (), "plain"),
        ("", (), ""),
        (f"{OPEN}a{CLOSE}b", ("a",), "b"),
        (f"  \n{OPEN}a{CLOSE}\n\n  b\n", ("a",), "b"),
        (f"Sure.\n{OPEN}a{CLOSE}\nb", ("a",), "Sure.\nb"),
        (f"{OPEN}{CLOSE}b", ("",), "b"),
        (f"{OPEN}a{CLOSE}{OPEN}b{CLOSE}c", ("a", "b"), "c"),
        (f"the tag {OPEN} is not at the start", (), f"the tag {OPEN} is not at the start"),
        (f"see:\n```\n{OPEN}\nx\n{CLOSE}\n```\nend", (), f"see:\n```\n{OPEN}\nx\n{CLOSE}\n```\nend"),
        (f"```\ncode\n```\n{OPEN}a{CLOSE}\nend", ("a",), "```\ncode\n```\nend"),
        (f"~~~~\n~~~\n{OPEN}\n~~~~\n{OPEN}a{CLOSE}", ("a",), f"~~~~\n~~~\n{OPEN}\n~~~~"),
        (f"```x``` is inline\n{OPEN}a{CLOSE}", ("a",), "```x``` is inline"),
        (f"x\n    {OPEN}", (), f"x\n    {OPEN}"),
        ("<Reasoning>a</REASONING>b", ("a",), "b"),
        (f"{OPEN}a < b </reason and more", ("a < b </reason and more",), ""),
        ("<reasoning", (), "<reasoning"),
        (f"{CLOSE}b", (), f"{CLOSE}b"),
    ],
)
def test_a_text_is_split_into_blocks_and_what_is_seen(text: str, blocks: tuple[str, ...], visible: str):
    parted = split(text)
    assert (parted.blocks, parted.visible) == (blocks, visible)


def streamed(chunks: list[str]) -> tuple[list[tuple[int, str]], str]:
    splitter = ReasoningSplitter()
    pieces: list[AnswerPiece] = []
    for chunk in chunks:
        pieces += splitter.feed(chunk)
    pieces += splitter.finish()
    blocks = [
        (number, "".join(piece.text for piece in pieces if piece.block == number))
        for number in range(1, splitter.blocks + 1)
    ]
    return blocks, "".join(piece.text for piece in pieces if piece.part is AnswerPart.VISIBLE)


FRAGMENTS = st.sampled_from(
    [
        OPEN,
        CLOSE,
        "<reasoning",
        "</reas",
        "<",
        ">",
        "\n",
        "\r\n",
        " ",
        "   ",
        "```",
        "````",
        "~~~",
        "`",
        "word",
        "- a",
        "é\u2028",
    ]
)


@pytest.mark.spec("C9")
@given(st.lists(FRAGMENTS, max_size=25).map("".join), st.data())
def test_however_an_answer_is_cut_the_split_is_the_same(text: str, data: st.DataObject):
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=10).map(sorted))
    places = [0, *cuts, len(text)]
    chunks = [text[start:end] for start, end in itertools.pairwise(places)]
    assert streamed(chunks) == streamed([text]) == streamed(list(text))
    assert split(text).visible == streamed([text])[1].rstrip()


@pytest.mark.spec("C9")
def test_what_is_known_to_be_visible_is_handed_over_at_once():
    splitter = ReasoningSplitter()
    assert splitter.feed("<reas") == ()
    assert splitter.feed("oning>why") == (AnswerPiece(AnswerPart.REASONING, "why", 1),)
    assert splitter.feed("</reasoning>\n\n") == ()
    assert splitter.feed("Hel") == (AnswerPiece(AnswerPart.VISIBLE, "Hel"),)
    assert splitter.feed("lo") == (AnswerPiece(AnswerPart.VISIBLE, "lo"),)
    assert splitter.finish() == ()


def test_long_and_hostile_answers_take_no_more_time_than_their_length():
    """In quadratic time these would run into the time limit of the suite."""
    for text in (f"{OPEN}\n" + "- x\n" * 100_000, " " * 300_000, "<" * 300_000, "`" * 300_000, "-" * 300_000):
        assert not parse_macro(f"{OPEN}{text}").visible
        assert not parse_micro(f"{OPEN}\n{text}").visible
