"""`pawl do`, `pawl approve` and `pawl -p` as a person and a program use them, through real processes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from agent.blocks import MACRO, MICRO
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_docs import keys, section

FILES = {
    **SETTINGS,
    "app.py": "def after(number):\n    return number + 2\n",
    "test_app.py": "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n",
}
FIX = """
[[turn]]
answer = { text = "I look.", calls = [{ name = "file_read", arguments = { path = "app.py" } }] }
[[turn]]
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } }] }
[[turn]]
answer = "One is added now."
"""
RIGHT = "def after(number):\n    return number + 1\n"

Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str) -> str:
        (tmp_path / "script.toml").write_text(text)
        return f"scripted:{tmp_path / 'script.toml'}"

    return write


@pytest.mark.whole
@pytest.mark.spec("A1", "B7")
def test_a_request_waits_for_approval_and_is_promoted_by_another_process(project: Project, script: Script):
    pawl = project(FILES)
    said = pawl("do", "fix", "the", "bug", "in", "after", "--model", script(FIX))
    assert said.code == 4, said
    assert "before    1 failed\nafter     1 passed\n" in said.out
    assert "-    return number + 2\n+    return number + 1\n" in said.out
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
    shown = pawl.json("approve", code=4)
    assert shown["question"]["kind"] == "change" and shown["state"] == "waiting"
    assert {key for key in keys(shown) if f"`{key}`" not in section("do") + section("history")} <= {
        "path", "what", "mode", "added", "removed", "binary",
    }  # fmt: skip
    stale = pawl("approve", "--yes", "--digest", "0" * 64)
    assert stale.code == 4 and "a different change" in stale.out
    done = pawl("approve", shown["run"], "--yes")
    assert done.code == 0, done
    assert "promoted as entry 1; undo with: pawl undo 1" in done.out
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert pawl("approve").code == 42


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_in_a_terminal_the_user_is_asked_and_may_answer_later(project: Project, script: Script):
    pawl = project(FILES)
    with pawl.terminal("do", "fix the bug in after", "--model", script(FIX)) as terminal:
        terminal.expect("promote this?")
        terminal.type("\n")
        assert terminal.finish() == 4
    with pawl.terminal("approve") as terminal:
        terminal.expect("promote this?")
        terminal.type("y\n")
        assert terminal.finish() == 0
    assert (pawl.workspace / "app.py").read_text() == RIGHT


@pytest.mark.whole
@pytest.mark.spec("F5")
def test_every_event_is_a_line_and_the_last_is_the_result(project: Project, script: Script):
    pawl = project(FILES)
    words = [
        "-p",
        "fix the bug in after",
        "--model",
        script(FIX),
        "--output-format",
        "stream-json",
        "--approve",
        "never",
    ]
    said = pawl(*words)
    assert said.code == 0, said
    lines = [json.loads(line) for line in said.lines]
    assert (lines[0]["type"], lines[0]["subtype"]) == ("system", "init")
    assert "strict_patch" in lines[0]["tools"]
    blocks = [line["message"]["content"][0] for line in lines if line["type"] in ("assistant", "user")]
    used = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert used == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert [line["type"] for line in lines].count("result") == 1
    result = lines[-1]
    assert (result["type"], result["subtype"], result["is_error"]) == ("result", "success", False)
    assert (result["result"], result["num_turns"], result["entry"]) == ("One is added now.", 3, 1)
    assert {line["session_id"] for line in lines} == {result["session_id"]}
    unnamed = {key for key in keys(result) if f"`{key}`" not in section("do")}
    assert unnamed <= {"path", "what", "mode", "kind", "added", "removed", "binary", "cache_read_input_tokens"} | {
        key for key in unnamed if key.startswith(("scripted:", "input", "output"))
    }


@pytest.mark.whole
@pytest.mark.spec("E13")
def test_a_fix_that_brings_a_file_back_to_head_is_not_said_to_be_committed(project: Project, script: Script):
    pawl = project(FILES)
    (pawl.workspace / "app.py").write_text(RIGHT)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=pawl.workspace, check=True)
    (pawl.workspace / "app.py").write_text(FILES["app.py"])
    words = ("do", "fix the bug in after", "--approve", "never", "--commit")
    said = pawl(*words, "--model", script(FIX), "--json")
    body = json.loads(said.out)
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert (body["commit"], "not committed: nothing differs from HEAD" in body["notes"]) == ("", True), said
    (pawl.workspace / "app.py").write_text(FILES["app.py"])
    told = pawl(*words, "--model", script(FIX))
    assert "committed as" not in told.out and "not committed: nothing differs from HEAD" in told.out + told.err, told


@pytest.mark.spec("B13", "F5")
@pytest.mark.parametrize("form", ["stream-json", "json", "text"])
def test_the_stream_holds_what_the_model_was_sent_and_no_secret_of_a_file(project: Project, script: Script, form: str):
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    pawl = project({"notes.txt": f"first\ngithub = {token}\n"})
    model = script(f"""
[[turn]]
match = {{ answered = [] }}
answer = {{ text = "as {token}", calls = [{{ name = "file_read", arguments = {{ path = "notes.txt" }} }}] }}
[[turn]]
match = {{ answered = ["file_read"] }}
answer = {{ calls = [{{ name = "run_command", arguments = {{ argv = ["grep", "{token}", "notes.txt"] }} }}] }}
[[turn]]
times = 0
answer = "It is {token} (notes.txt:2)."
""")
    said = pawl("-p", "what does notes.txt say?", "--model", model, "--output-format", form)
    assert token not in said.out + said.err
    assert "[redacted]" in said.out
    if form == "stream-json":
        blocks = [json.loads(line).get("message", {}).get("content", [{}])[0] for line in said.lines]
        brought = [block["content"] for block in blocks if block.get("type") == "tool_result"]
        assert "first" in brought[0] and len(brought) == 2


@pytest.mark.whole
def test_what_a_model_says_to_pawl_itself_is_not_shown_as_an_answer(project: Project, script: Script):
    pawl = project(FILES)
    checked = json.dumps({"state": "DONE", "evidence": ["it is said"], "remaining": []})
    turns = f"[[turn]]\nanswer = 'Good morning.'\n[[turn]]\nanswer = {json.dumps(checked)}\n"
    shown = pawl("do", "good morning", "--model", script(turns))
    assert (shown.code, "Good morning." in shown.out) == (0, True), shown
    assert "evidence" not in shown.out + shown.err
    words = ("-p", "good morning", "--model", script(turns), "--output-format", "stream-json")
    assert '\\"evidence\\"' not in pawl(*words).out


def test_what_a_command_prints_is_shown_while_it_runs(project: Project, script: Script):
    pawl = project(FILES)
    command = json.dumps({"command": "echo first; echo key sk-ant-api03-0123456789abcdefghij >&2; seq 100 140"})
    calls = f"[[turn]]\nanswer = {{ calls = [{{ name = 'run_command', raw = '{command}' }}] }}\n"
    turns = f"{calls}[[turn]]\nanswer = 'It printed numbers.'\n"
    said = pawl("do", "could you count for me?", "--model", script(turns))
    shown = [line for line in said.err.splitlines() if line.startswith("  | ")]
    assert "  | first" in shown and shown[-1] == "  | …" and len(shown) == 21, said
    assert "sk-ant" not in said.err
    streamed = pawl("-p", "could you count for me?", "--model", script(turns), "--output-format", "stream-json")
    lines = [one for one in map(json.loads, streamed.lines) if one.get("subtype") == "output"]
    texts = [one["text"] for one in lines]
    # Two pipes have no order between them.
    assert [one for one in texts if "key" not in one][:: len(texts) - 2] == ["first", "140"], texts


@pytest.mark.spec("B1")
@pytest.mark.parametrize(
    ("request_", "state", "code"),
    [
        ("kannst du sagen, was after tut?", "", 0),
        ("after is off by one, see to it", "NEEDS_WORK", 1),
        ("merci beaucoup", "DONE", 0),
    ],
)
def test_no_model_is_asked_only_to_sort_a_request(
    project: Project, script: Script, request_: str, state: str, code: int
):
    """A question has its answer; that nothing was to be changed for any other words is for the delivery check."""
    pawl = project(FILES)
    body = {"state": state, "evidence": ["said"], "remaining": ["the change"] if state == "NEEDS_WORK" else []}
    check = f"[[turn]]\nmatch = {{ schema = true }}\nanswer = '{json.dumps(body)}'\n" if state else ""
    turns = f"[[turn]]\nmatch = {{ tools = ['strict_patch'] }}\nanswer = 'It is done.'\n{check}"
    said = pawl("do", request_, "--reasoning", "off", "--json", "--model", script(turns))
    told = json.loads(said.out)
    assert (said.code, told["requests"]) == (code, 2 if state else 1), said
    assert (told["delivery"], told["intent"]) == (("DONE", "read") if code == 0 else ("NEEDS_WORK", "edit"))


@pytest.mark.whole
@pytest.mark.spec("C7", "C9")
def test_with_reasoning_a_first_look_ends_no_request_and_its_block_is_corrected_in_its_own_form(
    project: Project, tmp_path: Path
):
    pawl = project(FILES)
    done = MICRO.replace("</reasoning>\nReading the file.", "- delivery: DONE\n</reasoning>\nOne is added now.")
    patch = {"name": "strict_patch", "arguments": {"path": "app.py", "old": "+ 2", "new": "+ 1"}}
    macro, micro = {"system": "Reasoning: macro"}, {"system": "Reasoning: micro"}
    turns = [
        {"match": macro, "answer": "<reasoning>\nAnalyze: short\n</reasoning>\nI look."},
        {
            "match": {**macro, "user": "does not have the form"},
            "answer": MACRO.replace("NEEDS_WORK: nothing is changed yet", "DONE: every part was shown to work"),
        },
        {"match": {**micro, "user": "That was the first look"}, "answer": {"text": MICRO, "calls": [patch]}},
        {"match": {**micro, "answered": ["strict_patch"]}, "answer": done},
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(f"{json.dumps(turn)}\n" for turn in turns))
    words = ("fix the bug in after", "--reasoning", "on", "--approve", "never", "--no-escalate")
    said = pawl("do", *words, "--json", "--model", f"scripted:{script}")
    told = json.loads(said.out)
    assert (said.code, told["delivery"], told["verdict"], told["requests"]) == (0, "DONE", "verified", 4), said
    assert (pawl.workspace / "app.py").read_text() == RIGHT


@pytest.mark.whole
@pytest.mark.spec("F5")
def test_what_needs_a_yes_is_no_success_for_a_program(project: Project, script: Script):
    pawl = project(FILES)
    said = pawl("-p", "fix the bug in after", "--model", script(FIX), "--output-format", "json")
    result = json.loads(said.out)
    assert (said.code, result["exit_code"], result["is_error"]) == (4, 4, True)
    assert result["result"].endswith(f"pawl approve {result['session_id']} --yes, or --reject REASON"), "one hunk"
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]


def test_a_program_without_a_model_is_told_how_to_name_one(project: Project):
    said = project(FILES)("-p", "add a line to app.py")
    assert (said.code, said.out) == (52, "")
    assert said.err.splitlines()[1].strip() == (
        "find and save one with: pawl setup; or name one with --model provider/name"
    )


FAULTS = [
    ('fault = "not_authorized"', 41, "error_during_execution"),
    ('fault = "rate_limited"', 75, "error_during_execution"),
    ('fault = "unknown_model"', 52, "error_during_execution"),
]


@pytest.mark.whole
@pytest.mark.spec("F5")
@pytest.mark.parametrize(("fault", "code", "subtype"), FAULTS)
def test_trouble_with_a_model_is_told_in_the_result_and_the_run_can_go_on(
    project: Project, script: Script, fault: str, code: int, subtype: str
):
    pawl = project({"notes.txt": "x\n"})
    model = script(f"[[turn]]\n{fault}\nanswer = 'x'\n")
    said = pawl("-p", "add a line to notes.txt", "--model", model, "--output-format", "json")
    result = json.loads(said.out)
    assert (said.code, result["subtype"], result["is_error"]) == (code, subtype, True)
    script("""
[[turn]]
times = 1
fault = "overloaded"
answer = "x"
[[turn]]
answer = { calls = [{ name = "file_write", arguments = { path = "more.txt", content = "y\\n" } }] }
[[turn]]
answer = "Written."
""")
    done = pawl.json("do", "--resume", result["session_id"], code=4)
    assert done["run"] == result["session_id"] and done["answer"] == "Written."


@pytest.mark.whole
@pytest.mark.spec("F5")
def test_turns_and_money_have_their_own_ends(project: Project, script: Script):
    pawl = project({"notes.txt": "x\n"})
    looks = """
[[turn]]
times = 0
answer = { text = "I look.", calls = [{ name = "file_search", arguments = { query = "x" } }] }
"""
    words = ["-p", "add a line to notes.txt", "--output-format", "json", "--model"]
    ended = pawl(*words, script(looks), "--max-turns", "2")
    assert (ended.code, json.loads(ended.out)["subtype"]) == (53, "error_max_turns")
    broke = pawl(*words, script('[[turn]]\nanswer = { text = "x", cost = "1.00" }\n'), "--max-tokens", "1")
    assert (broke.code, json.loads(broke.out)["subtype"]) == (54, "error_max_budget_usd")


@pytest.mark.spec("F5")
def test_a_result_by_a_schema_is_validated_and_asked_for_again(project: Project, script: Script, tmp_path: Path):
    pawl = project({"notes.txt": "x\n"})
    schema = {"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    model = script("""
[[turn]]
answer = "notes.txt has one line (notes.txt:1)."
[[turn]]
answer = '{"lines": "one"}'
[[turn]]
match = { user = "must be of type integer" }
answer = '{"lines": 1}'
""")
    words = ["-p", "how many lines has notes.txt?", "--model", model, "--json-schema", str(tmp_path / "schema.json")]
    assert pawl(*words).out == '{"lines": 1}\n'
    script('[[turn]]\ntimes = 0\nanswer = \'{"lines": "one"}\'\n')
    spoilt = pawl(*words, "--output-format", "json")
    assert (spoilt.code, json.loads(spoilt.out)["subtype"]) == (1, "error_max_structured_output_retries")


@pytest.mark.whole
@pytest.mark.spec("F5")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_a_result_and_the_run_can_go_on(project: Project, script: Script, number: int, code: int):
    pawl = project({"notes.txt": "x\n"})
    slow = script('[[turn]]\ndelay_ms = 60000\nanswer = "too late"\n')
    words = ["-p", "add a line to notes.txt", "--model", slow, "--output-format", "stream-json"]
    with pawl.started(*words, until='"node": "act"') as process:
        process.send_signal(number)
        rest = process.stdout.read().decode()
        assert process.wait(60) == code
    result = json.loads(rest.splitlines()[-1])
    assert (result["type"], result["is_error"], result["exit_code"]) == ("result", True, code)
    script('[[turn]]\ntimes = 2\nanswer = "Nothing to add."\n')
    assert pawl.json("do", "--resume", code=1)["run"] == result["session_id"]


@pytest.mark.spec("F5")
def test_piped_input_goes_with_the_request(project: Project, script: Script):
    pawl = project({"notes.txt": "x\n"})
    model = script('[[turn]]\nmatch = { user = "<stdin>" }\nanswer = "It says hello."\n')
    assert pawl("-p", "what does this say?", "--model", model, stdin=b"hello\n").out == "It says hello.\n"


def test_a_wrong_request_has_a_result_too(project: Project):
    pawl = project({"notes.txt": "x\n"})
    said = pawl("-p", "--output-format", "json")
    assert (said.code, json.loads(said.out)["error"]) == (42, "usage_error")
    assert pawl("do", "--resume").code == 42
    assert pawl("approve", "r00000000", "--yes").code == 42


def test_tests_that_cannot_be_run_are_told_before_work_begins(project: Project, script: Script):
    pawl = project(FILES)
    said = pawl(
        "do",
        "--model",
        script('[[turn]]\nanswer = "Never."\n'),
        "--test",
        "no-such-program -q",
        "add a function before",
    )
    assert (said.code, said.out) == (42, "")
    assert said.err == (
        "pawl: 'no-such-program', which runs the tests, is not installed\n"
        "      name an installed command with --test 'CMD'\n"
    )
    # What may be written by the run itself is not looked for.
    said = pawl("do", "--test", "./check.sh", "run the tests")
    assert said.code != 42, said


def test_with_no_model_configured_plain_requests_work_and_the_rest_says_what_to_do(project: Project):
    pawl = project(FILES)
    assert pawl("do", "run the tests").code == 1
    assert "changes code on a bench" in pawl("-p", "what can you do?").out.lower()
    said = pawl("do", "add a function before")
    assert said.code == 52 and "name one with --model" in said.err
    assert [one["request"] for one in pawl.json("history", "--runs")["runs"]] == ["what can you do?", "run the tests"]
    resumed = pawl("do", "--resume")
    assert resumed.code == 42, "no run is left behind"


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_a_patch_edited_in_the_users_editor_is_promoted_and_a_spoilt_one_is_not(
    project: Project, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project(FILES)
    pawl("do", "fix the bug in after", "--model", script(FIX))
    for words in ("false", "/no/such/editor"):
        monkeypatch.setenv("EDITOR", words)
        assert pawl("approve", "--edit").code == 42
    (tmp_path / "empty.diff").write_text("")
    refused = pawl("approve", "--patch", str(tmp_path / "empty.diff"))
    assert refused.code == 42 and "changes nothing" in refused.err
    monkeypatch.setenv("EDITOR", "sed -i 's/^+    return/+    # one more\\n&/'")
    done = pawl("approve", "--edit")
    assert done.code == 0, done
    assert "    # one more\n    return number + 1\n" in (pawl.workspace / "app.py").read_text()


TWO = """
[[turn]]
match = { system = "Stage: delivery" }
times = 0
answer = '{"state": "DONE", "evidence": ["both files"], "remaining": []}'
[[turn]]
answer = { calls = [
  { name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } },
  { name = "strict_patch", arguments = { path = "notes.txt", old = "x", new = "y" } },
] }
[[turn]]
times = 0
answer = "Done."
"""


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_a_patch_of_two_files_that_the_user_edits_is_reported_as_it_came_out(
    project: Project, script: Script, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({**FILES, "notes.txt": "x\n"})
    monkeypatch.setenv("EDITOR", "sed -i 's/^+y/+z/;s/^+    return/+    # one more\\n&/'")
    pawl("do", "fix the bug in after and write y into notes.txt", "--model", script(TWO))
    done = pawl.json("approve", "--edit")
    assert (done["delivery"], done["trouble"], done["state"]) == ("DONE", None, "ended")
    assert {one["path"] for one in done["changes"]} == {"app.py", "notes.txt"} and done["entry"] and done["kept"]
    assert (pawl.workspace / "notes.txt").read_text() == "z\n"
    assert "# one more" in (pawl.workspace / "app.py").read_text()


def test_follow_ups_continue_the_conversation_and_a_fork_leaves_it(project: Project, script: Script):
    pawl = project({"notes.txt": "x\n"})
    model = script('[[turn]]\ntimes = 0\nanswer = "It says x (notes.txt:1)."\n')
    said = pawl("do", "what does notes.txt say?", "--model", model, "--then", "what can you do?")
    assert said.code == 0 and said.out.index("It says x") < said.out.index("changes code on a bench")
    first = pawl.json("do", "-c", "what does notes.txt say?", "--model", model)["conversation"]
    other = pawl.json("do", "-c", "--fork-session", "what does notes.txt say?", "--model", model)["conversation"]
    assert first != other
    assert pawl("do", "--fork-session", "x").code == 42
    assert pawl("do", "--conversation", "c00000000", "what is this?", "--model", model).code == 42


@pytest.mark.spec("F5")
def test_a_model_that_cannot_be_reached_and_a_budget_that_is_too_small_have_a_true_result_too(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({"notes.txt": "x\n"})
    (tmp_path / "config.toml").write_text(
        'model_retries = 0\n[providers.gone]\nwire = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[prices."gone/m"]\ninput = 10\noutput = 10\n'
    )
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    words = ["-p", "add a line to notes.txt", "--approve", "never", "--output-format", "stream-json", "--model"]
    gone = pawl(*words, "gone/m")
    results = [json.loads(line) for line in gone.lines if '"type": "result"' in line]
    assert (gone.code, len(results), results[0]["is_error"]) == (75, 1, True)
    assert "127.0.0.1:9" in results[0]["result"] and results[0]["state"] == "working"
    poor = pawl(*words, "gone/m", "--max-budget-usd", "0.0001")
    last = json.loads(poor.lines[-1])
    assert (poor.code, last["subtype"], last["total_cost_usd"]) == (54, "error_max_budget_usd", 0)


@pytest.mark.spec("F5")
def test_what_was_denied_is_told_to_a_program(
    project: Project, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project(FILES)
    (tmp_path / "config.toml").write_text('[permissions]\ndeny = ["Edit(app.py)"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    said = pawl("-p", "fix the bug in after", "--model", script(FIX), "--output-format", "json", "--approve", "never")
    result = json.loads(said.out)
    assert (said.code, result["is_error"]) == (1, True)
    assert [one["tool_name"] for one in result["permission_denials"]] == ["strict_patch"]


SECRET_WRITTEN = """
[[turn]]
answer = { calls = [{ name = "run_command", arguments = { command = "echo K=1 > .env; sed -i 's/+ 2/+ 1/' app.py" } }] }
[[turn]]
times = 0
answer = "Done."
"""


@pytest.mark.whole
@pytest.mark.spec("B13")
def test_a_secret_file_that_a_run_wrote_is_said_to_be_left_out(project: Project, script: Script):
    pawl = project(FILES)
    done = pawl.json("do", "fix the bug in after", "--approve", "never", "--model", script(SECRET_WRITTEN))
    assert "held back: .env (secret)" in done["notes"] and not (pawl.workspace / ".env").exists()


@pytest.mark.parametrize("model", ["nobody/x", "openai/gpt-5"])
def test_a_model_that_cannot_be_asked_is_told_before_any_test_runs_and_no_run_is_left(
    project: Project, model: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pawl = project(FILES)
    said = pawl("do", "fix the bug in after.py: add one", "--model", model)
    assert said.code in (41, 52) and "running the tests" not in said.err, said
    assert pawl.json("history", "--runs")["runs"] == []


@pytest.mark.whole
def test_ctrl_c_at_a_question_ends_pawl_at_the_first_press_and_the_run_still_waits(project: Project, script: Script):
    pawl = project(FILES)
    for words in (("do", "fix the bug in after", "--model", script(FIX)), ("approve",)):
        with pawl.terminal(*words) as seen:
            seen.expect("promote this?")
            seen.type("\x03")
            assert seen.finish() == 130, seen.text
    assert pawl.json("approve", "--yes")["delivery"] == "DONE"


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_by_products_of_commands_are_no_part_of_the_change(project: Project, script: Script):
    made = "mkdir -p .benchmarks build/lib docs; touch .coverage coverage.xml docs/a.txt; python -m pytest -q"
    turn = f'[[turn]]\nanswer = {{ calls = [{{ name = "run_command", arguments = {{ command = "{made}" }} }}] }}\n'
    pawl = project(FILES)
    done = pawl.json("do", "fix the bug in after", "--approve", "never", "--model", script(turn + FIX))
    assert [one["path"] for one in done["changes"]] == ["app.py", "docs", "docs/a.txt"]
    only = '[[turn]]\nanswer = { calls = [{ name = "run_command", arguments = { command = "mkdir empty" } }] }\n'
    done = pawl.json(
        "do", "make a folder empty", "--approve", "never", "--accept-unverified", "--model", script(only + PLAIN)
    )
    assert (pawl.workspace / "empty").is_dir(), done


PLAIN = '[[turn]]\nanswer = "It is there."\n'
