"""`pawl acp` as an editor uses it: the official client of the protocol, over the pipes of a real process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, helpers, schema, spawn_agent_process
from nursery import PATIENCE
from ui.cli import mcp_servers
from ui.cli.console import PAWL, Pawl
from ui.cli.projects import Project
from ui.cli.test_cli_attachments import CAN, DATA
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script, script
from ui.cli.test_cli_mcp import agreed, server
from ui.cli.test_cli_one_gate import Configured, configured, model, sent

__all__ = ["configured", "script"]

PLAN = """
[[turn]]
answer = '''First the function, then its test.'''
"""
SLOW = """
[[turn]]
answer = { text = "I wait.", calls = [{ name = "run_command", arguments = { command = "echo begun; sleep 60" } }] }
[[turn]]
answer = "Done."
"""
ASKS = """
[[turn]]
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } }] }
[[turn]]
[[turn.answer.calls]]
name = "strict_patch"
arguments = { path = "test_app.py", old = "after(2) == 3", new = "after(3) == 4" }
[[turn]]
answer = "One is added now."
"""


TASKS = """
[[turn]]
chunks = [{ thought = "Where may it go?" }]
answer = { calls = [{ name = "file_write", arguments = { path = "one.md", content = "one\\n" } }] }
[[turn]]
answer = "The first."
[[turn]]
[[turn.answer.calls]]
name = "change_files"
[turn.answer.calls.arguments]
justification = "one.md and two.md name each other"
changes = [
    { path = "one.md", action = "edit", target = "one", content = "one, two" },
    { path = "two.md", action = "create", content = "two\\n" },
]
[[turn]]
answer = "The second."
[[turn]]
[[turn.answer.calls]]
name = "run_command"
arguments = { command = "echo three > three.md; echo A=1 > .env; rm one.md" }
[[turn]]
answer = "The third."
[[turn]]
times = 0
answer = "Nothing more."
"""
FORM = """\
Task:
1. create one.md, which says one
2. create two.md, which says two
3. create three.md, which says three
Scope: one.md, two.md, three.md
"""


@dataclass
class Editor:
    """An editor that answers questions as the test says and shows nothing."""

    answers: list[str] = field(default_factory=lambda: ["yes"])
    buffers: dict[str, str] = field(default_factory=dict)
    files: bool = True
    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    heard: Callable[[Any], Awaitable[None]] | None = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if self.heard is not None:
            await self.heard(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.asked.append((tool_call, options))
        answer = self.answers.pop(0)
        if not answer:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=answer))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> schema.ReadTextFileResponse:
        if path in self.buffers:
            return schema.ReadTextFileResponse(content=self.buffers[path])
        return schema.ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.buffers[path] = content
        Path(path).write_text(content)

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[Any]:
        return [one for one in self.updates if one.session_update == kind]

    @property
    def said(self) -> str:
        return "".join(one.content.text for one in self.of("agent_message_chunk"))


@asynccontextmanager
async def connected(editor: Editor, cwd: Path, model: str = "") -> AsyncIterator[Any]:
    environment = {**os.environ, **({"PAWL_MODEL": model} if model else {})}  # noqa: TID251
    errors = {"stderr": subprocess.DEVNULL}
    async with spawn_agent_process(
        editor, *PAWL, "acp", env=environment, cwd=cwd, use_unstable_protocol=True, transport_kwargs=errors
    ) as (agent, _):
        files = schema.FileSystemCapabilities(read_text_file=editor.files, write_text_file=editor.files)
        ready = await agent.initialize(PROTOCOL_VERSION, schema.ClientCapabilities(fs=files))
        assert ready.protocol_version == 1 and ready.agent_info.name == "pawl"
        yield agent


def played(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_prompt_becomes_a_change_that_the_editor_shows_as_a_diff_and_the_user_promotes(
    project: Project, script: Script, tmp_path: Path
):
    pawl, editor = project(FILES), Editor()

    async def work() -> None:
        async with connected(editor, tmp_path, script(FIX)) as agent:
            begun = await agent.new_session(cwd=str(pawl.workspace))
            assert [one.id for one in begun.modes.available_modes] == ["agent", "plan", "chat"]
            assert {one.id for one in begun.config_options} == {"mode", "model", "reasoning", "approval"}
            text = helpers.text_block("fix the bug in after")
            ended = await agent.prompt(session_id=begun.session_id, prompt=[text])
            assert ended.stop_reason == "end_turn" and ended.usage.input_tokens > 0
            (session,) = (await agent.list_sessions(cwd=str(pawl.workspace))).sessions
            assert (session.session_id, session.title) == (begun.session_id, "fix the bug in after")

    played(work)
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    ((call, options),) = editor.asked
    (shown,) = (one for one in call.content if one.type == "diff")
    assert (shown.path, shown.old_text, shown.new_text) == (str(pawl.workspace / "app.py"), FILES["app.py"], RIGHT)
    assert [one.path for one in call.locations] == [shown.path]
    assert [one.kind for one in options] == ["allow_once", "reject_once"]
    assert "I look." in editor.said and "verdict   verified" in editor.said and "promoted as entry 1" in editor.said
    started = {one.tool_call_id: one for one in editor.of("tool_call")}
    kinds = [one.kind for one in started.values()]
    assert kinds[:2] == ["read", "edit"] and "execute" in kinds
    edit = next(one for one in started.values() if one.kind == "edit")
    assert edit.locations[0].path == str(pawl.workspace / "app.py") and edit.content[0].new_text == "+ 1"
    ends = {one.tool_call_id: one.status for one in editor.of("tool_call_update") if one.status}
    assert set(ends.values()) == {"completed"} and set(ends) == set(started)
    assert editor.of("usage_update")[-1].size > 0
    offered = {one.name for one in editor.of("available_commands_update")[0].available_commands}
    assert {"undo", "history", "refactoring"} <= offered


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_tasks_are_a_plan_thoughts_are_thoughts_and_whatever_a_call_changes_is_a_diff(project: Project, script: Script):
    pawl, editor = project(FILES), Editor()

    async def work() -> None:
        async with connected(editor, pawl.workspace, script(TASKS)) as agent:
            begun = await agent.new_session(cwd=str(pawl.workspace))
            await agent.prompt(session_id=begun.session_id, prompt=[helpers.text_block(FORM)])

    played(work)
    assert "Where may it go?" in "".join(one.content.text for one in editor.of("agent_thought_chunk"))
    plans = [[(one.content, one.status) for one in update.entries] for update in editor.of("plan")]
    tasks = ("create one.md, which says one", "create two.md, which says two", "create three.md, which says three")
    words = {"-": "pending", "/": "in_progress", "x": "completed"}
    seen = ["".join(next(key for key, word in words.items() if word == status) for _, status in plan) for plan in plans]
    assert list(dict.fromkeys(seen)) == ["---", "/--", "x/-", "xx/", "xxx"], editor.said
    assert {name for plan in plans for name, _ in plan} == set(tasks)
    titles = {one.tool_call_id: one.title.split()[0] for one in editor.of("tool_call")}
    made = {
        (titles[update.tool_call_id], Path(one.path).name): (one.old_text, one.new_text)
        for update in editor.of("tool_call_update")
        for one in update.content or ()
        if one.type == "diff" and update.status == "completed"
    }
    assert made == {
        ("file_write", "one.md"): (None, "one\n"),
        ("change_files", "one.md"): ("one\n", "one, two\n"),
        ("change_files", "two.md"): (None, "two\n"),
        ("run_command", "three.md"): (None, "three\n"),
        ("run_command", "one.md"): ("one, two\n", ""),
    }
    ((question, _),) = editor.asked
    asked = {Path(one.path).name: (one.old_text, one.new_text) for one in question.content if one.type == "diff"}
    assert asked == {"two.md": (None, "two\n"), "three.md": (None, "three\n")}
    (places,) = (one.locations for one in editor.of("tool_call_update") if titles[one.tool_call_id] == "change_files")
    assert [one.path for one in places] == [str(pawl.workspace / name) for name in ("one.md", "two.md")]


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_rejected_change_is_kept_and_a_question_that_was_called_off_can_be_answered_later(
    project: Project, script: Script
):
    pawl, editor = project(FILES), Editor(answers=["no", ""])

    async def work() -> None:
        async with connected(editor, pawl.workspace, script(FIX)) as agent:
            begun = await agent.new_session(cwd=str(pawl.workspace))
            prompt = [helpers.text_block("fix the bug in after")]
            await agent.prompt(session_id=begun.session_id, prompt=prompt)
            await agent.prompt(session_id=begun.session_id, prompt=prompt)

    played(work)
    assert (pawl.workspace / "app.py").read_text() == FILES["app.py"]
    assert "not done: rejected; nothing was promoted" in editor.said and "waits for your approval" in editor.said
    assert pawl("approve", "--yes").code == 0
    assert (pawl.workspace / "app.py").read_text() == RIGHT


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_edits_that_are_not_saved_are_the_users_own_they_are_merged_or_stop_the_promotion(
    project: Project, script: Script
):
    pawl = project({**FILES, "app.py": f"# first\n\n\n\n{FILES['app.py']}"})
    place = str(pawl.workspace / "app.py")
    before = Path(place).read_text()
    editor = Editor(buffers={place: before.replace("+ 2", "+ 3")}, answers=["yes"])

    async def work() -> None:
        async with connected(editor, pawl.workspace, script(FIX)) as agent:
            begun = await agent.new_session(cwd=str(pawl.workspace))
            prompt = [helpers.text_block("fix the bug in"), helpers.resource_link_block("app.py", f"file://{place}")]
            await agent.prompt(session_id=begun.session_id, prompt=prompt)
            assert Path(place).read_text() == before and not editor.asked
            assert "edits in your editor that are not saved, at the same place" in editor.said
            editor.buffers[place] = before.replace("# first", "# mine")
            await agent.prompt(session_id=begun.session_id, prompt=prompt)

    played(work)
    assert editor.buffers[place] == Path(place).read_text() == before.replace("# first", "# mine").replace("+ 2", "+ 1")
    assert pawl("undo").code == 0
    assert Path(place).read_text() == before.replace("# first", "# mine")


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_cancel_stops_the_run_at_once_and_the_session_goes_on(project: Project, script: Script):
    pawl, editor = project(FILES), Editor()

    async def work() -> None:
        async with connected(editor, pawl.workspace, script(SLOW)) as agent:
            begun = await agent.new_session(cwd=str(pawl.workspace))

            async def stop(update: Any) -> None:
                if update.session_update == "tool_call_update" and "begun" in str(update.content):
                    await agent.cancel(session_id=begun.session_id)

            editor.heard = stop
            ended = await agent.prompt(session_id=begun.session_id, prompt=[helpers.text_block("sleep a while")])
            assert ended.stop_reason == "cancelled"
            ended = await agent.prompt(session_id=begun.session_id, prompt=[helpers.text_block("/history --all")])
            assert ended.stop_reason == "end_turn"

    played(work)
    assert "resume it with: pawl do --resume" in editor.said
    assert pawl.json("history", "--runs")["runs"][0]["state"] == "working"


@pytest.mark.whole
@pytest.mark.spec("F6", "C2")
def test_mode_approval_and_model_stay_the_users(project: Project, script: Script):
    pawl, editor = project(FILES), Editor(answers=["always", "yes"])

    async def work() -> None:
        async with connected(editor, pawl.workspace, script(PLAN)) as agent:
            session = (await agent.new_session(cwd=str(pawl.workspace))).session_id
            await agent.set_session_mode(session_id=session, mode_id="plan")
            await agent.prompt(session_id=session, prompt=[helpers.text_block("add a test of after")])
            script(ASKS)
            options = await agent.set_config_option(config_id="mode", session_id=session, value="agent")
            assert next(one for one in options.config_options if one.id == "mode").current_value == "agent"
            await agent.set_config_option(config_id="approval", session_id=session, value="each")
            await agent.prompt(session_id=session, prompt=[helpers.text_block("fix the bug in after, and its test")])
            for wrong in ({"config_id": "model", "value": "nobody/nothing"}, {"config_id": "mode", "value": "root"}):
                with pytest.raises(RequestError, match="there is no"):
                    await agent.set_config_option(session_id=session, **wrong)

    played(work)
    first, *_ = editor.asked
    assert [one.kind for one in first[1]] == ["allow_once", "allow_always", "reject_once"]
    assert first[0].title == "carry out strict_patch?"
    assert "First the function, then its test." in editor.said
    assert [call.title for call, _ in editor.asked[1:]] == ["promote 2 changed files?"]


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_session_is_loaded_with_all_that_was_said_and_goes_on_in_another_process(project: Project, script: Script):
    pawl, first, second = project(FILES), Editor(), Editor()

    async def work() -> None:
        async with connected(first, pawl.workspace, script(FIX)) as agent:
            session = (await agent.new_session(cwd=str(pawl.workspace))).session_id
            await agent.prompt(session_id=session, prompt=[helpers.text_block("fix the bug in after")])
            await agent.close_session(session_id=session)
            with pytest.raises(RequestError, match="there is no session"):
                await agent.prompt(session_id=session, prompt=[helpers.text_block("more")])
        async with connected(second, pawl.workspace, script(PLAN)) as agent:
            loaded = await agent.load_session(cwd=str(pawl.workspace), session_id=session)
            assert loaded.modes.current_mode_id == "agent"
            assert [one.content.text for one in second.of("user_message_chunk")] == ["fix the bug in after"]
            assert "One is added now." in second.said
            assert next(one.title for one in second.of("tool_call")) == "file_read app.py"
            await agent.set_session_mode(session_id=session, mode_id="chat")
            await agent.prompt(session_id=session, prompt=[helpers.text_block("and how would you test it?")])
            with pytest.raises(RequestError, match="there is no conversation"):
                await agent.resume_session(cwd=str(pawl.workspace), session_id="c0000dead")

    played(work)
    assert "First the function" in second.said


@pytest.mark.whole
@pytest.mark.spec("F6", "C2")
def test_a_session_is_resumed_in_another_process_with_another_model_and_reasoning(
    project: Project, configured: Configured
):
    pawl, first, second = project(FILES), Editor(), Editor()

    async def work() -> None:
        async with connected(first, pawl.workspace, "here/m") as agent:
            session = (await agent.new_session(cwd=str(pawl.workspace))).session_id
            await agent.set_session_mode(session_id=session, mode_id="chat")
            await agent.prompt(session_id=session, prompt=[helpers.text_block("what does after do?")])
        async with connected(second, pawl.workspace, "here/m") as agent:
            resumed = await agent.resume_session(cwd=str(pawl.workspace), session_id=session)
            assert resumed.modes.current_mode_id == "agent" and not second.of("user_message_chunk")
            await agent.set_session_mode(session_id=session, mode_id="chat")
            for name, value in (("model", "here/other"), ("reasoning", "on")):
                made = await agent.set_config_option(session_id=session, config_id=name, value=value)
                assert next(one.current_value for one in made.config_options if one.id == name) == value
            await agent.prompt(session_id=session, prompt=[helpers.text_block("and before?")])

    with model(configured) as playing:
        played(work)
    before, after = (json.loads(playing.requests[at].body) for at in (0, -1))
    assert (before["model"], after["model"]) == ("m", "other")
    assert "what does after do?" in str(after["messages"]) and "and before?" in str(after["messages"])
    assert [one["model"] for one in pawl.json("requests")["requests"]][-1] == "here/other"
    assert "reason" in str({**after, "messages": None}) + str(after["messages"][0]) and "reason" not in str(before)


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_wrong_input_of_an_editor_is_an_error_that_says_what_to_do(project: Project, pawl: Pawl, script: Script):
    workspace, editor = project({**FILES, ".env": "TOKEN=abcdef123456\n"}).workspace, Editor()

    async def work() -> None:
        async with connected(editor, workspace) as agent:
            for cwd, said in (("not/absolute", "not an absolute path"), ("/nowhere/at/all", "nowhere")):
                with pytest.raises(RequestError, match=said):
                    await agent.new_session(cwd=cwd)
            for session in ("", "nobody"):
                with pytest.raises(RequestError, match="there is no conversation"):
                    await agent.load_session(cwd=str(workspace), session_id=session)
            session = (await agent.new_session(cwd=str(workspace))).session_id
            with pytest.raises(RequestError, match="no model is configured") as refused:
                await agent.prompt(session_id=session, prompt=[helpers.text_block("explain after")])
            assert refused.value.code == -32000
            for block, said in (
                (helpers.audio_block("AAAA", "audio/wav"), "does not take audio"),
                (helpers.image_block("AAAA", "image/png"), "is not text, a picture"),
                (helpers.image_block("no base64", "image/png"), "not in base64"),
            ):
                with pytest.raises(RequestError, match=said):
                    await agent.prompt(session_id=session, prompt=[block])
        async with connected(editor, workspace, script(PLAN)) as agent:
            session = (await agent.new_session(cwd=str(workspace))).session_id
            secret = helpers.embedded_text_resource(f"file://{workspace}/.env", "TOKEN=abcdef123456")
            words = helpers.text_block("what does after do?")
            await agent.prompt(session_id=session, prompt=[words, helpers.resource_block(secret)])

    played(work)
    assert ".env may not be read by a model and was left out" in editor.said


@pytest.mark.whole
@pytest.mark.spec("F6", "F4")
@pytest.mark.parametrize("reads", [True, False])
def test_a_picture_and_a_pdf_of_a_prompt_reach_a_model_that_reads_them_and_of_another_the_user_is_told(
    project: Project, configured: Configured, reads: bool
):
    workspace, editor = project(FILES).workspace, Editor()
    paper = schema.EmbeddedResource(resource=schema.BlobResourceContents(uri="zed:///a.pdf", blob=DATA["pdf"]))
    blocks = [
        helpers.text_block("what is on them?"),
        helpers.image_block(DATA["png"], "image/jpeg"),
        schema.EmbeddedResourceContentBlock(type="resource", **dict(paper)),
    ]

    async def work() -> None:
        async with connected(editor, workspace, "here/m") as agent:
            session = (await agent.new_session(cwd=str(workspace))).session_id
            await agent.set_session_mode(session_id=session, mode_id="chat")
            await agent.prompt(session_id=session, prompt=blocks)

    with model(configured, settings=CAN if reads else "") as playing:
        played(work)
    assert (DATA["png"] in sent(playing), DATA["pdf"] in sent(playing)) == (reads, reads)
    assert "data:image/png;base64" in sent(playing) or not reads
    assert ("picture 1 is not sent: the model is not known to read pictures" in editor.said) is not reads


USES = """
[[turn]]
answer = { calls = [{ name = "mcp__my-cheese__echo", arguments = { text = "gouda" } }] }
[[turn]]
answer = "It says gouda."
"""


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_the_editors_mcp_servers_are_offered_after_a_yes_and_not_after_a_no(project: Project, script: Script):
    pawl = project({**FILES, "server.py": mcp_servers.SOURCE})
    offered = schema.McpServerStdio(name="my cheese", command="python3", args=["server.py", "plain"], env=[])
    broken = schema.McpServerStdio(name="broken", command="nothing-of-that-name", args=[], env=[])
    first, second = Editor(answers=["no"]), Editor(answers=["yes", "yes", "yes"])

    async def work() -> None:
        for editor in (first, second):
            async with connected(editor, pawl.workspace, script(USES)) as agent:
                begun = await agent.new_session(cwd=str(pawl.workspace), mcp_servers=[offered, broken])
                await agent.prompt(session_id=begun.session_id, prompt=[helpers.text_block("change app.py: name it")])

    played(work)
    assert [call.title for call, _ in first.asked] == ["offer the tools of the MCP server my-cheese to the model?"]
    assert "echo: Says the text again." in first.asked[0][0].content[0].content.text
    assert "the MCP server broken is left out" in first.said
    assert "failed" in {one.status for one in first.of("tool_call_update")}
    assert [call.title for call, _ in second.asked][1] == "carry out mcp__my-cheese__echo?"
    assert "gouda" in str([one.content for one in second.of("tool_call_update") if one.status == "completed"])


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_prompt_of_a_server_is_a_command_that_the_editor_offers(project: Project, configured: Configured):
    workspace, editor = agreed(project, configured, "plain").workspace, Editor()

    async def work() -> None:
        async with connected(editor, workspace, "here/m") as agent:
            session = (await agent.new_session(cwd=str(workspace))).session_id
            await agent.set_session_mode(session_id=session, mode_id="chat")
            await agent.prompt(session_id=session, prompt=[helpers.text_block("/mcp__cheese__review app.py")])

    with model(configured, settings=server("plain")) as playing:
        played(work)
    (offered,) = editor.of("available_commands_update")
    assert "mcp__cheese__review" in {one.name for one in offered.available_commands}
    assert "Review the file app.py with care." in sent(playing)


@pytest.mark.whole
def test_without_an_editor_it_says_who_starts_it(pawl: Pawl, tmp_path: Path):
    (tmp_path / "given").write_text("{}")
    for given in ("/dev/null", str(tmp_path / "given")):
        with open(given, "rb") as file:
            done = subprocess.run([*PAWL, "acp"], stdin=file, capture_output=True, text=True, check=False)
        assert done.returncode == 42 and "let your editor start it" in done.stderr, done
    greeting = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    said = f"no message\n[]\nnull\n5\n{greeting}"
    done = subprocess.run([*PAWL, "acp"], input=said, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, '"protocolVersion":1' in done.stdout) == (0, "", True), done


def test_an_editor_that_leaves_while_the_index_is_made_sees_no_traceback(project: Project):
    pawl = project({f"many/{number % 9}/m{number}.py": "def f(x):\n    return x\n" for number in range(1200)})
    words = (
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(pawl.workspace), "mcpServers": []}},
    )
    given = "".join(json.dumps({"jsonrpc": "2.0", **word}) + "\n" for word in words)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*PAWL, "acp"], cwd=pawl.workspace, text=True, **pipes) as process:
        process.stdin.write(given)
        process.stdin.flush()
        assert any('"id":2' in line for line in process.stdout)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
