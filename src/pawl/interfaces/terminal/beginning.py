"""How a session begins, in the thread of the runs: what is there, what it goes on with, what is asked for first."""

from __future__ import annotations

import sys
import time

from pawl.core.errors import PawlError, UnknownEntry
from pawl.core.runs import RunState
from pawl.interfaces.screen.screen import brief, one_line
from pawl.interfaces.terminal.commands import OWN, Command, Commands
from pawl.interfaces.terminal.sitting import Sitting

QUICK = 0.3
"""Seconds in which a workspace is looked through again after each run; a larger one only at the start."""


def greeting(sitting: Sitting) -> str:
    """The first line: a terminal that is empty to its top would otherwise lose lines of what is drawn there."""
    from pawl.core.version import __version__

    home, place = str(sitting.opening.config.home), str(sitting.opening.workspace)
    short = f"~{place.removeprefix(home)}" if place == home or place.startswith(f"{home}/") else place
    return f"pawl {__version__} in {one_line(short)} · /help"


def begin(sitting: Sitting) -> None:
    from pawl.app.trust import is_trusted
    from pawl.app.trusting import folder_trust
    from pawl.interfaces.terminal.work_actions import WorkActions

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


def look_for_files(sitting: Sitting) -> None:
    """Files that can be named with `@`, and the commands that are files."""
    from pawl.app.commanding import own_commands
    from pawl.app.drafting import paths_of

    shop = sitting.session.shop
    started = time.monotonic()
    paths = paths_of(shop)
    sitting.shared.looks_again = time.monotonic() - started < QUICK
    sitting.shared.paths = tuple(path for path in paths if one_line(path) == path and len(path.split()) == 1)
    sitting.shared.commands = Commands(
        tuple(
            Command(
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


def _waiting(sitting: Sitting) -> None:
    """A run that waits since yesterday is not forgotten."""
    found = sitting.session.runs(state=RunState.WAITING, limit=1)
    if found:
        sitting.shared.waits = found[0].id
        what = one_line(brief(found[0].order.text, 50))
        sitting.face.out.say(f"! run {found[0].id} waits for your answer ({what}): /approve", "bold yellow")


def _take_up(sitting: Sitting, actions: object) -> None:
    from pawl.interfaces.terminal.work_actions import WorkActions

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
