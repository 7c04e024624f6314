"""One session of an editor: a thread that owns the workspace and carries out its prompts one after the other."""

from __future__ import annotations

import argparse
import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar

from acp import helpers
from acp.schema import AvailableCommand, AvailableCommandInput, SessionInfo, UnstructuredCommandInput

from pawl.agent.session import Session
from pawl.code.librarian import prepare_index
from pawl.core.change import ChangeSet
from pawl.core.errors import NotAuthorized, PawlError, StoreError, UnknownModel, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import merge3
from pawl.core.patch import content, is_text_edit
from pawl.core.run import Approval, ApprovalAnswer, ApprovalRequest, ApprovalResponse, Mode, Report, RunState
from pawl.core.typed import plain
from pawl.models.router import listed
from pawl.settings import files as bounded
from pawl.settings.config import Config
from pawl.ui.cli.call import Call
from pawl.ui.cli.main import run_words
from pawl.ui.editor.session_updates import Update, UpdateWriter, diffs, replayed, text_content
from pawl.ui.screen.approval import always_kinds
from pawl.ui.screen.run_report import changes_of, tell
from pawl.ui.screen.screen import Screen
from pawl.ui.terminal.commands import Commands, SessionCommand, commands_of, split, words_of
from pawl.ui.terminal.status import SessionChoices
from pawl.workspace.mcp_settings import McpServer, known_servers
from pawl.workspace.paths import find_workspace
from pawl.workspace.project import Project

T = TypeVar("T")
MODES = {
    "agent": "may change things on a bench; you approve what is promoted",
    "plan": "reads, and answers with a plan",
    "chat": "reads and answers",
}
APPROVALS = {"final": "asks once, with the whole change", "each": "asks before each edit"}
YES, ALWAYS, NO = "yes", "always", "no"


class Editor(Protocol):
    """The editor, as the thread of a session sees it: every call waits for the editor's answer."""

    def send(self, update: Update) -> None: ...

    def ask(self, question: PermissionQuestion) -> str:
        """The id of the option that the user chose; empty where the question was called off."""

    def unsaved(self, path: str) -> str | None:
        """The text of a file as the editor has it; None where it cannot say."""

    def write(self, path: str, text: str) -> bool:
        """Puts a text into the editor's buffer; whether it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionQuestion:
    """The question that a run waits on, as an editor shows it."""

    id: str
    title: str
    kind: str
    content: Sequence[helpers.ToolCallContentVariant]
    options: tuple[tuple[str, str, str], ...]
    """Id, kind of the protocol, words."""


@dataclass(frozen=True, slots=True)
class EditorPrompt:
    """A prompt of the user: the words, files that it names, and texts that come with it."""

    text: str
    paths: tuple[str, ...] = ()
    """Relative to the workspace."""
    attached: tuple[tuple[str, str], ...] = ()
    """Name and text."""
    pictures: tuple[tuple[str, bytes], ...] = ()
    """Pictures and PDFs, which are no files of the workspace."""


@dataclass(slots=True)
class EditorSession:
    """Its methods may be called from any thread; whatever touches the workspace happens in its own."""

    config: Config
    workspace: Path
    id: str
    """Of the conversation."""
    editor: Editor
    is_new: bool = True
    servers: Mapping[str, McpServer] = field(default_factory=dict)
    """MCP servers that the editor names; each counts when the user has agreed to its tools."""
    choices: SessionChoices = field(default_factory=SessionChoices)
    stopped: bool = False
    """The user stopped the present run."""
    models: tuple[str, ...] = ()
    model: str = ""
    """The one that the next request would ask; empty without one."""
    is_working: bool = False
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pawl-session"))
    """One thread: what is open belongs to it."""
    _open: ExitStack = field(default_factory=ExitStack)
    _session: Session | None = None
    _commands: Commands = field(default_factory=Commands)
    _writer: UpdateWriter | None = None

    def start(self) -> Future[None]:
        """Opens the workspace; an error is the future's."""
        return self._thread.submit(self._begin)

    def job(self, work: Callable[[], T]) -> Future[T]:
        """Does it in the thread of the session, after what was begun before."""
        return self._thread.submit(work)

    def interrupt(self) -> None:
        self.stopped = True
        if self._session is not None:
            self._session.interrupt()

    def steer(self, text: str) -> None:
        """Says something to the run that works."""
        self.session.steer(text)

    def close(self) -> None:
        """Stops what works and waits until it has put its things away."""
        self.interrupt()
        self._thread.submit(self._open.close)
        self._thread.shutdown()

    # In the thread of the session.

    def _begin(self) -> None:
        if self.servers:
            mcp = self.config.tables.mcp
            named = {name: plain(one, sparse=True) for name, one in self.servers.items()}
            known = mcp.get("servers")
            both = {**named, **(known if isinstance(known, Mapping) else {})}
            tables = replace(self.config.tables, mcp={**mcp, "servers": both})
            self.config = replace(self.config, tables=tables)
        shop = self._open.enter_context(Project.open(self.config, self.workspace))
        self._open.enter_context(prepare_index(shop))
        self._writer = UpdateWriter(shop.workspace, shop.store.blobs, self.editor.send)
        session = self._session = Session(shop, self._writer.hear, named=self.id if self.is_new else "")
        self._open.callback(session.end, "prompt_input_exit")
        if not self.is_new:
            session.transcript(self.id)
        self.choices.conversation = self.id
        self.look_around()

    @property
    def session(self) -> Session:
        if self._session is None:
            raise StoreError("the workspace cannot be opened", advice="close the session and begin a new one")
        return self._session

    @property
    def writer(self) -> UpdateWriter:
        assert self._writer is not None
        return self._writer

    def look_around(self) -> None:
        """Finds out which models and commands there are."""
        from pawl.agent.briefing import configured

        shop = self.session.shop
        self._commands = commands_of(shop.config, shop.workspace)
        known = tuple(one.model for one in listed(configured(shop), look=False))
        self.model = self.session.offered(self.choices.model)[0]
        self.models = tuple(dict.fromkeys((*known, *((self.model,) if self.model else ()))))

    def offered(self) -> list[AvailableCommand]:
        """The commands that an editor can offer: lines of the command line, and the user's own with the skills."""
        return [
            AvailableCommand(
                name=one.name,
                description=one.help,
                input=AvailableCommandInput(UnstructuredCommandInput(hint=one.arguments)) if one.arguments else None,
            )
            for one in self._commands.every
            if one.line or one.prompt or one.is_served
        ]

    def replay(self) -> None:
        for update in replayed(self.session.transcript(self.id)):
            self.editor.send(update)

    def choose_model(self, name: str) -> None:
        if not self.session.offered(name)[0]:
            raise UsageError(f"there is no model {name!r}", advice="'pawl models' lists what is configured")
        self.choices.model = name
        self.look_around()

    def prompt(self, prompt: EditorPrompt) -> Report | None:
        """Carries out a prompt; None for a command, which is at its end at once."""
        self.stopped, self.is_working = False, True
        try:
            return self._prompted(prompt)
        finally:
            self.is_working = False
            self.writer.finish()

    def _prompted(self, prompt: EditorPrompt) -> Report | None:
        named, command = split(prompt.text), None
        if named is not None and self._commands.knows(named[0]):
            command = self._commands.find(named[0])
            if not command.prompt and not command.is_served:
                self._run_line(command, named[1])
                return None
        self._agree_to_servers()
        order = self.choices.order(prompt.text, context=tuple(self._told(prompt)), command=command)
        if named is not None and command is not None and command.is_served:
            from pawl.agent.tools.served_tools import prompt_request

            order = replace(order, text=prompt_request(self.session.shop, command.name, named[1]))
        elif named is not None and command is not None:
            order = self.session.command_request(command.prompt, named[1], order, self._may_run)
        report = self._settled(self.session.do(replace(order, pictures=tuple(self._kept(prompt)))))
        while report.state is RunState.ENDED and self.session.is_spoken_to and not self.stopped:
            self._tell(report)
            following = self.session.go_on()
            assert following is not None
            report = self._settled(following)
        self._tell(report)
        if isinstance(self.session.error, UnknownModel | NotAuthorized):
            # The editor has a way of its own to tell that.
            raise self.session.error
        return report

    def _may_run(self, line: str, why: str) -> bool:
        """A command line in the text of a command, on a bench."""
        digest = hashlib.sha256(line.encode()).hexdigest()[:16]
        return self._agrees(f"command-{digest}", f"run this on a bench? {line}", "execute", why)

    def _agrees(self, number: str, title: str, kind: str, text: str) -> bool:
        options = ((YES, "allow_once", "yes"), (NO, "reject_once", "no"))
        question = PermissionQuestion(id=number, title=title, kind=kind, content=text_content(text), options=options)
        return self.editor.ask(question) == YES

    def _agree_to_servers(self) -> None:
        """Asks once about each server of the editor's whose tools the user has not seen."""
        servers, self.servers = self.servers, {}
        if not servers:
            return
        from pawl.agent.mcp_pins import keep_pin, pin_of
        from pawl.agent.tools.served_tools import RunningServer, definitions
        from pawl.ui.cli.mcp import described

        shop = self.session.shop
        for name, known in known_servers(shop.config, shop.workspace).items():
            if name not in servers or known.mistake or pin_of(shop.config, shop.workspace, known) is not None:
                continue
            try:
                with closing(RunningServer(shop, known)) as running:
                    pin = definitions(running.client(), known)
            except PawlError as error:
                self.writer.text(f"! the MCP server {name} is left out: {error.message}")
                continue
            tools = "\n".join(f"{one['name']}: {line}" for one in pin.tools for line in described(one))
            title = f"offer the tools of the MCP server {name} to the model?"
            if self._agrees(f"mcp-{name}-{pin.digest[:16]}", title, "other", tools):
                keep_pin(shop.config, shop.workspace, known, replace(pin, at=datetime.now(UTC).isoformat()))

    def _run_line(self, command: SessionCommand, words: str) -> None:
        if not command.line:
            raise UsageError(f"/{command.name} is for a terminal", advice="start 'pawl' there")
        with self._screen() as (screen, said):
            run_words(self.session.shop, [*command.line, *words_of(words)], screen)
        self.writer.fenced(said.getvalue())

    def _tell(self, report: Report) -> None:
        """The report, in the words that a terminal shows."""
        shop = self.session.shop
        with self._screen() as (screen, said):
            options = argparse.Namespace(json=False)
            tell(shop, report, Call(options, screen, screen, asks=False), changes_of(shop, report))
        self.writer.fenced(said.getvalue())

    @contextmanager
    def _screen(self) -> Iterator[tuple[Screen, io.StringIO]]:
        said = io.StringIO()
        yield Screen(said, color=False), said

    def _told(self, prompt: EditorPrompt) -> Iterator[str]:
        """Texts that come with the prompt, and edits that are not saved yet, as far as a model may read them."""
        gate = self.session.shop.read_gate()
        for name, text in prompt.attached:
            if gate.shows(name):
                yield f"The user attached {name}:\n{text}"
            else:
                self.writer.text(f"! {name} may not be read by a model and was left out")
        for path in prompt.paths:
            buffer = self._unsaved(path) if gate.shows(path) else None
            if buffer is not None:
                yield f"The user has edits in {path} that are not saved yet. With them it reads:\n{buffer}"

    def _kept(self, prompt: EditorPrompt) -> Iterator[tuple[str, str]]:
        """Pictures that come with the prompt, in the store, so that an interrupted run has them again."""
        shop = self.session.shop
        for name, data in prompt.pictures:
            if len(data) > shop.guardrails.file_bytes:
                self.writer.text(f"! {name} is larger than {shop.guardrails.file_bytes:,} bytes and was left out")
            else:
                yield name, shop.store.blobs.put(data)

    def _unsaved(self, path: str) -> str | None:
        """The text of the editor's buffer, where it is not what stands in the workspace."""
        place = os.path.join(self.session.shop.workspace, path)
        buffer = self.editor.unsaved(place)
        if buffer is None:
            return None
        try:
            stands = bounded.read_text(place)
        except (OSError, UnicodeDecodeError):
            return None
        return None if buffer == stands else buffer

    def _settled(self, report: Report) -> Report:
        """Asks the user as long as the run waits and there is an answer."""
        while report.state is RunState.WAITING and not self.stopped:
            question = report.question
            assert question is not None
            merged: dict[str, str] = {}
            if question.kind == "change":
                try:
                    merged = self._merged(self.session.shown(report.run))
                except UsageError as error:
                    self.writer.text(f"! {error.message}\n{error.advice}")
                    return report
            given = self._answer(report, question)
            if given is None:
                return report
            try:
                report = self.session.answer(report.run, given)
            except UsageError as error:
                self.writer.text(f"! {error.message}\n{error.advice}")
                return report
            if report.entry is not None:
                self._write(merged)
        return report

    def _answer(self, report: Report, question: ApprovalRequest) -> ApprovalResponse | None:
        yes = ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=question.digest)
        kinds = always_kinds(question, report.run)
        if not self.session.agreed.isdisjoint(kinds.values()):
            return yes
        chosen = self.editor.ask(self._question(report, question, always=bool(kinds)))
        if chosen == ALWAYS:
            self.session.agreed.add(kinds["a"])
        if chosen in (YES, ALWAYS):
            return yes
        if chosen == NO:
            return ApprovalResponse(answer=ApprovalAnswer.REJECT, digest=question.digest)
        return None

    def _question(self, report: Report, question: ApprovalRequest, *, always: bool) -> PermissionQuestion:
        shop = self.session.shop
        flags = (f"it holds {', '.join(question.flags)}",) if question.flags else ()
        why = [f"! {one}" for one in (*question.why, *flags)]
        if question.kind == "call":
            title = f"carry out {question.tool}?"
            shown = text_content("\n".join((*(question.patch or question.shown), *why)))
        else:
            changes = self.session.shown(report.run)
            title = f"promote {len(changes)} changed {'file' if len(changes) == 1 else 'files'}?"
            shown = [*text_content("\n".join(why)), *diffs(changes, shop.workspace, shop.store.blobs)]
        options = [(YES, "allow_once", "yes")]
        if always:
            options.append((ALWAYS, "allow_always", "always in this run"))
        options.append((NO, "reject_once", "no"))
        kind = "edit" if question.kind == "change" else "execute"
        return PermissionQuestion(
            id=f"approval-{question.digest[:16]}", title=title, kind=kind, content=shown, options=tuple(options)
        )

    def _merged(self, changes: ChangeSet) -> dict[str, str]:
        """Buffers with edits that are not saved, and the change merged into each; refused where both meet."""
        shop, merged = self.session.shop, {}
        for change in changes:
            buffer = self._unsaved(change.path) if change.before is not None else None
            if buffer is None:
                continue
            after = content(change.after, shop.store.blobs)
            both = None
            if change.after is not None and is_text_edit(change, shop.store.blobs):
                both = merge3(content(change.before, shop.store.blobs), after, buffer.encode())
            if both is None:
                raise UsageError(
                    f"{change.path} has edits in your editor that are not saved, at the same place as this change",
                    advice="save or undo them, then say: pawl approve",
                )
            if both != after:
                merged[change.path] = both.decode("utf-8", "replace")
        return merged

    def _write(self, merged: dict[str, str]) -> None:
        for path, text in merged.items():
            if not self.editor.write(os.path.join(self.session.shop.workspace, path), text):
                self.writer.text(
                    f"! the editor did not take the merged text of {path}: it has the old one with your edits"
                )


def sessions_of(config: Config, folder: str) -> list[SessionInfo]:
    """The conversations of a workspace, the latest first."""
    with Project.open(config, find_workspace(Path(folder), config, exact=True, reads=True)) as shop:
        return [
            SessionInfo(session_id=one.id, cwd=folder, title=one.title, updated_at=one.last)
            for one in Session(shop).conversations(limit=200)
        ]


def set_mode(choices: SessionChoices, mode: str) -> None:
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}", advice=f"it is one of {', '.join(MODES)}")
    choices.planning = mode == "plan"
    choices.mode = Mode.CHAT if mode == "chat" else Mode.AGENT


def set_approval(choices: SessionChoices, value: str) -> None:
    if value not in APPROVALS:
        raise UsageError(f"there is no approval {value!r}", advice=f"it is one of {', '.join(APPROVALS)}")
    choices.approval = Approval(value)
