"""`pawl run`: a command on a bench, and what becomes of its changes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pawl.app.running import Landing, OnOutput, Ran, RunRequest, keep, land, run_on_bench
from pawl.app.workshop import Workshop
from pawl.core.display import SafeStream
from pawl.core.errors import UsageError
from pawl.core.execution import Ending, Network, Secrets, Stream
from pawl.interfaces.cli.screen import ask, changes_json, emit, is_terminal, say, show_changes, show_patch, warn


def run(shop: Workshop, options: argparse.Namespace) -> int:
    request = _request(shop, options)
    ran = run_on_bench(shop, request, on_output=None if options.json else _live())
    fate = options.fate or ("ask" if is_terminal() and sys.stdin.isatty() and not options.json else "discard")
    if not options.json:
        _tell_ending(ran)
    if fate == "ask" and not options.json and ran.capture.changes:
        fate = _ask(shop, ran)
    landing = _landing(shop, ran, options, fate)
    if options.json:
        emit(_json(shop, ran, landing))
    else:
        _tell_landing(shop, ran, landing, asked_to_apply=fate == "apply")
    return exit_code(ran)


def exit_code(ran: Ran) -> int:
    """The command's own code, or what the shell would say of how it ended."""
    done = ran.completed
    match done.ending:
        case Ending.EXITED:
            return done.code or 0
        case Ending.TIMED_OUT:
            return 124
        case Ending.CANCELLED:
            return 130
        case _:
            return 128 + (done.signal or 9)


def _request(shop: Workshop, options: argparse.Namespace) -> RunRequest:
    argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if not argv:
        raise UsageError("there is no command to run", advice="write it after '--', such as: pawl run -- make test")
    seconds = shop.config.settings.run_seconds if options.seconds is None else options.seconds
    if not 0 < seconds <= 86_400:
        raise UsageError(f"--seconds {seconds:g} is not between 0 and 86400", advice="give the limit in seconds")
    here = Path.cwd()
    root = Path(shop.workspace)
    return RunRequest(
        argv=tuple(argv),
        directory=str(here.relative_to(root)) if here != root and here.is_relative_to(root) else "",
        network=Network.ON if options.net else Network.OFF,
        secrets=Secrets.SHOWN if options.secrets else Secrets.HIDDEN,
        seconds=seconds,
        include_ignored=options.ignored,
    )


def _live() -> OnOutput:
    """Shows the command's output as it comes, with control sequences other than colour made visible."""
    filters = {Stream.STDOUT: SafeStream(), Stream.STDERR: SafeStream()}
    outputs = {Stream.STDOUT: sys.stdout, Stream.STDERR: sys.stderr}

    def show(stream: Stream, data: bytes) -> None:
        outputs[stream].write(filters[stream].feed(data))
        outputs[stream].flush()

    return show


def _tell_ending(ran: Ran) -> None:
    done = ran.completed
    for notice in done.notices:
        warn(f"pawl: {notice}")
    if done.ending is not Ending.EXITED:
        warn(f"pawl: the command was stopped: {done.ending} after {done.seconds:.1f} s")
    for name, captured in (("stdout", done.stdout), ("stderr", done.stderr)):
        if captured.dropped:
            warn(f"pawl: {captured.total:,} bytes of {name}; {captured.dropped:,} were not kept")


def _ask(shop: Workshop, ran: Ran) -> str:
    changes = ran.capture.changes
    say(f"{len(changes)} changes on the bench:")
    show_changes(changes, shop.store.blobs)
    while True:
        match ask("promote them to the workspace? (d shows the diff)", "nyd"):
            case "y":
                return "apply"
            case "d":
                show_patch(changes, shop.store.blobs)
            case _:
                return "discard"


def _landing(shop: Workshop, ran: Ran, options: argparse.Namespace, fate: str) -> Landing:
    if fate == "apply" and ran.completed.ok:
        return land(shop, ran, allow_protected=options.allow_protected or _asked_protected(ran, options))
    return keep(shop, ran)


def _asked_protected(ran: Ran, options: argparse.Namespace) -> bool:
    """Protected files are never part of a plain yes; in a terminal they are asked about by name."""
    names = [held.path for held in ran.capture.held if held.reason == "protected"]
    if not names or options.json or not (is_terminal() and sys.stdin.isatty()):
        return False
    say(f"protected: {', '.join(names)} configure or execute things outside the bench")
    return ask("promote these too?", "ny") == "y"


def _tell_landing(shop: Workshop, ran: Ran, landing: Landing, *, asked_to_apply: bool) -> None:
    if ran.capture.ignored:
        some = ", ".join(ran.capture.ignored[:4])
        say(f"left on the bench (ignored): {some}{' …' if len(ran.capture.ignored) > 4 else ''}")
    for held in landing.held:
        say(f"held back: {held.path} ({held.reason})")
    for path in landing.conflicts:
        say(f"conflict: {path} changed meanwhile in the workspace; yours is kept")
    if landing.promotion is not None:
        promoted = landing.promotion
        say(f"promoted as entry {promoted.entry}; take it back with: pawl undo {promoted.entry}")
        show_changes(promoted.changes, shop.store.blobs)
    elif landing.kept is not None and asked_to_apply and not ran.completed.ok:
        say("the command failed, so its changes were not promoted")
    if landing.kept is not None:
        say(f"kept, not promoted, as entry {landing.kept}; to promote: pawl diff {landing.kept} | pawl patch -")
    elif landing.promotion is None and not landing.conflicts:
        say("nothing to promote")


def _json(shop: Workshop, ran: Ran, landing: Landing) -> dict[str, object]:
    done = ran.completed
    return {
        "argv": list(ran.request.argv),
        "ending": done.ending,
        "exit_code": done.code,
        "signal": done.signal,
        "seconds": round(done.seconds, 3),
        "peak_memory_bytes": done.peak_memory_bytes,
        "stdout": done.stdout.text,
        "stderr": done.stderr.text,
        "output_dropped": done.stdout.dropped + done.stderr.dropped,
        "confinement": done.confinement,
        "notices": list(done.notices),
        "changes": changes_json(ran.capture.changes, shop.store.blobs),
        "ignored": list(ran.capture.ignored),
        "held": [{"path": held.path, "reason": held.reason} for held in landing.held],
        "conflicts": list(landing.conflicts),
        "promoted": landing.promotion.entry if landing.promotion else None,
        "kept": landing.kept,
        "run": shop.run_id,
    }
