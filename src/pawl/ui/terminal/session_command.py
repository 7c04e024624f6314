"""`pawl session`: with an input line drawn in place where the terminal can do that, line by line where it cannot."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from pawl.core.dialogue import typed_words
from pawl.core.errors import PawlError, UnknownEntry
from pawl.core.run import RunState
from pawl.settings.config import Config
from pawl.ui.cli.call import Call
from pawl.ui.cli.main import tell_recovery, tell_unread
from pawl.ui.cli.parser import Command, continue_option, mixed, mode_options, model_option
from pawl.ui.screen.approval import edited
from pawl.ui.screen.screen import FoldingScreen, Screen, brief, counted, one_line, short_path
from pawl.ui.terminal.actions import Actions
from pawl.ui.terminal.commands import commands_of
from pawl.ui.terminal.status import can_draw
from pawl.ui.terminal.terminal_session import NO_MODEL, SessionFace, TerminalSession


def words(parser: ArgumentParser) -> None:
    parser.usage = "pawl [session] [options] [REQUEST ...]"
    parser.add_argument("request", nargs="*", metavar="REQUEST", help="the first request")
    which = parser.add_mutually_exclusive_group()
    continue_option(which)
    which.add_argument(
        "-r",
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="resume this conversation or run; without ID choose from a list",
    )
    parser.add_argument("--fork-session", action="store_true", help="with -c or -r: continue in a copy of it")
    model_option(parser)
    mode_options(parser)


DECLARED = {
    "session": Command(words=words, example="pawl session -c\n  pawl session -r c0ffee12 --fork-session", read=mixed)
}


def session(config: Config, workspace: Path, call: Call) -> int:
    """Until the user leaves; the exit code."""
    sitting = TerminalSession(config, workspace, call, begin)
    sitting.act = Actions(sitting).carry_out
    if not can_draw(config.environment.get("TERM", "")):
        return Plain(sitting).run()
    # prompt_toolkit takes a tenth of a second, which a session through pipes does not pay.
    from pawl.ui.terminal.inline import Inline
    from pawl.ui.terminal.input_line import PrivateHistory, Suggestions, history_path

    face = Inline(
        sitting,
        color=config.color,
        environment=dict(config.environment),
        history=PrivateHistory(history_path(config.state, str(workspace))),
        completer=Suggestions(lambda: sitting.shared.commands.every, lambda: sitting.shared.paths),
    )
    screen = FoldingScreen(sys.stdout, color=config.color)
    screen.hint(greeting(sitting))
    try:
        face.run(lambda: sitting.start(face))
    finally:
        sitting.leave()
        for line in sitting.farewell():
            screen.hint(line)
    return 128 + face.heard if face.heard else 0


def greeting(sitting: TerminalSession) -> str:
    """The first line: a terminal that is empty to its top would otherwise lose lines of what is drawn there."""
    from pawl.core import __version__

    return f"pawl {__version__} in {short_path(sitting.workspace, sitting.config.home)} · /help"


def begin(sitting: TerminalSession) -> None:
    from pawl.settings.trust import folder_trust, is_trusted

    shop, config = sitting.session.shop, sitting.config
    tell_recovery(shop, sitting.face.aside)
    tell_unread(shop, sitting.face.aside)
    files = folder_trust(config, shop.workspace).files
    if files:
        trusted = is_trusted(config, shop.workspace)
        sitting.shared.trust = (
            "trusted" if trusted else f"not trusted: {counted(len(files), 'file')} could configure Pawl (/trust)"
        )
    try:
        sitting.look_around()
    except PawlError as error:
        sitting.tell_error(error)
    if not sitting.shared.model and getattr(sitting.face, "live", False) and not config.file.exists():
        sitting.face.out.say(f"! {NO_MODEL}", "bold yellow")
        sitting.job(lambda: Actions(sitting).setup(""))
    elif not sitting.shared.model:
        sitting.tell_no_model()
    _waiting(sitting)
    _take_up(sitting)
    look_for_files(sitting)
    for one in sitting.shared.commands.shadowed:
        sitting.face.aside.hint(f"! the command /{one.name} from {one.source} is not used: Pawl has one of that name")
    sitting.look_again = look_for_files
    sitting.face.activity("")
    request = " ".join(sitting.call.options.request).strip()
    if request:
        sitting.entered(request)


def look_for_files(sitting: TerminalSession) -> None:
    """Files that can be named with `@`, and the commands that are files."""
    shop = sitting.session.shop
    paths = sitting.meanwhile.paths(shop)
    sitting.shared.paths = tuple(path for path in paths if one_line(path) == path and len(path.split()) == 1)
    sitting.shared.commands = commands_of(sitting.config, shop.workspace)


def _waiting(sitting: TerminalSession) -> None:
    """A run that waits, or was stopped, since yesterday is not forgotten."""
    found = sitting.session.runs(state=RunState.WAITING, limit=1)
    if found:
        sitting.shared.waits = found[0].id
        what = one_line(brief(typed_words(found[0].order.text), 50))
        sitting.face.out.say(f"! run {found[0].id} waits for your answer ({what}): /approve", "bold yellow")
    stopped = sitting.session.stopped()
    if stopped is not None:
        what = one_line(brief(typed_words(stopped.order.text), 50))
        queued = [one_line(brief(one.text, 50)) for one in sitting.session.left_queued(stopped)]
        then = f", queued after it: {'; '.join(queued)}" if queued else ""
        sitting.face.out.say(f"! run {stopped.id} was stopped ({what}{then}): /resume {stopped.id}", "bold yellow")


def _take_up(sitting: TerminalSession) -> None:
    """The conversation or run that the options name."""
    options, actions = sitting.call.options, Actions(sitting)
    try:
        if options.resume is not None and not options.resume:
            sitting.job(lambda: actions.resume(""))
        elif options.resume:
            actions.resume(options.resume)
        elif options.go_on:
            known, stopped = sitting.session.conversations(limit=1), sitting.session.stopped()
            if known:
                actions.take_up(known[0].id)
            elif stopped is None:
                raise UnknownEntry("there is no conversation to continue", advice="type a request")
            if stopped is not None and sitting.face.live:
                sitting.job(lambda: actions.offer(stopped.id))
        if options.fork_session and sitting.wishes.conversation:
            actions.fork("")
    except PawlError as error:
        if not sys.stdin.isatty():
            raise  # What comes through the pipe was meant for a conversation that is not there.
        sitting.tell_error(error)


PROMPT = "> "


class Plain(SessionFace):
    """The face where nothing can be drawn in place: through pipes, in an editor's shell, in a dumb terminal.

    Lines are read one after the other, and each is carried out before the next; a signal stops what works.
    """

    def __init__(self, sitting: TerminalSession) -> None:
        self._sitting = sitting
        self._left = False
        self._asks = sys.stdin.isatty()

    @property
    def out(self) -> Screen:
        return self._sitting.call.out

    @property
    def aside(self) -> Screen:
        return self._sitting.call.aside

    def run(self) -> int:
        """Until the input ends or the user leaves."""
        sitting = self._sitting
        with sitting.here(self):
            while not self._left:
                line = self._read(PROMPT)
                if line is None:
                    break
                if line.strip():
                    with sitting.call.interruptions.stopping() as cancel:
                        sitting.session.cancel = cancel
                        sitting.entered(line.strip(), echo=not self._asks)
                        sitting.work()
                        sitting.session.cancel = None
        return 0

    def line(self, question: str, over: Callable[[], bool] | None = None) -> str | None:
        return self._read(question)

    def secret(self, question: str) -> str | None:
        import getpass

        return getpass.getpass(question) if self._asks else None

    def edited(self, text: str, suffix: str) -> str:
        return edited(text, suffix, self._sitting.config.environment)

    def leave(self) -> None:
        self._left = True

    def _read(self, prompt: str) -> str | None:
        if self._asks:
            self.out.put(prompt)
        line = sys.stdin.readline()
        if not line:
            return None
        return line.rstrip("\n")
