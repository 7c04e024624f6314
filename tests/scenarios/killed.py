"""Carries out a request and kills itself, as `kill -9` would, just before the given write to the store becomes durable.

python -m scenarios.killed WORKSPACE SCRIPT N
"""

from __future__ import annotations

import sys
from pathlib import Path

from scenarios.dying import dying_at

from pawl.agent.session import Session
from pawl.core.run import Approval, RunRequest
from pawl.settings.config import load
from pawl.workspace.project import Project

REQUEST = "write the chronicle"


def main(workspace: str, script: str, last: int) -> None:
    with Project.open(load(), Path(workspace)) as shop, dying_at(last):
        Session(shop).do(RunRequest(text=REQUEST, approval=Approval.NEVER, model=f"scripted:{script}"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
