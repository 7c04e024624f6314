"""`pawl run`: a command on a bench, and what becomes of its changes."""

from __future__ import annotations

from enum import Enum

from pawl.app.running import Landing, Ran, RunRequest, keep, land, run_on_bench
from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.errors import PawlError, UsageError
from pawl.core.execution import Ending, Network, Secrets
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.landing import tell_changes, tell_ending, tell_landing
from pawl.interfaces.cli.live import Live
from pawl.interfaces.cli.shapes import Json, changes_json, path_json
from pawl.interfaces.cli.signals import Interrupted

_MOST_SECONDS = 86_400
_DIFF_LINES = 400
"""Shown before the question; more would push it out of sight."""


class Verdict(Enum):
    KEEP = "keep"
    PROMOTE = "promote"
    PROMOTE_PROTECTED = "promote, protected files too"


def run(shop: Workshop, call: Call) -> int:
    """Pawl's own words go to stderr, so that stdout is the command's."""
    fate = _fate(call)
    ran = _run(shop, call)
    stopped = call.interruptions.heard
    verdict = Verdict.KEEP
    try:
        if stopped is None:
            verdict = _verdict(shop, call, ran, fate)
    except Interrupted as error:
        stopped = error
        call.aside.say()
    landing = _landed(shop, ran, verdict)
    code = stopped.exit_code if stopped is not None else exit_code(ran)
    if code == 0 and verdict is not Verdict.KEEP and landing.conflicts:
        code = 1
    if call.options.json:
        call.emit(_json(shop, ran, landing, code))
    else:
        failed = fate == "apply" and stopped is None and not ran.completed.ok
        listed = fate == "ask" and call.interruptions.heard is None
        tell_landing(call.aside, shop.store.blobs, ran, landing, failed=failed, listed=listed)
    return code


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


def _fate(call: Call) -> str:
    fate: str | None = call.options.fate
    if fate == "ask" and not call.can_ask:
        raise UsageError("--ask needs a terminal to ask on", advice="say --apply or --discard")
    # With the output in a pipe, whoever reads it may want the keyboard for itself, as a pager does.
    return fate or ("ask" if call.can_ask and call.out.is_terminal else "discard")


def _run(shop: Workshop, call: Call) -> Ran:
    live = None if call.options.json else Live(call.interruptions)
    with call.interruptions.stopping() as cancel:
        ran = run_on_bench(shop, _request(shop, call), on_output=live.show if live else None, cancel=cancel)
    if live is not None:
        live.close()
        if call.interruptions.heard is not None and call.aside.is_terminal:
            call.aside.say()  # The terminal has written ^C.
        tell_ending(call.aside, ran.completed)
    return ran


def _request(shop: Workshop, call: Call) -> RunRequest:
    options = call.options
    if not options.argv:
        raise UsageError("there is no command to run", advice="write it after '--', such as: pawl run -- make test")
    seconds = shop.config.settings.run_seconds if options.seconds is None else options.seconds
    if not 0 < seconds <= _MOST_SECONDS:
        raise UsageError(
            f"--seconds {seconds:g} is not above 0 and at most {_MOST_SECONDS}", advice="give the limit in seconds"
        )
    return RunRequest(
        argv=tuple(options.argv),
        directory=call.directory(shop.workspace),
        network=Network.ON if options.net else Network.OFF,
        secrets=Secrets.SHOWN if options.secrets else Secrets.HIDDEN,
        seconds=seconds,
        include_ignored=options.ignored,
    )


def _verdict(shop: Workshop, call: Call, ran: Ran, fate: str) -> Verdict:
    """What the options or the user say. A yes to the changes is not yet one to protected files among them."""
    if fate == "discard" or (fate == "apply" and not ran.completed.ok):
        return Verdict.KEEP
    changes, protected = ran.capture.changes, _protected(ran)
    if fate == "ask" and changes:
        tell_changes(call.aside, changes, shop.store.blobs)
        if not ran.completed.ok:
            call.aside.say("the command failed", "yellow")
        if not _agreed(shop, call, changes, "promote to the workspace?"):
            return Verdict.KEEP
    if call.options.allow_protected:
        return Verdict.PROMOTE_PROTECTED
    if fate == "ask" and protected:
        call.aside.say("protected, because they configure or execute things, or asked about by a rule", "bold")
        call.aside.changes(protected, shop.store.blobs, most=len(protected))
        if _agreed(shop, call, protected, "promote these too?"):
            return Verdict.PROMOTE_PROTECTED
    return Verdict.PROMOTE if changes or fate == "apply" else Verdict.KEEP


def _protected(ran: Ran) -> ChangeSet:
    held = (one for one in ran.capture.held if one.needs_yes)
    return ChangeSet.of(one.change for one in held if one.change is not None)


def _agreed(shop: Workshop, call: Call, changes: ChangeSet, question: str) -> bool:
    while True:
        match call.aside.ask(question, "nyd", "y/N, d for the diff"):
            case "y":
                return True
            case "d":
                call.aside.patch(changes, shop.store.blobs, most=_DIFF_LINES)
            case _:
                return False


def _landed(shop: Workshop, ran: Ran, verdict: Verdict) -> Landing:
    if verdict is Verdict.KEEP:
        return keep(shop, ran)
    try:
        return land(shop, ran, allow_protected=verdict is Verdict.PROMOTE_PROTECTED)
    except PawlError as error:
        kept = keep(shop, ran).kept
        hint = f"what the command changed is kept: pawl promote {kept}"
        error.advice = f"{error.advice}; {hint}" if error.advice else hint
        raise


def _json(shop: Workshop, ran: Ran, landing: Landing, code: int) -> Json:
    done = ran.completed
    return {
        "argv": list(ran.request.argv),
        "ending": done.ending,
        "code": done.code,
        "signal": done.signal,
        "exit_code": code,
        "seconds": round(done.seconds, 3),
        "peak_memory_bytes": done.peak_memory_bytes,
        "stdout": done.stdout.text,
        "stderr": done.stderr.text,
        "output_dropped": done.stdout.dropped + done.stderr.dropped,
        "confinement": done.confinement,
        "notices": list(done.notices),
        "changes": changes_json(ran.capture.changes, shop.store.blobs),
        "ignored": list(ran.capture.ignored),
        "held": [{**path_json(held.path), "reason": held.reason, "rule": held.rule} for held in landing.held],
        "conflicts": list(landing.conflicts),
        "promoted": landing.promotion.entry if landing.promotion else None,
        "kept": landing.kept,
        "run": shop.run_id,
    }
