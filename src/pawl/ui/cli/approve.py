"""`pawl approve`: what a run waits for, and the answer, perhaps a day later and from another process."""

from __future__ import annotations

from pawl.agent.session import Session
from pawl.core.errors import UsageError
from pawl.core.run import ApprovalAnswer, ApprovalResponse, Report, RunState
from pawl.ui.cli.call import Call
from pawl.ui.cli.do import ask_inline, listener
from pawl.ui.cli.ordering import opened_session
from pawl.ui.cli.shapes import as_body, exit_code
from pawl.ui.screen.report import changes_of, show_waiting, tell
from pawl.ui.screen.talk import EventRenderer
from pawl.workspace.project import Project


def approve(shop: Project, call: Call) -> int:
    talk = EventRenderer(call.out, call.aside, quiet=call.options.json)
    with opened_session(shop, call, listener(call, talk)) as session:
        report = session.waiting(call.options.id)
        if report.state is not RunState.WAITING:
            raise UsageError(f"the run {report.run} does not wait for an answer", advice=f"it is {report.state}")
        given = _answer(session, report, call)
        try:
            if given is not None:
                report = session.answer(report.run, given)
        finally:
            talk.close()
    changes = changes_of(shop, report)
    if call.options.json:
        call.emit(as_body(shop, report, changes))
    else:
        if report.state is RunState.WAITING:
            show_waiting(shop, report, call, changes, whole=call.options.full)
        tell(shop, report, call, changes)
    return exit_code(report)


def _answer(session: Session, report: Report, call: Call) -> ApprovalResponse | None:
    """None only shows what is waited for."""
    options = call.options
    question = report.question
    assert question is not None
    digest = options.digest or question.digest
    if options.reject is not None:
        return ApprovalResponse(answer=ApprovalAnswer.REJECT, digest=digest, reason=options.reject)
    if options.hunks is not None:
        return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest, hunks=_numbers(options.hunks))
    if options.edit or options.patch is not None:
        from pawl.ui.screen.approving import edited_patch, patch_from

        patch = edited_patch(session, report.run) if options.edit else patch_from(options.patch)
        return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest, patch=patch)
    if options.yes:
        return ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest)
    return ask_inline(session, report, call) if call.can_ask else None


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise UsageError(f"--hunks {text!r} names no hunks", advice="give their numbers, such as --hunks 1,3")
    return tuple(dict.fromkeys(int(part) for part in parts))
