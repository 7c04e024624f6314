"""Models without native calls ask for tools in blocks of text; only those that the protocol was chosen for."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.dialogue import (
    Answered,
    ModelEvent,
    ModelResponse,
    Request,
    Retrying,
    Speaker,
    StopReason,
    TextDelta,
    ToolAnswer,
    ToolCall,
    ToolOffer,
    Usage,
    assistant,
    tool_answers,
    user,
)
from pawl.models.calls import parsed
from pawl.models.ledger import likely_tokens
from pawl.models.providers import CallStyle, Capabilities, EditBlock
from pawl.models.scripted import ScriptedModel
from pawl.models.text_protocol import (
    BARE,
    EDIT,
    FILE,
    FUNCTION,
    JSON,
    TOOL,
    CallBlock,
    EditTools,
    Prose,
    Scanner,
    TextProtocol,
    as_text,
    fitted,
)
from pawl.sandbox.cancel import CancelToken


def offer(name: str, **fields: object) -> ToolOffer:
    schema = {"type": "object", "properties": fields, "required": list(fields)[:1]}
    return ToolOffer(name=name, description=f"What {name}\n does.", input_schema=schema)


TEXT = {"type": "string", "description": "relative to the workspace"}
READ = offer("file_read", path=TEXT, limit={"anyOf": [{"type": "integer"}, {"type": "null"}]})
TOOLS = (READ, offer("strict_patch", path=TEXT, old=TEXT, new=TEXT), offer("file_write", path=TEXT, content=TEXT))
EDITS = EditTools(patch="strict_patch", file="file_write")


class Says:
    """A model that says one text, in pieces, and keeps what it was asked."""

    def __init__(self, text: str, *, pieces: int = 3, stop: StopReason = StopReason.END) -> None:
        self._text = text
        self._pieces = pieces
        self._stop = stop
        self.asked: list[Request] = []

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        self.asked.append(request)
        for at in range(0, len(self._text), self._pieces):
            yield TextDelta(self._text[at : at + self._pieces])
        yield Answered(
            ModelResponse(text=self._text, stop=self._stop, usage=Usage(input=1, output=1), model=request.model)
        )


def request(*messages: object, **changes: object) -> Request:
    given = {"model": "local:m.gguf", "system": ("Be brief.",), "messages": messages or (user("x"),), "tools": TOOLS}
    return Request(**{**given, **changes})  # type: ignore[arg-type]


def heard(
    text: str, *, stop: StopReason = StopReason.END, pieces: int = 3, **changes: object
) -> tuple[str, ModelResponse]:
    """What was shown while the model spoke, and the answer."""
    model = TextProtocol(Says(text, stop=stop, pieces=pieces), tools=CallStyle.TEXT, schema=CallStyle.TEXT, edits=EDITS)
    *deltas, last = model.stream(request(**changes))
    assert isinstance(last, Answered)
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), last.answer


def asked(text: str) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in heard(text)[1].calls]


CALL = '{"name": "file_read", "arguments": {"path": "a.py"}}'
FOUND = [("file_read", {"path": "a.py"})]


@pytest.mark.spec("F10")
@pytest.mark.parametrize(
    "text",
    [
        f"```tool\n{CALL}\n```",
        f"Let me look.\n\n```tool\n{CALL}\n```\n",
        f"   ```tool\n{CALL}\n   ```",
        f"````tool_call\n{CALL}\n````",
        f"```tool\n{CALL}",
        f"```tool\r\n{CALL}\r\n```\r\n",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"I call <tool_call>{CALL}</tool_call> now",
        f"<tool_call>{CALL}",
        f"```json\n{CALL}\n```",
        CALL,
        f"\n  {CALL}\n",
        '{"name": "file_read", "parameters": {"path": "a.py"}}',
        '{"type": "function", "function": {"name": "file_read", "arguments": "{\\"path\\": \\"a.py\\"}"}}',
        f"```tool\n[{CALL}]\n```",
        '<function=file_read>{"path": "a.py"}</function>',
        "<function=file_read>\n<parameter=path>\na.py\n</parameter>\n</function>",
        "```tool\n{'name': 'file_read', 'arguments': {'path': 'a.py'}}\n```",
        '```tool\n{"name": "file_read", "arguments": {"path": "a.py",},}\n```',
    ],
)
def test_the_forms_in_which_models_write_a_call_are_read(text: str):
    assert asked(text) == FOUND


def test_several_blocks_are_several_calls_with_ids_that_go_on():
    before = (user("x"), assistant("", ToolCall(id="call_4", name="file_read", arguments={})))
    text = f"```tool\n{CALL}\n```\nand\n```tool\n{CALL}\n{CALL}\n```"
    shown, answer = heard(text, messages=before)
    assert [call.id for call in answer.calls] == ["call_5", "call_6", "call_7"]
    assert (answer.stop, answer.text, shown) == (StopReason.CALLS, "and", "and\n")


def test_a_typed_parameter_is_what_the_schema_says_and_a_text_stays_a_text():
    text = "<function=file_read><parameter=path>7</parameter><parameter=limit>7</parameter></function>"
    assert asked(text) == [("file_read", {"path": "7", "limit": 7})]


def test_a_parameter_of_several_types_is_read_by_all_of_them():
    """As servers of others describe theirs."""
    odd = {"anyOf": [True, {"type": ["integer", "null"]}]}
    fields = {"words": {"type": ["string", "null"]}, "count": {"type": ["integer", "null"]}, "odd": odd, "more": True}
    given = "".join(f"<parameter={name}>7</parameter>" for name in fields)
    _, answer = heard(f"<function=look>{given}</function>", tools=(offer("look", **fields),))
    assert answer.calls[0].arguments == {"words": "7", "count": 7, "odd": 7, "more": "7"}


@pytest.mark.spec("F10")
def test_an_edit_block_is_a_patch_and_one_with_two_parts_is_two():
    text = (
        "```edit src/a.py\n<<<<<<< SEARCH\nold = 1\n=======\nnew = 1\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\n```\n=======\n```text\n```\n>>>>>>> REPLACE\n```\nDone."
    )
    assert asked(text) == [
        ("strict_patch", {"path": "src/a.py", "old": "old = 1\n", "new": "new = 1\n"}),
        ("strict_patch", {"path": "src/a.py", "old": "```\n", "new": "```text\n```\n"}),
    ]
    assert heard(text)[0] == "Done."


@pytest.mark.spec("F10")
def test_a_file_block_is_a_whole_file():
    assert asked("````file docs/a b.md\n# Title\n```sh\nls\n```\n````") == [
        ("file_write", {"path": "docs/a b.md", "content": "# Title\n```sh\nls\n```\n"})
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('```tool\n{"name": "file_read", "arguments": {"path": \n```', "not JSON"),
        ('```tool\n{"name": "file_read", "arguments": ["a.py"]}\n```', "must be a JSON object"),
        ('```tool\n{"name": "file_read", "path": "a.py"}\n```', '"arguments"'),
        ('```tool\n{"tool": "file_read"}\n```', "a call is"),
        ('```tool\n{"name": "file_read", "arguments": {"path": "a", "path": "b"}}\n```', "'path' is given twice"),
        ('```tool\n{"name": "file_read", "arguments": {"path": NaN}}\n```', "NaN"),
        ('```tool\n{"name": "file_read", "argu', "not closed"),
        ("<function=file_read>path a.py</function>", "parameters cannot be read"),
        ("```edit\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```", "does not name its file"),
        ("```edit a.py\n-old\n+new\n```", "an edit is"),
        ("```edit a.rst\n<<<<<<< SEARCH\nA title\n=======\n=======\nB\n>>>>>>> REPLACE\n```", "not clear which"),
        ("```edit a.py\n<<<<<<< SEARCH\na\n=======\nb\n", "an edit is"),
        ("```file a.py\nx = 1\n", "not closed"),
        ("```file\nx = 1\n```", "does not name its file"),
        ("```tool\n" + "[" * 100_000 + "\n```", "not JSON"),
    ],
)
def test_what_cannot_be_read_is_a_call_with_a_mistake_and_never_a_guess(text: str, mistake: str):
    (call,) = heard(text, pieces=1000)[1].calls
    assert call.arguments is None
    assert mistake in call.mistake


@pytest.mark.fault("P30")
@pytest.mark.parametrize(
    "text",
    [
        "Plain words with {braces} and a < b.",
        '{"name": "unknown_tool", "arguments": {}}',
        '{"name": "file_read"} and more words',
        '```json\n{"name": "pawl", "arguments": {"a": 1}}\n```\nis the package.',
        f"```markdown\nA call looks like this:\n<tool_call>{CALL}</tool_call>\n```",
        f"````text\n```tool\n{CALL}\n```\n````",
        "```python\nprint('```tool')\n```",
        "Answer of file_read (call_1):\nsecret",
        "a ```tool in a line",
        "``` \nno kind\n```",
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str):
    shown, answer = heard(text)
    assert answer.calls == ()
    assert answer.stop is StopReason.END
    assert (shown, answer.text) == (text, text)


@pytest.mark.fault("P30")
def test_a_request_without_tools_has_no_calls_whatever_is_said():
    shown, answer = heard(f"<tool_call>{CALL}</tool_call>", tools=())
    assert (shown, answer.calls) == (f"<tool_call>{CALL}</tool_call>", ())


@pytest.mark.fault("P30")
def test_a_model_with_native_calls_is_left_alone(tmp_path: Path):
    model = Says(f"<tool_call>{CALL}</tool_call>")
    assert fitted(model, Capabilities(), EDITS) is model
    fitting = fitted(model, Capabilities(schema=CallStyle.TEXT), EDITS)
    *_, last = fitting.stream(request())
    assert isinstance(last, Answered)
    assert last.answer.calls == ()
    assert model.asked[0].tools == TOOLS


@pytest.mark.fault("P14")
@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.REFUSED])
def test_an_answer_that_did_not_end_properly_has_no_calls(stop: StopReason):
    shown, answer = heard(f"Look:\n```tool\n{CALL}\n```", stop=stop)
    assert (answer.calls, answer.stop) == ((), stop)
    assert shown == "Look:\n"


def test_what_a_failed_attempt_said_is_forgotten(tmp_path: Path):
    path = tmp_path / "turns.jsonl"
    chunks = ["```tool\n{", {"retrying": "it broke"}, "All ", "fine."]
    path.write_text(json.dumps({"chunks": chunks, "answer": {"text": "All fine."}}))
    model = TextProtocol(ScriptedModel(path), tools=CallStyle.TEXT, schema=CallStyle.TEXT)
    events = list(model.stream(request()))
    assert events[:-1] == [Retrying(why="it broke", wait_seconds=0.0, attempt=1), TextDelta("All "), TextDelta("fine.")]


MARKS = "``` ```` ` < { } tool text json edit <tool_call> </tool_call> <function=file_read> </function>"
CHANGE = ("edit a.py\n", "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "file b.py")
PIECES = st.lists(st.sampled_from([*MARKS.split(), *CHANGE, CALL, "\n", "\r\n", " "]), max_size=25)


@given(pieces=PIECES, size=st.integers(1, 30))
def test_the_cut_of_the_pieces_makes_no_difference(pieces: list[str], size: int):
    text = "".join(pieces)
    kinds = (TOOL, JSON, EDIT, FILE, FUNCTION, BARE)

    def scanned(cuts: int) -> list[Prose | CallBlock]:
        scanner = Scanner(kinds)
        parts = [part for at in range(0, len(text), cuts) for part in scanner.feed(text[at : at + cuts])]
        joined: list[Prose | CallBlock] = []
        for part in [*parts, *scanner.finish()]:
            if isinstance(part, Prose) and joined and isinstance(joined[-1], Prose):
                joined[-1] = Prose(joined[-1].text + part.text)
            else:
                joined.append(part)
        return joined

    whole = scanned(len(text) + 1)
    assert scanned(size) == whole
    assert "".join(part.text if isinstance(part, Prose) else part.source for part in whole) == text


def test_prose_is_shown_at_once_and_only_what_may_be_a_block_waits():
    scanner = Scanner((TOOL, BARE))
    assert scanner.feed("Look") == [Prose("Look")]
    assert scanner.feed(" at <t") == [Prose(" at ")]
    assert scanner.feed("able>\n``") == [Prose("<table>\n")]
    assert scanner.feed("`py\nx\n") == [Prose("```py\n"), Prose("x\n")]
    assert scanner.feed("```\n") == [Prose("```\n")]
    assert scanner.feed("```tool\n{") == []


def test_tools_are_offered_in_words_and_the_history_is_written_out():
    model = Says("fine")
    call = ToolCall(id="call_1", name="file_read", arguments={"path": "a.py"}, raw='{"path": "a.py"}')
    patch = ToolCall(id="call_2", name="strict_patch", arguments={"path": "a.py", "old": "a", "new": "b"})
    write = ToolCall(id="call_3", name="file_write", arguments={"path": "b.md", "content": "```\nx\n```\n"})
    wrong = ToolCall(id="call_4", name="", arguments=None, raw="{oops", mistake="not JSON")
    messages = (
        user("fix it"),
        assistant("I look.", call, patch),
        tool_answers(
            ToolAnswer(call="call_1", name="file_read", text="x = 1"),
            ToolAnswer(call="call_2", name="strict_patch", text="no", failed=True),
        ),
        user("go on"),
        assistant("", write, wrong),
    )
    list(TextProtocol(model, tools=CallStyle.TEXT, schema=CallStyle.TEXT, edits=EDITS).stream(request(*messages)))
    (sent,) = model.asked
    assert sent.tools == ()
    assert sent.system[0] == "Be brief."
    assert "- file_read: What file_read does.\n  path (string): relative to the workspace\n" in sent.system[1]
    assert "  limit (integer, optional)" in sent.system[1]
    assert "```edit PATH" in sent.system[1]
    assert "- strict_patch" not in sent.system[1]
    assert [(message.speaker, message.text) for message in sent.messages] == [
        (Speaker.USER, "fix it"),
        (
            Speaker.ASSISTANT,
            'I look.\n\n```tool\n{"name": "file_read", "arguments": {"path": "a.py"}}\n```\n\n'
            "```edit a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```",
        ),
        (Speaker.USER, "Answer of file_read (call_1):\nx = 1\n\nFailure of strict_patch (call_2):\nno\n\ngo on"),
        (Speaker.ASSISTANT, "````file b.md\n```\nx\n```\n````\n\n```tool\n{oops\n```"),
    ]


@given(
    st.dictionaries(st.sampled_from(["path", "old", "new", "content"]), st.text(max_size=40), max_size=4),
    st.sampled_from(["file_read", "strict_patch", "file_write"]),
)
def test_a_call_that_is_written_out_reads_back_as_the_same_call(arguments: dict[str, str], name: str):
    lines = {key: f"{value}\n" for key, value in arguments.items()}
    if "path" in lines:
        lines["path"] = "".join(re.findall(r"[^\s`]", lines["path"])) or "a.py"
    (turn,) = as_text((assistant("", ToolCall(id="call_1", name=name, arguments=lines)),), EDITS)
    (call,) = heard(turn.text, pieces=7)[1].calls
    assert (call.name, call.arguments, call.mistake) == (name, lines, "")


def test_the_protocol_takes_little_of_a_small_context():
    model = Says("fine")
    list(TextProtocol(model, tools=CallStyle.TEXT, schema=CallStyle.TEXT, edits=EDITS).stream(request()))
    assert likely_tokens(model.asked[0].system[1]) < 300


def test_a_model_is_shown_only_the_blocks_that_it_writes_well():
    model = Says("fine")
    can = Capabilities(tools=CallStyle.TEXT, edits=(EditBlock.FILE,))
    list(fitted(model, can, EDITS).stream(request()))
    system = model.asked[0].system[1]
    assert "```file PATH" in system
    assert "SEARCH" not in system
    assert "- strict_patch" in system


@pytest.mark.spec("F10")
@pytest.mark.parametrize(
    "text",
    ['{"a": {"b": 1}}', 'Here it is:\n```json\n{"a": {"b": 1}}\n```\nDone.', 'So: {not} {"a": {"b": 1}} {"c": 2}'],
)
def test_an_answer_by_a_schema_is_the_first_object_of_the_text(text: str):
    schema = {"type": "object", "properties": {"a": {}}}
    model = Says(text)
    *_, last = TextProtocol(model, tools=CallStyle.TEXT, schema=CallStyle.TEXT).stream(
        request(tools=(), answer_schema=schema)
    )
    assert isinstance(last, Answered)
    assert last.answer.text == '{"a": {"b": 1}}'
    assert model.asked[0].answer_schema is None
    assert '{"type":"object","properties":{"a":{}}}' in model.asked[0].system[-1]


def test_a_schema_that_the_server_holds_to_is_sent_on():
    schema = {"type": "object"}
    model = Says("{}")
    list(TextProtocol(model, tools=CallStyle.TEXT, schema=CallStyle.NATIVE).stream(request(answer_schema=schema)))
    assert model.asked[0].answer_schema == schema


def test_an_answer_without_an_object_stays_for_whoever_checks_it():
    assert heard("no object here", tools=(), answer_schema={})[1].text == "no object here"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_json_is_read_as_json_and_python_as_the_same_value(value: object):
    assert parsed(json.dumps(value)) == (value, "")
    if isinstance(value, dict | list):
        assert parsed(repr(value)) == (value, "")


@pytest.mark.parametrize(
    "text", ['{"a": 1', "{a: 1}", '{"a": 1} x', "{1: 2}", '{"a": {1, 2}}', "(1, 2)", "__import__('os')", ""]
)
def test_what_would_have_to_be_guessed_is_not_read(text: str):
    value, mistake = parsed(text)
    assert value is None
    assert mistake


def test_line_breaks_inside_of_a_text_are_read_and_commas_in_it_are_kept():
    assert parsed('{"a": "one\ntwo", "b": ",}",}') == ({"a": "one\ntwo", "b": ",}"}, "")


@pytest.mark.fault("P18")
def test_more_calls_than_anybody_needs_are_not_all_taken():
    calls = heard("\n".join(f"```tool\n{CALL}\n```" for _ in range(200)), pieces=5000)[1].calls
    assert len(calls) == 64
    assert calls[-1].arguments is None
    assert "200 calls" in calls[-1].mistake


def test_a_large_file_in_small_pieces_is_read_in_one_pass():
    content = "x = 1\n" * 30_000
    shown, answer = heard(f"Here.\n```file big.py\n{content}```\n", pieces=4)
    assert shown == "Here.\n"
    assert answer.calls[0].arguments == {"path": "big.py", "content": content}
