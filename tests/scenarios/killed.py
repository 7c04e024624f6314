"""Carries out a request and kills itself, as `kill -9` would, just before the given write to the store becomes durable.

python -m scenarios.killed WORKSPACE SCRIPT N [final]

Where a run waits, it is approved instead; with `final` the request waits before its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scenarios.dying import dying_at

from pawl.agent.session import Session
from pawl.core.run import Approval, ApprovalAnswer, ApprovalResponse, Report, RunRequest, RunState
from pawl.settings.config import load
from pawl.workspace.project import Project

REQUEST = "write the chronicle"


def main(workspace: str, script: str, last: int, approval: str = "never") -> None:
    with Project.open(load(), Path(workspace)) as shop, dying_at(last):
        session = Session(shop)
        waiting = session.runs(state=RunState.WAITING)
        if waiting:
            approve(session, waiting[0].id)
        else:
            session.do(RunRequest(text=REQUEST, approval=Approval(approval), model=f"scripted:{script}"))


def approve(session: Session, run: str) -> Report:
    digest = session.shown(run).digest
    return session.answer(run, ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
