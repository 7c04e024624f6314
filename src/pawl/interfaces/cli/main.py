"""Reads the words, opens the workshop, calls the command, and turns every error into a message and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from pawl.core.errors import PawlError, UsageError
from pawl.interfaces.cli.parser import build

MODULES = {
    "run": "run",
    "patch": "patch",
    "history": "history",
    "diff": "history",
    "undo": "undo",
    "redo": "undo",
    "checkpoint": "undo",
    "restore": "undo",
    "doctor": "upkeep",
    "gc": "upkeep",
}

Command = Callable[..., int]


def run(arguments: Sequence[str]) -> int:
    options = build().parse_args(arguments)
    try:
        return _dispatch(options)
    except PawlError as error:
        return _report(error, options)
    except KeyboardInterrupt:
        sys.stderr.write("pawl: interrupted; nothing was left half done\n")
        return 130
    except BrokenPipeError:
        # The reader went away, as `head` does; Python would complain again when it flushes at exit.
        sys.stdout = None
        return 141


def _dispatch(options: argparse.Namespace) -> int:
    import importlib
    from pathlib import Path

    from pawl.app.config import load
    from pawl.app.places import find_workspace
    from pawl.app.workshop import Workshop

    module = importlib.import_module(f"pawl.interfaces.cli.{MODULES[options.command]}")
    command: Command = getattr(module, options.command)
    config = load()
    start = Path(options.workspace or ".")
    workspace = find_workspace(start, config, exact=options.workspace is not None)
    with Workshop.open(config, workspace) as shop:
        _tell_recovery(shop)
        return command(shop, options)


def _tell_recovery(shop: object) -> None:
    from pawl.app.workshop import Workshop

    assert isinstance(shop, Workshop)
    if shop.store.set_aside is not None:
        sys.stderr.write(
            f"pawl: the state file was damaged; it is kept as {shop.store.set_aside} and a new one was started\n"
        )
    for recovery in shop.recovered:
        kept = f"; your own {', '.join(recovery.kept)} left as it is" if recovery.kept else ""
        sys.stderr.write(f"pawl: entry {recovery.entry.id} was interrupted and is now {recovery.state}{kept}\n")


def _report(error: PawlError, options: argparse.Namespace) -> int:
    if options.json:
        import json

        conflicts = [str(getattr(one, "path", one)) for one in getattr(error, "conflicts", ())]
        body = {"error": error.code, "message": error.message, "advice": error.advice, "exit_code": error.exit_code}
        print(json.dumps(body | ({"conflicts": conflicts} if conflicts else {})))
    else:
        sys.stderr.write(f"pawl: {error.message}\n")
        if error.advice:
            sys.stderr.write(f"      {error.advice}\n")
    return error.exit_code


def entry_number(text: str | None) -> int | None:
    """An entry's number as a person writes it."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{text!r} is not an entry number", advice="'pawl history' lists them")
    return int(text)
