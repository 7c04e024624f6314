"""The commands of a session that the terminal and the page carry out alike: what is said, asked and made in it."""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pawl.core.change import ChangeSet
from pawl.core.dialogue import TranscriptLine, typed_words
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.run import Approval, DeliveryState, Mode, Report, RunRequest, RunState
from pawl.settings import files as bounded
from pawl.ui.screen.diff import show_diff
from pawl.ui.screen.renderer import Meter
from pawl.ui.screen.screen import Face, Screen, agreed, brief, counted, money, one_line, short_path, when
from pawl.ui.terminal.commands import words_of
from pawl.ui.terminal.meanwhile import Meanwhile
from pawl.ui.terminal.status import ASKS, CARRY_OUT, KEYS, SessionChoices
from pawl.ui.terminal.transcript import as_markdown, retell

if TYPE_CHECKING:
    from pawl.agent.session import Session
    from pawl.settings.config import Config
    from pawl.ui.terminal.terminal_session import Shared
    from pawl.workspace.pull_request import HostedRepository

GROUPS = {
    "session": "session",
    "conversation": "conversation",
    "work": "work",
    "history": "history",
    "memory": "knowledge",
    "yours": "skills, and commands of yours",
}
MOST_LISTED, MOST_STILL = 15, 5
"""Conversations that are listed, and runs that stand still."""
MOST_FILES = 24
"""Characters for the files of a request."""
MOST_OUTPUT = 20
"""Lines of a command of the user's that the model is told."""


class SessionHost(Protocol):
    """The session that the commands are of: one in a terminal, or that of the page."""

    config: Config
    workspace: Path
    wishes: SessionChoices
    meter: Meter
    meanwhile: Meanwhile
    shared: Shared
    promoted: list[int]
    """The entries of this session."""
    committed: set[int]
    """Of these, the entries that /commit has committed."""
    base: HostedRepository | None
    """The repository before the first of these commits, where it has a host."""

    @property
    def session(self) -> Session: ...

    @property
    def face(self) -> Face: ...

    def order(self, text: str) -> RunRequest:
        """A request as the user's choices make it."""
        ...

    def take(self, text: str) -> None: ...

    def follow(self, text: str) -> None: ...

    def carry(self, begin: Callable[[], Report | None]) -> Report | None: ...

    def tell(self, report: Report) -> None: ...

    def run_line(self, *words: str) -> None: ...

    def finish(self) -> None:
        """What a model has said is shown whole."""
        ...


class WorkActions:
    """A method for each command, by its name. What only some of them need is imported there: it would take a quarter of
    a second at the start of every session."""

    keys: Sequence[tuple[str, str]] = KEYS

    def __init__(self, sitting: SessionHost) -> None:
        self._sitting = sitting
        self._wishes = sitting.wishes
        self._goal, self._came = "", "not done"

    def carry_out(self, name: str, words: str) -> None:
        getattr(self, name)(words)

    @property
    def _face(self) -> Face:
        return self._sitting.face

    @property
    def _out(self) -> Screen:
        return self._face.out

    def _say(self, text: str) -> None:
        self._out.say(f"  {text}")

    def help(self, words: str) -> None:
        out = self._out
        commands = self._sitting.shared.commands
        if words:
            one = commands.find(words.lstrip("/").lower())
            out.say(one.usage, "bold")
            out.say(f"  {one.help}")
            if one.others:
                out.say(f"  also: {', '.join(f'/{name}' for name in one.others)}")
            if one.source:
                out.hint(f"  from {one.source}")
            return
        for group, title in GROUPS.items():
            rows = [one for one in commands.every if one.group == group]
            if rows:
                out.say(title, "bold")
                rows_below(out, [(one.usage, one.help) for one in rows])
        if self.keys:
            out.say("keys", "bold")
            rows_below(out, list(self.keys))

    def status(self, words: str) -> None:
        from pawl.core import __version__

        sitting, wishes, model = self._sitting, self._wishes, self._sitting.shared.model
        rows = [
            ("pawl", __version__),
            ("workspace", short_path(sitting.workspace, sitting.config.home)),
            ("model", wishes.model or "not known yet" if model is None else model or "none: /setup finds one"),
            ("mode", f"{wishes.mode_word}, {ASKS[wishes.approval]}"),
            ("conversation", wishes.conversation or "new"),
            ("spent", money(sitting.meter.cost)),
        ]
        if sitting.meter.fill is not None:
            rows.append(("context", f"{sitting.meter.context_tokens:,} of {sitting.meter.context_window:,} tokens"))
        if sitting.shared.waits:
            rows.append(("waits", f"run {sitting.shared.waits} for your answer: /approve"))
        if sitting.shared.trust:
            rows.append(("trust", sitting.shared.trust))
        rows_below(self._out, rows)

    def mode(self, words: str) -> None:
        if words.lower() == "plan":
            return self.plan("on")
        if words:
            self._wishes.mode = Mode(_one_of(words, ("plan", *map(str, Mode)), "/mode"))
            self._wishes.planning = False
        return self._say(f"mode: {self._wishes.mode_word}")

    def plan(self, words: str) -> None:
        if words.lower() in ("", "on", "off"):
            self._wishes.planning = words.lower() != "off"
            how = "planning: nothing can be changed until /plan off" if self._wishes.planning else "plan mode is off"
            self._say(f"{how}; mode: {self._wishes.mode_word}")
            return
        self._wishes.planning = True
        self._say("planning: nothing can be changed until /plan off")
        self._sitting.take(words)

    def approval(self, words: str) -> None:
        if words:
            self._wishes.approval = Approval(_one_of(words, tuple(map(str, Approval)), "/approval"))
        self._say(f"approval: {self._wishes.approval}; {ASKS[self._wishes.approval]}")

    def reasoning(self, words: str) -> None:
        if words:
            self._wishes.reasoning = _one_of(words, ("on", "off"), "/reasoning")
        self._say(f"reasoning: {self._wishes.reasoning or 'as the settings say'}")

    def cost(self, words: str) -> None:
        sitting = self._sitting
        if not sitting.meter.by_model:
            self._say("no model was asked in this session: $0.00")
            return
        rows = [
            (model, str(one.requests), f"{one.input:,}", f"{one.cached:,}", f"{one.output:,}", money(one.cost))
            for model, one in sitting.meter.by_model.items()
        ]
        self._out.table(("model", "requests", "in", "cached", "out", "cost"), rows, flexible=0)
        self._say(f"this session: {money(sitting.meter.cost)}")

    def queue(self, words: str) -> None:
        session = self._sitting.session
        if words.lower() == "clear":
            self._say(f"requests removed from the queue: {len(session.unqueue())}")
        elif words:
            self._sitting.follow(words)
        else:
            waiting = session.queued
            for number, order in enumerate(waiting, start=1):
                self._say(f"{number}. {one_line(order.text)}")
            if not waiting:
                self._say("nothing is queued")

    def resume(self, words: str) -> None:
        """A conversation or a run by its id; without one, or with `all`, the user chooses from a list."""
        session = self._sitting.session
        if words not in ("", "all"):
            if any(run.id == words for run in session.runs()):
                self._sitting.carry(lambda: session.resume(words))
            else:
                self.take_up(words)
            return
        choices, more = self._choices(every=words == "all")
        if not choices:
            raise UnknownEntry("there is nothing to resume yet", advice="type a request")
        rows = [(str(number), *choice) for number, choice in enumerate(choices, start=1)]
        self._out.table(("", "id", "last", "what"), rows, flexible=3)
        if more:
            self._out.hint(f"  and {more} older: /resume all")
        said = (self._face.line("which? [number or id, Enter: none] ") or "").strip()
        if not said:
            return
        chosen = choices[int(said) - 1][0] if said.isdecimal() and 0 < int(said) <= len(choices) else said
        self.resume(chosen)

    def offer(self, run: str) -> None:
        """Resumes the run if the user says so."""
        if agreed(self._face, f"resume run {run}?"):
            self.resume(run)

    def _choices(self, *, every: bool) -> tuple[list[tuple[str, str, str]], int]:
        """Id, when, what, runs that stand still first; and how many more there are."""
        session = self._sitting.session
        still = {RunState.WORKING: "stopped", RunState.WAITING: "waits"}
        runs = [
            (run.id, when(run.created, today=True), f"{still[run.state]}: {brief(typed_words(run.order.text), 200)}")
            for run in session.runs()
            if run.state in still
        ]
        talked = [
            (one.id, when(one.last, today=True), f"{counted(one.turns, 'request')}: {brief(one.title, 200)}")
            for one in session.conversations()
        ]
        if every:
            return [*runs, *talked], 0
        shown = [*runs[:MOST_STILL], *talked[:MOST_LISTED]]
        return shown, len(runs) + len(talked) - len(shown)

    def take_up(self, conversation: str) -> None:
        """Goes on with a conversation, and shows how it ended."""
        said = self._sitting.session.transcript(conversation)
        self._wishes.conversation = conversation
        self._sitting.meanwhile.resume(said[-1].time)
        retell(self._out, said)
        self._out.hint(f"  conversation {conversation} continues")

    def _conversation(self, verb: str) -> str:
        if not self._wishes.conversation:
            raise UsageError(f"there is no conversation to {verb} yet", advice="say something first, or /resume one")
        return self._wishes.conversation

    def fork(self, words: str) -> None:
        self._wishes.conversation = self._sitting.session.fork(self._conversation("fork"))
        self._say(f"continues as {self._wishes.conversation}; the first one is unchanged")

    def _files_of(self, entries: Sequence[int]) -> list[str]:
        shop = self._sitting.session.shop
        return sorted({path for number in entries for path in shop.changes(shop.entry(number)).paths})

    def rewind(self, words: str) -> None:
        """Back to before one of the requests: their entries are undone, and a copy of the conversation ends there."""
        from pawl.workspace.reversal import Wish

        session, conversation = self._sitting.session, self._conversation("rewind")
        points: dict[str, TranscriptLine] = {}
        for one in session.transcript(conversation):
            if one.message.is_users:
                points.setdefault(one.run, one)
        runs = list(points)
        entries = {run: [one.id for one in session.shop.entries(run=run) if one.active and one.files] for run in runs}
        rows = [
            (
                str(number),
                when(points[run].time, today=True),
                brief(", ".join(self._files_of(entries[run])), MOST_FILES) or "–",
                brief(typed_words(points[run].message.text), 200),
            )
            for number, run in enumerate(runs, start=1)
        ]
        if not words:
            self._out.table(("", "when", "files", "request"), rows, flexible=3)
            words = (self._face.line("go back to before which request? [number, Enter: none] ") or "").strip()
        if not words:
            return
        if not words.isdecimal() or not 0 < int(words) <= len(runs):
            raise UsageError(f"there is no request {words!r}", advice=f"the requests are 1 to {len(runs)}")
        back = [run for run in reversed(runs[int(words) - 1 :]) if entries[run]]
        for run in back:
            session.shop.undo_run(run, Wish())
        undone = sorted(one for run in back for one in entries[run])
        self._wishes.conversation = session.fork(conversation, before=points[runs[int(words) - 1]].number)
        which = f"entry {undone[0]} is" if len(undone) == 1 else f"entries {', '.join(map(str, undone))} are"
        files = f"{which} undone (/redo brings the last back)" if undone else "no file changed"
        self._say(f"rewound to before {brief(typed_words(points[runs[int(words) - 1]].message.text), 60)!r}; {files}")
        self._out.hint(f"  the whole conversation is kept: /resume {conversation}")

    def goal(self, words: str) -> None:
        """A request that is not left before the checks accept it or a limit is reached."""
        from pawl.agent.escalation import escalation

        sitting = self._sitting
        if words:
            self._goal = words
            order = replace(self._sitting.order(words), loop=escalation())
            report = sitting.carry(lambda: sitting.session.do(order))
            done = report is not None and report.delivery is DeliveryState.DONE
            self._came = f"done, {report.verdict or 'nothing was changed'}" if done and report else "not done"
        elif self._goal:
            self._say(f"{self._came}: {self._goal}")
        else:
            self._say("there is no goal yet: /goal WORDS")

    def hooks(self, words: str) -> None:
        from pawl.workspace.hook_runner import hooks_for

        shop = self._sitting.session.shop
        found = hooks_for(shop.config, shop.workspace)
        rows = [
            (str(one.event), one.matcher or "*", one.command, "this machine" if one.host else "sandbox", one.source)
            for one in found.commands
        ]
        if rows:
            self._out.table(("event", "for", "command", "runs in", "from"), rows, flexible=2)
        else:
            self._say("there are no hooks here: docs/settings.md#hooks")
        self._out.notes(found.notices, "yellow")

    def _promoted(self, but: Collection[int] = ()) -> tuple[ChangeSet, list[str]]:
        """All that this session promoted and that stands, `but` these entries; its requests, then its commands."""
        shop = self._sitting.session.shop
        kept = [one for one in map(shop.entry, self._sitting.promoted) if one.active and one.id not in but]
        changes = ChangeSet()
        for entry in kept:
            changes = changes.then(shop.changes(entry))
        if not changes:
            raise UsageError(
                f"this session has promoted nothing{' since its last commit' if but else ''}",
                advice="git commits what you changed yourself, and what earlier sessions promoted",
            )
        titles = sorted((one.title for one in kept), key=lambda title: not title.startswith("do: "))
        return changes, [title.removeprefix("do: ").removeprefix(CARRY_OUT) for title in titles]

    def pr(self, words: str) -> None:
        """A pull request of what this session promoted, or a patch file where `gh` is not there."""
        from pawl.core.patch import git_patch
        from pawl.settings.config import host_program
        from pawl.workspace.pull_request import PullRequests, branch_name, hosted

        shop, face = self._sitting.session.shop, self._face
        changes, titles = self._promoted()
        title, text = words or titles[0], "\n".join(f"- {one}" for one in titles)
        branch = branch_name(title, self._sitting.promoted[-1])
        self._out.changes(changes, shop.store.blobs)
        program = host_program("gh", shop.config.environment)
        if not program:
            path = Path(f"{branch.removeprefix('pawl/')}.patch")
            head = f"Subject: [PATCH] {one_line(title)}\n\n{text}\n\n---\n\n".encode("utf-8", "replace")
            bounded.write_given(path, head + git_patch(changes, shop.store.blobs), shop.workspace, private=True)
            self._say(f"gh is not installed; the change is written to {path} (git apply takes it)")
            return
        repository = self._sitting.base or hosted(shop.tree)
        if not agreed(face, f"open a pull request {title!r} at {repository.host}/{repository.name}?"):
            self._say("nothing was sent")
            return
        face.activity("opening the pull request")
        host = PullRequests(
            program=program, repository=repository, environment=shop.config.environment, blobs=shop.store.blobs
        )
        self._out.say(f"opened: {host.propose(changes, title, text, branch)}", "bold green")

    def commit(self, words: str) -> None:
        """The entries of this session as one commit; its message is drafted from their requests."""
        from pawl.agent.works import commit_changes
        from pawl.workspace.pull_request import hosted

        sitting, shop = self._sitting, self._sitting.session.shop
        changes, titles = self._promoted(self._sitting.committed)
        message = words or "\n\n".join([titles[0], "\n".join(f"- {one}" for one in titles[1:])]).strip()
        self._out.changes(changes, shop.store.blobs)
        while not words:
            self._out.lines("\n".join(f"  {line}" for line in message.split("\n")))
            said = (self._face.line("commit this? [y yes, n no, e edit the message] ") or "").strip().lower()
            if said in ("y", "yes"):
                break
            if said not in ("e", "edit"):
                self._say("nothing was committed")
                return
            message = self._face.edited(message, ".txt").strip()
        with suppress(UsageError):
            sitting.base = sitting.base or hosted(shop.tree)
        name, notes = commit_changes(shop, changes, message)
        sitting.committed.update(sitting.promoted)
        self._out.notes(notes, "yellow")
        self._out.say(f"committed as {name[:12]}", "bold green")

    def compact(self, words: str) -> None:
        from pawl.agent.context_watch import compact

        self._conversation("compact")
        shop, order = self._sitting.session.shop, self._sitting.order(words)
        made = compact(shop, order, lambda said: self._say(f"! {said.event} hook: {said.text}"))
        if made.why_not:
            self._say(f"not compacted: {made.why_not} ({made.before_tokens:,} tokens)")
            return
        self._say(f"compacted: {made.before_tokens:,} → {made.after_tokens:,} tokens are sent with each request")
        self._out.hint(f"  the whole conversation is kept: /resume {self._wishes.conversation}")
        self._wishes.conversation = made.conversation

    def context(self, words: str) -> None:
        from pawl.agent.context_watch import sent_again

        meter = self._sitting.meter
        if meter.fill is not None:
            filled = round(min(meter.fill, 100) / 5)
            self._say(f"[{'#' * filled}{'.' * (20 - filled)}] {meter.fill}%")
            self._say(f"latest request: {meter.context_tokens:,} of {meter.context_window:,} tokens")
        if self._wishes.conversation:
            count, tokens = sent_again(self._sitting.session.shop, self._wishes.conversation)
            self._say(f"sent with each request: {count} messages of this conversation, about {tokens:,} tokens")
        elif meter.fill is None:
            self._say("empty: a new conversation")

    def export(self, words: str) -> None:
        conversation = self._conversation("export")
        path = Path(words or f"conversation-{conversation}.md").expanduser()
        session = self._sitting.session
        text = as_markdown(conversation, list(session.transcript(conversation)))
        bounded.write_given(path, text.encode("utf-8", "backslashreplace"), session.shop.workspace, private=True)
        self._say(f"written: {path}")

    def diff(self, words: str) -> None:
        sitting = self._sitting
        if not words and sitting.shared.waits:
            show_diff(self._out, sitting.session.shown(sitting.shared.waits), sitting.session.shop.store.blobs)
            self._out.hint(f"  run {sitting.shared.waits} waits for your answer: /approve")
            return
        sitting.run_line("diff", *words_of(words))

    def shell(self, words: str) -> None:
        """A command of the user's on a bench; what it changed is shown and promoted if the user agrees."""
        from pawl.agent.tools.toolbox import OutputLines
        from pawl.ui.cli.run_command import exit_code, tell_ending, tell_landing
        from pawl.workspace.benches import CommandRequest, keep, land, run_on_bench

        sitting, shop = self._sitting, self._sitting.session.shop
        self._face.activity(f"running {one_line(words)}")
        said: deque[str] = deque(maxlen=MOST_OUTPUT)

        def show(line: str) -> None:
            said.append(line)
            self._out.say(f"  {line}")

        lines = OutputLines(show)
        request = CommandRequest(argv=("/bin/sh", "-c", words), seconds=shop.config.settings.run_seconds)
        with sitting.session.stoppable() as cancel:
            ran = run_on_bench(shop, request, on_output=lines.feed, cancel=cancel)
        lines.close()
        self._face.activity("")
        code = exit_code(ran)
        self._out.say(f"{'✗' if code else '✓'} exit {code}, {ran.completed.seconds:.1f} s", "red" if code else "green")
        tell_ending(self._out, ran.completed)
        promote = False
        if ran.capture.changes:
            show_diff(self._out, ran.capture.changes, shop.store.blobs)
            promote = agreed(self._face, "promote this?")
        landing = land(shop, ran, allow_protected=False) if promote else keep(shop, ran)
        promoted = [landing.promotion.entry] if landing.promotion else []
        sitting.promoted.extend(promoted)
        sitting.meanwhile.told_entries.update(promoted)
        if ran.capture.changes or landing.held:
            tell_landing(self._out, shop.store.blobs, ran, landing, failed=False, listed=True)
        came = "its changes were promoted" if landing.promotion else "its changes were not promoted"
        tail = "".join(f"\n  {line}" for line in said)
        sitting.meanwhile.notes.append(
            f"ran `{words}`: exit code {code}{f'; {came}' if ran.capture.changes else ''}"
            + (f"; its last lines:{tail}" if tail else "")
        )

    def review(self, words: str) -> None:
        from pawl.agent.edited_change import hidden_names, present_diff, review_request

        sitting = self._sitting
        self._face.activity("reading the changes from git")
        diff, left_out = present_diff(sitting.session.shop)
        text = review_request(diff, words, left_out)
        if left_out:
            self._out.hint(f"  left out, because they are hidden: {hidden_names(left_out)}")
        order = sitting.order(text)
        # The changes are in the request; of the files that it names as hidden none is read.
        sitting.carry(lambda: sitting.session.do(replace(order, mode=Mode.CHAT, read_ahead=False)))

    def init(self, words: str) -> None:
        """A draft by rule, made more of by a model where there is one; promoted after the user's own yes."""
        from pawl.agent import instructions as drafting

        sitting = self._sitting
        shop = sitting.session.shop
        text = drafting.drafted(shop)
        if sitting.shared.model:
            order = sitting.order(drafting.draft_request(text))
            report = sitting.session.do(replace(order, mode=Mode.CHAT, conversation="", attended=False))
            sitting.finish()
            if report.trouble is not None:
                sitting.tell(report)
                return
            text = drafting.answered_text(report.answer)
        while True:
            changes = drafting.proposed(shop, text)
            if not changes:
                self._say(f"{drafting.FILE} already says that")
                return
            show_diff(self._out, changes, shop.store.blobs)
            said = (self._face.line("promote this? [y yes, n no, e edit] ") or "").strip().lower()
            if said in ("y", "yes"):
                entry = drafting.promote(shop, changes)
                self._out.say(f"promoted as entry {entry}; undo with: /undo {entry}", "bold green")
                return
            if said not in ("e", "edit"):
                self._say("nothing was written")
                return
            text = self._face.edited(text, ".md")


def rows_below(out: Screen, rows: list[tuple[str, str]]) -> None:
    """Two columns; the second is folded below itself, and below the first where there is no room beside it."""
    width = min(max((len(name) for name, _ in rows), default=0), 30)
    room = out.width - width - 5
    narrow = room < 24
    margin = "    " if narrow else " " * (width + 4)
    for name, text in rows:
        lines = textwrap.wrap(one_line(text), max(10, out.width - 5) if narrow else room) or [""]
        if narrow or len(name) > width:
            out.say(f"  {name}", "bold" if narrow else "")
        else:
            out.say(f"  {name:<{width}}  {lines.pop(0)}")
        for line in lines:
            out.say(f"{margin}{line}")


def _one_of(word: str, allowed: tuple[str, ...], what: str) -> str:
    if word.lower() not in allowed:
        choice = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise UsageError(f"{what} takes {choice}, not {word!r}", advice=f"such as {what} {allowed[0]}")
    return word.lower()
