"""Sessions where nothing can be drawn: through pipes, in dumb terminals, in other alphabets; and without a model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ui.cli.console import PAWL
from ui.terminal.conftest import Place

ANSWERS = """
[[turn]]
match = { user_regex = "(?s)<diff>.*new file mode.*\\\\+second.*</diff>" }
answer = "`notes.txt:2` is new; nothing is wrong."
[[turn]]
match = { user = "AGENTS.md" }
answer = "```markdown\\n# Project\\n\\nRun `pytest` on `app.py`.\\n```"
[[turn]]
match = { system = "Plan only" }
answer = "1. Change `app.py`."
[[turn]]
times = 0
answer = "It says first (notes.txt:1)."
"""


@pytest.mark.spec("A13", "C4")
def test_each_command_does_what_it_says(place: Place):
    subprocess.run(["git", "init", "-q"], cwd=place.workspace, check=True)
    subprocess.run(["git", "add", "."], cwd=place.workspace, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=place.workspace, check=True)
    (place.workspace / "notes.txt").write_text("first\nsecond\n")
    said = place.piped(
        "/init",
        "y",
        "/history",
        "/review the notes",
        "/plan",
        "change the app",
        "/plan off",
        "what does notes.txt say?",
        "/export talk.md",
        "/export talk.md",
        "/compact",
        "/context",
        "/fork",
        "/model",
        "/model nobody/nothing",
        "/memory add tests run with make",
        "/memory",
        "/permissions check 'Bash(git push)'",
        "/queue",
        "/mode sideways",
        "/undo --help",
        "/frok",
        "/quit",
        "never said",
        words=("--model", place.model(ANSWERS)),
    )
    assert (place.workspace / "AGENTS.md").read_text() == "# Project\n\nRun `pytest` on `app.py`.\n"
    assert "promoted as entry 1; undo with: /undo 1" in said
    assert "init: AGENTS.md" in said
    assert "notes.txt:2 is new; nothing is wrong." in said
    assert "nothing can be changed until /plan off" in said
    assert "1 Change app.py." in said
    talk = (place.workspace / "talk.md").read_text()
    assert "what does notes.txt say?" in talk and "It says first" in talk
    assert "'talk.md' cannot be written: File exists" in said
    assert "tokens" in said.partition("› /compact\n")[2].partition("›")[0]
    assert "sent with each request: " in said
    assert "continues as c" in said
    assert "nobody" in said.partition("› /model nobody/nothing\n")[2].partition("›")[0]
    assert "remembered as 1" in said and "tests run with make" in said
    assert "nothing is queued" in said
    assert "! /mode takes plan, chat or agent, not 'sideways'" in said
    assert "usage: pawl undo" in said
    assert "did you mean /fork?" in said
    assert "never said" not in said


@pytest.mark.parametrize(
    ("name", "told", "advice"),
    [
        ("nobody/nothing", "! there is no model 'nobody/nothing'", "/model lists what is configured and found"),
        ("openai/gpt-5", "✗ openai/gpt-5: there is no key for 'openai'", "set OPENAI_API_KEY"),
        ("scripted:none.toml", "/none.toml' cannot be read: No such file", "name a file of turns"),
    ],
    ids=["no such model", "no key", "no such file"],
)
@pytest.mark.spec("F4")
def test_a_model_that_cannot_be_asked_is_refused_with_the_reason_and_the_last_one_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch, name: str, told: str, advice: str
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = place.piped(f"/model {name}", "what does notes.txt say?", words=("--model", place.model(ANSWERS)))
    refused, _, after = said.partition("› what does")
    assert told in refused and advice in refused, said
    assert "It says first" in after and "scripted:script.toml · 1 request" in after, said


@pytest.mark.spec("F4", "A13")
def test_a_review_sends_and_keeps_nothing_of_hidden_files(place: Place, state_directory: Path):
    (place.workspace / ".env").write_text("NOTE=blue heron at dawn\n")
    (place.workspace / "deploy.pem").write_text("".join(f"grey seal {number}\n" for number in range(9)))
    (place.workspace / "gone").mkdir()
    (place.workspace / "gone" / ".env").write_text("NOTE=red kite at noon\n")
    (place.workspace / "real.txt").write_text("white owl at night\n")
    (place.workspace / ".npmrc").symlink_to("real.txt")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"], ["mv", "deploy.pem", "deploy.txt"]):
        subprocess.run(["git", *words], cwd=place.workspace, check=True)
    (place.workspace / "gone" / ".env").unlink()
    (place.workspace / "copied.txt").write_text("NOTE=blue heron at dawn\n")
    (place.workspace / "notes.txt").write_text("first\nsecond\n")
    (place.workspace / "deep" / ".env").write_text("NOTE=black stork at dusk\n")
    model = place.model("""
[[turn]]
match = { user_regex = "(?s)hidden: '.env', .*<diff>.*second.*</diff>" }
answer = "Seen."
""")
    said = place.piped("/review", words=("--model", model))
    assert "Seen." in said
    names = ".env", "copied.txt", "deep/.env", "deploy.pem", "deploy.txt", "gone/.env", "real.txt"
    assert f"left out, because they are hidden: {', '.join(map(repr, names))}\n" in said
    # The index knows the words of every ordinary file, and 'copied.txt' is one by its name.
    paths = [path for path in state_directory.rglob("*") if path.is_file() and path.parent.name != "index"]
    kept = b"".join(path.read_bytes() for path in paths)
    assert b"second" in kept
    for secret in (b"heron", b"seal", b"kite", b"owl", b"stork"):
        assert secret not in kept
    (place.workspace / "notes.txt").write_text("first\n")
    said = place.piped("/review", words=("--model", model))
    assert "git shows no changes except in hidden files ('.env'," in said


@pytest.mark.whole
@pytest.mark.spec("B10", "A14")
def test_with_no_model_it_says_so_and_what_needs_none_works(place: Place):
    (place.workspace / "test_app.py").write_text(
        "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n"
    )
    (place.workspace / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    said = place.piped("run the tests", "add a function before", "/review", "/init", "n", "/status")
    assert said.count("! no model is configured") == 3
    assert "/setup finds one" in said
    assert "tests: 1 failed" in said
    assert "name one with /model" in said
    assert "+- Run the tests: `pytest`" in said and "nothing was written" in said
    assert not (place.workspace / "AGENTS.md").exists()


def test_what_is_piped_has_no_colours_and_nothing_to_read_is_the_overview(place: Place):
    model = place.model("[[turn]]\ntimes = 0\nanswer = '**Bold** words.'\n")
    said = place.piped("what is this?", words=("--model", model, "--mode", "chat"))
    assert "Bold words.\n" in said
    assert "\x1b" not in said
    assert place.piped().startswith("usage: pawl [COMMAND] [options]\n")


@pytest.mark.attack("A44")
def test_a_piped_session_shows_a_patch_without_its_escapes(place: Place):
    made = "printf 'x\\033[2Jy\\n' > made.txt"
    subprocess.run([*PAWL, "run", "--apply", "--", "sh", "-c", made], cwd=place.workspace, check=True)
    said = place.piped("/diff", "/exit")
    assert "+x\\x1b[2Jy" in said and "\x1b" not in said


def test_going_on_with_what_is_not_there_is_an_error_where_nobody_sees_it(place: Place):
    model = place.model("[[turn]]\ntimes = 0\nanswer = 'Never.'\n")
    for words in (("-r", "WRONG"), ("-c",)):
        said = place.piped("what is this?", words=(*words, "--model", model, "--mode", "chat"), ends=42)
        assert "there is no conversation" in said
        assert "Never." not in said


def test_a_dumb_terminal_gets_lines_and_one_without_unicode_gets_its_own_letters(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    model = place.model("[[turn]]\ntimes = 0\nanswer = '- café\\n'\n")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with place.open("--model", model, "--mode", "chat") as seen:
        seen.expect(">")
        seen.type("what is this?\n")
        seen.expect(" * caf\\xe9")
        seen.type("\x04")
        assert seen.finish() == 0
    assert b"\x1b" not in seen.raw


@pytest.mark.spec("F8")
def test_a_command_of_ones_own_is_a_request(place: Place, monkeypatch: pytest.MonkeyPatch):
    commands = Path(str(place.workspace.parent / "settings" / "pawl" / "commands"))
    commands.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(commands.parents[1]))
    (commands / "look.md").write_text("---\ndescription: Looks at a file\n---\nWhat does $1 say?\n")
    said = place.piped("/help look", "/look notes.txt", words=("--model", place.model(ANSWERS), "--mode", "chat"))
    assert "Looks at a file" in said and "It says first (notes.txt:1)." in said


def test_when_a_request_is_sent_again_stands_whole_however_long_the_reason_is(place: Place):
    why = "the server of the provider says that it is overloaded and asks to come back a little later than now, please"
    turn = f'[[turn]]\nchunks = [{{ retrying = "{why}", wait_seconds = 0.5 }}, "found at app.py:1"]\n'
    model = place.model(turn)
    with place.open("--model", model, columns=80) as terminal:
        terminal.expect("›")
        terminal.enter("explain app.py")
        terminal.expect("; trying again in 0.5 s")
        terminal.expect("found")


GOAL = """
[[turn]]
answer = { calls = [{ name = "file_write", arguments = { path = "GOAL.md", content = "reached\\n" } }] }
[[turn]]
answer = "It is written."
"""


@pytest.mark.spec("F8")
def test_hooks_hear_of_compact_by_hand_and_may_keep_the_conversation(place: Place):
    before = (
        """told=$(cat); case $told in *'"custom_instructions": "all of it"'*) echo "kept: $told" >&2; exit 2;; esac"""
    )
    after = """grep -q '"trigger": "manual"' && echo '{"systemMessage": "heard of it afterwards"}'"""
    hooks = {
        event: [{"hooks": [{"type": "command", "command": command}]}]
        for event, command in (("PreCompact", before), ("PostCompact", after))
    }
    (place.workspace / ".pawl").mkdir()
    (place.workspace / ".pawl/hooks.json").write_text(json.dumps({"hooks": hooks}))
    asks = tuple(f"what does notes.txt {word}?" for word in ("say", "mean", "want"))
    model = place.model("[[turn]]\ntimes = 0\nanswer = 'notes.txt: " + "first, " * 2000 + "'\n")
    said = place.piped("/trust", *asks, "/compact all of it", "/compact", "/quit", words=("--model", model))
    kept, shortened = said.partition("› /compact all of it\n")[2].split("› /compact\n")
    assert "PreCompact hook: not shortened: kept:" in kept and '"trigger": "manual"' in kept, said
    assert "not compacted: a hook keeps it as it is" in kept and "heard of it" not in kept
    assert "compacted: " in shortened and "PostCompact hook: heard of it afterwards" in shortened, said


@pytest.mark.spec("F8")
def test_goals_sub_agents_and_hooks_are_seen_in_a_session(place: Place):
    agents = place.workspace / ".pawl/agents"
    agents.mkdir(parents=True)
    (agents / "typist.md").write_text("---\ndescription: Writes notes.\n---\nYou write.\n")
    hook = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
    (place.workspace / ".pawl/hooks.json").write_text(hook)
    said = place.piped(
        "/goal",
        "/hooks",
        "/agents",
        "/trust",
        "/hooks",
        "/agents",
        "/goal write GOAL.md with the word reached",
        "y",
        "/goal",
        "/quit",
        words=("--model", place.model(GOAL)),
    )
    assert (
        "there is no goal yet" in said and "there are no hooks here" in said and "there are no sub-agents here" in said
    )
    assert "typist" in said and "Writes notes." in said and "sandbox" in said
    assert (place.workspace / "GOAL.md").read_text() == "reached\n", said
    assert "done, nothing to prove: write GOAL.md" in said


def test_a_list_of_what_can_be_resumed_says_how_many_are_older_and_shows_all_of_them(place: Place):
    said = place.piped(*["/new", "what can you do?"] * 17, "/resume", "", "/resume all", "")
    first, _, whole = said.partition("  and 2 older: /resume all\n")
    assert first.count("1 request: what can you do?") == 15 and whole.count("1 request: what can you do?") == 17
