"""Hooks of the user's as real scripts, called at the events of a run: they look on, deny, ask, change, send back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scenarios.story import Story, call, say

from pawl.core.events import HookSaid
from pawl.core.run import DeliveryState, RunState
from pawl.settings.config import load
from pawl.settings.trust import trust

Configure = Callable[..., None]
WRITE = call("file_write", path="a.txt", content="a\n")


@pytest.fixture
def notes(story: Story) -> Story:
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    story.user_writes({"notes.txt": "begin\n"})
    story.model_says(WRITE, say("Written."))
    return story


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Configures a shell script for each event, in the sandbox or as a program of the user's."""
    (tmp_path / "config.toml").write_text('review = "off"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))

    def program(event: str, script: str) -> str:
        path = tmp_path / f"on{event}"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def configure(*, matcher: str = "", host: bool = False, **scripts: str) -> None:
        table = {
            event: [
                {
                    "matcher": matcher,
                    "hooks": [
                        {"command": program(event, script) if host else script, "timeout": 20, "host": host},
                    ],
                }
            ]
            for event, script in scripts.items()
        }
        (tmp_path / "hooks.json").write_text(json.dumps({"hooks": table}))

    return configure


def answer(**specific: object) -> str:
    return f"cat > /dev/null; printf '%s' '{json.dumps({'hookSpecificOutput': specific})}'"


@pytest.mark.spec("F8", "B14")
def test_every_event_of_a_run_reaches_its_hook_in_the_common_schema(notes: Story, hooks: Configure, tmp_path: Path):
    log = tmp_path / "log"
    names = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
    keep = f"cat >> {log}; echo >> {log}"
    hooks(host=True, **dict.fromkeys((*names, "PermissionRequest", "Notification", "SessionEnd"), keep))
    notes.model_says(call("file_read", path="none.txt"), WRITE, say("Written."))
    with notes.session() as session:
        waiting = session.do(order_of(notes, "write a.txt"))
        session.end()
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["hook_event_name"] for one in told] == [
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure", "PreToolUse", "PostToolUse"),
        *("Stop", "Notification", "SessionEnd"),
    ]
    assert {one["session_id"] for one in told} == {waiting.conversation}
    assert {one["prompt_id"] for one in told} == {waiting.run}
    assert {one["permission_mode"] for one in told} == {"acceptEdits"}
    assert (told[0]["source"], told[1]["prompt"], told[6]["last_assistant_message"]) == (
        "startup",
        "write a.txt",
        "Written.",
    )
    written = told[5]
    assert (written["tool_name"], written["tool_input"]["path"]) == ("file_write", "a.txt")
    assert written["tool_use_id"] == told[4]["tool_use_id"] and "text" in written["tool_response"]
    assert told[7]["notification_type"] == "permission_prompt"
    said = [event.text for event in notes.events if isinstance(event, HookSaid)]
    told_once = [text for text in said if "of your settings runs on this machine" in text]
    assert 0 < len(told_once) < len(told)


def order_of(story: Story, text: str, **more: object):
    from pawl.core.run import RunRequest

    return RunRequest(**{"text": text, "model": f"scripted:{story.script}", **more})


def test_a_hook_denies_a_call_and_the_model_is_told_why(notes: Story, hooks: Configure):
    hooks(matcher="Write", PreToolUse="echo not on Fridays >&2; exit 2")
    notes.model_says(WRITE, {"match": {"tool": "permission_denied: not on Fridays"}, **say("Then not.")})
    ended = notes.do("write a.txt", approve="never")
    assert (ended.answer, ended.entry) == ("Then not.", None)
    assert [one["tool_name"] for one in ended.denials] == ["file_write"]


def test_a_hook_asks_and_is_not_run_again_when_the_user_has_answered(notes: Story, hooks: Configure, tmp_path: Path):
    ask = answer(hookEventName="PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?")
    hooks(matcher="Write", host=True, PreToolUse=f"echo x >> {tmp_path}/count; {ask}")
    waiting = notes.do("write a.txt", approve="never")
    assert (waiting.state, waiting.question.kind, waiting.question.why) == (RunState.WAITING, "call", ("sure?",))
    assert notes.approve(waiting).delivery is DeliveryState.DONE
    assert (tmp_path / "count").read_text() == "x\n"


def test_a_hook_changes_what_a_tool_is_given_and_rules_still_hold(notes: Story, hooks: Configure, tmp_path: Path):
    other = {"path": "b.txt", "content": "b\n"}
    hooks(
        matcher="Write", PreToolUse=answer(hookEventName="PreToolUse", permissionDecision="allow", updatedInput=other)
    )
    assert notes.do("write a.txt", approve="never").delivery is DeliveryState.DONE
    assert notes.read("b.txt") == "b\n" and "a.txt" not in notes.files()
    (tmp_path / "config.toml").write_text('review = "off"\n[permissions]\ndeny = ["Edit(b.txt)"]\n')
    denied = notes.do("write a.txt again", approve="never")
    assert denied.denials[0]["tool_input"] == other and denied.entry is None


def test_hooks_add_to_what_the_model_knows_and_send_it_back_at_most_three_times(notes: Story, hooks: Configure):
    hooks(
        SessionStart="echo The owner is Kim.",
        UserPromptSubmit=answer(hookEventName="UserPromptSubmit", additionalContext="Use British spelling."),
        PostToolUse=answer(hookEventName="PostToolUse", additionalContext="it was formatted"),
        Stop="echo say it in one word >&2; exit 2",
    )
    notes.model_says(
        {"match": {"system": "The owner is Kim."}, **WRITE},
        {"match": {"system": "British spelling", "tool": "says: it was formatted"}, **say("It is written.")},
        *({"match": {"user": "say it in one word"}, **say("Written.")} for _ in range(3)),
    )
    done = notes.do("write a.txt", approve="never")
    assert (done.delivery, done.answer, done.requests) == (DeliveryState.DONE, "Written.", 6)


def test_a_request_that_a_hook_does_not_take_ends_with_the_reason(notes: Story, hooks: Configure):
    hooks(UserPromptSubmit="echo no requests today >&2; exit 2")
    ended = notes.do("write a.txt", approve="never")
    assert (ended.state, ended.trouble.code, ended.requests) == (RunState.ENDED, "hook_refused", 0)
    assert "no requests today" in ended.trouble.message


def test_a_hook_that_stops_the_run_leaves_one_that_can_be_resumed(notes: Story, hooks: Configure):
    hooks(PostToolUse="""printf '{"continue": false, "stopReason": "lunch"}'""")
    stopped = notes.do("write a.txt", approve="never")
    assert stopped.state is RunState.WORKING and "lunch" in stopped.trouble.message
    hooks()
    assert notes.resume(stopped.run).delivery is DeliveryState.DONE


@pytest.mark.whole
def test_a_hook_that_fails_or_takes_too_long_stops_nothing_and_is_told(notes: Story, hooks: Configure, tmp_path: Path):
    hooks(PreToolUse="exit 7", Stop="sleep 30")
    text = (tmp_path / "hooks.json").read_text()
    (tmp_path / "hooks.json").write_text(text.replace('"timeout": 20', '"timeout": 1'))
    assert notes.do("write a.txt", approve="never").delivery is DeliveryState.DONE
    said = {event.event: event.text for event in notes.events if isinstance(event, HookSaid)}
    assert "ended with 7" in said["PreToolUse"] and "timed out" in said["Stop"]


@pytest.mark.attack("A15")
def test_the_hooks_of_a_repository_run_only_where_it_is_trusted(notes: Story, hooks: Configure, tmp_path: Path):
    hooks()
    table = {"Stop": [{"hooks": [{"type": "command", "command": "echo ran > ran.txt"}]}]}
    notes.user_writes({".pawl/hooks.json": json.dumps({"hooks": table})})
    assert notes.do("write a.txt", approve="never").delivery is DeliveryState.DONE
    assert "ran.txt" not in notes.files()
    assert any("not trusted" in event.text for event in notes.events if isinstance(event, HookSaid))
    trust(load(), str(notes.workspace))
    notes.model_says(call("file_write", path="b.txt", content="b\n"), say("Written."))
    notes.do("write b.txt", approve="never")
    assert notes.read("ran.txt") == "ran\n"


@pytest.mark.spec("B10")
def test_commands_that_the_user_asks_for_have_their_hooks_too(notes: Story, hooks: Configure):
    notes.user_writes({"main.sh": "echo ran\n"})
    hooks(matcher="Bash", PostToolUse=answer(hookEventName="PostToolUse", additionalContext="logged"))
    assert notes.do("run main.sh", model="").answer.split() == [
        "ran",
        "[a",
        "hook",
        "of",
        "the",
        "user's",
        "says:",
        "logged]",
    ]
    hooks(matcher="Bash", PreToolUse="echo never >&2; exit 2")
    ended = notes.do("run main.sh", model="")
    assert ended.trouble.code == "hook_refused" and "never" in ended.trouble.message


@pytest.mark.spec("F8")
def test_on_a_confined_bench_nobody_is_asked_about_commands(notes: Story, hooks: Configure):
    notes.model_says(
        call("run_command", command="for n in 1 2; do echo $n >> log.txt; done; python3 -c 'print(1)'"),
        call("run_command", command="git reset --hard"),
        say("Done."),
    )
    done = notes.do("write the log", approve="never")
    assert (done.question, done.delivery) == (None, DeliveryState.DONE)
    assert notes.read("log.txt") == "1\n2\n"


def test_a_stricter_preset_of_the_user_asks_about_every_edit(notes: Story, hooks: Configure, tmp_path: Path):
    (tmp_path / "config.toml").write_text('[permissions]\npreset = "strict"\n')
    asked = notes.do("write a.txt", approve="never")
    assert (asked.state, asked.question.tool) == (RunState.WAITING, "file_write")


@pytest.mark.spec("D1")
def test_a_role_that_the_user_narrows_is_offered_fewer_tools(notes: Story, hooks: Configure, tmp_path: Path):
    source = Path(__file__).resolve().parents[2] / "src" / "pawl" / "agent" / "roles" / "artisan.toml"
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "artisan.toml").write_text(
        source.read_text()
        .replace(', "run_command"]', "]")
        .replace('allowed = { tool = "run_command" }', 'refused = { tool = "run_command" }')
    )
    with notes.session() as session:
        assert "run_command" not in session.offered(f"scripted:{notes.script}")[1]


@pytest.mark.spec("A14")
def test_a_request_is_put_into_a_form_that_is_read_without_a_model(notes: Story, hooks: Configure):
    from pawl.core.errors import UsageError

    with notes.session() as session:
        assert {"surgical_patch", "component_extraction", "safe_stub"} <= set(session.templates)
        text = session.request("surgical_patch", "write a.txt")
        checked = '{"state": "DONE", "evidence": ["a.txt is new"], "remaining": []}'
        notes.model_says(WRITE, say("Written."), say(checked))
        done = session.do(order_of(notes, text, approval="never"))
        assert (done.intent, done.requests, done.delivery) == ("edit", 3, DeliveryState.DONE)
        with pytest.raises(UsageError, match="no template 'surgery'"):
            session.request("surgery", "write a.txt")
