"""`pawl patch` applies a change that comes as text, `pawl promote` one that was kept."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.change import EntryKind
from pawl.core.errors import Refused, UsageError
from pawl.core.typed import plain
from pawl.settings import files as bounded
from pawl.ui.cli.call import Call, given_bytes, refuse_unverified
from pawl.ui.cli.encoder import changes_json, held_json
from pawl.ui.cli.parser import Command, dry_run_option, protected_option, seconds_option, verified_option
from pawl.ui.cli.run_command import hint_protected, tell_held
from pawl.ui.screen.run_report import verdict_line

if TYPE_CHECKING:
    from pawl.code.patch_change import PatchProposal
    from pawl.workspace.project import Project


def patch_words(parser: ArgumentParser) -> None:
    parser.add_argument("patch", nargs="?", metavar="FILE", help="a git or unified patch; '-' or none for stdin")
    parser.add_argument("--path", metavar="F", help="replace a text in this file: it must occur exactly once")
    parser.add_argument("--old", metavar="TEXT", help="the text to replace (with --path)")
    parser.add_argument("--new", metavar="TEXT", help="the text to put there (with --path)")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the history")
    protected_option(parser)
    parser.add_argument("--yes", action="store_true", help="exceed the guardrails' size limits without asking")
    dry_run_option(parser)


def promote_words(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the entry (default: the newest, if it was kept)")
    parser.add_argument("--file", action="append", metavar="F", help="promote only this file of it; repeatable")
    parser.add_argument("--unchecked", action="store_true", help="promote an agent's change without verifying it")
    verified_option(parser)
    protected_option(parser)
    seconds_option(parser)
    dry_run_option(parser)


DECLARED = {
    "patch": Command(
        words=patch_words,
        example="git diff | pawl patch -\n  pawl patch --path app.py --old 'retries = 3' --new 'retries = 5'",
    ),
    "promote": Command(words=promote_words, example="pawl promote 3"),
}


def patch(shop: Project, call: Call) -> int:
    proposal = _proposal(shop, call)
    promotion = None
    if not call.options.dry_run:
        _within_guardrails(shop, call, proposal)
        yes = call.options.allow_protected
        entry = shop.new_entry(EntryKind.EDIT, _title(shop, call), call.options.reason, allows_protected=yes)
        promotion = shop.promote(entry, proposal.changes)
    changes = promotion.changes if promotion else proposal.changes
    notices = (*proposal.notices, *(promotion.notices if promotion else ()))
    number = promotion.entry if promotion else None
    if call.options.json:
        shown = changes_json(changes, shop.store.blobs)
        return call.emit({"entry": number, "changes": shown, "breaches": proposal.breaches, "notices": notices})
    call.out.say("would change" if number is None else f"promoted as entry {number}", "bold")
    call.out.changes(changes, shop.store.blobs)
    call.out.notes(notices)
    if number is not None:
        call.out.hint(f"undo with: pawl undo {number}")
        return 0
    for breach in proposal.breaches:
        call.out.say(f"note: {breach}; --yes overrides it")
    return 0


def _title(shop: Project, call: Call) -> str:
    if call.options.path is not None:
        return f"patch {call.inside(shop.workspace, call.options.path)}"
    name = call.options.patch
    return "patch from stdin" if name in (None, "-") else f"patch {Path(name).name}"


def _proposal(shop: Project, call: Call) -> PatchProposal:
    from pawl.code.patch_change import propose_patch, propose_text

    options = call.options
    if options.path is not None:
        if options.old is None or options.new is None or options.patch is not None:
            raise UsageError("--path needs --old and --new, and no patch file", advice="see 'pawl patch --help'")
        path = call.inside(shop.workspace, options.path)
        return propose_text(shop, path, options.old, options.new, allow_protected=options.allow_protected)
    if options.old is not None or options.new is not None:
        raise UsageError("--old and --new need --path", advice="name the file with --path")
    if options.patch in (None, "-") and sys.stdin.isatty():
        raise UsageError("there is no patch", advice="name a file, or pipe one: git diff | pawl patch -")
    text = given_bytes(options.patch, bounded.LARGEST_DATA, "the patch")
    return propose_patch(shop, text, allow_protected=options.allow_protected)


def _within_guardrails(shop: Project, call: Call, proposal: PatchProposal) -> None:
    """Above the preset's limits the user is asked."""
    if not proposal.breaches or call.options.yes:
        return
    if call.can_ask:
        call.aside.changes(proposal.changes, shop.store.blobs)
        for breach in proposal.breaches:
            call.aside.say(breach)
        if call.aside.ask("continue?", "ny", "y/N") == "y":
            return
    told = "; ".join(proposal.breaches)
    raise Refused(told, advice="split the change, or repeat with --yes")


def promote(shop: Project, call: Call) -> int:
    from pawl.agent.delivery import proved_entry
    from pawl.checks.whole_suite import begin_whole_suite
    from pawl.workspace.benches import propose_entry

    shop.stop = call.time_limit("60 suits most projects", shop.stop)
    entry = shop.entry(call.entry_number())
    files = [call.inside(shop.workspace, one) for one in call.options.file or ()]
    kept = propose_entry(shop, entry, allow_protected=call.options.allow_protected, files=files)
    if call.options.unchecked and call.options.verified:
        raise UsageError("--unchecked and --verified cannot be used together", advice="leave one of them out")
    promotion, judgement = None, None
    if not call.options.dry_run:
        title = f"promote {entry.id}: {entry.title}"
        yes = call.options.allow_protected
        new = shop.new_entry(entry.kind, title, entry.reason, allows_protected=yes)
        if call.options.verified or (entry.kind is EntryKind.EDIT and not call.options.unchecked):
            judgement, evidence = proved_entry(shop, entry, kept.changes)
            if call.options.verified:
                refuse_unverified(judgement.verdict, judgement.unproved)
            new = replace(new, evidence=plain(evidence))
        promotion = shop.promote(new, kept.changes, merge=judgement is None)
        told = begin_whole_suite(shop, promotion.entry) if judgement is not None else ""
        promotion = replace(promotion, notices=(*promotion.notices, *((told,) if told else ())))
    changes = promotion.changes if promotion else kept.changes
    notices = promotion.notices if promotion else ()
    number = promotion.entry if promotion else None
    if call.options.json:
        return call.emit(
            {
                "entry": number,
                "from": entry.id,
                "changes": changes_json(changes, shop.store.blobs),
                "held": [held_json(one) for one in kept.held],
                "verdict": judgement.verdict if judgement is not None else None,
                "unproved": judgement.unproved if judgement is not None else (),
                "notices": notices,
            }
        )
    call.out.say("would promote" if number is None else f"promoted as entry {number}", "bold")
    call.out.changes(kept.changes, shop.store.blobs)
    if judgement is not None:
        for line in verdict_line(judgement.verdict, judgement.refused or judgement.unproved):
            call.out.say(line)
    tell_held(call.out, kept.held)
    if number is not None:
        call.out.hint(f"undo with: pawl undo {number}")
    hint_protected(call.out, kept.held, entry.id)
    call.out.notes(notices, "yellow")
    return 0
