"""The user's answer to what a run waits for, as one types it: yes, no with a reason, some hunks, edited, or later."""

from __future__ import annotations

import re
from typing import Protocol

from pawl.app.doing.session import Session
from pawl.core.errors import UsageError
from pawl.core.runs import Answer, Approved, Report
from pawl.interfaces.screen.editing import REMARKS
from pawl.interfaces.screen.report import Screens, show_question

YES = frozenset({"y", "yes"})
NO = frozenset({"n", "no"})
LATER = frozenset({"l", "later"})
EDIT = frozenset({"e", "edit"})
SHOW = frozenset({"d", "diff"})
_HUNKS = re.compile(r"(?:h|hunks?)?\s*(?P<numbers>\d{1,6}(?:[\s,]+\d{1,6})*)")
CHOICES = "y yes, n no, 1,3 these hunks, e edit, d diff, l later"
CHOICES_OF_CALL = "y yes, n no, d show all, l later"


class Asker(Protocol):
    """How a person is asked for a line."""

    def line(self, question: str) -> str | None:
        """What was typed; None when the input has ended."""
        ...

    def edited(self, text: str, suffix: str) -> str:
        """The text after the user has changed it in an editor."""
        ...


def ask_approval(session: Session, report: Report, screens: Screens, asker: Asker) -> Approved | None:
    """Shows what is asked about and asks until there is an answer; None to answer later."""
    question = report.question
    assert question is not None
    if report.stale:
        screens.aside.say(f"! the approval was not taken: {report.stale}", "bold yellow")
    changes = session.shown(report.run)
    screens.out.say()
    complete = show_question(session.shop, report, screens, changes)
    if not complete:
        screens.aside.say("! not all of it is shown; d shows all of it", "bold yellow")
    of_call = question.kind == "call"
    prompt = f"carry it out? [{CHOICES_OF_CALL}] " if of_call else f"promote this? [{CHOICES}] "
    while True:
        said = asker.line(prompt)
        word, _, rest = (said or "").strip().partition(" ")
        word = word.lower()
        if not word or word in LATER:
            return None
        if word in YES and not rest and not complete:
            screens.aside.say("part of it was not shown: d shows all of it, y approves it as it is", "bold yellow")
            complete = True
            continue
        if word in YES and not rest:
            return Approved(answer=Answer.APPROVE, digest=question.digest)
        if word in NO:
            reason = rest.strip() or (asker.line("why? [Enter: no reason] ") or "").strip()
            return Approved(answer=Answer.REJECT, digest=question.digest, reason=reason)
        if word in SHOW and not rest:
            complete = show_question(session.shop, report, screens, changes, whole=True)
            continue
        given = None if of_call else _part(session, report, screens, asker, (said or "").strip())
        if given is not None:
            return given


def _edited(session: Session, report: Report, screens: Screens, asker: Asker) -> Approved | None:
    question = report.question
    assert question is not None
    shown = f"{REMARKS}{session.patch(report.run)}"
    try:
        patch = asker.edited(shown, ".diff")
    except UsageError as error:
        screens.aside.say(f"{error.message}; {error.advice}")
        return None
    if patch.strip() and patch != shown:
        return Approved(answer=Answer.APPROVE, digest=question.digest, patch=patch)
    screens.aside.say("the patch is as it was; nothing is answered yet" if patch.strip() else "the patch is empty")
    return None


def _part(session: Session, report: Report, screens: Screens, asker: Asker, said: str) -> Approved | None:
    """Some hunks, or the patch as the user edits it; None for words that say neither."""
    question = report.question
    assert question is not None
    if said.lower() in EDIT:
        return _edited(session, report, screens, asker)
    found = _HUNKS.fullmatch(said.lower())
    if found is None:
        screens.aside.say(f"{said!r} is no answer; say {CHOICES}")
        return None
    numbers = tuple(dict.fromkeys(int(one) for one in re.split(r"[\s,]+", found["numbers"])))
    most = len(session.hunks(report.run))
    wrong = [one for one in numbers if not 1 <= one <= most]
    if wrong:
        screens.aside.say(f"there is no hunk {wrong[0]}; the hunks are 1 to {most}")
        return None
    return Approved(answer=Answer.APPROVE, digest=question.digest, hunks=numbers)
