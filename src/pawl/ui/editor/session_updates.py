"""The events of a run as updates of the Agent Client Protocol, version 1."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from acp import helpers, schema
from acp.helpers import ToolCallContentVariant

from pawl.agent.inbox import Event
from pawl.core.change import BlobReader, ChangeSet, NodeKind
from pawl.core.diagnostic import CheckResult, Status
from pawl.core.dialogue import (
    FellBack,
    Retrying,
    Speaker,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    TranscriptLine,
    typed_words,
)
from pawl.core.display import SafeWords, as_said, safe_words
from pawl.core.events import (
    AttemptEnded,
    ClimbBegun,
    CommandPrinted,
    Corrected,
    EscalationWarned,
    FilesChanged,
    HookSaid,
    IterationBegun,
    Metered,
    NodeEntered,
    RequestSent,
    RunBegun,
    RunEnded,
    Shortened,
    TasksPlanned,
    TierBegun,
    TierLeft,
    ToolEnded,
    ToolStarted,
    Warned,
)
from pawl.core.patch import content
from pawl.core.redact import redacted, redacted_arguments
from pawl.core.run import RunState, TaskState
from pawl.core.text import is_binary
from pawl.settings import permission_rules
from pawl.ui.screen.renderer import call_title, check_lines, climb_lines, is_for_pawl, said_lines

Update = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.AvailableCommandsUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)
KINDS: Mapping[permission_rules.ToolKind, schema.ToolKind] = {
    permission_rules.ToolKind.READS: "read",
    permission_rules.ToolKind.WRITES: "edit",
    permission_rules.ToolKind.RUNS: "execute",
}
SEARCHES = frozenset({"file_search", "list_files"})
MOST_SHOWN = 20_000
"""Characters of one answer or argument that an editor is sent."""
MOST_DIFFS = 20
"""Files of one call that are shown; the others are named."""
LAST_LINES = 30
"""Lines of a command's output that are sent while it runs."""


class UpdateWriter:
    """Turns events into updates, in their order. Secrets are taken out of whole lines."""

    def __init__(self, workspace: str, blobs: BlobReader, send: Callable[[Update], None]) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._send = send
        self._safe = SafeWords()
        self._line = ""
        """The line of the answer that has begun."""
        self._thought = ""
        self._unseen = False
        self._call = ""
        """The call that is under way."""
        self._made = ChangeSet()
        """What it changed."""
        self._printed: deque[str] = deque(maxlen=LAST_LINES)
        self._checking = ""
        """The verification that is under way, as a call of its own."""
        self._checks: list[str] = []
        self._checks_failed = False
        self._tasks: tuple[str, ...] = ()

    def hear(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                if not self._unseen:
                    self._say(text)
            case ThoughtDelta(text=text):
                self._think(text)
            case RequestSent() | RunBegun() | NodeEntered() | TasksPlanned() | RunEnded():
                self.finish()
                self._progress(event)
            case ToolStarted() | ToolEnded() | CommandPrinted() | FilesChanged():
                self.finish()
                self._tool(event)
            case CheckResult():
                self._check(event)
            case Metered():
                cost = None if event.cost is None else schema.Cost(amount=float(event.cost), currency="USD")
                size = max(event.context_window, event.context_tokens)
                used = event.context_tokens
                self._send(schema.UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost))
            case _:
                self._note(event)

    def finish(self) -> None:
        """Sends what has begun."""
        rest, self._line = self._line + self._safe.close(), ""
        self._message(as_said(rest))
        thought, self._thought = self._thought, ""
        self._thinking(thought)

    def text(self, words: str) -> None:
        """Something that Pawl itself says."""
        self.finish()
        self._message(f"{words.rstrip()}\n")

    def fenced(self, words: str) -> None:
        """Lines that keep their form."""
        if words.strip():
            self.text(f"\n```text\n{words.rstrip()}\n```")

    def _say(self, text: str) -> None:
        whole, end, self._line = (self._line + self._safe.feed(text)).rpartition("\n")
        self._message(as_said(whole) + end)

    def _think(self, text: str) -> None:
        whole, end, self._thought = (self._thought + text).rpartition("\n")
        self._thinking(whole + end)

    def _message(self, text: str) -> None:
        if text:
            self._send(helpers.update_agent_message_text(redacted(text)))

    def _thinking(self, text: str) -> None:
        if text:
            self._send(helpers.update_agent_thought_text(redacted(safe_words(text))))

    def _note(self, event: Event) -> None:
        """The lines that a person would be told beside the answer."""
        lines: Sequence[str] = ()
        match event:
            case Retrying(why=why, begun=begun):
                lost = "; the answer so far is discarded" if begun else ""
                lines = (f"! {why}; trying again{lost}",)
            case FellBack(model=model, to=other, why=why):
                lines = (f"! {model} failed ({why}); {other} takes over, as you configured",)
            case Shortened() | Corrected() | Warned() | HookSaid():
                lines = said_lines(event)
            case ClimbBegun() | TierBegun() | IterationBegun() | AttemptEnded() | TierLeft() | EscalationWarned():
                lines = climb_lines(event)
        for line in lines:
            self.text(f"\n{safe_words(line.strip())}\n")

    def _progress(self, event: RequestSent | RunBegun | NodeEntered | TasksPlanned | RunEnded) -> None:
        match event:
            case RequestSent():
                self._unseen = is_for_pawl(event)
            case RunBegun(resumed=False):
                self._tasks = ()
            case TasksPlanned(tasks=tasks):
                self._tasks = tasks
                self._plan(lambda number: "pending")
            case NodeEntered(place=place):
                self._end_checks()
                if place.at == "verify":
                    self._checking, self._checks = f"verify-{place.run}-{place.task}-{place.attempt}", []
                    title = "verifying on a fresh bench"
                    start = helpers.start_tool_call(self._checking, title, kind="execute", status="in_progress")
                    self._send(start)
                elif self._tasks and place.at == "act":
                    self._plan(
                        lambda number: (
                            "completed" if number < place.task else "in_progress" if number == place.task else "pending"
                        )
                    )
            case RunEnded(report=report):
                self._end_checks()
                if self._tasks and report.state is RunState.ENDED:
                    done = {one.number for one in report.task_states if one.state is TaskState.DONE}
                    self._plan(lambda number: "completed" if number in done else "pending")

    def _plan(self, status: Callable[[int], str]) -> None:
        entries = [
            helpers.plan_entry(redacted(task), status=status(number))  # type: ignore[arg-type]
            for number, task in enumerate(self._tasks, start=1)
        ]
        self._send(helpers.update_plan(entries))

    def _check(self, result: CheckResult) -> None:
        self._checks += check_lines(result)
        self._checks_failed |= result.standing is Status.FAIL
        if self._checking:
            self._send(helpers.update_tool_call(self._checking, content=text_content("\n".join(self._checks))))

    def _end_checks(self) -> None:
        if self._checking:
            status = "failed" if self._checks_failed else "completed"
            self._send(helpers.update_tool_call(self._checking, status=status))  # type: ignore[arg-type]
        self._checking, self._checks, self._checks_failed = "", [], False

    def _tool(self, event: ToolStarted | ToolEnded | CommandPrinted | FilesChanged) -> None:
        match event:
            case ToolStarted(call=call):
                self._call, self._made = call.id, ChangeSet()
                self._printed.clear()
                self._send(
                    helpers.start_tool_call(
                        call.id,
                        redacted(safe_words(call_title(call))),
                        kind=kind_of(call.name),
                        status="in_progress",
                        content=list(self._edits(call)),
                        locations=self._locations(call),
                        raw_input=bounded_input(call),
                    )
                )
            case ToolEnded(call=call, answer=answer):
                changed, self._call, self._made = self._made, "", ChangeSet()
                status = "failed" if answer.failed else "completed"
                made = [*self._shown(changed), *text_content(answer.text)]
                where = [schema.ToolCallLocation(path=self._absolute(one.path)) for one in changed][:MOST_DIFFS] or None
                self._send(
                    helpers.update_tool_call(call.id, status=status, content=made, locations=where)  # type: ignore[arg-type]
                )
            case FilesChanged(changes=changes) if self._call:
                self._made = changes
            case CommandPrinted(line=line) if self._call:
                self._printed.append(line)
                made = text_content("\n".join(self._printed))
                self._send(helpers.update_tool_call(self._call, content=made))

    def _shown(self, changed: ChangeSet) -> Iterator[ToolCallContentVariant]:
        """What a call changed, file by file."""
        every = tuple(changed.without_empty_folders)
        yield from diffs(ChangeSet(every[:MOST_DIFFS]), self._workspace, self._blobs, most=MOST_SHOWN)
        yield from text_content("\n".join(safe_words(one.path) for one in every[MOST_DIFFS:]))

    def _edits(self, call: ToolCall) -> Iterator[ToolCallContentVariant]:
        """The edit of one place as a diff, before it is made."""
        given = call.arguments or {}
        path, old, new = (given.get(name) for name in ("path", "old", "new"))
        if isinstance(path, str) and isinstance(old, str) and isinstance(new, str) and len(old + new) <= MOST_SHOWN:
            yield helpers.tool_diff_content(self._absolute(path), redacted(new), redacted(old))

    def _locations(self, call: ToolCall) -> list[schema.ToolCallLocation]:
        given = call.arguments or {}
        path, line = given.get("path"), given.get("line")
        if not isinstance(path, str) or not path:
            return []
        known = line if isinstance(line, int) and line > 0 else None
        return [schema.ToolCallLocation(path=self._absolute(path), line=known)]

    def _absolute(self, path: str) -> str:
        return os.path.join(self._workspace, safe_words(path))


def kind_of(tool: str) -> schema.ToolKind:
    kind = permission_rules.allowances().tools.get(tool)
    return "search" if tool in SEARCHES else KINDS.get(kind, "other") if kind is not None else "other"


def bounded_input(call: ToolCall) -> dict[str, object]:
    """The arguments, without secrets and not longer than somebody would read."""
    return {
        name: value[:MOST_SHOWN] if isinstance(value, str) else value
        for name, value in redacted_arguments(call.arguments or {}).items()
    }


def text_content(text: str) -> list[ToolCallContentVariant]:
    words = redacted(safe_words(text))
    if len(words) > MOST_SHOWN:
        half = MOST_SHOWN // 2
        words = f"{words[:half]}\n[… {len(words) - MOST_SHOWN:,} characters left out …]\n{words[-half:]}"
    return [helpers.tool_content(helpers.text_block(words))] if words.strip() else []


def diffs(
    changes: ChangeSet, workspace: str, blobs: BlobReader, *, most: int | None = None
) -> Iterator[ToolCallContentVariant]:
    """The files of a change, each as a diff; what is no text, or has more characters than that, is named."""
    for change in changes:
        path, what = os.path.join(workspace, change.path), ""
        old, new = (content(node, blobs) for node in (change.before, change.after))
        if any(node is not None and node.kind is not NodeKind.FILE for node in (change.before, change.after)):
            what = "nothing" if change.after is None else str(change.after.kind)
        elif is_binary(old) or is_binary(new):
            what = "nothing" if change.after is None else "a binary file"
        elif most is not None and len(old) + len(new) > most:
            what = "too long to be shown here"
        elif change.after is None:
            what = "deleted"
        elif change.before is not None and old == new:
            what = "its mode changes"
        if what:
            yield helpers.tool_content(helpers.text_block(f"{safe_words(change.path)}: {what}"))
        if what in ("", "deleted"):
            texts = (redacted(text.decode("utf-8", "replace")) for text in (new, old))
            yield helpers.tool_diff_content(path, next(texts), None if change.before is None else next(texts))


def replayed(lines: Iterable[TranscriptLine]) -> Iterator[Update]:
    """A conversation as it was said."""
    for one in lines:
        message = one.message
        if message.text.strip() and not message.automatic:
            text = redacted(safe_words(typed_words(message.text)))
            if message.speaker is Speaker.USER:
                yield helpers.update_user_message_text(text)
            elif message.speaker is Speaker.ASSISTANT:
                yield helpers.update_agent_message_text(f"{text}\n")
        for call in message.calls:
            title = redacted(safe_words(call_title(call)))
            yield helpers.start_tool_call(call.id, title, kind=kind_of(call.name), status="completed")
        for answer in message.answers:
            status = "failed" if answer.failed else "completed"
            yield helpers.update_tool_call(answer.call, status=status, content=text_content(answer.text))  # type: ignore[arg-type]
