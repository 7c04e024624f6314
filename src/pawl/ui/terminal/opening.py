"""Opens a session: with an input line drawn in place where the terminal can do that, line by line where it cannot."""

from __future__ import annotations

import sys
import time

from pawl.core.errors import PawlError, UnknownEntry
from pawl.core.run import Approval, Mode, RunState
from pawl.ui.screen.opening import Opening
from pawl.ui.screen.screen import FoldingScreen, brief, one_line
from pawl.ui.terminal.actions import Actions
from pawl.ui.terminal.commands import OWN, Commands, SessionCommand
from pawl.ui.terminal.face import SessionChoices
from pawl.ui.terminal.keys_help import can_draw
from pawl.ui.terminal.session import TerminalSession

QUICK = 0.3
"""Seconds in which a workspace is looked through again after each run; a larger one only at the start."""


def greeting(sitting: TerminalSession) -> str:
    """The first line: a terminal that is empty to its top would otherwise lose lines of what is drawn there."""
    from pawl.core.version import __version__

    home, place = str(sitting.opening.config.home), str(sitting.opening.workspace)
    short = f"~{place.removeprefix(home)}" if place == home or place.startswith(f"{home}/") else place
    return f"pawl {__version__} in {one_line(short)} · /help"


def begin(sitting: TerminalSession) -> None:
    from pawl.settings.trust import folder_trust, is_trusted
    from pawl.ui.terminal.work_actions import WorkActions

    actions = WorkActions(sitting)
    sitting.actions |= actions.by_name
    shop, config = sitting.session.shop, sitting.opening.config
    sitting.opening.tell_recovery(shop, sitting.face.aside)
    files = folder_trust(config, shop.workspace).files
    if files:
        trusted = is_trusted(config, shop.workspace)
        sitting.shared.trust = (
            "trusted" if trusted else f"not trusted: {len(files)} files would configure Pawl (/trust)"
        )
    try:
        sitting.look_around()
    except PawlError as error:
        sitting.tell_error(error)
    if not sitting.shared.model:
        sitting.tell_no_model()
    _waiting(sitting)
    _take_up(sitting, actions)
    look_for_files(sitting)
    sitting.look_again = look_for_files
    sitting.face.activity("")
    if sitting.opening.request:
        request = sitting.opening.request
        sitting.job(lambda: sitting.request(request))


def look_for_files(sitting: TerminalSession) -> None:
    """Files that can be named with `@`, and the commands that are files."""
    from pawl.agent.agents_file import paths_of
    from pawl.agent.commands import own_commands

    shop = sitting.session.shop
    started = time.monotonic()
    paths = paths_of(shop)
    sitting.shared.looks_again = time.monotonic() - started < QUICK
    sitting.shared.paths = tuple(path for path in paths if one_line(path) == path and len(path.split()) == 1)
    sitting.shared.commands = Commands(
        tuple(
            SessionCommand(
                name=one.name,
                help=one.description,
                group=OWN,
                arguments=one.arguments,
                prompt=one.text,
                model=one.model,
                source=one.source,
                needs=frozenset({"idle"}),
            )
            for one in own_commands(sitting.opening.config, shop.workspace)
        )
    )


def _waiting(sitting: TerminalSession) -> None:
    """A run that waits since yesterday is not forgotten."""
    found = sitting.session.runs(state=RunState.WAITING, limit=1)
    if found:
        sitting.shared.waits = found[0].id
        what = one_line(brief(found[0].order.text, 50))
        sitting.face.out.say(f"! run {found[0].id} waits for your answer ({what}): /approve", "bold yellow")


def _take_up(sitting: TerminalSession, actions: object) -> None:
    from pawl.ui.terminal.work_actions import WorkActions

    assert isinstance(actions, WorkActions)
    opening, session = sitting.opening, sitting.session
    try:
        if opening.resume is not None and not opening.resume:
            sitting.job(lambda: actions.resume(""))
        elif opening.resume:
            actions.resume(opening.resume)
        elif opening.go_on:
            known = session.conversations(limit=1)
            if not known:
                raise UnknownEntry("there is no conversation to go on with", advice="say what is to be done")
            actions.take_up(known[0].id)
        if opening.fork and sitting.wishes.conversation:
            actions.fork("")
    except PawlError as error:
        if not sys.stdin.isatty():
            raise  # What comes through the pipe was meant for a conversation that is not there.
        sitting.tell_error(error)


def open_session(opening: Opening) -> int:
    """Until the user leaves; the exit code."""
    wishes = SessionChoices(model=opening.model, mode=Mode(opening.mode), approval=Approval(opening.approval))
    sitting = TerminalSession(opening, wishes, begin)
    sitting.actions |= Actions(sitting).by_name
    if can_draw(opening.config.environment.get("TERM", "")):
        return _drawn(opening, sitting)
    from pawl.ui.terminal.plain import Plain

    return Plain(sitting).run()


def _drawn(opening: Opening, sitting: TerminalSession) -> int:
    from pawl.ui.terminal.commands import Suggestions
    from pawl.ui.terminal.history import PrivateHistory, history_path
    from pawl.ui.terminal.inline import Inline

    config = opening.config
    face = Inline(
        sitting,
        color=config.color,
        environment=dict(config.environment),
        history=PrivateHistory(history_path(config.state, str(opening.workspace))),
        completer=Suggestions(lambda: sitting.shared.commands.every, lambda: sitting.shared.paths),
    )
    FoldingScreen(sys.stdout, color=config.color).hint(greeting(sitting))
    try:
        face.run(lambda: sitting.start(face))
    finally:
        sitting.leave()
    return 128 + face.heard if face.heard else 0
