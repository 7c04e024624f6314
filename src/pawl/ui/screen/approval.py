"""The user's answer to what a run waits for, as one types it: yes, no with a reason, some hunks, edited, or later."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.errors import UsageError
from pawl.core.run import ApprovalAnswer, ApprovalRequest, ApprovalResponse, Report
from pawl.settings import files as bounded
from pawl.settings.config import host_program, host_variables
from pawl.settings.permission_rules import web_host
from pawl.ui.screen.run_report import show_question
from pawl.ui.screen.screen import Face, brief

if TYPE_CHECKING:
    from pawl.agent.session import Session

FALLBACKS = ("sensible-editor", "nano", "vi")
MOST_BYTES = 16 << 20
REMARKS = """\
# Edit the lines that begin with + and take out hunks; the counts are adjusted. What is left is verified and promoted.
# Lines between files that begin with # are left out. Delete everything to change nothing.
"""


def edited(text: str, suffix: str, environment: Mapping[str, str]) -> str:
    """The text as the user left it in the editor."""
    words = editor_words(environment)
    with tempfile.TemporaryDirectory(prefix="pawl-") as folder:
        path = Path(folder) / f"change{suffix}"
        path.write_text(text, "utf-8", "surrogateescape", newline="")
        try:
            # Not where Pawl was started: an editor may read configuration of the folder that it stands in.
            done = subprocess.run([*words, str(path)], check=False, cwd=folder, env=host_variables(environment))
        except OSError as error:
            raise UsageError(
                f"the editor {words[0]!r} cannot be started: {error.strerror}",
                advice="set EDITOR to one that can be started",
            ) from error
        if done.returncode:
            raise UsageError(
                f"the editor {words[0]!r} ended with {done.returncode}", advice="the question is still open"
            )
        return read_text(path)


def read_text(path: Path) -> str:
    with bounded.opened(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UsageError("the edited text is too large", advice=f"at most {MOST_BYTES >> 20} MB")
    return data.decode("utf-8", "surrogateescape")


def editor_words(environment: Mapping[str, str]) -> list[str]:
    """The command of the user's editor."""
    named = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise UsageError(f"EDITOR is {named!r}, which cannot be read: {error}", advice="close the quotes") from error
    for name in words[:1] or FALLBACKS:
        found = name if "/" in name else host_program(name, environment)
        if found:
            return [found, *words[1:]]
    if words:
        raise UsageError(f"the editor {words[0]!r} cannot be started: it is not on PATH", advice="set EDITOR again")
    raise UsageError("there is no editor", advice="set EDITOR, such as EDITOR=nano, or use --patch FILE")


YES = frozenset({"y", "yes"})
NO = frozenset({"n", "no"})
LATER = frozenset({"l", "later"})
EDIT = frozenset({"e", "edit"})
SHOW = frozenset({"d", "diff"})
ANSWERS = YES | NO | LATER | EDIT | SHOW | {"a", "p"}
"""Words that answer a question, and say nothing to a run that works."""
_HUNKS = re.compile(r"(?:h|hunks?)?\s*(?P<numbers>\d{1,6}(?:[\s,]+\d{1,6})*)")
CHOICES = "y yes, n no, {hunks}e edit, d diff, l later"
CHOICES_OF_CALL = "y yes, {always}n no, d show all, l later"
ALWAYS = "a always in this run, p always for {what}, "
_SEVERAL = re.compile(r"[;&|<>`$()\n]|^\S*=")


def ask_approval(session: Session, report: Report, face: Face) -> ApprovalResponse | None:
    """Shows what is asked about and asks until there is an answer; None to answer later.

    Of a call that is like one for which the user said "always" only a line is shown.
    """
    question = report.question
    assert question is not None
    kinds = always_kinds(question, report.run)
    if session.agreed.isdisjoint(kinds.values()):
        return _asked(session, report, face, kinds)
    face.aside.hint(f"· {question.tool} {brief(kinds['p'][2], 40)}: yes, as you said")
    return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=question.digest)


def _asked(
    session: Session, report: Report, face: Face, kinds: Mapping[str, tuple[str, ...]]
) -> ApprovalResponse | None:
    question = report.question
    assert question is not None
    if report.stale:
        face.aside.say(f"! the approval was not accepted: {report.stale}", "bold yellow")
    changes = session.shown(report.run)
    face.out.say()
    complete = show_question(session.shop, report, face, changes)
    if not complete:
        face.aside.say("! this is not all of it; d shows everything", "bold yellow")
    of_call = question.kind == "call"
    always = ALWAYS.format(what=brief(kinds["p"][2], 40)) if kinds else ""
    carries = f"carry it out? [{CHOICES_OF_CALL.format(always=always)}] "
    prompt = carries if of_call else f"promote this? [{_choices(session, report)}] "
    while True:
        said = face.line(prompt, lambda: is_answered(session, report))
        word, _, rest = (said or "").strip().partition(" ")
        word = word.lower()
        if not word or word in LATER:
            return None
        yes = not rest and (word in YES or word in kinds)
        if yes and not complete:
            face.aside.say("part of it was not shown: d shows everything, y approves it as it is", "bold yellow")
            complete = True
            continue
        if yes:
            session.agreed.update([kinds[word]] if word in kinds else ())
            return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=question.digest)
        if word in NO:
            reason = rest.strip() or (face.line("why? [Enter: no reason] ") or "").strip()
            return ApprovalResponse(answer=ApprovalAnswer.REJECT, digest=question.digest, reason=reason)
        if word in SHOW and not rest:
            complete = show_question(session.shop, report, face, changes, whole=True)
            continue
        given = None if of_call else _part(session, report, face, (said or "").strip())
        if given is not None:
            return given


def is_answered(session: Session, report: Report) -> bool:
    """Whether somebody else has answered what the report asks."""
    asked, now = report.question, session.report(report.run).question
    return now is None or asked is None or now.digest != asked.digest


def _choices(session: Session, report: Report) -> str:
    """The answers to a change, with numbers of hunks that it has; a single one is all of it."""
    several = len(session.hunks(report.run))
    hunks = "" if several < 2 else "1 only that hunk, " if several == 2 else "1,3 only those hunks, "
    return CHOICES.format(hunks=hunks)


def always_kinds(question: ApprovalRequest, run: str) -> Mapping[str, tuple[str, ...]]:
    """The kinds that "always" is about: the tool in this run, or with this path or program, for the same reason.

    Empty for changes, and for a call in which something may deceive the eyes.
    """
    if question.kind != "call" or question.flags:
        return {}
    given, why = question.arguments, "; ".join(question.why)
    command = str(given.get("command") or "").strip()
    # A line with more than one program in it is the same only as a whole.
    program = command if _SEVERAL.search(command) else command.partition(" ")[0]
    what = str(given.get("path") or program or web_host(given.get("url")) or question.tool)
    return {"a": ("run", run, question.tool, why), "p": ("pattern", question.tool, what, why)}


def _edited(session: Session, report: Report, face: Face) -> ApprovalResponse | None:
    question = report.question
    assert question is not None
    shown = f"{REMARKS}{session.patch(report.run)}"
    try:
        patch = face.edited(shown, ".diff")
    except UsageError as error:
        face.aside.say(f"{error.message}; {error.advice}")
        return None
    if patch.strip() and patch != shown:
        return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=question.digest, patch=patch)
    face.aside.say("the patch is unchanged; the question is still open" if patch.strip() else "the patch is empty")
    return None


def _part(session: Session, report: Report, face: Face, said: str) -> ApprovalResponse | None:
    """Some hunks, or the patch as the user edits it; None for words that say neither."""
    question = report.question
    assert question is not None
    if said.lower() in EDIT:
        return _edited(session, report, face)
    found = _HUNKS.fullmatch(said.lower())
    if found is None:
        face.aside.say(f"{said!r} is not an answer; say {_choices(session, report)}")
        return None
    numbers = tuple(dict.fromkeys(int(one) for one in re.split(r"[\s,]+", found["numbers"])))
    most = len(session.hunks(report.run))
    wrong = [one for one in numbers if not 1 <= one <= most]
    if wrong:
        face.aside.say(f"there is no hunk {wrong[0]}; the hunks are 1 to {most}")
        return None
    return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=question.digest, hunks=numbers)


NOTHING = "#\n"
"""An empty patch is no patch: it must not be taken for an approval of everything."""


def edited_patch(session: Session, run: str) -> str:
    """The patch as the user left it in $VISUAL or $EDITOR."""
    return edited(f"{REMARKS}{session.patch(run)}", ".diff", session.shop.config.environment) or NOTHING
