"""Carries out a request and kills itself, as `kill -9` would, just before the given write to the store becomes durable.

python killed.py WORKSPACE SCRIPT N
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pawl.app.config import load
from pawl.app.doing.session import Session
from pawl.app.workshop import Workshop
from pawl.core.run import Approval
from pawl.core.runs import Order
from pawl.store.database import Database

REQUEST = "write the chronicle"


def main(workspace: str, script: str, last: int) -> None:
    plain = Database.run
    left = [last]

    def run(self, sql, values=()):
        if sql == "COMMIT":
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, sql, values)

    with Workshop.open(load(), Path(workspace)) as shop:
        Database.run = run
        Session(shop).do(Order(text=REQUEST, approval=Approval.NEVER, model=f"scripted:{script}"))
    print(last - left[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
