"""Climbs a ladder and kills itself, as `kill -9` would, just before the given write to the store becomes durable.

python killed_loop.py WORKSPACE SCRIPT N
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pawl.app.config import load
from pawl.app.doing.session import Session
from pawl.app.looping.ordering import LoopWish, loop_order
from pawl.app.workshop import Workshop
from pawl.core.tiers import Ladder, Tier, TierMode
from pawl.store.database import Database

LADDER = Ladder(
    tiers=(
        Tier(name="simple", mode=TierMode.SIMPLE, iterations=1, samples=2),
        Tier(name="full", mode=TierMode.FULL, iterations=2),
    )
)


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
        Session(shop).do(loop_order(LoopWish(model=f"scripted:{script}"), LADDER))
    print(last - left[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
