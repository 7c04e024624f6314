"""Reads the words, opens the workshop, calls the command, and turns every error into a message and an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from pawl.core.errors import ConfigError, PawlError, UsageError
from pawl.ui.cli.overview import overview
from pawl.ui.cli.parser import WrongWords, declared, read, runner

if TYPE_CHECKING:
    from pawl.sandbox.cancel import CancelToken
    from pawl.settings.config import Config
    from pawl.ui.screen.screen import Screen
    from pawl.workspace.project import Project


def run(arguments: Sequence[str], started: float) -> int:
    try:
        options = read(arguments)
    except WrongWords as error:
        _tell(sys.stderr, f"{error.message}\n      {error.hint}")
        return 2
    except SystemExit:  # The help of a command.
        return 0
    if options.command in ("help", "version"):
        from pawl.core import __version__

        _tell(sys.stdout, overview().removesuffix("\n") if options.command == "help" else f"pawl {__version__}")
        return 0
    return _call(options, started)


def _call(options: argparse.Namespace, started: float) -> int:
    sys.excepthook = _Defect(options)
    from pawl.ui.cli.call import Interrupted, leave

    try:
        return _told(options, started)
    except (Interrupted, RuntimeError) as error:
        # Before Python 3.12 what a signal raises while a class is made comes as the cause of another error.
        stopped = error.__cause__ if isinstance(error, RuntimeError) else error
        if not isinstance(stopped, Interrupted):
            raise
        leave()
        return _report(options, stopped.word, stopped.word, "nothing was left half done", stopped.exit_code)


def _told(options: argparse.Namespace, started: float) -> int:
    """Tells of every error that is expected; a signal may come meanwhile, too."""
    try:
        return _dispatch(options, started)
    except PawlError as error:
        error = _complete(error)
        conflicts = [str(getattr(one, "path", one)) for one in getattr(error, "conflicts", ())]
        return _report(options, error.code, error.message, error.advice, error.exit_code, conflicts)
    except BrokenPipeError:
        raise
    except OSError as error:
        named = f" {error.filename!r}" if error.filename is not None else ""
        return _report(options, "system", f"system error{named}: {error.strerror or error}", "", 1)


def _dispatch(options: argparse.Namespace, started: float) -> int:
    from pawl.settings.config import load, partly_loaded
    from pawl.ui.cli.call import Call
    from pawl.ui.screen.screen import THEMES, Screen
    from pawl.workspace.paths import find_workspace

    command = declared(options.command)
    config, wrong = partly_loaded() if command.rescue else (load(), None)
    Screen.theme = THEMES.get(str(config.tables.session.get("theme")), {})
    draws = config.environment.get("TERM", "dumb") != "dumb"
    aside = Screen(sys.stderr, color=config.color, aside=True, draws=draws)
    out = Screen(sys.stdout, color=config.color, draws=draws)
    call = Call(options, out, aside, environment=config.environment, started=started)
    call.interruptions.listen()
    sys.excepthook = _Defect(options, config)
    if wrong is not None:
        aside.say(f"! {wrong.message}; the defaults are used instead", "bold yellow")
    if options.command == "acp":
        # The editor names the folders.
        return runner("acp")(config)
    reads = command.reads if isinstance(command.reads, bool) else options.action in command.reads
    reads = reads or getattr(options, "dry_run", False)
    start, exact = _start(options), options.workspace is not None
    workspace = find_workspace(start, config, exact=exact, reads=reads, anywhere=command.rescue)
    if options.command in ("session", "web"):
        return runner(options.command)(config, workspace, call)
    from pawl.workspace.project import Project

    with Project.open(config, workspace) as shop:
        tell_recovery(shop, call.aside)
        if not reads or options.command == "verify":
            tell_unread(shop, call.aside)
        known = _known_above(shop, start.resolve()) if command.rescue and not exact else None
        if known is None:
            return runner(options.command)(shop, call)
    aside.say(f"pawl: {str(workspace)!r} has no history; using that of {str(known)!r}")
    with Project.open(config, known) as shop:
        tell_recovery(shop, call.aside)
        return runner(options.command)(shop, call)


def _known_above(shop: Project, start: Path) -> Path | None:
    """The nearest folder upwards that has a history, where the workspace has none; not beyond a repository."""
    from pawl.workspace.paths import is_repository

    if shop.entries(limit=1):
        return None
    folders = (start, *start.parents)
    if is_repository(Path(shop.workspace)):
        folders = tuple(one for one in folders if one.is_relative_to(shop.workspace))
    return next((one for one in folders if shop.store.journal.entries(str(one), limit=1)), None)


def run_words(
    shop: Project, words: Sequence[str], out: Screen, *, for_program: bool = False, cancel: CancelToken | None = None
) -> int:
    """Runs a command for a session with nobody to ask; what it says goes to that screen, as JSON for a program."""
    from pawl.ui.cli.call import Call

    help_text = io.StringIO()
    try:
        with redirect_stdout(help_text):
            options = read(words)
    except WrongWords as error:
        raise UsageError(error.message, advice=error.hint) from error
    except SystemExit:  # The help of the command.
        out.lines(help_text.getvalue().rstrip())
        return 0
    if options.json != for_program:
        raise UsageError("--json is for programs", advice="leave it out here")
    held = shop.stop
    shop.stop = cancel or held
    try:
        return runner(options.command)(shop, Call(options, out, out, asks=False))
    finally:
        shop.stop = held


def _start(options: argparse.Namespace) -> Path:
    if options.workspace is not None:
        if not options.workspace:
            raise UsageError("-C does not name a folder", advice="give the folder of your project with -C")
        return Path(options.workspace)
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the folder you are in is gone", advice="change to one that exists") from error


def tell_recovery(shop: Project, aside: Screen) -> None:
    if shop.store.set_aside is not None:
        aside.say(f"pawl: the state file was damaged; it is kept as {str(shop.store.set_aside)!r}")
        aside.say("      a new one was started")
    if shop.unrecovered:
        aside.say(f"pawl: {shop.unrecovered}")
    for recovery in shop.recovered:
        aside.say(f"pawl: entry {recovery.entry.id} was interrupted and is now {recovery.state}")
        for path in recovery.kept:
            aside.say(f"      {path} holds your own work and was not touched")


def tell_unread(shop: Project, aside: Screen) -> None:
    if why := shop.unread_commits():
        aside.say(f"! {why}", "yellow")


def _report(
    options: argparse.Namespace,
    name: str,
    message: str,
    advice: str,
    exit_code: int,
    conflicts: Sequence[str] = (),
) -> int:
    if options.json:
        from pawl.ui.cli.encoder import as_json

        body = {"error": name, "message": message, "advice": advice, "exit_code": exit_code}
        _tell(sys.stdout, as_json(body | ({"conflicts": list(conflicts)} if conflicts else {})))
        return exit_code
    _tell(sys.stderr, f"pawl: {message}" + (f"\n      {advice}" if advice else ""))
    return exit_code


def _complete(error: PawlError) -> PawlError:
    """Who has to correct the settings is told all that is wrong there."""
    if not isinstance(error, ConfigError):
        return error
    from pawl.ui.cli.mistakes import with_every_mistake

    return with_every_mistake(error)


def _tell(stream: TextIO, text: str) -> None:
    from pawl.ui.screen.screen import Screen

    Screen(stream, color=False).lines(text)


class _Defect:
    """Reports an error that nobody expected: one line, and where the traceback is."""

    def __init__(self, options: argparse.Namespace, config: Config | None = None) -> None:
        self._options = options
        self._config = config

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        place = self._written(kind, error, trace)
        advice = "this is a defect of Pawl; please report it" + (f" with {str(place)!r}" if place else "")
        _report(self._options, "defect", f"something unexpected: {kind.__name__}: {error}", advice, 1)

    def _written(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Path | None:
        if self._config is None:
            return None
        import traceback

        from pawl.core.redact import redacted

        place = self._config.state / "defect.txt"
        text = redacted("".join(traceback.format_exception(kind, error, trace)))
        try:
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            return None
        return place
