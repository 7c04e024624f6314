"""The agent's side of the Agent Client Protocol: requests of an editor in, runs of sessions out."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from acp import PROTOCOL_VERSION, RequestError, helpers, run_agent, schema, stdio_streams
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.interfaces import Client

from pawl.agent.attachments import media_type
from pawl.agent.executor import new_conversation_id
from pawl.core import __version__
from pawl.core.errors import NotAuthorized, PathRefused, PawlError, UnknownModel
from pawl.core.run import Report
from pawl.settings.config import Config, load
from pawl.ui.editor import editor_session
from pawl.ui.editor.editor_session import EditorPrompt, EditorSession, PermissionQuestion, sessions_of
from pawl.ui.editor.session_updates import Update
from pawl.workspace.mcp_settings import McpServer
from pawl.workspace.paths import clean, find_workspace

T = TypeVar("T")
SETUP = schema.AuthMethodAgent(
    id="setup",
    name="pawl setup",
    description="Run 'pawl setup' in a terminal: it finds a model, tries it and saves it.",
)
STOPS: dict[str, schema.StopReason] = {
    "cut_off": "max_tokens",
    "out_of_turns": "max_turn_requests",
    "refused": "refusal",
}
"""How the protocol calls the ends of a talk."""


def serve(config: Config) -> None:
    """Speaks the protocol on stdin and stdout until the editor closes them."""
    # The library of the protocol logs a traceback for whatever an editor sends that it cannot read.
    logging.disable(logging.CRITICAL)
    asyncio.run(_serve(config))


async def _serve(config: Config) -> None:
    agent = AcpAgent(config)
    try:
        lines, out = await stdio_streams(limit=DEFAULT_STDIO_BUFFER_LIMIT_BYTES)
        lines.__class__ = ObjectLines
        # It fits by its methods; the protocol's class asks for those that are not offered too.
        await run_agent(cast(Any, agent), out, lines, use_unstable_protocol=True)
    finally:
        await agent.close()


class ObjectLines(asyncio.StreamReader):
    """What an editor says. The library of the protocol ends at a message that is no object, and passes over none."""

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        line = await super().readuntil(separator)
        return line if line.lstrip().startswith(b"{") else b"\n"


class EditorConnection:
    """The editor behind one session, for the thread of that session. Fits `Editor`."""

    def __init__(self, agent: AcpAgent, session: str) -> None:
        self._agent = agent
        self._session = session
        self._loop = asyncio.get_running_loop()

    def send(self, update: Update) -> None:
        self._loop.call_soon_threadsafe(self._agent.outgoing.put_nowait, (self._session, update))

    def ask(self, question: PermissionQuestion) -> str:
        return self._wait(self._asked(question)) or ""

    def unsaved(self, path: str) -> str | None:
        return self._wait(self._read(path)) if self._agent.reads else None

    def write(self, path: str, text: str) -> bool:
        return self._agent.writes and self._wait(self._written(path, text)) is True

    def _wait(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The answer; None where the editor gives none or is gone."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (RequestError, CancelledError, ConnectionError, RuntimeError):
            return None

    async def _asked(self, question: PermissionQuestion) -> str:
        await self._agent.flush()
        call = schema.ToolCallUpdate(
            tool_call_id=question.id,
            title=question.title,
            kind=question.kind,  # type: ignore[arg-type]
            status="pending",
            content=list(question.content),
            locations=[schema.ToolCallLocation(path=one.path) for one in question.content if one.type == "diff"],
        )
        options = [
            schema.PermissionOption(option_id=one, kind=kind, name=words)  # type: ignore[arg-type]
            for one, kind, words in question.options
        ]
        answer = await self._agent.client.request_permission(session_id=self._session, tool_call=call, options=options)
        outcome = answer.outcome
        return outcome.option_id if isinstance(outcome, schema.AllowedOutcome) else ""

    async def _read(self, path: str) -> str:
        return (await self._agent.client.read_text_file(session_id=self._session, path=path)).content

    async def _written(self, path: str, text: str) -> bool:
        await self._agent.client.write_text_file(session_id=self._session, path=path, content=text)
        return True


class AcpAgent:
    """Fits `acp.Agent`. Errors of Pawl's become errors of the protocol, with the advice."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._sessions: dict[str, EditorSession] = {}
        self.client: Client
        self.reads = self.writes = False
        """Whether the editor gives and takes the texts of its buffers."""
        self.outgoing: asyncio.Queue[tuple[str, Update]] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*(asyncio.to_thread(one.close) for one in sessions.values()))
        if self._sender is not None:
            self._sender.cancel()

    async def flush(self) -> None:
        """Returns when everything that was to be sent by now is sent."""
        await asyncio.sleep(0)
        await self.outgoing.join()

    async def _send(self) -> None:
        while True:
            session, update = await self.outgoing.get()
            try:
                await self.client.session_update(session_id=session, update=update)
            finally:
                self.outgoing.task_done()

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        files = client_capabilities.fs if client_capabilities is not None else None
        if files is not None:
            self.reads, self.writes = bool(files.read_text_file), bool(files.write_text_file)
        self._sender = self._sender or asyncio.create_task(self._send())
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="pawl", title="Pawl", version=__version__),
            auth_methods=[SETUP],
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True, image=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
        )

    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        """`pawl setup` does it; each session reads the settings anew."""
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> schema.NewSessionResponse:
        one = await self._opened(cwd, new_conversation_id(), mcp_servers, is_new=True)
        return schema.NewSessionResponse(session_id=one.id, modes=_modes(one), config_options=_options(one))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any
    ) -> schema.LoadSessionResponse:
        one = await self._opened(cwd, session_id, mcp_servers)
        await self._done(one, one.replay)
        await self.flush()
        return schema.LoadSessionResponse(modes=_modes(one), config_options=_options(one))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Any = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        one = await self._opened(cwd, session_id, mcp_servers)
        return schema.ResumeSessionResponse(modes=_modes(one), config_options=_options(one))

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        places = [cwd] if cwd else sorted({str(one.workspace) for one in self._sessions.values()})
        found: list[schema.SessionInfo] = []
        for place in places:
            found += await _answered(asyncio.to_thread(sessions_of, self._config, place))
        return schema.ListSessionsResponse(sessions=found)

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        one = self._session(session_id)
        del self._sessions[session_id]
        await asyncio.to_thread(one.close)
        return schema.CloseSessionResponse()

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> schema.SetSessionModeResponse:
        one = self._session(session_id)
        _told(lambda: editor_session.set_mode(one.choices, mode_id))
        self._tell_options(one)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: object, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        one, word = self._session(session_id), str(value)
        if config_id == "model":
            await self._done(one, lambda: one.choose_model(word))
        elif config_id == "mode":
            _told(lambda: editor_session.set_mode(one.choices, word))
            mode = schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=word)
            await self.client.session_update(session_id=session_id, update=mode)
        elif config_id == "approval":
            _told(lambda: editor_session.set_approval(one.choices, word))
        elif config_id == "reasoning" and word in ("default", "on", "off"):
            one.choices.reasoning = "" if word == "default" else word
        else:
            raise RequestError(-32602, f"there is no option {config_id!r} with the value {word!r}")
        return schema.SetSessionConfigOptionResponse(config_options=_options(one))

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._sessions:
            self._sessions[session_id].interrupt()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> schema.PromptResponse:
        one = self._session(session_id)
        said = _prompt(prompt, str(one.workspace))
        if one.is_working:
            if said.pictures:
                raise RequestError(-32602, "a run is in progress: send pictures with the next request")
            one.steer(said.text)
            return schema.PromptResponse(stop_reason="end_turn")
        report = await self._done(one, lambda: one.prompt(said))
        await self.flush()
        if one.stopped:
            return schema.PromptResponse(stop_reason="cancelled")
        reason = "end_turn" if report is None else STOPS.get(report.ended, "end_turn")
        return schema.PromptResponse(stop_reason=reason, usage=_usage(report))

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self._sessions:
            raise RequestError(-32002, f"there is no session {session_id!r}: begin or load it first")
        return self._sessions[session_id]

    async def _opened(self, cwd: str, session_id: str, servers: Any, *, is_new: bool = False) -> EditorSession:
        """Settings are read for each session, so that it has those of now."""
        if not os.path.isabs(cwd):
            raise RequestError(-32602, f"cwd {cwd!r} is not an absolute path")
        config = _told(lambda: load(self._config.environment))
        workspace = _told(lambda: find_workspace(Path(cwd), config, exact=True))
        before = self._sessions.pop(session_id, None)
        if before is not None:
            await asyncio.to_thread(before.close)
        editor = EditorConnection(self, session_id)
        one = EditorSession(
            config=config,
            workspace=workspace,
            id=session_id,
            editor=editor,
            is_new=is_new,
            servers=dict(map(_server, servers or ())),
        )
        await _answered(asyncio.wrap_future(one.start()))
        self._sessions[session_id] = one
        editor.send(helpers.update_available_commands(one.offered()))
        return one

    async def _done(self, one: EditorSession, work: Callable[[], T]) -> T:
        return await _answered(asyncio.wrap_future(one.job(work)))

    def _tell_options(self, one: EditorSession) -> None:
        update = schema.ConfigOptionUpdate(session_update="config_option_update", config_options=_options(one))
        self.outgoing.put_nowait((one.id, update))  # type: ignore[arg-type]


async def _answered(work: Awaitable[T]) -> T:
    try:
        return await work
    except PawlError as error:
        raise _refusal(error) from error


def _told(work: Callable[[], T]) -> T:
    try:
        return work()
    except PawlError as error:
        raise _refusal(error) from error


def _refusal(error: PawlError) -> RequestError:
    """A missing model or key is what the protocol calls authentication."""
    code = -32000 if isinstance(error, UnknownModel | NotAuthorized) else -32602
    words = f"{error.message}\n{error.advice}" if error.advice else error.message
    return RequestError(code, words, {"code": error.code, "advice": error.advice, "exit_code": error.exit_code})


def _server(one: Any) -> tuple[str, McpServer]:
    """A server as the editor writes it, in Pawl's words; the name that tools have is made of plain letters."""
    name = re.sub(r"[^A-Za-z0-9-]+", "-", one.name).strip("-")[:32] or "server"
    if isinstance(one, schema.McpServerStdio):
        environment = {pair.name: pair.value for pair in one.env or ()}
        return name, McpServer(command=one.command, args=tuple(one.args or ()), env=environment)
    if isinstance(one, schema.HttpMcpServer):
        return name, McpServer(type="http", url=one.url, headers={pair.name: pair.value for pair in one.headers or ()})
    raise RequestError(-32602, f"the MCP server {one.name!r} has an unsupported transport; use stdio or http")


def _prompt(blocks: list[Any], workspace: str) -> EditorPrompt:
    """The words, with files of the workspace named as a person would name them."""
    words: list[str] = []
    paths: list[str] = []
    attached: list[tuple[str, str]] = []
    pictures: list[tuple[str, bytes]] = []
    for block in blocks:
        if isinstance(block, schema.TextContentBlock):
            words.append(block.text)
        elif isinstance(block, schema.ResourceContentBlock):
            path = _inside(block.uri, workspace)
            words.append(f"@{path}" if path else block.uri)
            paths += [path] if path else []
        elif isinstance(block, schema.ImageContentBlock):
            pictures.append(_picture(block.uri or f"picture {len(pictures) + 1}", block.data))
        elif isinstance(block, schema.EmbeddedResourceContentBlock):
            resource = block.resource
            name = _inside(resource.uri, workspace) or resource.uri
            if isinstance(resource, schema.TextResourceContents):
                attached.append((name, resource.text))
            else:
                pictures.append(_picture(name, resource.blob))
        else:
            raise RequestError(-32602, "this agent does not take audio")
    text = " ".join(one for one in words if one).strip()
    return EditorPrompt(text, tuple(paths), tuple(attached), tuple(pictures))


def _picture(name: str, data: str) -> tuple[str, bytes]:
    """By what it holds, whatever the editor calls it."""
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise RequestError(-32602, f"{name} is not in base64") from error
    if not media_type(content):
        raise RequestError(-32602, f"{name} is not text, a picture (PNG, JPEG, GIF, WebP) or a PDF")
    return name.rpartition("/")[2], content


def _inside(uri: str, workspace: str) -> str:
    """The path of a file of the workspace; empty for anything else."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return ""
    try:
        return clean(unquote(parts.path), root=workspace)
    except PathRefused:
        return ""


def _usage(report: Report | None) -> schema.Usage | None:
    if report is None or not report.requests:
        return None
    return schema.Usage(
        total_tokens=report.input_tokens + report.output_tokens,
        input_tokens=report.input_tokens,
        output_tokens=report.output_tokens,
        cached_read_tokens=report.cached_tokens,
    )


def _modes(one: EditorSession) -> schema.SessionModeState:
    known = [schema.SessionMode(id=name, name=name, description=what) for name, what in editor_session.MODES.items()]
    return schema.SessionModeState(current_mode_id=one.choices.mode_word, available_modes=known)


def _options(one: EditorSession) -> list[Any]:
    """Mode, model and reasoning are the user's, and so is when they are asked."""
    chosen = one.choices
    models = dict.fromkeys(one.models, "")
    reasoning = {"default": "as the settings say", "on": "the model is asked to reason", "off": "it is not"}
    made = [
        _option("mode", "Mode", chosen.mode_word, editor_session.MODES, "mode"),
        _option("reasoning", "Reasoning", chosen.reasoning or "default", reasoning, "thought_level"),
        _option("approval", "Approval", str(chosen.approval), editor_session.APPROVALS),
    ]
    if models:
        made.insert(1, _option("model", "Model", one.model, models, "model"))
    return made


def _option(
    name: str, title: str, value: str, choices: dict[str, str], category: Any = None
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect(
        type="select",
        id=name,
        name=title,
        category=category,
        current_value=value,
        options=[
            schema.SessionConfigSelectOption(value=one, name=one, description=what or None)
            for one, what in choices.items()
        ],
    )
