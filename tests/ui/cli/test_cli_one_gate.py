"""What a model is sent by each command: nothing that a rule keeps from it, and the same instructions everywhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from models.provider_socket import ProviderSocket, provider, streamed
from models.wire_scripts import Said, openai
from ui.cli.console import Pawl
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_ask import server

CANARY = "the-canary-of-the-private-file"
FILES = {
    **SETTINGS,
    **{f"shop/part{number}.py": f"def part{number}(price):\n    return price * {number}\n" for number in range(8)},
    "shop/app.py": "def after(number):\n    return number + 2\n",
    "test_app.py": "from shop.app import after\n\n\ndef test_after():\n    assert after(2) == 3\n",
    "private/rounding.py": f"def round_prices(price):\n    return round(price, 1)  # rounding {CANARY}\n",
}
REQUEST = "prices after rounding have the wrong digit"
WAYS = {
    "ask": ("ask", REQUEST),
    "do": ("do", "--approve", "never", "--no-escalate", f"fix it: {REQUEST}"),
    "loop": ("loop", "--no-reflex", "--simple", "--max-iterations", "1", f"fix it: {REQUEST}"),
    "loop in full": ("loop", "--no-reflex", "--full", "--max-iterations", "1", f"fix it: {REQUEST}"),
}
LOOKS = Said(
    calls=(
        ("t1", "file_search", '{"query": "rounding"}'),
        ("t2", "file_search", '{"query": "round", "where": "names"}'),
        ("t3", "file_search", '{"query": "rounding", "path": "private"}'),
        ("t4", "outline", '{"path": "private/rounding.py"}'),
        ("t5", "outline", '{"path": "."}'),
        ("t6", "file_read", '{"path": "private/rounding.py"}'),
        ("t7", "file_read", '{"path": "./private/../private/rounding.py"}'),
    ),
    stop="calls",
)
DONE = Said(text=("Nothing is to be done.",))
Configured = Callable[[str], None]


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configured:
    monkeypatch.setenv("HERE_API_KEY", "sk-of-the-user-0123456789")

    def write(text: str) -> None:
        (tmp_path / "config.toml").write_text(text)
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))

    return write


@contextmanager
def model(configured: Configured, *said: Said, settings: str = "", most: int = 12) -> Iterator[ProviderSocket]:
    """A model that says this, then that nothing is to be done; it keeps what it was sent."""
    turns = [*said, *[DONE] * most]
    with provider(*(streamed(*openai(one, answer_id=f"a{at}")) for at, one in enumerate(turns))) as playing:
        configured(settings + server(playing.port))
        yield playing


def sent(playing: ProviderSocket) -> str:
    return "\n".join(request.body.decode() for request in playing.requests)


@pytest.mark.whole
@pytest.mark.spec("G4")
@pytest.mark.parametrize("way", WAYS)
def test_what_may_not_be_read_reaches_no_model_by_any_tool_or_pack(project: Project, configured: Configured, way: str):
    pawl = project(FILES)
    with model(configured, LOOKS, settings='[permissions]\ndeny = ["Read(private/**)"]\n') as playing:
        pawl(*WAYS[way])
    assert len(playing.requests) >= 2 and "shop/part1.py" in sent(playing)
    assert CANARY not in sent(playing) and "round_prices" not in sent(playing)
    assert "Read(private/**) denies it" in sent(playing)
    first = playing.requests[0].body.decode()
    assert "private" not in first


COMMANDS = Said(
    calls=(
        ("t1", "run_command", '{"command": "grep -rh . shop"}'),
        ("t2", "run_command", '{"command": "sh tool.sh"}'),
    ),
    stop="calls",
)


@pytest.mark.whole
@pytest.mark.spec("G4")
def test_commands_of_a_model_are_shown_nothing_that_may_not_be_read_and_the_checks_are(
    project: Project, configured: Configured
):
    """What a command makes of a file that it saw empty is no change of it."""
    test = "from private.rounding import round_prices\n\n\ndef test_rounds():\n    assert round_prices(1.23) == 1.2\n"
    tool = "cat private/*; echo 1 >> private/rounding.py; cp private/rounding.py copy.txt; sed -i s/2/1/ shop/app.py\n"
    pawl = project({**FILES, "test_rounding.py": test, "tool.sh": tool})
    (pawl.workspace / "shop/same.py").hardlink_to(pawl.workspace / "private/rounding.py")
    rules = '[permissions]\ndeny = ["Read(private/**)"]\nallow = ["Bash"]\n'
    with model(configured, COMMANDS, settings=rules) as playing:
        said = pawl.json("do", "--approve", "never", "--no-escalate", "fix after in shop/app.py: test_after fails")
    assert CANARY not in sent(playing) and "def part1" in sent(playing)
    assert (said["verdict"], said["after"]["passed"]) == ("verified", 2)
    assert {one["path"] for one in said["changes"]} == {"shop/app.py", "copy.txt"}
    assert CANARY in (pawl.workspace / "private/rounding.py").read_text()


@pytest.mark.whole
@pytest.mark.spec("G4")
def test_hooks_are_shown_nothing_that_may_not_be_read_also_where_the_agent_wrote_them(
    project: Project, configured: Configured
):
    tool = '{"command": "echo \'cat private/* >&2; exit 2\' > tool.sh"}'
    commands = {"UserPromptSubmit": "cat private/rounding.py shop/part1.py", "PostToolUse": "sh tool.sh"}
    hooks = "\n".join(
        f'[[hooks.{event}]]\nhooks = [{{ type = "command", command = "{command}" }}]\n'
        for event, command in commands.items()
    )
    pawl = project({**FILES, "tool.sh": "true\n"})
    writes = Said(calls=(("t1", "run_command", tool), ("t2", "file_read", '{"path": "shop/app.py"}')), stop="calls")
    with model(configured, writes, settings=f'[permissions]\ndeny = ["Read(private/**)"]\n{hooks}') as playing:
        pawl("do", "--approve", "never", "--no-escalate", "fix after in shop/app.py")
    assert "from a hook of the user's" in sent(playing) and "a hook of the user's says" in sent(playing)
    assert CANARY not in sent(playing)


@pytest.mark.whole
@pytest.mark.spec("G4")
@pytest.mark.parametrize("way", ["ask", "do"])
def test_without_a_rule_the_same_file_is_found_and_packed(project: Project, configured: Configured, way: str):
    pawl = project(FILES)
    with model(configured, LOOKS) as playing:
        pawl(*WAYS[way])
    assert CANARY in playing.requests[0].body.decode()


@pytest.mark.spec("G4")
def test_a_file_that_is_asked_about_is_left_out_of_packs_and_refused_where_nobody_is_asked(
    project: Project, configured: Configured
):
    pawl = project(FILES)
    with model(configured, LOOKS, settings='[permissions]\nask = ["Read(private/**)"]\n') as playing:
        assert pawl(*WAYS["ask"]).code == 0
    assert CANARY not in sent(playing)
    assert "Read(private/**) asks about it, and nobody can be asked here" in sent(playing)


@pytest.mark.whole
@pytest.mark.spec("G4")
def test_a_file_that_the_user_says_yes_to_is_read_and_the_others_are_not(project: Project, configured: Configured):
    pawl = project({**FILES, "private/other.py": "other = 'also-private'\n"})
    read = Said(calls=(("t1", "file_read", '{"path": "private/rounding.py"}'),), stop="calls")
    search = Said(calls=(("t2", "file_search", '{"query": "private", "where": "contents"}'),), stop="calls")
    with model(configured, read, search, settings='[permissions]\nask = ["Read(private/**)"]\n') as playing:
        waits = pawl.json("do", "--no-escalate", "--approve", "each", "fix the rounding", code=4)
        assert waits["question"]["kind"] == "call" and CANARY not in sent(playing)
        pawl("approve", waits["run"], "--yes")
    assert CANARY in sent(playing) and "also-private" not in sent(playing)


@pytest.mark.spec("G4", "C12")
def test_an_answer_is_not_given_again_when_a_rule_hides_what_it_rests_on(project: Project, configured: Configured):
    pawl = project(FILES)
    read = Said(calls=(("t1", "file_read", '{"path": "private/rounding.py"}'),), stop="calls")
    with model(configured, read, Said(text=("private/rounding.py:1 rounds.",))) as playing:
        assert pawl.json("ask", "who rounds?")["cached"] is False
        assert pawl.json("ask", "who rounds?")["cached"] is True
        rule = '[permissions]\ndeny = ["Read(private/**)"]\n'
        configured(rule + server(playing.port))
        assert pawl.json("ask", "who rounds?")["cached"] is False


@pytest.mark.spec("G4")
def test_instructions_take_in_no_file_that_may_not_be_read(project: Project, configured: Configured):
    pawl = project({**FILES, "AGENTS.md": "See @private/rounding.py and @shop/part1.py.\n"})
    with model(configured, settings='[permissions]\ndeny = ["Read(private/**)"]\n') as playing:
        said = pawl("ask", "hello")
    assert CANARY not in sent(playing) and "def part1" in sent(playing)
    assert "! private/rounding.py: not read" in said.err


@pytest.mark.spec("G4")
def test_the_user_finds_their_own_files(project: Project, configured: Configured):
    pawl = project(FILES)
    configured('[permissions]\ndeny = ["Read(private/**)"]\n')
    assert pawl.json("locate", "round_prices rounding")["files"][0]["path"] == "private/rounding.py"


@pytest.mark.spec("G4")
def test_a_review_shows_no_change_of_a_file_that_may_not_be_read(project: Project, configured: Configured):
    pawl = project(FILES)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        subprocess.run([*git, *words], cwd=pawl.workspace, check=True)
    (pawl.workspace / "private/rounding.py").write_text(f"# {CANARY} again\n")
    (pawl.workspace / "shop/app.py").write_text("def after(number):\n    return number + 1\n")
    with (
        model(configured, settings='[permissions]\ndeny = ["Read(private/**)"]\n') as playing,
        pawl.terminal() as seen,
    ):
        seen.expect("here/m")
        seen.type("/review\r")
        seen.expect("Nothing is to be done.")
        seen.type("/exit\r")
        seen.finish()
    assert "return number + 1" in sent(playing) and CANARY not in sent(playing)
    assert "Not in the diff, because they are hidden: " in sent(playing)


OWN, REPOSITORY, NEAREST = "Answer as the user's own file says.", "As the root says.", "As the shop says."


@pytest.mark.whole
@pytest.mark.spec("F8", "A15")
@pytest.mark.parametrize("way", WAYS)
def test_every_role_is_sent_the_users_own_instructions_and_then_the_repositorys(
    project: Project, configured: Configured, tmp_path: Path, way: str
):
    pawl = project({**FILES, "AGENTS.md": f"{REPOSITORY}\n", "shop/AGENTS.md": f"{NEAREST}\n"})
    (tmp_path / "AGENTS.md").write_text(f"{OWN}\n")
    *words, request = WAYS[way]
    with model(configured, settings='review = "on"\nevaluator = "model"\n') as playing:
        pawl(*words, f"{request} in shop/app.py")
    assert playing.requests
    for request in playing.requests:
        body = request.body.decode()
        assert -1 < body.find(OWN) < body.find(REPOSITORY) < body.find(NEAREST), body


@pytest.mark.whole
@pytest.mark.spec("F8")
@pytest.mark.parametrize("way", ["do", "loop"])
def test_the_hooks_for_the_end_of_a_session_are_called_after_each_command(
    project: Project, configured: Configured, tmp_path: Path, way: str
):
    program = tmp_path / "at-the-end"
    program.write_text(f"#!/bin/sh\necho {way} >> {tmp_path}/log\n")
    program.chmod(0o755)
    hook = {"command": str(program), "timeout": 20, "host": True}
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": {"SessionEnd": [{"hooks": [hook]}]}}))
    pawl: Pawl = project(FILES)
    with model(configured):
        pawl(*WAYS[way])
    assert (tmp_path / "log").read_text() == f"{way}\n"
