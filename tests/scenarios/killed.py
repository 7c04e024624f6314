"""Carries out a request and kills itself, as `kill -9` would, just before the given write to the store becomes durable.

python -m scenarios.killed WORKSPACE SCRIPT N
"""

from __future__ import annotations

import sys
from pathlib import Path

from scenarios.dying import dying_at

from pawl.app.config import load
from pawl.app.doing.session import Session
from pawl.app.workshop import Workshop
from pawl.core.run import Approval
from pawl.core.runs import Order

REQUEST = "write the chronicle"


def main(workspace: str, script: str, last: int) -> None:
    with Workshop.open(load(), Path(workspace)) as shop, dying_at(last):
        Session(shop).do(Order(text=REQUEST, approval=Approval.NEVER, model=f"scripted:{script}"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
